-- mp.gradcheck: right gradients pass, wrong ones are told with the input and the element.
local mp = require "mp"
local testing = require "testing"
local nn, F, test, fails = mp.nn, mp.fn, testing.test, testing.fails

return mp.experiment { name = "gradchecking", run = function(run)
    local x, y = mp.randn(3, 4), mp.rand(3, 4) + 0.5
    local function cubed(wrong)
        return mp.custom {
            forward = function(ctx, a) ctx:save(a) return a * a * a end,
            backward = function(ctx, dy) return wrong(ctx:saved(), dy) end,
        }
    end
    local function slope(a, dy) return dy * a * a * 3 end

    test("right_gradients_pass", function()
        assert(mp.gradcheck(function(a, b) return (a * b):tanh(), a:exp() end, { x, y }) < 1e-2)
        assert(mp.gradcheck(cubed(slope), x) < 1e-2)
        local net = nn.Sequential { nn.Linear(4, 5), nn.ReLU(), nn.LayerNorm(5), nn.Linear(5, 2) }
        assert(mp.gradcheck(net, x) < 1e-2)
        local classes = mp.randint(4, 3)
        assert(mp.gradcheck(F.cross_entropy, { x, classes }) < 1e-2)
        assert(mp.gradcheck(function(a) return a:sum(1) * 0 end, x) == 0)
        assert(mp.gradcheck(function(a) return a * 1e4 end, mp.randn(40, 40), { most = 20 }) < 1e-2)
    end)

    test("wrong_gradients_are_told_with_where_they_are", function()
        fails("gradcheck: input 1, element [", mp.gradcheck,
            cubed(function(a, dy) return dy * a * 3 end), x)
        local mask = mp.zeros(3, 4)
        mask:copy(mp.tensor { { 0, 0, 0, 0 }, { 0, 0, 1, 0 }, { 0, 0, 0, 0 } })
        fails("gradcheck: input 2, element [2, 3]: backward gives ", mp.gradcheck, function(a, b)
            return a + cubed(function(c, dy) return slope(c, dy) * (1 - mask) end)(b)
        end, { x, y })
        fails("is allowed", mp.gradcheck, function(a) return a:detach() * 2 + a end, x)
        fails("was it computed inside no_grad, or detached?", mp.gradcheck,
            function(a) return a:detach() end, x)
        fails("is allowed", mp.gradcheck, cubed(function(a, dy) return slope(a, dy) * 1.05 end), x)
        assert(mp.gradcheck(cubed(function(a, dy) return slope(a, dy) * 1.05 end), x, { tolerance = 0.1 }) > 0.04)
        fails("backward gives nan", mp.gradcheck, cubed(function(a, dy) return slope(a, dy) * (0 / 0) end), x)
    end)

    test("what_cannot_be_checked_says_why", function()
        fails("gives other values for the same inputs", mp.gradcheck, function(a) return F.dropout(a) end, x)
        fails("no input is a tensor of a floating format", mp.gradcheck, F.relu, { mp.arange(3) })
        fails("inputs: a tensor or a list expected, got 3", mp.gradcheck, F.relu, 3)
        fails("f: a function of the inputs, or a module, expected, got 3", mp.gradcheck, 3, x)
        fails("f: a function of the inputs, or a module, expected, got a tensor", mp.gradcheck, x, F.relu)
        fails("f must return a tensor", mp.gradcheck, function() return 3 end, x)
        fails("no option tolerence; did you mean tolerance?", mp.gradcheck, F.relu, x, { tolerence = 1 })
        fails("f gives nan for these inputs", mp.gradcheck, function(a) return (a - 100):log() end, x)
        fails("most: a whole number of at least 1 expected, got 0", mp.gradcheck, F.relu, x, { most = 0 })
        fails("tolerance: a number of at least 0 expected, got ", mp.gradcheck, F.relu, x, { tolerance = 0 / 0 })
        fails("tolerance: a number of at least 0 expected, got the string", mp.gradcheck, F.relu, x,
            { tolerance = "a" })
        assert(run.step == 0)
    end)
end }
