-- Convolutions of every number of dimensions, either way round, against sums written out.
local mp = require "mp"
local testing = require "testing"
local nn, F, test, equal, near, fails =
    mp.nn, mp.fn, testing.test, testing.equal, testing.near, testing.fails

-- The places of a window: {output, tap} to input, of one dimension.
local function reaches(size, kernel, stride, padding, dilation)
    local count = (size + 2 * padding - dilation * (kernel - 1) - 1) // stride + 1
    return count, function(o, k)
        local at = (o - 1) * stride - padding + (k - 1) * dilation + 1
        return at >= 1 and at <= size and at or nil
    end
end

-- Every (output place, tap, input place) of a volume's convolution; sizes are of the input.
local function each_reach(sizes, kernel, o, visit)
    local counts, at = {}, {}
    for d = 1, 3 do
        counts[d], at[d] = reaches(sizes[d], kernel[d], o.stride[d], o.padding[d], o.dilation[d])
    end
    for a = 1, counts[1] do for b = 1, counts[2] do for c = 1, counts[3] do
        for i = 1, kernel[1] do for j = 1, kernel[2] do for k = 1, kernel[3] do
            local x, y, z = at[1](a, i), at[2](b, j), at[3](c, k)
            if x and y and z then visit({ a, b, c }, { i, j, k }, { x, y, z }) end
        end end end
    end end end
    return counts
end

local function nested(sizes, channels)
    local whole = {}
    for a = 1, sizes[1] do
        whole[a] = {}
        for b = 1, sizes[2] do
            whole[a][b] = {}
            for c = 1, sizes[3] do
                local row = {}
                for i = 1, channels do row[i] = 0 end
                whole[a][b][c] = row
            end
        end
    end
    return whole
end

local function weight_at(layer, first, tap, second, o, depth_first)
    -- [first, height, width, second] with the depth before the channels of a group
    local weight = layer.table
    local per = o.per
    if depth_first then -- turned around: depth and input channel lead
        local group, inner = (first - 1) // per, (first - 1) % per
        return weight[(group * o.kernel[1] + tap[1] - 1) * per + inner + 1][tap[2]][tap[3]][second]
    end
    return weight[first][tap[2]][tap[3]][(tap[1] - 1) * per + second]
end

