#!/bin/sh
# shellcheck disable=SC1091,SC2034,SC2154 # what shell.sh sets, reads and calls
# Scaled formats over the emulated card: what products in them are, beside the reference and the exact
# ones; delayed scales, recipes and counts.
. "$(dirname "$0")/../shell.sh"

. "$(dirname "$0")/suites.sh"

# The host must not touch memory of the device.
over protect=1 unit/factors_test unit/scales_test unit/scales_recipe_test unit/scales_apart_test \
    unit/scales_products_test

exit "$failures"
