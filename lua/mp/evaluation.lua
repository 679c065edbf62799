-- mp.evaluation: a trained model on the data that its experiment keeps for tests: means of what the
-- experiment's `eval` says, and, for `mpbench eval`, what a call of the model takes.
local calling = require "mp.calling"
local core = require "mp.core"
local fn = require "mp.functions"
local module = require "mp.module"
local strict = require "mp.strict"
local engine = core.engine

local public = {}

-- What a function of the experiment gave, which is most often nothing because it lacks a `return`.
function public.refuse(field, wanted, value)
    engine.fail(("%s: the function must return %s, it returned %s%s"):format(field, wanted,
        module.shown(value), value == nil and "; is its `return` missing?" or ""))
end

local function classes_of(loader)
    return getmetatable(loader) == "mp.loader" and loader:classes() or {}
end

-- Names that each file numbers by itself are other numbers in each, and the test would tell nothing.
local function check_classes(train, test)
    local known = classes_of(train)
    for i, name in ipairs(classes_of(test)) do
        if #known > 0 and known[i] ~= name then
            engine.fail(("data: class %d is %s in train and %s in test; give both the same, "
                .. "with `classes` where they are tables"):format(i - 1, known[i] or "none", name))
        end
    end
end

-- A loader, or a table of the script's that is called for batches; one to train on knows how many.
local function is_loader(field, value)
    local meta = getmetatable(value)
    if meta == "mp.loader" then return true end
    local gives = type(value) == "table" and type(meta) == "table" and meta.__call ~= nil
    return gives and (field == "test" or type(value.len) == "function")
end

local function check_loader(field, value)
    if value ~= nil and not is_loader(field, value) then
        engine.fail(("data.%s: a loader expected, as mp.data.tensors { x = .., y = .. } makes, got %s; what is "
            .. "made on the way is trained on by a loop of your own: run = function(run) .. end"):format(field,
            module.shown(value)))
    end
end

-- What the experiment trains and tests on.
function public.loaders(spec, params)
    local data = calling.call("data", spec.data, params)
    if type(data) == "table" then
        check_loader("train", data.train)
        check_loader("test", data.test)
        strict.check(data, "data", { train = "userdata table", test = "userdata table" })
    end
    if type(data) ~= "table" or not data.train then
        public.refuse("data", "a table with a loader `train`, as in { train = .., test = .. }", data)
    end
    check_classes(data.train, data.test)
    return data
end

local function number_of(value)
    return type(value) == "number" and value or value:item()
end

-- Is it a tensor of one element?
function public.is_one(value)
    local is_one = getmetatable(value) == "tensor"
    for _, size in ipairs(is_one and value:shape() or {}) do is_one = is_one and size == 1 end
    return is_one
end

-- What `eval` gave of a batch, or what is wrong with it.
local function checked(values)
    if type(values) ~= "table" then public.refuse("eval", "a table of named values", values) end
    for name, value in pairs(values) do
        local is_tensor = getmetatable(value) == "tensor"
        local is_one = type(value) == "number" or public.is_one(value)
        if type(name) ~= "string" or not is_one then
            engine.fail(("eval: %s: a number, or a tensor of one element, by a name is expected, got %s"):format(
                tostring(name), is_tensor and ("a tensor of [%s]"):format(table.concat(value:shape(), ","))
                or strict.shown(value)))
        end
    end
    return values
end

-- Whether a result gets better by falling: as the script says, else as its name does.
function public.falls(spec, name)
    local better = spec.results and spec.results[name]
    if better then return better == "lower" end
    return engine.result_falls(name)
end

-- Means over batches, weighted by their size, of the values that f(model, b) returns by name.
-- `each`, if given, is called after every batch with how many there were; where it returns true, that
-- was the last. Gradients are off, and the model does not train meanwhile.
function public.means(f, model, loader, each)
    local sums, samples, batches = {}, 0, 0
    model:eval()
    core.no_grad(function()
        for b in loader do
            local values = calling.autocast("eval", f, model, b)
            for name, value in pairs(checked(values)) do
                sums[name] = (sums[name] or 0) + value * b.count
            end
            samples, batches = samples + b.count, batches + 1
            if each and each(batches) then break end
        end
    end)
    model:train()
    local means = {}
    for name, sum in pairs(sums) do means[name] = number_of(sum / samples) end
    return means, samples
