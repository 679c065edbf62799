#!/bin/sh
# shellcheck disable=SC1091,SC2154,SC2317 # what measure.sh sets and calls
# paired.sh OTHER_MPBENCH: whole training steps of this build beside those of another one, of an
# older commit say, in pairs that take turns: what a machine is busy with besides hits both alike.
#
# MPBENCH           this build's program           (build/mpbench)
# BENCH_SECONDS     of each long run               (1)
# BENCH_ROUNDS      pairs                          (9)
# BENCH_WORKLOADS   of a b c d e f, see workloads/ (a b c e)
# BENCH_PRECISIONS  of fp32 bf16 fp16              (fp32 bf16 fp16)
#
# A line each workload, precision and clock: how long this build takes, the other being 1, and what
# that surely lies between (measure.sh has the clocks). One thread, without a history. Exit status
# 1: something could not be measured; one that is slower is no failure.
set -u
. "$(dirname "$0")/measure.sh"
other=${1:?paired.sh OTHER_MPBENCH: the program of another build}

# report WORKLOAD PRECISION CLOCK <RATIOS
report() {
    middle | awk -v what="$1 $2" -v clock="$3" '{
        verdict = $4 < 6 ? "" : $2 > 1 ? ": slower" : $3 < 1 ? ": faster" : "" # few prove nothing
        printf "%-7s %-10s %.3f of the other'\''s time, surely %.3f to %.3f, %d pairs%s\n",
            what, clock, $1, $2, $3, $4, verdict
    }'
}

own() { measure_side "$mpbench" "$script" "$many" --precision "$precision" --no-history; }
others() { measure_side "$other" "$script" "$many" --precision "$precision" --no-history; }

# pair WORKLOAD PRECISION
pair() {
    script=$here/workloads/$1.lua
    find_steps "$mpbench" "$script" "${BENCH_SECONDS:-1}" --precision "$2" --no-history
    if [ -z "$many" ]; then
        echo "paired: $1 in $2 could not be measured: $(sed -n 1p "$folder/errors")" >&2
        failed=1
        return
    fi
    precision=$2
    in_turns "${BENCH_ROUNDS:-9}" own others
    awk '$1 > 0 && $3 > 0 { print $3 / $1 }' "$folder/pairs" | report "$1" "$2" wall
    awk '$2 > 0 && $4 > 0 { print $2 / $4 }' "$folder/pairs" | report "$1" "$2" processor
}

for workload in ${BENCH_WORKLOADS:-a b c e}; do
    for precision in ${BENCH_PRECISIONS:-fp32 bf16 fp16}; do
        pair "$workload" "$precision"
    done
done
exit "$failed"
