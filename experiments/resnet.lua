-- resnet: a residual network with batch norm, and the steps and seconds that it takes to a target.
--
-- What a format is worth is not its steps a second but how soon it is as good: this looks at the
-- accuracy of a part of the test images every `every` steps, so that
--     mpbench compare --target accuracy=0.8 @last:fp32 @last:bf16 @last:fp16
-- can say after how many steps and seconds each was there first. Blocks of two convolutions beside a
-- way around them, in three stages; SGD with Nesterov's momentum, warm-up and a cosine; norms and
-- biases do not decay. With `dir`, a folder with CIFAR-10 (the binary batches), it trains on that,
-- with crops and mirrored images, else on Fashion-MNIST, small enough for a laptop.
-- Takes about 10 s on two cores. On the screen: `accuracy` as it climbs; batch norms stay in fp32.
-- Expect some 87 % on Fashion-MNIST (a guess is 10 %) and the same steps to a target in every format,
-- within what a seed does: what differs is the seconds. On CIFAR-10 with width=32 depth=3 epochs=60
-- the literature has 92 to 93 %, in mixed precision too.
-- From: He et al., Deep Residual Learning, 2016; Micikevicius et al., Mixed Precision Training, 2018
-- (table 1); Coleman et al., DAWNBench, 2017 (time to accuracy).
--     mpbench matrix resnet -p fp32,bf16,fp16 --seeds 2
--     mpbench scan resnet
--     mpbench run resnet --set dir=cifar-10-batches-bin --set width=32 --set depth=3 --set epochs=60 --set limit=0
local mp = require "mp"
local nn, F = mp.nn, mp.fn

local Block = nn.class "Block"
function Block:init(from, to, stride)
    self.conv1, self.norm1 = nn.Conv2d(from, to, 3, { stride = stride, padding = 1, bias = false }), nn.BatchNorm(to)
    self.conv2, self.norm2 = nn.Conv2d(to, to, 3, { padding = 1, bias = false }), nn.BatchNorm(to)
    if stride > 1 or from ~= to then
        self.around = nn.Sequential {
            nn.Conv2d(from, to, 1, { stride = stride, bias = false }), nn.BatchNorm(to),
        }
    end
end

function Block:forward(x)
    local h = self.norm2(self.conv2(F.relu(self.norm1(self.conv1(x)))))
    return F.relu(h + (self.around and self.around(x) or x))
end

local ResNet = nn.class "ResNet"
function ResNet:init(channels, width, depth)
    self.conv, self.norm = nn.Conv2d(channels, width, 3, { padding = 1, bias = false }), nn.BatchNorm(width)
    self.blocks = {}
    local from = width
    for stage = 0, 2 do
        for i = 1, depth do
            local to = width << stage
            self.blocks[#self.blocks + 1] = Block(from, to, stage > 0 and i == 1 and 2 or 1)
            from = to
        end
    end
    self.pool, self.head = nn.GlobalAvgPool(), nn.Linear(from, 10)
end

function ResNet:forward(x)
    local h = F.relu(self.norm(self.conv(x)))
    for _, block in ipairs(self.blocks) do h = block(h) end
    return self.head(self.pool(h))
end

-- CIFAR-10 from a folder, or Fashion-MNIST.
local function images(p, split, batch, limit)
    local training = split == "train"
    local options = { split = split, batch = batch, shuffle = training, limit = limit }
    if p.dir == "" then
        options.transform = { mean = 0.286, std = 0.353 }
        return mp.data.fashion_mnist(options)
    end
    options.dir, options.threads = p.dir, 2
    options.transform = {
        crop = training and 4 or nil, flip = training or nil,
        mean = { 0.491, 0.482, 0.447 }, std = { 0.247, 0.243, 0.262 },
    }
    return mp.data.cifar10(options)
end

local function data_of(p)
    return {
        train = images(p, "train", p.batch, p.limit),
        test = images(p, "test", 50, p.limit == 0 and 0 or math.max(p.looked_at, p.limit // 10)),
    }
end

local function model_of(p) return ResNet(p.dir == "" and 1 or 3, p.width, p.depth) end

local function loss_of(model, b) return F.cross_entropy(model(b.x), b.y) end

local function right_of(model, b) return F.accuracy(model(b.x), b.y) end

local function optim_of(params, p, _, schedule)
    return mp.optim.SGD(params, { lr = p.lr, momentum = 0.9, nesterov = true, schedule = schedule })
end

return mp.experiment {
    name = "resnet",
    about = "A residual network with batch norm: steps and seconds to a target accuracy",
    params = {
        lr = 0.1, batch = 64, epochs = 2, width = 8, depth = 1, decay = 5e-4, limit = 20000, every = 40,
        looked_at = 1000, dir = "",
    },

    -- For `mpbench eval` and `mpbench scan`, which have no need of the loop below.
    data = data_of,
    model = model_of,
    loss = loss_of,
    optim = optim_of,
    eval = function(model, b) return { accuracy = right_of(model, b) } end,

    run = function(run)
        local p = run.params
        local data, model = data_of(p), run:model(model_of(p))
        local total = data.train:len() * p.epochs
        run:plan(total)
        local opt = optim_of(model:decay_groups(p.decay), p, model,
            mp.optim.schedule.cosine { warmup = math.min(60, total // 5), total = total })
        local scaler = run:scaler()

        -- Of the first so many test images, or all.
        local function accuracy(most)
            local right, count = 0, 0
            model:eval()
            mp.no_grad(function()
                for b in data.test do
                    right = right + mp.autocast(right_of, model, b) * b.count
                    count = count + b.count
                    if count >= most then break end
                end
            end)
            model:train()
            return right / count
        end

        local step = 0
        for _ = 1, p.epochs do
            for b in data.train do
                opt:zero_grad()
                local loss = mp.autocast(loss_of, model, b)
                scaler:scale(loss):backward()
                scaler:step(opt)
                scaler:update()
                step = step + 1
                run:log { loss = loss, accuracy = step % p.every == 0 and accuracy(p.looked_at) or nil }
            end
        end
        run:result { accuracy = accuracy(math.huge) }
    end,
}
