#!/bin/sh
# shellcheck disable=SC1091,SC2154,SC2317 # what measure.sh sets and calls
# formats.sh: whole training steps in formats whose numbers share scales, beside the same in bf16, in
# pairs that take turns. Factors are rounded to them on the way to products of bf16, and that is to
# cost no more than 0.3 of a step.
#
# MPBENCH           the program                     (build/mpbench)
# BENCH_SECONDS     of each long run                (2)
# BENCH_ROUNDS      pairs                           (5)
# BENCH_WORKLOADS   of a to f, see workloads/, or experiments (c gpt)
# BENCH_PRECISIONS  the formats; with :KEY=VALUE,.. behind one, its recipe (fp8 mxfp8 nvfp4 mxfp4)
#
# A line each workload and format: its processor's time a step, bf16's being 1, and what that surely
# lies between (measure.sh). One thread, without a history. Exit status 1: something could not be
# measured; a bar that is not met is no failure.
set -u
. "$(dirname "$0")/measure.sh"

other() { measure_side "$mpbench" "$script" "$many" --precision "$format" --no-history ${recipe:+--recipe "$recipe"}; }
plain() { measure_side "$mpbench" "$script" "$many" --precision bf16 --no-history; }

# measure WORKLOAD FORMAT[:RECIPE]
measure() {
    script=$1
    [ -f "$here/workloads/$1.lua" ] && script=$here/workloads/$1.lua
    format=${2%%:*} recipe=
    [ "$format" = "$2" ] || recipe=${2#*:}
    find_steps "$mpbench" "$script" "${BENCH_SECONDS:-2}" --precision bf16 --no-history
    : >"$folder/pairs"
    [ -z "$many" ] || in_turns "${BENCH_ROUNDS:-5}" other plain
    if ! awk '$2 > 0 && $4 > 0 { print $2 / $4; found = 1 } END { exit !found }' "$folder/pairs" \
        >"$folder/ratios"; then
        echo "formats: $1 in $2 could not be measured: $(sed -n 1p "$folder/errors")" >&2
        failed=1
        return
    fi
    middle <"$folder/ratios" | awk -v what="$1 $2" '{
        printf "%-14s %.3f of the time in bf16, surely %.2f to %.2f, %d pairs: <= 1.3 %s\n",
            what, $1, $2, $3, $4, $1 <= 1.3 ? "met" : "not met"
    }'
}

for workload in ${BENCH_WORKLOADS:-c gpt}; do
    for precision in ${BENCH_PRECISIONS:-fp8 mxfp8 nvfp4 mxfp4}; do
        measure "$workload" "$precision"
    done
done
exit "$failed"
