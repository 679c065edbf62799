-- dcgan: two networks against each other on Fashion-MNIST, one that makes pictures from noise and one
-- that tells them from real ones. A loss for each of its three questions, and one scaler for all, one
-- for each network or one for each loss.
--
-- At the end a CNN judges that has seen real pictures alone, ten batches a step of the run and `judge`
-- at most (with all of them it names about 90 % of a test set). `variety` is how much pictures differ from
-- each other, as a share of how much real ones do: 0 for one picture over and over. `training_mib` is what
-- activations took at most in the last step.
-- Takes about half a minute on two cores, most of it for the judge. On the screen: d_loss and g_loss (v)
-- stay near each other, neither falls to nothing; `i` shows the pictures, noise at first, clothes after
-- some hundred steps.
-- Expect a `score` of 3 to 5: 1 is what noise has, or one picture over and over (score_noise, as measured),
-- about 8 what real ones have (score_real). How sure the judge is (`confidence`) tells less: 0.7, where real
-- ones have 0.9 and noise 0.65. Formats do not separate these curves: what differs from run to run is chance.
-- From: Radford et al., Unsupervised Representation Learning with Deep Convolutional Generative Adversarial
-- Networks, 2016 (arXiv:1511.06434), who train this shape stably without tricks; Micikevicius et al., Mixed
-- Precision Training, 2018 (arXiv:1710.03740), a DCGAN without any loss of quality and even without scaling;
-- the score: Salimans et al., Improved Techniques for Training GANs, 2016, by our judge instead of theirs.
--     mpbench run dcgan -p fp16
--     mpbench run dcgan -p fp16 --set scalers=2          a scaler a network: each finds its own scale
--     mpbench run dcgan -p fp16 --set scalers=3          a scaler a loss
--     mpbench run dcgan --set path=FOLDER --set width=64 --set steps=20000
local mp = require "mp"
local nn, F = mp.nn, mp.fn
local shared = require "parts.pictures"

local function generator(p, real)
    local w, side = p.width, real.size // 4
    local up = { stride = 2, padding = 1, bias = false }
    return nn.Sequential {
        nn.ConvTranspose2d(p.noise, 4 * w, side, { bias = false }), nn.BatchNorm(4 * w), nn.ReLU(),
        nn.ConvTranspose2d(4 * w, 2 * w, 4, up), nn.BatchNorm(2 * w), nn.ReLU(),
        nn.ConvTranspose2d(2 * w, real.channels, 4, up), nn.Tanh(),
    }
end

local function discriminator(p, real)
    local w, side = p.width, real.size // 4
    local down = { stride = 2, padding = 1, bias = false }
    return nn.Sequential {
        nn.Conv2d(real.channels, 2 * w, 4, down), nn.LeakyReLU(0.2),
        nn.Conv2d(2 * w, 4 * w, 4, down), nn.BatchNorm(4 * w), nn.LeakyReLU(0.2),
        nn.Conv2d(4 * w, 1, side, { bias = false }), nn.Flatten(),
    }
end

return mp.experiment {
    name = "dcgan",
    about = "A DCGAN on Fashion-MNIST: three losses, one scaler, two or three, and a judge of its pictures",
    params = {
        steps = 800, batch = 64, width = 16, noise = 64, lr_g = 1e-3, lr_d = 4e-4, scalers = 1, every = 100,
        judge = 4500, path = "",
    },

    run = function(run)
        local p = run.params
        local real = shared.load(p)
        local G, D = run:model(generator(p, real), "G"), run:model(discriminator(p, real), "D")
        for _, model in ipairs { G, D } do -- the paper's start: normal numbers of 0.02
            for _, weight in model:named_parameters() do
                if #weight:shape() == 4 then weight:copy(mp.randn(weight:shape()) * 0.02) end
            end
        end
        local of_g = mp.optim.Adam(G:parameters(), { lr = p.lr_g, betas = { 0.5, 0.999 } })
        local of_d = mp.optim.Adam(D:parameters(), { lr = p.lr_d, betas = { 0.5, 0.999 } })
        local by_real = run:scaler()
        local by_g = p.scalers > 1 and run:scaler() or by_real
        local by_fake = p.scalers > 2 and run:scaler() or by_real

        local yes, no = mp.ones(p.batch, 1), mp.zeros(p.batch, 1)
        local function noise(n) return mp.randn(n, 1, 1, p.noise) end
        local function judged(x, wanted) return F.bce_with_logits(D(x), wanted) end
        local function make(z)
            G:eval()
            local x = mp.no_grad(mp.autocast, G, z)
            G:train()
            return x
        end

        local watched, batches = noise(32), shared.forever(real.train)
        local function train(step)
            local x = shared.spread(batches().x)
            of_d:zero_grad()
            local on_real = mp.autocast(judged, x, yes)
            by_real:scale(on_real):backward()
            local fake = mp.autocast(G, noise(p.batch))
            local on_fake = mp.autocast(judged, fake:detach(), no)
            by_fake:scale(on_fake):backward()
            by_real:step(of_d)

            of_g:zero_grad()
            local on_made = mp.autocast(judged, fake, yes)
            by_g:scale(on_made):backward()
            by_g:step(of_g)
            by_real:update()
            if p.scalers > 2 then by_fake:update() end
            if p.scalers > 1 then by_g:update() end
            run:log { d_loss = on_real + on_fake, g_loss = on_made }
            if step % p.every == 0 then run:picture("made", shared.shown(make(watched))) end
        end

        for step = 1, p.steps - 1 do train(step) end
        run:result { training_mib = mp.memory(train, p.steps).activations / 2 ^ 20 }
        if p.judge == 0 then return end
        run:evaluate(function()
            local judge = shared.train_judge(real, p)
            run:result(shared.compare(judge, real, function(n) return make(noise(n)) end))
            run:result { judge_accuracy = shared.judge_accuracy(judge, real, 100) }
        end)
    end,
}
