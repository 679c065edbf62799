-- The functions that are made of operations: what they compute, and their gradients.
local mp = require "mp"
local testing = require "testing"
local nn, F, test, equal, near, fails =
    mp.nn, mp.fn, testing.test, testing.equal, testing.near, testing.fails

-- The gradient of f at the list `values`, by differences.
local function slopes(f, values)
    local found, step = {}, 1e-2
    for i = 1, #values do
        local function at(shift)
            local moved = table.move(values, 1, #values, 1, {})
            moved[i] = moved[i] + shift
            return f(mp.tensor(moved)):item()
        end
        found[i] = (at(step) - at(-step)) / (2 * step)
    end
    return found
end

local function check_gradient(f, values, what)
    local x = mp.tensor(values):requires_grad(true)
    f(x):backward()
    near(x:grad():table(), slopes(f, values), 2e-3, what)
end

return mp.experiment { name = "functions", precision = "fp16", run = function(run)
    test("huber_is_a_square_near_and_a_line_far", function()
        local target = mp.tensor { 0, 0, 0, 1 }
        near(F.huber(mp.tensor { 0.5, -3, 2, 1 }, target):item(), (0.125 + 2.5 + 1.5) / 4, 1e-6)
        near(F.huber(mp.tensor { 0.5, -3, 2, 1 }, target, 2):item(), (0.125 + 4 + 2) / 4, 1e-6)
        check_gradient(function(x) return x:huber(target, 0.7) end, { 0.5, -3, 2, 1.2 })
        fails("huber: delta: a positive number expected, got 0", F.huber, target, target, 0)
    end)

    test("hinge_counts_what_lies_within_the_margin", function()
        local target = mp.tensor { 1, -1, 1 }
        near(F.hinge(mp.tensor { 0.5, 2, 3 }, target):item(), (0.5 + 3) / 3, 1e-6)
        check_gradient(function(x) return F.hinge(x, target) end, { 0.5, 2, 3 })
    end)

    test("kl_is_0_for_equal_rows_and_a_mean_over_them", function()
        local p = mp.tensor { { 0.5, 0.5, 0 }, { 0.2, 0.3, 0.5 } }
        local q = mp.tensor { { 0.25, 0.5, 0.25 }, { 0.2, 0.3, 0.5 } }
        near(F.kl(q:log(), p):item(), 0.5 * math.log(2) / 2, 1e-6)
        near(F.kl(q:log(), q):item(), 0, 1e-6)
        check_gradient(function(x) return F.kl(x:log_softmax(), mp.tensor { 0.1, 0.7, 0.2 }) end,
            { 0.3, -1, 2 })
    end)

    test("nll_takes_what_each_row_says_of_its_class", function()
        local x = mp.randn(4, 5)
        local classes = mp.tensor({ 0, 4, -1, 2 }, "int32")
        near(F.nll(F.log_softmax(x), classes):item(), F.cross_entropy(x, classes):item(), 1e-5)
        local rows = mp.tensor { { -1, -2 }, { -3, -4 } }:requires_grad(true)
        local loss = F.nll(rows, mp.tensor({ 1, -1 }, "int32"))
        equal(loss:item(), 2)
        loss:backward()
        equal(rows:grad():table(), { { 0, -1 }, { 0, 0 } })
        local none = mp.tensor({ -1, -1 }, "int32")
        for _, none_of in ipairs { F.nll(rows, none), F.cross_entropy(rows, none) } do
            assert(none_of:item() ~= none_of:item())
        end
        testing.fails_at_once(run, "2 at row 2: the log_prob", F.nll, rows, mp.tensor({ 1, 2 }, "int32"))
    end)

    test("losses_are_computed_in_fp32_wherever_they_are_called", function()
        local x, t = mp.full(300, 8):to "fp16", mp.zeros(8)
        mp.autocast(function()
            for _, loss in ipairs { F.huber(x, t, 1e4), F.hinge(x * -1, t + 1), F.kl(x, t),
                F.nll(x:reshape(2, 4), mp.zeros(2):to "int32") } do
                equal(loss:dtype(), "fp32")
                assert(loss:item() < math.huge)
            end
        end)
        near(F.huber(x, t, 1e4):item(), 45000, 1)
        fails("huber: argument 2 (target): a tensor expected, got number", F.huber, x, 3)
        fails("nll: argument 1 (input): a tensor expected, got nil", F.nll)
    end)

    test("upsample_repeats_every_pixel", function()
        local x = mp.arange(4):to "fp32":reshape(1, 2, 2, 1):requires_grad(true)
        local y = F.upsample(x, { 1, 2 })
        equal(y:reshape(2, 4):table(), { { 0, 0, 1, 1 }, { 2, 2, 3, 3 } })
        equal(nn.Upsample(3)(x):shape(), { 1, 6, 6, 1 })
        F.upsample(x, 3):sum():backward()
        equal(x:grad():reshape(4):table(), { 9, 9, 9, 9 })
        fails("upsample: factor: a whole number of at least 1", F.upsample, x, 1.5)
        fails("upsample: input has shape [2], [N,L,C], [N,H,W,C] or [N,D,H,W,C] is wanted", F.upsample, mp.ones(2), 2)
        fails("Upsample: factor", nn.Upsample, 0)
    end)

    test("instance_norm_takes_every_channel_by_itself", function()
        local x = mp.randn(2, 4, 4, 3) * 3 + 1
        local y = nn.InstanceNorm(3)(x)
        near(y:mean({ 2, 3 }):table(), mp.zeros(2, 3):table(), 1e-5)
        near((y * y):mean({ 2, 3 }):table(), mp.ones(2, 3):table(), 1e-3)
    end)

    test("composed_functions_are_methods_too", function()
        equal(mp.zeros(2, 3, 4):flatten():shape(), { 2, 12 })
        equal(mp.zeros(1, 2, 2, 1):upsample(2):shape(), { 1, 4, 4, 1 })
    end)
end }
