#!/bin/sh
# shellcheck disable=SC1091,SC2034,SC2154 # what shell.sh sets, reads and calls
# Products over the emulated card with a library that serves, is absent, refuses, or gives wrong
# results: they hold whatever it does.
. "$(dirname "$0")/../shell.sh"

build=$(dirname "$mpbench")
use_emulated_card products_over_emulated_library
export MPBENCH_TEST_DEVICE=gpu

# Runs the cases of linear over a machine that is as $1; how many products it took, to `products`.
multiply_with() {
    MPBENCH_EMULATOR=$1,report=1 "$build/tests/conformance/conformance_test" linear \
        >"$folder/out" 2>"$folder/err"
    wrong=$(grep '^not ok' "$folder/out" | head -n 1)
    [ -z "$wrong" ] || fail "$1: $wrong"
    grep -q '^ok linear .* gpu' "$folder/out" || fail "$1: nothing was run"
    grep -q ' 0 descriptors$' "$folder/err" || fail "$1: $(tail -n 1 "$folder/err")"
    products=$(sed -n 's/^emulator: .* \([0-9]*\) products;.*/\1/p' "$folder/err")
}

begin products_go_by_the_library
multiply_with products=right
[ "${products:-0}" -gt 100 ] || fail "the library was asked for ${products:-no} products"
end

begin products_hold_without_a_library
multiply_with libraries=0
[ "${products:-1}" -eq 0 ] || fail "an absent library was asked for ${products:-some} products"
end

begin products_leave_the_libraries_alone_when_told
MPBENCH_GPU_LIBRARIES=none
export MPBENCH_GPU_LIBRARIES
multiply_with products=right
[ "${products:-1}" -eq 0 ] || fail "the library was asked for ${products:-some} products"
"$mpbench" doctor >"$folder/out" 2>&1
expect_out 'cuBLASLt is left alone: unset MPBENCH_GPU_LIBRARIES'
unset MPBENCH_GPU_LIBRARIES
end

begin products_hold_where_the_library_refuses
multiply_with products=refused
[ "${products:-1}" -eq 0 ] || fail "a library that refuses took ${products:-some} products"
end

begin wrong_product_of_the_library_is_made_anew
multiply_with products=wrong
[ "${products:-0}" -gt 50 ] || fail "the library was asked for ${products:-no} products"
end

begin product_of_the_library_that_is_nan_is_made_anew
multiply_with products=nan
[ "${products:-0}" -gt 50 ] || fail "the library was asked for ${products:-no} products"
end

exit "$failures"
