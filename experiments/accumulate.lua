-- accumulate: one large batch in many small pieces.
--
-- What does not fit into memory at once is walked through in `window` pieces. Each piece's loss is
-- divided by their number and scaled; its gradients are added to those before. Only then is there
-- one unscaling, one clipping, one step and one update of the scale: a scale that changed on the
-- way would mix pieces of different units, which the engine refuses by name.
-- Before it trains it takes the gradients of one batch both ways and says how far they are apart
-- (`apart`, of their norm). In fp32 that is the order of additions alone; in lower formats the pieces'
-- gradients, a `window` smaller than the batch's, also round elsewhere.
-- Takes about 2 s on two cores. On the screen: steps are those of the optimizer; `memory` is that of a
-- piece. Compare it with the batch in one piece: `--set window=1`.
-- Expect the accuracy of the large batch, some 86 % (a guess is 10 %), whatever the window, and `apart`
-- of 2e-7 in fp32, 1e-4 in fp16 and 9e-4 in bf16: less than one rounding of a number (2^-11, 2^-8).
-- From: PyTorch's examples of automatic mixed precision ("Gradient accumulation"); its warning
-- against unscaling in between.
--     mpbench run accumulate -p fp16
--     mpbench matrix accumulate -p fp32,fp16 --set window=1,4,16
--     mpbench run accumulate -p bf16 --set batch=1024 --set window=64 --set width=1024
local mp = require "mp"
local nn, F = mp.nn, mp.fn

-- How far the gradients of a batch in pieces are from those in one, as a share of their norm.
local function apart(pieces, whole)
    local difference, norm = 0, 0
    for i, g in ipairs(whole) do
        difference = difference + (pieces[i] - g):square():sum():item()
        norm = norm + g:square():sum():item()
    end
    return math.sqrt(difference / norm)
end

return mp.experiment {
    name = "accumulate",
    about = "Gradient accumulation: a batch in pieces, and what the formats add to it",
    params = { lr = 0.1, batch = 256, window = 8, epochs = 2, width = 256, limit = 30000 },

    run = function(run)
        local p = run.params
        local piece = p.batch // p.window
        if piece * p.window ~= p.batch then error "window: must divide batch" end
        local function images(split, batch, limit)
            return mp.data.fashion_mnist {
                split = split, batch = batch, limit = limit, shuffle = split == "train",
                drop_last = split == "train",
                transform = { mean = 0.286, std = 0.353 },
            }
        end
        local train, test = images("train", p.batch, p.limit), images("test", 200, p.limit // 10)
        local model = run:model(nn.Sequential {
            nn.Flatten(), nn.Linear(784, p.width, { activation = "relu" }):named "fc1",
            nn.Linear(p.width, p.width, { activation = "relu" }):named "fc2", nn.Linear(p.width, 10):named "head",
        })
        local opt = mp.optim.SGD(model:parameters(), {
            lr = p.lr, momentum = 0.9,
            schedule = mp.optim.schedule.cosine { total = train:len() * p.epochs },
        })
        local scaler = run:scaler()

        -- The gradients of a batch, walked through in so many pieces; the mean of their losses.
        local function accumulate(b, window)
            local size, sum = p.batch // window, nil
            for i = 1, window do
                local first, last = (i - 1) * size + 1, i * size
                local loss = mp.autocast(function()
                    return F.cross_entropy(model(b.x:slice(1, first, last)), b.y:slice(1, first, last))
                end) / window
                scaler:scale(loss):backward()
                sum = sum and sum + loss:detach() or loss:detach()
            end
            return sum
        end

        local function gradients(b, window)
            local list = {}
            opt:zero_grad()
            accumulate(b, window)
            for i, t in ipairs(model:parameters()) do list[i] = t:grad():clone() end
            opt:zero_grad()
            return list
        end

        run:plan(train:len() * p.epochs)
        for epoch = 1, p.epochs do
            for b in train do
                if epoch == 1 and run.step == 0 then
                    run:result { apart = apart(gradients(b, p.window), gradients(b, 1)) }
                end
                opt:zero_grad()
                local loss = accumulate(b, p.window)
                scaler:step(opt)
                scaler:update()
                run:log { loss = loss }
            end
        end

        model:eval()
        mp.no_grad(function()
            local right, count = 0, 0
            for b in test do
                right = right + mp.autocast(function() return F.accuracy(model(b.x), b.y) end) * b.count
                count = count + b.count
            end
            run:result { accuracy = right / count }
        end)
    end,
}
