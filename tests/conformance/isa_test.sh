#!/bin/sh
# Every operation again as on a processor with plain AVX-512, whatever this one has beside it: our
# kernels and the library's convolutions take other ways there. One line for all.
set -u
name="conformance as with MPBENCH_ISA=avx512"
mpbench=${MPBENCH:-build/mpbench}
if ! "$mpbench" doctor --json | grep -q '"isa":"\(avx512\|avx512bf16\|spr\)"'; then
    echo "skip $name: this processor has no AVX-512"
    exit 0
fi
if out=$(MPBENCH_ISA=avx512 "$(dirname "$mpbench")/tests/conformance/conformance_test" 2>&1); then
    echo "ok $name"
else
    echo "not ok $name: $(echo "$out" | grep '^not ok ' | head -n 1)"
    exit 1
fi
