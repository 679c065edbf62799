-- Names that do not exist are errors that tell the nearest that does; and checks of tables that
-- users write, with the path to what is wrong.
local core = require "mp.core"

local strict = {}

local function nearest(wanted, names)
    local near = core.engine.nearest(wanted, names)
    return near and ("; did you mean %s?"):format(near) or ""
end

local function names_of(t)
    local names = {}
    for name in pairs(t) do
        if type(name) == "string" then names[#names + 1] = name end
    end
    table.sort(names) -- so that of equally near names always the same is told
    return names
end

-- What a message calls a value that was not expected.
function strict.shown(value)
    if type(value) == "number" or type(value) == "boolean" then return tostring(value) end
    if type(value) == "string" then return ("the string %q"):format(value) end
    if value == nil then return "nil" end
    local meta = type(value) == "userdata" and getmetatable(value) -- ours have their name there
    local name = type(meta) == "string" and meta:match "[%w_ ]+$" or type(value)
    return (name:find "^[aeiou]" and "an " or "a ") .. name
end

-- For `return given(f(..))`, which is on the stack while f runs, where `return f(..)` is not: so what
-- is missing there is the script's, of which errors tell (lua/vm_error.c).
local function given(...) return ... end
strict.given = given

-- Declares what a function that scripts call takes, as the manual writes it (lua/bind/signature.c),
-- and holds every call to it. `prefix` is how the manual calls what it belongs to, "F.", or "m:" of
-- methods, whose self `is_self` knows.
function strict.declare(prefix, name, takes, f, is_self)
    local check = core.engine.signature(prefix, name, takes)
    if not is_self then
        return function(...)
            check(...)
            return given(f(...))
        end
    end
    return function(self, ...)
        check(self, ...)
        if not is_self(self) then
            local owner = prefix:sub(1, -2)
            core.engine.fail(("%s.%s: called with a dot; write %s:%s(%s)"):format(owner, name, owner,
                name, takes))
        end
        return given(f(self, ...))
    end
end

-- Makes reading an unknown name an error. `others`: what it is called elsewhere, { name = ours }.
function strict.seal(t, title, others)
    local function meant(name)
        local near = others and others[name]
        if near then return ("; did you mean %s?"):format(near) end
        local names, few = names_of(t), 12
        near = nearest(name, names)
        if near ~= "" then return near end
        if #names == 0 then return "; there are none" end
        return #names <= few and "; there are " .. table.concat(names, ", ") or ""
    end
    return setmetatable(t, {
        __index = function(_, name)
            core.engine.fail(("%s.%s: no such name%s"):format(title, tostring(name),
                type(name) == "string" and meant(name) or ""))
        end,
        __metatable = title,
    })
end

-- Refuses fields that are not in `known` ({name = type or list of types}), and wrong types.
function strict.check(t, title, known)
    local names = names_of(known)
    local found = names_of(t)
    for key in next, t do
        if type(key) ~= "string" then
            core.engine.fail(("%s: fields have names; got one without, %s"):format(title,
                strict.shown(t[key])))
        end
    end
    for _, name in ipairs(found) do
        local wanted = known[name]
        if not wanted then
            core.engine.fail(("%s.%s: no such field%s"):format(title, name, nearest(name, names)))
        end
        if not (" " .. wanted .. " "):find(" " .. type(t[name]) .. " ", 1, true) then
            core.engine.fail(("%s.%s: %s expected, got %s"):format(title, name,
                wanted:gsub(" ", " or "), strict.shown(t[name])))
        end
    end
    return t
end

strict.nearest = nearest
strict.names_of = names_of
return strict
