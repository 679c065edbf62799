-- mp.nn: the layers. Parameters are made as PyTorch makes them by default; images are N,H,W,C.
local core = require "mp.core"
local fn = require "mp.functions"
local layer = require "mp.layer"
local module = require "mp.module"
local strict = require "mp.strict"
local engine = core.engine
local positive, options_of, uniform, filled =
    layer.positive, layer.options_of, layer.uniform, layer.filled

local nn = { class = module.class }

local function declare(name, takes)
    nn[name] = module.declared_class(name, takes)
    return nn[name]
end
require "mp.pooling"
local attention = require "mp.attention"
for _, file in ipairs { require "mp.conv", require "mp.recurrent", require "mp.spectral" } do
    for name, class in pairs(file) do nn[name] = class end
end

-- A tensor that a module of one's own trains.
nn.Parameter = strict.declare("nn.", "Parameter", "tensor", function(tensor)
    layer.tensor("Parameter", "tensor", tensor)
    return engine.parameter(tensor:detach():clone(), "parameter", 0, false)
end)

-- ---- products -------------------------------------------------------------------------------------

local Linear = declare("Linear", "in, out [, { bias = true, activation }]")

function Linear:init(inputs, outputs, options)
    positive("Linear", "in", inputs)
    positive("Linear", "out", outputs)
    options = options_of("Linear", options, { bias = "boolean", activation = "string" })
    local bound = 1 / math.sqrt(inputs)
    self.weight = uniform(bound, "weight", outputs, inputs)
    if options.bias ~= false then self.bias = uniform(bound, "bias", outputs) end
    self._activation = options.activation
end

function Linear:forward(x)
    return fn.linear(x, self.weight, self.bias, self._activation)
end

local Embedding = declare("Embedding", "n, d")
Embedding._keep_full = true

function Embedding:init(count, width)
    positive("Embedding", "n", count)
    positive("Embedding", "d", width)
    self.weight = engine.parameter(core.randn(count, width), "weight", 0, false)
end

function Embedding:forward(index)
    return fn.embedding(index, self.weight)
end

-- Self-attention with several heads over [B, T, d].
local Attention =
    declare("Attention", "d, heads [, { causal = false, bias = true, dropout = 0 }]")
rawset(Attention, "_takes_more", true)

function Attention:init(width, heads, options)
    positive("Attention", "d", width)
    positive("Attention", "heads", heads)
    options = options_of("Attention", options,
        { causal = "boolean", bias = "boolean", dropout = "number" })
    if width % heads ~= 0 then
        engine.fail(("Attention: width %d is no multiple of %d heads"):format(width, heads))
    end
    local bias = { bias = options.bias ~= false }
    self.qkv = Linear(width, 3 * width, bias)
    self.out = Linear(width, width, bias)
    self._heads, self._causal, self._dropout = heads, options.causal or false, options.dropout or 0
    if not (self._dropout >= 0 and self._dropout < 1) then
        engine.fail(("Attention: dropout is %g: from 0 to below 1 is possible"):format(self._dropout))
    end
end

