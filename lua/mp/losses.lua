-- Losses: those of ops.def, which are means, with the options that scripts may add; and those that are
-- made of other functions.
local core = require "mp.core"
local layer = require "mp.layer"
local strict = require "mp.strict"
local fn, engine = core.fn, core.engine

local function wide_tensor(title, argument, name, x)
    if getmetatable(x) ~= "tensor" then
        engine.fail(("%s: argument %d (%s): a tensor expected, got %s"):format(title, argument, name,
            type(x)))
    end
    local format = x:dtype()
    return (format == "fp32" or format == "fp64") and x or x:to "fp32"
end

local function define(name, takes, f)
    fn[name] = strict.declare("F.", name, takes, f)
    engine.add_method(name, fn[name])
end

-- A loss is a sum over many: it is computed in fp32 wherever it is called.
local function define_loss(name, takes, f)
    define(name, takes, function(x, target, ...)
        return core.autocast(false, f, wide_tensor(name, 1, "input", x),
            wide_tensor(name, 2, "target", target), ...)
    end)
end

-- ---- reductions -----------------------------------------------------------------------------------

local reductions = { "mean", "none", "sum" }

local function reduction_of(title, options)
    local reduction = options and rawget(options, "reduction")
    if reduction == nil or reduction == "mean" then return "mean" end
    if reduction ~= "none" and reduction ~= "sum" then
        engine.fail(("%s: reduction: mean, sum or none expected, got %s%s"):format(title,
            strict.shown(reduction), type(reduction) == "string" and strict.nearest(reduction, reductions) or ""))
    end
    return reduction
end

local function elements(x)
    local count = 1
    for _, size in ipairs(x:shape()) do count = count * size end
    return count
end

-- Both in fp32.
local function of_one_shape(title, x, target)
    x, target = wide_tensor(title, 1, "x", x), wide_tensor(title, 2, "target", target)
    local mine, other = table.concat(x:shape(), ","), table.concat(target:shape(), ",")
    if mine ~= other then
        engine.fail(("%s: target has shape [%s], x has [%s]: they must be equal"):format(title, other, mine))
    end
    return x, target
end

local function reduced(title, terms, options)
    local reduction = reduction_of(title, options)
    return reduction == "none" and terms or reduction == "sum" and terms:sum() or terms:mean()
end

-- ---- means of ops.def -----------------------------------------------------------------------------

-- Has a loss of ops.def take a reduction; `terms` is what it is the mean of.
local function define_mean(name, terms)
    local mean = fn[name]
    define(name, "x, target [, { reduction }]", function(x, target, options)
        if options == nil then return mean(x, target) end
        local reduction = reduction_of(name, options)
        if reduction == "mean" then return mean(x, target) end
        if reduction == "sum" then return mean(x, target) * elements(x) end
        if name == "bce" then core.no_grad(mean, x, target) end -- which is banned in low formats
        return core.autocast(false, terms, of_one_shape(name, x, target))
    end)
end

define_mean("mse", function(x, target) return (x - target):square() end)
define_mean("l1", function(x, target) return (x - target):abs() end)
define_mean("bce", function(x, target)
    local yes, no = fn.maximum(x:log(), -100), fn.maximum((1 - x):log(), -100)
    return -(target * yes + (1 - target) * no)
end)

-- With large logits neither term is the difference of large numbers.
local function logit_terms(x, target, positive)
    return (1 - target) * fn.softplus(x) + target * fn.softplus(-x) * positive
end

local bce_mean = fn.bce_with_logits
define("bce_with_logits", "x, target [, { reduction, pos_weight }]", function(x, target, options)
    if options == nil then return bce_mean(x, target) end
    local positive = rawget(options, "pos_weight")
    if positive ~= nil and type(positive) ~= "number" and getmetatable(positive) ~= "tensor" then
        engine.fail(("bce_with_logits: pos_weight: a number or a tensor expected, got %s"):format(
            strict.shown(positive)))
    end
    if reduction_of("bce_with_logits", options) == "mean" and not positive then return bce_mean(x, target) end
    x, target = of_one_shape("bce_with_logits", x, target)
    return core.autocast(false, function()
        return reduced("bce_with_logits", logit_terms(x, target, positive or 1), options)
    end)
end)

-- ---- made of others -------------------------------------------------------------------------------

-- Half the square of a difference up to delta, then a straight line.
define_loss("huber", "x, target [, delta [, { reduction }]]", function(x, target, delta, options)
    delta = delta or 1
    if type(delta) ~= "number" or delta ~= delta or delta <= 0 then
        engine.fail(("huber: delta: a positive number expected, got %s"):format(tostring(delta)))
    end
    local far = (x - target):abs()
    local near = far:clamp(0, delta)
    return reduced("huber", near * (far - near * 0.5), options)
end)

-- The target is 1 or -1.
define_loss("hinge", "x, target [, { reduction }]", function(x, target, options)
    return reduced("hinge", fn.relu(1 - x * target), options)
end)

