-- What can be called: the run's step, and whatever autocast and no_grad are handed.
local mp = require "mp"
local testing = require "testing"
local nn, test, equal, fails = mp.nn, testing.test, testing.equal, testing.fails

return mp.experiment { name = "calls", precision = "bf16", run = function(run)
    test("run_step_is_a_plain_number", function()
        equal(math.type(run.step), "integer")
        assert(run.step == 0)
        equal(("%d steps"):format(run.step), "0 steps")
        local x = mp.ones(1):requires_grad(true)
        local opt = mp.optim.SGD({ x }, { lr = 1 });
        (x * 2):sum():backward()
        opt:step()
        assert(run.step == 1)
    end)

    test("run_step_runs_a_function_as_one_step", function()
        local a, b = run:step(function(...) return select("#", ...), ... end, "given")
        equal(a, 1)
        equal(b, "given")
        fails("boom", run.step, run, function() error("boom") end)
        fails("run:step: a function expected, got no value", function() run:step() end)
        fails("run:step: a function expected, got 3", function() run:step(3) end)
        fails("run.step: called with a dot; write run:step(f)", function() run.step(print) end)
        local inside = coroutine.wrap(function() run:step(function() coroutine.yield(7) end) end)
        equal(inside(), 7)
    end)

    test("calling_a_number_fails_as_it_does_without_us", function()
        local x, t = 5, { field = 3 }
        fails("calls.lua:35: attempt to call a number value (local 'here')", function()
            local here = t.field

            here(1)
        end)
        fails("attempt to call a number value (field 'field')", function() t.field() end)
        fails("attempt to call a number value (method 'field')", function() t:field() end)
        fails("attempt to call a number value (upvalue 'x')", function() return x(run, print) end)
        fails("attempt to call a number value", function() error((select(2, pcall(x)))) end)
        fails("attempt to call a nil value (field 'nothing')", function() t.nothing() end)
        fails("attempt to index a number value (upvalue 'x')", function() return x.field end)
        fails("attempt to perform arithmetic on a table value", function() return x + {} end)
        equal(getmetatable(1), false)
    end)

    test("autocast_and_no_grad_call_whatever_can_be_called", function()
        local layer = nn.Linear(2, 3)
        local x = mp.randn(4, 2)
        equal(mp.autocast(layer, x):dtype(), "bf16")
        equal(mp.autocast("fp16", layer, x):dtype(), "fp16")
        equal(mp.autocast(false, layer, x):dtype(), "fp32")
        assert(layer(x):requires_grad())
        assert(not mp.no_grad(layer, x):requires_grad())
        local kept = setmetatable({}, { __call = function(_, ...) return ... end })
        equal(select("#", mp.autocast(kept, 1, nil, 3)), 3)
        equal(mp.autocast(mp.fn.relu, mp.ones(1)):item(), 1)
    end)

    test("what_a_callable_changes_is_put_back_after_an_error", function()
        local broken = setmetatable({}, { __call = function() error("inside") end })
        fails("inside", mp.autocast, broken)
        equal(mp.policy().autocast, false)
        fails("inside", mp.no_grad, broken)
        assert(mp.ones(1):requires_grad(true):exp():requires_grad())
        mp.autocast(function()
            fails("inside", mp.autocast, false, broken)
            equal(mp.policy().autocast, true)
        end)
        fails("input has 5 features", mp.autocast, nn.Linear(4, 4), mp.ones(1, 5))
        equal(mp.policy().autocast, false)
    end)

    test("what_cannot_be_called_is_named", function()
        fails("autocast: a function or a module expected, got 5", mp.autocast, 5)
        fails("autocast: a function or a module expected, got no value", mp.autocast, false)
        fails("autocast: a function or a module expected, got a tensor", mp.autocast, mp.ones(1))
        fails("no_grad: a function or a module expected, got table", mp.no_grad, {})
        fails("no_grad: a function or a module expected, got no value", mp.no_grad)
    end)

    test("forwards_that_are_left_in_the_middle_break_nothing", function()
        local Net = nn.class "Net"
        function Net:init() self.inner = nn.Linear(2, 2) end
        function Net:forward(x)
            x = self.inner(x)
            if coroutine.isyieldable() then coroutine.yield(x) end
            return self.inner(x)
        end
        local net = run:model(Net())
        local function call(x) return net(x) end
        for _ = 1, 600 do coroutine.wrap(call)(mp.ones(1, 2)) end
        local a, b = coroutine.wrap(call), coroutine.wrap(call)
        equal(a(mp.ones(1, 2)):shape(), { 1, 2 })
        equal(b(mp.ones(1, 2)):shape(), { 1, 2 })
        equal(a():shape(), { 1, 2 })
        net(mp.ones(1, 2))
        equal(b():shape(), { 1, 2 })
        local _, message = pcall(function() return mp.ones(2):matmul(mp.ones(3)) end)
        assert(not message:find("inner", 1, true), message)
    end)
end }
