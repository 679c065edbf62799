#!/bin/sh
# Runs the given test programs and every tests/*/*_test.sh, shows what failed, and ends with the sum.
# Each prints "ok NAME", "not ok NAME: why" or "skip NAME: why". A program that dies counts as failed.
set -u
export GOMP_SPINCOUNT=2000 # src/cli/spin.c says why
log=$(mktemp)
trap 'rm -rf "$log" "$log.one" "$log.history"' EXIT
export MPBENCH_DB="$log.history/history.db" # nobody's own
run() {
    for name in "$@"; do :; done # the last word: sh is none
    started=$(date +%s)
    "$@" >"$log.one" 2>&1
    status=$?
    grep -E '^(ok|not ok|skip) ' "$log.one" >>"$log"
    if [ "$status" -ne 0 ] && ! grep -q '^not ok ' "$log.one"; then
        echo "not ok $name: exit status $status: $(tail -n 3 "$log.one" | tr '\n' ' ')" >>"$log"
    fi
    printf '%s: %s ok, %s failed, %s s\n' "${name#build/}" "$(grep -c '^ok ' "$log.one")" \
        "$(grep -c '^not ok ' "$log.one")" "$(($(date +%s) - started))"
    grep -E '^not ok ' "$log.one"
}
for program in "$@"; do run "$program"; done
for script in tests/*/*_test.sh; do [ -e "$script" ] && run sh "$script"; done
echo
grep -E '^(not ok|skip) ' "$log"
passed=$(grep -c '^ok ' "$log")
failed=$(grep -c '^not ok ' "$log")
skipped=$(grep -c '^skip ' "$log")
if [ "$skipped" -gt 0 ]; then
    echo "$passed passed, $failed failed, $skipped skipped"
else
    echo "$passed passed, $failed failed"
fi
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
