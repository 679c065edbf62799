-- What the workloads share: the step that is timed, over data that were made once.
--
-- A step is zero_grad, forward, loss, backward and update, as in tests/bench/peer_torch.py; the loss
-- is logged besides, as an experiment would. It is handed over (`run:step`), so that where steps are
-- captured the script is not in between. The time of the first step, in which memory is laid out and
-- kernels are chosen, is no part of the rate that `run` reports.
local mp = require "mp"

return function(run, model, opt, x, y)
    local scaler = run:scaler()
    local function loss_of(inputs, targets) return mp.fn.cross_entropy(model(inputs), targets) end
    local function step(inputs, targets)
        opt:zero_grad()
        local loss = mp.autocast(loss_of, inputs, targets)
        scaler:scale(loss):backward()
        scaler:step(opt)
        scaler:update()
        run:log { loss = loss }
    end
    for _ = 1, run.params.steps do run:step(step, x, y) end
end
