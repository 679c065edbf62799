-- biggan: pictures made to order. A class goes in with the noise, through batch norms whose gains and
-- shifts are the class's own; both networks have spectral norms and an attention over the picture, the
-- loss is the hinge, and what is shown comes of an average of the weights (EMA).
--
-- What is delicate in it is kept in fp32: the power iterations of the spectral norms, and the running
-- statistics. At the end a CNN that has seen real pictures alone, ten batches a step of the run and `judge`
-- at most (with all of them it names about 90 % of a test set) says of each picture what it is. `variety`
-- is how much pictures differ from each other, as a share of how much real ones do: 0 where all are alike.
-- Takes about a minute on two cores, a third of it for the judge. On the screen: g_loss wanders about 0 and
-- d_loss stays between 0.5 and 2 (2 is a discriminator that knows nothing); `i` shows the ten classes, a
-- column each.
-- Expect `recognised`, the share of pictures that the judge calls as they were ordered (0.1 by chance), to be
-- about 0.4 so early in a training, in every format; more steps give more.
-- From: Brock et al., Large Scale GAN Training for High Fidelity Natural Image Synthesis, 2019
-- (arXiv:1809.11096), trained with parts of it low, and Zhang et al., Self-Attention Generative Adversarial
-- Networks, 2019 (arXiv:1805.08318), the attention.
--     mpbench run biggan -p fp16
--     mpbench run biggan -p fp16 --set scalers=2         a scaler for each network's loss
--     mpbench run biggan --set width=32 --set batch=128 --set steps=20000
local mp = require "mp"
local nn, F = mp.nn, mp.fn
local shared = require "parts.pictures"

