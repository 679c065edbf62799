-- What scripts measure: memory, time, and evaluations that are none of training's.
local mp = require "mp"
local testing = require "testing"
local test, equal, fails = testing.test, testing.equal, testing.fails

return mp.experiment { name = "measuring", run = function(run)
    local mib = 2 ^ 20
    local each = 1024 * 1024 * (mp.zeros(1):dtype() == "fp64" and 8 or 4)

    test("memory_is_what_is_held_now", function()
        local before = mp.memory()
        local held = { mp.zeros(1024, 1024) }
        local use = mp.memory()
        equal(use.total - before.total, each)
        equal(held[1]:shape()[1], 1024)
        local sum = 0
        for name, bytes in pairs(use) do sum = sum + (name == "total" and 0 or bytes) end
        equal(sum, use.total)
        held[1] = nil
        equal(mp.memory().total, before.total)
    end)

    test("the_memory_of_a_piece_of_work_is_the_most_that_it_held", function()
        local before = mp.memory().total
        local most, a, b = mp.memory(function(x)
            local kept = mp.zeros(1024, 1024)
            local inner = mp.memory(function() return mp.zeros(512, 1024) end)
            assert(inner.total >= before + 1.5 * each, "what was held before counts")
            return x + 1, kept:shape()[1]
        end, 2)
        equal(a, 3)
        equal(b, 1024)
        assert(most.total >= before + 1.5 * each and most.total < before + 1.5 * each + mib, most.total)
        assert(mp.memory(function() end).total <= before + mib, "an earlier peak is not counted")
        fails("of its own", function() mp.memory(function() error "an error of its own" end) end)
    end)

    test("the_clock_goes_on", function()
        local start = mp.clock()
        mp.randn(256, 256):matmul(mp.randn(256, 256))
        assert(mp.clock() > start)
    end)

    test("an_evaluation_records_nothing_and_gives_what_its_function_gave", function()
        local x = mp.ones(2)
        x:requires_grad(true)
        local y, n = run:evaluate(function(by) return x * by, 7 end, 3)
        equal(y:requires_grad(), false)
        equal(y:table(), { 3, 3 })
        equal(n, 7)
        fails("broken", run.evaluate, run, function() error "broken" end)
        equal((x * 2):requires_grad(), true)
    end)
end }
