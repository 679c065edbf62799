#!/bin/sh
# shellcheck disable=SC1091,SC2034,SC2154 # what shell.sh sets and reads
# The first number that is not finite, on the emulated card: what it looks at by itself, and tells with
# the report of the step, is what a processor tells at once, whether or not steps are captured.
. "$(dirname "$0")/../shell.sh"
. "$(dirname "$0")/../cli/first_nan.sh"

use_emulated_card first_nan_on_emulated_card

said=$(FIRST_NAN_DEVICE="-d gpu" sh "$(dirname "$0")/../cli/first_nan_test.sh" 2>&1) || failures=1
echo "$said" | grep -E '^(ok|not ok) ' | sed -e 's/^\(not ok [^:]*\):/\1 [card]:/' -e 's/^ok .*/& [card]/'
[ "$(echo "$said" | grep -c '^ok ')" -ge 10 ] || failures=1

begin "captured steps are looked at as others are, and tell the same"
long() { # NAME OPTION..
    run_name=$1
    shift
    run run "$folder/inject.lua" -d gpu --quiet --name "$run_name" --seed 5 -p fp16 --loss-scale 64 \
        --set kind=data --set steps=24 "$@"
    expect_status 0
    wrong=$(compared "$run_name")
    [ -z "$wrong" ] || fail "$wrong"
    cp "$folder/page" "$folder/page.$run_name"
}
long captured
long alone --no-capture
run show captured
expect_out 'steps.captured 0\.[1-9]'
for run_name in captured alone; do
    sed 's/"id":[0-9]*,"name":"[a-z]*"//' "$folder/page.$run_name" >"$folder/of.$run_name"
done
cmp -s "$folder/of.captured" "$folder/of.alone" || fail "another page: $(diff "$folder/of.captured" "$folder/of.alone")"
end

begin "gradients that overflow are named on the way back, the way there is known, and what mends it"
run run "$folder/inject.lua" -d gpu --quiet -p fp16 --loss-scale 16777216
"$mpbench" show @last --first-nan --json >"$folder/page"
[ "$(value way) $(value tensor) $(value step)" = "backward gradient through cross_entropy 1" ] ||
    fail "told: $(value sentence)"
run show @last --first-nan
expect_out '--loss-scale dynamic'
end

exit "$failures"
