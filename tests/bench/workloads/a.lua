-- Workload a of the speed tests: 128-64-10, batch 32, SGD with momentum.
local mp = require "mp"
local nn = mp.nn
local steps = require "steps"

return mp.experiment {
    name = "bench-a",
    about = "speed: 128-64-10, batch 32, SGD with momentum",
    params = { steps = 100, batch = 32 },

    run = function(run)
        local batch = run.params.batch
        local x, y = mp.randn(batch, 128), mp.randint(10, batch)
        local model = run:model(nn.Sequential {
            nn.Linear(128, 64, { activation = "relu" }), nn.Linear(64, 10),
        })
        steps(run, model, mp.optim.SGD(model:parameters(), { lr = 0.01, momentum = 0.9 }), x, y)
    end,
}
