#!/bin/sh
# telemetry_bench.sh: what recording a run costs: steps a second with the history and without it, in
# turns, medians, and the bar.
#
# MPBENCH         the program             (build/mpbench)
# BENCH_SECONDS   timed, each measurement (3)
# BENCH_ROUNDS    of each                 (5)
#
# Exit status 1: something could not be measured; a bar that is not met is no failure.
set -u
mpbench=${MPBENCH:-build/mpbench}
seconds=${BENCH_SECONDS:-3}
rounds=${BENCH_ROUNDS:-5}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
trap 'exit 130' INT TERM
export MPBENCH_DB="$folder/history.db"
failed=0

# steps_per_second EXPERIMENT STEPS [OPTION ...]
steps_per_second() {
    experiment=$1 steps=$2
    shift 2
    "$mpbench" run "$experiment" --precision bf16 --set "steps=$steps" --quiet --json "$@" \
        2>"$folder/errors" | sed -n 's/.*"steps_per_s":\([0-9.e+]*\).*/\1/p'
}

# The shipped experiments, made to go on for so many steps.
cat >"$folder/cnn.lua" <<'LUA'
local mp = require "mp"
local nn, F = mp.nn, mp.fn
return mp.experiment {
    name = "cnn", params = { steps = 100, batch = 64 },
    run = function(run)
        local net = run:model(nn.Sequential {
            nn.Conv2d(1, 32, 3), nn.ReLU(), nn.Conv2d(32, 64, 3), nn.ReLU(), nn.MaxPool2d(2),
            nn.Flatten(), nn.Linear(9216, 128), nn.ReLU(), nn.Linear(128, 10) })
        local opt = mp.optim.Adam(net:parameters(), { lr = 1e-3 })
        local scaler = run:scaler()
        local x, y = mp.randn(run.params.batch, 28, 28, 1), mp.randint(10, run.params.batch)
        for _ = 1, run.params.steps do
            opt:zero_grad()
            local loss = mp.autocast(function() return F.cross_entropy(net(x), y) end)
            scaler:scale(loss):backward()
            scaler:step(opt)
            scaler:update()
            run:log { loss = loss }
        end
    end,
}
LUA

# measure NAME EXPERIMENT BAR
measure() {
    rate=$(steps_per_second "$2" 50 --no-history)
    [ -n "$rate" ] && rate=$(steps_per_second "$2" "$(awk -v r="$rate" 'BEGIN { print int(r / 2) + 5 }')" --no-history)
    if [ -z "$rate" ]; then
        echo "telemetry_bench: $1 could not be measured: $(sed -n 1p "$folder/errors")" >&2
        failed=1
        return
    fi
    steps=$(awk -v r="$rate" -v s="$seconds" 'BEGIN { print int(r * s) + 5 }')
    : >"$folder/rates"
    round=0
    while [ "$round" -lt "$rounds" ]; do
        round=$((round + 1))
        echo "without $(steps_per_second "$2" "$steps" --no-history)" >>"$folder/rates"
        echo "with $(steps_per_second "$2" "$steps")" >>"$folder/rates"
    done
    sort -k1,1 -k2,2g "$folder/rates" | awk -v name="$1" -v bar="$3" '
        { rate[$1, ++count[$1]] = $2 }
        function median(of,    n) {
            n = count[of]
            return n % 2 ? rate[of, (n + 1) / 2] : (rate[of, n / 2] + rate[of, n / 2 + 1]) / 2
        }
        END {
            with = median("with"); without = median("without")
            if (with == 0 || without == 0) { print name ": could not be measured"; exit 1 }
            cost = 100 * (1 - with / without)
            printf "%-12s %10.1f steps/s without, %10.1f with: recording costs %.1f %% (bar %s %%, %s)\n",
                name, without, with, cost, bar, cost <= bar ? "met" : "not met"
        }' || failed=1
}

measure simple simple 5
measure cnn "$folder/cnn.lua" 2
exit "$failed"
