-- What the three GANs share: real pictures, a judge that was trained on them alone, and what it says
-- of pictures that were made.
local mp = require "mp"
local nn, F = mp.nn, mp.fn

local shared = {}

-- Batches without end, the data over and over.
function shared.forever(loader)
    if loader:len() == 0 then error("more pictures are wanted: there is not one batch of them") end
    return coroutine.wrap(function()
        while true do
            for b in loader do coroutine.yield(b) end
        end
    end)
end

-- Real pictures between -1 and 1: Fashion-MNIST, or the folder of PNG files that --set path names, a
-- folder in it for each class. `test` is for the judge; a folder is its own test, which flatters.
function shared.load(p)
    local function open(split, batch)
        if p.path == "" then
            return mp.data.fashion_mnist { split = split, batch = batch, shuffle = split == "train", drop_last = true }
        end
        return mp.data.folder { dir = p.path, batch = batch, shuffle = split == "train", drop_last = true }
    end
    local real = { train = open("train", p.batch), judged = open("train", 25), test = open("test", 50) }
    local first = mp.no_grad(shared.forever(open("test", 1))).x:shape()
    real.size, real.channels = first[2], first[4]
    if real.size % 4 ~= 0 then error("pictures of a side that 4 divides are wanted, these have " .. real.size) end
    local names = p.path ~= "" and real.train:classes() or nil
    real.classes = names and #names or 10
    return real
end

-- Between 0 and 1 as loaders give them, to -1 and 1 as a tanh does; and back, for the eye.
function shared.spread(x) return x * 2 - 1 end
function shared.shown(x) return x:to "fp32" * 0.5 + 0.5 end

-- Trains a classifier in fp32 on real batches and returns a function from pictures to odds. There are
-- p.judge of them, and ten a step of the run at most, so that a short run stays short.
-- Its rule is written out, so that its steps are none of the run's: momentum, at a rate that falls.
function shared.train_judge(real, p)
    local count = math.min(p.judge, 10 * p.steps)
    local side = real.size // 4
    local net = nn.Sequential {
        nn.Conv2d(real.channels, 16, 3, { padding = 1 }), nn.BatchNorm(16), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 3, { padding = 1 }), nn.BatchNorm(32), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(32 * side * side, 128, { activation = "relu" }), nn.Linear(128, real.classes),
    }
    local weights, speeds = net:parameters(), {}
    for i, weight in ipairs(weights) do speeds[i] = mp.zeros(weight:shape()) end
    mp.no_grad(function()
        local batches = shared.forever(real.judged)
        for step = 1, count do
            local b = batches()
            local slopes = mp.enable_grad(function()
                return mp.grad(F.cross_entropy(net(shared.spread(b.x)), b.y), weights)
            end)
            local rate = 0.03 * (1 + math.cos(math.pi * step / count)) / 2
            for i, weight in ipairs(weights) do
                speeds[i]:copy(speeds[i] * 0.9 + slopes[i])
                weight:copy(weight - speeds[i] * rate)
            end
        end
    end)
    net:eval()
    return function(x) return mp.no_grad(function() return F.softmax(net(x:to "fp32")) end) end
end

-- The share of real test pictures that the judge calls by their name.
function shared.judge_accuracy(judge, real, batches)
    local right, count = 0, 0
    mp.no_grad(function()
        for b in real.test do
            right, count = right + F.accuracy(judge(shared.spread(b.x)), b.y):item(), count + 1
            if count == batches then break end
        end
    end)
    return right / count
end

-- exp of the mean divergence of what is said of each picture from what is said of all of them
-- together: 1 for pictures that are all alike or that nobody can name (noise), at most the number of
-- classes. The inception score of Salimans and others (2016), by our judge in place of Inception.
function shared.score(odds)
    local all = odds:mean(1, true)
    local surprise = odds * ((odds + 1e-8):log() - (all + 1e-8):log())
    return math.exp(surprise:sum(2):mean():item())
end

-- How much what `make(n)` makes differs from its mean, as a share of how much real pictures do: 0 where all
-- are one picture.
function shared.variety(real, make)
    local x = shared.spread(mp.no_grad(shared.forever(real.test)).x)
    local function apart(pictures)
        pictures = pictures:to "fp32"
        return (pictures - pictures:mean(1, true)):square():mean():sqrt():item()
    end
    return apart(make(#x)) / apart(x)
end

-- The scores of what `make(n)` makes, of as many real pictures, and of noise; and how sure the judge is.
function shared.compare(judge, real, make)
    local rounds, made, seen, noise = 10, {}, {}, {}
    mp.no_grad(function()
        local test = shared.forever(real.test)
        for i = 1, rounds do
            local x = test().x
            made[i], seen[i] = judge(make(50)), judge(shared.spread(x))
            noise[i] = judge(mp.rand(x:shape()) * 2 - 1)
        end
    end)
    made, seen, noise = F.cat(made), F.cat(seen), F.cat(noise)
    return {
        score = shared.score(made), score_real = shared.score(seen), score_noise = shared.score(noise),
        confidence = made:max(2):mean():item(), confidence_real = seen:max(2):mean():item(),
        confidence_noise = noise:max(2):mean():item(), variety = shared.variety(real, make),
    }
end

return shared
