-- stylegan: noise goes through a mapping network, and what comes out steers every layer: it scales the
-- channels that a convolution reads, and what the convolution gives is brought back to size 1
-- (demodulation). Each layer adds noise of its own, two styles are mixed within a picture, the
-- discriminator is held by the square of its slope at real pictures (R1, a second derivative, every
-- few steps), and what is shown comes of an average of the weights (EMA).
--
-- At the end a CNN judges that has seen real pictures alone, ten batches a step of the run and `judge`
-- at most (with all of them it names about 90 % of a test set). `variety` is how much pictures differ from
-- each other, as a share of how much real ones do: 0 for one picture over and over.
-- Takes about a minute on two cores, a third of it for the judge. On the screen (v): d_loss about 1, where
-- 1.4 would be a discriminator that cannot tell, g_loss between 1 and 3, r1 below 1. `i` shows the pictures
-- and, under `mixed` (v), coarse styles, one a row, with fine ones, one a column.
-- Expect a `score` of 3 to 5, which comes late in the training: 1 is what noise has, or one picture over
-- and over (score_noise, as measured), about 8 what real ones have (score_real); in every format alike, but for
-- what differs from run to run. How sure the judge is (`confidence`) tells less: noise has 0.5 of it.
-- From: Karras et al., Analyzing and Improving the Image Quality of StyleGAN, 2020 (arXiv:1912.04958), and
-- Training Generative Adversarial Networks with Limited Data, 2020 (arXiv:2006.06676), which trains its high
-- resolutions in fp16, with the demodulation's factors computed in fp32, as here.
--     mpbench run stylegan -p fp16
--     mpbench run stylegan -p fp16 --set scalers=2       R1 has a scaler of its own
--     mpbench run stylegan --set width=32 --set steps=20000
local mp = require "mp"
local nn, F = mp.nn, mp.fn
local shared = require "parts.pictures"

-- Scaling what goes in by the style and what comes out by the factor is the same as a weight for
-- each picture, and takes one convolution for all of them.
local StyledConv = nn.class "StyledConv"
function StyledConv:init(i, o, size, p, plain)
    self._plain, self._pad = plain, size // 2
    self.weight = nn.Parameter(mp.randn(o, size, size, i) / math.sqrt(i * size * size))
    self.bias, self.style = nn.Parameter(mp.zeros(o)), nn.Linear(p.noise, i)
    if not plain then self.strength = nn.Parameter(mp.zeros(1)) end
end

local function size_of(weight, style) -- of what comes out, for each picture and channel
    return (style:to "fp32":square():matmul(weight:square():sum({ 2, 3 }):transpose()) + 1e-8):rsqrt()
end

function StyledConv:forward(x, w)
    local style, n, format = self.style(w) + 1, #x, x:dtype()
    local y = F.conv2d(x * style:reshape(n, 1, 1, -1):to(format), self.weight, nil, { padding = self._pad })
    format = y:dtype() -- what meets it is brought to its format: with fp32 it would become fp32
    if self._plain then return y + self.bias:to(format) end
    y = y * mp.autocast(false, size_of, self.weight, style):reshape(n, 1, 1, -1):to(format)
    local s = y:shape()
    local noise = mp.randn(n, s[2], s[3], 1):to(format) * self.strength:to(format)
    return F.leaky_relu(y + noise + self.bias:to(format), 0.2)
end

local Generator = nn.class "Generator"
function Generator:init(p, real)
    local w, side = p.width, real.size // 4
    self.mapping = nn.Sequential {
        nn.Linear(p.noise, p.noise), nn.LeakyReLU(0.2), nn.Linear(p.noise, p.noise), nn.LeakyReLU(0.2),
    }
    self.start = nn.Parameter(mp.randn(1, side, side, 8 * w))
    self.coarse, self.middle = StyledConv(8 * w, 8 * w, 3, p), StyledConv(8 * w, 4 * w, 3, p)
    self.fine = StyledConv(4 * w, 2 * w, 3, p)
    self.picture = StyledConv(2 * w, real.channels, 1, p, true)
end

