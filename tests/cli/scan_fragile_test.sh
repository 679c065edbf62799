#!/bin/sh
# shellcheck disable=SC1091,SC2034,SC2154,SC2317 # what shell.sh sets, reads and calls
# `mpbench scan` of models with one part made fragile: it names that part, and its policy trains where
# all-fp16 does not. Under MPBENCH_SOAK by five seeds each, with the speed of what it proposes.
. "$(dirname "$0")/../shell.sh"
# Longer than a training with no finite gradient takes to be given up by itself.
seeds=1 length="--steps 45 --seeds 2"
[ -z "${MPBENCH_SOAK:-}" ] || seeds="1 2 3 4 5" length="--steps 60 --seeds 3"

# A small GPT with attention as it is written by hand. Weights that are a hundred times what they should
# be give scores that fp16 does not hold; scores of thousands are also what bf16 rounds by tens.
cat >"$folder/gpt.lua" <<'LUA'
local mp = require "mp"
local nn, F = mp.nn, mp.fn

local Attention = nn.class "Attention"
function Attention:init(width) self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width) end
function Attention:forward(x)
    local q, k, v = self.qkv(x):chunk(3, -1)
    local n, w = x:shape()[2], x:shape()[3]
    local seen = F.less(mp.arange(n), mp.arange(n):reshape(n, 1) + 1)
    local scores = q:matmul(k:transpose()):to "fp32" / math.sqrt(w)
    return self.out(F.softmax(F.where(seen, scores, -1e30)):matmul(v))
end

local Block = nn.class "Block"
function Block:init(width)
    self.norm1, self.attention, self.norm2 = nn.LayerNorm(width), Attention(width), nn.LayerNorm(width)
    self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
end
function Block:forward(x)
    x = x + self.attention(self.norm1(x))
    return x + self.down(F.gelu(self.up(self.norm2(x))))
end

local GPT = nn.class "GPT"
function GPT:init(letters, p)
    self.tokens, self.positions = nn.Embedding(letters, p.width), nn.Embedding(p.context, p.width)
    self.blocks = { Block(p.width), Block(p.width) }
    self.norm, self.head = nn.LayerNorm(p.width), nn.Linear(p.width, letters)
    if p.fragile > 0 then
        local weight = self.blocks[p.fragile].attention.qkv.weight
        mp.no_grad(function() weight:copy(weight * 100) end)
    end
end
function GPT:forward(index)
    local x = self.tokens(index) + self.positions(mp.arange(index:shape()[2]))
    for _, block in ipairs(self.blocks) do x = block(x) end
    return self.head(self.norm(x))
end

return mp.experiment {
    name = "gpt", params = { fragile = 0, width = 64, context = 32, batch = 4, lr = 1e-3 },
    data = function(p) return { train = mp.data.text { context = p.context, batch = p.batch, shuffle = true } } end,
    model = function(p, data) return GPT(data.train:vocabulary(), p) end,
    loss = function(model, b) return F.cross_entropy(model(b.x), b.y) end,
    optim = function(params, p) return mp.optim.AdamW(params, { lr = p.lr }) end,
}
LUA
scan() { # EXPERIMENT OPTION..
    # shellcheck disable=SC2086 # words
    run scan $length -d cpu --threads 1 --quiet --json "$@"
    expect_status 0
    tr '{' '\n' <"$folder/out" >"$folder/pieces"
}
policy_of() { # LAYER
    sed -n "s/^\"name\":\"$1\",.*\"policy\":\"\([^\"]*\)\".*/\1/p" "$folder/pieces"
}
suffering() { # the layers that fp16 breaks, with a ! behind, and those that it damages too much
    awk -F'"' '$2 == "name" { layer = $4 } $2 == "fp16" { is_next = 1; next }
        is_next { match($0, /"damage":[^,]*/); damage = substr($0, RSTART + 9, RLENGTH - 9)
            if ($3 ~ /true/) print layer "!"; else if (damage + 0 > 0.15) print layer; is_next = 0 }' "$folder/pieces"
}
training() { # LABEL KEY
    sed -n "s/^\"label\":\"$1\",.*\"$2\":\([^,}]*\).*/\1/p" "$folder/pieces"
}
expect_policy_that_trains() { # of the seed
    [ "$(training "all fp16" within)" = false ] || fail "seed $seed: all fp16 trains"
    [ "$(training policy within)" = true ] || fail "seed $seed: the policy does not train"
    awk -v low="$(training "all fp16" step_seconds)" -v own="$(training policy step_seconds)" \
        'BEGIN { print own / low }' >>"$folder/slower"
}
expect_speed() { # the middle of all seeds: one alone says what else the machine did
    [ -z "${MPBENCH_SOAK:-}" ] || sort -n "$folder/slower" | awk '{ all[NR] = $1 }
        END { exit !(all[int((NR + 1) / 2)] < 1.1) }' || fail "a step takes, of all fp16's: $(tr '\n' ' ' <"$folder/slower")"
    rm -f "$folder/slower"
}

begin "of a GPT the attention is found whose weights are too large, by every seed"
for seed in $seeds; do
    block=$((seed % 2 + 1))
    scan "$folder/gpt.lua" --formats fp16,bf16 --seed "$seed" --set fragile=$block
    suffering >"$folder/found"
    grep -qx "blocks.$block.attention!" "$folder/found" || fail "seed $seed: block $block is fragile, found: $(cat "$folder/found")"
    # What comes behind it takes no harm; gradients of what comes before go through it, and what a norm
    # or an embedding there rounds its scores make large.
    before="blocks.$((block - 1))\|blocks.$block.norm1\|tokens\|positions"
    ! grep -v "^blocks.$block.attention!\|^blocks.$block.attention.qkv\|^$before" "$folder/found" >"$folder/wrong" ||
        fail "seed $seed: found as well: $(cat "$folder/wrong")"
    [ "$(policy_of "blocks.$block.attention")" != fp16 ] || fail "seed $seed: it is to be in fp16"
    expect_policy_that_trains
done
expect_speed
end

begin "of the same GPT as it should be every layer may go low"
scan "$folder/gpt.lua" --formats fp16,bf16 --steps 10 --seeds 1
[ -z "$(suffering)" ] || fail "found: $(suffering)"
[ -n "$(policy_of blocks.2.attention)" ] || fail "what attention multiplies is not looked at"
end

begin "of sensitive the convolution is found behind which a norm is written by hand, by every seed"
for seed in $seeds; do
    scan sensitive --formats fp16 --seed "$seed" --set hand=true --set limit=1000 --set batch=32
    [ "$(suffering | tr -d '!')" = conv1 ] || fail "seed $seed: found: $(suffering)"
    [ "$(policy_of conv1)" = fp32 ] || fail "seed $seed: conv1 is not left in fp32"
    expect_policy_that_trains
done
expect_speed
end

begin "of sensitive the batch norm is found whose statistics fp16 does not hold, and bf16 does"
length='' # nothing is trained
scan sensitive --formats fp16,bf16 --quick --set limit=1000 --set batch=32
suffering | grep -qx 'norm1!' || fail "found: $(suffering)"
[ "$(policy_of norm1)" != fp16 ] || fail "norm1 is to be in fp16"
scan sensitive --formats bf16 --quick --set limit=1000 --set batch=32
! grep -q '"breaks":true' "$folder/pieces" || fail "bf16 breaks something"
end

exit "$failures"
