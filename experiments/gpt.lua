-- gpt: a small transformer that learns to write a text, character by character.
--
-- Blocks of causal attention and a two-layer network, layer norms before each, learned positions.
-- Without `path` it reads the licence texts that every Debian system has. At the end it writes a
-- few lines of its own. Takes about 15 s on two cores. On the screen: the loss falls from 4.6, while
-- guessing among the 82 characters has 4.4, fast at first; the gradients of each block.
-- Expect a `test_loss` of about 2.3 nats a character in any format, and a text that has the look of
-- words; more steps make it one of sentences.
-- From: Radford et al., Language Models are Unsupervised Multitask Learners, 2019 (the blocks), made small.
--     mpbench run gpt -p bf16
--     mpbench run gpt --set layers=6 --set width=384 --set heads=6 --set context=256 --set batch=8
--     mpbench run gpt --set path=/usr/share/common-licenses/GPL-3 --set steps=1000
local mp = require "mp"
local nn, F = mp.nn, mp.fn

local Block = nn.class "Block"
function Block:init(width, heads)
    self.norm1, self.attention = nn.LayerNorm(width), nn.Attention(width, heads, { causal = true })
    self.norm2 = nn.LayerNorm(width)
    self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
end

function Block:forward(x)
    x = x + self.attention(self.norm1(x))
    return x + self.down(F.gelu(self.up(self.norm2(x))))
end

local GPT = nn.class "GPT"
function GPT:init(vocabulary, p)
    self.tokens, self.positions = nn.Embedding(vocabulary, p.width), nn.Embedding(p.context, p.width)
    self.blocks = {}
    for i = 1, p.layers do self.blocks[i] = Block(p.width, p.heads) end
    self.norm, self.head = nn.LayerNorm(p.width), nn.Linear(p.width, vocabulary, { bias = false })
    for _, embedding in ipairs { self.tokens, self.positions } do
        embedding.weight:copy(embedding.weight * 0.02)
    end
end

function GPT:forward(index)
    local x = self.tokens(index) + self.positions(mp.arange(index:shape()[2]))
    for _, block in ipairs(self.blocks) do x = block(x) end
    return self.head(self.norm(x))
end

-- Writes `count` characters after `start`, a list of tokens, each drawn from the model's odds.
local function write(model, start, count, context)
    local tokens = { table.unpack(start) }
    for _ = 1, count do
        local window = { table.unpack(tokens, math.max(1, #tokens - context + 1)) }
        local logits = model(mp.tensor({ window }, "int32"))
        local odds = F.softmax(logits[1][#window]:to "fp32"):table()
        local draw, at = math.random(), 1
        while at < #odds and draw > odds[at] do
            draw, at = draw - odds[at], at + 1
        end
        tokens[#tokens + 1] = at - 1
    end
    return tokens
end

local function data_of(p)
    local path = p.path ~= "" and p.path or nil
    return {
        train = mp.data.text { path = path, context = p.context, batch = p.batch, shuffle = true },
        test = mp.data.text { path = path, context = p.context, batch = p.batch, split = "test" },
    }
end

local function model_of(p, data) return GPT(data.train:vocabulary(), p) end

local function loss_of(model, b) return F.cross_entropy(model(b.x), b.y) end

return mp.experiment {
    name = "gpt",
    about = "A small transformer on the characters of a text",
    params = {
        lr = 1e-3, batch = 16, steps = 300, warmup = 30, layers = 4, width = 128, heads = 4,
        context = 64, decay = 0.1, clip = 1.0, path = "", write = 200,
    },

    -- For `mpbench eval` and `mpbench scan`, which have no need of the loop below.
    data = data_of,
    model = model_of,
    loss = loss_of,
    optim = function(params, p) return mp.optim.AdamW(params, { lr = p.lr, betas = { 0.9, 0.95 } }) end,
    eval = function(model, b)
        local loss = loss_of(model, b)
        return { loss = loss, bits_per_character = loss / math.log(2) }
    end,

    run = function(run)
        local p = run.params
        local data = data_of(p)
        local train, test = data.train, data.test
        local model = run:model(model_of(p, data))

        local opt = mp.optim.AdamW(model:decay_groups(p.decay), {
            lr = p.lr, betas = { 0.9, 0.95 },
            schedule = mp.optim.schedule.cosine {
                warmup = math.min(p.warmup, p.steps // 2),
                total = p.steps,
                floor = p.lr / 10,
            },
        })
        local scaler = run:scaler()
        local parameters = model:parameters()

        local done = 0
        while done < p.steps do
            for b in train do
                if done == p.steps then break end
                opt:zero_grad()
                local loss = mp.autocast(loss_of, model, b)
                scaler:scale(loss):backward()
                scaler:unscale(opt)
                mp.optim.clip_norm(parameters, p.clip)
                scaler:step(opt)
                scaler:update()
                run:log { loss = loss }
                done = done + 1
            end
        end

        model:eval()
        mp.no_grad(function()
            local sum, count = 0, 0
            for b in test do
                sum, count = sum + mp.autocast(loss_of, model, b):item() * b.count, count + b.count
                if count >= 512 then break end
            end
            run:result { test_loss = sum / count, bits_per_character = sum / count / math.log(2) }
            if p.write > 0 then
                local tokens = mp.autocast(function()
                    return write(model, { 0 }, p.write, p.context)
                end)
                print(train:decode(tokens))
            end
        end)
    end,
}
