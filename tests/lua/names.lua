-- Every name that scripts written elsewhere rely on is there and works on something small.
local mp = require "mp"
local testing = require "testing"
local nn, F, test, equal, near, fails =
    mp.nn, mp.fn, testing.test, testing.equal, testing.near, testing.fails

-- {name = function}: each is called, and a mistake says whose it is.
local function all_work(title, calls)
    for name, call in pairs(calls) do
        local done, message = pcall(call)
        if not done then error(("%s%s: %s"):format(title, name, tostring(message)), 2) end
    end
end

-- {name = {result, shape}}
local function all_shaped(title, results)
    for name, result in pairs(results) do equal(result[1]:shape(), result[2], title .. name) end
end

return mp.experiment { name = "names", about = "names", params = { lr = 0.1 },
    precision = { default = "auto", head = "fp32" }, run = function(run)
    local image, rows = mp.randn(1, 4, 4, 2), mp.rand(3, 4) * 0.8 + 0.1
    local classes, targets = mp.randint(4, 3), mp.rand(3, 4)
    local weight, bias = mp.randn(2, 4), mp.zeros(2)

    test("the_run_has_its_names", function()
        equal(run.params.lr, 0.1)
        equal(type(run.device), "string")
        equal(math.type(run.step), "integer")
        all_work("run:", {
            model = function()
                run:model(nn.Sequential { nn.Linear(2, 2):named "up1" }, "G")
                run:model(nn.Sequential { nn.Linear(2, 2):named "head" })
            end,
            scaler = function() assert(run:scaler():get() > 0) end,
            step = function() equal(run:step(function() return 3 end), 3) end,
            log = function() run:log { loss = mp.ones(1), rate = 0.5 } end,
            result = function() run:result { accuracy = 0.5 } end,
            event = function() run:event "something" end,
            checkpoint = function() run:checkpoint() end,
        })
        local names = {}
        for _, layer in ipairs(mp.policy().layers) do names[layer.name] = true end
        assert(names["G.up1"])
    end)

    test("an_experiment_takes_every_field", function()
        local function f() end
        mp.experiment { name = "n", about = "a", params = {}, data = f, model = f, loss = f, eval = f,
            optim = f, precision = { default = "auto" }, schedule = f, scaler = "torch", clip = 1,
            accumulate = 2, results = { psnr = "higher", gap = "lower" }, leads = "psnr" }
    end)

    test("tensors_have_their_names", function()
        all_shaped("mp.", {
            tensor = { mp.tensor({ { 1, 2 } }, "bf16"), { 1, 2 } }, zeros = { mp.zeros(2, 3), { 2, 3 } },
            ones = { mp.ones(2), { 2 } }, full = { mp.full(7, 2, 2), { 2, 2 } },
            randn = { mp.randn(3), { 3 } }, rand = { mp.rand(3), { 3 } },
            randint = { mp.randint(5, 2), { 2 } }, arange = { mp.arange(4), { 4 } },
        })
        local t = mp.tensor { { 1, 2 }, { 3, 4 } }
        all_shaped("t:", {
            to = { t:to "fp16", { 2, 2 } }, detach = { t:detach(), { 2, 2 } },
            clone = { t:clone(), { 2, 2 } }, reshape = { t:reshape(4), { 4 } },
            transpose = { t:transpose(), { 2, 2 } }, permute = { t:permute(2, 1), { 2, 2 } },
            sum = { t:sum(), {} }, mean = { t:mean(1), { 2 } }, max = { t:max(2), { 2 } },
            matmul = { t:matmul(t), { 2, 2 } }, index = { t[1], { 2 } },
            operators = { -((t + 1 - t) * 2 / t) ^ 2, { 2, 2 } },
        })
        equal(t:to(run.device), t)
        equal(t:dtype(), "fp32")
        equal(#t, 2)
        equal(t:sum():item(), 10)
        equal(t:table(), { { 1, 2 }, { 3, 4 } })
        assert(tostring(t):find("1", 1, true))
        local x = mp.ones(2):requires_grad(true)
        assert(x:requires_grad() and not mp.no_grad(function() return x * 2 end):requires_grad());
        (x * 3):backward(mp.ones(2))
        equal(x:grad():table(), { 3, 3 })
        equal(mp.grad((x * x):sum(), { x }, true)[1]:table(), { 2, 2 })
        mp.seed(1)
        local f = function() return x end
        equal(mp.autocast(f), x)
        equal(mp.autocast(false, f), x)
        equal(mp.autocast("bf16", f), x)
    end)

    test("functions_have_their_names", function()
        local column = mp.ones(2)
        all_shaped("F.", {
            matmul = { F.matmul(rows, targets:transpose()), { 3, 3 } },
            linear = { F.linear(rows, weight, bias), { 3, 2 } },
            conv2d = { F.conv2d(image, mp.randn(3, 2, 2, 2), mp.zeros(3)), { 1, 3, 3, 3 } },
            relu = { F.relu(rows), { 3, 4 } }, gelu = { F.gelu(rows), { 3, 4 } },
            silu = { F.silu(rows), { 3, 4 } }, tanh = { F.tanh(rows), { 3, 4 } },
            sigmoid = { F.sigmoid(rows), { 3, 4 } }, leaky_relu = { F.leaky_relu(rows, 0.1), { 3, 4 } },
            softmax = { F.softmax(rows), { 3, 4 } }, log_softmax = { F.log_softmax(rows), { 3, 4 } },
            exp = { F.exp(rows), { 3, 4 } }, log = { F.log(rows), { 3, 4 } },
            sqrt = { F.sqrt(rows), { 3, 4 } }, abs = { F.abs(rows), { 3, 4 } },
            clamp = { F.clamp(rows, 0, 1), { 3, 4 } },
            where = { F.where(F.greater(rows, 0.5), rows, 0), { 3, 4 } },
            cat = { F.cat({ rows, rows }, 1), { 6, 4 } }, stack = { F.stack { rows, rows }, { 2, 3, 4 } },
            dropout = { F.dropout(rows, 0.5), { 3, 4 } },
            cross_entropy = { F.cross_entropy(rows, classes), {} },
            nll = { F.nll(F.log_softmax(rows), classes), {} },
            bce_with_logits = { F.bce_with_logits(rows, targets), {} },
            bce = { F.bce(rows, targets), {} }, mse = { F.mse(rows, targets), {} },
            l1 = { F.l1(rows, targets), {} }, huber = { F.huber(rows, targets), {} },
            hinge = { F.hinge(rows, targets), {} }, kl = { F.kl(F.log_softmax(rows), targets), {} },
            accuracy = { F.accuracy(rows, classes), {} }, topk = { F.topk(rows, 2), { 3, 2 } },
            argmax = { F.argmax(rows), { 3 } },
            attention = { F.attention(image, image, image), { 1, 4, 4, 2 } },
            layer_norm = { F.layer_norm(image, column, column), { 1, 4, 4, 2 } },
            batch_norm = { F.batch_norm(image, column, column), { 1, 4, 4, 2 } },
            embedding = { F.embedding(classes, rows:transpose()), { 3, 3 } },
            max_pool2d = { F.max_pool2d(image, 2), { 1, 2, 2, 2 } },
            avg_pool2d = { F.avg_pool2d(image, 2), { 1, 2, 2, 2 } },
            upsample = { F.upsample(image, 2), { 1, 8, 8, 2 } },
        })
    end)

    test("layers_have_their_names", function()
        local line, volume = mp.randn(1, 6, 2), mp.randn(1, 4, 4, 4, 2)
        local options = { stride = 1, padding = 1, dilation = 1, groups = 2, bias = false }
        all_shaped("nn.", {
            Linear = { nn.Linear(4, 2, { bias = false })(rows), { 3, 2 } },
            Conv1d = { nn.Conv1d(2, 4, 3, options)(line), { 1, 6, 4 } },
            Conv2d = { nn.Conv2d(2, 4, 3, options)(image), { 1, 4, 4, 4 } },
            Conv3d = { nn.Conv3d(2, 4, 3, options)(volume), { 1, 4, 4, 4, 4 } },
            ConvTranspose1d = { nn.ConvTranspose1d(2, 3, 2, { stride = 2 })(line), { 1, 12, 3 } },
            ConvTranspose2d = { nn.ConvTranspose2d(2, 3, 2, { stride = 2 })(image), { 1, 8, 8, 3 } },
            ConvTranspose3d = { nn.ConvTranspose3d(2, 3, 2, { stride = 2 })(volume), { 1, 8, 8, 8, 3 } },
            BatchNorm = { nn.BatchNorm(2)(image), { 1, 4, 4, 2 } },
            LayerNorm = { nn.LayerNorm(2)(image), { 1, 4, 4, 2 } },
            GroupNorm = { nn.GroupNorm(2, 2)(image), { 1, 4, 4, 2 } },
            InstanceNorm = { nn.InstanceNorm(2)(image), { 1, 4, 4, 2 } },
            Embedding = { nn.Embedding(4, 3)(classes), { 3, 3 } },
            Attention = { nn.Attention(4, 2, { causal = true })(mp.randn(1, 3, 4)), { 1, 3, 4 } },
            Dropout = { nn.Dropout(0.5)(rows), { 3, 4 } },
            MaxPool2d = { nn.MaxPool2d(2, 2)(image), { 1, 2, 2, 2 } },
            AvgPool2d = { nn.AvgPool2d(2)(image), { 1, 2, 2, 2 } },
            GlobalAvgPool = { nn.GlobalAvgPool()(image), { 1, 2 } },
            Upsample = { nn.Upsample(2)(image), { 1, 8, 8, 2 } },
            Flatten = { nn.Flatten()(image), { 1, 32 } },
            ReLU = { nn.ReLU()(rows), { 3, 4 } }, GELU = { nn.GELU()(rows), { 3, 4 } },
            SiLU = { nn.SiLU()(rows), { 3, 4 } }, Tanh = { nn.Tanh()(rows), { 3, 4 } },
            Sigmoid = { nn.Sigmoid()(rows), { 3, 4 } },
            LeakyReLU = { nn.LeakyReLU(0.2)(rows), { 3, 4 } },
            Sequential = { nn.Sequential { nn.Linear(4, 2), nn.ReLU() }(rows), { 3, 2 } },
        })
        local Net = nn.class "Net"
        function Net:init(width) self.inner = nn.Linear(4, width) end
        function Net:forward(x) return self.inner(x) end
        local net = run:model(Net(2))
        equal(net(rows):shape(), net:forward(rows):shape())
        equal(#net:parameters(), 2)
        for name in net:named_parameters() do assert(name:find "^inner%.") end
        net:find("inn*"):precision "fp32"
        equal(net:named("again"):eval():train(), net)
        net:precision "auto"
    end)

    test("optimizers_and_schedules_have_their_names", function()
        local net = nn.Linear(4, 2)
        local params = net:parameters()
        local common = { lr = 0.1, betas = { 0.9, 0.99 }, eps = 1e-7, weight_decay = 0.1,
            bias_correction = true, max_grad_norm = 1 }
        local groups = { { params = params, lr = 0.2, weight_decay = 0 } }
        for _, opt in ipairs { mp.optim.SGD(params, { lr = 0.1, momentum = 0.9, nesterov = true,
            weight_decay = 0.1 }), mp.optim.Adam(params, common), mp.optim.AdamW(groups, common),
            mp.optim.LAMB(params, common) } do
            opt:zero_grad()
            net(rows):sum():backward()
            equal(mp.optim.clip_norm(params, 1):shape(), {})
            mp.optim.clip_value(params, 0.5)
            opt:step()
            near(opt:lr(0.05), 0.05, 0)
            equal(opt:steps(), 1)
        end
        local schedule = mp.optim.schedule
        for _, moves in ipairs { schedule.linear_warmup { warmup = 1, total = 9 },
            schedule.cosine { warmup = 1, total = 9 }, schedule.step { every = 2 } } do
            mp.optim.SGD(params, { lr = 0.1, schedule = moves })
        end
        mp.optim.EMA(net, 0.9):update()
    end)

    test("scalers_have_their_names", function()
        local x = mp.ones(1):requires_grad(true)
        local opt = mp.optim.SGD({ x }, { lr = 0.1 })
        for _, given in ipairs { "torch", 128, { init = 8, growth = 2, backoff = 0.5, interval = 5,
            hysteresis = 2, floor = 1, ceiling = 64 }, function(stats) return stats.scale end } do
            local s = mp.scaler(given)
            opt:zero_grad()
            s:scale((x * x):sum()):backward()
            s:unscale(opt)
            s:step(opt)
            s:update()
            assert(s:applied(opt) and s:get() > 0)
            s:load(s:state())
        end
        local last = mp.scaler "torch"
        opt:zero_grad()
        last:scale((x * x):sum()):backward()
        last:step(opt)
        last:update(32)
        equal(last:get(), 32)
    end)

    test("data_has_its_names", function()
        local loader = mp.data.tensors { x = rows, y = classes, batch = 2 }
        equal(loader:len(), 2)
        for b in loader do assert(#b.x == #b.y) end
        local few = mp.data.synthetic { shape = { 2 }, count = 4, batch = 2, shuffle = true, limit = 2 }
        equal(few:len(), 1)
        for _, many in ipairs { -1, 0, 1 << 31, (1 << 32) + 10, math.mininteger } do
            local why = "classes: from 1 to 2147483647 are possible"
            local x, y = mp.zeros(2, 2), mp.tensor({ 0, 1 }, "int32")
            fails(why, mp.data.synthetic, { shape = { 2 }, classes = many })
            fails(why, mp.data.tensors, { x = x, y = y, classes = many })
            fails(why, mp.data.idx, { images = "x", labels = "x", classes = many })
        end
        fails("a path without zero bytes", mp.load, "mine.safetensors\0/etc/passwd")
        fails("no-such-file", mp.data.idx, { images = "no-such-file", labels = "no-such-file" })
        fails("no-such-folder", mp.data.cifar10, { dir = "no-such-folder" })
        fails("no-such-file", mp.data.text, { path = "no-such-file", context = 8, batch = 2 })
        fails("split", mp.data.fashion_mnist, { split = "neither", batch = 1, shuffle = true, limit = 1 })
    end)
end }
