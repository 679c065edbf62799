#!/bin/sh
# shellcheck disable=SC2034,SC2154 # what shell.sh sets and who sources it reads
# What tests share that run suites of devices over the emulated card. Sourced by sh, after shell.sh.

build=$(dirname "$mpbench")
use_emulated_card "${0##*/}"
export MPBENCH_TEST_DEVICE=gpu

# over SETTINGS PROGRAM...   each of these over a card with such settings; x/y_test.sh is a script, and
#                            words behind a program's name are what it is given
over() {
    export MPBENCH_EMULATOR="$1"
    shift
    for program in "$@"; do
        said=$folder/$(basename "${program%% *}")
        # shellcheck disable=SC2086 # words
        case $program in
        *.sh) sh "$(dirname "$0")/../$program" ;;
        *) "$build/tests/"$program ;;
        esac >"$said.out" 2>"$said.err"
        status=$?
        grep -E '^(ok|not ok|skip) ' "$said.out"
        begin "${program%% *} over the emulated card, $MPBENCH_EMULATOR"
        [ "$status" -le 1 ] || fail "exit status $status: $(tail -n 1 "$said.err")"
        grep -q '^ok' "$said.out" || fail "it ran no test: $(tail -n 1 "$said.err")"
        ! grep -q '^emulator: ' "$said.err" || fail "$(grep '^emulator: ' "$said.err" | head -n 1)"
        [ "$status" -eq 0 ] || failures=1
        end
    done
}
