-- mp.custom: functions with a gradient of one's own. `forward(ctx, ..)` computes off the record;
-- `backward(ctx, ..)` gets the gradients of its results and returns those of its arguments.
local core = require "mp.core"
local strict = require "mp.strict"
local engine = core.engine

-- What forward leaves for backward: fields of any kind, and tensors that the tape looks after, so
-- that what was overwritten meanwhile is told, and a second derivative finds where they came from.
local Context = { __metatable = "context" }
Context.__index = Context

local function is_context(value) return getmetatable(value) == Context.__metatable end

Context.save = strict.declare("ctx:", "save", "..", function(self, ...)
    local list = { ... }
    for i = 1, select("#", ...) do
        if getmetatable(list[i]) ~= "tensor" then
            engine.fail(("ctx:save: argument %d: a tensor expected, got %s; keep other values in "
                .. "fields of ctx"):format(i, strict.shown(list[i])))
        end
    end
    rawset(self, "_kept", list)
end, is_context)

Context.saved = strict.declare("ctx:", "saved", "", function(self)
    return table.unpack(rawget(self, "_kept") or {})
end, is_context)

return strict.declare("mp.", "custom", "{ forward, backward, name, precision }", function(options)
    if options == nil then engine.fail("custom: a table expected, got nil") end
    strict.check(options, "custom",
        { forward = "function", backward = "function", name = "string", precision = "string" })
    for _, field in ipairs { "forward", "backward" } do
        if not options[field] then
            engine.fail(("custom.%s: a function is needed, as in mp.custom { forward = function(ctx, x) .. end, "
                .. "backward = function(ctx, dy) .. end }"):format(field))
        end
    end
    if options.precision then engine.check_precision(options.precision) end
    local definition = { forward = options.forward, backward = options.backward,
        name = options.name or "custom", precision = options.precision, context = Context }
    return function(...) return engine.apply_custom(definition, ...) end
end)