end

-- Calls f with the loader's first batch, so that what is wrong with it is told before minutes of
-- training. Nothing else comes of it than what it gave: chance and data go on from where they were.
function public.try(f, model, loader)
    local means
    engine.tried(function()
        means = public.means(f, model, loader, function() return true end)
    end)
    return means
end

-- What the experiment says of a result that is none of `given`; nil: all are. `loss` is one always.
function public.unknown_result(spec, given)
    local names, is_known = strict.names_of(given), { loss = true }
    for _, name in ipairs(names) do is_known[name] = true end
    local function refusal(field, name)
        if is_known[name] then return nil end
        local near = strict.nearest(name, names)
        if near == "" and #names > 0 then near = "; there are " .. table.concat(names, ", ") end
        return ("experiment.%s: no result is named %s%s"):format(field, name, near)
    end
    local text = spec.leads and refusal("leads", spec.leads)
    for _, name in ipairs(strict.names_of(spec.results or {})) do text = text or refusal("results", name) end
    return text or nil
end

-- ---- batches of other sizes -------------------------------------------------------------------------

-- A batch of what `change` makes of every tensor that has one row a sample.
local function changed(b, count, change)
    local new = {}
    for key, value in pairs(b) do
        local is_rows = type(value) == "userdata" and value:shape()[1] == b.count
        new[key] = is_rows and change(value) or value
    end
    new.count = count
    return new
end

-- Samples first to last of a batch.
local function part(b, first, last)
    return changed(b, last - first + 1, function(rows) return rows:slice(1, first, last) end)
end

-- So many samples, again and again those of the batch.
local function grown(b, count)
    while b.count < count do
        b = changed(b, 2 * b.count, function(rows) return fn.cat({ rows, rows }, 1) end)
    end
    return part(b, 1, count)
end

-- ---- what `mpbench eval` asks -----------------------------------------------------------------------

-- The batches of a loader, cut where they have more samples than `most`.
local function pieces(loader, most)
    return coroutine.wrap(function()
        for b in loader do
            for first = 1, b.count, most do
                coroutine.yield(b.count <= most and b or part(b, first, math.min(first + most - 1, b.count)))
            end
        end
    end)
end

-- ---- under a cap ----------------------------------------------------------------------------------

local most_tried = 65536

-- What f(..) gives where the device computes it within so many bytes; nil where it does not.
local function within(bytes, f, ...)
    engine.settle()
    engine.limit(bytes)
    local done, result = pcall(f, ...)
    engine.limit()
    if not done and not engine.was_full() then error(result, 0) end
    return done and result or nil
end

-- The same of a batch, or the mean of its halves: how much of what is garbage lies there still
-- differs from one time to the next.
local function by_parts(values, model, b)
    local cap = engine.evaluation().memory
    local whole = within(cap, values, model, b)
    if not whole and b.count == 1 then whole = within(cap, values, model, b) end
    for name, value in pairs(whole or {}) do whole[name] = number_of(value) end -- holds no memory
    if whole then return whole end
    if b.count == 1 then engine.fail "eval: a sample does not fit any more under --memory" end
    local half = b.count // 2
    local left = by_parts(values, model, part(b, 1, half))
    local right = by_parts(values, model, part(b, half + 1, b.count))
    for name, value in pairs(left) do
        left[name] = (value * half + right[name] * (b.count - half)) / b.count
    end
    return left
end

-- The bytes in which a sample is known to fit, at most a sixteenth more than it takes: what is asked of
-- the system is more than what is in use, by what blocks are rounded up to.
local function needed_by_one(call)
    call() -- weights are in their format from here on
    engine.settle()
    engine.limit() -- what that call worked in is given back: else it counts as the next one's
    local needed = engine.needs(call)
    local most = 4 * needed -- beyond that it is the machine that lacks memory, and says so
    while needed < most and not within(needed, call) do needed = needed + needed // 16 + 1 end
    if needed >= most then call() end
    return needed
end

