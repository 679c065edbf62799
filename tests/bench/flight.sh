#!/bin/sh
# shellcheck disable=SC1091,SC2154 # what measure.sh sets
# flight.sh: what share of a training's processor time the flight recorder takes, by `perf`: its ring
# (src/run/run_flight.c), and looking at what every operation gives (src/ops/lookout.c). Both are
# part of one run, so that what else the machine does hits all alike.
#
# MPBENCH           the program          (build/mpbench)
# BENCH_SECONDS     of each run          (4)
# BENCH_WORKLOADS   see workloads/; or an experiment that ships   (a c gpt)
# BENCH_PRECISIONS                       (fp32 fp16)
#
# A line each workload and precision. Bar: the ring takes less than 1 % of a step. Exit status 1:
# something could not be measured; a bar that is not met is no failure.
set -u
. "$(dirname "$0")/measure.sh"

share() { # FUNCTIONS: of all samples, in percent; without what computes what a step is
    perf report -i "$folder/samples" --stdio --sort symbol 2>/dev/null |
        awk -v wanted="^($1)([.].*)?\$" '$1 ~ /%$/ && $3 ~ wanted { sum += $1 } END { print sum + 0 }'
}

for workload in ${BENCH_WORKLOADS:-a c gpt}; do
    script=$here/workloads/$workload.lua
    [ -e "$script" ] || script=$workload
    for precision in ${BENCH_PRECISIONS:-fp32 fp16}; do
        find_steps "$mpbench" "$script" "${BENCH_SECONDS:-4}" --precision "$precision" --no-history
        if [ -z "$many" ] || ! perf record -q -e cpu-clock -F 2000 -o "$folder/samples" "$mpbench" run "$script" \
            --threads 1 --set "steps=$many" --quiet --precision "$precision" --no-history >/dev/null 2>"$folder/errors"; then
            echo "$workload in $precision: not measured: $(tail -n 1 "$folder/errors")"
            failed=1
            continue
        fi
        ring=$(share 'run_note_flight|keep_step|keep_weight|run_fly|add_gradients|run_flight_at|find_gradient')
        looks=$(share 'lookout_.*|keep_largest|cpu_largest|largest_task|largest_of.*')
        awk -v what="$workload $precision" -v ring="$ring" -v looks="$looks" 'BEGIN {
            printf "%-9s the ring takes %.2f %% of a step (bar 1 %%: %s), looking at what operations give %.2f %%\n",
                what, ring, ring < 1 ? "met" : "not met", looks }'
    done
done
exit "$failed"
