-- Workload f of the speed tests: DCGAN on 64x64, batch 32; a step is one update of the discriminator
-- and one of the generator, each by Adam.
local mp = require "mp"
local nn, F = mp.nn, mp.fn

local NOISE, WIDTH = 100, 64

local function generator()
    local function up(channels, filters, stride, padding)
        return nn.ConvTranspose2d(channels, filters, 4, { stride = stride, padding = padding, bias = false })
    end
    return nn.Sequential {
        up(NOISE, 8 * WIDTH, 1, 0), nn.BatchNorm(8 * WIDTH), nn.ReLU(),
        up(8 * WIDTH, 4 * WIDTH, 2, 1), nn.BatchNorm(4 * WIDTH), nn.ReLU(),
        up(4 * WIDTH, 2 * WIDTH, 2, 1), nn.BatchNorm(2 * WIDTH), nn.ReLU(),
        up(2 * WIDTH, WIDTH, 2, 1), nn.BatchNorm(WIDTH), nn.ReLU(),
        up(WIDTH, 3, 2, 1), nn.Tanh(),
    }
end

local function discriminator()
    local function down(channels, filters, stride, padding)
        return nn.Conv2d(channels, filters, 4, { stride = stride, padding = padding, bias = false })
    end
    return nn.Sequential {
        down(3, WIDTH, 2, 1), nn.LeakyReLU(0.2),
        down(WIDTH, 2 * WIDTH, 2, 1), nn.BatchNorm(2 * WIDTH), nn.LeakyReLU(0.2),
        down(2 * WIDTH, 4 * WIDTH, 2, 1), nn.BatchNorm(4 * WIDTH), nn.LeakyReLU(0.2),
        down(4 * WIDTH, 8 * WIDTH, 2, 1), nn.BatchNorm(8 * WIDTH), nn.LeakyReLU(0.2),
        down(8 * WIDTH, 1, 1, 0), nn.Flatten(),
    }
end

return mp.experiment {
    name = "bench-f",
    about = "speed: DCGAN 64x64, batch 32, one update of D and one of G",
    params = { steps = 10, batch = 32 },

    run = function(run)
        local batch = run.params.batch
        local G, D = generator(), discriminator()
        run:model(nn.Sequential { G, D })
        local settings = { lr = 2e-4, betas = { 0.5, 0.999 } }
        local of_g, of_d = mp.optim.Adam(G:parameters(), settings), mp.optim.Adam(D:parameters(), settings)
        local real = mp.rand(batch, 64, 64, 3) * 2 - 1
        local yes, no = mp.ones(batch, 1), mp.zeros(batch, 1)
        local scaler = run:scaler()

        local function judged(x, wanted)
            return F.bce_with_logits(D(x), wanted)
        end
        for _ = 1, run.params.steps do
            of_d:zero_grad()
            scaler:scale(mp.autocast(judged, real, yes)):backward()
            local fake = mp.autocast(function() return G(mp.randn(batch, 1, 1, NOISE)) end)
            scaler:scale(mp.autocast(judged, fake:detach(), no)):backward()
            scaler:step(of_d)
            of_g:zero_grad()
            local loss = mp.autocast(judged, fake, yes)
            scaler:scale(loss):backward()
            scaler:step(of_g)
            scaler:update()
            run:log { loss = loss }
        end
    end,
}
