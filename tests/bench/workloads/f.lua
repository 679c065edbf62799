-- Workload f of the speed tests: DCGAN on 64x64, batch 32; a step is one update of the discriminator
-- and one of the generator, each by Adam.
local mp = require "mp"
local nn, F = mp.nn, mp.fn

local NOISE = 100

local function generator(width)
    local function up(channels, filters, stride, padding)
        return nn.ConvTranspose2d(channels, filters, 4, { stride = stride, padding = padding, bias = false })
    end
    return nn.Sequential {
        up(NOISE, 8 * width, 1, 0), nn.BatchNorm(8 * width), nn.ReLU(),
        up(8 * width, 4 * width, 2, 1), nn.BatchNorm(4 * width), nn.ReLU(),
        up(4 * width, 2 * width, 2, 1), nn.BatchNorm(2 * width), nn.ReLU(),
        up(2 * width, width, 2, 1), nn.BatchNorm(width), nn.ReLU(),
        up(width, 3, 2, 1), nn.Tanh(),
    }
end

local function discriminator(width)
    local function down(channels, filters, stride, padding)
        return nn.Conv2d(channels, filters, 4, { stride = stride, padding = padding, bias = false })
    end
    return nn.Sequential {
        down(3, width, 2, 1), nn.LeakyReLU(0.2),
        down(width, 2 * width, 2, 1), nn.BatchNorm(2 * width), nn.LeakyReLU(0.2),
        down(2 * width, 4 * width, 2, 1), nn.BatchNorm(4 * width), nn.LeakyReLU(0.2),
        down(4 * width, 8 * width, 2, 1), nn.BatchNorm(8 * width), nn.LeakyReLU(0.2),
        down(8 * width, 1, 1, 0), nn.Flatten(),
    }
end

return mp.experiment {
    name = "bench-f",
    about = "speed: DCGAN 64x64, batch 32, one update of D and one of G",
    params = { steps = 10, batch = 32, width = 64 },

    run = function(run)
        local batch = run.params.batch
        local G, D = generator(run.params.width), discriminator(run.params.width)
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