-- The largest batch within the cap, and the bytes that one sample takes.
local function largest_within(values, model, b)
    local cap = engine.evaluation().memory
    local function try(count)
        engine.evaluation_goes_on("fits a batch of " .. count .. "?", 1)
        return within(cap, core.autocast, values, model, grown(b, count))
    end
    local needed = needed_by_one(function() return core.autocast(values, model, part(b, 1, 1)) end)
    if not try(1) then return 0, math.max(needed, cap + 1) end
    needed = math.min(needed, cap)
    local least, beyond = 1, 2
    while beyond <= most_tried and try(beyond) do least, beyond = beyond, 2 * beyond end
    -- To a sixteenth: what is rounded up to blocks of memory has no sharper end.
    while beyond <= most_tried and beyond - least > math.max(1, least // 16) do
        local middle = (least + beyond) // 2
        if try(middle) then least = middle else beyond = middle end
    end
    return least, needed
end

local function declared(spec)
    for _, field in ipairs { "model", "data" } do
        if not spec[field] then
            engine.fail(("eval: %s trains by a loop of its own: declare `model`, `data` with a loader `test`, "
                .. "and `eval` beside its `run`"):format(spec.name))
        end
    end
    if not spec.eval and not spec.loss then
        engine.fail(("eval: %s says nothing of how good its model is: declare `eval` or `loss`"):format(spec.name))
    end
end

-- Everything that the experiment says of a batch: its own values, and the loss that it trains on.
local function values_of(spec)
    return function(model, b)
        local values = {}
        if spec.eval then
            values = calling.call("eval", spec.eval, model, b)
            checked(values)
        end
        if spec.loss and values.loss == nil then
            if engine.evaluation().memory > 0 then engine.settle() end -- one after the other
            values.loss = calling.call("loss", spec.loss, model, b)
        end
        return values
    end
end

-- Shows the model so many batches, of what it was trained on where there is that, so that layers in
-- int8 know what numbers come.
local function calibrate(values, model, data, batches)
    if batches == 0 then return end
    local seen = 0
    local loader = data.train or data.test
    engine.calibrates(true)
    model:eval()
    core.no_grad(function()
        for b in loader do
            core.autocast(values, model, b)
            engine.settle()
            seen = seen + 1
            engine.evaluation_goes_on("calibrates", seen, batches)
            if seen == batches then break end
        end
    end)
    model:train()
    engine.calibrates(false)
end

-- The first batch of a loader.
local function first_of(loader)
    local first
    for b in loader do
        first = b
        if first then break end
    end
    return first or engine.fail "eval: data: the loader `test` gave no batch"
end

function public.run(spec, run)
    declared(spec)
    local p = run.params
    local data = calling.call("data", spec.data, p)
    if type(data) ~= "table" or not data.test then
        engine.fail(("eval: data: %s keeps no data for tests: a loader `test` is needed, as in { train = .., "
            .. "test = .. }"):format(spec.name))
    end
    local model, name = calling.call("model", spec.model, p, data)
    if not module.is_module(model) then public.refuse("model", "a module", model) end
    run:model(model, name)
    engine.layers_known()
    engine.evaluated "weights"
    local asked = engine.evaluation()
    local values, look = values_of(spec), spec.eval or spec.loss
    calibrate(values, model, data, asked.calibrate)
    local first, most = first_of(data.test), math.maxinteger
    local function without_training(f)
        model:eval()
        core.no_grad(f)
        model:train()
    end
    if asked.memory > 0 then
        local needed
        without_training(function() most, needed = largest_within(values, model, first) end)
        engine.evaluated("fits", most, needed)
        if most == 0 then return end
    end
    engine.settle()
    engine.evaluated "begins"
    local total = type(data.test) == "userdata" and most >= first.count and data.test:len() or 0
    local each = asked.memory > 0 and function(m, b) return by_parts(values, m, b) end or values
    local means, samples = public.means(each, model, pieces(data.test, most), function(batches)
        engine.settle()
        engine.evaluation_goes_on("test", batches, total)
    end)
    local batch = math.min(most, first.count)
    engine.evaluated("samples", samples, batch)
    for _, metric in ipairs(strict.names_of(means)) do
        engine.evaluated("metric", means[metric], metric, public.falls(spec, metric))
    end
    if spec.leads and means[spec.leads] then engine.evaluated("leads", spec.leads) end
    engine.evaluated "memory"
    if asked.quick then return end
    local function call_of(b)
        return function() core.autocast(look, model, b) end
    end
    without_training(function() engine.waits_its_turn(call_of(part(first, 1, 1)), call_of(part(first, 1, batch))) end)
end

return public
