#!/bin/sh
# shellcheck disable=SC1091,SC2034,SC2154 # what shell.sh sets, and what is set for it
# What the scripts beside this one share: experiments written on the spot, run by the real binary,
# and what must come of them. Sourced by sh; a script ends with `exit "$failures"`.
. "$(dirname "$0")/../shell.sh"
export LC_ALL=C

# experiment NAME < BODY: the body of a run function, whose first line is line 2 of the file.
experiment() {
    {
        echo 'local mp = require "mp" local nn, F = mp.nn, mp.fn return mp.experiment { name = "fault", run = function(run)'
        cat
        echo 'end }'
    } >"$folder/$1.lua"
}

# run_case NAME [options]: begins a test of that name; as `run` does.
run_case() {
    begin "$1"
    shift
    timeout $((20 * patience)) "$mpbench" run "$folder/$name.lua" -d cpu --threads 1 --quiet "$@" \
        >"$folder/out" 2>"$folder/err" </dev/null
    status=$?
}

wants_text() {
    for text in "$@"; do
        grep -qF -- "$text" "$folder/err" || fail "'$text' is not said: $(head -c 9000 "$folder/err" | tr '\n' ' ')"
    done
}

# The number that a text ends in ends there.
wants_json() {
    for text in "$@"; do
        case $text in
        *[0-9]) sed 's/[],}]/&\n/g' "$folder/out" | sed 's/[],}]*$//' | grep -qE -- "$text\$" ;;
        *) grep -qF -- "$text" "$folder/out" ;;
        esac || fail "the result lacks $text: $(head -c 9000 "$folder/out")"
    done
}

verdict() { # NAME: the end, where it is not the script's name
    name=$1
    end
}

# refused NAME TEXT ..: it fails as a script's fault does, in one line that holds the texts.
refused() {
    run_case "$1"
    shift
    expect_error 1
    wants_text "$@"
    end
}

# passes NAME TEXT ..: it runs to its end, and the result in JSON holds the texts.
passes() {
    run_case "$1" --json
    shift
    expect_status 0
    wants_json '"status":"finished"' "$@"
    end
}
