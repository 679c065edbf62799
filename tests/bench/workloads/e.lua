-- Workload e of the speed tests: a transformer of 6 layers, width 384, 6 heads, context 256,
-- vocabulary 65, batch 8, AdamW. No biases in products; the head is the table of tokens.
local mp = require "mp"
local nn, F = mp.nn, mp.fn
local steps = require "steps"

local VOCABULARY, WIDTH, HEADS, CONTEXT, LAYERS = 65, 384, 6, 256, 6

local Block = nn.class "Block"
function Block:init()
    self.norm_attention, self.norm_feed = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
    self.attention = nn.Attention(WIDTH, HEADS, { causal = true, bias = false })
    self.widen = nn.Linear(WIDTH, 4 * WIDTH, { bias = false })
    self.narrow = nn.Linear(4 * WIDTH, WIDTH, { bias = false })
end

function Block:forward(x)
    x = x + self.attention(self.norm_attention(x))
    return x + self.narrow(F.gelu(self.widen(self.norm_feed(x))))
end

local GPT = nn.class "GPT"
function GPT:init()
    self.token, self.place = nn.Embedding(VOCABULARY, WIDTH), nn.Embedding(CONTEXT, WIDTH)
    self.blocks = {}
    for i = 1, LAYERS do self.blocks[i] = Block() end
    self.norm = nn.LayerNorm(WIDTH)
    self.places = mp.arange(CONTEXT)
end

function GPT:forward(tokens)
    local x = self.token(tokens) + self.place(self.places)
    for _, block in ipairs(self.blocks) do x = block(x) end
    return F.linear(self.norm(x), self.token.weight)
end

return mp.experiment {
    name = "bench-e",
    about = "speed: GPT, 6 layers, width 384, 6 heads, context 256, batch 8, AdamW",
    params = { steps = 10, batch = 8 },

    run = function(run)
        local batch = run.params.batch
        local x, y = mp.randint(VOCABULARY, batch, CONTEXT), mp.randint(VOCABULARY, batch, CONTEXT)
        local model = run:model(GPT())
        steps(run, model, mp.optim.AdamW(model:parameters(), { lr = 1e-3 }), x, y)
    end,
}
