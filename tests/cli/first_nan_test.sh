#!/bin/sh
# shellcheck disable=SC1091,SC2034,SC2086,SC2154 # what shell.sh sets and reads; words
# The first number that is not finite is named: a fault is put into a known tensor of a known layer
# at a known step, and the page of the flight recorder is held against it. MPBENCH_SOAK: 100 of them.
. "$(dirname "$0")/../shell.sh"

. "$(dirname "$0")/first_nan.sh"
device=${FIRST_NAN_DEVICE:--d cpu --threads 1} # options; tests/emulator has another

begin "a run that is well has no page, and says so"
run run "$folder/inject.lua" $device --quiet --name well -p fp16
run show well --first-nan
expect_status 0
expect_out "Nothing was not finite in the 7 steps of this run."
run show well --first-nan --json
expect_out '"found":false'
end

begin "what is injected is what is named: overflows forward and back, data, divisions, functions, weights"
for seed in $(seq 1 "$seeds"); do
    for kind in $faults; do
        injected "$kind" "$seed" -p fp16
    done
done
end

begin "a running statistic that is more than fp16 holds is named, though the loss stays finite"
use_loop
cat >"$folder/norm.lua" <<'LUA'
local mp = require "mp"
local nn, F = mp.nn, mp.fn
return mp.experiment { name = "norm", params = { loud = 4000 }, run = function(run)
    local net = run:model(nn.Sequential { nn.Conv2d(1, 4, 3):named "conv", nn.BatchNorm(4):named "bn",
        nn.Flatten(), nn.Linear(4 * 36, 3):named "head" })
    local opt = mp.optim.SGD(net:parameters(), { lr = 0.01 })
    require "loop" (run, opt, 5, function()
        return (F.cross_entropy(net(mp.rand(4, 8, 8, 1) * run.params.loud), mp.randint(3, 4)))
    end)
end }
LUA
for options in "-p fp16" "-p bf16 --keep-fp32 losses" "-p fp16 --keep-fp32 losses --set loud=1" \
    "-p fp16 --keep-fp32 losses --layer bn=bf16"; do
    run run "$folder/norm.lua" $device --quiet $options
    expect_no_out 'running_variance'
    run show @last --first-nan
    expect_out 'Nothing was not finite '
done
run run "$folder/norm.lua" $device --quiet -p fp16 --keep-fp32 losses
expect_out 'running_variance of bn is more than fp16 holds after step [1-5], and stays inf'
"$mpbench" show @last --first-nan --json >"$folder/page"
[ "$(value way) $(value layer) $(value tensor) $(value format)" = "forward bn running_variance fp16" ] ||
    fail "told: $(value sentence)"

run show @last --first-nan
expect_out 'in the buffer running_variance in bn, in fp16, which keeps it'
expect_out '--layer bn=bf16$'
end

# Large products tell by themselves how large their results are.
begin "the line that a run ends with names the tensor that the page names"
for case in "forward 4" "forward 2048" "backward 4"; do
    kind=${case% *}
    cat >"$folder/ends.lua" <<'LUA'
local mp = require "mp"
local nn, F = mp.nn, mp.fn
local odd = mp.custom { name = "odd", forward = function(_, x) return x * 1 end,
    backward = function(_, g) return g / (g - g) end }
