#!/bin/sh
# shellcheck disable=SC1091,SC2034,SC2154,SC2317 # what shell.sh sets and reads; by its name
# Formats whose numbers share scales, as people meet them: runs and layers in them, recipes, forks and
# resumes to the bit, and what they make of a block of numbers.
. "$(dirname "$0")/../shell.sh"

loss_at() { # RUN STEP
    "$mpbench" export "$1" --format jsonl | grep "\"step\":$2," | grep -o '"loss":[^,}]*'
}
losses_of() { # RUN FROM TO: of the steps behind the one, as far as the other, each after its number
    "$mpbench" export "$1" --format csv 2>/dev/null | awk -F, -v from="$2" -v to="$3" '
        NR == 1 { for (i = 1; i <= NF; i++) { if ($i == "step") step = i; if ($i == "loss") loss = i } next }
        $step > from && $step <= to { print $step, $loss }'
}
trained_on() { # DEVICE: the formats that it trains in, from the table
    "$mpbench" doctor --json | tr -d '[:space:]' | grep -o "{\"name\":\"$1\".*" |
        grep -o '"trains":\[[^]]*\]' | head -n 1 | cut -d: -f2 | tr -d '[]"' | tr ',' ' '
}
passed() { # RUN STEP: whether it has come so far
    steps=$(says "$1" steps)
    [ "${steps:-0}" -gt "$2" ]
}

