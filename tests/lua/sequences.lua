-- What passes through nn.Sequential: tensors that somebody else still holds stay as they are.
local mp = require "mp"
local testing = require "testing"
local nn, F, test, equal, fails = mp.nn, mp.fn, testing.test, testing.equal, testing.fails

-- x through layers that hand it on as it is, and then through one that makes something new.
local function residual(layers, x)
    layers[#layers + 1] = nn.ReLU()
    layers[#layers + 1] = nn.ReLU()
    local y = nn.Sequential(layers):eval()(x)
    equal((x + y):shape(), x:shape())
end

return mp.experiment { name = "sequences", precision = "bf16", run = function()
    test("what_a_layer_hands_through_stays_the_callers", function()
        local x = mp.ones(2, 3)
        residual({ nn.Dropout(0.5) }, x)
        residual({ nn.Dropout(0.5), nn.Dropout(0.5) }, x)
        residual({ nn.Dropout(0) }, x)
        residual({ nn.Flatten() }, x)
        residual({ nn.Sequential { nn.Dropout(0.5) }, nn.Flatten() }, x)
        mp.autocast(residual, { nn.Dropout(0.5) }, x)
        mp.no_grad(residual, { nn.Dropout(0.5), nn.Flatten() }, x)
        equal(x:sum():item(), 6)
    end)

    test("a_stack_of_layers_has_a_bound", function()
        fails("GRU: num_layers: at most 1024, got 65536", nn.GRU, 4, 3, { num_layers = 65536 })
    end)

    test("what_a_layer_keeps_of_its_input_stays", function()
        local Keeper = nn.class "Keeper"
        function Keeper:forward(x)
            self._kept = x
            return x
        end
        local keeper, relu = Keeper(), nn.ReLU()
        nn.Sequential { nn.ReLU(), keeper, nn.ReLU(), nn.ReLU() }(mp.ones(2))
        equal(keeper._kept:table(), { 1, 1 })
        local kept
        relu.forward = function(_, x) -- a layer of ours with a forward of the script's
            kept = x
            return F.relu(x)
        end
        nn.Sequential { nn.ReLU(), relu, nn.ReLU(), nn.ReLU() }(mp.ones(2))
        equal(kept:table(), { 1, 1 })
    end)

    test("gradients_reach_what_was_handed_through", function()
        local x = mp.ones(3):requires_grad(true)
        local block = nn.Sequential { nn.Dropout(0.5), nn.ReLU(), nn.ReLU() }:eval();
        (x + block(x)):sum():backward()
        equal(x:grad():table(), { 2, 2, 2 })
    end)
end }
