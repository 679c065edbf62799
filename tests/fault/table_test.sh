#!/bin/sh
# Every fault from 22 to 50 and from 56 to 60 has a test, by the table in faults.txt, and every test
# there is one.
set -u
table=$(dirname "$0")/faults.txt
name='every fault of the history, checkpoints, processes and cards has a test'
why=$(
    { seq 22 50; seq 56 60; } | while read -r fault; do
        grep -q "^$fault " "$table" || echo "fault $fault has none;"
    done
    grep -v -e '^#' -e '^$' "$table" | while read -r fault file test; do
        case $file in
        *.c) grep -qF "RUN_TEST($test);" "$file" ;;
        *) grep -qF "begin \"$test\"" "$file" ;;
        esac || echo "fault $fault: $file has no test \"$test\";"
    done
)
if [ -z "$why" ]; then echo "ok $name"; else echo "not ok $name: $(echo "$why" | tr '\n' ' ')"; fi
