-- Where frameworks could differ: what is written of PyTorch holds here too, or docs/lua.md says why not.
local mp = require "mp"
local testing = require "testing"
local F, test, equal, near, fails = mp.fn, testing.test, testing.equal, testing.near, testing.fails
local nan, inf = 0 / 0, math.huge

local function gradients(f, ...)
    local leaves, found = {}, {}
    for i, values in ipairs { ... } do leaves[i] = mp.tensor(values):requires_grad(true) end
    f(table.unpack(leaves)):sum():backward()
    for i, leaf in ipairs(leaves) do found[i] = leaf:grad():table() end
    return table.unpack(found)
end

local function is_nan(x, what)
    if x == x then error((what or "value") .. " is " .. tostring(x) .. ", expected nan", 2) end
end

return mp.experiment { name = "conventions", run = function()
    test("equals_share_the_gradient_of_an_extreme", function()
        for _, name in ipairs { "maximum", "minimum" } do
            local x, y = gradients(F[name], { 2, 1, 0, -inf }, { 2, 3, 0, -inf })
            local lower = name == "minimum" and 1 or 0
            equal(x, { 0.5, lower, 0.5, 0.5 }, name .. " first")
            equal(y, { 0.5, 1 - lower, 0.5, 0.5 }, name .. " second")
        end
        local x = mp.tensor { 1, 4 }:requires_grad(true)
        F.maximum(x, x):sum():backward() -- x itself
        equal(x:grad():table(), { 1, 1 })
        equal(gradients(function(t) return t:max() end, { 3, 1, 3 }), { 0.5, 0, 0.5 })
    end)

    test("nan_comes_through_what_chooses", function()
        local x = mp.tensor { nan, 1, -1 }
        for name, y in pairs { relu = x:relu(), leaky_relu = x:leaky_relu(), clamp = x:clamp(-1, 1),
            maximum = F.maximum(x, 0), other = F.maximum(mp.zeros(3), x), minimum = F.minimum(x, 0),
            max = x:max():reshape(1), min = x:min():reshape(1), abs = x:abs() } do
            is_nan(y:table()[1], name)
        end
        equal(gradients(F.relu, { nan, 1, -1, 0 }), { 1, 1, 0, 0 })
        equal(gradients(function(t) return t:clamp(-1, 1) end, { nan, 1, -1, 2, -2 }), { 0, 1, 1, 0, 0 })
        equal(gradients(function(t) return t:leaky_relu(0.25) end, { 0, 1, -1 }), { 0.25, 1, 0.25 })
    end)

    test("clamp_ends_at_the_upper_bound", function()
        equal(mp.tensor { -5, 0, 5 }:clamp(2, 1):table(), { 1, 1, 1 })
        equal(gradients(function(t) return t:clamp(2, 1) end, { -5, 1.5, 5 }), { 0, 0, 0 })
        equal(mp.tensor { -5, 0, 5 }:clamp(-1):table(), { -1, 0, 5 })
        fails("clamp: a constant is not a number", F.clamp, mp.zeros(1), nan)
    end)

    test("a_mean_over_nothing_is_no_number", function()
        local classes = mp.tensor({ -1, -1 }, "int32")
        for name, f in pairs { cross_entropy = F.cross_entropy,
            nll = function(x, y) return F.nll(x:log_softmax(), y) end } do
            local x = mp.randn(2, 3):requires_grad(true)
            local loss = f(x, classes)
            is_nan(loss:item(), name)
            loss:backward()
            equal(x:grad():table(), { { 0, 0, 0 }, { 0, 0, 0 } }, name)
        end
        is_nan(F.accuracy(mp.randn(2, 3), classes):item(), "accuracy")
    end)

    test("norms_do_without_weight_and_bias", function()
        local x = mp.tensor { { 1, 2, 3, 4 }, { 4, 1, 0, 7 } }
        local ones, zeros = mp.ones(4), mp.zeros(4)
        local mean, variance = mp.tensor { 1, 2, 3, 4 }, mp.full(4, 4)
        local evaluates = { training = false }
        for name, pair in pairs {
            group = { F.group_norm(x, 2), F.group_norm(x, 2, ones, zeros) },
            groups = { F.group_norm(x, 2, ones), F.group_norm(x, 2, nil, zeros) },
            layer = { F.layer_norm(x), F.layer_norm(x, ones, zeros) },
            batch = { F.batch_norm(x), F.batch_norm(x, ones, zeros) },
            infer = { F.batch_norm(x, nil, nil, mean, variance, evaluates),
                F.batch_norm(x, ones, zeros, mean, variance, evaluates) } } do
            equal(pair[1]:table(), pair[2]:table(), name)
        end
        local function slopes(...)
            local leaf, arguments = x:clone():requires_grad(true), table.pack(...)
            F.group_norm(leaf, 2, table.unpack(arguments, 1, arguments.n)):square():sum():backward()
            return leaf:grad():table()
        end
        near(slopes(), slopes(ones, zeros), 1e-6, "gradient")
    end)

    test("gradients_can_be_set", function()
        local w = mp.tensor { 1, 2 }:requires_grad(true)
        local mine = mp.tensor { 3, 4 }
        w:grad(mine)
        mine:copy(mp.zeros(2)) -- what was set is a copy
        equal(w:grad():table(), { 3, 4 })
        F.sum(w * 2):backward() -- and adds up with what comes
        equal(w:grad():table(), { 5, 6 })
        local opt = mp.optim.SGD({ w }, { lr = 1 })
        w:grad(mp.tensor { { 10 }, { 20 } }:reshape(2))
        opt:step()
        equal(w:table(), { -9, -18 })
        w:grad(nil)
        equal(w:grad(), nil)
        fails("no gradient was recorded", function() opt:step() end)
        local low = mp.zeros(2):to "bf16":detach():requires_grad(true)
        low:grad(mp.tensor { 1, 2 })
        equal(low:grad():dtype(), "fp32")
        fails("[3] fp32 cannot be the gradient of [2] fp32: the shapes differ", w.grad, w, mp.zeros(3))
        fails("[1, 2] fp32 cannot be", w.grad, w, mp.zeros(1, 2))
        fails("int32 cannot be a gradient", w.grad, w, mp.zeros(2):to "int32")
        fails("keeps no gradient; set that of a leaf", function() (w * 2):grad(mp.zeros(2)) end)
        fails("argument 2 (gradient): a tensor expected, got 3", w.grad, w, 3)
    end)

    test("gradients_that_are_set_are_scaled_as_those_that_come", function()
        local w = mp.tensor { 1 }:requires_grad(true)
        local opt, scaler = mp.optim.SGD({ w }, { lr = 1 }), mp.scaler(8)
        scaler:scale((w * 2):sum()):backward()
        w:grad(mp.tensor { 16 }) -- before it is unscaled: scaled
        scaler:step(opt)
        scaler:update()
        equal(w:item(), -1)
        opt:zero_grad()
        scaler:scale((w * 2):sum()):backward()
        scaler:unscale(opt)
        equal(w:grad():item(), 2)
        w:grad(mp.tensor { 5 }) -- afterwards: true
        scaler:step(opt)
        scaler:update()
        equal(w:item(), -6)
    end)

    local function is(t, format, values)
        equal(t:dtype(), format)
        equal(t:table(), values)
    end

    test("whole_numbers_meet_exactly", function()
        local a = mp.tensor({ 16777217, -3, 2147483647 }, "int32")
        local b, mask = mp.tensor({ 2, 3, 1 }, "int32"), mp.tensor({ 1, 0, 255 }, "uint8")
        is(a + b, "int32", { 16777219, 0, -2147483648 })
        is(a - b, "int32", { 16777215, -6, 2147483646 })
        is(a * b, "int32", { 33554434, -9, 2147483647 })
        is(mask + mask, "uint8", { 2, 0, 254 })
        is(mask + b, "int32", { 3, 3, 256 })
        is(-a, "int32", { -16777217, 3, -2147483647 })
        is(F.maximum(a, 5), "int32", { 16777217, 5, 2147483647 })
        is(b / 2, "fp32", { 1, 1.5, 0.5 })
        is(b ^ 2, "fp32", { 4, 9, 1 })
        is(F.greater(a, mp.tensor({ 16777216, -3, 0 }, "int32")), "uint8", { 1, 0, 1 })
        is(F.equal(a, 16777216), "uint8", { 0, 0, 0 })
        is(F.equal(b, 3.0), "uint8", { 0, 1, 0 })
        is(F.less(b, 2.5), "uint8", { 1, 0, 1 })
        is(F.cat { a, mask }, "int32", { 16777217, -3, 2147483647, 1, 0, 255 })
        is(F.where(mask, a, 0), "int32", { 16777217, 0, 2147483647 })
        is(F.where(mask, a, b), "int32", { 16777217, 3, 2147483647 })
        is(F.gather(a, 1, mp.tensor({ 2, 0 }, "int32")), "int32", { 2147483647, 16777217 })
        is(F.pad(mask, { { 1, 0 } }, 7), "uint8", { 7, 1, 0, 255 })
        is(mask:sum():reshape(1), "fp32", { 256 })
        is(b:mean():reshape(1), "fp32", { 2 })
        fails("-1 is no number of uint8", F.pad, mask, { { 1, 0 } }, -1)
    end)

    test("numbers_of_the_script_go_by_what_they_meet", function()
        local b, mask = mp.tensor({ 2, 3 }, "int32"), mp.tensor({ 1, 0 }, "uint8")
        is(b + 1, "int32", { 3, 4 })
        is(1 - mask, "uint8", { 0, 1 })
        is(mask + 300, "int32", { 301, 300 })
        is(mask - 1.0, "fp32", { 0, -1 })
        is(b + 0.5, "fp32", { 2.5, 3.5 })
        is(b + 2 ^ 40, "fp32", { 2 ^ 40, 2 ^ 40 })
        is(F.where(mask, b, 0.5), "fp32", { 2, 0.5 })
    end)

    test("floating_formats_decide_over_whole_ones", function()
        local b, half = mp.tensor({ 2, 3 }, "int32"), mp.tensor({ 0.5, 4 }, "fp16")
        is(b * half, "fp16", { 1, 12 })
        is(half - b, "fp16", { -1.5, 1 })
        is(half / b, "fp16", { 0.25, 1.3330078125 })
        is(F.cat { half, b }, "fp16", { 0.5, 4, 2, 3 })
        is(F.greater(b, half), "uint8", { 1, 0 })
        local x = mp.tensor { 1, 2 }:requires_grad(true)
        F.sum(x * b + F.maximum(x, b) + F.where(mp.tensor({ 1, 0 }, "uint8"), x, b) + x / b):backward()
        near(x:grad():table(), { 2 + 1 + 0.5, 3 + 1 / 3 }, 1e-6)
    end)

    test("stack_counts_dimensions_backwards_too", function()
        local a, b = mp.tensor { 1, 2 }, mp.tensor { 3, 4 }
        equal(F.stack({ a, b }, -1):table(), { { 1, 3 }, { 2, 4 } })
        equal(F.stack({ a, b }, -2):table(), { { 1, 2 }, { 3, 4 } })
        equal(F.stack({ mp.tensor(1), mp.tensor(2) }, -1):table(), { 1, 2 })
        for _, dim in ipairs { 0, 3, -3, 1.5, "x" } do
            fails("from 1 to 2 is possible, or from -1 to -2", F.stack, { a, b }, dim)
        end
    end)
end }
