-- mp.experiment: checks what a script declares, and trains it: by the standard loop below, or by
-- the script's own `run`.
local calling = require "mp.calling"
local class = require "mp.class"
local core = require "mp.core"
local evaluation = require "mp.evaluation"
local module = require "mp.module"
local scan = require "mp.scan"
local strict = require "mp.strict"
local engine = core.engine
local call, autocast = calling.call, calling.autocast
local refuse = evaluation.refuse

local public = {}

-- ---- declaration ----------------------------------------------------------------------------------

local declared = {
    name = "string", about = "string", params = "table", data = "function", model = "function",
    precision = "table string", loss = "function", eval = "function", optim = "function",
    results = "table", leads = "string",
    schedule = "table function", scaler = "string number table function",
    clip = "number function", accumulate = "number", average = "number function", run = "function",
}

local param_types = { number = true, string = true, boolean = true }

-- What cannot be is refused where it is declared, before there are data; what a function returns, once
-- its parameters are there.
local function decay_of(value, title)
    if value ~= nil and (type(value) ~= "number" or not (value >= 0 and value < 1)) then
        engine.fail(("%s: a decay from 0 to below 1 expected, got %s"):format(title, strict.shown(value)))
    end
    return value
end

local function whole(value, title, missing)
    if value == nil then return missing end
    local n = math.tointeger(value)
    if not n or n < 1 then
        engine.fail(("%s: a positive whole number expected, got %s"):format(title, tostring(value)))
    end
    return n
end

local function check_numbers(spec)
    local limit = spec.clip
    if type(limit) == "number" and not (limit > 0 and limit < math.huge) then
        engine.fail(("experiment.clip: a positive, finite norm expected, got %s"):format(limit))
    end
    whole(spec.accumulate, "experiment.accumulate")
    if type(spec.average) == "number" then decay_of(spec.average, "experiment.average") end
end

-- Which way each result gets better, in the words in which a history keeps it.
local function check_results(results)
    local most, names = 16, strict.names_of(results)
    for _, name in ipairs(names) do
        local better = results[name]
        if #name > 48 then engine.fail(("experiment.results.%s: a name of 48 bytes at most expected"):format(name)) end
        if better ~= "higher" and better ~= "lower" then
            engine.fail(('experiment.results.%s: "higher" or "lower" expected, whichever is better, got %s'):format(
                name, strict.shown(better)))
        end
    end
    if #names > most then engine.fail(("experiment.results: %d at most, got %d"):format(most, #names)) end
    if next(results) ~= nil and #names == 0 then
        engine.fail('experiment.results: results by their names expected, as in { gap = "lower" }')
    end
end

-- A parameter that is one of a few texts is declared as their list, the usual one first: as words with
-- blanks between them, in which the command line and the launch form keep them.
local function joined_choices(name, choices)
    local one, all = engine.choice_limits() -- bytes of one, and of all with the blanks
    local seen, left = {}, 0
    for _ in pairs(choices) do left = left + 1 end
    for i, choice in ipairs(choices) do
        if type(choice) ~= "string" or not choice:find "^[%w_./-]+$" or seen[choice] then
            engine.fail(("params.%s: choices are different texts of letters, digits and _ . / -, got %s as number %d")
                :format(name, strict.shown(choice), i))
        end
        if #choice > one then
            engine.fail(("params.%s: choices of up to %d bytes are possible, got %s"):format(name, one,
                strict.shown(choice)))
        end
        seen[choice], left = true, left - 1
    end
    if left > 0 or not choices[2] then
        engine.fail(('params.%s: a list of texts expected, the usual one first, as in { "small", "large" }'):format(
            name))
    end
    local joined = table.concat(choices, " ")
    if #joined > all then
        engine.fail(("params.%s: choices of up to %d bytes in all, with the blanks between them, are possible"):format(
            name, all))
    end
    return joined
end

local train -- below

