-- Calls every function and method that scripts can reach, with whatever scripts could hand them. What
-- is called is asked of the program itself, so that nothing new is left out. Each call may fail with
-- an error; none may end the program, take long, or change what it was not handed.
--
-- params: `seed` chooses the arguments, `rounds` how often each is called with such, `log` is a file
-- that holds the call under way: whoever finds the program dead looks there.
local mp = require "mp"
local nn, F = mp.nn, mp.fn

-- ---- numbers that no call disturbs ----------------------------------------------------------------

local state = 1
local function draw(n) -- 1 to n
    state = (state * 6364136223846793005 + 1442695040888963407)
    return ((state >> 33) % n) + 1
end

local function one_of(list) return list[draw(#list)] end

-- ---- what is handed over --------------------------------------------------------------------------

local formats = { "fp32", "bf16", "fp16", "fp64", "int32", "uint8" }
local shapes = { {}, { 0 }, { 1 }, { 3 }, { 2, 4 }, { 4, 4 }, { 0, 4 }, { 4, 0 }, { 2, 3, 4 }, { 1, 4, 4, 2 },
    { 2, 0, 4, 2 }, { 1, 5, 5, 4 }, { 3, 1, 1, 2 }, { 2, 2, 2, 2, 2 }, { 1, 1, 1, 1, 1, 1, 1, 2 } }

local function tensors()
    local list = {}
    local function add(make, ...)
        local done, t = pcall(make, ...)
        if done and type(t) == "userdata" then list[#list + 1] = t end
    end
    for _, shape in ipairs(shapes) do
        for _, format in ipairs(formats) do
            add(function() return (mp.randn(shape) * 3):to(format) end)
        end
    end
    local rows = mp.randn(4, 6)
    add(rows.transpose, rows)
    add(rows.slice, rows, 2, 2, 3)
    add(rows.slice, rows, 1, 2, 1)
    add(function() return mp.ones(1, 3):expand(1 << 10, 3) end)
    add(function() return mp.ones(1):expand(0) end)
    add(function() return mp.ones(1):expand(1 << 40, 0) end)
    add(function() return mp.zeros(1 << 40, 0, 1 << 20) end)
    add(function() return mp.tensor { 1 / 0, -1 / 0, 0 / 0, 1e38, -0.0, 1e-40 } end)
    add(function() return mp.tensor({ 0, 1, 2, -1, 3, 1 << 30 }, "int32") end)
    add(function() return mp.tensor({ { 0, 1 }, { -5, 3 } }, "int32") end)
    add(function() return mp.randn(2, 4):requires_grad(true) end)
    add(function() return mp.randn(1, 4, 4, 2):requires_grad(true) * 2 end)
    add(function() return nn.Parameter(mp.randn(4, 2)) end)
    add(function() return nn.Parameter(mp.randn(3):to "fp16") end)
    return list
end

local integers = { 0, 1, 2, 3, 4, 7, 8, 9, 63, 64, 65, 1000, -1, -2, -3, -8, 1 << 16, 1 << 20, 1 << 30, (1 << 31) - 1,
    1 << 31, (1 << 31) + 1, -(1 << 31), 1 << 32, 1 << 40, 1 << 44, 1 << 62, math.maxinteger, math.mininteger,
    0x6DB6DB6DB6DB6DB7, math.maxinteger - 1, math.maxinteger // 2, 3037000500 }
local floats = { 0.5, -0.5, 1e-3, 1.5, -0.0, 1e9, 1e19, 2.0 ^ 31, 2.0 ^ 62, 2.0 ^ 63, 1e300, 1e-320, 1 / 0, -1 / 0,
    0 / 0 }
local texts = { "", "*", "fp16", "fp64", "int32", "uint8", "bf16", "float16", "auto", "torch", "dynamic", "none",
    "cpu", "ref", "relu", "gelu", "train", "test", "linear1", "a.b", "x\0y", "\27[31m", "%s%n%d", ("long"):rep(300),
    "1", "0x10", "../../x", "/dev/null", "/nonexistent" }

local function other_values(objects)
    local loop = {}
    loop[1], loop.loop = loop, loop
    local list = { true, false, {}, loop, { 1, nil, 3 }, { x = 1 }, { [0] = 1, [-1] = 2 }, { "a", "b" },
        setmetatable({}, { __index = function() error "index" end, __len = function() return 1 << 40 end }),
        setmetatable({}, { __index = function(_, k) return k end, __call = function() return 1 end }),
        setmetatable({ 1, 2 }, { __mode = "kv", __tostring = function() error "text" end }),
        print, error, function() end, function(...) return ... end, function() error("boom", 0) end,
        function() return 1 / 0 end, coroutine.create(print), coroutine.wrap(function() coroutine.yield(1) end),
        mp, F, nn, math }
    for _, object in pairs(objects) do list[#list + 1] = object end
    return list
end

local pool, others, objects = {}, {}, {}
local value -- below

local function table_of(depth)
    local kind, t = draw(6), {}
    for i = 1, draw(6) - 1 do
        if kind <= 2 then
            t[i] = one_of(integers)
        elseif kind == 3 then
            t[i] = one_of(pool)
        elseif kind == 4 then
            t[i] = { draw(3) - 1, draw(3) - 1 }
        else
            t[i] = value(depth + 1)
        end
    end
    return t
end

function value(depth)
    local kind = draw(14)
    if kind <= 6 then return one_of(pool) end
    if kind == 7 then return one_of(floats) end
    if kind <= 9 then return one_of(integers) end
    if kind == 10 then return one_of(texts) end
    if kind <= 12 and depth < 3 then return table_of(depth) end
    if kind == 13 then return one_of(others) end
    return nil
end

-- A table of the options that stand between braces in a declaration.
local function options_of(takes)
    local inside, options = takes:match("{(.*)}"), {}
    for name in inside:gsub("=[^,]*", ""):gmatch("[%a_][%w_]*") do
        local kind = draw(8)
        if kind <= 2 then
            options[name] = one_of(integers)
        elseif kind == 3 then
            options[name] = draw(3)
        elseif kind == 4 then
            options[name] = value(0)
        elseif kind == 5 then
            options[name] = draw(2) == 1
        end
    end
    return options
end

-- ---- what is called -------------------------------------------------------------------------------

-- {title, function, declaration, self or nil}
local function functions(run)
    local list, declared = {}, debug.getregistry()["mp.signatures"]
    local function add(title, f, self) list[#list + 1] = { title, f, declared[title] or "..", self } end
    local rooms = { ["mp."] = mp, ["F."] = F, ["nn."] = nn, ["mp.optim."] = mp.optim, ["mp.data."] = mp.data,
        ["mp.optim.schedule."] = mp.optim.schedule }
    for prefix, room in pairs(rooms) do
        for name, f in pairs(room) do
            local is_class = type(f) == "table" and rawget(f, "_name")
            if type(f) == "function" or is_class then add(prefix .. name, f) end
        end
    end
    for title in pairs(declared) do
        local owner, name = title:match("^(%a+):([%w_]+)$")
        if owner then
            assert(objects[owner], "an object with methods that is not made here: " .. owner)
            add(title, objects[owner][name], owner)
        end
    end
    add("t[]", function(t, key) return t[key] end, "t")
    add("t[]=", function(t, key, v) t[key] = v end, "t")
    add("#t", function(t) return #t end, "t")
    add("-t", function(t) return -t end, "t")
    add("tostring", tostring, "t")
    add("t+", function(t, x) return t + x end, "t")
    add("+t", function(t, x) return x + t end, "t")
    add("t^", function(t, x) return t ^ x end, "t")
    add("t<", function(t, x) return t < x end, "t")
    add("t..", function(t, x) return t .. x end, "t")
    add("t()", function(t, x) return t(x) end, "t")
    add("loader()", function(loader, x, y) return loader(x, y) end, "loader")
    add("run.step", function(_, ...) return run:step(...) end, "run")
    for i, layer in ipairs(objects.layers) do
        add("layer " .. tostring(layer):match "%w+" .. i, function(x) return layer(x) end)
    end
    table.sort(list, function(a, b) return a[1] < b[1] end)
    return list
end

local function described(v)
    local done, text = pcall(function()
        if type(v) == "userdata" and getmetatable(v) == "tensor" then
            return v:dtype() .. "[" .. table.concat(v:shape(), ",") .. "]"
        end
        if type(v) == "string" then return ("%q"):format(v:sub(1, 40)) end
        if type(v) ~= "table" then return tostring(v) end
        local parts = {}
        for key, field in next, v do
            parts[#parts + 1] = tostring(key) .. " = " .. (type(field) == "table" and "{..}" or described(field))
            if #parts == 6 then break end
        end
        return "{" .. table.concat(parts, ", ") .. "}"
    end)
    return done and text or type(v)
end

-- What fails whatever it is given: operators that tensors lack, files that are not there.
local never = { ["t<"] = 1, ["t.."] = 1, ["t()"] = 1, ["t[]="] = 1, ["mp.load"] = 1, ["mp.data.idx"] = 1,
    ["mp.data.cifar10"] = 1, ["mp.data.cifar100"] = 1, ["mp.data.csv"] = 1, ["mp.data.folder"] = 1,
    ["mp.data.fashion_mnist"] = 1, ["loader:decode"] = 1 }

-- ---- the run --------------------------------------------------------------------------------------

local function make_objects(run)
    local net = nn.Sequential { nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 2):named "head" }
    objects = {
        m = net, run = run, t = mp.randn(2, 4), s = mp.scaler "torch", average = mp.optim.EMA(net, 0.5),
        opt = mp.optim.SGD(net:parameters(), { lr = 1e-3 }),
        loader = mp.data.tensors { x = mp.randn(8, 4), y = mp.randint(3, 8), batch = 3 },
    }
    objects.hook = nn.Parameter(mp.randn(2)):hook(print)
    mp.custom { forward = function(ctx, x) objects.ctx = ctx return x end, backward = print }(objects.t)
    objects.layers = { nn.Linear(4, 2), nn.Conv1d(2, 2, 2), nn.Conv2d(2, 3, 2, { padding = 1 }), nn.Conv3d(2, 2, 2),
        nn.ConvTranspose1d(4, 2, 2), nn.ConvTranspose2d(2, 3, 2, { stride = 2 }), nn.ConvTranspose3d(2, 2, 1),
        nn.BatchNorm(4), nn.LayerNorm(4), nn.GroupNorm(2, 4), nn.InstanceNorm(2), nn.Embedding(4, 3),
        nn.Attention(4, 2), nn.Dropout(0.5), nn.MaxPool2d(2), nn.AvgPool2d(2, 1, 1), nn.GlobalAvgPool(),
        nn.Upsample(2), nn.Flatten(), nn.ReLU(), nn.GELU(), nn.LeakyReLU(0.1), net }
end

-- Calls that succeed, by title: what is called is these with something else in places. What is not
-- named here takes a tensor of two dimensions, or nothing.
local function examples()
    local function r(...) return mp.randn(...):requires_grad(draw(2) == 1) end
    local x, y, v, image = r(2, 4), r(2, 4), r(4), r(1, 4, 4, 2)
    local classes, trained = mp.randint(4, 2), { nn.Parameter(r(3)) }
    local loss = (trained[1] * 2):sum()
    objects.opt:zero_grad();
    (objects.m(x):sum() + loss):backward(nil, { keep_graph = true })
    local list = {
        ["F.matmul"] = { x, r(4, 3) }, ["F.linear"] = { x, r(3, 4), r(3), "relu" },
        ["F.conv2d"] = { image, r(4, 2, 2, 1), r(4), { stride = 1, padding = { 1, 0 }, dilation = 1, groups = 2 } },
        ["F.conv_transpose2d"] = { image, r(2, 2, 2, 3), r(3), { stride = 2, padding = 0, output_padding = 1 } },
        ["F.attention"] = { image, image, image, { causal = true, scale = 0.5 } },
        ["F.batch_norm"] = { x, v, v, mp.zeros(4), mp.ones(4), { training = true, momentum = 0.1 } },
        ["F.layer_norm"] = { x, v, v, 1e-5 }, ["F.group_norm"] = { x, 2, v, v, 1e-5 },
        ["F.softmax"] = { x, 1 }, ["F.log_softmax"] = { x, -1 }, ["F.cross_entropy"] = { x, classes },
        ["F.nll"] = { x, classes }, ["F.accuracy"] = { x, classes }, ["F.topk"] = { x, 2 },
        ["F.embedding"] = { mp.randint(4, 3), r(4, 2) }, ["F.gather"] = { x, 2, mp.randint(4, 2, 3) },
        ["F.max_pool2d"] = { image, 2, 1, 1 }, ["F.avg_pool2d"] = { image, { 2, 2 }, 2, 0 },
        ["F.cat"] = { { x, y }, 2 }, ["F.stack"] = { { x, y }, 1 }, ["F.pad"] = { x, { { 1, 0 }, { 0, 2 } }, 3 },
        ["F.where"] = { F.greater(x, 0), x, y }, ["F.dropout"] = { x, 0.5, true }, ["F.pow"] = { x, 2 },
        ["F.clamp"] = { x, -1, 1 }, ["F.affine"] = { x, 2, 1 }, ["F.leaky_relu"] = { x, 0.1 },
        ["F.upsample"] = { image, 2 }, ["F.huber"] = { x, y, 1 }, ["F.sum"] = { x, { 1, 2 }, true },
        ["F.mean"] = { x, 1, false }, ["F.max"] = { x, 2 }, ["F.min"] = { x, -1, true },
        ["mp.tensor"] = { { { 1, 2 }, { 3, 4 } }, "fp16" }, ["mp.zeros"] = { 2, 3 }, ["mp.ones"] = { { 2, 3 } },
        ["mp.full"] = { 3, 2, 2 }, ["mp.randn"] = { 2, 3 }, ["mp.rand"] = { 5 }, ["mp.randint"] = { 5, 2, 3 },
        ["mp.arange"] = { 5 }, ["mp.seed"] = { 3 }, ["mp.grad"] = { loss, { trained[1] }, false }, ["mp.policy"] = {},
        ["mp.autocast"] = { "bf16", F.matmul, x, r(4, 3) }, ["mp.no_grad"] = { F.relu, x },
        ["mp.enable_grad"] = { F.relu, x }, ["mp.class"] = { "Name", mp.scaler },
        ["opt:change"] = { mp.ones(2), mp.ones(2) }, ["nn.SpectralNorm"] = { nn.Linear(4, 2), { iterations = 2 } },
        ["mp.gradcheck"] = { F.relu, { r(3) }, { tolerance = 1, most = 2 } },
        ["mp.custom"] = { { forward = print, backward = print, precision = "fp32" } },
        ["t:hook"] = { F.relu }, ["ctx:save"] = { x, y },
        ["mp.scaler"] = { { init = 8, growth = 2, backoff = 0.5, interval = 2, hysteresis = 1, floor = 1 } },
        ["mp.experiment"] = { { name = "n", about = "a", params = { a = 1 }, run = print, precision = "fp16" } },
        ["mp.optim.EMA"] = { objects.m, 0.5 }, ["mp.optim.clip_norm"] = { trained, 1 },
        ["mp.optim.clip_value"] = { trained, 1 }, ["mp.optim.schedule.linear_warmup"] = { { warmup = 2, total = 9 } },
        ["mp.optim.schedule.cosine"] = { { warmup = 2, total = 9, floor = 0.1 } },
        ["mp.optim.schedule.step"] = { { every = 3, factor = 0.5 } },
        ["mp.data.tensors"] = { { x = x, y = classes, classes = 4, batch = 2, shuffle = true, limit = 2, seed = 1 } },
        ["mp.data.synthetic"] = { { shape = { 2, 3 }, classes = 3, count = 10, first = 1, separation = 2, batch = 4 } },
        ["mp.data.text"] = { { context = 8, batch = 2, split = "test", share = 0.2, limit = 3 } },
        ["nn.class"] = { "Net" }, ["nn.Parameter"] = { x },
        ["nn.Linear"] = { 4, 2, { bias = true, activation = "relu" } },
        ["nn.Conv1d"] = { 2, 4, 2, { stride = 2, padding = 1, groups = 2 } },
        ["nn.Conv2d"] = { 2, 4, { 2, 1 }, { dilation = 2, bias = false, activation = "tanh" } },
        ["nn.Conv3d"] = { 2, 4, 2, { stride = { 1, 2, 1 } } }, ["nn.ConvTranspose1d"] = { 2, 4, 2, { padding = 1 } },
        ["nn.ConvTranspose2d"] = { 2, 4, 2, { stride = 2, output_padding = 1 } },
        ["nn.ConvTranspose3d"] = { 2, 4, 2, { dilation = 2 } }, ["nn.Attention"] = { 4, 2, { causal = true } },
        ["nn.Embedding"] = { 4, 2 }, ["nn.BatchNorm"] = { 4, { momentum = 0.2, eps = 1e-3 } }, ["nn.LayerNorm"] = { 4 },
        ["nn.GroupNorm"] = { 2, 4 }, ["nn.InstanceNorm"] = { 4 }, ["nn.MaxPool2d"] = { 2, 1, 0 },
        ["nn.AvgPool2d"] = { 2, 2 }, ["nn.Upsample"] = { 2 }, ["nn.Dropout"] = { 0.5 }, ["nn.LeakyReLU"] = { 0.1 },
        ["nn.Sequential"] = { { nn.ReLU(), nn.Linear(4, 2) } }, ["t:copy"] = { y }, ["t:to"] = { "fp16" },
        ["t:reshape"] = { 4, -1 }, ["t:transpose"] = { 1, 2 }, ["t:permute"] = { 2, 1 }, ["t:slice"] = { 1, 1, 2 },
        ["t:chunk"] = { 2, 2 }, ["t:item"] = {}, ["t:backward"] = {}, ["t:expand"] = { 3, 2, 4 },
        ["t:requires_grad"] = { true },
        ["m:decay_groups"] = { 0.1 }, ["m:named"] = { "name" }, ["m:find"] = { "*" }, ["m:precision"] = { "bf16" },
        ["opt:lr"] = { 0.1 }, ["opt:schedule"] = { mp.optim.schedule.step { every = 2 } },
        ["s:scale"] = { loss }, ["s:unscale"] = { objects.opt }, ["s:step"] = { objects.opt },
        ["s:applied"] = { objects.opt }, ["s:update"] = { 8 },
        ["s:load"] = { { scale = 8, good = 1, hysteresis_left = 2 } },
        ["average:update"] = { objects.opt }, ["average:with"] = { function(...) return ... end, 3 },
        ["loader:decode"] = { { 1, 2 } }, ["run:model"] = { nn.Linear(2, 2), "G" }, ["run:event"] = { "text" },
        ["run:log"] = { { loss = 1, rate = mp.ones(1) } }, ["run:result"] = { { accuracy = 0.5 } },
        ["run:picture"] = { "seen", mp.rand(2, 4, 4, 1) }, ["run:evaluate"] = { function() return 1 end },
        ["run.step"] = { function(...) return ... end, 1 }, ["loader()"] = { nil, nil }, ["t[]"] = { 1 },
        ["t+"] = { 2 }, ["+t"] = { y }, ["t^"] = { 2 }, ["t[]="] = { 1, 2 },
    }
    local line, volume = r(2, 6, 4), r(1, 4, 4, 4, 2)
    list["F.cumsum"], list["F.interpolate"] = { x, 2 }, { image, 3, { align_corners = true } }
    list["F.scatter_add"] = { x, 2, mp.randint(4, 2, 3), r(2, 3) }
    list["F.conv1d"] = { line, r(3, 1, 2, 4), r(3), { stride = 2, padding = 1 } }
    list["F.conv_transpose1d"] = { line, r(4, 1, 2, 3), r(3), { stride = 2 } }
    list["F.conv3d"] = { volume, r(3, 2, 2, 4), r(3), { stride = 2, padding = 1 } }
    list["F.conv_transpose3d"] = { volume, r(4, 2, 2, 3), r(3), { stride = 2 } }
    for dims, given in pairs { ["1d"] = line, ["2d"] = image, ["3d"] = volume } do
        for _, kind in ipairs { "max", "avg" } do
            list["F." .. kind .. "_pool" .. dims] = { given, 2, 1, 1 }
            list["F.adaptive_" .. kind .. "_pool" .. dims] = { given, 3 }
            list["nn." .. (kind == "max" and "Max" or "Avg") .. "Pool" .. dims] = { 2, 1, 0 }
            list["nn.Adaptive" .. (kind == "max" and "Max" or "Avg") .. "Pool" .. dims] = { 2 }
        end
    end
    for _, kind in ipairs { "RNN", "LSTM", "GRU" } do
        list["nn." .. kind] = { 4, 3, { num_layers = 2, bidirectional = true } }
        list["nn." .. kind .. "Cell"] = { 4, 3, { bias = false } }
    end
    for _, kind in ipairs { "SGD", "Adam", "AdamW", "LAMB", "FusedSGD", "FusedAdam", "FusedLAMB" } do
        list["mp.optim." .. kind] = { trained, { lr = 0.1, weight_decay = 0.1,
            schedule = mp.optim.schedule.cosine { total = 9 } } }
    end
    for _, loss_of_two in ipairs { "mse", "l1", "bce", "bce_with_logits", "hinge", "kl" } do
        list["F." .. loss_of_two] = { x:sigmoid(), y:sigmoid() }
    end
    for _, binary in ipairs { "add", "sub", "mul", "div", "maximum", "minimum", "greater", "less", "equal" } do
        list["F." .. binary] = { x, draw(2) == 1 and y or 2 }
    end
    return list, { r(2, 4), r(1, 6, 2), image, r(1, 3, 4, 4, 2), r(2, 3, 4), r(2, 4, 4), r(1, 4, 4, 4, 2),
        mp.randint(4, 2, 3) }
end

-- Something else in the place of a value that is well.
local function spoilt(v, depth)
    local kind = draw(6)
    if kind == 1 then return value(0) end
    if type(v) == "number" and kind > 2 then return kind > 4 and one_of(floats) or one_of(integers) end
    if type(v) == "string" and kind > 2 then return one_of(texts) end
    if type(v) == "userdata" and getmetatable(v) == "tensor" and kind > 2 then
        local done, t = pcall(function()
            if kind == 3 then return v:to(one_of(formats)) end
            if kind == 4 then return v:transpose() end
            if kind == 5 then return v:slice(draw(#v:shape()), 1, 0) end
            return v:reshape(-1):slice(1, 1, 1):expand(v:shape())
        end)
        return done and t or one_of(pool)
    end
    if type(v) == "table" and debug.getmetatable(v) == nil and depth < 4 and kind > 2 then
        local copy, keys = {}, {}
        for key, field in next, v do
            copy[key] = field
            keys[#keys + 1] = key
        end
        if #keys > 0 and kind > 3 then
            table.sort(keys, function(a, b) return tostring(a) < tostring(b) end)
            local key = one_of(keys)
            copy[key] = spoilt(copy[key], depth + 1)
        else
            copy[draw(2) == 1 and #copy + 1 or one_of(texts)] = value(0)
        end
        return copy
    end
    return value(0)
end

-- A scaler, and in a list the optimizer whose gradients it has scaled, or stepped on.
local function scaled(stepped)
    local weight, scaler = nn.Parameter(mp.randn(3)), mp.scaler(8)
    local opt = mp.optim.SGD({ weight }, { lr = 0.1 })
    scaler:scale((weight * 2):sum()):backward()
    if stepped then
        scaler:step(opt)
        scaler:update()
    end
    return scaler, { opt }
end

-- Arguments for a call: those of its example, with up to two spoilt, some left out or some more.
local function arguments(entry, example, inputs, whole)
    local given, first = { n = 0 }, 1
    if entry[4] then
        local own = entry[4] == "t" and mp.randn(2, 4) or objects[entry[4]]
        if entry[1] == "t:item" then own = mp.ones(1) end
        if entry[1] == "t:hook" then own = mp.randn(2):requires_grad(true) end
        if entry[1] == "t:backward" then own = (mp.ones(2):requires_grad(true) * 2):sum() end
        if entry[1]:find "^s:" and example and example[1] == objects.opt then
            own, example = scaled(entry[1] == "s:applied")
        end
        given = { n = 1, own }
        first = 2
    end
    local from = example or {}
    if not example and entry[1]:find "^layer" then from = { one_of(inputs) } end
    if not example and entry[1]:find "^F%." then from = { mp.randn(2, 4) } end
    for i = 1, #from do
        given.n = given.n + 1
        given[given.n] = from[i]
    end
    if whole then return given end
    if entry[3]:find("{", 1, true) and draw(4) == 1 then given[math.max(given.n, 1)] = options_of(entry[3]) end
    for _ = 1, draw(3) - 1 do
        local i = draw(given.n + 1)
        if i >= first or draw(10) == 1 then
            given.n = math.max(given.n, i)
            given[i] = spoilt(given[i], 0)
        end
    end
    if draw(12) == 1 then given.n = draw(given.n + 1) - 1 end
    return given
end

return mp.experiment { name = "calls", params = { seed = 1, rounds = 40, log = "", slow = 60.0, only = "" },
    precision = "fp32", run = function(run)
    local p = run.params
    state = p.seed
    local log = p.log ~= "" and io.open(p.log, "w")
    make_objects(run)
    pool, others = tensors(), other_values(objects)
    local probe = mp.arange(64):to "fp32"
    local own = {} -- errors that name a line of our own Lua, which no user knows
    local called, worked, slowest, slowest_call = 0, {}, 0, ""
    local function call(entry, given)
        if log then
            local shown = {}
            for k = 1, given.n do shown[k] = described(given[k]) end
            log:seek("set", 0)
            log:write(entry[1], "(", table.concat(shown, ", "), ")", (" "):rep(400), "\n")
            log:flush()
        end
        local began = os.clock()
        local done, result = pcall(entry[2], table.unpack(given, 1, given.n))
        local took = os.clock() - began
        called = called + 1
        if done then
            worked[entry[1]] = (worked[entry[1]] or 0) + 1
            if type(result) == "userdata" and getmetatable(result) == "tensor" and result:requires_grad() then
                pcall(function() result:sum():backward() end) -- and the way back
            end
        elseif type(result) == "string" and result:find "^mp/%w+%.lua:%d+:" then
            own[entry[1]] = result
        end
        if took > slowest then slowest, slowest_call = took, entry[1] end
        return done, result
    end
    for round = 0, p.rounds do
        if round % 8 == 0 then
            make_objects(run)
            pool, others = tensors(), other_values(objects)
            collectgarbage()
        end
        local known, inputs = examples()
        for _, entry in ipairs(functions(run)) do
            if p.only == "" or entry[1] == p.only then
                -- plainly: with a tensor of each kind as every argument
                for _, t in ipairs(round == 0 and pool or {}) do call(entry, { n = draw(3), t, t, t }) end
                for _ = 1, 4 do call(entry, arguments(entry, known[entry[1]], inputs)) end
                local example = arguments(entry, known[entry[1]], inputs, true)
                call(entry, example)
            end
        end
        assert(probe:sum():item() == 2016, "what nobody handed over has changed")
    end
    for title, message in pairs(own) do print(("%s: an error of our own Lua: %s"):format(title, message)) end
    assert(next(own) == nil, "errors that name our own Lua")
    -- the engine still computes
    local x = mp.ones(4, 4)
    assert(F.matmul(x, x):sum():item() == 64)
    local well, lacking = 0, nil
    for _, entry in ipairs(functions(run)) do
        local count = worked[entry[1]] or 0
        well = well + count
        if count == 0 and not never[entry[1]] then
            print(("%s: no call of it worked: give it an example that does"):format(entry[1]))
            lacking = entry[1]
        end
    end
    print(("called %d, of which %d worked; the slowest took %.1f s: %s"):format(called, well, slowest,
        slowest_call))
    assert(called > 2000 or p.only ~= "", "too few calls")
    assert(not lacking, "nothing to call with")
    assert(slowest < p.slow, slowest_call .. " took too long")
end }
