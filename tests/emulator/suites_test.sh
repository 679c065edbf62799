#!/bin/sh
# shellcheck disable=SC1091,SC2034,SC2154 # what shell.sh sets, reads and calls
# Suites of devices over the emulated card: their own lines are passed on, and nothing may go wrong
# on the card meanwhile.
. "$(dirname "$0")/../shell.sh"

. "$(dirname "$0")/suites.sh"

# The host must not touch memory of the device.
over protect=1 unit/functions_test unit/memory_test unit/parameter_test unit/profile_test \
    unit/replay_test unit/statistics_test unit/tape_test unit/views_test unit/waits_test \
    unit/weights_test
over streams=shuffled lua/waits_test
# Libraries round to TF32 by rules of their own, our kernels as the reference does.
over protect=1,libraries=0 unit/compute_test
[ -z "${MPBENCH_SOAK:-}" ] || over protect=1 golden/model_test # convolutions take their time
over protect=1,order=reverse,streams=shuffled conformance/multi_test conformance/update_test \
    golden/ops_test golden/scaler_test unit/optim_test \
    unit/optim_refused_test unit/scaler_test unit/scalers_test

exit "$failures"