public.experiment = strict.declare("mp.", "experiment", "{ name = v, .. }", function(spec)
    if spec == nil then engine.fail("mp.experiment: a table expected, got nil") end
    strict.check(spec, "experiment", declared)
    if not spec.name then engine.fail("experiment.name: every experiment needs a name") end
    if not spec.run then
        for _, field in ipairs { "data", "model", "loss", "optim" } do
            if not spec[field] then
                engine.fail(("experiment.%s: a function is needed, or run = function(run) .. end to "
                    .. "write the loop yourself"):format(field))
            end
        end
    end
    check_numbers(spec)
    check_results(spec.results or {})
    local names, params, choices = strict.names_of(spec.params or {}), {}, {}
    for _, name in ipairs(names) do
        local usual = spec.params[name]
        if type(usual) == "table" then
            choices[name] = joined_choices(name, usual)
            usual = usual[1]
        elseif not param_types[type(usual)] then
            engine.fail(("params.%s: a number, string, boolean or list of strings expected, got %s"):format(name,
                type(usual)))
        end
        params[name] = usual
    end
    local copy = {}
    for key, value in pairs(spec) do copy[key] = value end
    copy.parameter_names, copy.params, copy.parameter_choices = names, params, choices
    engine.declare(copy, train)
    return setmetatable(copy, { __metatable = "experiment" })
end)

-- ---- parameters -----------------------------------------------------------------------------------

local function settled_params(spec, options)
    local params = {}
    for _, name in ipairs(spec.parameter_names) do params[name] = spec.params[name] end
    for _, setting in ipairs(options.settings) do
        local key, text = setting[1], setting[2]
        if params[key] == nil then
            local known = table.concat(spec.parameter_names, " ")
            engine.usage(("--set %s: %s has no such parameter%s%s"):format(key, spec.name,
                strict.nearest(key, spec.parameter_names),
                known ~= "" and "; it has: " .. known or ""))
        end
        params[key] = engine.parse_parameter(key, spec.params[key], text, spec.parameter_choices[key])
    end
    if spec.run and options.epochs > 0 and params.epochs == nil then
        engine.usage(("--epochs %d: %s counts no epochs, its own loop says when it ends; --steps N " ..
            "ends it sooner"):format(options.epochs, spec.name))
    end
    if options.steps > 0 and params.steps ~= nil then params.steps = options.steps end
    if options.epochs > 0 and params.epochs ~= nil then params.epochs = options.epochs end
    for _, name in ipairs(spec.parameter_names) do engine.add_parameter(name, params[name]) end
    return strict.seal(params, "params")
end

