#!/bin/sh
# Runs every tests/lua/*.lua as an experiment on the reference device and on the CPU, or on the
# device that MPBENCH_TEST_DEVICE names (tests/device.h). A script announces each promise with
# `test "name"` and breaks it with an error; the file testing.lua says how. One "ok" or "not ok"
# line a promise and device.
set -u
here=$(dirname "$0")
for script in "$here"/*.lua; do
    name=$(basename "$script" .lua)
    [ "$name" = testing ] && continue
    for device in ${MPBENCH_TEST_DEVICE:-ref cpu}; do
        out=$("$MPBENCH" run "$script" -d "$device" --quiet --seed 7 2>&1 >/dev/null)
        status=$?
        echo "$out" | grep -E '^(ok|not ok) ' | sed "s/\$/ [$device]/"
        if [ "$status" -ne 0 ]; then
            echo "not ok $name [$device]: exit status $status: $(echo "$out" | tail -n 1)"
        elif ! echo "$out" | grep -q '^ok '; then
            echo "not ok $name [$device]: it tested nothing: $(echo "$out" | tail -n 1)"
        fi
    done
done
