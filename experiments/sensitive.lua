-- sensitive: why batch norm, layer norm and embeddings stay in fp32, shown by letting them go.
--
-- Two convolutions with batch norm see pictures in numbers up to 4095, as cameras give them. What
-- comes out of the first deviates by a thousand, its variance is some million: more than fp16 holds. A
-- place's vector is added from an embedding, a layer norm stands before the classifier. The policy
-- keeps weights, statistics and results of such layers in fp32; `--keep-fp32` names what alone is to
-- be kept, so that everything else falls to the run's format:
--     --keep-fp32 losses               norms and embedding in the run's format
--     --keep-fp32 losses+batch_norm    all of them but batch norm
--     --keep-fp32 none                 the loss too
-- The sums inside of a norm are in fp32 even then, as cards have them. --set hand=true replaces the
-- batch norm by one written of operations, whose squares are in the run's format.
-- Takes about 4 s on two cores. On the screen: the loss looks well in either case: it is the
-- evaluation that shows it.
-- Expect some 83 % (a guess is 10 %) from the policy in every format. In fp16 without batch norm kept
-- the network trains as well, and then guesses: the running variance is infinite. Written by hand
-- it divides by infinity and learns nothing. bf16 has the range, and loses nothing that shows.
-- From: Micikevicius et al., Mixed Precision Training, 2018 (statistics and norms in fp32); Apex'
-- keep_batchnorm_fp32; PyTorch's list of operations that autocast to float32.
--     mpbench run sensitive -p fp16
--     mpbench matrix sensitive -p fp16,bf16 --keep-fp32 all,losses+batch_norm,losses
--     mpbench run sensitive -p fp16 --set hand=true
--     mpbench scan sensitive --formats fp16,bf16     # which of them bear which format
local mp = require "mp"
local nn, F = mp.nn, mp.fn

-- Of operations, each of which rounds to the format of x. It has no running statistics.
local ByHand = nn.class "ByHand"
function ByHand:init(n) self.weight, self.bias = nn.Parameter(mp.ones(n)), nn.Parameter(mp.zeros(n)) end
function ByHand:forward(x)
    local format = x:dtype()
    local d = x - x:mean({ 1, 2, 3 }, true)
    local variance = (d * d):mean({ 1, 2, 3 }, true) + 1e-3
    return d / variance:sqrt() * self.weight:to(format) + self.bias:to(format)
end

local Net = nn.class "Net"
function Net:init(p)
    local w, Norm = p.width, p.hand and ByHand or nn.BatchNorm
    self.conv1, self.norm1 = nn.Conv2d(1, w, 3, { stride = 2, padding = 1 }), Norm(w)
    self.conv2, self.norm2 = nn.Conv2d(w, 2 * w, 3, { stride = 2, padding = 1 }), Norm(2 * w)
    self.places, self.norm = nn.Embedding(49, 2 * w), nn.LayerNorm(2 * w)
    self.mix, self.head = nn.Linear(2 * w, 2 * w, { activation = "relu" }), nn.Linear(2 * w, 10)
    self.loud = p.loud
end

function Net:forward(x)
    local h = F.relu(self.norm1(self.conv1(x * self.loud)))
    h = F.relu(self.norm2(self.conv2(h)))
    h = h:reshape(h:shape()[1], 49, -1) + self.places(mp.arange(49))
    return self.head(self.mix(self.norm(h)):mean(2))
end

return mp.experiment {
    name = "sensitive",
    about = "Norms and embeddings in fp32 or not: --keep-fp32 shows why they are kept",
    params = { lr = 5e-3, batch = 64, epochs = 4, width = 16, limit = 20000, loud = 4095, hand = false },

    data = function(p)
        return {
            train = mp.data.fashion_mnist { split = "train", batch = p.batch, shuffle = true, limit = p.limit },
            test = mp.data.fashion_mnist { split = "test", batch = 200, limit = p.limit // 6 },
        }
    end,

    model = function(p) return Net(p) end,
    loss = function(model, b) return F.cross_entropy(model(b.x), b.y) end,
    eval = function(model, b) return { accuracy = F.accuracy(model(b.x), b.y) } end,
    optim = function(params, p) return mp.optim.AdamW(params, { lr = p.lr }) end,
    schedule = mp.optim.schedule.cosine {},
}
