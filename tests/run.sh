#!/bin/sh
# run.sh PROGRAM...   runs these test programs and every tests/*/*_test.sh, as many at a time as there
# are processors (MPBENCH_TEST_JOBS=N), shows what failed, and ends with the sum.
#
# Each prints "ok NAME", "not ok NAME: why" or "skip NAME: why". One that dies, that prints none of
# these, or that runs longer than its limit (MPBENCH_TEST_LIMIT seconds) counts as failed. Each has a
# folder for temporary files, a history and a cache of its own, which go away with it.
set -u
export GOMP_SPINCOUNT=2000 # src/cli/spin.c says why
# What a test does not run on a card itself is run without, whatever this machine has.
: "${MPBENCH_GPU:=/dev/null/no-card}"
export MPBENCH_GPU

# run.sh --one PROGRAM: that program, its lines to $MPBENCH_TEST_LOGS.
if [ "${1:-}" = --one ]; then
    program=$2
    name=${program#build/}
    log=$MPBENCH_TEST_LOGS/$(echo "$name" | tr / -)
    TMPDIR=$(mktemp -d) && chmod 755 "$TMPDIR" || exit 255 # some tests give up being root
    export TMPDIR MPBENCH_DB="$TMPDIR/own/history.db" XDG_CACHE_HOME="$TMPDIR/cache"
    case $program in *.sh) set -- sh "$program" ;; *) set -- "$program" ;; esac
    # A group of its own is what timeout ends, with all that the program started.
    trap 'kill "$running" 2>/dev/null; wait "$running"; rm -rf "$TMPDIR"; exit 255' INT TERM
    started=$(date +%s)
    timeout -k 10 "$MPBENCH_TEST_LIMIT" "$@" >"$log.all" 2>&1 </dev/null &
    running=$!
    wait "$running"
    status=$?
    took=$(($(date +%s) - started))
    rm -rf "$TMPDIR"
    grep -E '^(ok|not ok|skip) ' "$log.all" >"$log.lines"
    last=$(tail -n 3 "$log.all" | tr '\n' ' ')
    if [ "$status" -eq 124 ] || [ "$status" -eq 137 ]; then
        echo "not ok $name: ended after its limit of $MPBENCH_TEST_LIMIT s: $last" >>"$log.lines"
    elif [ "$status" -ne 0 ] && ! grep -q '^not ok ' "$log.lines"; then
        echo "not ok $name: exit status $status: $last" >>"$log.lines"
    elif [ ! -s "$log.lines" ]; then
        echo "not ok $name: it ran no test: $last" >>"$log.lines"
    fi
    {
        printf '%s: %s ok, %s failed, %s s\n' "$name" "$(grep -c '^ok ' "$log.lines")" \
            "$(grep -c '^not ok ' "$log.lines")" "$took"
        grep -E '^not ok ' "$log.lines"
    } >"$log.said"
    cat "$log.said" # in one piece, whoever else prints
    exit 0
fi

MPBENCH_TEST_LOGS=$(mktemp -d) || exit 1
trap 'rm -rf "$MPBENCH_TEST_LOGS"' EXIT
patience=${MPBENCH_TEST_PATIENCE:-1}
limit=300
[ -z "${MPBENCH_SOAK:-}" ] || limit=18000
: "${MPBENCH_TEST_LIMIT:=$((limit * ${patience%.*}))}"
export MPBENCH_TEST_LOGS MPBENCH_TEST_LIMIT

# What runs long comes first, so that no processor waits for it alone at the end.
long='_test\.sh$|/gpu/|/screen/|/lua/|sweep|/conformance/|/golden/'
list=$MPBENCH_TEST_LOGS/list
for program in "$@" tests/*/*_test.sh; do [ -e "$program" ] && echo "$program"; done >"$list"
{
    grep -E "$long" "$list"
    grep -vE "$long" "$list"
} | xargs -n 1 -P "${MPBENCH_TEST_JOBS:-$(nproc 2>/dev/null || echo 2)}" sh "$0" --one

echo
log=$MPBENCH_TEST_LOGS/sum
cat "$MPBENCH_TEST_LOGS"/*.lines >"$log"
grep -E '^(not ok|skip) ' "$log"
passed=$(grep -c '^ok ' "$log")
failed=$(grep -c '^not ok ' "$log")
skipped=$(grep -c '^skip ' "$log")
if [ "$skipped" -gt 0 ]; then
    echo "$passed passed, $failed failed, $skipped skipped"
else
    echo "$passed passed, $failed failed"
fi
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ] && [ "$(wc -l <"$list")" -eq "$(find "$MPBENCH_TEST_LOGS" -name '*.lines' | wc -l)" ]
