-- mp.scan: which layers of a model may go into which formats. From one state each unit (a layer that
-- multiplies, or a block of them) is put into each format alone, on the same batches as fp32; what
-- that does to gradients is held against what they differ by from batch to batch. Of that follows a
-- policy, which is then trained on, beside fp32 and beside all units low.
local core = require "mp.core"
local evaluation = require "mp.evaluation"
local module = require "mp.module"
local engine = core.engine

local public = {}

local FIRST_SCALE = 2 ^ 16

-- ---- the model --------------------------------------------------------------------------------------

local function declared(spec)
    for _, field in ipairs { "data", "model", "loss" } do
        if not spec[field] then
            engine.fail(("scan: %s trains by a loop of its own: declare `data`, `model` and `loss` (and `optim`, "
                .. "to verify) beside its `run`"):format(spec.name))
        end
    end
end

-- The data from their beginning: a loader that was gone through goes on with another order.
local function fresh_data(scene)
    core.seed(1)
    local data = scene.spec.data(scene.params)
    if type(data) ~= "table" or not data.train then
        evaluation.refuse("data", "a table with a loader `train`, as in { train = .., test = .. }", data)
    end
    return data
end

-- What there is to look at, as { name =, layers = { numbers }, tensors = { parameters } }.
local function find_units(model, prefix, by_block)
    local layers, units, by_name, unit_of = engine.scan_layers(), {}, {}, {}
    local is_parent = {}
    for _, layer in ipairs(layers) do is_parent[layer.parent] = true end
    for number, layer in ipairs(layers) do
        if layer.products and not is_parent[number] then
            local inside = prefix and layer.name:sub(#prefix + 2) or layer.name
            -- "blocks.1.up" belongs to the block "blocks.1", "encoder.up" to "encoder"
            local block = inside:match "^[^.]*%.%d+" or inside:match "^[^.]*"
            local name = by_block and (prefix and prefix .. "." .. block or block) or layer.name
            local unit = by_name[name]
            if not unit then
                unit = { name = name, layers = {}, tensors = {}, count = 0 }
                by_name[name], units[#units + 1] = unit, unit
            end
            unit.layers[#unit.layers + 1] = number
            unit_of[inside] = unit
        end
    end
    local all, seen = {}, {}
    for name, tensor in model:named_parameters() do
        local unit = unit_of[name:match "^(.*)%.[^.]*$" or ""]
        if not seen[tensor] then
            seen[tensor] = true
            all[#all + 1] = tensor
            if unit then
                unit.tensors[#all] = true
                unit.count = unit.count + #tensor:reshape(-1)
            end
        end
    end
    return units, all
end

local function set_unit(unit, format)
    for _, number in ipairs(unit.layers) do engine.scan_set(number, format) end
end

local function set_all(units, format)
    for _, unit in ipairs(units) do set_unit(unit, format) end
end

-- ---- a pass -----------------------------------------------------------------------------------------

-- Whether a layer keeps its gradients in that format; those with scales of their own are rounded to
-- bf16, as beside their products.
local function kept(format)
    return (format == "fp16" or format == "bf16") and format or format ~= "fp32" and "bf16" or nil
end

-- The loss and the true gradients of a batch: of all tensors, in fp32, as the layers' format would
-- have them. `rounded` says for which of them in which format. nil: something was not finite.
local function pass(scene, b, scale, rounded)
    for _, tensor in ipairs(scene.tensors) do tensor:zero_grad() end
    core.seed(1)
    local loss = core.autocast(scene.spec.loss, scene.model, b)
    local value = loss:item()
    if value ~= value or math.abs(value) == math.huge then return nil end
    (loss * scale):backward()
    local gradients, flushed, overflowed = {}, {}, {}
    for i, tensor in ipairs(scene.tensors) do
        local g = tensor:grad()
        if g then
            g = g:to "fp32"
            if rounded and rounded[i] and kept(rounded[i]) then
                local low = g:to(kept(rounded[i])):to "fp32"
                flushed[i] = (g:abs():greater(0):to "fp32" - low:abs():greater(0):to "fp32"):sum():item()
                overflowed[i] = low:abs():greater(3.4e38):to("fp32"):sum():item()
                g = low
            end
            gradients[i] = g / scale
        end
    end
    return value, gradients, flushed, overflowed
end

local function squares(list, only)
    local sum = 0
    for i, g in pairs(list) do
        if not only or only[i] then sum = sum + g:square():sum():item() end
    end
    return sum
end

local function product(a, b, only)
    local sum = 0
    for i, g in pairs(a) do
        if b[i] and (not only or only[i]) then sum = sum + (g * b[i]):sum():item() end
    end
    return sum
end

local function differences(a, b)
    local list = {}
    for i, g in pairs(a) do list[i] = b[i] and g - b[i] or g end
    return list
end

local function is_finite(x) return x == x and math.abs(x) < math.huge end

local function degrees(dot, a, b)
    if not (a > 0 and b > 0) then return 0 end
    return math.deg(math.acos(math.max(-1, math.min(1, dot / math.sqrt(a * b)))))
end

-- ---- fp32: what all is held against ---------------------------------------------------------------

-- Batches to look at, and of each the loss and the gradients in fp32; what these differ by from
-- batch to batch, of all and of each unit.
local function look_at_fp32(scene, asked)
    local batches, mean = {}, {}
    for b in scene.data.train do
        local copy = {}
        for key, value in pairs(b) do copy[key] = type(value) == "userdata" and value:clone() or value end
        local loss, gradients = pass(scene, copy, 1)
        if not loss or not is_finite(squares(gradients)) then
            engine.fail("scan: the loss or its gradients are not finite in fp32 either: the model is broken before any "
                .. "format is; `mpbench run` says where")
        end
        batches[#batches + 1] = { b = copy, loss = loss, gradients = gradients }
        engine.scan_goes_on("fp32", #batches, asked.batches)
        if #batches == asked.batches then break end
    end
    for i in pairs(batches[1].gradients) do
        for _, batch in ipairs(batches) do
            mean[i] = mean[i] and mean[i] + batch.gradients[i] / #batches or batch.gradients[i] / #batches
        end
    end
    local function noise(only)
        local sum = 0
        for _, batch in ipairs(batches) do sum = sum + squares(differences(batch.gradients, mean), only) end
        return math.sqrt(sum / math.max(1, #batches - 1))
    end
    scene.noise = noise()
    for _, unit in ipairs(scene.units) do unit.noise = noise(unit.tensors) end
    return batches
end

-- ---- a cell ---------------------------------------------------------------------------------------

-- The highest loss scale at which nothing overflows, as dynamic scaling would find it.
local function finite_pass(scene, b, format, rounded)
    local scale = kept(format) == "fp16" and FIRST_SCALE or 1
    while true do
        local loss, gradients, flushed, overflowed = pass(scene, b, scale, rounded)
        if not loss then return nil end
        if is_finite(squares(gradients)) then return scale, loss, gradients, flushed, overflowed end
        if scale <= 1 then return nil end
        scale = scale / 4
    end
end

local function try(scene, unit, format, batches)
    local rounded = {}
    for i in pairs(unit.tensors) do rounded[i] = format end
    set_unit(unit, format)
    local sums = { own_error = 0, all_error = 0, own_noise = 0, all_noise = 0, own_degrees = 0, all_degrees = 0,
        loss_change = 0, flushed = 0, overflowed = 0, scale = FIRST_SCALE }
    for _, batch in ipairs(batches) do
        local scale, loss, gradients, flushed, overflowed = finite_pass(scene, batch.b, format, rounded)
        if not scale then
            set_unit(unit, "fp32")
            return { broken = true, damage = math.huge }
        end
        local part = 1 / #batches
        local apart = differences(gradients, batch.gradients)
        for _, side in ipairs { { "own", unit.tensors, unit.noise }, { "all", nil, scene.noise } } do
            local only, noise = side[2], side[3]
            local length = squares(batch.gradients, only)
            local error = math.sqrt(squares(apart, only))
            local share = length > 0 and error / math.sqrt(length) or 0
            sums[side[1] .. "_error"] = sums[side[1] .. "_error"] + part * share
            -- of one batch alone nothing differs: then the length stands for it
            local against = noise > 0 and noise or math.sqrt(length)
            sums[side[1] .. "_noise"] = sums[side[1] .. "_noise"] + part * (against > 0 and error / against or 0)
            sums[side[1] .. "_degrees"] = sums[side[1] .. "_degrees"] + part
                * degrees(product(gradients, batch.gradients, only), squares(gradients, only), length)
        end
        sums.loss_change = sums.loss_change + part * math.abs(loss - batch.loss) / math.max(math.abs(batch.loss), 1e-30)
        for i in pairs(unit.tensors) do
            sums.flushed = sums.flushed + part * (flushed[i] or 0) / math.max(1, unit.count)
            sums.overflowed = sums.overflowed + part * (overflowed[i] or 0) / math.max(1, unit.count)
        end
        sums.scale = math.min(sums.scale, scale)
    end
    set_unit(unit, "fp32")
    sums.damage = math.max(sums.own_noise, sums.all_noise)
    return sums
end

-- The seconds of a forward and backward pass with all units so, the quickest of several that take
-- turns (what other programs take from a pass only makes it slower), and the most bytes of
-- activations.
local function look_at_costs(scene, asked, batch)
    local rounds = 8
    local names, times, bytes = { table.unpack(asked.formats) }, {}, {}
    names[#names + 1] = "fp32"
    for round = 0, rounds do -- the first warms up
        for at, format in ipairs(names) do
            set_all(scene.units, format)
            engine.settle()
            engine.scan_activations()
            local began = engine.seconds()
            for _, tensor in ipairs(scene.tensors) do tensor:zero_grad() end
            core.autocast(scene.spec.loss, scene.model, batch):backward()
            local took = engine.seconds() - began
            times[at], bytes[at] = times[at] or {}, engine.scan_activations()
            if round > 0 then table.insert(times[at], took) end
            engine.scan_goes_on("speed", round * #names + at, (rounds + 1) * #names)
        end
    end
    set_all(scene.units, "fp32")
    for at in ipairs(names) do
        table.sort(times[at])
        times[at] = times[at][1]
        engine.scan_cost(at, times[at], bytes[at])
    end
    return times, bytes
end

-- ---- a policy ---------------------------------------------------------------------------------------

-- Formats from the one that serves best to fp32: by time, and where times are alike by memory.
local function ranking(asked, times, bytes)
    local alike, order = 1.05, {}
    for at = 1, #asked.formats + 1 do order[at] = at end
    table.sort(order, function(a, b)
        if times[a] * alike < times[b] or times[b] * alike < times[a] then return times[a] < times[b] end
        if bytes[a] ~= bytes[b] then return bytes[a] < bytes[b] end
        return a < b
    end)
    return order
end

local function propose(scene, asked, cells, order)
    local policy, fp32 = {}, #asked.formats + 1
    for u in ipairs(scene.units) do
        policy[u] = fp32
        for _, at in ipairs(order) do
            if at == fp32 or cells[u][at].damage <= asked.tolerance then
                policy[u] = at
                break
            end
        end
    end
    return policy
end

-- The unit that suffers most goes to the next format in which it suffers less. False: all are in
-- fp32.
local function make_higher(scene, asked, cells, policy)
    local fp32, worst = #asked.formats + 1, nil
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

-- ---- training on ------------------------------------------------------------------------------------

local function keep(scene)
    local copies = {}
    for _, tensor in ipairs(scene.state) do copies[#copies + 1] = { tensor, tensor:detach():clone() } end
    return copies
end

local function restore(copies)
    core.no_grad(function()
        for _, pair in ipairs(copies) do pair[1]:copy(pair[2]) end
    end)
end

-- Batches without end, from the n-th on.
local function batches_from(loader, first)
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

-- So many steps; the mean loss of the last third, and the seconds of a step, by the quickest quarter.
local function train(scene, steps, first, seed, tell)
    local spec, times, sum, counted = scene.spec, {}, 0, 0
    local data = fresh_data(scene)
    core.seed(seed)
    local opt = spec.optim(scene.tensors, scene.params, scene.model, nil)
    local scaler = core.scaler "dynamic"
    local last = math.max(1, steps // 3)
    local step, began = 0, engine.seconds()
    for b in batches_from(data.train, first) do
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
        step = step + 1
        if step > steps - last then
            sum, counted = sum + loss:item(), counted + 1
        end
        local now = engine.seconds()
        times[step], began = now - began, now
        tell(step)
        if step == steps then break end
    end
    if step == 0 then engine.fail "scan: data: the loader `train` gave no batch" end
    table.sort(times)
    return sum / counted, times[(#times + 3) // 4]
end

-- Of the shares by which the losses of a policy are above fp32's: mean and 95 % interval.
local function above_of(losses, against)
    local student = { 12.71, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262 }
    local shares, mean = {}, 0
    for seed, loss in ipairs(losses) do shares[seed] = (loss - against[seed]) / math.abs(against[seed]) end
    for _, share in ipairs(shares) do mean = mean + share / #shares end
    if #shares < 2 then return mean, nil end
    local squared = 0
    for _, share in ipairs(shares) do squared = squared + (share - mean) ^ 2 end
    local deviation = math.sqrt(squared / (#shares - 1))
    return mean, (student[#shares - 1] or 2) * deviation / math.sqrt(#shares)
end

-- Trains all seeds with a format a unit, unless that was done under another name.
local function verify(scene, asked, label, format_of, against)
    local losses, times, broken, sum, key = {}, {}, 0, 0, ""
    for u in ipairs(scene.units) do key = key .. format_of(u) .. " " end
    local known = scene.trained[key]
    if known then
        engine.scan_training(label, known)
        return known.losses, known.within
    end
    for seed = 1, asked.seeds do
        restore(scene.copies)
        for u, unit in ipairs(scene.units) do set_unit(unit, format_of(u)) end
        local loss, seconds = train(scene, asked.steps, (seed - 1) * asked.steps, seed, function(step)
            engine.scan_goes_on(("trains %s, seed %d"):format(label, seed), step, asked.steps)
        end)
        engine.settle()
        losses[seed], times[seed] = loss, seconds
        if not is_finite(loss) then broken = broken + 1 end
        sum = sum + loss
    end
    set_all(scene.units, "fp32")
    table.sort(times)
    local above, interval = above_of(losses, against or losses)
    local within = broken == 0 and above <= asked.within
    scene.trained[key] = { loss = sum / asked.seeds, above = above, interval = interval, losses = losses,
        seconds = times[(#times + 1) // 2], broken = broken, within = within }
    engine.scan_training(label, scene.trained[key])
    return losses, within
end

local function train_on(scene, asked, cells, policy)
    local most_rounds, fp32 = 6, #asked.formats + 1
    local function name(at) return asked.formats[at] or "fp32" end
    local base = verify(scene, asked, "fp32", function() return "fp32" end)
    for _, format in ipairs(asked.formats) do
        verify(scene, asked, "all " .. format, function() return format end, base)
    end
    for round = 0, most_rounds do
        local _, within = verify(scene, asked, "policy", function(u) return name(policy[u]) end, base)
        engine.scan_policy(policy, round, within)
        local is_high = true
        for u in ipairs(scene.units) do is_high = is_high and policy[u] == fp32 end
        if within or is_high then return end
        if not make_higher(scene, asked, cells, policy) then return end
    end
end

-- ---- all of it ------------------------------------------------------------------------------------

function public.run(spec, run)
    declared(spec)
    local asked = engine.scan()
    for _, name in ipairs { "batches", "warm_up", "steps", "seeds" } do asked[name] = math.tointeger(asked[name]) end
    local scene = { spec = spec, params = run.params }
    scene.data = fresh_data(scene)
    local model, prefix = spec.model(run.params, scene.data)
    if not module.is_module(model) then evaluation.refuse("model", "a module", model) end
    scene.model = run:model(model, prefix)
    engine.layers_known()
    scene.tensors = scene.model:parameters()
    scene.state = module.state(scene.model)
    scene.units, scene.trained = {}, {}
    if asked.warm_up > 0 and spec.optim then
        train(scene, asked.warm_up, 0, 1, function(step)
            engine.scan_goes_on("trains in fp32 first", step, asked.warm_up)
        end)
    end
    scene.copies = keep(scene)
    local first = batches_from(scene.data.train, 0)() -- which layers multiply is seen as they do
    if not first then engine.fail "scan: data: the loader `train` gave no batch" end
    core.autocast(spec.loss, scene.model, first)
    local units
    units, scene.tensors = find_units(scene.model, prefix, asked.by_block)
    for _, unit in ipairs(units) do
        if engine.scan_unit(unit.name, unit.count) then table.insert(scene.units, unit) end
    end
    if #scene.units == 0 then
        engine.fail "scan: no layer of the model multiplies: there is nothing that a format could gain"
    end
    restore(scene.copies)
    local batches, cells = look_at_fp32(scene, asked), {}
    for u, unit in ipairs(scene.units) do
        cells[u] = {}
        for at, format in ipairs(asked.formats) do
            cells[u][at] = try(scene, unit, format, batches)
            engine.scan_cell(u, at, cells[u][at])
            engine.settle()
            engine.scan_goes_on(unit.name, (u - 1) * #asked.formats + at, #scene.units * #asked.formats)
        end
    end
    local times, bytes = look_at_costs(scene, asked, batches[1].b)
    local policy = propose(scene, asked, cells, ranking(asked, times, bytes))
    engine.scan_policy(policy, 0, false)
    batches = nil -- luacheck: ignore
    if asked.steps > 0 and spec.optim then train_on(scene, asked, cells, policy) end
end

return public
