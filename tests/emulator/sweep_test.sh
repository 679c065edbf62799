#!/bin/sh
# shellcheck disable=SC1091,SC2034,SC2154 # what shell.sh sets, reads and calls
# Training over the emulated card while one call of the driver after another fails: the first calls of
# each function, or with MPBENCH_SOAK=1 each call there is. A training ends well or by one line, in
# time, and leaves nothing behind on a card that still answers.
. "$(dirname "$0")/../shell.sh"

use_emulated_card training_survives_every_failure_of_the_driver
memory=2 lost=700 # of cuda.h: no memory; the card is lost for good

# The training in which the call $1 answers $2. Status 1: there was no such call any more. Steps are
# captured after some.
training() {
    case $1 in
    *Capture/* | *Graph*) steps=14 ;;
    *) steps=2 ;;
    esac
    MPBENCH_EMULATOR="fail=$1:$2,report=1" timeout 60 "$mpbench" run simple --device gpu --steps "$steps" \
        --quiet --db "$folder/history.db" >"$folder/out" 2>"$folder/err" </dev/null
    status=$?
    grep -q '^emulator: .* fails with' "$folder/err" || return 1
    lines=$(grep -c '^mpbench: ' "$folder/err")
    case $status in
    0) ;;
    1 | 3) [ "$lines" -eq 1 ] || fail "$1 answers $2: $lines lines of errors: $(grep '^mpbench' "$folder/err")" ;;
    *) fail "$1 answers $2: exit status $status: $(tail -n 1 "$folder/err")" ;;
    esac
    # What cannot be freed is left, and all of it where the card is lost.
    if [ "$2" -eq "$memory" ] && ! grep -qE '^emulator: cu[A-Za-z]*(Free|Destroy|Unload|Release)' "$folder/err" &&
        grep -q '^emulator: .*left with' "$folder/err"; then
        fail "$1 answers $2: $(grep 'left with' "$folder/err")"
    fi
}

begin training_survives_every_failure_of_the_driver
last=5
[ -z "${MPBENCH_SOAK:-}" ] || last=100000
tried=0
sed -n 's/.*F(\(cu[A-Za-z]*\)).*/\1/p' gpu/driver.h >"$folder/functions"
while read -r function; do
    for code in $memory $lost; do
        call=1
        while [ "$call" -le "$last" ] && training "$function/$call" "$code"; do
            call=$((call + 1))
            tried=$((tried + 1))
        done
    done
done <"$folder/functions"
[ "$tried" -gt 100 ] || fail "only $tried calls were made to fail"
end

exit "$failures"
