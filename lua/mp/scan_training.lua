-- Trains with a policy that a scan made, beside fp32 and beside all units low, on several seeds, and
-- makes the policy higher where it trains worse: by its loss, and by the result that the experiment
-- evaluates itself by. Part of mp.scan.
local core = require "mp.core"
local evaluation = require "mp.evaluation"
local passes = require "mp.scan_pass"
local strict = require "mp.strict"
local engine = core.engine

local public = {}

-- The data from their beginning: a loader that was gone through goes on with another order.
function public.fresh_data(scene)
    core.seed(1)
    return evaluation.loaders(scene.spec, scene.params)
end

-- Norms and embeddings that are low rest again, all at once, since what they do to an evaluation shows
-- in no gradient; then the unit that suffers most goes to the next format in which it suffers less.
-- False: all are in fp32.
local function make_higher(scene, asked, cells, policy)
    local fp32, worst, was_low = #asked.formats + 1, nil, false
    for u, unit in ipairs(scene.units) do
        if unit.kept and policy[u] ~= fp32 then policy[u], was_low = fp32, true end
    end
    if was_low then return true end
    for u in ipairs(scene.units) do
        local damage = policy[u] ~= fp32 and cells[u][policy[u]].damage
        if damage and (not worst or damage > cells[worst][policy[worst]].damage) then worst = u end
    end
    if not worst then return false end
    local best, now = fp32, cells[worst][policy[worst]].damage
    for at = 1, #asked.formats do
        local damage = cells[worst][at].damage
        if damage < now / 2 and (best == fp32 or damage > cells[worst][best].damage) then best = at end
    end
    policy[worst] = best
    return true
end

