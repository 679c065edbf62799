-- Modules: things with parameters, a forward, and a name, that can hold others.
--
-- An instance is a table; fields are remembered in the order in which they were first set, so that
-- parameters and layers come in the same order in every process. Calling a module enters its layer
-- (which decides precision, and names errors) and its mode, training or not, and runs forward.
local core = require "mp.core"
local strict = require "mp.strict"
local engine = core.engine
local enter = engine.enter

local module = {}
local made = 0 -- instances so far
local Module = {} -- the methods of all modules
local missing = { __index = engine.note_missing }

local function is_tensor(value)
    return type(value) == "userdata" and getmetatable(value) == "tensor"
end

function Module.init() end

function Module:forward()
    engine.fail(("%s: has no forward; write function %s:forward(x)"):format(self._class._name,
        self._class._name))
end

-- What a forward returned, where that is anything.
local function returned(self, ...)
    if (...) == nil and select("#", ...) < 2 then
        engine.fail_in(self.forward, "forward", ("the module %s returned nothing; a forward returns what "
            .. "it computed, as in `return y`"):format(self._class._name))
    end
    return ...
end

local function call(self, ...)
    local _ <close> = enter(self._layer, self.training)
    if select("#", ...) > 1 and self.forward == self._class._single then
        engine.fail(("%s: one tensor expected, got %d arguments; what it is made with goes into nn.%s(..)")
            :format(self._class._name, select("#", ...), self._class._name))
    end
    if not is_tensor((...)) and self.forward == self._class._plain then
        engine.fail(("%s: a tensor expected, got %s"):format(self._class._name, strict.shown((...))))
    end
    return returned(self, self:forward(...))
end

