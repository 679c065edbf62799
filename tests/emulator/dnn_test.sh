#!/bin/sh
# shellcheck disable=SC1091,SC2034,SC2154 # what shell.sh sets, reads and calls
# Convolutions over an emulated cuDNN (tests/emulator/dnn_plans.c): what it is told of them, and whether
# what it gives is believed. The conformance tests say whether results are right.
. "$(dirname "$0")/../shell.sh"

plugin=$(dirname "$mpbench")/emulator/mpbench-gpu.so
conformance=$(dirname "$mpbench")/tests/conformance/conformance_test
if [ ! -e "$plugin" ]; then
    echo "skip convolutions_over_emulated_cudnn: $plugin is not built, for lack of cuda.h or of a C++ compiler"
    exit 0
fi
export MPBENCH_GPU="$plugin" MPBENCH_TEST_DEVICE=gpu

# The operations after $1, all of which must be right over a cuDNN that is $1. Sets runs and plans.
over() {
    dnn=$1
    shift
    MPBENCH_EMULATOR="dnn=$dnn,report=1" "$conformance" "$@" >"$folder/out" 2>"$folder/err" ||
        fail "$(grep -m 1 -E '^not ok' "$folder/out" || tail -n 1 "$folder/err")"
    grep -q '^ok .* gpu$' "$folder/out" || fail "nothing ran on the card"
    said=$(grep -m 1 '^emulator: cuDNN ran' "$folder/err") || fail "cuDNN was not asked"
    runs=$(echo "$said" | sed 's/.* ran \([0-9]*\) times.*/\1/')
    plans=$(echo "$said" | sed 's/.* by \([0-9]*\) plans.*/\1/')
}

each_plan_ran_once() {
    if [ "${plans:-0}" -lt 20 ] || [ "$runs" -ne "$plans" ]; then fail "$said"; fi
}

begin every_convolution_is_told_as_it_is
over right conv2d conv2d_backward_input conv2d_backward_weight conv_transpose2d
[ "${runs:-0}" -gt $((2 * ${plans:-0})) ] || fail "right results are not believed: $said"
end

begin a_wrong_first_result_is_the_last
over wrong conv2d_backward_weight
each_plan_ran_once
end

begin a_plan_that_fails_is_not_run_again
over unlucky conv2d_backward_input
each_plan_ran_once
end

exit "$failures"