function public.keep(scene)
    local copies = {}
    for _, tensor in ipairs(scene.state) do copies[#copies + 1] = { tensor, tensor:detach():clone() } end
    return copies
end

function public.restore(copies)
    core.no_grad(function()
        for _, pair in ipairs(copies) do pair[1]:copy(pair[2]) end
    end)
end

-- Batches without end, from the n-th on.
function public.batches_from(loader, first)
    local passed = 0
    return coroutine.wrap(function()
        while true do
            local began = passed
            for b in loader do
                passed = passed + 1
                if passed > first then coroutine.yield(b) end
            end
            if passed == began then return end
        end
    end)
end

local function one_step(scene, opt, scaler, b)
    local spec = scene.spec
    opt:zero_grad()
    local loss = core.autocast(spec.loss, scene.model, b)
    scaler:scale(loss):backward()
    if type(spec.clip) == "number" then
        scaler:unscale(opt)
        core.optim.clip_norm(scene.tensors, spec.clip)
    elseif spec.clip then
        scaler:unscale(opt)
        spec.clip(scene.tensors)
    end
    scaler:step(opt)
    scaler:update()
    return loss
end

local function optimizer(scene) return scene.spec.optim(scene.tensors, scene.params, scene.model, nil) end

-- So many steps; the mean loss of the last third, the seconds of a step, by the quickest quarter, the
-- data, and how many steps were skipped.
function public.train(scene, steps, first, seed, tell)
    local times, sum, counted, skipped = {}, 0, 0, 0
    local data = public.fresh_data(scene)
    core.seed(seed)
    engine.scan_forget()
    local opt, scaler = optimizer(scene), core.scaler(scene.scale)
    local last = math.max(1, steps // 3)
    local done, began = 0, engine.seconds()
    for b in public.batches_from(data.train, first) do
        local loss = one_step(scene, opt, scaler, b)
        done = done + 1
        if not scaler:applied(opt) then skipped = skipped + 1 end
        if done > steps - last then
            sum, counted = sum + loss:item(), counted + 1
        end
        local now = engine.seconds()
        times[done], began = now - began, now
        tell(done)
        if done == steps then break end
    end
    if done == 0 then engine.fail "scan: data: the loader `train` gave no batch" end
    table.sort(times)
    return sum / counted, times[(#times + 3) // 4], data, skipped
end

-- What `eval` says of the model as it is, of the result that people look at first: of the test data
-- all, or as much as tells a per cent in a part of the time that a training takes. nil: the experiment
-- evaluates nothing.
local function result_of(scene, data, tell)
    local enough, seen = 4096, 0
    local eval = scene.spec.eval
    if not eval or not data.test then return nil end
    local values = evaluation.means(function(model, b)
        seen = seen + b.count
        return eval(model, b)
    end, scene.model, data.test, function(batches)
        tell(batches)
        return seen >= enough
    end)
    local leads = scene.spec.leads
    local names = leads and values[leads] and { leads } or strict.names_of(values)
    return names[1] and values[engine.scan_metric(names)]
end

local function mean_of(values)
    local sum = 0
    for _, value in ipairs(values) do sum = sum + value end
    return sum / #values
end

local function deviation_of(values)
    local mean, squared = mean_of(values), 0
    for _, value in ipairs(values) do squared = squared + (value - mean) ^ 2 end
    return math.sqrt(squared / (#values - 1))
end

-- Whether all seeds differ by the same: by chance, as of results that can be few numbers.
local function differ_alike(values, against)
    local least, most, largest = math.huge, -math.huge, 0
    for seed, value in ipairs(values) do
        least, most = math.min(least, value - against[seed]), math.max(most, value - against[seed])
        largest = math.max(largest, math.abs(value), math.abs(against[seed]))
    end
    return most ~= 0 and most - least <= 1e-15 * largest
end

-- Of the 95 % interval of a mean, in standard errors, by one less than what it is the mean of.
local student = {
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131,
    2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045,
}

-- By how much numbers are above those of fp32, seed by seed, as shares of their mean: mean and 95 %
-- interval. Where that is 0 there is nothing to be a share of, and it is the difference itself. Where
-- pairs tell nothing of chance, what seeds scatter by does, as where runs are compared.
local function above_of(values, against)
    local of, shares = math.abs(mean_of(against)), {}
    if of == 0 then of = 1 end
    for seed, value in ipairs(values) do
        local same = value == against[seed] -- of two that are infinite, too
        shares[seed] = same and 0 or (value - against[seed]) / of
    end
    local count = #shares
    if count < 2 then return mean_of(shares), nil end
    local deviation = deviation_of(shares)
    if differ_alike(values, against) then
        deviation = math.sqrt(deviation_of(values) ^ 2 + deviation_of(against) ^ 2) / of
    end
    return mean_of(shares), (student[count - 1] or 2.04) * deviation / math.sqrt(count)
end

local function set_units(scene, asked, formats)
    passes.set_units(scene.units, function(u) return asked.formats[formats[u]] or "fp32" end)
end

-- Trains all seeds with these formats, an index a unit; those that were trained so before, by whatever
-- name, are not trained again.
local function verify(scene, asked, label, formats, base)
    local own, times, broken = { formats = formats, losses = {}, results = {} }, {}, 0
    for seed = 1, asked.seeds do
        local loss, seconds, result, skipped = engine.scan_trained(formats, seed)
        if not loss then
            local name = ("%s, seed %d"):format(label, seed)
            local data
            public.restore(scene.copies)
            set_units(scene, asked, formats)
            local first = (seed - 1) * asked.steps
            loss, seconds, data, skipped = public.train(scene, asked.steps, first, seed, function(step)
                engine.scan_goes_on("trains " .. name, step, asked.steps)
            end)
            result = result_of(scene, data, function(batches) engine.scan_goes_on("evaluates " .. name, batches) end)
            engine.settle()
        end
        engine.scan_seed(label, formats, seed, loss, seconds, result, skipped)
        own.losses[seed], own.results[seed], times[seed] = loss, result, seconds
        if not passes.is_finite(loss) then broken = broken + 1 end
    end
    passes.set_all(scene.units, "fp32")
    table.sort(times)
    base = base or own
    local found = { seconds = times[(#times + 1) // 2], broken = broken, loss = mean_of(own.losses) }
    found.above, found.interval = above_of(own.losses, base.losses)
    found.within = broken == 0 and found.above <= asked.within
    local metric = engine.scan_metric()
    if metric then
        found.result = mean_of(own.results)
        found.worse, found.worse_interval = above_of(own.results, base.results)
        if not evaluation.falls(scene.spec, metric) then found.worse = 0 - found.worse end -- and no -0
        local counts = passes.is_finite(mean_of(base.results)) -- as scan_result_counts
        found.within = found.within and (not counts or found.worse <= asked.within)
    end
    own.within = found.within
    engine.scan_training(label, formats, found)
    return own
end

-- Steps of all trainings in turn, each from the same weights: what trains minutes apart finds another
-- machine. A scaler goes on from turn to turn, so that its first skips are not what is timed.
local function time_steps(scene, asked, trainings)
    local distinct, seen, scalers, opt = {}, {}, {}, nil
    for _, training in ipairs(trainings) do
        local key = table.concat(training.formats, " ")
        if not seen[key] then distinct[#distinct + 1] = training.formats end
        seen[key] = true
    end
    local known = true
    for _, formats in ipairs(distinct) do known = known and engine.scan_timed(formats) end
    if known then return end
    local next_batch = public.batches_from(public.fresh_data(scene).train, 0)
    local rounds = passes.in_rounds(#distinct, function(at)
        public.restore(scene.copies)
        set_units(scene, asked, distinct[at])
        engine.settle()
        engine.scan_forget()
        opt, scalers[at] = optimizer(scene), scalers[at] or core.scaler(scene.scale)
    end, function(at) one_step(scene, opt, scalers[at], next_batch()) end,
        function(done, of) engine.scan_goes_on("speed of steps", done, of) end)
    passes.set_all(scene.units, "fp32")
    for at, formats in ipairs(distinct) do engine.scan_rounds(formats, rounds[at]) end
end

function public.train_on(scene, asked, cells, policy)
    local most_rounds, fp32 = 6, #asked.formats + 1
    local function all_in(at) -- norms and embeddings as autocast has them
        local formats = {}
        for u, unit in ipairs(scene.units) do formats[u] = unit.kept and fp32 or at end
        return formats
    end
    local all = { verify(scene, asked, "fp32", all_in(fp32)) }
    local base, round = all[1], 0
    for at, format in ipairs(asked.formats) do
        table.insert(all, verify(scene, asked, "all " .. format, all_in(at), base))
    end
    local last = verify(scene, asked, "policy", policy, base)
    while not last.within and round < most_rounds and make_higher(scene, asked, cells, policy) do
        engine.scan_policy(policy, round, false)
        round = round + 1
        last = verify(scene, asked, "policy", policy, base)
    end
    table.insert(all, last)
    time_steps(scene, asked, all)
    local chosen, holds = engine.scan_chosen()
    if chosen and table.concat(chosen, " ") ~= table.concat(last.formats, " ") then
        verify(scene, asked, "policy", chosen, base) -- trained already
    end
    engine.scan_policy(chosen or policy, round, holds or false)
end

return public
