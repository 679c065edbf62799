#!/bin/sh
# shellcheck disable=SC1091,SC2034,SC2154 # what shell.sh sets, reads and calls
# ThreadSanitizer over the emulated card (tests/emulator/races.h): it finds the races that are
# planted, and none in the card's kernels.
. "$(dirname "$0")/../shell.sh"

races=$(dirname "$mpbench")/races
if [ ! -e "$races/planted" ]; then
    echo "skip races_in_kernels: $races is not built: it needs cuda.h, a C++ compiler and libtsan, and no other sanitizer"
    exit 0
fi
export MPBENCH_GPU="$races/mpbench-gpu.so" MPBENCH_TEST_DEVICE=gpu
# Of the programs themselves nothing was built for it.
export TSAN_OPTIONS=ignore_noninstrumented_modules=1

# Runs a program of $races; leaves $status and its streams.
search() {
    program=$1
    shift
    "$races/$program" "$@" >"$folder/out" 2>"$folder/err"
    status=$?
}
# Whether the numbers are right is for other tests: exit status 1.
finds_nothing() {
    search "$@"
    [ "$status" -le 1 ] || fail "$*: exit status $status: $(grep -h SUMMARY "$folder/err" | head -n 1)"
    ! grep -q 'WARNING: ThreadSanitizer' "$folder/err" || fail "$*: $(grep -h SUMMARY "$folder/err" | head -n 1)"
}

search planted fill
if grep -q 'unexpected memory mapping' "$folder/err"; then
    echo "skip races_in_kernels: ThreadSanitizer does not run on this machine: $(head -n 1 "$folder/err")"
    exit 0
fi

begin planted_races_are_found
for kernel in no_barrier no_syncwarp plain_flag; do
    for order in forward reverse shuffled; do
        MPBENCH_EMULATOR=order=$order search planted "$kernel"
        grep -q "data race tests/emulator/planted/planted.cu.* in planted_$kernel" "$folder/err" ||
            fail "$kernel, order=$order: no race was found: exit status $status"
    done
done
end

begin kernels_that_wait_have_no_race
for order in forward reverse shuffled; do
    MPBENCH_EMULATOR=order=$order finds_nothing planted fill add_one sum_blocks dynamic_shared \
        exchange_in_warp atomics
done
end

begin card_kernels_have_no_race
for program in multi_test update_test; do
    finds_nothing $program
    grep -q '^ok' "$folder/out" || fail "$program does not run: $(head -n 1 "$folder/err")"
done
# Under MPBENCH_SOAK every operation there is.
some="relu sum argmax softmax layer_norm batch_norm embedding_backward"
[ -z "${MPBENCH_SOAK:-}" ] || some=
# shellcheck disable=SC2086 # words
finds_nothing conformance_test $some
grep -q '^ok relu fp32 gpu' "$folder/out" || fail "conformance_test does not run: $(head -n 1 "$folder/err")"
end

exit "$failures"