return mp.experiment { name = "ends", params = { kind = "forward", rows = 4 }, run = function(run)
    local first, head = run:model(nn.Linear(8, 8), "first"), run:model(nn.Linear(8, 3), "head")
    local opt, scaler = mp.optim.SGD({ first.weight, head.weight }, { lr = 0.01 }), run:scaler()
    if run.params.kind == "forward" then first.weight:copy(mp.ones(8, 8)) end
    local loud = run.params.kind == "forward" and 3e4 or 1
    for _ = 1, 60 do
        opt:zero_grad()
        local loss = mp.autocast(function()
            local rows = run.params.rows
            local x = first(mp.ones(rows, 8) * loud)
            return F.cross_entropy(head(run.params.kind == "forward" and x or odd(x)), mp.randint(3, rows))
        end)
        scaler:scale(loss):backward()
        scaler:step(opt)
        scaler:update()
        run:log { loss = loss }
    end
end }
LUA
    run run "$folder/ends.lua" $device --quiet -p fp16 --set kind=$kind --set rows=${case#* }
    expect_status 1
    cp "$folder/err" "$folder/line"
    "$mpbench" show @last --first-nan --json >"$folder/page"
    grep -q '20 steps in a row were skipped' "$folder/line" || fail "$(cat "$folder/line")"
    [ "$kind" = backward ] || [ "$(value layer)" = first ] || fail "told: $(value sentence)"
    for word in "not finite: $(value tensor)" "$(value layer)" "$(value remedy)"; do
        grep -q -F -e "$word" "$folder/line" || fail "$word: $(cat "$folder/line")"
    done
done
end

# After a step that was applied in between, too, and in whichever format the layer is whose gradient
# is skipped.
begin "the line that a run ends with names what was told of an earlier step, where it is that again"
use_loop
cat >"$folder/again.lua" <<'LUA'
local mp = require "mp"
local nn, F = mp.nn, mp.fn
return mp.experiment { name = "again", run = function(run)
    local first, head = run:model(nn.Linear(8, 8), "first"), run:model(nn.Linear(8, 3), "head")
    local opt = mp.optim.SGD({ first.weight, head.weight }, { lr = 0.01 })
    require "loop" (run, opt, 60, function(step)
        local loud = (step == 5 or step > 6) and 6e4 or 1
        return F.cross_entropy(head(first(mp.ones(4, 8)) * loud * loud), mp.randint(3, 4))
    end)
end }
LUA
for options in "" "--layer head=bf16"; do
    run run "$folder/again.lua" $device --quiet -p fp16 $options
    expect_status 1
    cp "$folder/err" "$folder/line"
    "$mpbench" show @last --first-nan --json >"$folder/page"
    grep -q '20 steps in a row were skipped' "$folder/line" || fail "$(cat "$folder/line")"
    for word in "not finite: $(value tensor)" "$(value remedy)"; do
        grep -q -F -e "$word" "$folder/line" || fail "$word: $(cat "$folder/line")"
    done
    ! grep -q '\(set that layer to\|range\)' "$folder/line" || fail "$(cat "$folder/line")"
done
end

begin "a running statistic that was not finite, or ceases to be, is told of as one, and not by inner names"
cat >"$folder/kept.lua" <<'LUA'
local mp = require "mp"
local nn, F = mp.nn, mp.fn
return mp.experiment { name = "kept", params = { kind = "buffer" }, run = function(run)
    local bn = nn.BatchNorm(4):named "bn"
    local net = run:model(nn.Sequential { bn, nn.Linear(4, 3):named "head" })
    local opt, scaler = mp.optim.SGD(net:parameters(), { lr = 0.01 }), run:scaler()
    if run.params.kind == "buffer" then bn.running_mean:copy(mp.zeros(4) / 0) end
    for _ = 1, 4 do
        opt:zero_grad()
        local loss = mp.autocast(function()
            return F.cross_entropy(net(mp.rand(16, 4) * (run.params.kind == "loud" and 1e25 or 1)), mp.randint(3, 16))
        end)
        scaler:scale(loss):backward()
        scaler:step(opt)
        scaler:update()
    end
end }
LUA
run run "$folder/kept.lua" $device --quiet -p fp32
run show @last --first-nan
expect_out 'in the buffer running_mean in bn, in fp32, which keeps it'
expect_out 'remedy  *no batch of a step made it'
expect_no_out 'batch_norm_track'
run run "$folder/kept.lua" $device --quiet -p fp32 --set kind=loud
run show @last --first-nan
expect_out 'in the buffer running_variance in bn, in fp32, which keeps it'
expect_no_out 'batch_norm_track'
end

begin "a nan is no overflow, and what made it is told alike on the page and in the line at the end"
cat >"$folder/mask.lua" <<'LUA'
local mp = require "mp"
local nn, F = mp.nn, mp.fn
return mp.experiment { name = "mask", run = function(run)
    local head = run:model(nn.Linear(8, 3), "head")
    local opt, scaler = mp.optim.SGD(head:parameters(), { lr = 0.01 }), run:scaler()
    for _ = 1, 60 do
        opt:zero_grad()
        local loss = mp.autocast(function()
            local y = head(mp.rand(4, 8))
            local masked = F.where(mp.ones(4, 3):to "uint8", mp.full(-math.huge, 4, 3), y)
            return F.cross_entropy(masked + y, mp.randint(3, 4))
        end)
        scaler:scale(loss):backward()
        scaler:step(opt)
        scaler:update()
    end
end }
LUA
for precision in fp32 fp16; do
    run run "$folder/mask.lua" $device --quiet -p $precision
    expect_status 1
    expect_err 'output of cross_entropy .*: inf - inf or 0 times inf, which no format mends: .*(a mask'
    run show @last --first-nan
    expect_out 'nan at step 1 on the way forward, in the output of cross_entropy'
    expect_out 'remedy  *inf - inf or 0 times inf'
    expect_no_out ' holds, which'
done
end

# Five centres that a network of two layers tells apart.
cat >"$folder/five.lua" <<'LUA'
local mp = require "mp"
local nn, F = mp.nn, mp.fn
return mp.experiment { name = "five", params = { kind = "", lr = 0.02, factor = 1.0, most = 0.0 }, run = function(run)
    local p = run.params
    local Net = nn.class "Net"
    function Net:init() self.a, self.b, self.head = nn.Linear(32, 64), nn.Linear(64, 64), nn.Linear(64, 5) end
    function Net:forward(x)
        local h = F.relu(self.a(x))
        local g = p.kind == "inf" and self.b(h) * 30000 + 40000
        h = F.relu(self.b(h))
        return self.head(g and h + 1 / (g * g + 1) or h)
    end
    local net = run:model(Net())
    local opt = mp.optim.SGD(net:parameters(), { lr = p.lr, momentum = 0.9, max_grad_norm = p.most })
    local centres = mp.randn(5, 32)
    local function loss_of(x, y) return F.cross_entropy(net(x), y) * p.factor end
    require "loop"(run, opt, 60, loss_of, function()
        local y = mp.randint(5, 32)
        return F.embedding(y, centres) + mp.randn(32, 32), y
    end)
end }
LUA
begin "where weights grew, or the loss is far too large, no format is named as the mend"
run run "$folder/five.lua" $device --quiet -p fp16 --set lr=2 --name fast
expect_status 1
run show fast --first-nan
# A device that runs on its own knows the largest of a layer, of which steps were looked at.
expect_out 'remedy  *\(weights have grown, \)\?\([a-z]*.weight\|a weight of [a-z]*\) \(has grown\|most,\) to [0-9.e+]*: a lower learning rate'
expect_out 'command  *mpbench run .*five.lua .*--precision fp16 --set lr=0.02$'
expect_no_out '\(lr=2\|bf16\|--name\)'
run run "$folder/five.lua" $device --quiet -p fp16 --set lr=0.02
expect_status 0
run run "$folder/five.lua" $device --quiet -p fp16 --set factor=1e6
expect_status 1
run show @last --first-nan
expect_out 'remedy  *gradients are past 65504 at a loss scale of 1: an update would be over '
expect_no_out 'bf16'
run run "$folder/five.lua" $device --quiet -p fp16 --set factor=1e6 --set most=1 # no update is so large
expect_status 1
run show @last --first-nan
expect_out 'remedy  *fp16 ends at 65504: this layer in bf16'
expect_no_out 'an update would be'
end

begin "nor is an update called too large that the script clips"
cat >"$folder/clipped.lua" <<'LUA'
local mp = require "mp"
local nn, F = mp.nn, mp.fn
return mp.experiment { name = "clipped", params = { epochs = 2 },
    data = function() return { train = mp.data.tensors { x = mp.randn(320, 32), y = mp.randint(5, 320), batch = 32 } } end,
    model = function() return nn.Sequential { nn.Linear(32, 64):named "first", nn.ReLU(), nn.Linear(64, 5):named "head" } end,
    loss = function(model, b) return F.cross_entropy(model(b.x), b.y) * 1e8 end,
    clip = CLIP, optim = function(params) return mp.optim.SGD(params, { lr = 0.01 }) end }
LUA
for clip in 1 'function(params) mp.optim.clip_value(params, 0.1) end'; do
    sed "s/CLIP/$clip/" "$folder/clipped.lua" >"$folder/clips.lua"
    run run "$folder/clips.lua" $device --quiet -p fp16 --loss-scale 1
    run show @last --first-nan
    expect_out 'remedy  *fp16 ends at 65504: .*in bf16'
    expect_no_out 'an update would be'
done
run run "$folder/clips.lua" $device -p bf16
expect_status 0
expect_out ' 20 applied, 0 skipped'
end

# Each step takes what is wrong 1.56 times as far to the other side, and inputs of 200 make 65504 of
# weights under 100.
cat >"$folder/brisk.lua" <<'LUA'
local mp = require "mp"
local nn, F = mp.nn, mp.fn
return mp.experiment { name = "brisk", params = { lr = 0.04 }, run = function(run)
    local head, x, y = run:model(nn.Linear(8, 1), "head"), mp.full(200, 4, 8), mp.zeros(4, 1)
    local opt = mp.optim.SGD(head:parameters(), { lr = run.params.lr })
    require "loop"(run, opt, 60, function() return F.mse(head(x), y) * 1e-4 end)
end }
LUA
begin "a rate that is too high is named before weights are large"
run run "$folder/brisk.lua" $device --quiet -p fp16 --loss-scale 1
expect_status 1
run show @last --first-nan
expect_out '^inf at step [0-9]* on the way forward, in the output of linear in head'
expect_out 'remedy  *the loss has grown from [0-9.]* to [0-9.e+]*: a lower learning rate'
expect_out 'command  *mpbench run .*brisk.lua .*--set lr=\(0.0004\|4e-0*4\)$'
expect_no_out 'bf16'
run show @last --json
expect_out 'head gives values past 65504.*the loss has grown from .*: lower the learning rate, or keep'
expect_no_out 'use --layer'
run run "$folder/brisk.lua" $device --quiet -p fp16 --loss-scale 1 --set lr=0.0004 --name calm
expect_status 0
run fork calm --at 30 --set lr=0.04 --quiet # what was trained before stays
run show @last --first-nan
expect_out 'remedy  *the loss has grown from [0-9.]* to [0-9.e+]*: a lower learning rate'
expect_out 'command  *mpbench fork [0-9]* --at 30 --set lr=\(0.0004\|4e-0*4\)$'
end

begin "what overflowed on the way forward is named where it comes back as nan"
run run "$folder/five.lua" $device --quiet -p fp16 --set kind=inf
expect_status 1
run show @last --first-nan
expect_out '^inf at step 17 on the way forward, in the output of '
expect_out 'told now that gradients are nan'
end

begin "a fork from a state that was not finite already is sent to its parent, before that"
cat >"$folder/broken.lua" <<'LUA'
local mp = require "mp"
local nn, F = mp.nn, mp.fn
return mp.experiment { name = "broken", run = function(run)
    local head = run:model(nn.Linear(8, 3), "head")
    local opt, scaler = mp.optim.SGD(head:parameters(), { lr = 0.01 }), run:scaler()
    for step = 1, 24 do
        if step == 18 then head.weight:copy(head.weight:detach() / 0) end
        opt:zero_grad()
        local loss = mp.autocast(function() return F.cross_entropy(head(mp.rand(4, 8)), mp.randint(3, 4)) end)
        scaler:scale(loss):backward()
        scaler:step(opt)
        scaler:update()
        run:log { loss = loss }
    end
end }
LUA
run run "$folder/broken.lua" $device --name sick --json -p fp32
parent=$(value_of id)
run fork sick --at 20 -p bf16
had="run $parent, that it was forked from at step 20, had it already: fork before it, .mpbench fork $parent --at 10 --precision bf16."
"$mpbench" show @last --first-nan --json >"$folder/page"
grep -q "\"remedy\": *\"$had" "$folder/page" || fail "told: $(value remedy)"
end

begin "what lies outside of every layer is not taken for a layer"
cat >"$folder/outside.lua" <<'LUA'
local mp = require "mp"
local nn, F = mp.nn, mp.fn
return mp.experiment { name = "outside", run = function(run)
    local net = run:model(nn.Linear(4, 3), "head")
    local opt, scaler = mp.optim.SGD(net:parameters(), { lr = 0.01 }), run:scaler()
    for step = 1, 6 do
        opt:zero_grad()
        local loss = mp.autocast(function()
            return F.cross_entropy(net(mp.rand(4, 4)) * 8 ^ (2 * step), mp.randint(3, 4))
        end)
        scaler:scale(loss):backward()
        scaler:step(opt)
        scaler:update()
    end
end }
LUA
run run "$folder/outside.lua" $device --quiet -p fp16 --loss-scale none
run show @last --first-nan
expect_out 'what led  the largest of what is computed outside of every layer rose from'
expect_out 'the largest magnitudes outside of every layer$'
expect_no_out "layer's"
end

begin "the element of the data is told, and what is sick in fp32 is named there too"
injected data 77 -p fp32
told=$("$mpbench" export data-77 --format jsonl | grep -o 'first [0-9][0-9, ]*' | head -n 1)
[ "$told" = "first $(value first)" ] || fail "$told, and told: $(value first)"
injected divide 78 -p fp32
end

# A file whose last tensor, or one drawn, has a NaN as its last number.
spoiled() { # SEED
    "$mpbench" export well --format safetensors -o "$folder/weights-$1" --quiet 2>/dev/null ||
        "$mpbench" export well --format safetensors -o "$folder/weights-$1"
    header=$(dd if="$folder/weights-$1" bs=1 count=8 2>/dev/null | od -An -tu8 | tr -d ' ')
    dd if="$folder/weights-$1" bs=1 skip=8 count="$header" 2>/dev/null >"$folder/header"
    grep -o '"[^"]*weight": *{[^}]*}' "$folder/header" | awk -v seed="$1" '{ line[NR] = $0 }
        END { print line[seed % NR + 1] }' >"$folder/entry"
    last=$(sed 's/.*"data_offsets": *\[[0-9]*, *\([0-9]*\)\].*/\1/' "$folder/entry")
    printf '\000\000\300\177' | dd of="$folder/weights-$1" bs=1 conv=notrunc \
        seek=$((8 + header + last - 4)) 2>/dev/null
}
begin "a weight file with a nan is named by its tensor, at the first step"
run run "$folder/inject.lua" $device --quiet --name well2 -p fp32
for seed in $(seq 1 "$seeds"); do
    spoiled "$seed"
    run run "$folder/inject.lua" $device --quiet --name "file-$seed" -p fp32 \
        --weights "$folder/weights-$seed"
    "$mpbench" show "file-$seed" --first-nan --json >"$folder/page"
    spoilt=$(grep -o '^"[^"]*"' "$folder/entry" | tr -d '"' | sed 's:.*/::')
    [ "$(value tensor)" = "weight $spoilt" ] || fail "$spoilt, and told: $(value tensor)"
    [ "$(value step)" = 1 ] || fail "told of step $(value step)"
done
end
exit "$failures"
