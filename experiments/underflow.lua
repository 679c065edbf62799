-- underflow: why the loss is scaled.
--
-- fp16 has nothing between 0 and 2^-24, about 6e-8. The loss here is multiplied by 2^-22, as a loss
-- averaged over many elements is, so that its gradients mostly lie below that. In fp16 without
-- scaling they become 0 and the network stays as it was made; with scaling they survive and it
-- learns as fp32 does. Takes less than a second. On the screen: the exponents of gradients, which lie
-- below fp16's range, and the share of them that fp16 makes 0; the scale moves them into it.
-- Expect an accuracy of 0.99 or more (4 classes, a guess is 0.25) in fp32, bf16 and scaled fp16; without
-- a scale a loss that stays at 1.36 and a note that 100 % of the gradients became 0.
-- From: Micikevicius et al., Mixed Precision Training, 2018 (3.2, loss scaling); the network is of no
-- publication, but a minimal example. Compare
--     mpbench run underflow -p fp32
--     mpbench run underflow -p fp16 --loss-scale none      accuracy stays at a guess
--     mpbench run underflow -p fp16                        dynamic scaling: as fp32
--     mpbench run underflow -p bf16                        fp32's exponents need no scaling
-- The introduction's example of two numbers: mpbench formats 1e-4*1e-4.
local mp = require "mp"
local nn, F = mp.nn, mp.fn

return mp.experiment {
    name = "underflow",
    about = "Gradients below what fp16 holds: without loss scaling nothing is learnt",
    params = { lr = 1e-3, batch = 64, steps = 600, shrink = 2 ^ -22 },

    run = function(run)
        local p = run.params
        local net = run:model(nn.Sequential {
            nn.Linear(32, 128), nn.Tanh(), nn.Linear(128, 128), nn.Tanh(),
            nn.Linear(128, 4):named "head",
        })
        local centres = mp.randn(4, 32)
        local function batch(n)
            local y = mp.randint(4, n)
            return F.embedding(y, centres) + mp.randn(n, 32), y
        end

        -- Adam divides by the size of the gradient: only what became 0 is lost. Its epsilon must be
        -- far below gradients this small, or it would hide them in fp32 too.
        local opt = mp.optim.Adam(net:parameters(), { lr = p.lr, eps = 1e-16 })
        local scaler = run:scaler()
        for _ = 1, p.steps do
            local x, y = batch(p.batch)
            opt:zero_grad()
            local loss = mp.autocast(function() return F.cross_entropy(net(x), y) end)
            scaler:scale(loss * p.shrink):backward()
            scaler:step(opt)
            scaler:update()
            run:log { loss = loss }
        end

        local x, y = batch(1000)
        net:eval()
        mp.no_grad(function() run:result { accuracy = F.accuracy(net(x), y) } end)
    end,
}
