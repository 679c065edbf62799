-- Workload e of the speed tests: a transformer of 6 layers, width 384, 6 heads, context 256,
-- vocabulary 65, batch 8, AdamW. No biases in products; the head is the table of tokens.
local mp = require "mp"
local nn, F = mp.nn, mp.fn
local steps = require "steps"

local VOCABULARY, HEADS = 65, 6

local Block = nn.class "Block"
function Block:init(width)
    self.norm_attention, self.norm_feed = nn.LayerNorm(width), nn.LayerNorm(width)
    self.attention = nn.Attention(width, HEADS, { causal = true, bias = false })
    self.widen = nn.Linear(width, 4 * width, { bias = false })
    self.narrow = nn.Linear(4 * width, width, { bias = false })
end

function Block:forward(x)
    x = x + self.attention(self.norm_attention(x))
    return x + self.narrow(F.gelu(self.widen(self.norm_feed(x))))
end

local GPT = nn.class "GPT"
function GPT:init(width, context, layers)
    self.token, self.place = nn.Embedding(VOCABULARY, width), nn.Embedding(context, width)
    self.blocks = {}
    for i = 1, layers do self.blocks[i] = Block(width) end
    self.norm = nn.LayerNorm(width)
    self.places = mp.arange(context)
end

function GPT:forward(tokens)
    local x = self.token(tokens) + self.place(self.places)
    for _, block in ipairs(self.blocks) do x = block(x) end
    return F.linear(self.norm(x), self.token.weight)
end

return mp.experiment {
    name = "bench-e",
    about = "speed: GPT, 6 layers, width 384, 6 heads, context 256, batch 8, AdamW",
    params = { steps = 10, batch = 8, width = 384, context = 256, layers = 6 },

    run = function(run)
        local set = run.params
        local function tokens() return mp.randint(VOCABULARY, set.batch, set.context) end
        local x, y = tokens(), tokens()
        local model = run:model(GPT(set.width, set.context, set.layers))
        steps(run, model, mp.optim.AdamW(model:parameters(), { lr = 1e-3 }), x, y)
    end,
}
