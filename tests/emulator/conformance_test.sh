#!/bin/sh
# shellcheck disable=SC1091,SC2034,SC2154 # what shell.sh sets, reads and calls
# Every operation but convolutions in every format over the emulated card, whose threads come in any order.
. "$(dirname "$0")/../shell.sh"
. "$(dirname "$0")/suites.sh"

over order=shuffled "conformance/conformance_test $("$build/tests/conformance/conformance_test" --operations | grep -v '^conv' | tr '\n' ' ')"

exit "$failures"
