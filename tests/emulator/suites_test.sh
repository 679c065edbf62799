#!/bin/sh
# shellcheck disable=SC1091,SC2034,SC2154 # what shell.sh sets, reads and calls
# Suites of devices over the emulated card: their own lines are passed on, and nothing may go wrong
# on the card meanwhile.
. "$(dirname "$0")/../shell.sh"

build=$(dirname "$mpbench")
if [ ! -e "$build/emulator/mpbench-gpu.so" ]; then
    echo "skip suites_over_emulated_card: it is not built, for lack of cuda.h or of a C++ compiler"
    exit 0
fi
export MPBENCH_GPU="$build/emulator/mpbench-gpu.so" MPBENCH_TEST_DEVICE=gpu

# over SETTINGS PROGRAM...   each of these over a card with such settings
over() {
    export MPBENCH_EMULATOR="$1"
    shift
    for program in "$@"; do
        said=$folder/$(basename "$program")
        "$build/tests/$program" >"$said.out" 2>"$said.err"
        status=$?
        grep -E '^(ok|not ok|skip) ' "$said.out"
        begin "$program over the emulated card, $MPBENCH_EMULATOR"
        [ "$status" -le 1 ] || fail "exit status $status: $(tail -n 1 "$said.err")"
        grep -q '^ok' "$said.out" || fail "it ran no test: $(tail -n 1 "$said.err")"
        ! grep -q '^emulator: ' "$said.err" || fail "$(grep '^emulator: ' "$said.err" | head -n 1)"
        [ "$status" -eq 0 ] || failures=1
        end
    done
}

# What takes long goes on beside the rest.
(
    over order=shuffled conformance/conformance_test
    exit "$failures"
) >"$folder/long" &
long=$!
# The host must not touch memory of the device.
over protect=1 unit/functions_test unit/memory_test unit/parameter_test unit/profile_test \
    unit/replay_test unit/statistics_test unit/tape_test unit/views_test unit/waits_test \
    unit/weights_test golden/model_test
over protect=1,order=reverse,streams=shuffled conformance/multi_test golden/ops_test \
    golden/scaler_test unit/optim_test unit/scaler_test unit/scalers_test
wait "$long" || failures=1
cat "$folder/long"

exit "$failures"
