-- fp8: a small GPT whose products take factors of 8 bits, by the recipes that are in use, and by one that
-- is not: the same exponent bias for every tensor.
--
-- What fp8 holds is narrow, e4m3 from 2^-9 to 448 and e5m2, which gradients get, from 2^-16 to 57344: so
-- each tensor is multiplied by a scale before it is rounded. The loss is multiplied by 2^-12 here, as if
-- a mean over some two million characters were taken, as large models do: that is how small their
-- gradients are. At the end `test_loss` is nats a character on text that was held back, test_chance what
-- knowing nothing gives, 4.4.
-- Takes some four seconds on two cores. On the screen: loss; in the panel of gradients the range of fp8
-- under where they lie.
-- Expect every recipe of -p fp8 to end within 0.1 of -p bf16, some 2.05, and so `scales=tensor`, the same
-- written out in this file; but `scales=fixed` above 2.4, no better than a network without blocks
-- (layers=0): with a bias of 0 their gradients become 0, with one that saves those what is large is cut off.
-- From: Micikevicius et al., FP8 Formats for Deep Learning, 2022 (arXiv:2209.05433): with a scale a tensor
-- fp8 trains as 16 bits do, and one bias for all tensors does not do for all networks.
--     mpbench run fp8 -p bf16
--     mpbench run fp8 -p fp8                             scales from the steps before (delayed)
--     mpbench run fp8 -p fp8 --recipe fp8=current        from the tensor itself
--     mpbench run fp8 -p fp8 --recipe fp8=blocks         one for each block
--     mpbench run fp8 -p fp32 --set scales=tensor
--     mpbench run fp8 -p fp32 --set scales=fixed         or, with all tensors times 2^8, --set bias=8
--     mpbench run fp8 -p fp32 --set layers=0
local mp = require "mp"
local nn, F = mp.nn, mp.fn

-- ---- rounding to 8 bits, written out --------------------------------------------------------------

-- To `bits` behind the point (Veltkamp: a sum that is large enough takes the rest along), and below the
-- least normal number to multiples of the least there is.
local function rounded(x, bits, least, most)
    local large = x * (2 ^ (23 - bits) + 1)
    local shift = 1.5 * 2 ^ (23 - bits) * least
    local fine, coarse = large - (large - x), (x + shift) - shift
    return F.where(F.less(x:abs(), least), coarse, fine):clamp(-most, most)
end

local e4m3, e5m2 = { 3, 2 ^ -6, 448 }, { 2, 2 ^ -14, 57344 }

-- Scaled, rounded, and scaled back. A scale is a power of two, as a bias is.
local function through(x, format, p)
    local scale = mp.full(2 ^ p.bias, 1)
    if p.scales == "tensor" then
        local room = format[3] / (x:abs():max() + 1e-30):item()
        scale = mp.full(2 ^ math.min(math.floor(math.log(room, 2)), 100), 1)
    end
    return rounded(x * scale, table.unpack(format)) / scale
end

-- A linear layer all of whose products have both factors in 8 bits.
local function linear_of(p)
    if p.scales == "run" then return nn.Linear end -- the precision of the run is all
    local product = mp.custom {
        name = "product in fp8", precision = "fp32",
        forward = function(ctx, x, weight)
            x, weight = through(x, e4m3, p), through(weight, e4m3, p)
            ctx:save(x, weight)
            return x:matmul(weight:transpose())
        end,
        backward = function(ctx, dy)
            local x, weight = ctx:saved()
            dy = through(dy, e5m2, p)
            local rows = dy:reshape(-1, dy:shape()[#dy:shape()])
            return dy:matmul(weight), rows:transpose():matmul(x:reshape(-1, x:shape()[#x:shape()]))
        end,
    }
    local Linear8 = nn.class "Linear8"
    function Linear8:init(i, o, options)
        self.weight = nn.Linear(i, o, options).weight
    end
    function Linear8:forward(x) return product(x, self.weight) end
    return Linear8
end

-- ---- the network ----------------------------------------------------------------------------------

local GPT = nn.class "GPT"
function GPT:init(vocabulary, p)
    local Linear, plain = linear_of(p), { bias = false }
    self._heads = p.heads
    self.tokens, self.places = nn.Embedding(vocabulary, p.width), nn.Embedding(p.context, p.width)
    self.blocks = {}
    for i = 1, p.layers do
        self.blocks[i] = {
            norm1 = nn.LayerNorm(p.width), norm2 = nn.LayerNorm(p.width),
            qkv = Linear(p.width, 3 * p.width, plain), out = Linear(p.width, p.width, plain),
            up = Linear(p.width, 4 * p.width, plain), down = Linear(4 * p.width, p.width, plain),
        }
    end
    self.norm, self.head = nn.LayerNorm(p.width), nn.Linear(p.width, vocabulary, plain)
    for _, table in ipairs { self.tokens, self.places } do table.weight:copy(table.weight * 0.02) end
end

function GPT:forward(index)
    local n, time = table.unpack(index:shape())
    local x = self.tokens(index) + self.places(mp.arange(time))
    for _, block in ipairs(self.blocks) do
        local q, k, v = block.qkv(block.norm1(x)):reshape(n, time, 3 * self._heads, -1):chunk(3, 3)
        x = x + block.out(F.attention(q, k, v, { causal = true }):reshape(n, time, -1))
        x = x + block.down(F.gelu(block.up(block.norm2(x))))
    end
    return self.head(self.norm(x))
end

return mp.experiment {
    name = "fp8",
    about = "A small GPT in fp8: a scale a tensor trains as 16 bits do, one bias for all tensors does not",
    params = {
        steps = 500, batch = 16, context = 32, layers = 2, width = 64, heads = 2, lr = 2e-3,
        scales = { "run", "fixed", "tensor" }, bias = 0, shrink = 2 ^ -12, path = "",
    },

    run = function(run)
        local p = run.params
        local path = p.path ~= "" and p.path or nil
        local train = mp.data.text { path = path, context = p.context, batch = p.batch, shuffle = true }
        local test = mp.data.text { path = path, context = p.context, batch = p.batch, split = "test" }
        local model = run:model(GPT(train:vocabulary(), p))
        local opt = mp.optim.AdamW(model:decay_groups(0.1), {
            lr = p.lr, betas = { 0.9, 0.95 }, eps = 1e-16,
            schedule = mp.optim.schedule.cosine { warmup = p.steps // 10, total = p.steps, floor = p.lr / 10 },
        })
        local scaler = run:scaler()
        local function loss_of(b)
            return mp.autocast(function() return F.cross_entropy(model(b.x), b.y) end)
        end
        local done = 0
        while done < p.steps do
            for b in train do
                if done == p.steps then break end
                opt:zero_grad()
                local loss = loss_of(b)
                scaler:scale(loss * p.shrink):backward()
                scaler:step(opt)
                scaler:update()
                run:log { loss = loss }
                done = done + 1
            end
        end
        run:evaluate(function()
            model:eval()
            local sum, count = 0, 0
            for b in test do
                sum, count = sum + loss_of(b):item() * b.count, count + b.count
                if count >= 512 then break end
            end
            run:result { test_loss = sum / count, test_chance = math.log(train:vocabulary()) }
        end)
    end,
}
