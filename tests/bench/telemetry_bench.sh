#!/bin/sh
# shellcheck disable=SC1091,SC2154,SC2317 # what measure.sh sets and calls
# telemetry_bench.sh: what recording a run costs against --no-history, in pairs, by two clocks.
#
# The clock on the wall is what a user waits for, but whatever else the machine does shakes it more
# than telemetry weighs: the median of many short pairs stands beside the interval that holds it 19
# times of 20, and a bar within that interval is neither met nor missed. The processor's time (see
# measure.sh) is steadier: what recording adds to it is the most that a machine without an idle core
# would lose.
#
# MPBENCH         the program                (build/mpbench)
# BENCH_SECONDS   timed, each long run       (1.5)
# BENCH_ROUNDS    pairs                      (8)
#
# Exit status 1: something could not be measured; a bar that is not met is no failure.
set -u
. "$(dirname "$0")/measure.sh"
seconds=${BENCH_SECONDS:-1.5}
rounds=${BENCH_ROUNDS:-8}
export MPBENCH_DB="$folder/history.db"

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

# report NAME CLOCK BAR <COSTS: a line for each pair, in percent.
report() {
    middle | awk -v name="$1" -v clock="$2" -v bar="$3" '
        {
            verdict = $3 <= bar ? "met" : $2 > bar ? "not met" : \
                ($1 <= bar ? "met by the median, " : "missed by the median, ") "the noise hides it"
            printf "%-8s %-10s recording costs %5.1f %%, surely between %.1f and %.1f, %d pairs (bar %s %%: %s)\n",
                name, clock, $1, $2, $3, $4, bar, verdict
        }
        END { if (NR == 0) { print name ": could not be measured"; exit 1 } }' || failed=1
}

without() { measure_side "$mpbench" "$trains" "$many" --precision bf16 --no-history; }
with() { measure_side "$mpbench" "$trains" "$many" --precision bf16; }

# measure NAME EXPERIMENT BAR
measure() {
    find_steps "$mpbench" "$2" "$seconds" --precision bf16 --no-history
    if [ -z "$many" ]; then
        echo "telemetry_bench: $1 could not be measured: $(sed -n 1p "$folder/errors")" >&2
        failed=1
        return
    fi
    trains=$2
    in_turns "$rounds" without with
    awk '$1 > 0 && $3 > 0 { print 100 * (1 - $3 / $1) }' "$folder/pairs" | report "$1" wall "$3"
    awk '$2 > 0 && $4 > 0 { print 100 * ($4 / $2 - 1) }' "$folder/pairs" | report "$1" processor "$3"
}

measure simple simple 5
measure cnn "$folder/cnn.lua" 2
exit "$failed"
