-- Training and evaluation: what a module's own forward sees of it, and what functions go by.
local mp = require "mp"
local testing = require "testing"
local nn, F, test, equal, near, fails =
    mp.nn, mp.fn, testing.test, testing.equal, testing.near, testing.fails

local ones = mp.ones(4, 250)

local function drops(y) return y:sum():item() ~= 1000 end

local Own = nn.class "Own"
function Own:init(inner) self.inner = inner end
function Own:forward(x)
    self._seen = self.training
    x = F.dropout(x, 0.5)
    return self.inner and self.inner(x) or x
end

return mp.experiment { name = "modes", precision = "fp32", run = function()
    test("a_module_knows_whether_it_is_in_training", function()
        local net = Own()
        equal(net.training, true)
        net(ones)
        equal(net._seen, true)
        equal(net:eval().training, false)
        net(ones)
        equal(net._seen, false)
        equal(net:train().training, true)
    end)

    test("dropout_follows_the_module_that_it_is_called_in", function()
        local net = Own()
        assert(drops(net(ones)))
        net:eval()
        assert(not drops(net(ones)))
        assert(not drops(mp.autocast(net, ones)))
        assert(not drops(mp.no_grad(net, ones)))
        net.training = true
        assert(drops(net(ones)))
    end)

    test("the_innermost_module_decides", function()
        local net = nn.Sequential { Own(nn.Sequential { Own() }) }
        net:eval()
        assert(not drops(net(ones)))
        net:find("own1.inner.own1")[1]:train()
        assert(drops(net(ones)))
        net:eval()
        net:find("own1")[1].training = true
        local After = nn.class "After" -- calls it behind a module in another mode
        function After:init() self.own = Own() end
        function After:forward(x) return F.dropout(self.own(x), 0.5) end
        local after = After()
        after.own:eval()
        assert(drops(after(ones)))
        after:eval()
        after.own:train()
        after.own.forward = function(_, x) return x end
        assert(not drops(after(ones)))
    end)

    test("outside_of_modules_dropout_drops_unless_told", function()
        assert(drops(F.dropout(ones)))
        assert(not drops(F.dropout(ones, 0.5, false)))
        local net = Own():eval()
        net.forward = function(_, x) return F.dropout(x, 0.5, true) end
        assert(drops(net(ones)))
        fails("dropout: argument 3 (training): true or false expected, got the string \"no\"",
            F.dropout, ones, 0.5, "no")
    end)

    test("a_mode_ends_with_its_module_by_an_error_too", function()
        local net = Own():eval()
        net.forward = function() error "boom" end
        fails("boom", net, ones)
        fails("boom", mp.autocast, net, ones)
        assert(drops(F.dropout(ones)))
    end)

    test("batch_norm_follows_too", function()
        local weight, bias, mean, variance = mp.ones(3), mp.zeros(3), mp.zeros(3), mp.ones(3)
        local Norm = nn.class "Norm"
        function Norm.forward(_, x) return F.batch_norm(x, weight, bias, mean, variance) end
        local x = mp.randn(64, 3) * 2 + 5
        local net = Norm():eval()
        near(net(x):table(), x:table(), 1e-3)
        equal(mean:table(), { 0, 0, 0 })
        net:train()(x)
        near(mean:table(), (x:mean(1) * 0.1):table(), 1e-5)
        -- without running statistics the batch's own serve in either mode
        net.forward = function(_, y) return F.batch_norm(y, weight, bias) end
        near(net:eval()(x):mean(1):table(), { 0, 0, 0 }, 1e-4)
    end)
end }
