-- mp.class: scalers and optimizers of one's own, on top of ours. An instance is a table that has one
-- of ours inside; a method that its class does not write is that one's, and what ours call of each
-- other goes by the class too: a step unscales by the `unscale` that the class wrote, and a scaler
-- steps by the optimizer's own `step`.
local core = require "mp.core"
local strict = require "mp.strict"
local engine = core.engine

local class = {}
local parents = setmetatable({}, { __mode = "k" }) -- by class: what kind it is of

-- The one of ours inside of an instance, and anything else as it is.
local function inner_of(value)
    return type(value) == "table" and rawget(value, "_inner") or value
end

-- Whether it is an instance of a class of one's own.
function class.is_instance(value, kind)
    return type(value) == "table" and rawget(value, "_kind") == kind and rawget(value, "_inner") ~= nil
end

function class.is_class(value, kind)
    return value ~= nil and parents[value] ~= nil and parents[value].kind == kind
end

local function inner(self, title)
    local one = rawget(self, "_inner")
    if not one then
        engine.fail(("%s: nothing is inside yet: call %s.super.init(self, ..) in init first"):format(title,
            title:match "^[^:]*"))
    end
    return one
end

-- ---- what ours call of each other ------------------------------------------------------------------

-- Steps an optimizer of one's own by a scaler: its own `step` is called on true gradients.
local function step_by(scaler, optimizer)
    if not engine.has_unscaled(inner_of(scaler), inner_of(optimizer)) then scaler:unscale(optimizer) end
    if rawget(optimizer, "_scaler") then engine.fail("step: this optimizer is in the middle of a step") end
    rawset(optimizer, "_scaler", inner_of(scaler))
    local done, message = pcall(optimizer.step, optimizer)
    rawset(optimizer, "_scaler", nil)
    if not done then error(message, 0) end
end
engine.step_by(step_by)

local special = {
    scaler = {
        step = function(self, optimizer)
            if class.is_instance(optimizer, "optimizer") then return step_by(self, optimizer) end
            if not engine.has_unscaled(inner_of(self), optimizer) then self:unscale(optimizer) end
            return inner_of(self):step(optimizer)
        end,
    },
    optimizer = {
        step = function(self)
            local scaler = rawget(self, "_scaler")
            if scaler then return scaler:step(inner_of(self)) end
            return inner_of(self):step()
        end,
    },
}

-- ---- classes --------------------------------------------------------------------------------------

-- The methods of what a class stands on, each of which finds the one inside.
local function methods_of(kind, title)
    local methods = {}
    for name, f in pairs(engine.methods(kind)) do
        local own = special[kind][name]
        methods[name] = function(self, ...)
            local one = inner(self, title .. ":" .. name)
            if own then return strict.given(own(self, ...)) end
            return f(one, ...)
        end
    end
    return methods
end

local bases = { [core.scaler] = "scaler" }
for _, name in ipairs { "SGD", "Adam", "AdamW", "LAMB" } do bases[core.optim[name]] = "optimizer" end

class.class = strict.declare("mp.", "class", "name, base", function(name, base)
    if type(name) ~= "string" or name == "" then
        engine.fail(("class: name: a text expected, got %s"):format(strict.shown(name)))
    end
    local parent = base ~= nil and parents[base]
    local kind = parent and parent.kind or base ~= nil and bases[base]
    if not kind then
        engine.fail("class: base: mp.scaler, an optimizer of mp.optim or a class made of one expected; "
            .. "layers are made with nn.class")
    end
    local super = parent and base or methods_of(kind, name)
    if not parent then
        -- One that is there already, such as the run's scaler, is taken as it is.
        super.init = function(self, first, ...)
            local given = getmetatable(first) == "mp." .. kind
            rawset(self, "_inner", given and first or base(first, ...))
        end
    end
    local made = { super = super }
    local meta = { __index = made, __metatable = name }
    local function instance(_, ...)
        local self = setmetatable({ _kind = kind }, meta)
        self:init(...)
        inner(self, name)
        return self
    end
    parents[made] = { kind = kind }
    return setmetatable(made, { __index = super, __call = instance, __metatable = "class" })
end)

return class