use_loop
cat >"$folder/small.lua" <<'LUA'
local mp = require "mp"
local nn, F = mp.nn, mp.fn
return mp.experiment { name = "small", params = { steps = 60, formats = "" }, run = function(run)
    local p, formats = run.params, {}
    for format in p.formats:gmatch "%S+" do formats[#formats + 1] = format end
    local net = run:model(nn.Sequential { nn.Conv2d(4, 24, 3, { padding = 1 }):named "conv", nn.ReLU(),
        nn.Flatten(), nn.Linear(24 * 16, 40):named "hidden", nn.ReLU(), nn.Linear(40, 4):named "head" })
    local opt = mp.optim.Adam(net:parameters(), { lr = 1e-3 })
    local w = mp.randn(4, 4, 4, 4)
    local function draw(step) -- four steps in each format, the first of them two before a multiple of four
        if #formats > 0 and step % 4 == 3 then
            net:find("h*"):precision(formats[(step // 4) % #formats + 1])
        end
        local y = mp.randint(4, 16)
        return F.embedding(y, w:reshape(4, 64)):reshape(16, 4, 4, 4) + mp.randn(16, 4, 4, 4), y
    end
    require "loop" (run, opt, p.steps, function(x, y) return (F.cross_entropy(net(x), y)) end, draw)
end }
LUA

# Where a number lies halfway between two elements its last bit decides: eight steps part by 5e-4 in
# nvfp4 at most, and by 1e-7 in the others.
begin "every scaled format trains, as itself and on both devices alike"
formats=$("$mpbench" formats --block 1 --json | grep -o '"format": *"[a-z0-9_]*"' | cut -d'"' -f4)
[ "$(echo "$formats" | wc -l)" -ge 8 ] || fail "no list of formats: $formats"
for format in $formats; do
    for device in ref cpu; do
        run run "$folder/small.lua" -p "$format" -d $device --name "$format-$device" --set steps=8 \
            --threads 1 --quiet --json
        expect_status 0
        expect_out "\"precision\": *\"$format\""
        expect_out "\"status\": *\"finished\""
        losses_of "$format-$device" 0 8 >"$folder/$device.losses"
    done
    apart=$(paste -d ' ' "$folder/ref.losses" "$folder/cpu.losses" | awk '
        { d = $2 > $4 ? $2 - $4 : $4 - $2; if (!(d <= most)) most = d } END { print NR == 8 ? most + 0 : 9 }')
    awk "BEGIN { exit !($apart <= 0.002) }" || fail "$format: losses of cpu are $apart off those of ref"
    [ -z "${MPBENCH_TEST_VERBOSE:-}" ] || echo "# $format: $apart"
done
end

rows_of() { # RUN FROM TO: all that is known of the steps behind the one, as far as the other
    points_of "$1" | awk -v from="$2" -v to="$3" '$1 > from && $1 <= to'
}

# Each run leaves a checkpoint behind the second of four steps in a format and ends two steps later. It
# is resumed from there, and what is forked there goes on to the end of the next.
every_format_goes_on() { # DEVICE FORMATS
    count=$(echo "$2" | wc -w)
    settings="--threads 1 -p bf16 -d $1 --checkpoint-every 4 --set steps=$((4 * count + 6)) --quiet"
    recipe=history=4,rounding=random,hadamard=on
    # shellcheck disable=SC2086 # words
    run run "$folder/small.lua" $settings --set "formats=$2" --recipe $recipe --name "whole-$1"
    expect_status 0
    # shellcheck disable=SC2086 # words
    run run "$folder/small.lua" $settings --set "formats=$2" --recipe $recipe --steps 6 --name "$1-4"
    expect_status 0
    # shellcheck disable=SC2086 # words
    run run "$folder/small.lua" $settings --recipe $recipe --name "plain-$1"
    rows_of "plain-$1" 0 99 >"$folder/plain"
    rows_of "whole-$1" 0 99 | cmp -s - "$folder/plain" && fail "no layer was set to another format"
    at=4
    for format in $2; do
        run resume "$1-$at" --at $at --quiet
        expect_status 0
        rows_of "$1-$at" $at $((at + 2)) >"$folder/resumed"
        run fork "$1-$at" --at $at --steps $((at + 6)) --name "$1-$((at + 4))" --quiet
        expect_status 0
        rows_of "$1-$((at + 4))" $at $((at + 6)) >"$folder/forked"
        rows_of "whole-$1" $at $((at + 6)) >"$folder/whole"
        [ "$(wc -l <"$folder/whole")" -eq 6 ] || fail "$format: the whole run lacks steps"
        cmp -s "$folder/whole" "$folder/forked" || fail "forked in $format it came otherwise"
        head -n 2 "$folder/whole" | cmp -s - "$folder/resumed" || fail "resumed in $format it came otherwise"
        at=$((at + 4))
    done
}

begin "a fork and a resume in every format end as the run that was never interrupted"
formats=$(trained_on cpu)
[ "$(echo "$formats" | wc -w)" -ge 11 ] || fail "no list of formats: $formats"
every_format_goes_on cpu "$formats"
every_format_goes_on ref "fp32 tf32"
end

begin "a run in fp8 forks and resumes with the scales that it had"
run run "$folder/small.lua" --name scales --threads 1 -p fp8 --checkpoint-every 25 \
    --recipe history=8 --quiet
expect_status 0
last=$(says scales last)
run fork scales --at 33 --quiet --name scaled
expect_status 0
[ "$(says scaled last)" = "$last" ] || fail "the fork: $(says scaled last), not $last"
run run "$folder/small.lua" --name chance --threads 1 -p mxfp4 --recipe rounding=random \
    --checkpoint-every 20 --quiet
run fork chance --at 31 --quiet --name chosen
[ "$(says chosen last)" = "$(says chance last)" ] || fail "what is left to chance came otherwise"
run run "$folder/small.lua" --name other --threads 1 -p fp8 --recipe fp8=current --quiet
[ "$(says other last)" != "$last" ] || fail "the recipe made no difference"
end

cat >"$folder/normed.lua" <<'LUA'
local mp = require "mp"
local nn, F = mp.nn, mp.fn
return mp.experiment { name = "normed", params = { steps = 60, times = 0.97, lr = 1e-4 }, run = function(run)
    local norm = nn.LayerNorm(64):named "norm"
    local net = run:model(nn.Sequential { nn.Linear(16, 64), norm, nn.Linear(64, 4):named "head" })
    norm.weight:copy(norm.weight * run.params.times)
    local opt, scaler = mp.optim.Adam(net:parameters(), { lr = run.params.lr }), run:scaler()
    for _ = 1, run.params.steps do
        local x, y = mp.randn(8, 16), mp.randint(4, 8)
        opt:zero_grad()
        local loss = mp.autocast(function() return F.cross_entropy(net(x), y) end)
        scaler:scale(loss):backward()
        scaler:step(opt)
        scaler:update()
        run:log { loss = loss }
    end
end }
LUA

begin "a weight that saturates below 1 is not told as 1"
run run "$folder/normed.lua" --no-history --threads 1 -p mxfp8 --recipe norms=scaled,scales=floor \
    --set times=0.99999 --set lr=1e-9 --quiet --json
expect_status 0
expect_out 'and 0.99999 is taken for 0.875'
end

begin "a fork changes one key of its parent's recipe, and leaves the others"
run run "$folder/normed.lua" --name clamped --threads 1 -p mxfp8 --recipe norms=scaled \
    --recipe scales=floor --checkpoint-every 20 --quiet --json
expect_status 0
expect_out '"kind":"saturated","layer":"norm"'
expect_out '100 % of norm.weight saturate in mxfp8, and 0.97[0-9]* is taken for 0.875:.*--layer norm=bf16'
run fork clamped --at 31 --recipe scales=up --name held --quiet --json
expect_status 0
expect_no_out '"kind":"saturated"'
run fork clamped --at 31 --layer norm=bf16 --name bare --quiet --json
expect_no_out '"kind":"saturated"'
[ "$(says held last)" != "$(says clamped last)" ] || fail "the fork's recipe made no difference"
run compare clamped held bare
expect_out "^recipe.scales  *floor  *up  *floor"
end

begin "an order changes a key of the recipe, and what goes on from there has it, to the bit"
"$mpbench" run "$folder/normed.lua" --name live --threads 1 -p mxfp8 \
    --recipe norms=scaled,scales=floor --set steps=100000000 --quiet >"$folder/live" 2>&1 &
worker=$!
wait_until 10 is_running live 1
run ctl live set recipe.scales=up
expect_status 0
expect_out "the recipe has scales=up from step [0-9]* on"
run ctl live set recipe.scales=sideways
expect_status 2
expect_err "up or floor"
run ctl live set recipe.history=8
expect_status 2
expect_err "settled when a run begins"
run ctl live checkpoint
at=$(grep -o 'step [0-9]*' "$folder/out" | grep -o '[0-9]*')
wait_until 10 passed live $((at + 40))
run ctl live stop
wait "$worker"
run show live
expect_out "^  recipe norms=scaled$"
run fork live --at "$at" --name after --steps $((at + 40)) --quiet
expect_status 0
run show after
expect_out "^  recipe norms=scaled$"
[ "$(loss_at live $((at + 40)))" = "$(loss_at after $((at + 40)))" ] || fail "the fork parts from its parent"
end

begin "what a recipe does not know is refused by name"
run run "$folder/small.lua" -p fp8 --recipe fp8=soon
expect_error 2 "fp8=soon: delayed or current or blocks"
run run "$folder/small.lua" -p fp8 --recipe fp7=current
expect_error 2 "--recipe: fp7: not known; did you mean fp8?"
run run "$folder/small.lua" -p fp8 --recipe fp8=current,fp8=blocks
expect_error 2 "--recipe: fp8 is there twice"
run run "$folder/small.lua" -p fp16 --loss-scale dynamik
expect_error 2 "--loss-scale: dynamik: not known; did you mean dynamic?"
run help recipes
expect_out "rounding=nearest|random"
end

cat >"$folder/passing.lua" <<'LUA'
local mp = require "mp"
local nn = mp.nn
return mp.experiment { name = "passing", run = function(run)
    local net = run:model(nn.Sequential { nn.Flatten(), nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 4) })
    local opt, scaler = mp.optim.SGD(net:parameters(), { lr = 0.1 }), run:scaler()
    for _ = 1, 3 do
        opt:zero_grad()
        local loss = mp.autocast(function()
            return mp.fn.cross_entropy(net(mp.randn(16, 4, 8)), mp.randint(4, 16))
        end)
        scaler:scale(loss):backward()
        scaler:step(opt)
        scaler:update()
        run:log { loss = loss }
    end
end }
LUA

begin "a layer that multiplies nothing is said to be in what it is given, not in blocks"
for last in mxfp4 bf16; do
    run run "$folder/passing.lua" -p mxfp4 --layer linear2=$last --dry-run
    expect_status 0
    expect_out "^flatten1 .* bf16\$"
    expect_out "^linear1 .* mxfp4\$"
    expect_out "^relu1 .* bf16\$"
    expect_out "^linear2 .* $last\$"
done
run run "$folder/passing.lua" -p mxfp4 --quiet --name passing
run show passing --json
expect_out '{"name":"relu1","precision":"bf16"}'
end

begin "a recipe that no layer heeds says so, once training began"
run run "$folder/small.lua" -p bf16 --recipe rounding=random --set steps=3 --no-history
expect_status 0
expect_err "--recipe rounding=random: nothing heeds rounding so far: it is for layers in a scaled"
run run "$folder/small.lua" -p bf16 --layer head=mxfp8 --recipe rounding=random --set steps=3 --no-history
expect_status 0
! grep -q heeds "$folder/err" || fail "a layer heeds it"
# No norm: none of its weights can be rounded.
run run "$folder/small.lua" -p mxfp8 --recipe norms=scaled --set steps=3 --no-history
expect_status 0
expect_err "--recipe norms=scaled: nothing heeds norms so far: it is for layers in a scaled format that are layer or group"
run run "$folder/normed.lua" -p mxfp8 --recipe norms=scaled --set steps=3 --no-history
expect_status 0
! grep -q heeds "$folder/err" || fail "a norm heeds it"
end

begin "a matrix says once what none of its runs heeds"
told() { # OPTION..: how often
    run matrix "$folder/small.lua" --set steps=3 "$@"
    expect_status 0
    told=$(grep -c '^--recipe rounding=random: nothing heeds rounding so far: it is for layers in a scaled' "$folder/err")
}
told -p bf16,fp16 --recipe rounding=random
[ "$told" = 1 ] || fail "told $told times"
told -p bf16,fp16 --recipe rounding=random --list
[ "$told" = 1 ] || fail "told $told times of what is there"
told -p bf16,mxfp8 --recipe rounding=random
[ "$told" = 0 ] || fail "one of its runs heeds it"
end

cat >"$folder/outlier.lua" <<'LUA'
local mp = require "mp"
local nn = mp.nn
return mp.experiment { name = "outlier", params = { steps = 3 }, run = function(run)
    local net = run:model(nn.Sequential { nn.Linear(32, 1, { bias = false }):named "head" })
    local opt = mp.optim.SGD(net:parameters(), { lr = 1e-9 })
    local rows = {}
    for i = 1, 32 do -- an outlier among numbers that its block's scale of 1 has no room for
        rows[i] = { 448 }
        for k = 2, 32 do rows[i][k] = 2^-12 end
    end
    local x, scaler = mp.tensor(rows), run:scaler()
    for _ = 1, run.params.steps do
        opt:zero_grad()
        local loss = mp.autocast(function() return net(x):mean() end)
        scaler:scale(loss):backward()
        scaler:step(opt)
        scaler:update()
        run:log { loss = loss }
    end
end }
LUA

# On the way forward 31 of 32 numbers vanish beside the outlier. On the way back blocks lie across
# the rows, where all numbers are alike, and none does: 31 of 64.
begin "what layers multiply is counted at the scales of their own format"
run run "$folder/outlier.lua" -p mxfp8 --name outlier --threads 1 --quiet --json
expect_status 0
run show outlier --what-if=head --json
expect_out '"role": *"activation", *"precision": *"mxfp8", *"step": *2, *"count": *2048, *"flushed": *0.484375,'
expect_out '"role": *"gradient"'
run show outlier
expect_out '^head  *mxfp8  *auto  *48.44 %'
expect_out 'at those scales'
run show outlier --what-if=head
expect_out 'activations: 48.44 % flushed, 0 saturated'
run run "$folder/small.lua" -p nvfp4 --threads 1 --quiet --json
counted=$(grep -o '"loss": *{[^}]*}' "$folder/out")
run run "$folder/small.lua" -p nvfp4 --threads 1 --no-history --quiet --json # nothing is
[ "$(grep -o '"loss": *{[^}]*}' "$folder/out")" = "${counted:-none}" ] ||
    fail "counting changes what is computed"
run run "$folder/outlier.lua" -p bf16 --name plain --threads 1 --quiet
run show plain --what-if=head --json
expect_out '"factors": *\[\]'
end

begin "formats shows a block of numbers"
run formats --block 1 inf
expect_status 0
expect_out '^What is not finite goes into a product as it is'
run formats --block 448 1 0.3
expect_no_out 'not finite'
expect_status 0
expect_out "mxfp8"
expect_out "^scale"
run formats --block 3 2688 --json
expect_status 0
expect_out '"format": *"nvfp4"'
run formats --block
expect_error 2 "from 1 to 128 numbers"
run formats --block 1 two
expect_error 2 "two"
end

exit "$failures"
