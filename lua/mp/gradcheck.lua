-- mp.gradcheck: holds what a function says of its slopes, on the way back, against differences of what
-- it computes. It is for gradients of one's own (mp.custom), and takes any function of tensors.
--
-- Outputs are weighted and summed; each element of each input is moved both ways by two widths, and
-- the fourth-order difference is compared. A difference knows a slope only as well as sums are
-- rounded: what lies within that is no error. Two steps are tried, so that the corner of a relu beside
-- an element is taken for no mistake.
local core = require "mp.core"
local layer = require "mp.layer"
local module = require "mp.module"
local strict = require "mp.strict"
local engine = core.engine

-- In fp64, where the device computes in it, differences see far more.
local exact = { format = "fp64", step = 1e-3, rounding = 1e-14, tolerance = 1e-6 }
local usual = { format = "fp32", step = 2e-2, rounding = 1e-6, tolerance = 1e-2 }

local function is_tensor(value) return getmetatable(value) == "tensor" end

local function is_callable(value)
    local meta = getmetatable(value)
    return type(value) == "function" or module.is_module(value)
        or type(meta) == "table" and meta.__call ~= nil
end

local function is_moved(value)
    local format = is_tensor(value) and value:dtype() or ""
    return format:find "^fp" ~= nil or format == "bf16"
end

local function count_of(t)
    local count = 1
    for _, size in ipairs(t:shape()) do count = count * size end
    return count
end

local function finest()
    local computes = pcall(function() return (core.ones(1):to "fp64" * 2):item() end)
    return computes and exact or usual
end

-- All results of f in one number that depends on each of them, and the size of what was added up.
local function weighed(f, inputs, way)
    local results = table.pack(core.autocast(false, f, table.unpack(inputs, 1, inputs.n)))
    local sum, size = nil, 0
    for i = 1, results.n do
        if is_moved(results[i]) then
            local count = count_of(results[i])
            local weights = (core.arange(count):to(way.format) * 0.7 + 0.3):sin():reshape(results[i]:shape())
            local parts = results[i] * weights
            sum = sum and sum + parts:sum() or parts:sum()
            size = size + parts:detach():abs():sum():item()
        end
    end
    if not sum then engine.fail "gradcheck: f must return a tensor of a floating format" end
    return sum, size
end

local function value_at(f, inputs, way)
    return core.no_grad(function() return (weighed(f, inputs, way)):item() end)
end

-- "2, 3" for the sixth element of [2, 3]
local function place(shape, k)
    local at, before = {}, k - 1
    for d = #shape, 1, -1 do
        at[d] = before % shape[d] + 1
        before = before // shape[d]
    end
    return table.concat(at, ", ")
end

local function shown(slope)
    return slope ~= slope and "nan" or ("%.6g"):format(slope + 0) -- -0 is 0
end

-- The slope of element k of input i by differences whose width is `step`.
local function difference(f, inputs, i, k, step, way)
    local x, count = inputs[i]:detach(), count_of(inputs[i])
    local here = core.fn.equal(core.arange(count), k - 1):to(way.format):reshape(x:shape())
    local function at(factor)
        local moved = table.move(inputs, 1, inputs.n, 1, { n = inputs.n })
        moved[i] = x + here * (factor * step)
        return value_at(f, moved, way)
    end
    return (8 * (at(1) - at(-1)) - (at(2) - at(-2))) / (12 * step)
end

-- How far apart the slopes are, beyond what rounding explains; nan is as far as can be.
local function apart(found, wanted, rounding)
    local distance = math.abs(found - wanted)
    if distance ~= distance then return math.huge end
    return math.max(0, distance - rounding)
end

local function flat(t, count) return t:detach():to("fp32"):reshape(count):table() end

