-- formats_loss: what a run in some format gives for its loss, sharply enough to compare with another's
-- of the same seed, which saw the same batches; tests/bench/formats_loss.sh lays it beside the
-- experiments that it trains.
--
-- One batch's loss says little, and so does that of a step whose rate is high. The rate falls to
-- nothing, and `late` is the mean of the second half of the steps.
local mp = require "mp"
local subjects = { fashion_cnn = require "fashion_cnn", gpt = require "gpt" }

return mp.experiment {
    name = "formats-loss",
    about = "The loss of an experiment, for comparing formats",
    params = {
        of = "fashion_cnn", steps = 200, batch = 32, width = 16, lr = 1e-3,
        layers = 2, heads = 2, context = 32, path = "", clip = 1.0, -- gpt's
    },

    run = function(run)
        local p = run.params
        local of = subjects[p.of]
        local data = of.data(p)
        local model = run:model(of.model(p, data))
        local parameters, scaler = model:parameters(), run:scaler()
        local opt = of.optim(parameters, p)
        opt:schedule(mp.optim.schedule.cosine { warmup = p.steps // 10, total = p.steps })
        local done, late = 0, 0
        while done < p.steps do
            for b in data.train do
                if done == p.steps then break end
                opt:zero_grad()
                local loss = mp.autocast(of.loss, model, b)
                scaler:scale(loss):backward()
                scaler:unscale(opt)
                mp.optim.clip_norm(parameters, p.clip)
                scaler:step(opt)
                scaler:update()
                run:log { loss = loss }
                done = done + 1
                if 2 * done > p.steps then late = late + loss:item() end
            end
        end
        run:result { late = late / (p.steps - p.steps // 2) }
    end,
}
