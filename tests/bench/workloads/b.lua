-- Workload b of the speed tests: 784-1024-1024-10, batch 256, Adam.
local mp = require "mp"
local nn = mp.nn
local steps = require "steps"

return mp.experiment {
    name = "bench-b",
    about = "speed: 784-1024-1024-10, batch 256, Adam",
    params = { steps = 100, batch = 256 },

    run = function(run)
        local batch = run.params.batch
        local x, y = mp.rand(batch, 784), mp.randint(10, batch)
        local model = run:model(nn.Sequential {
            nn.Linear(784, 1024, { activation = "relu" }),
            nn.Linear(1024, 1024, { activation = "relu" }), nn.Linear(1024, 10),
        })
        steps(run, model, mp.optim.Adam(model:parameters(), { lr = 1e-3 }), x, y)
    end,
}
