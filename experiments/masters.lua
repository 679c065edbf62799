-- masters: what becomes of small updates without fp32 weights, and two ways to do without them.
--
-- Four copies of one network start alike and see the same batches; they differ only in how the update
-- is added to the weights:
--     master      weights in fp32, as mixed precision keeps them
--     nearest     weights in the run's format, rounded to the nearest after each update
--     random      the same, rounded up or down at random, so that on the average nothing is lost
--     kahan       the same, with a second number of that format for what each rounding left out
-- A number keeps 11 bits in fp16 and 8 in bf16: an update of less than 1/2048 or 1/256 of its weight
-- (or half of that, as the weight's bits are) changes nothing. `lost` is the share of updates to
-- which that happens, `lost_far` that among updates of `nearest` that are so small, `lost_near` that
-- among the others, where there should be none.
-- Takes 5 to 20 s on two cores. On the screen: the series `loss_nearest` and `lost_nearest` beside
-- `loss`, which is the master's.
-- Expect four copies that agree in fp32, at some 76 % (a guess is 10 %). In bf16 nine updates of ten
-- are lost by `nearest`, whose loss is twice the master's in the end and whose accuracy 14 points
-- lower, while `random` and `kahan` follow it though they lose nearly as many at once: what is left
-- out comes in later. In fp16, with three bits more, `nearest` loses four of ten, and some tenths of a
-- percent of accuracy.
-- From: Micikevicius et al., Mixed Precision Training, 2018 (3.1: weights 2048 times their update);
-- Gupta et al., Deep Learning with Limited Numerical Precision, 2015 (stochastic rounding);
-- Zamirai et al., Revisiting BFloat16 Training, 2020 (Kahan summation).
--     mpbench run masters -p bf16
--     mpbench run masters -p fp16 --set lr=0.001
--     mpbench run masters -p bf16 --set width=512 --set limit=0 --set epochs=5
--     mpbench run simple -p O3                   the engine's own weights without masters
local mp = require "mp"
local nn, F = mp.nn, mp.fn

-- The bits that a number keeps; formats of 8 bits and less have no weights of their own, and keep bf16.
local bits = { fp32 = 24, fp16 = 11, bf16 = 8 }

local ways = { "master", "nearest", "random", "kahan" }

-- What an update of the weight makes of it, both in fp32, and of what the roundings before left out.
local function add(way, format, weight, update, left)
    local function round(x) return x:to(format):to "fp32" end
    if way == "master" or format == "fp32" then return weight + update end
    if way == "kahan" then
        update = round(update + left)
        local sum = round(weight + update)
        return sum, round(update - (sum - weight))
    end
    local near = round(weight + update)
    if way == "nearest" then return near end
    -- The neighbour of `near` on the side where the exact sum lies: a bit more than half a step of
    -- the format's grid away, it is rounded to. The odds are how near the sum is to it.
    local half_step = 2 ^ -bits[format]
    local rest = weight + update - near
    local side = F.greater(rest, 0):to "fp32" * 2 - 1
    local next = round(near + side * near:abs() * (1.01 * half_step))
    return F.where(F.less(mp.rand(rest:shape()), rest / (next - near)), next, near)
end

-- SGD whose weights are kept in one of these ways. The optimizer inside, with a rate of 1, subtracts
-- the difference to the new weight, so that a skipped step still changes nothing.
local Kept = mp.class("Kept", mp.optim.SGD)
function Kept:init(params, options)
    Kept.super.init(self, params, { lr = 1 })
    self.options, self.left = options, {}
    for i, p in ipairs(params) do self.left[i] = mp.zeros(p:shape()) end
end

function Kept:step()
    local lost, count, far_lost, far_count = 0, 0, 0, 0
    local bound, none = 2 ^ bits[self.options.format], 1e-30 -- of nothing nothing is lost
    for i, p in ipairs(self:parameters()) do
        local update = p:grad() * -self.options.lr
        local weight, left = add(self.options.way, self.options.format, p:detach(), update, self.left[i])
        if left then self:change(self.left[i], left) end
        local moves = F.less(-update:abs(), 0):to "fp32" -- what is to move
        local stays = moves * F.equal(weight, p:detach()):to "fp32"
        lost, count = lost + stays:sum(), count + moves:sum()
        if self.options.way == "nearest" then
            local far = moves * (1 - F.less(p:detach():abs(), update:abs() * bound):to "fp32")
            far_lost, far_count = far_lost + (stays * far):sum(), far_count + far:sum()
        end
        p:grad(p:detach() - weight)
    end
    self.lost = lost / count
    if self.options.way == "nearest" then
        self.lost_far, self.lost_near = far_lost / (far_count + none), (lost - far_lost) / (count - far_count + none)
    end
    Kept.super.step(self)
end

return mp.experiment {
    name = "masters",
    about = "Updates lost beside large weights: masters, random rounding, Kahan's sum",
    params = { lr = 0.005, batch = 64, epochs = 3, width = 128, limit = 20000 },

    run = function(run)
        local p = run.params
        local format = bits[mp.policy().low] and mp.policy().low or "bf16"
        local function images(split, batch, limit)
            return mp.data.fashion_mnist {
                split = split, batch = batch, limit = limit, shuffle = split == "train",
                transform = { mean = 0.286, std = 0.353 },
            }
        end
        local train, test = images("train", p.batch, p.limit), images("test", 200, p.limit // 10)
        local models, optimizers = {}, {}
        for _, way in ipairs(ways) do
            local model = run:model(nn.Sequential {
                nn.Flatten(), nn.Linear(784, p.width, { activation = "relu" }):named "fc1",
                nn.Linear(p.width, p.width, { activation = "relu" }):named "fc2",
                nn.Linear(p.width, 10):named "head",
            }, way)
            local first = models.master and models.master:parameters()
            for i, t in ipairs(model:parameters()) do
                t:copy(first and first[i] or t:to(format):to "fp32") -- all begin on the format's grid
            end
            models[way] = model
            optimizers[way] = Kept(model:parameters(), { lr = p.lr, way = way, format = format })
        end
        local scaler = run:scaler()
        run:plan(train:len() * p.epochs)
        for _ = 1, p.epochs do
            for b in train do
                local sum, log = 0, {}
                for _, way in ipairs(ways) do
                    optimizers[way]:zero_grad()
                    local loss = mp.autocast(function() return F.cross_entropy(models[way](b.x), b.y) end)
                    log[way == "master" and "loss" or "loss_" .. way] = loss
                    sum = sum + loss
                end
                scaler:scale(sum):backward()
                for _, way in ipairs(ways) do
                    scaler:step(optimizers[way])
                    log["lost_" .. way] = optimizers[way].lost
                end
                scaler:update()
                run:log(log)
            end
        end

        mp.no_grad(function()
            local result = {}
            for _, way in ipairs(ways) do
                local right, count = 0, 0
                models[way]:eval()
                for b in test do
                    right = right + mp.autocast(function() return F.accuracy(models[way](b.x), b.y) end) * b.count
                    count = count + b.count
                end
                result[way == "master" and "accuracy" or "accuracy_" .. way] = right / count
                result["lost_" .. way] = optimizers[way].lost
            end
            result.lost_far, result.lost_near = optimizers.nearest.lost_far, optimizers.nearest.lost_near
            run:result(result)
        end)
    end,
}
