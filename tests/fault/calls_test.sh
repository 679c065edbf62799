#!/bin/sh
# Runs calls.lua, which calls every function that scripts can reach with whatever they could hand it,
# on each device, under a limit on memory. The program must live: what it was calling when it did not
# stands in a file. $MPBENCH is the program.
set -u
here=$(dirname "$0")
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
rounds=8 seeds="1 2"
[ -z "${MPBENCH_SOAK:-}" ] || rounds=300 seeds="1 2 3 4 5 6 7 8"

limited() {
    if ldd "$MPBENCH" 2>/dev/null | grep -q -e libasan -e libtsan; then
        # the sanitizers take address space as they please
        ASAN_OPTIONS="${ASAN_OPTIONS:+$ASAN_OPTIONS:}allocator_may_return_null=1:max_allocation_size_mb=512" "$@"
    else
        # shellcheck disable=SC3045 # dash and bash have it
        (ulimit -v 3000000 && exec "$@")
    fi
}

for device in cpu ref; do
    for seed in $seeds; do
        limited "$MPBENCH" run "$here/calls.lua" -d "$device" --trust --quiet --no-history --set seed="$seed" \
            --set rounds="$rounds" --set log="$folder/log" >"$folder/out" 2>&1
        status=$?
        name="no_call_ends_the_program_seed_$seed [$device]"
        if [ "$status" -eq 0 ]; then
            echo "ok $name"
        else
            echo "not ok $name: exit status $status in $(head -c 200 "$folder/log" | tr -d '\n'): $(grep -e mpbench: -e 'runtime error' -e ERROR: -e 'our own' -e worked "$folder/out" | head -n 3 | tr '\n' ' ')"
        fi
    done
done
