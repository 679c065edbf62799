-- bert: masked tokens and next sentences, trained as BERT was in mixed precision.
--
-- From the licence texts that every Debian system has (or the text in `path`) it takes pairs of
-- sequences, of letters, since these texts have too few words for a minute (unit=words takes words).
-- 15 of 100 are hidden, replaced or only asked for (80, 10 and 10 of 100 of these), and in half of the
-- pairs the second sequence is from elsewhere. The model fills in what is hidden, by the same matrix
-- that it reads with, and says from the mark between the two whether the second follows.
-- The training is that of the scripts of the time: biases and norms do not decay (no_decay), the rate
-- warms up over a tenth of the steps and falls to 0, FusedAdam has no bias correction and clips to
-- max_grad_norm 1 as it steps; `loss_scale` is 0 for dynamic scaling, or a fixed scale. Norms stand
-- before what they are for, and heads look beside themselves from the start: else it takes thousands
-- of steps until anything but the commonest letter is said.
-- Takes about 15 s on two cores. On the screen: the series masked_loss and next_loss, and the exponents
-- of the embeddings' gradients, the smallest there are.
-- Expect some 43 % of hidden letters (the commonest, a blank, is right in 16 %) and 66 % of pairs (a
-- guess is 50 %), alike in fp32, bf16, fp16, O1 and O2 within what a seed does.
-- From: Devlin et al., BERT, 2019; NVIDIA's BERT for PyTorch (--fp16, --loss_scale 0, FusedAdam of
-- Apex); the distances are those of Press et al., Train Short, Test Long, 2022, to both sides.
--     mpbench run bert -p O1
--     mpbench run bert -p O2 --set loss_scale=128
--     mpbench matrix bert -p fp32,bf16,fp16 --seeds 3
--     mpbench run bert -p bf16 --set width=256 --set layers=4 --set steps=5000 --set unit=words --set path=book.txt
local mp = require "mp"
local nn, F = mp.nn, mp.fn

local CLS, SEP, MASK, UNKNOWN, FIRST = 0, 1, 2, 3, 4 -- then words

-- ---- the text -------------------------------------------------------------------------------------

