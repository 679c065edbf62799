-- unet3d: a volume is divided into what is looked for and the rest, as scans of the body are: a U-Net of
-- three-dimensional convolutions, in training and in use.
--
-- The volumes are made up: balls, ellipsoids and a slope of brightness in noise, so that the truth is
-- known exactly. At the end `dice` is that of new volumes; 1 is the truth, and dice_guess what marking
-- everything would have. Then one volume goes through without training: `latency_ms` is the median of its
-- times, `training_mib` and `inference_mib` the most that a step and that took.
-- Takes about 10 s on two cores. On the screen: dice (v) rises from about 0.1 to above 0.8; in the panel
-- of the machine, what activations take.
-- Expect a Dice of about 0.9 in every format (a guess is 0.09), activations in 16 bits that take half of
-- fp32's, or little more (the masks and what norms keep stay as they are), and shorter times only where
-- the machine multiplies the format fast: `mpbench doctor` says so.
-- From: Cicek et al., 3D U-Net, 2016 (arXiv:1606.06650), the network; Micikevicius et al., Mixed Precision
-- Training, 2018 (activations of half the size).
--     mpbench run unet3d -p fp32
--     mpbench run unet3d -p fp16
--     mpbench eval @last
--     mpbench run unet3d --set size=64 --set width=16 --set steps=2000
local mp = require "mp"
local nn, F = mp.nn, mp.fn

local Block = nn.class "Block"
function Block:init(i, o)
    local same = { padding = 1, bias = false }
    self.conv1, self.norm1 = nn.Conv3d(i, o, 3, same), nn.BatchNorm(o)
    self.conv2, self.norm2 = nn.Conv3d(o, o, 3, same), nn.BatchNorm(o)
end

function Block:forward(x)
    return F.relu(self.norm2(self.conv2(F.relu(self.norm1(self.conv1(x))))))
end

local UNet = nn.class "UNet"
function UNet:init(w)
    self.down1, self.down2, self.deep = Block(1, w), Block(w, 2 * w), Block(2 * w, 4 * w)
    self.rise2, self.up2 = nn.ConvTranspose3d(4 * w, 2 * w, 2, { stride = 2 }), Block(4 * w, 2 * w)
    self.rise1, self.up1 = nn.ConvTranspose3d(2 * w, w, 2, { stride = 2 }), Block(2 * w, w)
    self.head = nn.Conv3d(w, 1, 1)
end

function UNet:forward(x)
    local wide = self.down1(x)
    local middle = self.down2(F.max_pool3d(wide, 2))
    local deep = self.deep(F.max_pool3d(middle, 2))
    local risen = self.up2(F.cat({ self.rise2(deep), middle }, 5))
    return self.head(self.up1(F.cat({ self.rise1(risen), wide }, 5)))
end

-- Where a ball of random place and radii lies, [n, size, size, size, 1].
local function body(n, size)
    local along, inside = mp.arange(size):to "fp32" / size, 0
    for axis = 1, 3 do
        local shape = { 1, 1, 1, 1, 1 }
        shape[axis + 1] = size
        local centre = mp.rand(n, 1, 1, 1, 1) * 0.5 + 0.25
        local radius = mp.rand(n, 1, 1, 1, 1) * 0.12 + 0.12
        inside = ((along:reshape(shape) - centre) / radius):square() + inside
    end
    return F.less(inside, 1):to "fp32"
end

-- Two bodies in a volume whose brightness slopes, with noise half as strong as they are bright.
local function volumes(n, size)
    local truth = F.maximum(body(n, size), body(n, size))
    local slope = (mp.arange(size):to "fp32" / size):reshape(1, size, 1, 1, 1) * mp.randn(n, 1, 1, 1, 1)
    return truth + slope + mp.randn(n, size, size, size, 1) * 0.5, truth
end

-- Twice what both have over what each has, of one; 1 where they are equal.
local function dice(share, truth)
    return ((share * truth):sum() * 2 + 1) / (share:sum() + truth:sum() + 1)
end

local function loss_of(model, x, truth)
    local logits = model(x):to "fp32"
    local overlap = dice(F.sigmoid(logits), truth)
    return F.bce_with_logits(logits, truth) + 1 - overlap, overlap
end

local function model_of(p) return UNet(p.width) end

-- What `mpbench eval` and `mpbench scan` go through, which make no volumes of their own.
local function data_of(p)
    local function loader(count)
        local x, truth = volumes(count, p.size)
        return mp.data.tensors { x = x, y = truth, batch = p.batch, shuffle = true }
    end
    return { train = loader(64), test = loader(32) }
end

return mp.experiment {
    name = "unet3d",
    about = "A 3-D U-Net finds bodies in noisy volumes: Dice, latency and memory, in training and in use",
    params = { steps = 200, batch = 2, size = 24, width = 8, lr = 1e-2, uses = 15 },

    data = data_of,
    model = model_of,
    loss = function(model, b) return (loss_of(model, b.x, b.y)) end,
    optim = function(params, p) return mp.optim.AdamW(params, { lr = p.lr }) end,
    eval = function(model, b) return { dice = dice(F.greater(model(b.x), 0):to "fp32", b.y) } end,

    run = function(run)
        local p = run.params
        local model = run:model(model_of(p))
        local opt = mp.optim.AdamW(model:parameters(), {
            lr = p.lr, schedule = mp.optim.schedule.cosine { total = p.steps, warmup = p.steps // 10 },
        })
        local scaler = run:scaler()
        local function step()
            local x, truth = volumes(p.batch, p.size)
            opt:zero_grad()
            local loss, overlap = mp.autocast(loss_of, model, x, truth)
            scaler:scale(loss):backward()
            scaler:step(opt)
            scaler:update()
            run:log { loss = loss, dice = overlap }
        end
        for _ = 1, p.steps - 1 do step() end
        local training = mp.memory(step)

        run:evaluate(function()
            model:eval()
            local sum, guess, count = 0, 0, 10
            for _ = 1, count do
                local x, truth = volumes(p.batch, p.size)
                local found = F.greater(mp.autocast(model, x), 0):to "fp32"
                sum, guess = sum + dice(found, truth):item(), guess + dice(mp.ones(truth:shape()), truth):item()
            end
            local x, times, use = volumes(1, p.size), {}, nil
            for i = 1, p.uses do
                local start = mp.clock()
                use = mp.memory(function() return mp.autocast(model, x):sum():item() end)
                times[i] = mp.clock() - start
            end
            table.sort(times)
            run:result {
                dice = sum / count, dice_guess = guess / count,
                latency_ms = times[(#times + 1) // 2] * 1000,
                training_mib = training.activations / 2 ^ 20, inference_mib = use.activations / 2 ^ 20,
            }
        end)
    end,
}