-- {default = p, pattern = p, ..} as a default and a list of rules, in a fixed order.
local function settled_precision(precision)
    if type(precision) == "string" then return precision, {} end
    local default, rules = nil, {}
    for _, pattern in ipairs(strict.names_of(precision or {})) do
        local value = precision[pattern]
        if type(value) ~= "string" then
            engine.fail(("precision.%s: a format's name expected, got %s"):format(pattern,
                type(value)))
        end
        if pattern == "default" then
            default = value
        else
            rules[#rules + 1] = { pattern, value }
        end
    end
    return default, rules
end

-- ---- the run --------------------------------------------------------------------------------------

local Run = {}

local function run_index(_, key)
    if key == "step" then return engine.step() end
    local method = Run[key]
    if method == nil then
        local names = strict.names_of(Run)
        table.move({ "device", "params", "step" }, 1, 3, #names + 1, names)
        table.sort(names)
        engine.fail(("run.%s: no such name%s"):format(tostring(key), strict.nearest(tostring(key), names)))
    end
    return method
end

local function run_new(params, options)
    local run = setmetatable({ params = params, device = options.device },
        { __index = run_index, __metatable = "run" })
    engine.let_step_be_called(run)
    return run
end

local function method(name, takes, f)
    Run[name] = strict.declare("run:", name, takes, f, function(self)
        return getmetatable(self) == "run"
    end)
end

-- Makes the run know the model; its layers' names then begin with `name`.
method("model", "m [, name]", function(_, m, name)
    if not module.is_module(m) then
        engine.fail(("run:model: a module expected, got %s"):format(module.shown(m)))
    end
    if name ~= nil and (type(name) ~= "string" or name == "") then
        engine.fail(("run:model: name: a text expected, got %s"):format(strict.shown(name)))
    end
    module.register(m, name)
    engine.load_weights()
    return m
end)

method("scaler", "", function() return engine.run_scaler() end)
-- How many steps the loop will take, for the progress and the time that is left.
method("plan", "steps", function(_, steps)
    if steps == nil then engine.fail "run:plan: steps: a positive whole number expected, got nil" end
    engine.plan(whole(steps, "run:plan: steps"))
end)
method("checkpoint", "", function() engine.checkpoint() end)
method("event", "text", function(_, text) engine.event(tostring(text)) end)

-- Pictures with values between 0 and 1, one or several, of which a file of the run is made.
method("picture", "name, tensor [, { columns }]", function(_, name, tensor, options)
    if type(name) ~= "string" then
        engine.fail(("run:picture: name: a text expected, got %s"):format(strict.shown(name)))
    end
    strict.check(options or {}, "picture", { columns = "number" })
    local columns = options and options.columns
    if columns and not (math.tointeger(columns) and columns >= 1) then
        engine.fail(("run:picture: columns: a positive whole number expected, got %s"):format(columns))
    end
    engine.picture(name, tensor, columns or 0)
end)

-- What f computes is an evaluation: nothing is recorded for a way back, and its time is not the steps'.
method("evaluate", "f, ..", function(_, f, ...)
    engine.evaluating(true)
    local results = table.pack(pcall(core.no_grad, f, ...))
    engine.evaluating(false)
    if not results[1] then error(results[2], 0) end
    return table.unpack(results, 2, results.n)
end)

local results = {} -- the names of those that were given

for _, name in ipairs { "log", "result" } do
    method(name, "{ name = v, .. }", function(_, values)
        if values == nil then
            engine.fail(("run:%s: named values expected, as in { loss = loss }"):format(name))
        end
        engine[name](values)
        if name == "result" then
            for key in pairs(values) do results[key] = true end
        end
    end)
end

-- ---- the standard loop ----------------------------------------------------------------------------

-- What the test data says of the model, or of the average of its weights, where there is one: the
-- clock of the steps stands still meanwhile.
local function evaluate(spec, model, average, loader)
    engine.evaluating(true)
    local means
    if average then
        means = average:with(evaluation.means, spec.eval, model, loader)
    else
        means = evaluation.means(spec.eval, model, loader)
    end
    engine.evaluating(false)
    return means
end

local function scaler_of(spec)
    if spec.scaler == nil then return engine.run_scaler() end
    local given = spec.scaler
    local scaler = class.is_class(given, "scaler") and given() or class.is_instance(given, "scaler") and given
        or core.scaler(given)
    engine.lead_scaler(scaler)
    return scaler
end

-- The schedule ends with the run. One that warms up for longer goes as far as there are steps: a run
-- that was cut short is the beginning of the whole one.
local function fit_schedule(schedule, total)
    local warmup = schedule.warmup or 0
    schedule.total = math.max(total, warmup)
    if warmup > total then
        engine.event(("the run ends within the warm-up of its schedule: %d steps of %g"):format(total, warmup))
    end
end

local function refuse_loss(loss)
    if getmetatable(loss) ~= "tensor" then refuse("loss", "a tensor", loss) end
    engine.fail(("loss: the function must return a tensor of one element, it returned one of [%s]: take its "
        .. ":mean()"):format(table.concat(loss:shape(), ",")))
end

-- What `eval` says under the name of the training's loss is recorded beside that.
local function recorded(metrics)
    if metrics.loss and metrics.test_loss then
        engine.fail "eval: its loss is recorded as test_loss, which it returns as well; rename one of them"
    end
    local own = {}
    for name, value in pairs(metrics) do own[name == "loss" and "test_loss" or name] = value end
    return own
end

local function check_names(metrics)
    for name in pairs(metrics) do
        if engine.is_own_series(name) then
            engine.fail(("eval: %s: the run records a series of this name by itself, at every step; "
                .. "call yours my_%s"):format(name, name))
        end
    end
end

local function run_declared(spec, run)
    local p = run.params
    local decay = spec.average
    if type(decay) == "function" then decay = decay_of(call("average", decay, p), "average") end
    local data = evaluation.loaders(spec, p)
    if spec.eval and not data.test then
        engine.event "eval is never called: data gives no loader `test` to call it with"
    end
    local model, name = call("model", spec.model, p, data)
    if not module.is_module(model) then refuse("model", "a module", model) end
    run:model(model, name)
    engine.layers_known()
    local epochs = whole(rawget(p, "epochs"), "params.epochs", math.max(1, engine.options().epochs))
    local window = whole(spec.accumulate, "accumulate", 1)
    -- Steps go on over the ends of epochs; at the end of the last, batches too few for one are left.
    local total = data.train:len() * epochs // window
    if total == 0 then
        engine.fail(("data: %d batches are fewer than the %d that one step accumulates"):format(
            data.train:len() * epochs, window))
    end
    local most = engine.options().steps
    if most > 0 then total = math.min(total, most) end
    local schedule = spec.schedule
    if type(schedule) == "function" then schedule = call("schedule", schedule, p) end
    if schedule and schedule.total == 0 then fit_schedule(schedule, total) end
    local parameters = model:parameters()
    local opt = call("optim", spec.optim, parameters, p, model, schedule)
    if type(opt) ~= "userdata" and not class.is_instance(opt, "optimizer") then
        refuse("optim", "an optimizer", opt)
    end
    if schedule then opt:schedule(schedule) end
    -- Of the weights as the optimizer, which may have set them, leaves them.
    local average = decay and core.optim.EMA(model, decay)
    local scaler = scaler_of(spec)
    engine.plan(total, epochs)
    if spec.eval and type(data.test) == "userdata" then
        local given = evaluation.try(spec.eval, model, data.test)
        check_names(given)
        local unknown = evaluation.unknown_result(spec, recorded(given))
        if unknown and not engine.replays() then engine.fail(unknown) end -- a run that has begun goes on
    end
    local clip_norm = core.optim.clip_norm
    local waiting, steps = 0, 0
    for epoch = 1, epochs do
        engine.epoch(epoch)
        for b in data.train do
            if waiting == 0 then opt:zero_grad() end
            local loss = autocast("loss", spec.loss, model, b)
            if not evaluation.is_one(loss) then refuse_loss(loss) end
            scaler:scale(window > 1 and loss / window or loss):backward()
            waiting = waiting + 1
            if waiting == window then
                waiting = 0
                if type(spec.clip) == "number" then
                    scaler:unscale(opt)
                    clip_norm(parameters, spec.clip)
                elseif spec.clip then
                    scaler:unscale(opt)
                    call("clip", spec.clip, parameters)
                end
                scaler:step(opt)
                if average then average:update(opt) end
                scaler:update()
                engine.log { loss = loss }
                steps = steps + 1
                if steps == total or engine.reached_limit() then break end
            end
        end
        if data.test and spec.eval then
            local metrics = recorded(evaluate(spec, model, average, data.test))
            engine.log(metrics)
            engine.result(metrics)
        end
        if steps == total or engine.reached_limit() then return end
    end
end

function train(spec)
    local options = engine.options()
    local params = settled_params(spec, options)
    local default, rules = settled_precision(spec.precision)
    for _, name in ipairs(strict.names_of(spec.results or {})) do engine.result_better(name, spec.results[name]) end
    if spec.leads then engine.result_leads(spec.leads) end
    engine.configure(spec.name, default, rules)
    local run = run_new(params, options)
    if engine.evaluation() then return evaluation.run(spec, run) end
    if engine.scan() then return scan.run(spec, run) end
    if not spec.run then return run_declared(spec, run) end
    local steps, batch = rawget(params, "steps"), rawget(params, "batch")
    if math.type(steps) == "integer" then engine.plan(steps) end
    -- Data that no loader counts: as many as the parameters say a step takes.
    if math.type(batch) == "integer" then engine.samples_a_step(batch) end
    call("run", spec.run, run)
    -- A run that was cut short may have given none of them.
    local unknown = next(results) and not engine.reached_limit() and evaluation.unknown_result(spec, results)
    if unknown then engine.event(unknown) end
end

return public
