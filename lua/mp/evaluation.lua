-- mp.evaluation: a trained model on the data that its experiment keeps for tests: means of what the
-- experiment's `eval` says, and, for `mpbench eval`, what a call of the model takes.
local calling = require "mp.calling"
local core = require "mp.core"
local module = require "mp.module"
local strict = require "mp.strict"
local engine = core.engine

local public = {}

-- What a function of the experiment gave, which is most often nothing because it lacks a `return`.
function public.refuse(field, wanted, value)
    engine.fail(("%s: the function must return %s, it returned %s%s"):format(field, wanted,
        type(value), value == nil and "; is its `return` missing?" or ""))
end

local function number_of(value)
    return type(value) == "number" and value or value:item()
end

-- Means over batches, weighted by their size, of the values that f(model, b) returns by name.
-- `each`, if given, is called after every batch with how many there were. Gradients are off, and
-- the model does not train meanwhile.
function public.means(f, model, loader, each)
    local sums, samples, batches = {}, 0, 0
    model:eval()
    core.no_grad(function()
        for b in loader do
            local values = calling.autocast("eval", f, model, b)
            if type(values) ~= "table" then
                public.refuse("eval", "a table of named values", values)
            end
            for name, value in pairs(values) do
                sums[name] = (sums[name] or 0) + value * b.count
            end
            samples, batches = samples + b.count, batches + 1
            if each then each(batches) end
        end
    end)
    model:train()
    local means = {}
    for name, sum in pairs(sums) do means[name] = number_of(sum / samples) end
    return means, samples
end

-- ---- batches of other sizes -------------------------------------------------------------------------

-- Samples first to last of a batch: of every tensor that has one row a sample.
local function part(b, first, last)
    local cut = {}
    for key, value in pairs(b) do
        local is_rows = type(value) == "userdata" and value:shape()[1] == b.count
        cut[key] = is_rows and value:slice(1, first, last) or value
    end
    cut.count = last - first + 1
    return cut
end

-- ---- what `mpbench eval` asks -----------------------------------------------------------------------

-- The median of the seconds that the model takes of a call of f, and of how many.
local function median(f)
    local warming, least, most, patience = 3, 5, 200, 0.6
    for _ = 1, warming do f() end
    local times, began = {}, engine.seconds()
    repeat
        local inside, whole = engine.timed(f)
        times[#times + 1] = inside > 0 and inside or whole
        engine.settle()
        engine.evaluation_goes_on()
    until #times == most or (#times >= least and engine.seconds() - began > patience)
    table.sort(times)
    local middle = #times // 2
    return #times % 2 == 1 and times[middle + 1] or (times[middle] + times[middle + 1]) / 2, #times
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
            if type(values) ~= "table" then public.refuse("eval", "a table of named values", values) end
        end
        if spec.loss and values.loss == nil then values.loss = calling.call("loss", spec.loss, model, b) end
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
    local asked = engine.evaluation()
    local values, first = values_of(spec), nil
    calibrate(values, model, data, asked.calibrate)
    engine.settle()
    engine.evaluated "begins"
    local total = type(data.test) == "userdata" and data.test:len() or 0
    local means, samples = public.means(function(m, b)
        first = first or b
        return values(m, b)
    end, model, data.test, function(batches)
        engine.settle()
        engine.evaluation_goes_on("test", batches, total)
    end)
    if not first then engine.fail "eval: data: the loader `test` gave no batch" end
    engine.evaluated("samples", samples, first.count)
    for _, metric in ipairs(strict.names_of(means)) do engine.evaluated("metric", means[metric], metric) end
    engine.evaluated "memory"
    if asked.quick then return end
    local look = spec.eval or spec.loss
    model:eval()
    core.no_grad(function()
        for _, timed in ipairs { { "one", part(first, 1, 1) }, { "whole", first } } do
            engine.evaluated(timed[1], median(function() core.autocast(look, model, timed[2]) end))
        end
    end)
    model:train()
end

return public