-- The divergence of the probabilities `target` from those, a mean over rows. What has no probability
-- adds nothing.
define_loss("kl", "log_probabilities, target [, { reduction }]", function(x, target, options)
    local least = 1e-37 -- a normal number of fp32, whose logarithm is finite
    local terms = target * (fn.maximum(target, least):log() - x)
    terms = fn.where(fn.equal(target, 0), 0, terms)
    if reduction_of("kl", options) ~= "mean" then return reduced("kl", terms, options) end
    local shape = x:shape()
    return terms:sum() / (elements(x) / (shape[#shape] or 1))
end)

-- ---- classes --------------------------------------------------------------------------------------

-- One number a class, as a tensor or a plain table.
local function class_weights(title, weight, count)
    local is_tensor = getmetatable(weight) == "tensor"
    local is_list = type(weight) == "table" and getmetatable(weight) == nil
    local given = is_list and #weight or is_tensor and table.concat(weight:shape(), ",")
    for i = 1, is_list and #weight or 0 do
        if type(weight[i]) ~= "number" then given = ("%s as number %d"):format(strict.shown(weight[i]), i) end
    end
    if given ~= (is_list and count or tostring(count)) then
        engine.fail(("%s: weight: a tensor or table of %d numbers, one a class, expected, got %s"):format(title, count,
            is_tensor and ("shape [%s]"):format(given) or is_list and (type(given) == "number" and given .. " numbers"
            or given) or strict.shown(weight)))
    end
    return is_list and core.tensor(weight) or weight
end

local function class_options(title, options, count)
    local weight, smoothing = rawget(options, "weight"), rawget(options, "label_smoothing") or 0
    if weight ~= nil then
        weight = class_weights(title, weight, count)
        weight = wide_tensor(title, 3, "weight", weight)
    end
    if type(smoothing) ~= "number" or not (smoothing >= 0 and smoothing <= 1) then
        engine.fail(("%s: label_smoothing: a number from 0 to 1 expected, got %s"):format(title,
            strict.shown(smoothing)))
    end
    return weight, smoothing, reduction_of(title, options)
end

local function scores_of(title) return title == "nll" and "log_probabilities" or "logits" end

-- What each row has of its class. A class that is none is told as the loss without options tells it.
local function chosen(title, x, index, count)
    local done, rows = pcall(fn.gather, x, -1, index)
    if done then return rows end
    local text, found = tostring(rows):gsub("gather: index (%-?%d+) at position (%d+): dimension %d+ has %d+ elements",
        ("%s: class %%1 at row %%2: the %s have %d classes"):format(title,
            scores_of(title), count))
    error(found > 0 and text or rows, 0)
end

-- What each row says of its class, negated, weighted by its class; class -1 is left out. Smoothing
-- asks for a share of all classes beside the right one. The mean is by weight, as PyTorch's is.
local function class_loss(title, x, classes, options)
    local shape = classes:shape()
    local count = x:shape()[#x:shape()]
    if not count then
        engine.fail(("%s: %s: a last dimension of classes is wanted, this is a single number"):format(title,
            scores_of(title)))
    end
    local wanted = table.concat(x:shape(), ", ", 1, #x:shape() - 1)
    if table.concat(shape, ", ") ~= wanted then
        engine.fail(("%s: %s of [%s] want classes of [%s], one a row; got [%s]"):format(title, scores_of(title),
            table.concat(x:shape(), ", "), wanted, table.concat(shape, ", ")))
    end
    local weight, smoothing, reduction = class_options(title, options, count)
    local index = classes:to "fp32"
    local counts = fn.greater(index, -1)
    local width = table.move(shape, 1, #shape, 1, {})
    width[#width + 1] = 1
    local known = index:clamp(0):to "int32"
    local rows = -chosen(title, x, known:reshape(width), count):reshape(shape)
    local share = counts:to "fp32"
    if weight then
        local each = fn.gather(weight, 1, known:reshape(-1)):reshape(shape)
        rows, share = rows * each, share * each
    end
    if smoothing > 0 then
        rows = rows * (1 - smoothing) - (weight and x * weight or x):sum(-1) * (smoothing / count)
    end
    rows = fn.where(counts, rows, 0)
    if reduction == "none" then return rows end
    return reduction == "sum" and rows:sum() or rows:sum() / share:sum()
end

define_loss("nll", "log_probabilities, classes [, { weight, reduction }]", function(x, classes, options)
    return class_loss("nll", x, classes, options or {})
end)

local cross_entropy = fn.cross_entropy
define("cross_entropy", "logits, classes [, { weight, label_smoothing, reduction }]", function(x, classes, options)
    if options == nil then return cross_entropy(x, classes) end
    local kind = layer.tensor("cross_entropy", "classes", classes):dtype()
    if kind ~= "int32" and kind ~= "uint8" then
        engine.fail(("cross_entropy: classes are %s, whole numbers are wanted"):format(kind))
    end
    x = wide_tensor("cross_entropy", 1, "logits", x)
    return core.autocast(false, function()
        return class_loss("cross_entropy", x:log_softmax(), classes, options)
    end)
end)
