-- What losses take beside their arguments: reductions, weights of classes, smoothing.
local mp = require "mp"
local testing = require "testing"
local F, test, equal, near, fails = mp.fn, testing.test, testing.equal, testing.near, testing.fails

-- The gradient against differences, where numbers are wide enough.
local function check_gradient(f, values)
    local x = mp.tensor(values):requires_grad(true)
    f(x):sum():backward()
    local gradient, step = x:grad():reshape(-1):table(), 1e-2
    local flat = mp.tensor(values):reshape(-1):table()
    local shape = x:shape()
    for i = 1, #flat do
        local function at(moved)
            local old = flat[i]
            flat[i] = old + moved
            local y = f(mp.tensor(flat):reshape(shape)):sum():item()
            flat[i] = old
            return y
        end
        near(gradient[i], (at(step) - at(-step)) / (2 * step), 2e-3, "gradient " .. i)
    end
end

return mp.experiment { name = "losses", run = function()
    local x = mp.tensor { { 0.3, -1.2, 0.7 }, { 2.1, 0.1, -0.4 }, { -0.9, 1.3, 0.2 }, { 0.5, 0.4, -2 } }
    local target = mp.tensor { { 0.1, 0.9, 0.5 }, { 1, 0, 0.3 }, { 0.2, 0.6, 0.8 }, { 0, 1, 0.4 } }
    local classes = mp.tensor({ 2, 0, -1, 1 }, "int32")
    local weight = mp.tensor { 0.5, 2, 1 }

    test("every loss of two tensors can be a sum, a mean or all its terms", function()
        for _, name in ipairs { "mse", "l1", "bce", "bce_with_logits", "huber", "hinge" } do
            local f = name == "huber" and function(a, b, o) return F.huber(a, b, 0.5, o) end or F[name]
            local a = name == "bce" and x:sigmoid() or x
            local mean, none = f(a, target):item(), f(a, target, { reduction = "none" })
            equal(none:shape(), { 4, 3 }, name)
            near(none:mean():item(), mean, 1e-5, name)
            near(f(a, target, { reduction = "sum" }):item(), 12 * mean, 1e-4, name)
            near(f(a, target, { reduction = "mean" }):item(), mean, 1e-6, name)
            local function terms(z) return f(name == "bce" and z:sigmoid() or z, target, { reduction = "none" }) * x end
            check_gradient(terms, x:table())
        end
    end)

    test("kl is a mean of rows, a sum, or terms", function()
        local p, q = x:softmax(), target:softmax()
        local mean = F.kl(p:log(), q):item()
        near(F.kl(p:log(), q, { reduction = "sum" }):item(), 4 * mean, 1e-5)
        near(F.kl(p:log(), q, { reduction = "none" }):sum():item(), 4 * mean, 1e-5)
    end)

    test("large logits have small terms", function()
        local terms = F.bce_with_logits(mp.tensor { 200, -200, 200, -30 }, mp.tensor { 1, 0, 0, 0 },
            { reduction = "none" })
        near(terms:table(), { 0, 0, 200, 0 }, 1e-6)
        assert(terms[4]:item() > 0)
    end)

    test("positives can weigh more", function()
        local plain = F.bce_with_logits(x, target, { reduction = "none" })
        local more = F.bce_with_logits(x, target, { reduction = "none", pos_weight = 3 })
        local extra = (more - plain) / 2 -- target times softplus(-x)
        near(extra:table(), (target * F.softplus(-x)):table(), 1e-5)
        near(F.bce_with_logits(x, target, { pos_weight = mp.tensor { 3, 3, 3 } }):item(), more:mean():item(), 1e-6)
    end)

    -- By hand: -log p of the class, times the class's weight; row 3 is left out.
    local function rows_by_hand(smoothing, weights)
        local log_p, list, sum, share = x:log_softmax():table(), {}, 0, 0
        for i, class in ipairs(classes:table()) do
            list[i] = 0
            if class >= 0 then
                local each = 0
                for c = 1, 3 do each = each - weights[c] * log_p[i][c] end
                list[i] = -(1 - smoothing) * weights[class + 1] * log_p[i][class + 1] + smoothing / 3 * each
                sum, share = sum + list[i], share + weights[class + 1]
            end
        end
        return list, sum, share
    end

    test("weights of classes are a tensor or a table, and what is refused says so", function()
        for _, loss in ipairs { F.cross_entropy, F.nll } do
            equal(loss(x, classes, { weight = { 0.5, 2, 1 } }):item(), loss(x, classes, { weight = weight }):item())
            for got, refused in pairs { ["3"] = 3, ["2 numbers"] = { 1, 2 }, ["shape [1,3]"] = mp.ones(1, 3),
                ['the string "a" as number 2'] = { 1, "a", 3 }, ["0 numbers"] = {} } do
                fails("weight: a tensor or table of 3 numbers, one a class, expected, got " .. got, loss, x, classes,
                    { weight = refused })
            end
        end
    end)

    test("classes have weights, and labels can be smoothed", function()
        for _, case in ipairs { { nil, 0 }, { weight, 0 }, { nil, 0.1 }, { weight, 0.2 }, { weight, 1 } } do
            local given, smoothing = case[1], case[2]
            local list, sum, share = rows_by_hand(smoothing, given and given:table() or { 1, 1, 1 })
            local function loss(reduction)
                return F.cross_entropy(x, classes,
                    { weight = given, label_smoothing = smoothing, reduction = reduction })
            end
            near(loss "none":table(), list, 1e-5)
            near(loss "sum":item(), sum, 1e-5)
            near(loss():item(), sum / share, 1e-5)
            check_gradient(function(z)
                return F.cross_entropy(z, classes, { weight = given, label_smoothing = smoothing })
            end, x:table())
        end
        near(F.cross_entropy(x, classes, {}):item(), F.cross_entropy(x, classes):item(), 1e-6)
        near(F.nll(x:log_softmax(), classes, { weight = weight }):item(),
            F.cross_entropy(x, classes, { weight = weight }):item(), 1e-6)
        equal(F.nll(x:log_softmax(), classes, { reduction = "none" })[3]:item(), 0)
    end)

    test("classes of images and sequences go by pixel", function()
        local logits, index = mp.randn(2, 3, 4, 5), mp.randint(5, 2, 3, 4)
        local terms = F.cross_entropy(logits, index, { reduction = "none" })
        equal(terms:shape(), { 2, 3, 4 })
        near(terms:mean():item(), F.cross_entropy(logits, index):item(), 1e-5)
        near(F.cross_entropy(logits, index, { weight = mp.ones(5) }):item(), terms:mean():item(), 1e-5)
    end)

    test("where everything is left out there is no mean, and no gradient", function()
        local none = mp.tensor({ -1, -1, -1, -1 }, "int32")
        local z = x:clone():requires_grad(true)
        local loss = F.cross_entropy(z, none, { label_smoothing = 0.1 })
        assert(loss:item() ~= loss:item())
        equal(F.cross_entropy(z, none, { reduction = "sum" }):item(), 0)
    end)

    test("losses of low tensors are in fp32 with options too", function()
        mp.autocast("fp16", function()
            local big = mp.full(300, 4, 3):to "fp16"
            equal(F.mse(big, -big, { reduction = "none" }):dtype(), "fp32")
            equal(F.mse(big, -big, { reduction = "sum" }):item(), 600 * 600 * 12)
            equal(F.cross_entropy(big, classes, { label_smoothing = 0.1 }):dtype(), "fp32")
            fails("bce_with_logits instead", F.bce, x:sigmoid(), target, { reduction = "none" })
        end)
    end)

    test("options that cannot be are told in a line", function()
        fails("mse: reduction: mean, sum or none expected, got the string \"sums\"; did you mean sum?",
            F.mse, x, target, { reduction = "sums" })
        fails("hinge: reduction: mean, sum or none expected, got 3", F.hinge, x, target, { reduction = 3 })
        fails("cross_entropy: logits of [3, 2, 4] want classes of [3, 2], one a row; got [3]", F.cross_entropy,
            mp.randn(3, 2, 4), mp.randint(4, 3), { reduction = "none" })
        fails("did you mean label_smoothing", F.cross_entropy, x, classes, { label_smoothin = 0.1 })
        fails("label_smoothing: a number from 0 to 1 expected, got 2", F.cross_entropy, x, classes,
            { label_smoothing = 2 })
        fails("nll: log_probabilities: a last dimension of classes is wanted", F.nll, x:sum(), classes)
        fails("weight: a tensor or table of 3 numbers, one a class, expected, got shape [2]", F.cross_entropy, x,
            classes, { weight = mp.ones(2) })
        fails("classes are fp32, whole numbers are wanted", F.cross_entropy, x, mp.ones(4), { reduction = "sum" })
        fails("mse: target has shape [4,1], x has [4,3]", F.mse, x, mp.ones(4, 1), { reduction = "none" })
        fails("pos_weight", F.bce_with_logits, x, target, { pos_weight = "2" })
    end)
end }
