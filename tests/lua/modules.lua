-- Models from Lua: names, parameters, precision by layer, what autocast restores, the loop's parts.
local mp = require "mp"
local testing = require "testing"
local nn, F, test, equal, near, fails =
    mp.nn, mp.fn, testing.test, testing.equal, testing.near, testing.fails

return mp.experiment { name = "modules", precision = { default = "bf16" }, run = function(run)
    local Net = nn.class "Net"
    function Net:init()
        self.body = nn.Sequential { nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 8):named "mid" }
        self.heads = { nn.Linear(8, 2), nn.Linear(8, 3) }
    end
    function Net:forward(x)
        x = self.body(x)
        return self.heads[1](x), self.heads[2](x)
    end
    local net = run:model(Net(), "N")

    test("parameters_have_names_in_a_fixed_order", function()
        local names = {}
        for name in net:named_parameters() do names[#names + 1] = name end
        equal(names, { "body.linear1.weight", "body.linear1.bias", "body.mid.weight",
            "body.mid.bias", "heads.1.weight", "heads.1.bias", "heads.2.weight", "heads.2.bias" })
        equal(#net:parameters(), 8)
    end)

    test("biases_and_norms_do_not_decay", function()
        local model = nn.Sequential { nn.Linear(2, 3), nn.LayerNorm(3), nn.Linear(3, 2, { bias = false }) }
        local decayed, plain = table.unpack(model:decay_groups(0.5))
        equal({ decayed.weight_decay, #decayed.params, plain.weight_decay, #plain.params }, { 0.5, 2, 0, 3 })
        mp.optim.SGD({ decayed, plain }, { lr = 0.1 }) -- an optimizer takes them
        equal(#nn.Linear(2, 2, { bias = false }):decay_groups(0.5), 1)
        fails("a number expected", model.decay_groups, model)
    end)

    test("layers_are_registered_under_the_models_name", function()
        local found = {}
        for _, layer in ipairs(mp.policy().layers) do found[layer.name] = layer.precision end
        equal(found["N.body.mid"], "auto")
        equal(found["N.heads.2"], "auto")
    end)

    test("autocast_runs_products_low_and_restores_after_an_error", function()
        local x = mp.randn(2, 4)
        local a = mp.autocast(function() return (net(x)) end)
        equal(a:dtype(), "bf16")
        equal(net(x):dtype(), "fp32")
        mp.autocast(function()
            equal(mp.autocast(false, function() return (net(x)) end):dtype(), "fp32")
            equal((net(x)):dtype(), "bf16")
            equal(mp.autocast("fp16", function() return (net(x)) end):dtype(), "fp16")
        end)
        fails("boom", mp.autocast, function() error("boom") end)
        equal(mp.policy().autocast, false)
    end)

    test("a_layer_set_to_fp32_runs_in_fp32", function()
        net.heads[1]:precision "fp32"
        local a, b = mp.autocast(function() return net(mp.randn(2, 4)) end)
        equal(a:dtype(), "fp32")
        equal(b:dtype(), "bf16")
        net:find("heads.*"):precision "auto"
        equal(mp.autocast(function() return (net(mp.randn(2, 4))) end):dtype(), "bf16")
        fails("fp9", function() net.heads[1]:precision "fp9" end)
    end)

    test("a_precision_for_no_layer_is_an_error", function()
        equal(#net:find "nowhere*", 0) -- to ask is none
        fails('find("nowhere*"):precision: no layer has such a name; there are body, body.linear1',
            function() net:find("nowhere*"):precision "fp32" end)
        fails("did you mean body.mid?", function() net:find("body.mit"):precision "fp32" end)
        fails("find: a pattern of layers' names expected, got 3", net.find, net, 3)
    end)

    test("a_method_that_is_not_there_is_told_with_the_nearest", function()
        local opt = mp.optim.SGD(net:parameters(), { lr = 1 })
        for meant, call in pairs {
            parameters = function() return net:paramters() end,
            named_parameters = function() return net:namedparameters() end,
            precision = function() net:find("*"):precison "fp32" end,
            zero_grad = function() opt:zerograd() end,
            update = function() mp.scaler("torch"):updat() end,
            upper = function() return ("x"):uper() end,
        } do
            fails(("; did you mean %s?"):format(meant), call)
        end
        fails("modules.lua:88: the module Net has no method nonsense", function()
            net:nonsense()
        end)
        local empty = {}
        fails("attempt to call a nil value (field 'paramters')", function() empty.paramters() end)
    end)

    test("a_model_that_is_one_layer_has_a_name", function()
        local function has(name)
            for _, layer in ipairs(mp.policy().layers) do if layer.name == name then return true end end
            return false
        end
        local one, two = nn.Linear(4, 2), nn.Linear(4, 2)
        assert(not has "linear1")
        run:model(one)
        run:model(two)
        assert(has "linear1" and has "linear2")
        for name in one:named_parameters() do assert(name == "weight" or name == "bias", name) end
        one:precision "fp32"
        two:find("linear2"):precision "fp16"
        local x = mp.randn(2, 4)
        equal(mp.autocast(function() return one(x) end):dtype(), "fp32")
        equal(mp.autocast(function() return two(x) end):dtype(), "fp16")
        fails("linear1: input has 5 features, weight wants 4", one, mp.randn(2, 5))
    end)

    test("a_module_prints_as_a_tree", function()
        equal(tostring(net), table.concat({ "Net", "  body: Sequential",
            "    linear1: Linear [8, 4]", "    relu1: ReLU", "    mid: Linear [8, 8]",
            "  heads.1: Linear [2, 8]", "  heads.2: Linear [3, 8]" }, "\n"))
    end)

    test("log_and_result_say_how_they_are_called", function()
        fails("run.log: called with a dot; write run:log", run.log, { loss = 1 })
        fails("result: argument 1 (named values): a table expected, got 3", run.result, run, 3)
    end)

    test("a_shape_error_names_the_layer", function()
        fails("N.body.linear1: input has 5 features, weight wants 4", net, mp.randn(2, 5))
        near(net(mp.randn(2, 4)):shape()[1], 2, 0)
    end)

    test("wrong_modules_are_named", function()
        fails("Linear: in: a positive whole number expected", nn.Linear, 0, 3)
        fails("expected, got the string \"3\"", nn.Linear, "3", 3)
        fails("expected, got a table", nn.Attention, { 8, 2 })
        fails("Linear: one tensor expected, got 2 arguments", nn.Linear(2, 2), mp.ones(1, 2), { bias = false })
        fails("Linear: no option bais; did you mean bias?", nn.Linear, 1, 1, { bais = false })
        fails("Sequential: element 2", nn.Sequential, { nn.ReLU(), 3 })
        fails("element 1: a module expected, got a function; functions that are layers, too, are nn.ReLU(), ",
            nn.Sequential, { F.relu, nn.ReLU() })
        fails("Sequential: element 2: a module expected, got nil", nn.Sequential, { nn.ReLU(), nil, nn.ReLU() })
        fails("Sequential: element 1: a module expected, got nil", nn.Sequential, { nil, nn.ReLU() })
        fails("Sequential: element 1: a module expected, got nil", nn.Sequential, {})
        fails("mp.nn.Linaer: no such name; did you mean Linear?", function() return nn.Linaer end)
        fails("has no forward", nn.class("Empty")(), mp.zeros(1))
        fails("32 is no multiple of 5 heads", nn.Attention, 32, 5)
    end)

    test("dropout_and_batch_norm_know_training_from_evaluation", function()
        local dropout, norm = nn.Dropout(0.5), nn.BatchNorm(3)
        local ones = mp.ones(4, 250)
        local dropped = dropout(ones):sum():item()
        assert(dropped ~= 1000 and dropped > 600 and dropped < 1400, dropped)
        dropout:eval()
        equal(dropout(ones):sum():item(), 1000)
        local x = mp.randn(64, 3) * 2 + 5
        norm(x)
        near(norm.running_mean:table(), (x:mean(1) * 0.1):table(), 1e-5)
        norm:eval()
        local before = norm.running_mean:table()
        norm(x)
        equal(norm.running_mean:table(), before)
    end)

    test("optimizers_and_scalers_check_what_they_are_given", function()
        local params = { mp.zeros(2):requires_grad(true) }
        fails("SGD: lr", mp.optim.SGD, params, {})
        fails("no option momentun; did you mean momentum?", mp.optim.SGD, params,
            { lr = 1, momentun = 1 })
        fails("Linear: no option width; there are bias and activation", nn.Linear, 1, 1, { width = 1 })
        fails("a list of tensors", mp.optim.Adam, 3, { lr = 1 })
        fails("no option grow; did you mean growth?", mp.scaler, { grow = 2 })
        equal(mp.scaler "torch":get(), 65536)
        fails("step.every", mp.optim.schedule.step)
        equal(mp.optim.schedule.linear_warmup().total, 0)
        local opt = mp.optim.SGD(params, { lr = 1 })
        for given, complaint in pairs {
            [{ kind = "cosin", total = 9 }] = "cosin: not known; did you mean cosine? One of constant",
            [{ kind = "zigzag" }] = "zigzag: not known; one of constant",
            [{ total = 9 }] = "schedule.kind is missing",
            [{ kind = "cosine", totl = 9 }] = "no option totl; did you mean total?",
            [9] = "a table expected, got number",
        } do
            fails(complaint, mp.optim.SGD, params, { lr = 1, schedule = given })
            fails(complaint, opt.schedule, opt, given)
        end
        equal(mp.scaler(1024):get(), 1024)
    end)

    test("a_training_step_in_every_part_reduces_the_loss", function()
        local model = run:model(nn.Sequential { nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 3) }, "M")
        local opt = mp.optim.Adam(model:parameters(), { lr = 0.02 })
        local scaler = mp.scaler { init = 1024, interval = 10 }
        local x, y = mp.randn(30, 8), mp.randint(3, 30)
        local first, last
        for _ = 1, 60 do
            opt:zero_grad()
            local loss = mp.autocast(function() return F.cross_entropy(model(x), y) end)
            scaler:scale(loss):backward()
            scaler:unscale(opt)
            assert(mp.optim.clip_norm(model:parameters(), 1.0):item() >= 0)
            scaler:step(opt)
            scaler:update()
            first, last = first or loss:item(), loss:item()
        end
        assert(last < first / 2, ("%g to %g"):format(first, last))
        assert(scaler:applied(opt))
        equal(opt:steps(), 60)
        equal(run.step, 60, "steps of the run")
        assert(scaler:get() > 1024)
    end)

    test("groups_keep_their_own_rates_beside_a_base_rate_of_0", function()
        local function weight() return mp.ones(1):requires_grad(true) end
        local a, b, c = weight(), weight(), weight()
        local opt = mp.optim.SGD({ { params = { a }, lr = 0.5 }, { params = { b }, lr = 0.25 },
            { params = { c } } }, { lr = 0 });
        (a + b + c):sum():backward()
        opt:step()
        equal({ a:item(), b:item(), c:item() }, { 0.5, 0.75, 1 })
        equal(mp.optim.SGD({ { params = { a } } }, { lr = 0 }):lr(), 0)
        fails("lr", mp.optim.SGD, { { params = { a }, lr = -1 } }, { lr = 0 })
    end)

    test("what_is_frozen_before_the_run_knows_it_stays_frozen", function()
        local partly = nn.Sequential { nn.Linear(2, 2):named "frozen", nn.Linear(2, 2):named "free" }
        local weight, bias = partly:parameters()[1], partly:parameters()[2]
        weight:requires_grad(false)
        bias:requires_grad(false)
        run:model(partly, "partly")
        equal(weight:requires_grad(), false)
        local before = weight:table()
        local opt = mp.optim.SGD(partly:parameters(), { lr = 1 })
        partly(mp.ones(1, 2)):sum():backward()
        opt:step()
        equal(weight:table(), before)
        assert(not weight:grad() and partly:parameters()[3]:grad())
        weight:requires_grad(true)
        partly(mp.ones(1, 2)):sum():backward()
        assert(weight:grad())
    end)

    test("averages_of_weights_can_be_looked_through", function()
        local weight = nn.Linear(1, 1, { bias = false })
        weight.weight:copy(mp.tensor { { 1 } })
        local average = mp.optim.EMA(weight, 0.5)
        weight.weight:copy(mp.tensor { { 3 } })
        average:update()
        average:with(function() near(weight.weight:table()[1][1], 2, 1e-6) end)
        near(weight.weight:table()[1][1], 3, 0)
    end)
end }
