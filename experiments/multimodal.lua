-- multimodal: a picture and a line of text; encoders and decoder in fp16, what joins them in fp32.
--
-- The text names a piece of clothing, letter by letter; half of the time it is not the one in the
-- picture. Whether it fits only both together can say. An image encoder makes 49 vectors of the
-- picture, a text encoder one of each letter, the fusion lets letters look at the picture and at
-- each other, the decoder answers. `precision` below puts three of the four in fp16 and the fusion in
-- fp32, and the tensors between them are cast where they pass.
-- Takes about 15 s on two cores. On the screen: the four layers and their formats; put `fusion` into
-- fp16 with `space` and see whether the exponents of its gradients fit.
-- Expect 50 % at first (a guess), for some hundred steps nothing else, and then some 85 % in every
-- format. Kept in fp32 the fusion is safe from what sums over two kinds of inputs may do; here they
-- are small, and fp16 does as well.
-- From: the unified trainers of introductions to mixed precision; Radford et al., Learning
-- Transferable Visual Models From Natural Language Supervision, 2021, trained in mixed precision.
--     mpbench run multimodal
--     mpbench run multimodal --layer 'fusion=fp16'
--     mpbench matrix multimodal -p fp32,bf16,fp16 --seeds 3
--     mpbench run multimodal --set width=128 --set limit=0 --set epochs=5
local mp = require "mp"
local nn, F = mp.nn, mp.fn

local words = { "shirt top", "trousers", "pullover", "dress", "coat", "sandal", "blouse", "sneaker", "bag", "boot" }
local length = 9 -- of the longest

-- The words as rows of letters: 0 for a blank, 1 to 26.
local function letters()
    local rows = {}
    for i, word in ipairs(words) do
        rows[i] = {}
        for k = 1, length do
            local byte = word:byte(k)
            rows[i][k] = byte and byte > 32 and byte - 96 or 0
        end
    end
    return mp.tensor(rows)
end

local Image = nn.class "Image"
function Image:init(w)
    self.conv1 = nn.Conv2d(1, w // 2, 3, { stride = 2, padding = 1, activation = "relu" })
    self.conv2 = nn.Conv2d(w // 2, w, 3, { stride = 2, padding = 1, activation = "relu" })
end

function Image:forward(x)
    local h = self.conv2(self.conv1(x))
    return h:reshape(h:shape()[1], -1, h:shape()[4])
end

local Text = nn.class "Text"
function Text:init(w)
    self.letters, self.places = nn.Embedding(27, w), nn.Embedding(length, w)
    self.up, self.down, self.norm = nn.Linear(w, 2 * w), nn.Linear(2 * w, w), nn.LayerNorm(w)
end

function Text:forward(index)
    local x = self.letters(index) + self.places(mp.arange(length))
    return x + self.down(F.gelu(self.up(self.norm(x))))
end

-- Both as one sequence, in which everything looks at everything.
local Fusion = nn.class "Fusion"
function Fusion:init(w, heads)
    self.kinds = nn.Embedding(2, w)
    self.norm1, self.attention = nn.LayerNorm(w), nn.Attention(w, heads)
    self.norm2, self.up, self.down = nn.LayerNorm(w), nn.Linear(w, 2 * w), nn.Linear(2 * w, w)
end

function Fusion:forward(image, text)
    local x = F.cat({ image + self.kinds.weight[1], text + self.kinds.weight[2] }, 2)
    x = x + self.attention(self.norm1(x))
    return x + self.down(F.gelu(self.up(self.norm2(x))))
end

local Decoder = nn.class "Decoder"
function Decoder:init(w)
    self.hidden, self.answer = nn.Linear(2 * w, 2 * w, { activation = "relu" }), nn.Linear(2 * w, 2)
end

function Decoder:forward(h)
    local places = h:shape()[2] - length
    return self.answer(self.hidden(F.cat({ h:slice(2, 1, places):mean(2), h:slice(2, places + 1):mean(2) }, -1)))
end

local Model = nn.class "Model"
function Model:init(p)
    self.image, self.text = Image(p.width), Text(p.width)
    self.fusion, self.decoder = Fusion(p.width, p.heads), Decoder(p.width)
    self._words = letters()
end

-- The text fits every second picture of a batch; the others' is that of another class.
function Model:forward(b)
    local fits = F.less(mp.rand(b.count), 0.5):to "int32"
    local other = mp.randint(9, b.count) + 1
    local named = b.y + (1 - fits) * other
    named = named - F.greater(named, 9):to "int32" * 10
    local text = F.embedding(named, self._words):to "int32"
    return self.decoder(self.fusion(self.image(b.x), self.text(text))), fits
end

return mp.experiment {
    name = "multimodal",
    about = "Does the text fit the picture? Encoders and decoder in fp16, fusion in fp32",
    params = { lr = 2e-3, batch = 64, epochs = 4, width = 32, heads = 4, warmup = 40, limit = 20000 },
    precision = { default = "fp16", fusion = "fp32" },

    data = function(p)
        return {
            train = mp.data.fashion_mnist { split = "train", batch = p.batch, shuffle = true, limit = p.limit },
            test = mp.data.fashion_mnist { split = "test", batch = 200, limit = p.limit // 10 },
        }
    end,

    model = function(p) return Model(p) end,
    loss = function(model, b) return F.cross_entropy(model(b)) end,
    eval = function(model, b) return { accuracy = F.accuracy(model(b)) } end,
    optim = function(params, p) return mp.optim.AdamW(params, { lr = p.lr }) end,
    schedule = function(p) return mp.optim.schedule.cosine { warmup = p.warmup } end,
}
