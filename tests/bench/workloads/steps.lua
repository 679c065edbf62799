-- What the workloads share: the step that is timed, over data that were made once.
--
-- A step is zero_grad, forward, loss, backward and update, as in tests/bench/peer_torch.py; the loss
-- is logged besides, as an experiment would. The time of the first step, in which memory is laid out
-- and kernels are chosen, is no part of the rate that `run` reports.
local mp = require "mp"

return function(run, model, opt, x, y)
    local scaler = run:scaler()
    for _ = 1, run.params.steps do
        opt:zero_grad()
        local loss = mp.autocast(function() return mp.fn.cross_entropy(model(x), y) end)
        scaler:scale(loss):backward()
        scaler:step(opt)
        scaler:update()
        run:log { loss = loss }
    end
end
