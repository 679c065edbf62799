-- simple: the mixed-precision loop of every introduction, line for line as PyTorch users write it.
--
-- A network of 128-64-10, batches of 32, SGD with momentum. Its data are drawn once: clouds of
-- points, one a class, so that there is something to learn. The PyTorch line stands beside each line of
-- the loop. Takes less than a second. On the screen: the loss falls a thousandfold, while the scale stays at
-- 2^16, where it begins: in 500 steps nothing overflows, and it would double only after 2000.
-- Expect every new point to be told right, an accuracy of 1 (a guess is 0.1), in every format.
-- From: the loop of PyTorch's automatic mixed precision examples (torch.amp); network and data are of no
-- publication, but a minimal example.
--     mpbench run simple -p fp16      (losses scaled; a step whose gradients overflow is skipped)
--     mpbench run simple -p fp32
local mp = require "mp"
local nn, F = mp.nn, mp.fn

return mp.experiment {
    name = "simple",
    about = "The mixed-precision loop, step by step: 128-64-10, SGD with momentum",
    params = { lr = 1e-2, batch = 32, steps = 500, width = 64 },

    run = function(run)
        local p, Net = run.params, nn.class "Net"
        function Net:init() self.fc1, self.fc2 = nn.Linear(128, p.width), nn.Linear(p.width, 10) end
        function Net:forward(x) return self.fc2(F.relu(self.fc1(x))) end

        local centres = mp.randn(10, 128)
        local function batch()
            local y = mp.randint(10, p.batch)
            return F.embedding(y, centres) + mp.randn(p.batch, 128) * 2, y
        end

        local net = run:model(Net())                                   -- net = Net()
        local opt = mp.optim.SGD(net:parameters(), { lr = p.lr, momentum = 0.9 })
        local scaler = run:scaler()                                    -- scaler = GradScaler()
        for _ = 1, p.steps do
            local x, y = batch()
            opt:zero_grad()                                            -- opt.zero_grad()
            local loss = mp.autocast(function()                        -- with autocast():
                return F.cross_entropy(net(x), y)                      --     loss = cross_entropy(net(x), y)
            end)
            scaler:scale(loss):backward()                              -- scaler.scale(loss).backward()
            scaler:step(opt)                                           -- scaler.step(opt)
            scaler:update()                                            -- scaler.update()
            run:log { loss = loss }
        end

        local x, y = batch()
        net:eval()
        mp.no_grad(function() run:result { accuracy = F.accuracy(net(x), y) } end)
    end,
}
