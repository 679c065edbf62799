#!/bin/sh
# shellcheck disable=SC1091,SC2034,SC2154 # what shell.sh sets, reads and calls
# Convolutions and attention over an emulated cuDNN (tests/emulator/dnn_plans.c): what it is told of
# them, and whether what it gives is believed. The conformance tests say whether results are right.
. "$(dirname "$0")/../shell.sh"

conformance=$(dirname "$mpbench")/tests/conformance/conformance_test
use_emulated_card operations_over_emulated_cudnn
export MPBENCH_TEST_DEVICE=gpu

# The operations after $1, as conformance_test.c takes them, all of which must be right over a cuDNN that
# is $1. Sets how many plans there were, how often they ran, and how many were refused.
over() {
    dnn=$1
    shift
    MPBENCH_EMULATOR="dnn=$dnn,report=1" "$conformance" "$@" >"$folder/out" 2>"$folder/err" ||
        fail "$(grep -m 1 -E '^not ok' "$folder/out" || tail -n 1 "$folder/err")"
    grep -q '^ok .* gpu$' "$folder/out" || fail "nothing ran on the card"
    said=$(grep -m 1 '^emulator: cuDNN ran' "$folder/err") || fail "cuDNN was not asked"
    runs=$(echo "$said" | sed 's/.* ran \([0-9]*\) times.*/\1/')
    refused=$(grep -c '^emulator: cuDNN is refused' "$folder/err")
    plans=$(echo "$said" | sed 's/.* by \([0-9]*\) plans.*/\1/')
}

each_is_believed() {
    if [ "${plans:-0}" -lt 10 ] || [ "$runs" -le "$plans" ] || [ "$refused" -ne 0 ]; then
        fail "$said; $(grep -m 1 'is refused' "$folder/err") and $refused in all"
    fi
}
# $1: how often each plan was tried, by so many engines.
none_is_believed() {
    if [ "${plans:-0}" -lt 10 ] || [ "$runs" -ne "$((plans * $1))" ] ||
        [ "$refused" -ne "$((plans * $1))" ]; then
        fail "$said; $refused were refused"
    fi
}

begin every_convolution_is_told_as_it_is
over right conv2d conv2d_backward_weight
each_is_believed
end

begin every_attention_is_told_as_it_is
over right attention attention_backward
each_is_believed
end

begin a_wrong_first_result_is_the_last
over wrong conv2d_backward_weight:fp16
none_is_believed 2
end

begin what_is_wrong_but_for_zeros_is_not_believed
over scaled conv2d_backward_weight:fp16
end

begin an_engine_that_hides_what_is_no_number_is_passed_over
over hiding conv_transpose2d
[ "$refused" -eq "$plans" ] || fail "of $plans plans $refused were refused one engine"
[ "$runs" -ge "$((plans * 4))" ] || fail "the second engine was not used: $said"
end

begin attention_that_is_wrong_is_not_believed
over wrong attention attention_backward
none_is_believed 2
end

begin a_plan_that_fails_is_not_run_again
over unlucky conv2d_backward_weight:fp16
none_is_believed 1
end

exit "$failures"
