#!/bin/sh
# What the scripts beside this one share: experiments written on the spot, run by the real binary,
# and what must come of them. Sourced by sh. One "ok" or "not ok" line a case.
set -u
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
export LC_ALL=C
patience=${MPBENCH_TEST_PATIENCE:-1} # tests/test.h says what it is

# experiment NAME < BODY: the body of a run function, whose first line is line 2 of the file.
experiment() {
    {
        echo 'local mp = require "mp" local nn, F = mp.nn, mp.fn return mp.experiment { name = "fault", run = function(run)'
        cat
        echo 'end }'
    } >"$dir/$1.lua"
}

# run_case NAME [options]: its streams in $dir/out and $dir/err, its exit status in $status.
run_case() {
    case_name=$1
    shift
    timeout $((20 * patience)) "$MPBENCH" run "$dir/$case_name.lua" -d cpu --threads 1 --quiet "$@" \
        >"$dir/out" 2>"$dir/err" </dev/null
    status=$?
    why=
}

fault() { [ -n "$why" ] || why=$1; }

# The shown text ends up in one line of the report.
shown() { head -c 9000 "$1" | tr '\n' ' '; }

wants_status() { [ "$status" -eq "$1" ] || fault "exit status $status, expected $1: $(shown "$dir/err")"; }

wants_one_line() {
    [ "$(wc -l <"$dir/err")" -eq 1 ] || fault "not one line of error: $(shown "$dir/err")"
    grep -q '^mpbench: ' "$dir/err" || fault "it does not begin with 'mpbench: ': $(shown "$dir/err")"
}

wants_text() {
    for text in "$@"; do
        grep -qF -- "$text" "$dir/err" || fault "'$text' is not said: $(shown "$dir/err")"
    done
}

wants_json() {
    for text in "$@"; do
        grep -qF -- "$text" "$dir/out" || fault "the result lacks $text: $(shown "$dir/out")"
    done
}

verdict() {
    if [ -z "$why" ]; then echo "ok $1"; else echo "not ok $1: $why"; fi
}

# refused NAME TEXT ..: it fails as a script's fault does, in one line that holds the texts.
refused() {
    run_case "$1"
    wants_status 1
    wants_one_line
    shift
    wants_text "$@"
    verdict "$case_name"
}

# passes NAME TEXT .. [< BODY]: it runs to its end, and the result in JSON holds the texts.
passes() {
    run_case "$1" --json
    wants_status 0
    shift
    wants_json '"status":"finished"' "$@"
    verdict "$case_name"
}
