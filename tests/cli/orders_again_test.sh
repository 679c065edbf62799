#!/bin/sh
# shellcheck disable=SC1091,SC2154 # what shell.sh sets and reads
# What was set while a run went on is set again, after the same steps, where those are trained again:
# to fork from a step behind it, and to go on with a run that was killed.
. "$(dirname "$0")/../shell.sh"

use_loop
cat >"$folder/ordered.lua" <<'LUA'
local mp = require "mp"
local nn, F = mp.nn, mp.fn
return mp.experiment { name = "ordered", params = { steps = 3000 }, run = function(run)
    local net = run:model(nn.Sequential { nn.Linear(32, 64), nn.Tanh(), nn.Linear(64, 10):named "head" })
    local opt = mp.optim.SGD(net:parameters(), { lr = 0.05 })
    local x, y = mp.randn(32, 32), mp.randint(10, 32)
    require "loop" (run, opt, run.params.steps, function() return (F.cross_entropy(net(x), y)) end)
end }
LUA

train() { # NAME OPTION..: in the background
    named=$1
    shift
    "$mpbench" run "$folder/ordered.lua" -d cpu -p fp16 --threads 1 --quiet --name "$named" "$@" \
        >/dev/null 2>"$folder/background" &
    worker=$!
    workers="$workers $worker"
}
set_all_three() { # NAME: pauses it for that
    wait_until 20 "$mpbench" ctl "$1" pause >/dev/null 2>&1 || fail "$1 cannot be paused"
    for setting in layer.head=fp32 lr=0.5 loss_scale=1024; do
        "$mpbench" ctl "$1" set "$setting" >/dev/null || fail "$setting was refused"
    done
}
points_behind() { # RUN STEP: its losses
    "$mpbench" export "$1" --format csv |
        awk -F, -v from="$2" 'NR == 1 { for (i = 1; i <= NF; i++) if ($i == "loss") at = i }
                              NR > 1 && $1 > from { print $1, $at }'
}

begin "a fork from behind an order goes on as the run did"
train ordered
set_all_three ordered
"$mpbench" ctl ordered resume >/dev/null || fail "it does not go on"
wait "$worker"
run fork ordered --at 2900 --name again --quiet
expect_status 0
points_behind ordered 2900 >"$folder/first"
points_behind again 2900 >"$folder/second"
[ "$(wc -l <"$folder/first")" -ge 100 ] || fail "$(wc -l <"$folder/first") losses behind step 2900"
cmp -s "$folder/first" "$folder/second" || fail "$(head -n 1 "$folder/first") is $(head -n 1 "$folder/second")"
run show again
expect_out '^head  *fp32  *fp32 '
end

begin "a fork from before it has none of it"
run fork ordered --at 1 --name before --quiet
expect_status 0
run show before
expect_out '^head  *fp16  *auto '
end

begin "a run that was killed behind an order goes on with it"
train killed --set steps=20000 --checkpoint-every 100
# shellcheck disable=SC2317 # wait_until calls it
is_kept() { "$mpbench" show killed 2>/dev/null | grep -q ' checkpoint '; }
wait_until 20 is_kept || fail "no checkpoint was kept"
set_all_three killed
kill -9 "$worker"
wait "$worker" 2>/dev/null
run resume killed --quiet
expect_status 0
run show killed
expect_out '^head  *fp32  *fp32 '
end

exit "$failures"