local function conv(i, o, k) return nn.SpectralNorm(nn.Conv2d(i, o, k, { padding = k // 2 })) end

-- A batch norm whose gain and shift are looked up by the class, in the format of what they meet: a
-- product of 16 bits and fp32 is fp32, and so would be all that is kept for the way back.
local ClassNorm = nn.class "ClassNorm"
function ClassNorm:init(n, classes)
    self.norm, self.gain, self.shift = nn.BatchNorm(n), nn.Embedding(classes, n), nn.Embedding(classes, n)
    self.gain.weight:copy(mp.zeros(classes, n))
    self.shift.weight:copy(mp.zeros(classes, n))
end

function ClassNorm:forward(x, y)
    x = self.norm(x)
    local function of(table) return table(y):reshape(#y, 1, 1, -1):to(x:dtype()) end
    return x * (of(self.gain) + 1) + of(self.shift)
end

-- Each place of the picture looks at all others; `open` is 0 at first, and then what it adds is let in.
local Look = nn.class "Look"
function Look:init(n)
    self.query, self.key, self.value = conv(n, n // 2, 1), conv(n, n // 2, 1), conv(n, n // 2, 1)
    self.out, self.open = conv(n // 2, n, 1), nn.Parameter(mp.zeros(1))
end

function Look:forward(x)
    local n, height, width = table.unpack(x:shape())
    local function flat(t) return t:reshape(n, height * width, 1, -1) end
    local seen = F.attention(flat(self.query(x)), flat(self.key(x)), flat(self.value(x)), { scale = 1 })
    local added = self.out(seen:reshape(n, height, width, -1))
    return x + added * self.open:to(added:dtype())
end

local Up = nn.class "Up"
function Up:init(i, o, classes)
    self.norm1, self.norm2 = ClassNorm(i, classes), ClassNorm(o, classes)
    self.conv1, self.conv2, self.pass = conv(i, o, 3), conv(o, o, 3), conv(i, o, 1)
end

function Up:forward(x, y)
    local h = self.conv1(F.upsample(F.relu(self.norm1(x, y)), 2))
    return self.conv2(F.relu(self.norm2(h, y))) + F.upsample(self.pass(x), 2)
end

local Down = nn.class "Down"
function Down:init(i, o)
    self.conv1, self.pass = conv(i, o, 3), conv(i, o, 1)
    self.conv2 = nn.SpectralNorm(nn.Conv2d(o, o, 4, { stride = 2, padding = 1 }))
end

function Down:forward(x)
    return self.conv2(F.relu(self.conv1(F.relu(x)))) + self.pass(F.avg_pool2d(x, 2))
end

local Generator = nn.class "Generator"
function Generator:init(p, real)
    local w, side = p.width, real.size // 4
    self._side = side
    self.first = nn.SpectralNorm(nn.Linear(p.noise, side * side * 4 * w))
    self.up1, self.look, self.up2 = Up(4 * w, 2 * w, real.classes), Look(2 * w), Up(2 * w, w, real.classes)
    self.norm, self.last = nn.BatchNorm(w), conv(w, real.channels, 3)
end

function Generator:forward(z, y)
    local x = self.first(z):reshape(#z, self._side, self._side, -1)
    x = self.up2(self.look(self.up1(x, y)), y)
    return F.tanh(self.last(F.relu(self.norm(x))))
end

-- How real a picture is, and how well it goes with its class: the projection of Miyato and Koyama.
local Discriminator = nn.class "Discriminator"
function Discriminator:init(p, real)
    local w = p.width
    self.down1, self.look, self.down2 = Down(real.channels, 2 * w), Look(2 * w), Down(2 * w, 8 * w)
    self.out, self.classes = nn.SpectralNorm(nn.Linear(8 * w, 1)), nn.SpectralNorm(nn.Embedding(real.classes, 8 * w))
end

function Discriminator:forward(x, y)
    local h = F.relu(self.down2(self.look(self.down1(x)))):sum({ 2, 3 })
    return self.out(h) + (h * self.classes(y)):sum(2, true)
end

return mp.experiment {
    name = "biggan",
    about = "Pictures of the class that is asked for: spectral norms, attention, hinge loss, EMA",
    params = {
        steps = 500, batch = 32, width = 8, noise = 32, lr_g = 1e-3, lr_d = 4e-3, beta = 0.5, average = 0.98,
        scalers = 1, every = 100, judge = 4500, path = "",
    },

    run = function(run)
        local p = run.params
        local real = shared.load(p)
        local G, D = run:model(Generator(p, real), "G"), run:model(Discriminator(p, real), "D")
        local of_g = mp.optim.Adam(G:parameters(), { lr = p.lr_g, betas = { p.beta, 0.999 } })
        local of_d = mp.optim.Adam(D:parameters(), { lr = p.lr_d, betas = { p.beta, 0.999 } })
        local average = mp.optim.EMA(G, p.average)
        local by_d = run:scaler()
        local by_g = p.scalers == 2 and run:scaler() or by_d

        -- In training's way: the running statistics are not those of the averaged weights.
        local function make(z, y)
            return mp.no_grad(function()
                return average:with(function() return mp.autocast(G, z, y) end)
            end)
        end
        local order = mp.arange(real.classes):reshape(1, -1):expand(4, real.classes):reshape(-1)
        local watched = mp.randn(4 * real.classes, p.noise)

        local batches, yes = shared.forever(real.train), mp.ones(p.batch, 1)
        local function train(step)
            local b = batches()
            local x = shared.spread(b.x)
            local z, y = mp.randn(p.batch, p.noise), mp.randint(real.classes, p.batch)
            local fake = mp.no_grad(mp.autocast, G, z, y)
            of_d:zero_grad()
            local d_loss = mp.autocast(function()
                return F.hinge(D(x, b.y), yes) + F.hinge(D(fake, y), -yes)
            end)
            by_d:scale(d_loss):backward()
            by_d:step(of_d)

            of_g:zero_grad()
            local g_loss = mp.autocast(function() return -D(G(z, y), y):mean() end)
            by_g:scale(g_loss):backward()
            by_g:step(of_g)
            by_d:update()
            if p.scalers == 2 then by_g:update() end
            average:update(of_g)
            run:log { d_loss = d_loss, g_loss = g_loss }
            if step % p.every == 0 then
                run:picture("made", shared.shown(make(watched, order)), { columns = real.classes })
            end
        end

        for step = 1, p.steps - 1 do train(step) end
        run:result { training_mib = mp.memory(train, p.steps).activations / 2 ^ 20 }
        if p.judge == 0 then return end
        run:evaluate(function()
            local judge, right, rounds = shared.train_judge(real, p), 0, 20
            local function some(y) return make(mp.randn(#y, p.noise), y) end
            for _ = 1, rounds do
                local y = mp.randint(real.classes, 50)
                right = right + F.accuracy(judge(some(y)), y):item() / rounds
            end
            run:result {
                recognised = right, chance = 1 / real.classes,
                variety = shared.variety(real, function(n) return some(mp.randint(real.classes, n)) end),
                judge_accuracy = shared.judge_accuracy(judge, real, 100),
            }
        end)
    end,
}