-- From layer `cut` on (1 to 3) the style of the second noise.
function Generator:forward(z, other, cut)
    local function style(noise) return self.mapping(noise * (noise:square():mean(2, true) + 1e-8):rsqrt()) end
    local first, second, s = style(z), style(other), self.start:shape()
    local function of(layer) return layer >= cut and second or first end
    local x = self.coarse(self.start:expand(#z, s[2], s[3], s[4]), of(1))
    x = self.middle(F.upsample(x, 2), of(2))
    return self.picture(self.fine(F.upsample(x, 2), of(3)), of(3))
end

-- Beside its features: how much a batch varies, by which pictures that are all alike are found out.
-- Eight times the same, as products in low formats like multiples of 8.
local Discriminator = nn.class "Discriminator"
function Discriminator:init(p, real)
    local w, side = p.width, real.size // 4
    local down = { stride = 2, padding = 1 }
    self.conv1, self.conv2 = nn.Conv2d(real.channels, 4 * w, 4, down), nn.Conv2d(4 * w, 8 * w, 4, down)
    self.hidden, self.out = nn.Linear(side * side * (8 * w + 8), 128), nn.Linear(128, 1)
end

function Discriminator:forward(x)
    x = F.leaky_relu(self.conv2(F.leaky_relu(self.conv1(x), 0.2)), 0.2)
    local s = x:shape()
    local spread = (x - x:mean(1, true)):square():mean(1):add(1e-8):sqrt():mean()
    x = F.cat({ x, spread:to(x:dtype()):reshape(1, 1, 1, 1):expand(s[1], s[2], s[3], 8) }, 4)
    return self.out(F.leaky_relu(self.hidden(F.flatten(x)), 0.2))
end

return mp.experiment {
    name = "stylegan",
    about = "Styles that steer every layer: modulated convolutions, noise, mixing, R1 and EMA",
    params = {
        steps = 1000, batch = 32, width = 6, noise = 64, lr = 2e-3, r1 = 1.0, r1_every = 8, mixing = 0.9,
        average = 0.99, scalers = 1, every = 100, judge = 4500, path = "",
    },

    run = function(run)
        local p = run.params
        local real = shared.load(p)
        local G, D = run:model(Generator(p, real), "G"), run:model(Discriminator(p, real), "D")
        local slow, rest = G.mapping:parameters(), {}
        local is_slow = {}
        for _, weight in ipairs(slow) do is_slow[weight] = true end
        for _, weight in ipairs(G:parameters()) do
            if not is_slow[weight] then rest[#rest + 1] = weight end
        end
        local of_g = mp.optim.Adam({ { params = rest }, { params = slow, lr = p.lr / 10 } },
            { lr = p.lr, betas = { 0, 0.99 } })
        local of_d = mp.optim.Adam(D:parameters(), { lr = p.lr, betas = { 0, 0.99 } })
        local average = mp.optim.EMA(G, p.average)
        local scaler = run:scaler()
        local by_r1 = p.scalers == 2 and run:scaler() or scaler

        local function noise(n) return mp.randn(n, p.noise) end
        local function fakes() -- one cut for the batch, mostly within the picture
            local cut = math.random() < p.mixing and math.random(2, 3) or 4
            return G(noise(p.batch), noise(p.batch), cut)
        end
        local function make(z, other, cut)
            return mp.no_grad(function()
                return average:with(function() return mp.autocast(G, z, other, cut) end)
            end)
        end

        local rows, columns, batches = noise(6), noise(6), shared.forever(real.train)
        local which = mp.arange(36):to "fp32"
        local row = (which / 6 - 0.4999):to "int32" -- 0 0 0 0 0 0 1 1 ..
        local column = (which - row:to "fp32" * 6):to "int32"
        local function train(step)
            local x = shared.spread(batches().x)
            of_d:zero_grad()
            local d_loss = mp.autocast(function()
                local fake = mp.no_grad(fakes)
                return (F.softplus(D(fake)) + F.softplus(-D(x))):mean()
            end)
            scaler:scale(d_loss):backward()
            local r1
            if step % p.r1_every == 1 then
                x:requires_grad(true)
                -- Of their mean, times their number: the sum would overflow at a scale that much lower.
                local score = mp.autocast(D, x):to "fp32":mean()
                local slope = mp.grad(by_r1:scale(score), { x }, true)[1]:to "fp32" * (p.batch / by_r1:get())
                r1 = slope:square():sum({ 2, 3, 4 }):mean()
                by_r1:scale(r1 * (p.r1 / 2 * p.r1_every)):backward()
            end
            scaler:step(of_d)

            of_g:zero_grad()
            local g_loss = mp.autocast(function() return F.softplus(-D(fakes())):mean() end)
            scaler:scale(g_loss):backward()
            scaler:step(of_g)
            if r1 and p.scalers == 2 then by_r1:update() end
            scaler:update()
            average:update(of_g)
            run:log { d_loss = d_loss, g_loss = g_loss, r1 = r1 }
            if step % p.every == 0 then
                run:picture("made", shared.shown(make(F.cat { rows, columns }, F.cat { rows, columns }, 4)))
                run:picture("mixed", shared.shown(make(F.embedding(row, rows), F.embedding(column, columns), 3)),
                    { columns = 6 })
            end
        end

        for step = 1, p.steps - 1 do train(step) end
        run:result { training_mib = mp.memory(train, p.steps).activations / 2 ^ 20 }
        if p.judge == 0 then return end
        run:evaluate(function()
            local judge = shared.train_judge(real, p)
            run:result(shared.compare(judge, real, function(n) return make(noise(n), noise(n), 4) end))
            run:result { judge_accuracy = shared.judge_accuracy(judge, real, 100) }
        end)
    end,
}