local function record(self, key, value)
    if type(key) == "string" and key:sub(1, 1) ~= "_" then
        local order = rawget(self, "_order")
        local known = rawget(self, "_known")
        if not known[key] then order[#order + 1] = key end
        known[key] = true
    end
    rawset(self, key, value)
end

-- A module prints as the tree below it: each child's name and class, with the sizes of its weight.
local function described(self, indent, seen)
    if seen[self] then return self._class._name .. " (the same as above)" end
    seen[self] = true
    local lines = { self._class._name }
    local weight = rawget(self, "weight")
    if weight then lines[1] = lines[1] .. " [" .. table.concat(weight:shape(), ", ") .. "]" end
    for _, child in ipairs(module.children(self)) do
        lines[#lines + 1] = indent .. "  " .. child[1] .. ": " .. described(child[2], indent .. "  ", seen)
    end
    return table.concat(lines, "\n")
end

-- A table to write init and forward on; calling it makes an instance.
module.class = strict.declare("nn.", "class", "name", function(name)
    if type(name) ~= "string" then engine.fail("nn.class: a name expected, as in nn.class \"Net\"") end
    local class = { _name = name, __call = call, __newindex = record, __metatable = name,
        __tostring = function(self) return described(self, "", {}) end }
    class.__index = class
    class._kind = name:lower()
    local methods = { _name = name } -- of its own, so that it is known which class lacks what is in none
    for key, f in next, Module do methods[key] = f end
    return setmetatable(class, {
        __index = setmetatable(methods, missing),
        __call = function(_, ...)
            if class._check then class._check(...) end
            made = made + 1
            local self = setmetatable({ _order = {}, _known = {}, training = true, _class = class,
                _number = made }, class)
            self:init(...)
            return self
        end,
        __metatable = "class",
    })
end)

-- A class of ours, whose instances are made with what `takes` declares.
function module.declared_class(name, takes)
    local class = module.class(name)
    rawset(class, "_check", engine.signature("nn.", name, takes))
    return class
end

function module.is_module(value)
    return type(value) == "table" and rawget(value, "_order") ~= nil
end
local is_module = module.is_module

-- What a message calls a value that is no module: a class is easily taken for what it makes.
function module.shown(value)
    local name = type(value) == "table" and getmetatable(value) == "class" and rawget(value, "_name")
    return name and ("the class %s: %s(..) makes one"):format(name, name) or strict.shown(value)
end

-- ---- walking -------------------------------------------------------------------------------------

-- The keys of a table below which something may lie, numbers first.
local function followed_keys(t)
    local keys = {}
    for key, value in next, t do
        local named = type(key) == "string" or type(key) == "number"
        if named and (type(value) == "table" or type(value) == "userdata") then
            keys[#keys + 1] = key
        end
    end
    table.sort(keys, function(a, b)
        if type(a) == type(b) then return a < b end
        return type(a) == "number"
    end)
    return keys
end

local function gather(list, seen, name, value)
    if is_module(value) or is_tensor(value) then
        list[#list + 1] = { name, value }
    elseif type(value) == "table" and not seen[value] then
        seen[value] = true
        for _, key in ipairs(followed_keys(value)) do
            gather(list, seen, name .. "." .. tostring(key), rawget(value, key))
        end
    end
end

-- The modules and tensors in a module's fields and in tables below them, however deep, as
-- {name, value}; fields come in the order in which they were set. A table that is reached twice is
-- looked into once.
local function held(self)
    local list, seen = {}, {}
    for _, key in ipairs(self._order) do gather(list, seen, key, rawget(self, key)) end
    return list
end

-- The children of a module as {name, module}, in the order in which they were made: an assignment
-- to several fields at once sets them in no order to rely on.
function module.children(self)
    local children, counts = {}, {}
    local function add(name, child)
        children[#children + 1] = { child._own_name or name, child }
    end
    for _, entry in ipairs(held(self)) do
        if is_module(entry[2]) then add(entry[1], entry[2]) end
    end
    table.sort(children, function(a, b) return a[2]._number < b[2]._number end)
    for _, child in ipairs(self._list or {}) do -- of Sequential: by kind and number
        local kind = child._class._kind
        counts[kind] = (counts[kind] or 0) + 1
        add(kind .. counts[kind], child)
    end
    return children
end

-- The tensors that a module itself holds, in order: those that it trains, or those that nothing
-- trains, as running statistics.
local function own_tensors(self, trained)
    local list = {}
    for _, entry in ipairs(held(self)) do
        if is_tensor(entry[2]) and (engine.parameter_name(entry[2]) ~= nil) == trained then
            list[#list + 1] = entry
        end
    end
    return list
end

-- Calls visit(module, path) for the module and all below it, each once.
local function walk(self, path, visit, seen)
    if seen[self] then return end
    seen[self] = true
    visit(self, path)
    for _, child in ipairs(module.children(self)) do
        walk(child[2], path == "" and child[1] or path .. "." .. child[1], visit, seen)
    end
end

-- All that a model is: what it trains, and what nothing trains, each once.
function module.state(model)
    local list, seen = {}, {}
    walk(model, "", function(m)
        for _, trained in ipairs { true, false } do
            for _, entry in ipairs(own_tensors(m, trained)) do
                if not seen[entry[2]] then
                    seen[entry[2]] = true
                    list[#list + 1] = entry[2]
                end
            end
        end
    end, {})
    return list
end

-- ---- methods -------------------------------------------------------------------------------------

local function method(name, takes, f) Module[name] = strict.declare("m:", name, takes, f, is_module) end

method("parameters", "", function(self)
    local list, seen = {}, {}
    walk(self, "", function(m)
        for _, entry in ipairs(own_tensors(m, true)) do
            if not seen[entry[2]] then
                seen[entry[2]] = true
                list[#list + 1] = entry[2]
            end
        end
    end, {})
    return list
end)

-- for name, tensor in model:named_parameters() do
method("named_parameters", "", function(self)
    local list = {}
    walk(self, "", function(m, path)
        for _, entry in ipairs(own_tensors(m, true)) do
            list[#list + 1] = { path == "" and entry[1] or path .. "." .. entry[1], entry[2] }
        end
    end, {})
    local i = 0
    return function()
        i = i + 1
        if list[i] then return list[i][1], list[i][2] end
    end
end)

-- Groups for an optimizer: what decays, and the biases and weights of norms, which should not.
method("decay_groups", "decay", function(self, decay)
    if type(decay) ~= "number" then engine.fail("decay_groups: a number expected, the weight decay") end
    local decayed = { params = {}, weight_decay = decay }
    local plain = { params = {}, weight_decay = 0 }
    for _, parameter in ipairs(self:parameters()) do
        local _, norm_or_bias = engine.parameter_name(parameter)
        table.insert((norm_or_bias and plain or decayed).params, parameter)
    end
    local groups = {}
    for _, group in ipairs { decayed, plain } do
        if #group.params > 0 then groups[#groups + 1] = group end
    end
    return groups
end)

method("named", "name", function(self, name)
    if type(name) ~= "string" or name == "" then engine.fail("named: a name expected") end
    rawset(self, "_own_name", name)
    return self
end)

local function set_training(self, on)
    local has_changed = false
    walk(self, "", function(m)
        has_changed = has_changed or m.training ~= on
        rawset(m, "training", on)
    end, {})
    if has_changed then engine.mode_changed() end
    return self
end

method("train", "", function(self) return set_training(self, true) end)
method("eval", "", function(self) return set_training(self, false) end)

-- Of a model without a name of its own the layers at the top that have no precision of their own, or
-- the one that they were given so before.
local function set_whole(model, precision)
    local own = {}
    for _, layer in ipairs(engine.layers()) do own[layer.name] = layer.own end
    local function set(path)
        if path and (own[path] == "auto" or own[path] == model._whole_precision) then
            engine.set_precision(path, precision)
        end
    end
    set(model._lone_name)
    for _, child in ipairs(module.children(model)) do set(child[2]._path) end
    rawset(model, "_whole_precision", precision)
end

-- The precision of this layer and of what lies below it and has none of its own.
method("precision", "p", function(self, precision)
    engine.check_precision(precision)
    if self._path == "" then
        set_whole(self, precision)
    elseif self._path then
        engine.set_precision(self._path, precision)
    else
        rawset(self, "_precision", precision) -- until the run knows the model
    end
    return self
end)

local function pattern_of(glob)
    local escaped = glob:gsub("[%^%$%(%)%%%.%[%]%+%-]", "%%%0")
    return "^" .. escaped:gsub("%*", ".*"):gsub("%?", ".") .. "$"
end

-- The first few of a list of names, for a message.
local function some_of(names)
    local most = 4
    local shown = table.concat(names, ", ", 1, math.min(#names, most))
    return #names > most and ("%s and %d more"):format(shown, #names - most) or shown
end

-- The modules whose path matches ('*' and '?'), as a list with :precision.
method("find", "pattern", function(self, glob)
    if type(glob) ~= "string" then
        engine.fail(("find: a pattern of layers' names expected, got %s"):format(strict.shown(glob)))
    end
    local found, paths, pattern = {}, {}, pattern_of(glob)
    walk(self, "", function(m, path)
        if path == "" then path = m._lone_name or "" end
        if path ~= "" then paths[#paths + 1] = path end
        if path ~= "" and path:find(pattern) then found[#found + 1] = m end
    end, {})
    found.precision = strict.declare("m:find(pattern):", "precision", "p", function(_, precision)
        if #found == 0 then
            local near = strict.nearest(glob, paths)
            engine.fail(("find(%q):precision: no layer has such a name%s"):format(glob,
                near == "" and #paths > 0 and "; there are " .. some_of(paths) or near))
        end
        for _, m in ipairs(found) do m:precision(precision) end
        return found
    end, function(value) return value == found end)
    return found
end)

-- ---- registration --------------------------------------------------------------------------------

-- What a model without a name of its own is called that is a layer itself: one that holds parameters,
-- or that nothing lies below. It is named as a child of a Sequential is, by kind and number.
local function lone_name(model)
    local is_bare = #module.children(model) == 0
    if not is_bare and #own_tensors(model, true) == 0 then return nil end
    if model._lone_name then return model._lone_name, is_bare end
    local taken, number = {}, 1
    for _, layer in ipairs(engine.layers()) do taken[layer.name] = true end
    local name = model._own_name
    while not name or taken[name] do
        name = model._class._kind .. number
        number = number + 1
    end
    return name, is_bare
end

-- Makes such a model a layer. Its parameters keep their names, by which checkpoints find them, and it
-- comes behind what lies below it, whose numbers checkpoints go by.
local function add_lone_layer(model)
    local name, is_bare = lone_name(model)
    if not name then return end
    local layer = engine.add_layer(name, 0)
    rawset(model, "_lone_name", name)
    rawset(model, "_layer", layer)
    if is_bare then rawset(model, "_path", name) end
    for _, entry in ipairs(own_tensors(model, true)) do
        local _, norm_or_bias = engine.parameter_name(entry[2])
        engine.parameter(entry[2], entry[1], layer, norm_or_bias)
    end
end

-- Gives every module below `model` its layer, and every parameter its name. `prefix` begins them.
function module.register(model, prefix)
    local layers = {}
    local function parent_of(path)
        local above = path:match("^(.*)%.[^.]*$")
        while above do
            if layers[above] then return layers[above] end
            above = above:match("^(.*)%.[^.]*$")
        end
        return 0
    end
    local function join(path)
        if prefix and path ~= "" then return prefix .. "." .. path end
        return prefix or path
    end
    walk(model, "", function(m, inner)
        local path = join(inner)
        local layer = 0
        if path ~= "" then
            layer = engine.add_layer(path, parent_of(path))
            layers[path] = layer
        end
        rawset(m, "_layer", layer)
        rawset(m, "_path", path)
        for _, entry in ipairs(own_tensors(m, true)) do
            local _, norm_or_bias = engine.parameter_name(entry[2])
            local name = path == "" and entry[1] or path .. "." .. entry[1]
            engine.parameter(entry[2], name, layer, norm_or_bias)
            if not m._keep_full then engine.store_low(entry[2]) end
            engine.remember(name, entry[2], false)
        end
        for _, entry in ipairs(own_tensors(m, false)) do
            engine.remember(path == "" and entry[1] or path .. "." .. entry[1], entry[2], true)
        end
        if m._precision then
            engine.set_precision(path == "" and "*" or path, m._precision)
            rawset(m, "_precision", nil)
        end
    end, {})
    if not prefix then add_lone_layer(model) end
end

strict.seal(module, "mp.module")
return module
