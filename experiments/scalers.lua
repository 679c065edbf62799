-- scalers: every way to move the loss scale, on a loss whose size swings.
--
-- The loss is multiplied by a factor that goes from 2^-swing to 2^swing and back, as losses of
-- adversaries, of rewards or of sequences of any length do. Its gradients do too; a step divides them
-- by their norm first, so that in fp32 the factor changes nothing at all. In fp16 a scale that fits
-- the calm overflows in the storm (the step is skipped), and one that fits the storm lets the small
-- gradients of the calm become 0.
-- The scaler is the one that --loss-scale names, or, with --set strategy=..:
--     follow     a rule written here: as near below fp16's end as the largest gradient lets it be
--     mean       × 1.1 while the mean gradient is under 1e-7, half after an overflow
--     clipping   a class on top of the run's scaler, whose `unscale` also clips what it unscales
-- Takes less than a second. On the screen: the scale, the skipped steps, and the exponents of the
-- gradients under fp16's range as they move to and fro. `zeros` is the share of gradients that were 0.
-- Expect 92 to 95 % (4 classes, a guess is 25 %; it depends on the seed) from all that train, for a direction
-- survives much; they differ in what they lose. In fp32 and bf16 next to nothing. In fp16, with seed 1,
-- dynamic scaling skips 11 steps of the first storm and then stays as low as that left it: 1 gradient
-- of 1,300 is 0. Without a scale (1), and by
-- logmax, which remembers an overflow for long, it is 1 of 45; a fixed 2^7 skips 39 steps, and 2^16
-- all of the first storm, which ends the run. `follow` skips none and loses none.
-- From: Micikevicius et al., Mixed Precision Training, 2018 (4.3, dynamic scaling); Zhao et al.,
-- Adaptive Loss Scaling for Mixed Precision Training, 2019; logmax: Kuchaiev et al., OpenSeq2Seq, 2018.
--     mpbench run scalers -p fp16
--     mpbench matrix scalers -p fp16 --loss-scale dynamic,logmax,adaptive,1,2^16
--     mpbench run scalers -p fp16 --set strategy=follow
--     mpbench run scalers -p fp16 --set swing=16 --set period=1000 --set steps=5000
local mp = require "mp"
local nn, F = mp.nn, mp.fn

-- A step along the direction of the gradient alone. Knows what share of the gradients was 0.
local Normalised = mp.class("Normalised", mp.optim.SGD)
function Normalised:step()
    local square, zeros, count = 1e-30, 0, 0
    for _, p in ipairs(self:parameters()) do
        local shares = F.equal(p:grad(), 0):to "fp32"
        square = square + p:grad():square():sum()
        zeros, count = zeros + shares:sum(), count + shares:reshape(-1):shape()[1]
    end
    for _, p in ipairs(self:parameters()) do p:grad(p:grad() / square:sqrt()) end
    self.zeros = zeros / count
    Normalised.super.step(self)
end

local Clipping = mp.class("Clipping", mp.scaler)
function Clipping:unscale(opt)
    Clipping.super.unscale(self, opt)
    mp.optim.clip_norm(opt:parameters(), 1)
end

local strategies = {
    run = function(run) return run:scaler() end,
    follow = function()
        return mp.scaler(function(stats)
            if stats.found_inf then return math.max(1, stats.scale / 16) end
            return math.min(2 ^ 24, 2 ^ math.floor(math.log(2 ^ 13 / stats.largest, 2)))
        end)
    end,
    mean = function()
        return mp.scaler(function(stats)
            if stats.found_inf then return math.max(1, stats.scale / 2) end
            return stats.mean < 1e-7 and math.min(stats.scale * 1.1, 2 ^ 16) or stats.scale
        end)
    end,
    clipping = function(run) return Clipping(run:scaler()) end,
}

return mp.experiment {
    name = "scalers",
    about = "Every way to move the loss scale, on a loss whose size swings",
    params = {
        lr = 0.05, batch = 64, steps = 600, swing = 14, period = 300,
        strategy = { "run", "follow", "mean", "clipping" },
    },

    run = function(run)
        local p = run.params
        local net = run:model(nn.Sequential {
            nn.Linear(32, 128), nn.Tanh(), nn.Linear(128, 128), nn.Tanh(), nn.Linear(128, 4):named "head",
        })
        local centres = mp.randn(4, 32)
        local function batch(n)
            local y = mp.randint(4, n)
            return F.embedding(y, centres) + mp.randn(n, 32) * 2, y
        end

        local opt = Normalised(net:parameters(), {
            lr = p.lr, momentum = 0.5, schedule = mp.optim.schedule.cosine { total = p.steps },
        })
        local scaler = strategies[p.strategy](run)
        local zeros = 0
        for step = 1, p.steps do
            local x, y = batch(p.batch)
            local factor = 2 ^ (p.swing * math.sin(2 * math.pi * step / p.period))
            opt:zero_grad()
            local loss = mp.autocast(function() return F.cross_entropy(net(x), y) end)
            scaler:scale(loss * factor):backward()
            scaler:step(opt)
            scaler:update()
            zeros = zeros + opt.zeros
            run:log { loss = loss, factor = factor, zeros = opt.zeros }
        end

        local x, y = batch(2000)
        net:eval()
        mp.no_grad(function() run:result { accuracy = F.accuracy(net(x), y), zeros = zeros / p.steps } end)
    end,
}
