-- mp.fn: the operations as functions. Those of ops.def come from C; these are made of them, as are
-- losses (mp/losses.lua).
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
    local widened, at, first = {}, dim or 1, nil
    for i = 1, engine.length("stack", list) do
        local t = layer.tensor("stack", ("list[%d]"):format(i), rawget(list, i))
        local shape = t:shape()
        local shown = table.concat(shape, ",")
        first = first or shown
        if shown ~= first then
            engine.fail(("stack: list[%d] has shape [%s], list[1] has [%s]: all must have one shape"):format(
                i, shown, first))
        end
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
    local shape = layer.tensor("prelu", "x", x):shape()
    local own = layer.tensor("prelu", "weight", weight):shape()
    if #own > 1 or (own[1] or 1) ~= 1 and own[1] ~= shape[#shape] then
        engine.fail(("prelu: weight has shape [%s]: one number is wanted, or one for each of the %d "
            .. "channels"):format(table.concat(own, ","), shape[#shape] or 1))
    end
    weight = weight:to(x:dtype())
    return fn.relu(x) + weight * fn.clamp(x, -math.huge, 0)
end)

-- What `source` has goes to the element of its line that `index` names, and adds up there.
define("scatter_add", "x, dim, index, source", engine.scatter_add)

-- ---- statistics -----------------------------------------------------------------------------------

local function in_fp32(title, name, x)
    local format = layer.tensor(title, name, x):dtype()
    return format == "fp64" and x or x:to "fp32"
end

-- How many elements become one, where there are any.
local function reduced_count(title, x, dim)
    local shape, count = x:shape(), 1
    local dims = type(dim) == "table" and dim or { dim }
    for i = 1, dim == nil and #shape or #dims do
        local d = dim == nil and i or math.tointeger(dims[i])
        local size = d and shape[d < 0 and #shape + 1 + d or d]
        if not size then
            engine.fail(("%s: dimension %s: the tensor has %d (counted from 1, or from -1 backwards)")
                :format(title, strict.shown(dims[i]), #shape))
        end
        count = count * size
    end
    if count == 0 then
        engine.fail(("%s: input has shape [%s]: nothing has no spread"):format(title,
            table.concat(shape, ",")))
    end
    return count
end

local function variance(title, x, dim, options)
    options = layer.options_of(title, options, { correction = "number", keep = "boolean" })
    x = in_fp32(title, "x", x)
    local correction = options.correction or 1
    local count = reduced_count(title, x, dim)
    return core.autocast(false, function()
        local far = x - fn.mean(x, dim, true)
        return fn.sum(fn.square(far), dim, options.keep)
            / math.max(0, count - correction)
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

require "mp.losses"

return fn
