#!/bin/sh
# telemetry_bench.sh: what recording a run costs against --no-history, in pairs, by two clocks.
#
# The clock on the wall is what a user waits for, but whatever else the machine does shakes it more
# than telemetry weighs: the median of many short pairs stands beside the interval that holds it 19
# times of 20, and a bar within that interval is neither met nor missed. The processor's time, on
# one thread, counts every cycle that recording takes on whichever thread, and is steadier: what it
# adds is the most that a machine without an idle core would lose. It is that of a long run less
# that of a short one, so that what a run costs once (opening, the checkpoint at its end) falls out.
#
# MPBENCH         the program                (build/mpbench)
# BENCH_SECONDS   timed, each long run       (1.5)
# BENCH_ROUNDS    pairs                      (12)
#
# Exit status 1: something could not be measured; a bar that is not met is no failure.
set -u
mpbench=${MPBENCH:-build/mpbench}
seconds=${BENCH_SECONDS:-1.5}
rounds=${BENCH_ROUNDS:-12}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
trap 'exit 130' INT TERM
export MPBENCH_DB="$folder/history.db"
failed=0

# The processor's time of all that this script has run goes to $spent, in seconds.
look_at_spent() {
    times >"$folder/times" # of this very shell: in a pipe it would be another's
    spent=$(awk 'NR == 2 { gsub(/[ms]/, " "); print $1 * 60 + $2 + $3 * 60 + $4 }' "$folder/times")
}

# train EXPERIMENT STEPS [OPTION ...]: sets $rate (steps a second) and $work (seconds of processor).
train() {
    experiment=$1 steps=$2
    shift 2
    look_at_spent
    before=$spent
    "$mpbench" run "$experiment" --precision bf16 --threads 1 --set "steps=$steps" --quiet --json \
        "$@" >"$folder/json" 2>"$folder/errors"
    look_at_spent
    rate=$(sed -n 's/.*"steps_per_s":\([0-9.e+]*\).*/\1/p' "$folder/json")
    work=$(awk -v a="$before" -v b="$spent" 'BEGIN { print b - a }')
}

# measure_side EXPERIMENT STEPS [OPTION ...]: "steps_per_s seconds_of_processor_a_step" in $side.
measure_side() {
    subject=$1 long=$2 short=$(($2 / 4))
    shift 2
    train "$subject" "$short" "$@"
    fixed=$work
    train "$subject" "$long" "$@"
    side=$(awk -v r="$rate" -v l="$work" -v s="$fixed" -v n="$((long - short))" \
        'BEGIN { print r, (l - s) / n }')
}

# fashion_cnn's network, made to go on for so many steps on data that need no reading.
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

# report NAME CLOCK BAR <COSTS: a line for each pair, in percent. The interval is that of the
# median's ranks: of n values sorted, between n/2 -+ 0.98 sqrt(n).
report() {
    sort -g | awk -v name="$1" -v clock="$2" -v bar="$3" '
        { cost[++count] = $1 }
        END {
            if (count == 0) { print name ": could not be measured"; exit 1 }
            half = int((count + 1) / 2)
            median = count % 2 ? cost[half] : (cost[half] + cost[half + 1]) / 2
            low = int(count / 2 - 0.98 * sqrt(count)); if (low < 1) low = 1
            high = count + 1 - low
            verdict = cost[high] <= bar ? "met" : cost[low] > bar ? "not met" : \
                (median <= bar ? "met by the median, " : "missed by the median, ") "the noise hides it"
            printf "%-8s %-10s recording costs %5.1f %%, surely between %.1f and %.1f, %d pairs (bar %s %%: %s)\n",
                name, clock, median, cost[low], cost[high], count, bar, verdict
        }' || failed=1
}

# measure NAME EXPERIMENT BAR
measure() {
    train "$2" 50 --no-history
    [ -n "$rate" ] && train "$2" "$(awk -v r="$rate" 'BEGIN { print int(r / 2) + 5 }')" --no-history
    if [ -z "$rate" ]; then
        echo "telemetry_bench: $1 could not be measured: $(sed -n 1p "$folder/errors")" >&2
        failed=1
        return
    fi
    many=$(awk -v r="$rate" -v s="$seconds" 'BEGIN { print int(r * s) + 8 }')
    : >"$folder/pairs"
    round=0
    # Each pair in the other order than the one before: what else the machine does drifts.
    while [ "$round" -lt "$rounds" ]; do
        round=$((round + 1))
        if [ $((round % 2)) -eq 1 ]; then
            measure_side "$2" "$many" --no-history
            without=$side
            measure_side "$2" "$many"
            with=$side
        else
            measure_side "$2" "$many"
            with=$side
            measure_side "$2" "$many" --no-history
            without=$side
        fi
        echo "$without $with" >>"$folder/pairs"
    done
    awk '$1 > 0 && $3 > 0 { print 100 * (1 - $3 / $1) }' "$folder/pairs" | report "$1" wall "$3"
    awk '$2 > 0 && $4 > 0 { print 100 * ($4 / $2 - 1) }' "$folder/pairs" | report "$1" processor "$3"
}

measure simple simple 5
measure cnn "$folder/cnn.lua" 2
exit "$failed"