-- Its words, or its letters with one blank between words.
local function units_of(path, unit)
    local text = {}
    local loader = mp.data.text { path = path, context = 512, batch = 8, share = 0.01 }
    for b in loader do
        for _, row in ipairs(b.x:table()) do text[#text + 1] = loader:decode(row) end
    end
    local units = {}
    local whole = table.concat(text):lower():gsub("%s+", " ")
    for one in whole:gmatch(unit == "words" and "%a+" or ".") do units[#units + 1] = one end
    return units
end

-- Words as numbers, of nine parts to learn from and one to be asked about, and how many words there are.
local function numbers(words)
    local counts, index, known = {}, {}, FIRST
    for _, word in ipairs(words) do counts[word] = (counts[word] or 0) + 1 end
    local train, test = {}, {}
    for i, word in ipairs(words) do
        if not index[word] and counts[word] >= 3 then
            index[word], known = known, known + 1
        end
        local part = i // 200 % 10 == 9 and test or train
        part[#part + 1] = { index[word] or UNKNOWN }
    end
    return mp.tensor(train), mp.tensor(test), (known + 7) // 8 * 8 -- as low products like it
end

-- ---- the model ------------------------------------------------------------------------------------

local Layer = nn.class "Layer"
function Layer:init(width, heads)
    self.attention, self.LayerNorm1 = nn.Attention(width, heads), nn.LayerNorm(width)
    self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
    self.LayerNorm2 = nn.LayerNorm(width)
end

function Layer:forward(x, near)
    x = x + self.attention(self.LayerNorm1(x), near)
    return x + self.down(F.gelu(self.up(self.LayerNorm2(x))))
end

-- What each head's scores are lowered by: the further a token is from one beside the asking one, to its
-- left or right, or from that itself. From places alone that takes thousands of steps to be found.
local function distances(length, heads)
    local all = {}
    for h = 1, heads do
        local rows, aim, slope = {}, ({ -1, 1, -2, 0 })[(h - 1) % 4 + 1], ({ 3, 3, 1, 0.1 })[(h - 1) % 4 + 1]
        for i = 1, length do
            rows[i] = {}
            for j = 1, length do rows[i][j] = -slope * math.abs(j - i - aim) end
        end
        all[h] = rows
    end
    return mp.tensor { all }
end

local Bert = nn.class "Bert"
function Bert:init(known, length, p)
    local w = p.width
    self.words, self.places, self.segments = nn.Embedding(known, w), nn.Embedding(length, w), nn.Embedding(2, w)
    for _, embedding in ipairs { self.words, self.places, self.segments } do
        embedding.weight:copy(embedding.weight * 0.02)
    end
    self.LayerNorm = nn.LayerNorm(w)
    self._near, self._between = distances(length, p.heads), p.half + 2
    self.layers = {}
    for i = 1, p.layers do self.layers[i] = Layer(w, p.heads) end
    self.pooler, self.next = nn.Linear(w, w, { activation = "tanh" }), nn.Linear(w, 2)
    self.transform, self.bias = nn.Linear(w, w), nn.Parameter(mp.zeros(known))
end

function Bert:forward(index, segments)
    local x = self.words(index) + self.places(mp.arange(index:shape()[2])) + self.segments(segments)
    for _, layer in ipairs(self.layers) do x = layer(x, self._near) end
    x = self.LayerNorm(x)
    local masked = F.linear(F.gelu(self.transform(x)), self.words.weight, self.bias)
    return masked, self.next(self.pooler(x:slice(2, self._between, self._between):reshape(x:shape()[1], -1)))
end

-- ---- the training ---------------------------------------------------------------------------------

return mp.experiment {
    name = "bert",
    about = "Masked tokens and next sentences: no_decay, warm-up, FusedAdam, a scale of 0 or N",
    params = {
        lr = 3e-3, batch = 32, steps = 800, warmup = 0.1, decay = 0.01, loss_scale = 0.0, width = 64, layers = 2,
        heads = 4, half = 16, unit = { "letters", "words" }, path = "",
    },

    run = function(run)
        local p = run.params
        local train, test, known = numbers(units_of(p.path ~= "" and p.path or nil, p.unit))
        local length = 2 * p.half + 3
        local model = run:model(Bert(known, length, p))

        local no_decay = { "bias", "LayerNorm1.weight", "LayerNorm2.weight", "LayerNorm.weight" }
        local decaying, others = {}, {}
        for name, tensor in model:named_parameters() do
            local group = decaying
            for _, ending in ipairs(no_decay) do
                if name:sub(-#ending) == ending then group = others end
            end
            group[#group + 1] = tensor
        end
        local opt = mp.optim.FusedAdam({
            { params = decaying, weight_decay = p.decay }, { params = others, weight_decay = 0 },
        }, {
            lr = p.lr, bias_correction = false, max_grad_norm = 1,
            schedule = mp.optim.schedule.linear_warmup {
                start = 0, warmup = math.floor(p.warmup * p.steps), total = p.steps,
            },
        })
        local scaler = p.loss_scale == 0 and run:scaler() or mp.scaler(p.loss_scale)

        -- From a text: the words with some hidden, which half each is of, what is asked for (-1: nothing),
        -- and whether the second half follows the first.
        local function batch(text, count)
            local function at(start)
                local places = start:reshape(-1, 1) + mp.arange(p.half):reshape(1, -1)
                return F.embedding(places, text):reshape(count, p.half):to "int32"
            end
            local function all(token) return mp.full(token, count, 1):to "int32" end
            local start, follows = mp.randint(#text - 2 * p.half, count), mp.randint(2, count)
            local other = mp.randint(#text - p.half, count)
            local second = F.where(F.equal(follows, 1), start + p.half, other)
            local words = F.cat({ all(CLS), at(start), all(SEP), at(second), all(SEP) }, 2)
            local asked = F.less(mp.rand(count, length), 0.15) * F.greater(words, UNKNOWN)
            local kind = mp.rand(count, length)
            local seen = F.where(F.less(kind, 0.8), mp.full(MASK, 1, 1):to "int32",
                F.where(F.less(kind, 0.9), mp.randint(known, count, length), words))
            local halves = F.greater(mp.arange(length), p.half + 1):to "int32":reshape(1, -1)
            return F.where(asked, seen, words), halves:expand(count, length),
                F.where(asked, words, mp.full(-1, 1, 1):to "int32"), follows
        end

        for _ = 1, p.steps do
            local words, halves, asked, follows = batch(train, p.batch)
            opt:zero_grad()
            local masked_loss, next_loss = mp.autocast(function()
                local masked, next = model(words, halves)
                return F.cross_entropy(masked, asked), F.cross_entropy(next, follows)
            end)
            local loss = masked_loss + next_loss
            scaler:scale(loss):backward()
            scaler:step(opt)
            scaler:update()
            run:log { loss = loss, masked_loss = masked_loss, next_loss = next_loss }
        end

        model:eval()
        mp.no_grad(function()
            local right, count, follow, rounds = 0, 0, 0, 16
            for _ = 1, rounds do
                local words, halves, asked, follows = batch(test, 64)
                local masked, next = mp.autocast(model, words, halves)
                local hits = F.equal(F.argmax(masked), asked):to "fp32"
                right, count = right + hits:sum(), count + F.greater(asked, -1):to "fp32":sum()
                follow = follow + F.accuracy(next, follows)
            end
            run:result { accuracy = right / count, next_accuracy = follow / rounds }
        end)
    end,
}
