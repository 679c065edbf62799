-- Optimizers hold to what their options say, and refuse what they do not have.
local mp = require "mp"
local optim = mp.optim
local testing = require "testing"
local test, equal, near, fails = testing.test, testing.equal, testing.near, testing.fails

local kinds = { "SGD", "Adam", "AdamW", "LAMB" }

local function weight(...) return mp.tensor { ... }:requires_grad(true) end

-- One step on a gradient that is `slopes`.
local function step(opt, w, slopes, scaler, before_step)
    opt:zero_grad()
    local loss = (w * mp.tensor(slopes)):sum()
    if scaler then
        scaler:scale(loss):backward()
        scaler:unscale(opt)
    else
        loss:backward()
    end
    if before_step then before_step() end
    if scaler then
        scaler:step(opt)
        scaler:update()
    else
        opt:step()
    end
end

return mp.experiment { name = "optimizers", run = function()
    test("max_grad_norm_holds_the_gradient_of_every_optimizer", function()
        local w = weight(1)
        step(optim.SGD({ w }, { lr = 1, max_grad_norm = 1 }), w, { 10 })
        near(w:item(), 0, 1e-6)
        -- Adam's moments show what it was given: with betas of 0 the update is g / (|g| + eps).
        for _, kind in ipairs { "Adam", "AdamW" } do
            local p = weight(0)
            step(optim[kind]({ p }, { lr = 1, betas = { 0, 0 }, eps = 1, weight_decay = 0,
                max_grad_norm = 3 }), p, { 10 })
            near(p:item(), -0.75, 1e-6, kind)
        end
    end)

    test("FusedSGD_and_FusedLAMB_do_what_SGD_and_LAMB_do", function()
        -- 2 - 0.1 * 1.2; then a velocity of 0.9 * 1.2 + 1.188.
        local w = weight(2)
        local sgd = optim.FusedSGD({ w }, { lr = 0.1, momentum = 0.9, weight_decay = 0.1 })
        step(sgd, w, { 1 })
        near(w:item(), 1.88, 1e-6)
        step(sgd, w, { 1 })
        near(w:item(), 1.6532, 1e-6)
        -- The length of an update is that of the weights, times the rate, whatever the gradient is.
        local p = weight(2)
        step(optim.FusedLAMB({ p }, { lr = 0.1 }), p, { -30 })
        near(math.abs(p:item() - 2), 0.2, 1e-5)
        for _, kind in ipairs { "SGD", "LAMB" } do
            local own, fused = weight(1, -2, 3), weight(1, -2, 3)
            local a, b = optim[kind]({ own }, { lr = 0.1 }), optim["Fused" .. kind]({ fused }, { lr = 0.1 })
            for i = 1, 3 do
                step(a, own, { i, -1, 0.5 })
                step(b, fused, { i, -1, 0.5 })
            end
            equal(fused:table(), own:table(), kind)
        end
    end)

    test("max_grad_norm_is_of_all_groups_together_and_of_true_gradients", function()
        for _, scaler in ipairs { false, mp.scaler(1024) } do
            local a, b = weight(0), weight(0)
            local opt = optim.SGD({ { params = { a } }, { params = { b }, lr = 2 } },
                { lr = 1, max_grad_norm = 5 })
            opt:zero_grad()
            local loss = (a * 30 + b * 40):sum()
            if scaler then scaler:scale(loss):backward() else loss:backward() end
            if scaler then
                scaler:step(opt)
                scaler:update()
            else
                opt:step()
            end
            near(a:item(), -3, 1e-5)
            near(b:item(), -8, 1e-5)
        end
    end)

    test("max_grad_norm_goes_by_what_was_clipped_before", function()
        local w = weight(0, 0)
        local opt, scaler = optim.SGD({ w }, { lr = 1, max_grad_norm = 5 }), mp.scaler(16)
        step(opt, w, { 30, 40 }, scaler, function() optim.clip_norm({ w }, 1) end)
        near(w:table(), { -0.6, -0.8 }, 1e-5)
        w:copy(mp.zeros(2))
        step(opt, w, { 30, 40 }, scaler, function() optim.clip_value({ w }, 3) end)
        near(w:table(), { -3, -3 }, 1e-5)
    end)

    test("a_skipped_step_leaves_all_as_it_was_beside_max_grad_norm", function()
        for _, kind in ipairs(kinds) do
            local w, v = weight(1, 2), weight(3)
            local opt = optim[kind]({ w, v }, { lr = 0.1, max_grad_norm = 1 })
            local scaler = mp.scaler(16)
            step(opt, w, { 1, 2 }, scaler)
            local before = w:table()
            step(opt, w, { math.huge, 2 }, scaler)
            assert(not scaler:applied(opt))
            equal(w:table(), before, kind)
            equal(opt:steps(), 1)
        end
    end)

    test("options_of_another_optimizer_are_refused", function()
        local w = weight(1)
        for _, kind in ipairs { "Adam", "AdamW", "LAMB" } do
            for option, value in pairs { momentum = 0.9, nesterov = true } do
                fails(("%s: no option %s, which is one of SGD"):format(kind, option), optim[kind],
                    { w }, { lr = 1, [option] = value })
            end
        end
        for option, value in pairs { betas = { 0.9, 0.99 }, eps = 1e-8, bias_correction = true } do
            fails(("SGD: no option %s, which is one of Adam, AdamW and LAMB"):format(option),
                optim.SGD, { w }, { lr = 1, [option] = value })
        end
        fails("no option max_grad_nrm; did you mean max_grad_norm?", optim.Adam, { w },
            { lr = 1, max_grad_nrm = 1 })
        fails("options are named", optim.Adam, { w }, { lr = 1, 0.9 })
    end)

    test("values_without_sense_are_refused", function()
        local nan = 0 / 0
        local w = weight(1)
        for _, kind in ipairs(kinds) do
            for option, values in pairs { lr = { -1, nan, math.huge, "x" },
                max_grad_norm = { -1, nan, math.huge, "x" }, weight_decay = { -1, nan, "x" },
                grads = { "fp16", 3 }, stochastic = { 1 } } do
                for _, value in ipairs(values) do
                    local options = { lr = 1 }
                    options[option] = value
                    fails(option, optim[kind], { w }, options)
                end
            end
        end
        for _, value in ipairs { -0.1, 1.5, nan } do
            fails("momentum", optim.SGD, { w }, { lr = 1, momentum = value })
        end
        for _, kind in ipairs { "Adam", "AdamW", "LAMB" } do
            for _, value in ipairs { { 1, 0.9 }, { 0.9, 1 }, { -0.1, 0.9 }, { nan, 0.9 }, { 0.9 },
                { 0.9, 0.99, 0.999 }, 0.9 } do
                fails("beta", optim[kind], { w }, { lr = 1, betas = value })
            end
            for _, value in ipairs { -1, 0, nan } do
                fails("eps", optim[kind], { w }, { lr = 1, eps = value })
            end
        end
        fails("lr of group 2 is -2", optim.SGD, { { params = { w } }, { params = { weight(1) },
            lr = -2 } }, { lr = 1 })
        for _, value in ipairs { -1, 0, nan, math.huge } do
            fails("limit", optim.clip_norm, { w }, value)
            fails("limit", optim.clip_value, { w }, value)
        end
        for _, value in ipairs { -1, nan, math.huge } do
            fails("lr", function() optim.SGD({ w }, { lr = 1 }):lr(value) end)
        end
    end)

    test("schedules_scalers_and_averages_refuse_what_they_do_not_have", function()
        local nan = 0 / 0
        local w = weight(1)
        fails("cosine: options have names", optim.schedule.cosine, { 10 })
        fails("scaler: options have names", mp.scaler, { 1024 })
        for name, complaint in pairs { start = "schedule.start", warmup = "schedule.warmup",
            floor = "floor", total = "schedule.total" } do
            fails(complaint, optim.SGD, { w }, { lr = 1,
                schedule = optim.schedule.cosine { total = 9, [name] = -1 } })
        end
        fails("schedule.start", optim.SGD, { w }, { lr = 1,
            schedule = optim.schedule.linear_warmup { warmup = 1, total = 9, start = 2 } })
        for option, values in pairs { init = { -1, 0, nan }, growth = { 1, nan }, backoff = { 1, 0 },
            interval = { 0, 1.5 }, floor = { -1 }, ceiling = { 0 } } do
            for _, value in ipairs(values) do fails(option, mp.scaler, { [option] = value }) end
        end
        for _, value in ipairs { -0.1, 1, nan } do
            fails("decay", optim.EMA, mp.nn.Linear(1, 1), value)
        end
        local scaler = mp.scaler(16)
        scaler:load(scaler:state())
        fails("no option god; did you mean good?", scaler.load, scaler, { god = 1 })
        for option, values in pairs { scale = { -1, 0, nan, math.huge, 1e300 },
            good = { -1, math.maxinteger }, hysteresis_left = { math.mininteger, 0.5 } } do
            for _, value in ipairs(values) do
                fails(option, scaler.load, scaler, { [option] = value })
            end
        end
    end)

    test("each_parameter_counts_its_own_updates", function()
        for _, kind in ipairs { "Adam", "AdamW", "LAMB" } do
            local early, late = weight(1), weight(1)
            local opt = optim[kind]({ early, late }, { lr = 0.125, weight_decay = 0, eps = 1e-12,
                max_grad_norm = 0 })
            for i = 1, 3 do
                opt:zero_grad();
                (i < 3 and early * 2 or early * 2 + late * 2):sum():backward()
                opt:step()
            end
            -- Of a first update the corrected moments are g and g², so that it moves by the rate.
            near(late:item(), 0.875, 1e-5, kind)
            equal(opt:steps(), 3)
        end
    end)

    test("lr_tells_the_rate_of_the_next_update", function()
        local w = weight(0)
        local opt = optim.SGD({ w }, { lr = 0.5,
            schedule = optim.schedule.linear_warmup { warmup = 2, total = 4, start = 0.5 } })
        local told, taken, at = {}, {}, 0
        for i = 1, 5 do
            told[i] = opt:lr()
            step(opt, w, { 1 })
            taken[i], at = at - w:item(), w:item()
        end
        near(told, { 0.25, 0.375, 0.5, 0.25, 0 }, 1e-9)
        near(taken, told, 1e-6)
        near(optim.SGD({ w }, { lr = 0.5, schedule = optim.schedule.cosine { warmup = 3,
            total = 9 } }):lr(), 0.5 / 3, 1e-9) -- as PyTorch's LinearLR begins
    end)

    test("groups_can_be_given_other_rates", function()
        local a, b = weight(0), weight(0)
        local opt = optim.SGD({ { params = { a } }, { params = { b }, lr = 0.2, weight_decay = 0.5 } },
            { lr = 0.1 })
        near(opt:lr(nil, 2), 0.2, 1e-12)
        near(opt:lr(0.4, 2), 0.4, 1e-12)
        near(opt:lr(), 0.1, 0)
        step(opt, a, { 1 });
        near(a:item(), -0.1, 1e-7)
        near(opt:lr(0.2), 0.2, 1e-12) -- all, each by its share
        near(opt:lr(nil, 2), 0.8, 1e-12)
        local groups = opt:groups()
        equal(#groups, 2)
        near(groups[2].lr, 0.8, 1e-12)
        near(groups[2].weight_decay, 0.5, 0)
        equal(groups[1].count, 1)
        opt:lr(0)
        equal(opt:lr(nil, 2), 0)
        opt:lr(0.3, 2)
        near(opt:lr(nil, 2), 0.3, 1e-12)
        equal(opt:lr(nil, 1), 0)
        fails("group 3: the optimizer has 2", opt.lr, opt, 0.1, 3)
        fails("group", opt.lr, opt, nil, 0)
        fails("lr is -1", opt.lr, opt, -1, 1)
    end)

    test("the_floor_of_a_cosine_is_a_rate_for_every_group", function()
        local a, b = weight(0), weight(0)
        local opt = optim.SGD({ { params = { a } }, { params = { b }, lr = 2 } }, { lr = 1,
            schedule = optim.schedule.cosine { total = 2, floor = 0.5 } })
        for _ = 1, 3 do
            opt:zero_grad();
            (a + b):sum():backward()
            opt:step()
        end
        near(a:item(), -(1 + 0.75 + 0.5), 1e-6)
        near(b:item(), -(2 + 1.25 + 0.5), 1e-6)
    end)

    test("the_norm_of_gradients_that_are_not_finite_is_not_finite", function()
        for _, bad in ipairs { math.huge, 0 / 0 } do
            local a, b = weight(1, 1), weight(1);
            (a * mp.tensor { 3, 4 }):sum():backward();
            (b * bad):sum():backward()
            local norm = optim.clip_norm({ a, b }, 1):item()
            assert(norm == math.huge or norm ~= norm, norm)
            equal(a:grad():table(), { 3, 4 }) -- there is nothing to hold them to
        end
    end)

    test("gradients_that_are_not_there_are_left_out", function()
        local a, b = weight(3), weight(1)
        local opt = optim.SGD({ a, b }, { lr = 1, max_grad_norm = 1 });
        (a * 5):sum():backward()
        near(optim.clip_norm({ a, b }, 4):item(), 5, 1e-6)
        opt:step()
        near({ a:item(), b:item() }, { 2, 1 }, 1e-6)
    end)
end }
