-- Tensors from Lua: creation, reading, views, operators, errors that name what was wrong.
local mp = require "mp"
local testing = require "testing"
local F, test, equal, near, fails = mp.fn, testing.test, testing.equal, testing.near, testing.fails

return mp.experiment { name = "tensors", run = function(run)
    test("tensors_come_from_nested_tables_and_go_back", function()
        local t = mp.tensor { { 1, 2, 3 }, { 4, 5, 6 } }
        equal(t:shape(), { 2, 3 })
        equal(t:dtype(), "fp32")
        equal(t:table(), { { 1, 2, 3 }, { 4, 5, 6 } })
        equal(#t, 2)
        equal(t[2]:table(), { 4, 5, 6 })
        equal(mp.tensor(5):item(), 5)
        equal(mp.tensor({ 1, 2 }, "int32"):dtype(), "int32")
    end)

    test("formats_go_by_the_names_of_other_tools", function()
        equal(mp.tensor({ 1 }, "float16"):dtype(), "fp16")
        equal(mp.tensor({ 1 }, "half"):to "bfloat16":dtype(), "bf16")
        equal(mp.tensor({ 1 }, "int"):to "float":dtype(), "fp32")
        fails("kept in fp32, bf16, fp16, int32 or uint8", function() mp.zeros(1):to "float24" end)
        fails("kept in fp32", function() mp.zeros(1):to "fp8" end)
        local x = mp.randn(2, 3)
        equal(mp.autocast("half", function() return x:matmul(x:transpose()) end):dtype(), "fp16")
        equal(mp.autocast("float32", function() return x:matmul(x:transpose()) end):dtype(), "fp32")
    end)

    -- Threads of the CPU flush what is smaller than normal numbers: copies are no arithmetic.
    test("copies_keep_subnormal_numbers", function()
        local tiny, bf16 = 2 ^ -140, 2 ^ -130
        local t = mp.tensor { { tiny, 1 }, { -tiny, 2 } }
        local one, onto = mp.full(tiny, 1, 1, 1, 1), mp.zeros(2, 2)
        local leaf = mp.zeros(2, 2):requires_grad(true)
        onto:copy(t)
        leaf:backward(t)
        equal(t:table(), { { tiny, 1 }, { -tiny, 2 } })
        for what, copy in pairs { clone = t:clone(), detach = t:detach(), to = t:to "fp32",
            permute = t:transpose():clone():transpose(), reshape = t:reshape(4):reshape(2, 2),
            copy = onto, cat = F.cat { t[1]:reshape(1, 2), t[2]:reshape(1, 2) },
            stack = F.stack { t[1], t[2] }, slice = F.cat({ t:slice(2, 1, 1), t:slice(2, 2, 2) }, 2),
            where = F.where(mp.tensor({ { 1, 0 }, { 1, 0 } }, "uint8"), t, t),
            embedding = F.embedding(mp.tensor({ 0, 1 }, "int32"), t), gradient = leaf:grad(),
            gather = F.gather(t, 1, mp.tensor({ { 0, 0 }, { 1, 1 } }, "int32")),
            dropout = F.dropout(t, 0.5, false), neg = -(-t) } do
            equal(copy:table(), { { tiny, 1 }, { -tiny, 2 } }, what)
        end
        equal(mp.full(tiny, 2):table(), { tiny, tiny })
        equal(one:expand(1, 2, 1, 1):reshape(2):table(), { tiny, tiny })
        equal(F.upsample(one, 2):sum():dtype(), "fp32")
        equal(F.pad(t[1], { { 1, 1 } }, tiny):table(), { tiny, tiny, 1, tiny })
        equal(F.max_pool2d(F.upsample(one, 2), 2):item(), tiny)
        equal(mp.tensor({ bf16 }, "bf16"):to "fp32":to "bf16":item(), bf16)
        equal(mp.tensor(tiny):item(), tiny)
        equal(mp.tensor({ 2 ^ -24 }, "fp16"):to "fp32":item(), 2 ^ -24)
    end)

    test("numbers_come_and_go_with_all_their_digits", function()
        local whole = { 16777217, -2147483648, 2147483647 }
        equal(mp.tensor(whole, "int32"):table(), whole)
        equal(mp.tensor({ 0.1, 1e-310 }, "fp64"):table(), { 0.1, 1e-310 })
        equal(mp.tensor(1 + 2 ^ -11 + 2 ^ -40, "fp16"):item(), 1 + 2 ^ -10) -- rounded once
        fails("no whole number from 0 to 255, which uint8", mp.tensor, { 256 }, "uint8")
        fails("1.5 is no whole number", mp.tensor, { 1.5 }, "int32")
        fails("no whole number", mp.tensor, { 0 / 0 }, "int32")
    end)

    test("uneven_tables_are_refused", function()
        fails("unequal length", mp.tensor, { { 1, 2 }, { 3 } })
        fails("a number expected", mp.tensor, { 1, "x" })
    end)

    test("creation_makes_what_it_says", function()
        equal(mp.zeros(2, 2):table(), { { 0, 0 }, { 0, 0 } })
        equal(mp.full(7, 3):table(), { 7, 7, 7 })
        equal(mp.arange(4):table(), { 0, 1, 2, 3 })
        local u = mp.rand(1000):table()
        for _, x in ipairs(u) do assert(x >= 0 and x < 1) end
        for _, x in ipairs(mp.randint(5, 100):table()) do assert(x >= 0 and x < 5) end
        near(mp.randn(20000):mean():item(), 0, 0.05, "mean of randn")
    end)

    test("the_same_seed_gives_the_same_numbers", function()
        mp.seed(3)
        local a = mp.randn(5):table()
        mp.seed(3)
        equal(mp.randn(5):table(), a)
        assert(mp.randn(5):table()[1] ~= a[1])
    end)

    test("operators_broadcast", function()
        local t = mp.tensor { { 1, 2 }, { 3, 4 } }
        equal((t + 1):table(), { { 2, 3 }, { 4, 5 } })
        equal((10 - t):table(), { { 9, 8 }, { 7, 6 } })
        equal((t * mp.tensor { 10, 100 }):table(), { { 10, 200 }, { 30, 400 } })
        equal((t / 2):table(), { { 0.5, 1 }, { 1.5, 2 } })
        equal((-t)[1]:table(), { -1, -2 })
        near((t ^ 2):table()[2][2], 16, 1e-5)
        equal(t:matmul(t):table(), { { 7, 10 }, { 15, 22 } })
    end)

    test("views_share_what_they_look_at", function()
        local t = mp.arange(6):to "fp32":reshape(2, 3)
        equal(t:transpose():table(), { { 0, 3 }, { 1, 4 }, { 2, 5 } })
        equal(t:permute(2, 1):shape(), { 3, 2 })
        equal(t:slice(2, 2, 3):table(), { { 1, 2 }, { 4, 5 } })
        local left, middle, right = t:chunk(3, 2)
        equal({ left:table(), middle:table(), right:table() }, { { { 0 }, { 3 } }, { { 1 }, { 4 } }, { { 2 }, { 5 } } })
        fails("4 parts: dimension 2 has 3 elements", t.chunk, t, 4, -1)
        equal(#t:chunk(2), 1) -- the first dimension where none is named
        fails("no dimensions", mp.tensor(1).chunk, mp.tensor(1), 1)
        equal(t:reshape(-1):shape(), { 6 })
        equal(mp.tensor { { 1 }, { 2 } }:expand(2, 3):table(), { { 1, 1, 1 }, { 2, 2, 2 } })
    end)

    test("reductions_count_dimensions_from_one", function()
        local t = mp.tensor { { 1, 2 }, { 3, 4 } }
        equal(t:sum():item(), 10)
        equal(t:sum(1):table(), { 4, 6 })
        equal(t:mean(-1):table(), { 1.5, 3.5 })
        equal(t:max(2, true):table(), { { 2 }, { 4 } })
        fails("dimension 3", t.sum, t, 3)
    end)

    test("choosing_and_joining", function()
        local t = mp.tensor { { 1, 9, 3 }, { 7, 5, 6 } }
        equal(F.argmax(t):table(), { 1, 0 })
        local values, indices = F.topk(t, 2)
        equal(values:table(), { { 9, 3 }, { 7, 6 } })
        equal(indices:table(), { { 1, 2 }, { 0, 2 } })
        equal(F.cat({ t, t }, 2):shape(), { 2, 6 })
        equal(F.stack({ t, t, t }):shape(), { 3, 2, 3 })
        local many = {}
        for i = 1, 40 do many[i] = mp.full(i, 1) end
        equal(F.cat(many, 1):table()[40], 40)
        equal(F.where(F.greater(t, 5), t, 0):table(), { { 0, 9, 0 }, { 7, 0, 6 } })
        equal(F.gather(t, 2, mp.tensor({ { 2 }, { 0 } }, "int32")):table(), { { 3 }, { 7 } })
        equal(F.pad(mp.tensor { 1, 2 }, { { 1, 2 } }, 9):table(), { 9, 1, 2, 9, 9 })
        equal(F.clamp(t, 4, 6):table(), { { 4, 6, 4 }, { 6, 5, 6 } })
    end)

    test("gradients_flow_and_accumulate", function()
        local x = mp.tensor { 1, 2, 3 }:requires_grad(true);
        (x * x):sum():backward()
        equal(x:grad():table(), { 2, 4, 6 });
        (x * x):sum():backward()
        equal(x:grad():table(), { 4, 8, 12 })
        x:zero_grad()
        equal(x:grad(), nil)
        local g = mp.grad((x * x * x):sum(), { x }, true)[1]
        equal(g:table(), { 3, 12, 27 })
        equal(mp.grad(g:sum(), { x })[1]:table(), { 6, 12, 18 })
        mp.no_grad(function() assert(not (x * 2):requires_grad()) end)
        assert(not x:detach():requires_grad())
    end)

    test("tostring_prints_rows", function()
        equal(tostring(mp.tensor { { 1, 2 }, { 3, 4.5 } }), "[[1, 2],\n [3, 4.5]]  [2, 2] fp32")
    end)

    test("wrong_arguments_are_named", function()
        local t = mp.zeros(2, 3)
        fails("linear: argument 2 (weight): a tensor expected, got the string \"w\"", F.linear, t, "w")
        fails("matmul", F.matmul, t, t)
        fails("reshape: [2, 3] has 6 elements", t.reshape, t, 4)
        fails("index 3: the tensor has elements 1 to 2", function() return t[3] end)
        fails("a tensor has no shap; did you mean shape?", function() return t.shap end)
        fails("a tensor has no colour", function() return t.colour end)
        for name, ours in pairs { view = "t:reshape(..)", vew = "t:reshape(..)", size = "t:shape()",
            unsqueeze = "with a size of 1", float = 't:to "fp32"', cuda = "-d: all tensors" } do
            fails(("a tensor has no %s; PyTorch's "):format(name), function() return t[name] end)
            fails(ours, function() return t[name](t) end)
        end
        local net = mp.nn.Sequential { mp.nn.Linear(3, 3) }
        fails("write m(x) or m:forward(x)", function() net.forward(t) end)
        fails("grad: input 2 asks for no gradient: call :requires_grad(true)", mp.grad,
            net(t):sum(), { net:parameters()[1], t })
        fails("swap the two arguments", F.cross_entropy, mp.tensor({ 0, 1 }, "int32"), t)
        fails("no fewer than the 20 of schedule.warmup", mp.optim.SGD, net:parameters(), { lr = 1,
            schedule = mp.optim.schedule.cosine { total = 2, warmup = 20 } })
        fails("mp.fn.relux: no such name; did you mean relu?", function() return F.relux end)
        fails("softmax: dimension 0", F.softmax, t, 0)
        fails("dropout: p is 1", F.dropout, t, 1)
        fails("no option padd", F.conv2d, mp.zeros(1, 3, 3, 1), mp.zeros(1, 2, 2, 1), nil, { padd = 1 })
        testing.fails_at_once(run, "class 7 at row", F.cross_entropy, mp.zeros(2, 3), mp.tensor({ 0, 7 }, "int32"))
        fails("tables of unequal length", mp.tensor, { { 1 }, {} })
        fails("too large", mp.zeros, 1 << 40, 1 << 40)
    end)
end }
