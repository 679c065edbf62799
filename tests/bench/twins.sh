#!/bin/sh
# shellcheck disable=SC1091,SC2154,SC2317 # what measure.sh sets and calls
# twins.sh: what a pair in lock step costs beside one run alone, in pairs that take turns: two
# trainings are two, and the rest is sampling, comparing and waiting. The bar is 2.2.
#
# MPBENCH           the program          (build/mpbench)
# BENCH_SECONDS     of each long run     (1)
# BENCH_ROUNDS      pairs                (9)
# BENCH_WORKLOADS   see workloads/       (a b c)
#
# A line each workload and clock. The processor's time is that of both processes; on the wall both
# have one thread each, so that on two idle processors a pair takes as long as one. Exit status 1:
# something could not be measured; a bar that is not met is no failure.
set -u
. "$(dirname "$0")/measure.sh"

report() { # WORKLOAD CLOCK <RATIOS
    middle | awk -v what="$1" -v clock="$2" '{
        printf "%-3s %-10s a pair takes %.3f of one run, surely %.2f to %.2f, %d pairs%s\n",
            what, clock, $1, $2, $3, $4, clock != "processor" ? "" : $1 <= 2.2 ? " (bar 2.2: met)" : " (bar 2.2: not met)"
    }'
}
both() { measure_side "$mpbench" "$script" "$many" --precision fp16 --twin fp32 --no-history; }
# The run alone, in the one precision and the other: half of that is one.
alone() {
    measure_side "$mpbench" "$script" "$many" --precision fp16 --no-history
    half=$side
    measure_side "$mpbench" "$script" "$many" --precision fp32 --no-history
    side=$(echo "$half $side" | awk '{ print 2 / (1 / $1 + 1 / $3), ($2 + $4) / 2 }')
}

for workload in ${BENCH_WORKLOADS:-a b c}; do
    script=$here/workloads/$workload.lua
    find_steps "$mpbench" "$script" "${BENCH_SECONDS:-1}" --precision fp32 --no-history
    if [ -z "$many" ]; then
        echo "$workload: not measured: $(tail -n 1 "$folder/errors")"
        failed=1
        continue
    fi
    in_turns "${BENCH_ROUNDS:-9}" both alone
    awk '{ print $3 / $1 }' "$folder/pairs" | report "$workload" wall
    awk '{ print $2 / $4 }' "$folder/pairs" | report "$workload" processor
done
exit "$failed"
