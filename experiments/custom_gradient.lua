-- custom_gradient: a function with a gradient of one's own, kept in fp32 inside a low model.
--
-- The pieces of a picture vote for a class, as in capsule networks: each vote is a vector, whose
-- length is squashed to below 1, v |v| / (1 + v²). Its square is the trouble: votes here are made
-- some hundred long (`loud`), and squares pass 65504, the largest number of fp16. As operations of the layer
-- (inside=plain) the square is infinite in fp16 and every vote becomes 0 or nan. As an mp.custom with
-- precision = "fp32" (the default) forward and backward compute in fp32, whatever the layer and
-- autocast say, and only what comes out is rounded. The third way is a region without autocast around
-- the same operations (inside=region); the gradient of one's own also keeps less for the way back.
-- Takes about 5 s on two cores. On the screen: the layer `votes` is in the run's format.
-- Expect some 78 % (a guess is 10 %) in every format with `custom` and `region`. In fp16 `plain`
-- takes five steps at most before the loss is nan for good; from there every step is skipped, the scale
-- falls to its floor, and after 20 more skips the run fails and names `votes`. In bf16, which has fp32's
-- range, `plain` trains too.
-- From: Sabour, Frosst and Hinton, Dynamic Routing Between Capsules, 2017 (the squashing); PyTorch's
-- torch.amp.custom_fwd(cast_inputs=torch.float32).
--     mpbench run custom_gradient -p fp16
--     mpbench run custom_gradient -p fp16 --set inside=plain --steps 60
--     mpbench run custom_gradient -p bf16 --set inside=plain
--     mpbench formats 300*300
local mp = require "mp"
local nn, F = mp.nn, mp.fn

-- v |v| / (1 + |v|²) of the vectors along the last dimension: as long as their length says, below 1.
local function plain(v)
    local square = v:square():sum(-1, true):to(v:dtype()) + 1e-6
    return v * (square:sqrt() / (square + 1))
end

-- With n = |v|: y = v f(n), f = n / (1 + n²), so that dv = f dy + v (v·dy) f'(n) / n.
local squash = mp.custom {
    name = "squash", precision = "fp32",
    forward = function(ctx, v)
        local length = (v:square():sum(-1, true) + 1e-6):sqrt()
        ctx:save(v, length)
        return v * (length / (length:square() + 1))
    end,
    backward = function(ctx, dy)
        local v, length = ctx:saved()
        local square = length:square()
        local along = (v * dy):sum(-1, true) * (1 - square) / ((square + 1):square() * length)
        return dy * (length / (square + 1)) + v * along
    end,
}

local insides = {
    custom = squash,
    plain = plain,
    region = function(v) return mp.autocast(false, plain, v:to "fp32") end,
}

local Votes = nn.class "Votes"
function Votes:init(p)
    self.features = nn.Conv2d(1, p.width, 5, { stride = 2, padding = 2, activation = "relu" })
    self.votes = nn.Conv2d(p.width, 10 * 8, 5, { stride = 2, padding = 2 }) -- 10 vectors of 8, 49 times
    self.loud = p.loud
    self.squash = insides[p.inside]
end

-- A class has as many points as its votes, added up, are long.
function Votes:forward(x)
    local v = self.votes(self.features(x)) * self.loud
    v = self.squash(v:reshape(v:shape()[1], 49, 10, 8))
    return v:mean(2):to("fp32"):square():sum(-1)
end

return mp.experiment {
    name = "custom-gradient",
    about = "A gradient of one's own, in fp32 inside a low model, where fp16 overflows",
    params = {
        lr = 1e-3, batch = 64, epochs = 2, width = 16, limit = 12000, loud = 300,
        inside = { "custom", "plain", "region" },
    },

    data = function(p)
        return {
            train = mp.data.fashion_mnist { split = "train", batch = p.batch, shuffle = true, limit = p.limit },
            test = mp.data.fashion_mnist { split = "test", batch = 200, limit = p.limit // 10 },
        }
    end,

    model = function(p) return Votes(p) end,
    loss = function(model, b) return F.cross_entropy(model(b.x) * 10, b.y) end,
    eval = function(model, b) return { accuracy = F.accuracy(model(b.x), b.y) } end,
    optim = function(params, p) return mp.optim.Adam(params, { lr = p.lr }) end,
    schedule = mp.optim.schedule.cosine {},
}
