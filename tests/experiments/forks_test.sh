#!/bin/sh
# shellcheck disable=SC1091,SC2034,SC2016,SC2154 # what shell.sh sets, reads and calls
# Which changes keep `intervene` on its course: README has them in a table, what to type and at which
# step the loss leaves, "-" where it does not. `make test` takes each for a few steps, a soak trains what
# the table says, which takes two processors some ten minutes.
. "$(dirname "$0")/../shell.sh"
readme=$(dirname "$0")/../../README.md
breaks="-p mxfp4 --recipe norms=scaled,scales=floor"

# Its rows: fork or start | what to type | "-", or steps
sed -n '/^| from step 1500 on /,/^$/ s/^| \([^`]*\): `\([^`]*\)` |.* | \([^|]*\) |$/\1|\2|\3/p' "$readme" |
    sed 's/^from the start[^|]*|/start|/; t; s/^[^|]*|/fork|/' >"$folder/rows"

# Runs with what a row says; FROM and STEP are of forks.
train() { # FROM STEP KIND CHANGE OPTION..
    from=$1 step=$2 kind=$3 change=$4
    shift 4
    case $kind in
        fork) eval "set -- fork $from --at $step $change \"\$@\"" ;;
        start) eval "set -- run intervene $change \"\$@\"" ;;
    esac
    run "$@" --threads 2 --quiet --json
    expect_status 0
}

begin "README's table of changes is complete"
[ "$(grep -c '^fork|.*|-$' "$folder/rows")" -ge 3 ] || fail "it has too few that avert: $(tr '\n' ' ' <"$folder/rows")"
[ "$(grep -c '^fork|.*[0-9]$' "$folder/rows")" -ge 3 ] || fail "it has too few that do not"
[ "$(grep -c '^start|' "$folder/rows")" -ge 3 ] || fail "it has too few from the start"
end

begin "each change is one that a fork takes, and that changes something"
# shellcheck disable=SC2086 # options are words
run run intervene $breaks --steps 20 --set keep=10 --name short --threads 2 --quiet --json
expect_status 0
unchanged=$(result_of loss)
while IFS='|' read -r kind change leaves; do
    train short 10 "$kind" "$change" --steps 20
    [ "$(value_of steps)" = 20 ] || fail "$change: $(value_of steps) steps"
    [ "$(result_of loss)" != "$unchanged" ] || fail "$change changes nothing"
done <"$folder/rows"
end

[ -n "${MPBENCH_SOAK:-}" ] || exit "$failures"

# README's table is of AVX2's loops, which give the same bits on every processor that has them.
export MPBENCH_ISA=avx2

# Whether the last run has left, as it says itself, and did not come back to where others end, below 0.01.
has_left() {
    result_of loss | awk '{ exit !($1 !~ /^[0-9]/ || $1 > 0.01) }' && grep -q '"kind":"diverged"' "$folder/out"
}

begin "a run whose norms are rounded by the standard's rule leaves, and says from where to fork"
for seed in 1 2 3; do
    # shellcheck disable=SC2086
    run run intervene $breaks --seed $seed --name "broken$seed" --threads 2 --quiet --json
    expect_status 0
    has_left || fail "seed $seed ends at $(result_of loss)"
    # As README, from 1500 on; from before where another processor lets it leave earlier.
    sed -n "s/.*mpbench fork broken$seed --at \([0-9]*\).*/\1/p" "$folder/out" >"$folder/at$seed"
    [ -s "$folder/at$seed" ] || fail "seed $seed names no step to fork from"
    awk '{ print $1 < 1500 ? $1 : 1500 }' "$folder/at$seed" >"$folder/from$seed"
done
end

while IFS='|' read -r kind change leaves; do
    if [ "$leaves" = - ]; then
        begin "$kind: $change averts it"
    else
        begin "$kind: $change does not avert it"
    fi
    left=0 losses=
    for seed in 1 2 3; do
        case $kind in
            fork) train "broken$seed" "$(cat "$folder/from$seed")" fork "$change" ;;
            start) train - - start "$change" --seed "$seed" ;;
        esac
        losses="$losses $(result_of loss)"
        has_left && left=$((left + 1))
    done
    # Whose last bits differ may stay within so many steps by luck, once.
    case $leaves in
        -) [ "$left" -eq 0 ] || fail "$left of 3 left:$losses" ;;
        *) [ "$left" -ge 2 ] || fail "$left of 3 left:$losses" ;;
    esac
    end
done <"$folder/rows"
exit "$failures"
