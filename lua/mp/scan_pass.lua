-- What a format does to a unit of a model (a layer that multiplies, or a block of them; a norm or an
-- embedding) in one pass over a batch: the loss and the gradients beside those of fp32, and what all
-- units cost in it. Part of mp.scan; trains nothing.
local core = require "mp.core"
local engine = core.engine

local public = {}

local FIRST_SCALE = 2 ^ 16

-- Each unit to format_of(its number). A norm or an embedding that is in fp32 rests, as autocast has it;
-- for one that is low its kind is kept no more.
function public.set_units(units, format_of)
    local released = {}
    for u, unit in ipairs(units) do
        if unit.kept and format_of(u) ~= "fp32" then released[#released + 1] = unit.kept end
    end
    engine.scan_release(released)
    for u, unit in ipairs(units) do
        local format = format_of(u)
        if unit.kept and format == "fp32" then format = unit.rests end
        for _, number in ipairs(unit.layers) do engine.scan_set(number, format) end
    end
end

-- All that multiply to a format; norms and embeddings too where that is said.
function public.set_all(units, format, kept_too)
    public.set_units(units, function(u) return units[u].kept and not kept_too and "fp32" or format end)
end

local function set_alone(units, alone, format)
    public.set_units(units, function(u) return u == alone and format or "fp32" end)
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

function public.is_finite(x) return x == x and math.abs(x) < math.huge end

local function degrees(dot, a, b)
    if not (a > 0 and b > 0) then return 0 end
    return math.deg(math.acos(math.max(-1, math.min(1, dot / math.sqrt(a * b)))))
end

-- ---- fp32: what all is held against ---------------------------------------------------------------

-- Batches to look at, and of each the loss and the gradients in fp32; what these differ by from
-- batch to batch, of all and of each unit.
function public.look_at_fp32(scene, asked)
    local batches, mean = {}, {}
    for b in scene.data.train do
        local copy = {}
        for key, value in pairs(b) do copy[key] = type(value) == "userdata" and value:clone() or value end
        local loss, gradients = pass(scene, copy, 1)
        if not loss or not public.is_finite(squares(gradients)) then
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
    local loss = 0
    for _, batch in ipairs(batches) do loss = loss + batch.loss / #batches end
    engine.scan_loss(loss)
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
        if public.is_finite(squares(gradients)) then return scale, loss, gradients, flushed, overflowed end
        if scale <= 1 then return nil end
        scale = scale / 4
    end
end

-- Of a batch norm the running statistics, which no loss in training shows.
local function are_finite(tensors)
    for _, tensor in ipairs(tensors) do
        if not public.is_finite(tensor:detach():to("fp32"):abs():sum():item()) then return false end
    end
    return true
end

function public.try(scene, at_unit, format, batches)
    local unit, rounded = scene.units[at_unit], {}
    -- of a norm only what it computes in itself: beside scaled formats that is fp32
    local rounds = not unit.kept or kept(format) == format
    for i in pairs(unit.tensors) do rounded[i] = rounds and format or nil end
    set_alone(scene.units, at_unit, format)
    engine.scan_forget()
    local sums = { own_error = 0, all_error = 0, own_noise = 0, all_noise = 0, own_degrees = 0, all_degrees = 0,
        loss_change = 0, flushed = 0, overflowed = 0, scale = FIRST_SCALE }
    local counted
    for at, batch in ipairs(batches) do
        if at == 1 then engine.scan_count() end -- once is enough, and waits for the device
        local scale, loss, gradients, flushed, overflowed = finite_pass(scene, batch.b, format, rounded)
        if at == 1 then counted = engine.scan_counted() end
        if not scale or (unit.kept and not are_finite(scene.buffers)) then
            public.set_all(scene.units, "fp32")
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
    public.set_all(scene.units, "fp32")
    sums.damage = math.max(sums.own_noise, sums.all_noise)
    for name, value in pairs(counted or {}) do sums[name] = value end
    return sums
end

-- ---- times ------------------------------------------------------------------------------------------

-- Seconds of call(at) for each `at` up to `count`, a time a round: rounds go through all in turn,
-- forwards and backwards, so that what else the machine is busy with hits them alike. begin(at)
-- comes before, and one call that makes what later ones find made. A time is the median of some
-- calls, of which there are more where they are short. Tells of each turn.
function public.in_rounds(count, begin, call, tell)
    local least, most, turn, most_calls, patience = 6, 9, 0.03, 20, 20
    local rounds, began = {}, engine.seconds()
    for at = 1, count do rounds[at] = {} end
    for round = 0, most do -- the first warms up
        if round > least and engine.seconds() - began > patience then break end
        for i = 1, count do
            local at = round % 2 == 0 and i or count + 1 - i
            begin(at)
            call(at)
            local times, last = {}, engine.seconds()
            local ends = last + turn
            repeat
                call(at)
                local now = engine.seconds()
                times[#times + 1], last = now - last, now
            until round == 0 or last >= ends or #times == most_calls
            table.sort(times)
            rounds[at][round] = times[(#times + 1) // 2]
            tell(round * count + i, (most + 1) * count)
        end
    end
    return rounds
end

-- What a forward and backward pass takes with all units in a format that multiply, and then with norms
-- and embeddings too: its time in each round, and the most bytes of activations.
function public.look_at_costs(scene, asked, batch)
    local names, bytes, has_kept = { table.unpack(asked.formats) }, {}, false
    local fp32 = #names + 1
    names[fp32] = "fp32"
    for _, unit in ipairs(scene.units) do has_kept = has_kept or unit.kept ~= nil end
    for at = 1, has_kept and #asked.formats or 0 do names[fp32 + at] = asked.formats[at] end
    local function set(at) public.set_all(scene.units, names[at], at > fp32) end
    local function costs()
        for _, tensor in ipairs(scene.tensors) do tensor:zero_grad() end
        core.autocast(scene.spec.loss, scene.model, batch):backward()
    end
    local rounds = public.in_rounds(#names, function(at)
        set(at)
        engine.settle()
    end, costs, function(done, of) engine.scan_goes_on("speed", done, of) end)
    for at = 1, #names do -- in passes of their own: in a round it is time that decides what is garbage
        set(at)
        bytes[at] = engine.scan_activations(costs)
    end
    public.set_all(scene.units, "fp32")
    for at = fp32 + 1, #names do engine.scan_lowered(at - fp32, rounds[at], bytes[at]) end
    for at = 1, fp32 do engine.scan_cost(at, rounds[at], bytes[at]) end
end

return public