-- The worst element of input i: { error, at, found, wanted }.
local function look_at(f, inputs, i, gradient, size, way, most)
    local count = count_of(inputs[i])
    local found, x = gradient and flat(gradient, count), flat(inputs[i], count)
    local stride, largest, all = math.max(1, count / most), 0, {}
    for n = 0, math.min(count, most) - 1 do
        local k = math.floor(n * stride) + 1
        local one = { at = k, found = found and found[k] or 0, apart = math.huge }
        for _, share in ipairs { 1, 1 / 8 } do
            local step = way.step * share * math.max(1, math.abs(x[k]))
            local wanted = difference(f, inputs, i, k, step, way)
            local distance = apart(one.found, wanted, way.rounding * size / step)
            if distance < one.apart or not one.wanted then one.apart, one.wanted = distance, wanted end
            if one.apart == 0 then break end
        end
        largest = math.max(largest, math.abs(one.found), math.abs(one.wanted))
        all[#all + 1] = one
    end
    local worst = { error = 0 }
    for _, one in ipairs(all) do
        one.error = one.apart == 0 and 0 or one.apart / largest
        if one.error ~= one.error then one.error = math.huge end
        if one.error > worst.error then worst = one end
    end
    return worst
end

local function tolerance_of(options, way)
    local tolerance = options.tolerance or way.tolerance
    if type(tolerance) ~= "number" or tolerance ~= tolerance or tolerance < 0 then
        engine.fail(("gradcheck: tolerance: a number of at least 0 expected, got %s"):format(
            strict.shown(tolerance)))
    end
    return tolerance
end

-- The sum at the inputs themselves, and the size of what was added up.
local function weighed_here(f, inputs, way)
    local value, size = weighed(f, inputs, way)
    local number = value:item()
    if number ~= number or math.abs(number) == math.huge then
        engine.fail(("gradcheck: f gives %s for these inputs, where no slope can be told"):format(
            number ~= number and "nan" or "inf"))
    end
    if value_at(f, inputs, way) ~= number then
        engine.fail "gradcheck: f gives other values for the same inputs: turn what is random off, as m:eval() does"
    end
    return value, size
end

local gradcheck = {}

gradcheck.gradcheck = strict.declare("mp.", "gradcheck", "f, inputs [, { tolerance, most = 200 }]",
    function(f, given, options)
        options = options or {}
        if not is_callable(f) then
            engine.fail(("gradcheck: f: a function of the inputs, or a module, expected, got %s"):format(
                is_tensor(f) and "a tensor" or strict.shown(f)))
        end
        given = is_tensor(given) and { given } or given
        if type(given) ~= "table" then
            engine.fail(("gradcheck: inputs: a tensor or a list expected, got %s"):format(strict.shown(given)))
        end
        local way = finest()
        local tolerance = tolerance_of(options, way)
        local most = layer.sizes("gradcheck", "most", options.most, 1, 1, 200)[1]
        local inputs, moved = { n = #given }, {}
        for i, value in ipairs(given) do
            inputs[i] = is_moved(value) and value:to(way.format):detach():clone():requires_grad(true) or value
            if is_moved(value) then moved[#moved + 1] = i end
        end
        if #moved == 0 then engine.fail "gradcheck: no input is a tensor of a floating format" end
        local asked = {}
        for n, i in ipairs(moved) do asked[n] = inputs[i] end
        local value, size = weighed_here(f, inputs, way)
        local gradients = core.grad(value, asked)
        local largest = 0
        for n, i in ipairs(moved) do
            local worst = look_at(f, inputs, i, gradients[n], size, way, most)
            if worst.error > tolerance then
                local how = worst.error == math.huge and "" or (": apart by %.2g of the largest slope, "
                    .. "%g is allowed"):format(worst.error, tolerance)
                engine.fail(("gradcheck: input %d, element [%s]: backward gives %s, differences in %s %s%s"):format(
                    i, place(inputs[i]:shape(), worst.at), shown(worst.found), way.format,
                    shown(worst.wanted), how))
            end
            largest = math.max(largest, worst.error)
        end
        return largest
    end)

return gradcheck
