-- What operations make of numbers at the edges: infinities, what is not a number, common offsets,
-- cancellation, constants that a format does not hold. The conventions are PyTorch's.
local mp = require "mp"
local testing = require "testing"
local F, test, equal, near = mp.fn, testing.test, testing.equal, testing.near
local fails = testing.fails
local inf, nan = math.huge, 0 / 0

-- The gradient at the list `values` of f where `arriving` arrives at its result.
local function gradient_of(f, values, arriving)
    local x = mp.tensor(values):requires_grad(true)
    f(x):backward(mp.tensor(arriving))
    return x:grad():table()
end

-- Holds a list against another one, in which NaN equals NaN.
local function same(got, wanted, what, tolerance)
    for i = 1, #wanted do
        local close = tolerance and math.abs(got[i] - wanted[i]) <= tolerance
        if not close and got[i] ~= wanted[i] and (got[i] == got[i] or wanted[i] == wanted[i]) then
            error(("%s[%d] is %s, expected %s"):format(what, i, got[i], wanted[i]), 2)
        end
    end
end

return mp.experiment { name = "numbers", precision = "fp32", run = function()
    test("an_infinite_gradient_is_let_through_or_held_back_whole", function()
        local cases = {
            { "relu", F.relu, { -1, 0, 2 }, { 0, 0, inf } },
            { "leaky_relu", function(x) return F.leaky_relu(x, 0.5) end, { -1, 0, 2 }, { inf, inf, inf } },
            { "abs", F.abs, { -1, 0, 2 }, { -inf, 0, inf } },
            { "clamp", function(x) return x:clamp(-1, 1) end, { -2, 0.5, 3 }, { 0, inf, 0 } },
            { "maximum", function(x) return F.maximum(x, mp.full(0.5, 3)) end, { -1, 0, 2 }, { 0, 0, inf } },
            { "minimum", function(x) return F.minimum(x, mp.full(0.5, 3)) end, { -1, 0, 2 }, { inf, inf, 0 } },
            { "where", function(x) return F.where(F.greater(x, 0), x, 0) end, { -1, 0, 2 }, { 0, 0, inf } },
            { "linear, relu", function(x)
                return F.linear(x:reshape(3, 1), mp.ones(1, 1), nil, "relu"):reshape(3)
            end, { -1, 0, 2 }, { 0, 0, inf } },
            { "conv2d, relu", function(x)
                return F.conv2d(x:reshape(1, 3, 1, 1), mp.ones(1, 1, 1, 1), nil,
                    { activation = "relu" }):reshape(3)
            end, { -1, 0, 2 }, { 0, 0, inf } },
        }
        for _, case in ipairs(cases) do
            local name, f, values, wanted = table.unpack(case)
            same(gradient_of(f, values, { inf, inf, inf }), wanted, name)
            for i = 1, 3 do wanted[i] = -wanted[i] end
            same(gradient_of(f, values, { -inf, -inf, -inf }), wanted, name)
        end
    end)

    test("a_gradient_that_is_not_a_number_stays_one_where_it_is_let_through", function()
        same(gradient_of(F.relu, { -1, 1 }, { nan, nan }), { 0, nan }, "relu")
        same(gradient_of(F.relu, { nan, nan }, { 1, inf }), { 1, inf }, "relu of NaN")
        same(gradient_of(F.abs, { nan, 0 }, { 1, nan }), { nan, 0 }, "abs")
    end)

    test("what_dropout_and_pooling_leave_out_takes_no_infinite_gradient", function()
        local x = mp.ones(200):requires_grad(true)
        local y = F.dropout(x, 0.5, true)
        y:backward(mp.full(inf, 200))
        for i, g in ipairs(x:grad():table()) do equal(g, y[i]:item() == 0 and 0 or inf) end
        local image = mp.tensor { 1, 2, 3, 4 }:reshape(1, 2, 2, 1):requires_grad(true)
        F.max_pool2d(image, 2):backward(mp.full(inf, 1, 1, 1, 1))
        equal(image:grad():reshape(4):table(), { 0, 0, 0, inf })
    end)

    test("losses_choose_among_their_branches", function()
        local none = mp.zeros(3)
        same(gradient_of(function(x) return F.huber(x, none) end, { inf, 0.5, -inf }, 3),
            { 1, 0.5, -1 }, "huber")
        same(gradient_of(function(x) return F.l1(x, none) end, { 1, 0, -1 }, inf), { inf, 0, -inf }, "l1")
        local function kl(x) return F.kl(x, mp.tensor { 0, 0.5, 0.5 }) end
        same(gradient_of(kl, { -inf, -1, -1 }, 2), { 0, -1, -1 }, "kl")
        near(kl(mp.tensor { -inf, -1, -1 }):item(), 1 - math.log(2), 1e-6)
    end)

    test("the_logarithms_of_bce_are_held_at_100_below_0", function()
        local x = mp.tensor { 0, 1, 0, 1, 0.5, 1e-30 }
        local t = mp.tensor { 0, 1, 1, 0, 0.25, 0 }
        for i, wanted in ipairs { 0, 0, 100, 100, math.log(2), 1e-30 } do
            near(F.bce(x[i], t[i]):item(), wanted, 1e-5 * wanted, "bce " .. i)
        end
        local slopes = gradient_of(function(p) return F.bce(p, t) end, x:table(), 6)
        for i, wanted in ipairs { 0, 0, -1e12, 1e12, 1, 1e-18 } do
            near(slopes[i], wanted, 1e-5 * math.abs(wanted), "slope " .. i)
        end
        same({ F.bce(mp.tensor { nan }, mp.tensor { 1 }):item() }, { nan }, "bce of NaN")
    end)

    test("what_all_logits_have_in_common_takes_no_digits", function()
        local classes = mp.tensor({ 2, 0 }, "int32")
        local rows = { { 0, 8, 16, -8 }, { 24, 0, -8, 16 } }
        local function shifted(offset)
            local moved = { {}, {} }
            for i = 1, 2 do for j = 1, 4 do moved[i][j] = rows[i][j] + offset end end
            return mp.tensor(moved):requires_grad(true)
        end
        local losses = {
            cross_entropy = function(x) return F.cross_entropy(x, classes) end,
            ["nll of log_softmax"] = function(x) return F.nll(F.log_softmax(x), classes) end,
            ["kl of log_softmax"] = function(x)
                return F.kl(F.log_softmax(x), mp.tensor { { 0.5, 0.25, 0.25, 0 }, { 0.1, 0.2, 0.3, 0.4 } })
            end,
            ["log of softmax"] = function(x) return -F.log(F.softmax(x)):mean() end,
        }
        for name, loss in pairs(losses) do
            local x = shifted(0)
            local wanted = loss(x)
            wanted:backward()
            for _, offset in ipairs { 1e6, -1e6, 1e8, -1e8 } do
                local y = shifted(offset)
                local got = loss(y)
                got:backward()
                near(got:item(), wanted:item(), 1e-6 * wanted:item(), name .. " at " .. offset)
                near(y:grad():table(), x:grad():table(), 1e-7, name .. ": gradient at " .. offset)
            end
        end
    end)

    test("scores_that_are_large_together_are_weighed_by_their_differences", function()
        local function attend(offset)
            local q = mp.full(1, 1, 3, 1, 1):requires_grad(true)
            local k = (mp.tensor { 0, 8, 16 } + offset):reshape(1, 3, 1, 1):requires_grad(true)
            local v = mp.tensor { 1, -2, 3 }:reshape(1, 3, 1, 1)
            F.attention(q, k, v, { scale = 0.125 }):sum():backward()
            return k:grad():reshape(3):table()
        end
        near(attend(1e8), attend(0), 1e-6)
    end)

    test("a_number_is_not_rounded_to_the_format_that_it_meets", function()
        for _, format in ipairs { "fp16", "bf16" } do
            local x = mp.tensor({ 20480, -30, 0 }, format)
            local function is(y, wanted, what)
                equal(y:dtype(), format)
                same(y:table(), mp.tensor(wanted):to(format):table(), what .. " in " .. format)
            end
            is(x / 1e5, { 0.2048, -3e-4, 0 }, "x / 1e5")
            is(x * 1e-9, { 2.048e-5, -3e-8, 0 }, "x * 1e-9")
            is(1e5 / mp.tensor({ 20480, -30, 1 }, format):slice(1, 1, 2),
                { 1e5 / 20480, -1e5 / 30 }, "1e5 / x")
            is(x - 70001, { 20480 - 70001, -70031, -70001 }, "x - 70001")
            is(F.where(F.greater(x, 0), x, 0.1), { 20480, 0.1, 0.1 }, "where")
            is(F.maximum(x, 0.1), { 20480, 0.1, 0.1 }, "maximum")
            x:requires_grad(true)
            ;(x / 1e5):sum():backward()
            equal(x:grad():dtype(), format)
            same(x:grad():table(), mp.tensor { 1e-5, 1e-5, 1e-5 }:to(format):table(), "slope")
            -- What was set to a number equals it.
            equal(F.equal(mp.full(0.1, 2):to(format), 0.1):table(), { 1, 1 })
            equal(F.equal(mp.tensor({ inf, 1 }, format), 1e5):table(), { 0, 0 })
        end
        near((mp.tensor { 1 }:to "fp16" / 3):item(), 1 / 3, 1e-3)
    end)

    test("a_transposed_convolution_is_rounded_once_with_its_bias", function()
        local x = mp.tensor({ 2048, 1 }, "fp16"):reshape(1, 1, 1, 2)
        local w = mp.ones(2, 1, 1, 1):to "fp16":requires_grad(true)
        local bias = mp.ones(1):to "fp16":requires_grad(true)
        local y = F.conv_transpose2d(x, w, bias)
        equal(y:dtype(), "fp16")
        equal(y:item(), 2050)
        y:backward(mp.full(3, 1, 1, 1, 1))
        equal(bias:grad():item(), 3)
        equal(w:grad():reshape(2):table(), { 6144, 3 })
    end)

    test("running_statistics_are_never_low", function()
        local weight, bias = mp.ones(3), mp.zeros(3)
        for _, format in ipairs { "fp16", "bf16" } do
            local mean, variance = mp.zeros(3):to(format), mp.ones(3):to(format)
            fails("running mean is " .. format .. ", fp32 is wanted", F.batch_norm, mp.randn(5, 3),
                weight, bias, mean, variance)
            fails("running variance is " .. format, F.batch_norm, mp.randn(5, 3), weight, bias,
                mp.zeros(3), variance)
            equal(mean:table(), { 0, 0, 0 })
            -- To read them is no harm.
            equal(#F.batch_norm(mp.randn(5, 3), weight, bias, mean, variance, { training = false }), 5)
        end
    end)

    test("an_infinity_is_in_the_variance_of_its_channel", function()
        local x = mp.tensor { { 1, 1 }, { inf, 2 }, { 2, 3 } }
        local mean, variance = mp.zeros(2), mp.ones(2)
        local y = F.batch_norm(x, mp.ones(2), mp.zeros(2), mean, variance)
        same(y:transpose():reshape(6):table(), { nan, nan, nan, -1.2247, 0, 1.2247 }, "y", 1e-4)
        same(variance:table(), { nan, 1 }, "variance", 1e-6)
    end)

    test("what_a_query_does_not_see_does_not_spoil_it", function()
        local function row(list) return mp.tensor(list):reshape(1, 4, 1, 1):requires_grad(true) end
        local q, k = row { 1, 2, 3, 4 }, row { 1, 1, 1, 1 }
        local y = F.attention(q, k, row { 1, 3, inf, 5 }, { causal = true })
        same(y:reshape(4):table(), { 1, 2, inf, inf }, "value", 1e-6)
        local v = row { 1, 3, 5, 7 }
        F.attention(q, k, v, { causal = true }):backward(mp.tensor { 0, inf, 0, 0 }:reshape(1, 4, 1, 1))
        same(v:grad():reshape(4):table(), { inf, inf, 0, 0 }, "gradient")
        F.attention(row { 1, 1, inf, 1 }, k, v, { causal = true }):slice(2, 1, 2):sum():backward()
        assert(k:grad():reshape(4)[4]:item() == 0, "a key that only a later query sees")
    end)

    test("an_infinite_gradient_of_cross_entropy_has_the_signs_of_a_finite_one", function()
        for _, width in ipairs { 3, 40 } do
            local x = mp.zeros(1, width):requires_grad(true)
            F.cross_entropy(x, mp.zeros(1):to "int32"):backward(mp.tensor { inf }:reshape())
            same(x:grad()[1]:slice(1, 1, 3):table(), { -inf, inf, inf }, "gradient")
        end
    end)

    test("a_row_with_a_NaN_answers_nothing", function()
        local x = mp.tensor { { nan, 1 }, { 1, nan }, { 0, 1 } }
        near(F.accuracy(x, mp.tensor({ 0, 1, 1 }, "int32")):item(), 1 / 3, 1e-6)
    end)

    test("a_parameter_in_fp64_has_its_gradient_in_fp64", function()
        local w = mp.nn.Parameter(mp.tensor({ 1, 2 }, "fp64"))
        local computed, product = pcall(function() return (w * mp.tensor({ 1 / 3, 1 }, "fp64")):sum() end)
        if not computed then
            assert(product:find("does not compute in fp64", 1, true), product)
            return
        end
        product:backward()
        equal(w:grad():dtype(), "fp64")
        equal(w:grad()[1]:item(), 1 / 3)
    end)

    test("a_power_of_0_has_no_slope", function()
        local function power(a) return function(x) return x ^ a end end
        same(gradient_of(power(0), { 0, 2, -1 }, { 1, inf, 1 }), { 0, 0, 0 }, "x^0")
        same(gradient_of(power(1), { 0, 2, -1 }, { 1, 1, 1 }), { 1, 1, 1 }, "x^1")
        same(gradient_of(power(2), { 0, 2, -1 }, { 1, 1, 1 }), { 0, 4, -2 }, "x^2")
        same(gradient_of(power(0.5), { 0, 4 }, { 1, 1 }), { inf, 0.25 }, "x^0.5")
        same(gradient_of(power(-1), { 0, 2 }, { 1, 1 }), { -inf, -0.25 }, "x^-1")
    end)

    test("slopes_at_0_are_those_of_the_limit", function()
        same(gradient_of(F.sqrt, { 0, 4 }, { 1, 1 }), { inf, 0.25 }, "sqrt")
        same(gradient_of(F.log, { 0, 4 }, { 1, 1 }), { inf, 0.25 }, "log")
        same(gradient_of(F.rsqrt, { 0, 4 }, { 1, 1 }), { -inf, -0.0625 }, "rsqrt")
        same(gradient_of(F.reciprocal, { 0, 4 }, { 1, 1 }), { -inf, -0.0625 }, "reciprocal")
        same(gradient_of(function(x) return 1 / x end, { 0, 4 }, { 1, 1 }), { -inf, -0.0625 }, "1 / x")
    end)

    test("a_product_of_slopes_does_not_leave_the_format_on_its_way", function()
        near(gradient_of(F.reciprocal, { 1e25 }, { 1e38 })[1] * 1e12, -1, 1e-5)
        near(gradient_of(F.rsqrt, { 1e-30 }, { 1e-20 })[1] * 1e-25, -0.5, 1e-5)
        near(gradient_of(F.log, { 2e38 }, { 2e38 })[1], 1, 1e-5)
        near(gradient_of(F.square, { 2e38 }, { 1e-30 })[1] * 1e-8, 4, 1e-4)
    end)
end }
