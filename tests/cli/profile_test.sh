#!/bin/sh
# shellcheck disable=SC1091,SC2034,SC2154 # what shell.sh sets and reads
# Where the time of steps goes: `mpbench profile`, of an experiment and of a run of the history.
. "$(dirname "$0")/../shell.sh"

cat >"$folder/two.lua" <<'LUA'
local mp = require "mp"
local nn, F = mp.nn, mp.fn
return mp.experiment { name = "two", params = { steps = 1000, rows = 256, late = 0 }, run = function(run)
    local p = run.params
    local net = run:model(nn.Sequential { nn.Linear(256, 512):named "wide", nn.ReLU(),
        nn.Linear(512, 10):named "head" })
    local opt = mp.optim.SGD(net:parameters(), { lr = 1e-3 })
    local scaler = run:scaler()
    for step = 1, p.steps do
        local x, y = mp.randn(p.rows, 256), mp.randint(10, p.rows)
        if p.late > 0 and step % p.late == 0 then for _ = 1, 1e7 do end end
        opt:zero_grad()
        local loss = mp.autocast(function() return F.cross_entropy(net(x), y) end)
        scaler:scale(loss):backward()
        scaler:step(opt)
        scaler:update()
        run:log { loss = loss }
    end
end }
LUA

# The numbers of a key of the JSON, in order.
numbers() { # KEY
    sed 's/[],{}[]/\n/g' "$folder/out" | sed -n "s/^ *\"$1\": *\([-+0-9.e]*\) *\$/\1/p"
}

begin "the parts of a step and what lies between them are the whole step"
run profile "$folder/two.lua" --no-history -d cpu -p bf16 --threads 1 --steps 20 --json --quiet
expect_status 0
expect_out '"steps": *2[0-9]' # steps taken for late that turn out to be usual come on top
for part in '"layer": *"wide", *"operation": *"linear", *"direction": *"forward", *"format": *"bf16"' \
    '"layer": *"wide", *"operation": *"matmul", *"direction": *"backward"' \
    '"layer": *"head", *"operation": *"linear", *"direction": *"forward"' \
    '"layer": *"wide", *"operation": *"cast", *"direction": *"forward", *"format": *"fp32", *"gives": *"bf16"' \
    '"layer": *null, *"operation": *"update of weights", *"direction": *"step"' \
    '"operation": *"cross_entropy_backward", *"direction": *"backward"'; do
    expect_out "$part"
