-- Gradients of one's own, and hooks that look at gradients on their way.
local mp = require "mp"
local testing = require "testing"
local nn, F = mp.nn, mp.fn
local test, equal, near, fails = testing.test, testing.equal, testing.near, testing.fails

local function leaf(values) return mp.tensor(values):requires_grad(true) end

-- The forward pass is a step, whose gradient is let through: what no rule of the engine does.
local straight_through = mp.custom {
    name = "straight_through",
    forward = function(_, x) return F.greater(x, 0):to "fp32" end,
    backward = function(_, dy) return dy end,
}

local function collect() collectgarbage() collectgarbage() end

return mp.experiment { name = "gradients", run = function()

    -- ---- mp.custom ----------------------------------------------------------------------------------

    test("a gradient of one's own takes the place of the engine's", function()
        local x = leaf { -1, 2, 3 }
        local y = straight_through(x)
        equal(y:table(), { 0, 1, 1 });
        (y * mp.tensor { 1, 10, 100 }):sum():backward()
        equal(x:grad():table(), { 1, 10, 100 })
    end)

    test("what forward keeps comes back, and so do fields", function()
        local product = mp.custom {
            forward = function(ctx, x, factor, y)
                ctx.factor = factor
                ctx:save(x, y)
                return x * y * factor, x + y
            end,
            backward = function(ctx, d, e)
                local x, y = ctx:saved()
                return d * y * ctx.factor + e, nil, d * x * ctx.factor + e
            end,
        }
        local x, y = leaf { 2, 3 }, leaf { 5, 7 }
        local a, b = product(x, 10, y);
        (a:sum() + (b * 1000):sum()):backward()
        equal(x:grad():table(), { 1050, 1070 })
        equal(y:grad():table(), { 1020, 1030 })
        x:zero_grad()
        product(x, 10, y):sum():backward() -- no gradient comes to the second result: it is zeros
        equal(x:grad():table(), { 50, 70 })
    end)

    test("a gradient of one's own can be differentiated", function()
        local cube = mp.custom {
            forward = function(ctx, x) ctx:save(x) return x * x * x end,
            backward = function(ctx, dy) return dy * 3 * ctx:saved():square() end,
        }
        local exponential = mp.custom {
            forward = function(ctx, x) local y = x:exp() ctx:save(y) return y end,
            backward = function(ctx, dy) return dy * ctx:saved() end,
        }
        local x = leaf { 2 }
        local first = mp.grad(cube(x):sum(), { x }, true)[1]
        equal(first:item(), 12)
        local second = mp.grad(first:sum(), { x }, true)[1]
        equal(second:item(), 12)
        equal(mp.grad(second:sum(), { x })[1]:item(), 6)
        local y = exponential(x)
        for _ = 1, 3 do y = mp.grad(y:sum(), { x }, true)[1] end
        near(y:item(), math.exp(2), 1e-5)
    end)

    test("a precision of its own holds inside of a low model", function()
        local seen = {}
        local careful = mp.custom {
            precision = "fp32",
            forward = function(ctx, x, w)
                ctx:save(x, w)
                local y = x:matmul(w)
                seen.forward = { x:dtype(), w:dtype(), y:dtype() }
                return y
            end,
            backward = function(ctx, dy)
                local x, w = ctx:saved()
                local dx = dy:matmul(w:transpose())
                seen.backward = { dy:dtype(), dx:dtype() }
                return dx, x:transpose():matmul(dy)
            end,
        }
        local w = nn.Parameter(mp.randn(4, 3))
        local first = nn.Linear(4, 4)
        local x = mp.randn(2, 4)
        mp.autocast("bf16", function()
            local hidden = first(x)
            equal(hidden:dtype(), "bf16")
            local y = careful(hidden, w)
            equal(y:dtype(), "fp32")
            y:sum():backward()
        end)
        equal(seen.forward, { "fp32", "fp32", "fp32" })
        equal(seen.backward, { "fp32", "fp32" })
        equal(w:grad():dtype(), "fp32")
        assert(first.weight:grad())
        local low = mp.custom {
            precision = "bf16",
            forward = function(_, a) seen.low = { a:dtype(), a:matmul(a):dtype() } return a end,
            backward = function(_, dy) return dy end,
        }
        low(mp.randn(2, 2))
        equal(seen.low, { "bf16", "bf16" })
    end)

    test("without one it runs in what is in force where it is called", function()
        local seen
        local f = mp.custom {
            forward = function(ctx, x) ctx:save(x) return x:matmul(x) end,
            backward = function(ctx, dy) seen = ctx:saved():matmul(dy):dtype() return dy end,
        }
        local x = mp.randn(2, 2):requires_grad(true)
        mp.autocast("bf16", function() f(x):sum():backward() end)
        equal(seen, "bf16")
        equal(x:grad():dtype(), "fp32")
    end)

    test("what is wrong with a gradient of one's own is told in a line", function()
        local returned = {}
        local f = mp.custom {
            name = "mine",
            forward = function(_, x, y) return x * 1, y and y * 1 end,
            backward = function() return table.unpack(returned, 1, returned.n) end,
        }
        local function walk(...)
            returned = table.pack(...)
            local a, b = f(leaf { 1, 2 }, leaf { { 3 } });
            (a:sum() + b:sum()):backward()
        end
        fails("mine: backward returned 1 value, and argument 2 asks for a gradient", walk, mp.ones(2))
        fails("mine: backward returned [3] fp32 for argument 1, which is [2]", walk, mp.ones(3), nil)
        fails("mine: backward returned 7 for argument 2: a tensor expected", walk, nil, 7)
        fails("mine: backward returned a gradient for argument 3", walk, nil, nil, mp.ones(1))
        walk(nil, nil)
        local function broken(forward)
            return mp.custom { name = "broken", forward = forward, backward = print }
        end
        fails("broken: forward returned 0 values", broken(function() end), leaf { 1 })
        fails("broken: forward returned 3 as result 1: a tensor expected", broken(function() return 3 end), leaf { 1 })
        fails("no reason", broken(function() error "no reason" end), leaf { 1 })
        fails("ctx:save: argument 1: a tensor expected, got 1", broken(function(ctx) ctx:save(1) end), leaf { 1 })
        fails("custom.backward: a function is needed", mp.custom, { forward = print })
        fails("did you mean backward", mp.custom, { forward = print, backwards = print })
        fails("precision", mp.custom, { forward = print, backward = print, precision = "fp31" })
        fails("a table", mp.custom, print)
        fails("my reason", function()
            local g = mp.custom { forward = function(_, x) return x end, backward = function() error "my reason" end }
            g(leaf { 1 }):backward()
        end)
        local done, thrown = pcall(function()
            local g = mp.custom { forward = function(_, x) return x end, backward = function() error { 5 } end }
            g(leaf { 1 }):backward()
        end)
        equal(done, false)
        equal(thrown[1], 5)
        fails("overwritten", function()
            local x = leaf { 1 }
            local g = mp.custom { forward = function(ctx, a) ctx:save(a) return a * 2 end, backward = print }
            local y = g(x)
            x:copy(mp.tensor { 3 })
            y:backward()
        end)
    end)

    test("a walk that failed leaves gradients as they were", function()
        local x, w = leaf { 1 }, leaf { 2 }
        local g = mp.custom { forward = function(_, a) return a * 1 end, backward = function() error "stop" end };
        (w * 5):backward()
        fails("stop", function() (g(x * 2) + w):backward() end)
        equal(w:grad():item(), 5)
        equal(x:grad(), nil);
        (w * 5):backward()
        equal(w:grad():item(), 10)
    end)

    test("nothing is recorded where nothing asks for it", function()
        local calls = 0
        local f = mp.custom {
            forward = function(_, x) return x * 2 end,
            backward = function(_, dy) calls = calls + 1 return dy end,
        }
        equal(f(mp.ones(2)):requires_grad(), false)
        equal(mp.no_grad(f, leaf { 1 }):requires_grad(), false)
        equal(f(leaf { 1 }):requires_grad(), true)
        equal(calls, 0)
    end)

    -- Memory for time: the inside is computed once more on the way back.
    local recomputed = function(f)
        return mp.custom {
            name = "recomputed",
            forward = function(ctx, x) ctx:save(x) return f(x) end,
            backward = function(ctx, dy)
                local x = ctx:saved():detach():requires_grad(true)
                return mp.enable_grad(function() return mp.grad((f(x) * dy):sum(), { x })[1] end)
            end,
        }
    end

    test("a walk may walk another graph back", function()
        local function f(x) return F.tanh(x * 3):exp() end
        local x, y = leaf { 0.1, -0.4 }, leaf { 0.1, -0.4 }
        f(f(f(x))):sum():backward()
        local twice = recomputed(function(z) return recomputed(f)(f(z)) end)
        twice(recomputed(f)(y)):sum():backward()
        near(y:grad():table(), x:grad():table(), 1e-5)
    end)

    test("what a walk may not do inside of another is refused", function()
        local x, w = leaf { 1 }, leaf { 2 }
        local optimizer = mp.optim.SGD({ w }, { lr = 1 })
        local scaler = mp.scaler "none"
        local inside
        local f = mp.custom {
            forward = function(_, a) return a * 1 end,
            backward = function(_, dy) inside(dy) return dy end,
        }
        local function walk(what)
            inside = what
            local y = f(x) * w
            y:sum():backward()
        end
        fails("backward: called inside of backward", walk, function() (w * 2):backward() end)
        fails("step: called inside of backward", walk, function() optimizer:step() end)
        fails("step: called inside of backward", walk, function() scaler:step(optimizer) end)
        fails("update: called inside of backward", walk, function() scaler:update() end)
        fails("is being walked already", function()
            local y = f(x)
            local z = y * y
            inside = function() mp.grad(z, { x }) end
            z:backward(nil, { keep_graph = true })
        end)
        fails("yield", walk, function() coroutine.yield() end)
        walk(function(dy) dy:requires_grad() end)
    end)

    test("contexts go when their graphs go", function()
        local weak = setmetatable({}, { __mode = "k" })
        local f = mp.custom {
            forward = function(ctx, x) weak[ctx] = true local y = x * 2 ctx:save(x, y) return y end,
            backward = function(_, dy) return dy * 2 end,
        }
        local x = leaf { 1 }
        for i = 1, 4 do
            local y = f(x)
            if i % 2 == 0 then y:backward() end
        end
        collect()
        x:zero_grad()
        f(x) -- what died is let go of here at the latest
        collect()
        local count = 0
        for _ in pairs(weak) do count = count + 1 end
        if count > 2 then error(count .. " contexts are left") end
    end)

    -- ---- training with them -------------------------------------------------------------------------

    test("a model with a gradient of one's own trains in every format", function()
        local clipped = mp.custom {
            name = "clipped", precision = "fp32",
            forward = function(_, x) return x * 1 end,
            backward = function(_, dy) return dy:clamp(-1e4, 1e4) end,
        }
        for _, format in ipairs { "fp32", "bf16", "fp16" } do
            mp.seed(3)
            local net = nn.Sequential { nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 1) }
            local x = mp.randn(32, 8)
            local y = (x * x):mean(2, true)
            local optimizer, scaler = mp.optim.Adam(net:parameters(), { lr = 1e-2 }), mp.scaler "torch"
            local first, last
            for _ = 1, 15 do
                optimizer:zero_grad()
                local loss = mp.autocast(format, function() return F.mse(clipped(net(x)), y) end)
                scaler:scale(loss):backward()
                scaler:step(optimizer)
                scaler:update()
                last = loss:item()
                first = first or last
            end
            if last ~= last or last > 0.8 * first then error(("%s: %g to %g"):format(format, first, last)) end
        end
    end)

    -- ---- hooks --------------------------------------------------------------------------------------

    test("a hook sees the gradient of a tensor on the way", function()
        local x = leaf { 1, 2 }
        local y = x * 3
        local seen = {}
        y:hook(function(g) seen[#seen + 1] = g:table() end);
        (y * y + y):sum():backward() -- two gradients come to y: it is seen once, whole
        equal(seen, { { 7, 13 } })
        equal(x:grad():table(), { 21, 39 })
    end)

    test("what a hook returns takes the gradient's place", function()
        local x = leaf { 1, 2 }
        local y = x * 3
        y:hook(function(g) return g * 10 end)
        y:hook(function(g) return g + 1 end) -- in the order in which they came
        y:sum():backward()
        equal(x:grad():table(), { 33, 33 })
    end)

    test("a hook on a leaf sees what each walk brings", function()
        local w = leaf { 1, 2 }
        local seen = {}
        local hook = w:hook(function(g) seen[#seen + 1] = g:table() return g * 2 end);
        (w * 3 + w):sum():backward();
        (w * 5):sum():backward()
        equal(seen, { { 4, 4 }, { 5, 5 } })
        equal(w:grad():table(), { 18, 18 })
        equal(mp.grad((w * 7):sum(), { w })[1]:table(), { 14, 14 })
        hook:remove()
        hook:remove();
        (w * 100):sum():backward()
        equal(w:grad():table(), { 118, 118 })
        equal(#seen, 3)
    end)

    test("what a hook kept does not change later", function()
        local w = nn.Parameter(mp.ones(2))
        local kept
        w:hook(function(g) kept = g end)
        local optimizer, scaler = mp.optim.SGD({ w }, { lr = 1 }), mp.scaler(8);
        scaler:scale((w * 3):sum()):backward()
        scaler:unscale(optimizer)
        equal(kept:table(), { 24, 24 }) -- as it arrived: with the loss scale
        equal(w:grad():table(), { 3, 3 })
    end)

    test("hooks work on parameters in low formats, under a scaler", function()
        local layer = nn.Linear(4, 2)
        local formats = {}
        layer.weight:hook(function(g) formats[#formats + 1] = g:dtype() return g:clamp(-1, 1) end)
        local optimizer, scaler = mp.optim.SGD(layer:parameters(), { lr = 1 }), mp.scaler(1024)
        local loss = mp.autocast("fp16", function() return layer(mp.randn(3, 4)):sum() end)
        scaler:scale(loss):backward()
        scaler:step(optimizer)
        scaler:update()
        equal(formats, { "fp32" })
    end)

    test("a hook takes part in second derivatives", function()
        local x = leaf { 2 }
        local y = x * x
        y:hook(function(g) return g * x end) -- so that the derivative is 2 x^2
        local first = mp.grad(y:sum(), { x }, true)[1]
        equal(first:item(), 8)
        equal(mp.grad(first:sum(), { x })[1]:item(), 8)
    end)

    test("what is wrong with a hook is told in a line", function()
        local x = leaf { 1, 2 }
        fails("hook: no gradient comes to this tensor", function() mp.ones(2):hook(print) end)
        fails("hook: argument 2 (f): a function of the gradient expected, got 3", function() x:hook(3) end)
        local returned
        local hook = x:hook(function() return returned end)
        local function walk(what)
            returned = what
            x:sum():backward()
        end
        fails("hook: it returned 5: a tensor", walk, 5)
        fails("hook: it returned [3] fp32 for a gradient of [2] fp32", walk, mp.ones(3))
        fails("hook: it returned [2] int32", walk, mp.arange(2))
        equal(x:grad(), nil)
        hook:remove()
        x:hook(function() error "no more" end)
        fails("no more", walk)
        fails("called with a colon", function() hook.remove {} end)
    end)

    test("a hook that takes itself or its gradient away is fine", function()
        local x = leaf { 1 }
        local hook
        hook = x:hook(function(g)
            hook:remove()
            x:grad(nil)
            x:hook(function(h) return h * 3 end)
            collect()
            return g * 2
        end)
        x:sum():backward()
        equal(x:grad():item(), 6)
        x:sum():backward()
        equal(x:grad():item(), 9)
    end)

    test("hooks may walk other graphs back", function()
        local x = leaf { 1 }
        local seen
        x:hook(function()
            local z = leaf { 3 }
            seen = mp.enable_grad(function() return mp.grad((z * z):sum(), { z })[1] end):item()
        end)
        x:sum():backward()
        equal(seen, 6)
    end)
end }
