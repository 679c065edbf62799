-- What must hold of a training whatever computes it: a loss scale that is a power of two changes no
-- bit, a step that is skipped changes nothing, and layers change their format in the middle.
local mp = require "mp"
local testing = require "testing"
local nn, F, test, equal, near = mp.nn, mp.fn, testing.test, testing.equal, testing.near

local function make(seed)
    mp.seed(seed)
    local net = nn.Sequential { nn.Linear(6, 12), nn.LayerNorm(12), nn.GELU(), nn.Linear(12, 3) }
    return net, mp.optim.Adam(net:parameters(), { lr = 1e-2, max_grad_norm = 1 })
end

-- All numbers of a model, in order.
local function numbers(net)
    local all = {}
    for _, p in ipairs(net:parameters()) do
        for _, x in ipairs(p:reshape(-1):table()) do all[#all + 1] = x end
    end
    return all
end

-- Trains for so many steps and returns the losses and what came of the weights; the step `at`
-- overflows.
local function train(format, scaler, steps, at)
    local net, opt = make(5)
    local losses = {}
    for step = 1, steps do
        if step ~= at then mp.seed(100 + step - (at and step > at and 1 or 0)) end
        local x, y = mp.randn(8, 6), mp.randint(3, 8)
        local loss = mp.autocast(format, function() return F.cross_entropy(net(x), y) end)
        if step == at then loss = loss * math.huge end
        opt:zero_grad()
        scaler:scale(loss):backward()
        scaler:step(opt)
        scaler:update()
        if step ~= at then losses[#losses + 1] = loss:item() end
    end
    return losses, numbers(net), opt:steps()
end

return mp.experiment { name = "invariants", precision = { default = "bf16", ["linear*"] = "fp32" },
    run = function(run)
    test("layers_change_their_format_while_they_train", function()
        local net, opt = make(5)
        run:model(net)
        local losses = {}
        for step = 1, 12 do
            mp.seed(100 + step)
            local x, y = mp.randn(8, 6), mp.randint(3, 8)
            local loss = mp.autocast(function() return F.cross_entropy(net(x), y) end)
            opt:zero_grad()
            loss:backward()
            opt:step()
            losses[step] = loss:item()
            -- from the next step on
            if step % 3 == 0 then net:find("linear*"):precision(step % 2 == 0 and "fp32" or "bf16") end
        end
        local kept, differ = train("fp32", mp.scaler(1), 12), 0
        for step = 1, 12 do differ = differ + (losses[step] ~= kept[step] and 1 or 0) end
        near(losses, kept, 0.03, "losses beside those in fp32")
        equal({ losses[1], losses[2], losses[3] }, { kept[1], kept[2], kept[3] }, "before a change")
        assert(differ > 5, "no layer has changed its format")
    end)

    test("a_scale_of_a_power_of_two_changes_no_bit", function()
        for _, format in ipairs { "fp32", "bf16" } do
            local losses, weights = train(format, mp.scaler(1), 8)
            for _, k in ipairs { 1, 10, 24 } do
                local scaled, moved = train(format, mp.scaler(2.0 ^ k), 8)
                equal(scaled, losses, format .. ": losses at 2^" .. k)
                equal(moved, weights, format .. ": weights at 2^" .. k)
            end
            assert(losses[8] < losses[1] and losses[1] == losses[1])
        end
    end)

    test("a_skipped_step_changes_nothing", function()
        for _, format in ipairs { "fp32", "bf16" } do
            local losses, weights, steps = train(format, mp.scaler { init = 2 ^ 12, interval = 1000 }, 8)
            local others, same, applied =
                train(format, mp.scaler { init = 2 ^ 12, interval = 1000 }, 9, 4)
            equal(others, losses, format .. ": losses")
            equal(same, weights, format .. ": weights")
            equal(applied, steps, format .. ": steps that were applied")
        end
    end)
end }