done
wrong=$(numbers seconds | awk -v step="$(numbers step_seconds)" -v rest="$(numbers between_seconds)" -v casts=1 '
    { all[NR] = $1; if ($1 < 0) wrong = "a part takes less than nothing" }
    END {
        for (i = 1; i < NR; i++) sum += all[i] # the last is of casts, which are parts already
        if (rest < 0) wrong = "less than nothing lies between"
        if (sum + rest < 0.999999 * step || sum + rest > 1.000001 * step) wrong = sum + rest " is not " step
        if (sum < 0.5 * step) wrong = "most of a step lies between its operations: " sum " of " step
        print wrong
    }')
[ -z "$wrong" ] || fail "$wrong"
end

begin "a step that is profiled takes what it takes unprofiled"
# The quickest of each, in turn, until they agree: what else the machine does holds up one or the other.
plain=0 step=$(numbers step_seconds) wrong=never
for _ in 1 2 3 4 5 6 7 8; do
    run run "$folder/two.lua" -d cpu -p bf16 --threads 1 --steps 40 --json --quiet --no-history
    plain=$(echo "$plain $(value_of steps_per_s)" | awk '{ print ($1 > $2 ? $1 : $2) }')
    wrong=$(awk -v plain="$plain" -v step="$step" 'BEGIN {
        if (!(step * plain <= 3 && step * plain >= 0.33)) print 1 / plain " s a step, profiled " step }')
    [ -n "$wrong" ] || break
    run profile "$folder/two.lua" --no-history -d cpu -p bf16 --threads 1 --steps 20 --json --quiet
    step=$(echo "$step $(numbers step_seconds)" | awk '{ print ($1 < $2 ? $1 : $2) }')
done
[ -z "$wrong" ] || fail "$wrong"
end

begin "a step that something else held up is left out and told, steps that often take longer are not"
run profile "$folder/two.lua" --no-history -d cpu -p bf16 --threads 1 --set rows=32 --set late=15 --steps 20 --json --quiet
expect_status 0
[ "$(value_of steps_left_out)" -ge 1 ] || fail "no step is left out: $(value_of steps_left_out)"
expect_out '"others_busy":'
run profile "$folder/two.lua" --no-history -d cpu -p bf16 --threads 1 --set rows=32 --set late=15 --steps 20
expect_out '^Means of steps but for [0-9]* that took over 3 times the median'
run profile "$folder/two.lua" --no-history -d cpu -p bf16 --threads 1 --set rows=32 --set late=3 --steps 30 --json --quiet
expect_status 0
[ "$(value_of steps_left_out)" = 0 ] || fail "usual steps are left out: $(value_of steps_left_out)"
end

begin "rows are by layer and operation, or by either, the longest first, as many as are asked for"
run profile "$folder/two.lua" --no-history -d cpu -p bf16 --threads 1 --steps 5 --quiet
expect_status 0
expect_out 'layer  *operation  *way  *in  *calls  *ms a step  *share  *of limit'
expect_out '^wide  *linear  *forward  *bf16 '
expect_out '^between operations / Lua '
expect_out '^a step .* 100.0 %'
expect_out '^Casts: [0-9.]* a step, which read and write '
expect_out '^The limit, measured just now on this device: large products in bf16, [0-9.]* GFLOP/s'
expect_out '^- '
run profile "$folder/two.lua" --no-history -d cpu -p bf16 --threads 1 --steps 5 --quiet --by layer --top 3
expect_status 0
expect_out '^[0-9]* others '
expect_no_out '^wide .*linear'
[ "$(sed -n '/^layer/,/others/p' "$folder/out" | wc -l)" -eq 5 ] || fail "not three rows"
run profile "$folder/two.lua" --by axis
expect_status 2
expect_err 'one of part layer operation'
end

begin "a norm is told to compute in what its weights and sums are in"
cat >"$folder/norm.lua" <<'LUA'
local mp = require "mp" local nn, F = mp.nn, mp.fn
return mp.experiment { name = "norm", run = function(run)
    local net = run:model(nn.Sequential { nn.Linear(8, 8):named "fc", nn.BatchNorm(8):named "bn", nn.Linear(8, 4) })
    local opt, scaler, x = mp.optim.SGD(net:parameters(), { lr = 0.01 }), run:scaler(), mp.randn(16, 8)
    for _ = 1, 12 do
        opt:zero_grad()
        local loss = mp.autocast(function() return net(x):square():mean() end)
        scaler:scale(loss):backward()
        scaler:step(opt)
        scaler:update()
    end
end }
LUA
run profile "$folder/norm.lua" --no-history -d cpu -p fp16 --threads 1 --quiet
expect_out '^bn  *batch_norm  *forward  *fp32 '
expect_out '^bn  *batch_norm_backward  *backward  *fp32 '
run profile "$folder/norm.lua" --no-history -d cpu -p fp16 --threads 1 --quiet --by layer
expect_out '^bn  *- .* fp32 '
run run "$folder/norm.lua" --dry-run -d cpu -p fp16
expect_out '^bn  *16  *fp32$'
end

begin "a recipe that nothing heeds is told of"
run profile "$folder/two.lua" --no-history -d cpu -p fp16 --threads 1 --steps 5 --recipe fp8=current
expect_status 0
expect_err '^--recipe fp8=current: nothing heeds fp8 so far: it is for layers in fp8'
run profile "$folder/two.lua" --no-history -d cpu -p fp16 --threads 1 --steps 5 --recipe fp8=current --quiet
expect_status 0
expect_silent err
end

begin "what scaled formats round is a part of its layer, told in the layer's format"
run profile "$folder/two.lua" --no-history -d cpu -p fp8 --threads 1 --steps 5 --quiet
expect_status 0
expect_out '^wide  *scale_factor  *forward '
expect_out '^wide  *linear  *forward  *fp8 '
end

begin "of a run it is what the history holds, by layer"
run run "$folder/two.lua" -d cpu -p bf16 --threads 1 --set steps=150 --name kept --quiet
expect_status 0
run profile kept
expect_status 0
expect_out '^1 kept in bf16 on cpu, 1 thread: the time of some of 14[0-9] steps'
expect_out '^wide '
expect_out '^outside of all layers '
expect_out 'mpbench profile EXPERIMENT'
run profile @last --json
expect_status 0
expect_out '"run": *"kept"'
expect_out '"layer": *"wide", *"operation": *null, *"direction": *null, *"format": *"bf16"'
end

begin "a run counts the rounding of factors among its casts, as a profile does"
run run "$folder/two.lua" -d cpu -p mxfp8 --threads 1 --set steps=150 --name scaled --quiet --db "$folder/scaled.db"
expect_status 0
run profile scaled --json --db "$folder/scaled.db"
share=$(numbers share | tail -n 1)
echo "$share" | awk '{ exit !($1 > 0.02) }' || fail "casts take $share of a step"
end

begin "a profile is kept as a run, which prints it again without training"
run profile "$folder/two.lua" -d cpu -p bf16 --threads 1 --steps 5
expect_status 0
expect_err '^kept as run 2, which is @last now: '
sed -n '/^layer/,/^a step/p' "$folder/out" >"$folder/first"
run profile 2
expect_status 0
expect_out '^2 two-2 in bf16 on cpu, 1 thread: the time of 5 steps'
expect_out '^The limit, measured then on this device: large products in bf16'
sed -n '/^layer/,/^a step/p' "$folder/out" | diff "$folder/first" - >&2 || fail "it is not what was printed first"
run profile 2 --by operation --json
expect_out '"id": *2'
expect_out '"operation": *"linear", *"direction": *"forward"'
end

begin "a profile that is compared, which keeps no curve, leaves the losses of others what they are"
loss_of() { # RUN
    sed -n "s/^[^ ].* run $1  *\([-0-9.]*\) .*/\1/p" "$folder/out"
}
run run "$folder/two.lua" -d cpu -p fp32 --threads 1 --steps 40 --quiet
run run "$folder/two.lua" -d cpu -p fp16 --threads 1 --steps 40 --quiet
run compare 3 4
alone=$(loss_of 3)
run compare 3 4 2
[ "$(loss_of 3)" = "$alone" ] || fail "$(loss_of 3) beside a profile, $alone alone"
[ "$(loss_of 2)" = - ] || fail "the last loss of a profile, $(loss_of 2), stands beside means"
expect_out "^Not all of these runs have a curve of loss: two-2 lacks it"
end

begin "what measures the device's limits takes is no memory of the run that is kept"
run show 2 --json
profiled=$(value_of activations)
run run "$folder/two.lua" -d cpu -p bf16 --threads 1 --steps 5 --json --quiet --no-history
plain=$(value_of activations)
awk "BEGIN { exit !($plain > 0 && $profiled <= 2 * $plain) }" || fail "activations take $profiled bytes, unprofiled $plain"
end

begin "what cannot be profiled says so in one line"
run profile "$folder/two.lua" --no-history -d cpu --set steps=2 --quiet
expect_status 1
expect_err 'ended after 2 steps, before one could be profiled'
run profile nosuch
expect_status 2
expect_err 'nosuch: no such experiment or file'
run profile 77
expect_status 2
run profile "$folder/two.lua" --checkpoint-every 5
expect_status 2
expect_err 'profile: has no option --checkpoint-every'
[ "$("$mpbench" ls --json | grep -o '"id"' | wc -l)" -eq 4 ] || fail "what was not profiled is kept"
end

exit "$failures"