-- One sample of either kind, as nested tables [D][H][W][channels].
local function written_out(layer, x, sizes, inputs, outputs, o)
    if not o.transposed then
        local counts = each_reach(sizes, o.kernel, o, function() end)
        local y = nested(counts, outputs)
        each_reach(sizes, o.kernel, o, function(at, tap, from)
            for out = 1, outputs do
                local group = (out - 1) // (outputs // o.groups)
                for c = 1, o.per do
                    y[at[1]][at[2]][at[3]][out] = y[at[1]][at[2]][at[3]][out]
                        + weight_at(layer, out, tap, c, o)
                        * x[from[1]][from[2]][from[3]][group * o.per + c]
                end
            end
        end)
        return y, counts
    end
    local larger = {}
    for d = 1, 3 do
        larger[d] = (sizes[d] - 1) * o.stride[d] - 2 * o.padding[d]
            + o.dilation[d] * (o.kernel[d] - 1) + 1 + o.output_padding[d]
    end
    local y = nested(larger, outputs)
    each_reach(larger, o.kernel, o, function(at, tap, to)
        for c = 1, inputs do
            local group = (c - 1) // o.per
            for k = 1, outputs // o.groups do
                local out = group * (outputs // o.groups) + k
                y[to[1]][to[2]][to[3]][out] = y[to[1]][to[2]][to[3]][out]
                    + weight_at(layer, c, tap, k, o, true) * x[at[1]][at[2]][at[3]][c]
            end
        end
    end)
    return y, larger
end

-- {dims, size, inputs, outputs, kernel, options}; the lists are of as many numbers as dimensions.
local cases = {
    { 1, { 9 }, 3, 4, { 3 }, {} },
    { 1, { 11 }, 4, 6, { 4 }, { stride = { 2 }, padding = { 1 }, dilation = { 2 }, groups = 2 } },
    { 2, { 5, 6 }, 2, 3, { 3, 2 }, { stride = { 2, 1 }, padding = { 1, 0 } } },
    { 3, { 4, 3, 3 }, 2, 3, { 2, 2, 3 }, { padding = { 1, 0, 1 } } },
    { 3, { 7, 4, 3 }, 4, 2, { 3, 2, 1 }, { stride = { 2, 1, 1 }, dilation = { 2, 1, 1 },
        padding = { 2, 1, 0 }, groups = 2 } },
    { 3, { 5, 3, 3 }, 1, 2, { 1, 3, 3 }, { stride = { 3, 1, 1 } } },
}

local function widened(list, dims, missing)
    local wide = {}
    for d = 1, 3 do wide[d] = d > 3 - dims and list and list[d - 3 + dims] or missing end
    return wide
end

local function check(kind, case, extra)
    local dims, size, inputs, outputs, kernel, given = table.unpack(case)
    local options = {}
    for name, value in pairs(given) do options[name] = value end
    options.output_padding = extra
    local layer = nn[("%s%dd"):format(kind, dims)](inputs, outputs, kernel, options)
    local shape = { 1, table.unpack(size) }
    shape[#shape + 1] = inputs
    local x = mp.randn(shape):requires_grad(true)
    local y = layer(x)
    local o = { transposed = kind == "ConvTranspose", kernel = widened(kernel, dims, 1),
        stride = widened(options.stride, dims, 1), padding = widened(options.padding, dims, 0),
        dilation = widened(options.dilation, dims, 1), groups = options.groups or 1,
        output_padding = widened(extra, dims, 0), per = inputs // (options.groups or 1) }
    local whole = widened(size, dims, 1)
    local volume = x:detach():reshape(whole[1], whole[2], whole[3], inputs):table()
    local wanted, sizes = written_out({ table = layer.weight:table() }, volume, whole, inputs,
        outputs, o)
    local what = ("%s%dd of %s"):format(kind, dims, table.concat(size, ","))
    local expected = { 1 }
    for d = 4 - dims, 3 do expected[#expected + 1] = sizes[d] end
    expected[#expected + 1] = outputs
    equal(y:shape(), expected, what)
    local without = (y - layer.bias):reshape(sizes[1], sizes[2], sizes[3], outputs)
    near(without:table(), wanted, 1e-4, what)
    -- It is linear in either factor, so that each times its gradient is the sum itself.
    local seed = mp.randn(y:shape())
    y:backward(seed)
    local total = (seed * (y - layer.bias)):sum():item()
    near((x * x:grad()):sum():item(), total, 1e-3 * (1 + math.abs(total)), what .. ": dx")
    near((layer.weight * layer.weight:grad()):sum():item(), total, 1e-3 * (1 + math.abs(total)),
        what .. ": dw")
    near(layer.bias:grad():table(), seed:reshape(-1, outputs):sum(1):table(), 1e-4, what .. ": db")
end

return mp.experiment { name = "convolutions", precision = "bf16", run = function(run)
    test("convolutions_sum_over_their_windows", function()
        for _, case in ipairs(cases) do check("Conv", case) end
    end)

    test("transposed_convolutions_spread_what_they_are_given", function()
        for _, case in ipairs(cases) do check("ConvTranspose", case) end
        check("ConvTranspose", { 1, { 4 }, 2, 2, { 3 }, { stride = { 3 } } }, { 2 })
        check("ConvTranspose", { 2, { 3, 3 }, 2, 3, { 3, 3 }, { stride = { 2, 2 },
            padding = { 1, 1 } } }, { 1, 0 })
        check("ConvTranspose", { 3, { 3, 2, 2 }, 2, 4, { 2, 3, 3 }, { stride = { 2, 2, 1 },
            padding = { 2, 1, 1 }, groups = 2 } }, { 1, 1, 0 })
    end)

    test("convolutions_run_low_under_autocast", function()
        local net = run:model(nn.Sequential { nn.Conv1d(4, 6, 3, { padding = 1 }),
            nn.ConvTranspose1d(6, 4, 2, { stride = 2 }) })
        equal(mp.autocast(net, mp.randn(2, 8, 4)):dtype(), "bf16")
        equal(mp.autocast(net, mp.randn(2, 8, 4)):shape(), { 2, 16, 4 })
        local volume = nn.ConvTranspose3d(2, 2, 3)
        equal(mp.autocast(volume, mp.randn(1, 3, 3, 3, 2)):dtype(), "bf16")
        equal(F.conv_transpose2d(mp.ones(1, 2, 2, 1), mp.ones(1, 2, 2, 1), nil,
            { stride = 2 }):table()[1], mp.ones(4, 4, 1):table())
    end)

    test("what_no_convolution_can_take_is_named", function()
        fails("Conv3d: kernel: a whole number of at least 1 expected, or 3 of them", nn.Conv3d, 1, 1,
            { 3, 3 })
        fails("Conv1d: no option strid; did you mean stride?", nn.Conv1d, 1, 1, 3, { strid = 2 })
        fails("2 groups do not divide 3 inputs", nn.Conv3d, 3, 4, 1, { groups = 2 })
        fails("Conv1d: input has shape [2,3], [N,L,C] is wanted", nn.Conv1d(3, 1, 1), mp.ones(2, 3))
        fails("input has 2 channels, weight wants 3", nn.ConvTranspose2d(3, 1, 1),
            mp.ones(1, 2, 2, 2))
        fails("does not fit into 2", nn.Conv3d(1, 1, 3), mp.ones(1, 2, 4, 4, 1))
        fails("output_padding", nn.ConvTranspose2d(1, 1, 1, { output_padding = 1 }),
            mp.ones(1, 2, 2, 1))
        fails("output_padding", nn.ConvTranspose3d, 1, 1, 1, { output_padding = 1 })
        fails("smaller than the kernel", nn.Conv1d(1, 1, 5), mp.ones(1, 2, 1))
    end)
end }
