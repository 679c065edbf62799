#!/bin/sh
# shellcheck disable=SC1091,SC2034,SC2154 # what shell.sh sets and reads
# A model that is one bare layer: it has a name, and every command knows it as a layer like any other.
. "$(dirname "$0")/../shell.sh"

cat >"$folder/bare.lua" <<'LUA'
local mp = require "mp"
return mp.experiment {
    name = "bare",
    params = { lr = 0.05, named = false },
    data = function()
        return { train = mp.data.tensors { x = mp.randn(64, 8), y = mp.randint(4, 64), batch = 16 } }
    end,
    model = function(p)
        local layer = mp.nn.Linear(8, 4)
        return p.named and layer:named "only" or layer
    end,
    loss = function(model, b) return mp.fn.cross_entropy(model(b.x), b.y) end,
    optim = function(params, p) return mp.optim.SGD(params, { lr = p.lr }) end,
}
LUA
# Beside the layers below it, the model itself holds something that trains.
cat >"$folder/both.lua" <<'LUA'
local mp = require "mp"
local Both = mp.nn.class "Both"
function Both:init() self.shift, self.head = mp.nn.Parameter(mp.zeros(8)), mp.nn.Linear(8, 4) end
function Both:forward(x) return self.head(x + self.shift) end
return mp.experiment { name = "both", params = { whole = "" }, run = function(run)
    local net = run:model(Both())
    if run.params.whole ~= "" then net:precision(run.params.whole) end
    local opt, scaler = mp.optim.SGD(net:parameters(), { lr = 0.1 }), run:scaler()
    for _ = 1, 4 do
        opt:zero_grad()
        local loss = mp.autocast(function() return mp.fn.cross_entropy(net(mp.randn(16, 8)), mp.randint(4, 16)) end)
        scaler:scale(loss):backward()
        scaler:step(opt)
        scaler:update()
        run:log { loss = loss }
    end
end }
LUA

begin "a bare layer can be set, by its name and by a pattern"
for pattern in linear1 '*'; do
    run run "$folder/bare.lua" -d cpu -p fp16 --quiet --layer "$pattern=bf16" --json
    expect_status 0
    expect_out '"layers":\[{"name":"linear1","precision":"bf16"}\]'
done
run run "$folder/bare.lua" -d cpu -p fp16 --quiet --layer linar1=bf16
expect_error 2 "no layer of the model has such a name; did you mean linear1?"
run run "$folder/bare.lua" -d cpu -p fp16 --quiet --set named=true --layer only=bf16 --json
expect_out '"layers":\[{"name":"only","precision":"bf16"}\]'
end

begin "\`--dry-run\`, \`show\` and \`--what-if\` list a bare layer"
run run "$folder/bare.lua" -d cpu -p fp16 --dry-run
expect_status 0
expect_out "^linear1 *36  fp16\$"
[ ! -s "$folder/err" ] || fail "besides, it says: $(head -n 1 "$folder/err")"
run run "$folder/bare.lua" -d cpu -p fp16 --quiet --checkpoint-every 2
expect_status 0
run show @last
expect_out "^linear1 *fp16 "
run show @last --what-if
expect_status 0
expect_out "^linear1 "
end

begin "its parameters keep the names that checkpoints know them by, and \`export\` sets its format"
run export @last --format safetensors -p fp8 --layer linear1=bf16 -o "$folder/w.safetensors"
expect_status 0
grep -aq '"weight":{"dtype":"BF16","shape":\[4,8\]' "$folder/w.safetensors" || fail "no weight in bf16"
run resume @last --at 2 --quiet
expect_status 0
end

begin "twins name a bare layer, and \`scan\` tries it"
run run "$folder/bare.lua" -d cpu -p fp16 --twin fp32 --quiet
expect_status 0
expect_out "the gradients of linear1,"
run scan "$folder/bare.lua" -d cpu --steps 4 --formats fp32,bf16 --quiet
expect_status 0
expect_out "^linear1 "
end

begin "what a model holds beside its layers is one too, behind them"
run run "$folder/both.lua" -d cpu -p fp16 --quiet --layer both1=bf16 --json
expect_status 0
expect_out '"layers":\[{"name":"head","precision":"fp16"},{"name":"both1","precision":"bf16"}\]'
run show @last
expect_out "^both1 "
end

begin "the precision of a whole model holds for all of it, where the run knows it already, too"
run run "$folder/both.lua" -d cpu -p fp16 --quiet --set whole=bf16 --json
expect_status 0
expect_out '"layers":\[{"name":"head","precision":"bf16"},{"name":"both1","precision":"bf16"}\]'
end

begin "\`export\` writes what a model holds beside its layers in the format of its own"
sed 's/mp.nn.Parameter(mp.zeros(8))/mp.nn.Parameter(mp.zeros(16, 8))/; s/self.head(x + /self.head(F.relu(x) + /; s/^local mp = .*/&\nlocal F = mp.fn/' \
    "$folder/both.lua" >"$folder/wide.lua"
run run "$folder/wide.lua" -d cpu -p fp16 --quiet --checkpoint-every 4
expect_status 0
run export @last --format safetensors -p fp16 --layer both1=fp32 -o "$folder/wide.safetensors"
expect_status 0
grep -aq '"shift":{"dtype":"F32"' "$folder/wide.safetensors" || fail "what was to be fp32 is not"
grep -aq '"head.weight":{"dtype":"F16"' "$folder/wide.safetensors" || fail "head is not in fp16"
end

begin "what has a precision of its own keeps it, and so does another model"
run run "$folder/both.lua" -d cpu -p fp16 --quiet --set whole=bf16 --layer head=fp32 --json
expect_out '"layers":\[{"name":"head","precision":"fp32"},{"name":"both1","precision":"bf16"}\]'
sed -e 's/local net = .*/local net, other = run:model(Both()), run:model(mp.nn.Linear(8, 4), "other"); net:find("head"):precision "fp32"/' \
    -e 's/then net:precision(run.params.whole)/then net:precision "fp8" net:precision(run.params.whole)/' \
    "$folder/both.lua" >"$folder/two.lua"
run run "$folder/two.lua" -d cpu -p fp16 --quiet --set whole=bf16 --json
expect_status 0
expect_out '"layers":\[{"name":"head","precision":"fp32"},{"name":"both1","precision":"bf16"},{"name":"other","precision":"fp16"}\]'
end
exit "$failures"
