#!/bin/sh
# shellcheck disable=SC1091,SC2034,SC2154 # what shell.sh sets and reads
# Where the time of steps goes: `mpbench profile`, of an experiment and of a run of the history.
. "$(dirname "$0")/../shell.sh"

cat >"$folder/two.lua" <<'LUA'
local mp = require "mp"
local nn, F = mp.nn, mp.fn
return mp.experiment { name = "two", params = { steps = 1000, rows = 256 }, run = function(run)
    local p = run.params
    local net = run:model(nn.Sequential { nn.Linear(256, 512):named "wide", nn.ReLU(),
        nn.Linear(512, 10):named "head" })
    local opt = mp.optim.SGD(net:parameters(), { lr = 1e-3 })
    local scaler = run:scaler()
    for _ = 1, p.steps do
        local x, y = mp.randn(p.rows, 256), mp.randint(10, p.rows)
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
run profile "$folder/two.lua" -d cpu -p bf16 --threads 1 --steps 20 --json --quiet
expect_status 0
expect_out '"steps": *20'
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
plain=$("$mpbench" run "$folder/two.lua" -d cpu -p bf16 --threads 1 --steps 40 --json --quiet --no-history |
    sed -n 's/.*"steps_per_s": *\([0-9.]*\).*/\1/p')
wrong=$(awk -v plain="$plain" -v step="$(numbers step_seconds)" 'BEGIN {
    if (step * plain > 3 || step * plain < 0.33) print 1 / plain " s a step, profiled " step }')
[ -z "$wrong" ] || fail "$wrong"
end

begin "rows are by layer and operation, or by either, the longest first, as many as are asked for"
run profile "$folder/two.lua" -d cpu -p bf16 --threads 1 --steps 5 --quiet
expect_status 0
expect_out 'layer  *operation  *way  *in  *calls  *ms a step  *share  *of limit'
expect_out '^wide  *linear  *forward  *bf16 '
expect_out '^between operations / Lua '
expect_out '^a step .* 100.0 %'
expect_out '^Casts: [0-9.]* a step, which read and write '
expect_out '^The limit, measured just now on this device: large products in bf16, [0-9.]* GFLOP/s'
expect_out '^- '
run profile "$folder/two.lua" -d cpu -p bf16 --threads 1 --steps 5 --quiet --by layer --top 3
expect_status 0
expect_out '^[0-9]* others '
expect_no_out '^wide .*linear'
[ "$(sed -n '/^layer/,/others/p' "$folder/out" | wc -l)" -eq 5 ] || fail "not three rows"
run profile "$folder/two.lua" --by axis
expect_status 2
expect_err 'one of part layer operation'
end

begin "what scaled formats round is a part of its layer, told in the layer's format"
run profile "$folder/two.lua" -d cpu -p fp8 --threads 1 --steps 5 --quiet
expect_status 0
expect_out '^wide  *scale_factor  *forward '
expect_out '^wide  *linear  *forward  *fp8 '
end

begin "of a run it is what the history holds, by layer"
run run "$folder/two.lua" -d cpu -p bf16 --threads 1 --set steps=150 --name kept --quiet
expect_status 0
run profile kept
expect_status 0
expect_out '^1 kept in bf16 on cpu, 1 thread: the time of 14[0-9] steps'
expect_out '^wide '
expect_out '^outside of all layers '
expect_out 'mpbench profile EXPERIMENT'
run profile @last --json
expect_status 0
expect_out '"run": *"kept"'
expect_out '"layer": *"wide", *"operation": *null, *"direction": *null, *"format": *"bf16"'
end

begin "what cannot be profiled says so in one line"
run profile "$folder/two.lua" -d cpu --set steps=2 --quiet
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
[ "$("$mpbench" ls --json | grep -c '"id"')" = 1 ] || fail "a profile is in the history"
end

exit "$failures"
