-- Layers whose precision differs from the run's, from a run in fp32.
local mp = require "mp"
local testing = require "testing"
local nn, test, equal = mp.nn, testing.test, testing.equal

return mp.experiment { name = "layers", precision = "fp32", run = function(run)
    local net = run:model(nn.Sequential { nn.Linear(4, 4):named "body", nn.Linear(4, 2):named "head" })

    local function forward() return net(mp.randn(3, 4)) end

    test("in_fp32_everything_stays_in_fp32", function()
        equal(mp.autocast(forward):dtype(), "fp32")
    end)

    test("a_layer_set_low_runs_low_in_a_run_in_fp32", function()
        net:find("head"):precision "bf16"
        equal(mp.autocast(forward):dtype(), "bf16")
        equal(mp.autocast(false, forward):dtype(), "fp32")
    end)
end }
