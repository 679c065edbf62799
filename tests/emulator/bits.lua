-- What tests/emulator/bits_test.sh compares, to the bit: "draw NAME NUMBER ..", which are the same on
-- every device, and "made NAME NUMBER ..", which are the same on one device however it goes about it.
local mp = require "mp"
local nn, F = mp.nn, mp.fn

local function say(kind, name, t)
    local words = { kind, name }
    for _, x in ipairs(t:to("fp32"):reshape(-1):table()) do words[#words + 1] = ("%.17g"):format(x) end
    print(table.concat(words, " "))
end

local function draws()
    say("draw", "rand", mp.rand(37))
    say("draw", "randn", mp.randn(5, 9))
    say("draw", "randint", mp.randint(1000, 21))
    say("draw", "dropout", F.dropout(mp.ones(50), 0.3))
    local loader = mp.data.tensors { x = mp.arange(23):reshape(23, 1), batch = 4, shuffle = true }
    for epoch = 1, 2 do
        for batch in loader do
            say("draw", "order" .. epoch, batch.x)
        end
    end
end

local function operations()
    local a, b = mp.randn(33, 40), mp.randn(40, 35)
    local images, kernel = mp.randn(2, 7, 7, 3), mp.randn(4, 3, 3, 3)
    for _, format in ipairs { "fp32", "bf16", "fp16" } do
        local low = function(t) return t:to(format):detach():requires_grad(true) end
        local calls = {
            matmul = { F.matmul, low(a), low(b) },
            softmax = { function(x) return F.softmax(x, 2) end, low(a) },
            layer_norm = { F.layer_norm, low(a) },
            sum = { function(x) return x:sum(1) end, low(a) },
            mean = { function(x) return x:mean() end, low(a) },
            gelu = { F.gelu, low(a) },
            conv2d = { F.conv2d, low(images), low(kernel) },
            max_pool2d = { function(x) return F.max_pool2d(x, 2) end, low(images) },
            rows = { function(x) return F.embedding(mp.tensor({ 3, 3, 0, 3, 9 }, "int32"), x) end, low(a) },
        }
        for name, call in pairs(calls) do
            local y = call[1](call[2], call[3])
            say("made", name .. "." .. format, y)
            local total = (y:to "fp32" * 0.5):sum()
            total:backward()
            for i = 2, #call do say("made", name .. "." .. format .. ".grad" .. i - 1, call[i]:grad()) end
        end
    end
end

-- Steps that are skipped, layers that change, an average of weights, a last batch that is short.
local function training(run)
    local net = run:model(nn.Sequential { nn.Conv2d(1, 3, 3), nn.BatchNorm(3), nn.ReLU(), nn.Flatten(),
        nn.Linear(48, 8), nn.LayerNorm(8), nn.GELU(), nn.Dropout(0.1), nn.Linear(8, 3) })
    local opt = mp.optim.Adam(net:parameters(), { lr = 1e-2, max_grad_norm = 1 })
    local scaler, average = mp.scaler { init = 2 ^ 17, interval = 3 }, mp.optim.EMA(net, 0.9)
    local loader = mp.data.tensors { x = mp.randn(18, 6, 6, 1), y = mp.randint(3, 18), batch = 4,
        shuffle = true }
    local step = 0
    for _ = 1, 2 do
        for batch in loader do
            step = step + 1
            opt:zero_grad()
            local loss = mp.autocast(function() return F.cross_entropy(net(batch.x), batch.y) end)
            scaler:scale(step == 4 and loss * math.huge or loss):backward()
            scaler:step(opt)
            scaler:update()
            average:update(opt)
            run:log { loss = loss }
            if step % 3 == 0 then
                net:find("linear*"):precision(step % 2 == 0 and "auto" or "fp32")
                say("made", "loss" .. step, loss:detach())
            end
        end
    end
    for i, p in ipairs(net:parameters()) do say("made", "weight" .. i, p:detach()) end
    average:with(function() say("made", "average", net:parameters()[1]:detach()) end)
    say("made", "scale", mp.tensor { scaler:get() })
end

return mp.experiment { name = "bits", precision = "fp16", run = function(run)
    draws()
    operations()
    training(run)
end }
