#!/bin/sh
# Operations again as on processors with less than this one has: our kernels and the library's convolutions
# take other ways there. One line for each level: with plain AVX-512 all operations, with AVX2 convolutions and products, with
# less than AVX2 those whose loops are written for each width of vectors (all where MPBENCH_SOAK is set).
set -u
mpbench=${MPBENCH:-build/mpbench}
written="batch_norm batch_norm_backward batch_norm_infer max_pool2d max_pool2d_backward avg_pool2d avg_pool2d_backward
    attention attention_backward sum scale_factor"
failures=0

again() { # LEVEL OPERATION..
    level=$1
    name="conformance as with MPBENCH_ISA=$level"
    shift
    if out=$(MPBENCH_ISA=$level "$(dirname "$mpbench")/tests/conformance/conformance_test" "$@" 2>&1); then
        echo "ok $name"
    else
        echo "not ok $name: $(echo "$out" | grep '^not ok ' | head -n 1)"
        failures=1
    fi
}

[ -z "${MPBENCH_SOAK:-}" ] || written=
# shellcheck disable=SC2086 # operations are words
again base $written
if "$mpbench" doctor --json | grep -q '"isa":"\(avx512\|avx512bf16\|spr\)"'; then
    again avx512
    again avx2 conv2d conv2d_backward_input conv2d_backward_weight matmul linear
else
    echo "skip conformance as with MPBENCH_ISA=avx512: this processor has no AVX-512"
fi
exit "$failures"
