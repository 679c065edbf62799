-- Tables that let go of what they hold, or run something when they are read, handed to the engine:
-- it reads them raw and holds what it reads. What this finds, the address sanitizer says.
local mp = require "mp"
local testing = require "testing"
local test, equal, fails = testing.test, testing.equal, testing.fails

local reads = 0

-- Nothing but the list itself refers to its elements, and it does so weakly.
local function weak(list)
    return setmetatable(list, { __mode = "v", __index = function() reads = reads + 1 collectgarbage() end })
end

local function greedy(fields)
    return setmetatable(fields, { __index = function() reads = reads + 1 collectgarbage() end })
end

local function weight(size) return mp.ones(size or 64):requires_grad(true) end

return mp.experiment { name = "borrowed", run = function(run)
    test("optimizers_hold_what_a_weak_list_holds", function()
        for _ = 1, 200 do
            local groups = weak { greedy { params = weak { weight(), weight() } },
                                  greedy { params = weak { weight() } } }
            local done, opt = pcall(mp.optim.SGD, groups, greedy { lr = 1 })
            local why = tostring(opt) -- where the list was empty before it was read, too
            assert(done or why:find("expected", 1, true) or why:find("no parameters", 1, true), why)
            if done then opt:zero_grad() end
        end
    end)

    test("gradients_and_clipping_hold_it", function()
        for _ = 1, 300 do
            local x = weight(8)
            local y = (x * x):sum()
            pcall(mp.grad, y, weak { weight(8), weight(8), weight(8) })
            pcall(mp.optim.clip_norm, weak { weight(8), weight(8) }, 1)
            pcall(mp.optim.clip_value, weak { weight(8), weight(8) }, 1)
            pcall(mp.fn.cat, weak { weight(8), weight(8), weight(8) })
        end
    end)

    test("options_are_read_raw", function()
        reads = 0
        local x = mp.ones(1, 3, 3, 1)
        mp.fn.conv2d(x, mp.ones(1, 3, 3, 1), nil, greedy { activation = "re" .. "lu" })
        mp.optim.Adam({ weight() }, greedy { lr = 1 })
        mp.scaler(greedy { init = 2 })
        mp.data.tensors(greedy { x = mp.ones(4, 2), batch = 2 })
        equal(reads, 0)
    end)

    test("named_values_are_read_raw_and_held", function()
        reads = 0
        run:log(greedy { ["a" .. "1"] = 1, ["b" .. "2"] = mp.ones(1):sum() })
        run:result(weak { ["c" .. "3"] = mp.ones(1):sum(), ["d" .. "4"] = 2 })
        equal(reads, 0)
        fails("zero bytes", function() run:log(greedy { ["x\0y"] = 1, ["x"] = 2 }) end)
        fails("zero bytes", function() run:result(greedy { ["x\0y"] = 1 }) end)
        fails("zero bytes", function() mp.data.text { path = "x\0y" } end)
    end)

    test("pairs_hold_the_keys_of_a_weak_table", function()
        for round = 1, 300 do
            local t = setmetatable({}, { __mode = "v" })
            for i = 1, 40 do t["key" .. round .. "_" .. i], t[i + 0.5] = {}, {} end
            for key in pairs(t) do assert(type(key) == "string" or type(key) == "number") end
        end
    end)
end }
