-- What a function does not take is an error, never passed over: arguments, options, names in lists.
local mp = require "mp"
local testing = require "testing"
local nn, F, test, equal, fails = mp.nn, mp.fn, testing.test, testing.equal, testing.fails

-- These take any number of arguments.
local open = { zeros = 1, ones = 1, full = 1, randn = 1, rand = 1, randint = 1, autocast = 1, no_grad = 1,
    enable_grad = 1, memory = 1 }

-- All of a room refuse 30 arguments, by the number.
local function all_refuse(room, title)
    local count = 0
    for name, f in pairs(room) do
        local is_class = type(f) == "table" and rawget(f, "_name")
        if (type(f) == "function" or is_class) and not open[name] then
            count = count + 1
            local many = {}
            for i = 1, 30 do many[i] = true end
            local done, message = pcall(f, table.unpack(many))
            if done or not message:find(" takes ", 1, true) then
                error(("%s%s: %s"):format(title, name, tostring(message)))
            end
        end
    end
    return count
end

return mp.experiment { name = "arguments", params = { width = 3 }, run = function(run)
    local x, y = mp.rand(3, 4), mp.rand(3, 4)
    local image = mp.rand(1, 4, 4, 2)
    local net = nn.Linear(4, 2)
    local opt = mp.optim.SGD(net:parameters(), { lr = 0.1 })

    test("every_function_counts_its_arguments", function()
        assert(all_refuse(F, "F.") > 60)
        assert(all_refuse(nn, "nn.") > 25)
        assert(all_refuse(mp.optim, "mp.optim.") > 6)
        assert(all_refuse(mp.optim.schedule, "mp.optim.schedule.") == 3)
        assert(all_refuse(mp.data, "mp.data.") >= 6)
        assert(all_refuse(mp, "mp.") > 5)
    end)

    test("surplus_arguments_are_told_with_what_is_taken", function()
        fails("F.accuracy takes 2 arguments, got 3: F.accuracy(logits, classes)",
            F.accuracy, x, mp.randint(4, 3), { label_smoothing = 0.1 })
        fails("F.cross_entropy takes at most 3 arguments, got 4", F.cross_entropy, x, mp.randint(4, 3), {}, "sum")
        fails("upsample: argument 3 (options): a table expected, got the string \"bilinear\"",
            F.upsample, image, 2, "bilinear")
        fails("F.huber takes at most 4 arguments, got 5", F.huber, x, y, 1, {}, "mean")
        fails("t:slice takes at most 3 arguments, got 4: t:slice(dim, first [, last])", x.slice, x, 1, 1, 3, 2)
        fails("t:item takes no arguments, got 1", x.item, x, 1)
        fails("mp.scaler takes 1 argument, got 2", mp.scaler, { init = 8 }, function() return 1 end)
        fails("nn.ReLU takes no arguments, got 1", nn.ReLU, true)
        fails("nn.Dropout takes at most 1 argument, got 2", nn.Dropout, 0.5, true)
        fails("nn.Linear takes at most 3 arguments, got 4", nn.Linear, 4, 2, {}, "fp16")
        fails("mp.optim.EMA takes 2 arguments, got 3", mp.optim.EMA, net, 0.5, true)
        fails("m:eval takes no arguments, got 1", net.eval, net, true)
        fails("opt:step takes no arguments, got 1", opt.step, opt, print)
        fails("s:get takes no arguments, got 1", mp.scaler(8).get, mp.scaler(8), 1)
        fails("run:scaler takes no arguments, got 1", run.scaler, run, "fp16")
        fails("Sequential: one tensor expected, got 2 arguments", nn.Sequential { nn.ReLU() }, x, y)
    end)

    test("nil_behind_the_arguments_is_as_good_as_nothing", function()
        equal(F.mse(x, y, nil, nil):shape(), {})
        equal(nn.ReLU(nil)(x):shape(), { 3, 4 })
        equal(F.sum(x, nil, nil):shape(), {})
    end)

    test("options_are_held_to_their_names", function()
        fails("conv2d: no option strid; did you mean stride?", F.conv2d, image, mp.rand(1, 1, 1, 2), nil,
            { strid = 2 })
        fails("conv2d: options have names, as in { stride = .. }; got one without", F.conv2d, image,
            mp.rand(1, 1, 1, 2), nil, { 2 })
        fails("conv2d: argument 4 (options): a table expected, got 2", F.conv2d, image,
            mp.rand(1, 1, 1, 2), nil, 2)
        fails("attention: no option casual; did you mean causal?", F.attention, image, image, image,
            { casual = true })
        fails("backward: no option retain_graph", x.backward, x, nil, { retain_graph = true })
        fails("Conv2d: no option strides; did you mean stride?", nn.Conv2d, 1, 1, 1, { strides = 2 })
        fails("Linear: options have names, as in { bias = .. }; got one without", nn.Linear, 4, 2, { false })
        fails("load: no option scales; did you mean scale?", function() mp.scaler(8):load { scales = 1 } end)
        fails("synthetic: no option shuffel; did you mean shuffle?", mp.data.synthetic,
            { shape = { 2 }, shuffel = true })
        fails("cosine: no option warm; did you mean warmup?", mp.optim.schedule.cosine, { warm = 3 })
        fails("cosine: options have names", mp.optim.schedule.cosine, { 3 })
    end)

    test("lists_hold_nothing_but_their_elements", function()
        local named = "also has [dtype]"
        fails(named, mp.zeros, { 2, 3, dtype = "fp16" })
        fails("behind the list came the string \"fp16\"", mp.zeros, { 2, 3 }, "fp16")
        fails("sizes are one list or several numbers", x.reshape, x, { 4, 3 }, 1)
        fails(named, mp.tensor, { 1, 2, dtype = "fp16" })
        fails(named, F.cat, { x, y, dtype = 1 })
        fails(named, F.sum, x, { 1, dtype = 1 })
        fails(named, mp.grad, x, { x, dtype = 1 })
        local w = { net.weight, lr = 1, dtype = 1 }
        fails("SGD: a list of 1 element expected, which also has", mp.optim.SGD, w, { lr = 1 })
        fails("SGD: argument 1 (parameters): a list of tensors or of groups expected", mp.optim.SGD, { lr = 1 })
        fails("Adam: argument 1 (parameters): a list of tensors or of groups expected", mp.optim.Adam)
        fails("Adam: argument 1 (parameters): a list of tensors or of groups expected, got the module Linear: "
            .. "pass its :parameters()", mp.optim.Adam, nn.Linear(2, 2), { lr = 1 })
        fails("LAMB: argument 1 (parameters): a list of tensors or of groups expected", mp.optim.LAMB, 1, { lr = 1 })
        fails("clip_norm: a list of 1 element expected", mp.optim.clip_norm, w, 1)
        fails("Adam: a list of 1 element expected", mp.optim.Adam,
            { { params = net:parameters() }, lr = 1 }, { lr = 1 })
        fails("Adam: a list of 2 elements expected", mp.optim.Adam, net:parameters(),
            { lr = 1, betas = { 0.9, 0.99, eps = 1 } })
        fails("also has [5]", F.cat, { x, y, [5] = x })
        fails("pad: padding: two whole numbers expected", F.pad, x, { { 1, 2, 3 } })
        fails("options): a table expected, got a tensor", mp.optim.FusedAdam, { mp.nn.Parameter(mp.zeros(2)) }, x)
        fails("conv2d: stride: two whole numbers expected", F.conv2d, image, mp.rand(1, 1, 1, 2), nil,
            { stride = { 1, 1, 1 } })
        fails("Conv2d: stride: a whole number of at least 1 expected, or 2 of them", nn.Conv2d, 1, 1, 1,
            { stride = { 1, 1, height = 2 } })
        fails("MaxPool2d: size: a whole number of at least 1", nn.MaxPool2d, { 2, 2, 2 })
        fails("Sequential: a list expected, whose elements have no names; got head", nn.Sequential,
            { nn.ReLU(), head = net })
        fails("experiment: fields have names; got one without", mp.experiment,
            { name = "x", run = print, print })
    end)

    test("what_is_no_boolean_is_not_taken_for_one", function()
        fails("sum: argument 3 (keep): true or false expected, got the string \"keep\"", F.sum, x, 1, "keep")
        fails("grad: argument 3 (create_graph): true or false expected, got table", mp.grad, x, { x }, {})
        fails("requires_grad: argument 2 (on): true or false expected, got 1", x.requires_grad, x, 1)
        fails("Dropout: p: a number expected, got a table", nn.Dropout, { p = 0.5 })
        fails("LeakyReLU: slope: a number expected", nn.LeakyReLU, "steep")
    end)

    test("methods_called_with_a_dot_say_so", function()
        fails("t.item: called with a dot; write t:item()", x.item)
        fails("m.find: called with a dot; write m:find(pattern)", net.find, "x")
        fails("run.event: called with a dot; write run:event(text)", run.event, "x")
        fails("average.update: called with a dot", mp.optim.EMA(net, 0.5).update)
    end)

    test("operations_outside_of_layers_are_named_by_errors", function()
        fails("topk: the largest 9 are wanted", F.topk, x, 9)
        fails("conv2d: stride height is 0", F.conv2d, image, mp.ones(1, 3, 3, 2), nil, { stride = 0 })
        local classes = mp.tensor({ 5, 1, 0 }, "int32")
        testing.fails_at_once(run, "cross_entropy: class 5 at row 1", F.cross_entropy, x, classes)
        fails("ones: a tensor of shape", mp.ones, math.maxinteger)
    end)

    test("errors_count_dimensions_as_scripts_do", function()
        fails("cat: a tensor has shape [2,5], the first has [2,4]: they may differ in dimension 1 only", F.cat,
            { mp.ones(2, 4), mp.ones(2, 5) }, 1)
        fails("they may differ in dimension 2 only", F.gather, mp.ones(2, 4), -1, mp.zeros(1, 4):to "int32")
        fails("stack: list[2] has shape [2,5], list[1] has [2,4]: all must have one shape", F.stack,
            { mp.ones(2, 4), mp.ones(2, 5) }, 1)
    end)

    test("tensors_say_how_they_are_assigned_and_compared", function()
        local t = mp.zeros(2, 3)
        fails("cannot be assigned: t[i]:copy(other) gives one its contents", function() t[1] = 3 end)
        t[1]:copy(mp.full(3, 3))
        equal(t:table(), { { 3, 3, 3 }, { 0, 0, 0 } })
        fails("a tensor takes no fields: keep label beside it", function() t.label = "cat" end)
        fails("t:item() is the number of one element, F.greater", function() return t:sum() > 0 end)
        fails("t:item() is the number of one element, F.greater", function() return t[1] <= t[2] end)
    end)

    test("parameters_that_are_not_there_are_errors", function()
        fails("run.parms: no such name; did you mean params?", function() return run.parms end)
        fails("run.devise: no such name; did you mean device?", function() return run.devise end)
        equal(run.params.width, 3)
        fails("params.widht: no such name; did you mean width?", function() return run.params.widht end)
    end)
end }
