-- memory: what fits into a given memory in the format of the run and in fp32: the largest batch, the
-- deepest network, the highest resolution; found by training steps whose memory is measured.
--
-- Nothing is worked out on paper: each candidate does a step, forward and back, and fits where the most
-- that the device held, less the work space of kernels, stays below `budget` MiB; doubled until one does
-- not, then halved between. Work space is left out as it stays as large as the largest trial so far
-- wanted it: it would tell of trials before, and of the order in which they came.
-- At the end `batch`, `depth` and `size` are the largest that fit in the run's format and `batch_fp32` and
-- so on those in fp32; then the largest batch of the run's format trains for some steps, and `accuracy`
-- (0.1 by chance) shows that it does.
-- Takes about 5 s on two cores. On the screen: the events name what was tried.
-- Expect about twice the batch and the depth, where weights, which are kept in fp32 beside low copies,
-- are the small part. Pixels grow with the square of `size`: it gains the root. The summary may tell more
-- memory than `budget`: of 24 MiB 42 in fp32, 88 in bf16 and 91 in fp16, whose kernels want 4 MiB more of
-- work space. It counts what trying took, and no trial is stopped half way: candidates that are too
-- large are tried, too, and a doubled `size` takes four times the memory.
-- From: Micikevicius et al., Mixed Precision Training, 2018 (arXiv:1710.03740): activations of half the size.
--     mpbench run memory -p fp16
--     mpbench run memory -p bf16 --set budget=1024 --set width=64
local mp = require "mp"
local nn, F = mp.nn, mp.fn

local classes = 10

local function network(depth, width)
    local layers = { nn.Conv2d(3, width, 3, { padding = 1, bias = false }) }
    for _ = 1, depth do
        for _, layer in ipairs {
            nn.BatchNorm(width), nn.ReLU(), nn.Conv2d(width, width, 3, { padding = 1, bias = false }),
        } do layers[#layers + 1] = layer end
    end
    layers[#layers + 1] = nn.GlobalAvgPool()
    layers[#layers + 1] = nn.Linear(width, classes)
    return nn.Sequential(layers)
end

-- Pictures of ten kinds: each has a pattern of its own, which is repeated over the picture, in noise.
local function pictures(patterns, batch, size)
    local y = mp.randint(classes, batch)
    local tile = F.embedding(y, patterns):reshape(batch, 4, 4, 3)
    local times = (size + 3) // 4
    local rows, whole = {}, {}
    for i = 1, times do rows[i] = tile end
    local row = F.cat(rows, 3)
    for i = 1, times do whole[i] = row end
    local x = F.cat(whole, 2):slice(2, 1, size):slice(3, 1, size)
    return x + mp.randn(batch, size, size, 3), y
end

return mp.experiment {
    name = "memory",
    about = "The largest batch, depth and resolution in a given memory, measured, in low formats and fp32",
    params = { budget = 24, width = 16, batch = 16, depth = 4, size = 16, steps = 60, lr = 3e-3 },

    run = function(run)
        local p = run.params
        local patterns = mp.randn(classes, 48)

        -- Whether a step of this fits, with all that it needs but where kernels work: that stays as large as
        -- the largest one wanted it.
        local function fits(low, what)
            local model = network(what.depth, p.width)
            local x, y = pictures(patterns, what.batch, what.size)
            local most = mp.memory(function()
                local loss = mp.autocast(low, function() return F.cross_entropy(model(x), y) end)
                loss:backward()
            end)
            return most.total - most.workspace <= p.budget * 2 ^ 20
        end

        local function largest(low, name)
            local function try(value)
                local what = { batch = p.batch, depth = p.depth, size = p.size }
                what[name] = value
                local does = fits(low, what)
                run:event(("%s %d in %s: %s"):format(name, value, low or "fp32", does and "fits" or "too large"))
                return does
            end
            local good, bad = 0, 1
            while try(bad) do good, bad = bad, 2 * bad end
            while bad - good > math.max(1, good // 32) do
                local middle = (good + bad) // 2
                if try(middle) then good = middle else bad = middle end
            end
            return good
        end

        local low = mp.policy().low
        local found, full = {}, {}
        for _, name in ipairs { "batch", "depth", "size" } do
            full[name] = largest(false, name)
            found[name] = low == "fp32" and full[name] or largest(low, name)
            run:result { [name] = found[name], [name .. "_fp32"] = full[name] }
        end
        run:result { batch_gain = found.batch / full.batch }

        local model = run:model(network(p.depth, p.width))
        local opt, scaler = mp.optim.Adam(model:parameters(), { lr = p.lr }), run:scaler()
        for _ = 1, p.steps do
            local x, y = pictures(patterns, found.batch, p.size)
            opt:zero_grad()
            local loss = mp.autocast(function() return F.cross_entropy(model(x), y) end)
            scaler:scale(loss):backward()
            scaler:step(opt)
            scaler:update()
            run:log { loss = loss }
        end
        run:evaluate(function()
            model:eval()
            local x, y = pictures(patterns, 200, p.size)
            run:result { accuracy = F.accuracy(mp.autocast(model, x), y) }
        end)
    end,
}