function Attention:forward(x, mask)
    local shape = x:shape()
    if #shape ~= 3 then
        engine.fail(("Attention: input has shape [%s], [B,T,%d] is wanted"):format(
            table.concat(shape, ","), self.out.weight:shape()[1]))
    end
    local batch, length, width = shape[1], shape[2], shape[3]
    local heads = self._heads
    local q, k, v = self.qkv(x):reshape(batch, length, 3 * heads, width // heads):chunk(3, 3)
    local y = attention(q, k, v, { causal = self._causal, mask = mask,
        dropout = self.training and self._dropout or 0 })
    return self.out(y:reshape(batch, length, width))
end

-- ---- normalisation --------------------------------------------------------------------------------

local BatchNorm = declare("BatchNorm", "n [, { momentum = 0.1, eps = 1e-5 }]")
BatchNorm._keep_full = true

function BatchNorm:init(n, options)
    positive("BatchNorm", "n", n)
    options = options_of("BatchNorm", options, { momentum = "number", eps = "number" })
    self.weight = filled(1, "weight", n)
    self.bias = filled(0, "bias", n)
    self.running_mean, self.running_variance = core.zeros(n), core.ones(n)
    self._train = { training = true, momentum = options.momentum or 0.1, eps = options.eps or 1e-5 }
    self._eval = { training = false, eps = options.eps or 1e-5 }
end

function BatchNorm:forward(x)
    return fn.batch_norm(x, self.weight, self.bias, self.running_mean, self.running_variance,
        self.training and self._train or self._eval)
end

local LayerNorm = declare("LayerNorm", "n [, { eps = 1e-5 }]")
LayerNorm._keep_full = true

function LayerNorm:init(n, options)
    positive("LayerNorm", "n", n)
    options = options_of("LayerNorm", options, { eps = "number" })
    self.weight = filled(1, "weight", n)
    self.bias = filled(0, "bias", n)
    self._eps = options.eps or 1e-5
end

function LayerNorm:forward(x)
    return fn.layer_norm(x, self.weight, self.bias, self._eps)
end

local GroupNorm = declare("GroupNorm", "groups, n [, { eps = 1e-5 }]")
GroupNorm._keep_full = true

function GroupNorm:init(groups, n, options)
    positive("GroupNorm", "groups", groups)
    positive("GroupNorm", "n", n)
    options = options_of("GroupNorm", options, { eps = "number" })
    self.weight = filled(1, "weight", n)
    self.bias = filled(0, "bias", n)
    self._groups, self._eps = groups, options.eps or 1e-5
end

function GroupNorm:forward(x)
    return fn.group_norm(x, self._groups, self.weight, self.bias, self._eps)
end

-- Every channel a group of its own.
nn.InstanceNorm = strict.declare("nn.", "InstanceNorm", "n [, { eps = 1e-5 }]", function(n, options)
    return GroupNorm(n, n, options)
end)

-- ---- what holds others ----------------------------------------------------------------------------

local Sequential = declare("Sequential", "{ .. }")
rawset(Sequential, "_holds_others", true)

function Sequential:init(list)
    if type(list) ~= "table" then
        engine.fail("Sequential: a list of modules expected, as in nn.Sequential { .. }")
    end
    local count = 1 -- of an empty list the first is missing too
    for key in next, list do count = math.max(count, key) end -- `#` may end before one that is nil
    for i = 1, count do
        local m = list[i]
        if not module.is_module(m) then
            engine.fail(("Sequential: element %d: a module expected, got %s%s"):format(i, module.shown(m),
                type(m) == "function" and "; functions that are layers, too, are nn.ReLU(), nn.GELU() and their like"
                or ""))
        end
    end
    self._list = list
end

-- What one layer of ours makes and the next one reads is seen by nobody else: it need not wait for
-- the collector. (The tape holds what it needs.) What a layer hands through is whose it was.
function Sequential:forward(x)
    local ours = false -- whether x was made by a layer of ours
    for _, m in ipairs(self._list) do
        local y = m(x)
        local plain = m.forward == m._class._plain
        local made = not rawequal(y, x)
        if made and ours and plain then engine.drop(x) end
        x, ours = y, plain and (made or ours)
    end
    return x
end

-- ---- layers without parameters --------------------------------------------------------------------

-- A class whose forward is one function of the input.
local function simple(name, takes, kind, init, forward)
    local class = declare(name, takes)
    class._kind = kind
    class.init, class.forward = init, forward
end

local function nothing() end

simple("ReLU", "", "relu", nothing, function(_, x) return fn.relu(x) end)
simple("GELU", "", "gelu", nothing, function(_, x) return fn.gelu(x) end)
simple("SiLU", "", "silu", nothing, function(_, x) return fn.silu(x) end)
simple("Tanh", "", "tanh", nothing, function(_, x) return fn.tanh(x) end)
simple("Sigmoid", "", "sigmoid", nothing, function(_, x) return fn.sigmoid(x) end)
simple("LeakyReLU", "[slope]", "leaky_relu", function(self, slope)
    self._slope = layer.number("LeakyReLU", "slope", slope, 0.01)
end, function(self, x) return fn.leaky_relu(x, self._slope) end)
simple("Flatten", "", "flatten", nothing, function(_, x) return fn.flatten(x) end)
simple("Upsample", "factor [, { mode = \"nearest\", align_corners = false }]", "upsample",
    function(self, factor, options)
        if type(factor) ~= "table" then layer.positive("Upsample", "factor", factor) end
        self._factor = factor
        self._options = options_of("Upsample", options,
            { mode = "string", align_corners = "boolean" })
    end, function(self, x) return fn.upsample(x, self._factor, self._options) end)
simple("GlobalAvgPool", "", "pool", nothing, function(_, x) return fn.mean(x, { 2, 3 }) end)
simple("Dropout", "[p]", "dropout", function(self, p)
    self._p = layer.number("Dropout", "p", p, 0.5)
    if self._p < 0 or self._p >= 1 then
        engine.fail(("Dropout: p is %g: from 0 to below 1 is possible"):format(self._p))
    end
end, function(self, x) return fn.dropout(x, self._p, self.training) end)
for name, kind in pairs { Max = "max", Avg = "avg" } do
    for dims = 1, 3 do
        local title = ("%sPool%dd"):format(name, dims)
        local operation = fn[("%s_pool%dd"):format(kind, dims)]
        simple(title, "size [, stride [, padding]]", "pool", function(self, size, stride, padding)
            self._size = layer.sizes(title, "size", size, dims, 1)
            self._stride = layer.sizes(title, "stride", stride, dims, 1, size)
            self._padding = layer.sizes(title, "padding", padding, dims, 0, 0)
        end, function(self, x) return operation(x, self._size, self._stride, self._padding) end)
        local adaptive = fn[("adaptive_%s_pool%dd"):format(kind, dims)]
        simple("Adaptive" .. title, "size", "pool", function(self, size)
            self._size = layer.sizes("Adaptive" .. title, "size", size, dims, 1)
        end, function(self, x) return adaptive(x, self._size) end)
    end
end

local PReLU = declare("PReLU", "[n [, init]]")
rawset(PReLU, "_kind", "prelu")

function PReLU:init(n, init)
    self.weight = engine.parameter(core.full(layer.number("PReLU", "init", init, 0.25),
        positive("PReLU", "n", n or 1)), "weight", 0, true)
end

function PReLU:forward(x) return fn.prelu(x, self.weight) end

-- Most take one tensor. They keep nothing of what goes through them, but for what those hold that hold
-- others.
-- That is known as long as their forward is the one here.
for _, class in pairs(nn) do
    if type(class) == "table" then
        if not rawget(class, "_takes_more") then rawset(class, "_single", class.forward) end
        if not rawget(class, "_holds_others") then rawset(class, "_plain", class.forward) end
    end
end

return nn
