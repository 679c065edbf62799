-- mp.fn: the operations as functions. Those of ops.def come from C; these are made of them.
local core = require "mp.core"
local layer = require "mp.layer"
local strict = require "mp.strict"
local fn, engine = core.fn, core.engine

-- Defines one that is a method of tensors too.
local function define(name, takes, f)
    fn[name] = strict.declare("F.", name, takes, f)
    engine.add_method(name, fn[name])
end

-- Joins tensors of one shape along a new dimension.
fn.stack = strict.declare("F.", "stack", "list [, dim]", function(list, dim)
    local widened, at = {}, dim or 1
    for i = 1, engine.length("stack", list) do
        local t = layer.tensor("stack", ("list[%d]"):format(i), rawget(list, i))
        local shape = t:shape()
        local most = #shape + 1
        local place = math.tointeger(at)
        if place and place < 0 then place = most + 1 + place end
        if not place or place < 1 or place > most then
            engine.fail(("stack: dimension %s: from 1 to %d is possible, or from -1 to -%d"):format(
                strict.shown(at), most, most))
        end
        table.insert(shape, place, 1)
        widened[i] = t:reshape(shape)
    end
    return fn.cat(widened, at)
end)

-- Everything but the first dimension in one.
define("flatten", "x", function(x) return layer.tensor("flatten", "x", x):reshape(#x, -1) end)

-- x, or below 0 weight times x: one weight a channel, the last dimension, or one for all.
define("prelu", "x, weight", function(x, weight)
    layer.tensor("prelu", "weight", weight)
    weight = weight:to(layer.tensor("prelu", "x", x):dtype())
    return fn.relu(x) + weight * fn.clamp(x, -math.huge, 0)
end)

-- What `source` has goes to the element of its line that `index` names, and adds up there.
define("scatter_add", "x, dim, index, source", engine.scatter_add)

-- ---- statistics -----------------------------------------------------------------------------------

local function in_fp32(title, name, x)
    local format = layer.tensor(title, name, x):dtype()
    return format == "fp64" and x or x:to "fp32"
end

-- How many elements become one.
local function reduced_count(x, dim)
    local shape, count = x:shape(), 1
    if dim == nil then
        for _, size in ipairs(shape) do count = count * size end
    else
        for _, d in ipairs(type(dim) == "table" and dim or { dim }) do
            count = count * (shape[d < 0 and #shape + 1 + d or d] or 1)
        end
    end
    return count
end

local function variance(title, x, dim, options)
    options = layer.options_of(title, options, { correction = "number", keep = "boolean" })
    x = in_fp32(title, "x", x)
    local correction = options.correction or 1
    return core.autocast(false, function()
        local far = x - fn.mean(x, dim, true)
        return fn.sum(fn.square(far), dim, options.keep)
            / math.max(0, reduced_count(x, dim) - correction)
    end)
end

define("var", "x [, dim or list [, { correction = 1, keep = false }]]", function(x, dim, options)
    return variance("var", x, dim, options)
end)

define("std", "x [, dim or list [, { correction = 1, keep = false }]]", function(x, dim, options)
    return fn.sqrt(variance("std", x, dim, options))
end)

define("cosine_similarity", "x, y [, dim [, eps]]", function(x, y, dim, eps)
    dim, eps = dim or -1, layer.number("cosine_similarity", "eps", eps, 1e-8)
    x, y = in_fp32("cosine_similarity", "x", x), in_fp32("cosine_similarity", "y", y)
    return core.autocast(false, function()
        local function length(t)
            return fn.sqrt(fn.maximum(fn.sum(fn.square(t), dim), eps * eps))
        end
        return fn.sum(x * y, dim) / (length(x) * length(y))
    end)
end)

-- ---- losses ---------------------------------------------------------------------------------------

local function wide_tensor(title, argument, name, x)
    if getmetatable(x) ~= "tensor" then
        engine.fail(("%s: argument %d (%s): a tensor expected, got %s"):format(title, argument, name,
            type(x)))
    end
    local format = x:dtype()
    return (format == "fp32" or format == "fp64") and x or x:to "fp32"
end

-- A loss is a sum over many: it is computed in fp32 wherever it is called.
local function define_loss(name, takes, f)
    define(name, takes, function(x, target, ...)
        return core.autocast(false, f, wide_tensor(name, 1, "input", x),
            wide_tensor(name, 2, "target", target), ...)
    end)
end

-- Half the square of a difference up to delta, then a straight line.
define_loss("huber", "x, target [, delta]", function(x, target, delta)
    delta = delta or 1
    if type(delta) ~= "number" or delta ~= delta or delta <= 0 then
        engine.fail(("huber: delta: a positive number expected, got %s"):format(tostring(delta)))
    end
    local far = (x - target):abs()
    local near = far:clamp(0, delta)
    return (near * (far - near * 0.5)):mean()
end)

-- The target is 1 or -1.
define_loss("hinge", "x, target", function(x, target) return fn.relu(1 - x * target):mean() end)

-- The divergence of the probabilities `target` from those, a mean over rows. What has no probability
-- adds nothing.
define_loss("kl", "log_probabilities, target", function(x, target)
    local least = 1e-37 -- a normal number of fp32, whose logarithm is finite
    local shape = x:shape()
    local rows = 1
    for i = 1, #shape - 1 do rows = rows * shape[i] end
    local terms = target * (fn.maximum(target, least):log() - x)
    return fn.where(fn.equal(target, 0), 0, terms):sum() / rows
end)

-- The mean of what each row says of its class, negated; class -1 is left out.
define_loss("nll", "log_probabilities, classes", function(x, classes)
    local shape = classes:shape()
    local index = classes:to "fp32"
    local counts = fn.greater(index, -1)
    local width = table.move(shape, 1, #shape, 1, {})
    width[#width + 1] = 1
    local chosen = fn.gather(x, -1, index:clamp(0):to "int32":reshape(width)):reshape(shape)
    return -fn.where(counts, chosen, 0):sum() / counts:to "fp32":sum()
end)

return fn
