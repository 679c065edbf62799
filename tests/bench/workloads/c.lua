-- Workload c of the speed tests: two convolutions on 28x28, batch 128, Adam.
local mp = require "mp"
local nn = mp.nn
local steps = require "steps"

return mp.experiment {
    name = "bench-c",
    about = "speed: conv 32, conv 64, pool, 9216-128-10 on 28x28, batch 128, Adam",
    params = { steps = 20, batch = 128 },

    run = function(run)
        local batch = run.params.batch
        local x, y = mp.rand(batch, 28, 28, 1), mp.randint(10, batch)
        local model = run:model(nn.Sequential {
            nn.Conv2d(1, 32, 3, { activation = "relu" }),
            nn.Conv2d(32, 64, 3, { activation = "relu" }), nn.MaxPool2d(2), nn.Flatten(),
            nn.Linear(9216, 128, { activation = "relu" }), nn.Linear(128, 10),
        })
        steps(run, model, mp.optim.Adam(model:parameters(), { lr = 1e-3 }), x, y)
    end,
}
