#!/bin/sh
# shellcheck disable=SC1091,SC2034,SC2154,SC2317 # what shell.sh sets, reads and calls
# Orders and a signal that arrive while captured steps are computed without the script: what is ordered
# holds from the next step on, the steps are captured anew, and what is interrupted can go on.
. "$(dirname "$0")/../shell.sh"

cat >"$folder/long.lua" <<'LUA'
local mp = require "mp"
local nn, F = mp.nn, mp.fn
return mp.experiment { name = "long", params = { steps = 2000000 }, run = function(run)
    local net = run:model(nn.Sequential { nn.Linear(16, 24):named "fc1", nn.ReLU(), nn.Dropout(0.2),
        nn.Linear(24, 4):named "head" })
    local opt, scaler = mp.optim.SGD(net:parameters(), { lr = 0.05 }), run:scaler()
    local x, y = mp.randn(8, 16), mp.randint(4, 8)
    local function step(x, y)
        opt:zero_grad()
        local loss = mp.autocast(function() return F.cross_entropy(net(x), y) end)
        scaler:scale(loss):backward()
        scaler:step(opt)
        scaler:update()
        run:log { loss = loss }
    end
    for _ = 1, run.params.steps do run:step(step, x, y) end
end }
LUA

passed() { # STEP: whether the run has come so far
    steps=$(says long steps)
    [ "${steps:-0}" -gt "$1" ]
}
interrupt() {
    kill -INT "$worker"
    wait "$worker"
    ended=$?
    [ "$ended" -eq 130 ] || fail "SIGINT ends it with status $ended"
}

begin "orders reach captured steps, and SIGINT leaves a run that can go on"
"$mpbench" run "$folder/long.lua" -d cpu -p fp16 --threads 1 --quiet --name long >/dev/null 2>"$folder/background" &
worker=$!
workers=$worker
wait_until 20 passed 100 || fail "it makes no steps: $(cat "$folder/background")"
"$mpbench" ctl long pause >/dev/null || fail "it cannot be paused"
for setting in layer.fc1=fp32 lr=0.1 loss_scale=1024; do
    "$mpbench" ctl long set "$setting" >/dev/null || fail "$setting was refused"
done
paused=$(says long steps)
"$mpbench" ctl long resume >/dev/null || fail "it does not go on"
wait_until 20 passed $((paused + 500)) || fail "it stands still behind step $paused"
interrupt
stopped=$(says long steps)
run show long
expect_out '^fc1  *fp32 '
share=$(awk '$1 == "steps.captured" { print int($2 * 1000) }' "$folder/out")
[ "${share:-0}" -ge 800 ] || fail "${share:-0} of 1000 steps were captured"
end

begin "what was captured behind an order is as if each step were called"
end=$((stopped + 300))
run fork long --at $((paused + 1)) --no-capture --steps "$end" --name called --quiet
expect_status 0
run fork long --at "$stopped" --steps "$end" --name captured --quiet
expect_status 0
for key in last skipped; do
    [ -n "$(says called $key)" ] || fail "no $key"
    [ "$(says captured $key)" = "$(says called $key)" ] || fail "$key: $(says captured $key), not $(says called $key)"
done
end

begin "a run that was interrupted so goes on"
"$mpbench" resume long --quiet >/dev/null 2>"$folder/background" &
worker=$!
workers=$worker
wait_until 20 passed "$stopped" || fail "it does not go on: $(cat "$folder/background")"
interrupt
end
exit "$failures"
