-- What the files of layers share: checks of what a layer is made with, and fresh parameters.
local core = require "mp.core"
local strict = require "mp.strict"
local engine = core.engine

local layer = {}

function layer.positive(title, name, value)
    if math.type(value) ~= "integer" or value < 1 then
        engine.fail(("%s: %s: a positive whole number expected, got %s"):format(title, name,
            strict.shown(value)))
    end
    return value
end

function layer.options_of(title, options, known)
    if options == nil then return {} end
    if type(options) ~= "table" then
        engine.fail(("%s: options: a table expected, got %s"):format(title, strict.shown(options)))
    end
    return strict.check(options, title, known)
end

-- The value, where it is a tensor.
function layer.tensor(title, name, value)
    if getmetatable(value) ~= "tensor" then
        engine.fail(("%s: %s: a tensor expected, got %s"):format(title, name, strict.shown(value)))
    end
    return value
end

function layer.number(title, name, value, missing)
    if value == nil then return missing end
    if type(value) ~= "number" or value ~= value then
        engine.fail(("%s: %s: a number expected, got %s"):format(title, name, strict.shown(value)))
    end
    return value
end

-- A table of so many elements and nothing else.
local function is_list(value, count)
    if type(value) ~= "table" or #value ~= count then return false end
    for key in next, value do
        if math.type(key) ~= "integer" then return false end
    end
    return true
end

-- One number for each of `count` directions, from one for all or a list; `missing` where there is
-- none.
function layer.sizes(title, name, value, count, least, missing)
    if value == nil then value = missing end
    local listed, list = is_list(value, count), {}
    for i = 1, count do
        local size = value
        if listed then size = value[i] end
        if math.type(size) ~= "integer" or size < least then
            engine.fail(("%s: %s: a whole number of at least %d expected%s, got %s"):format(title,
                name, least, count > 1 and (", or %d of them"):format(count) or "",
                strict.shown(value)))
        end
        list[i] = size
    end
    return list
end

-- Uniform in [-bound, bound), trained.
function layer.uniform(bound, name, ...)
    return engine.parameter(core.rand(...) * (2 * bound) - bound, name, 0, name:find("^bias") ~= nil)
end

function layer.filled(value, name, n)
    return engine.parameter(core.full(value, n), name, 0, true)
end

return layer
