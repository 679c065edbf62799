#!/bin/sh
# telemetry_bench.sh: what recording a run costs: steps a second with the history and without it, in
# pairs, the median of their ratios, and the bar.
#
# MPBENCH         the program             (build/mpbench)
# BENCH_SECONDS   timed, each measurement (3)
# BENCH_ROUNDS    pairs                   (8)
#
# Exit status 1: something could not be measured; a bar that is not met is no failure.
set -u
mpbench=${MPBENCH:-build/mpbench}
seconds=${BENCH_SECONDS:-3}
rounds=${BENCH_ROUNDS:-8}
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
    # Pairs, each in the other order than the one before: what else the machine does drifts.
    while [ "$round" -lt "$rounds" ]; do
        round=$((round + 1))
        if [ $((round % 2)) -eq 1 ]; then
            without=$(steps_per_second "$2" "$steps" --no-history)
            with=$(steps_per_second "$2" "$steps")
        else
            with=$(steps_per_second "$2" "$steps")
            without=$(steps_per_second "$2" "$steps" --no-history)
        fi
        echo "$without $with" >>"$folder/rates"
    done
    awk '$1 > 0 && $2 > 0 { printf "%.6f %s %s\n", $2 / $1, $1, $2 }' "$folder/rates" |
        sort -g | awk -v name="$1" -v bar="$3" '
        { ratio[++count] = $1; without += $2; with += $3 }
        END {
            if (count == 0) { print name ": could not be measured"; exit 1 }
            half = int((count + 1) / 2)
            median = count % 2 ? ratio[half] : (ratio[half] + ratio[half + 1]) / 2
            cost = 100 * (1 - median)
            printf "%-12s %10.1f steps/s without, %10.1f with: recording costs %.1f %%, from %.1f to %.1f in %d pairs (bar %s %%, %s)\n",
                name, without / count, with / count, cost, 100 * (1 - ratio[count]),
                100 * (1 - ratio[1]), count, bar, cost <= bar ? "met" : "not met"
        }' || failed=1
}

measure simple simple 5
measure cnn "$folder/cnn.lua" 2
exit "$failed"
