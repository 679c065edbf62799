#!/bin/sh
# shellcheck disable=SC1091,SC2034,SC2154 # what shell.sh sets, reads and calls
# What bits.lua draws, computes and trains: the same bits in every order of threads and of what streams
# do, in memory that is poisoned; the draws are the processor's. Under MPBENCH_SOAK in all of them.
. "$(dirname "$0")/../shell.sh"
. "$(dirname "$0")/suites.sh"
here=$(dirname "$0")

# prints NAME DEVICE: what it says on that device, to $folder/NAME.
prints() {
    "$mpbench" run "$here/bits.lua" -d "$2" --seed 7 --threads 1 --quiet --no-history >"$folder/out" 2>"$folder/err" ||
        fail "$1: exit status $?: $(tail -n 1 "$folder/err")"
    ! grep -q '^emulator: ' "$folder/err" || fail "$1: $(grep -m 1 '^emulator: ' "$folder/err")"
    grep -E '^(draw|made) ' "$folder/err" >"$folder/$1"
}
# differs ONE OTHER: says of what.
differs() {
    diff "$folder/$1" "$folder/$2" | sed -n 's/^[<>] \([a-z]* [^ ]*\).*/\1/p' | sort -u | head -n 5 | tr '\n' ','
}

begin every_order_of_threads_and_streams_gives_the_same_bits
conducts='forward,streams=lazy reverse,streams=eager shuffled,streams=shuffled,seed=3'
if [ -n "${MPBENCH_SOAK:-}" ]; then
    conducts=
    for order in forward reverse shuffled; do
        for streams in lazy eager shuffled; do
            for seed in 1 2 3; do conducts="$conducts $order,streams=$streams,seed=$seed"; done
        done
    done
    conducts="$conducts shuffled,streams=shuffled,protect=1"
fi
first=
for conduct in $conducts; do
    export MPBENCH_EMULATOR="order=$conduct"
    prints "$conduct" gpu
    : "${first:=$conduct}"
    cmp -s "$folder/$first" "$folder/$conduct" || fail "$conduct: not as $first: $(differs "$first" "$conduct")"
done
[ "$(grep -c '^made ' "$folder/$first")" -gt 70 ] || fail "it made only $(grep -c '^made ' "$folder/$first")"
! grep -q nan "$folder/$first" || fail "$(grep -m 1 nan "$folder/$first" | cut -c 1-80)"
end

begin random_numbers_and_the_order_of_data_are_the_processors_to_the_bit
prints processor cpu
for who in "$first" processor; do grep '^draw ' "$folder/$who" >"$folder/draws.$who"; done
cmp -s "$folder/draws.$first" "$folder/draws.processor" || fail "they differ: $(differs "draws.$first" draws.processor)"
[ "$(wc -l <"$folder/draws.$first")" -eq 16 ] || fail "it drew $(wc -l <"$folder/draws.$first") times"
end

# Formats round, so that sums in another order differ; what is trained stays close.
begin training_with_skipped_steps_and_changing_layers_is_near_the_processors
for who in "$first" processor; do grep -E '^made (loss|weight|average|scale)' "$folder/$who" >"$folder/trained.$who"; done
far=$(paste -d ' ' "$folder/trained.$first" "$folder/trained.processor" | awk '{
    for (i = 3; i <= NF / 2; i++) {
        gap = $i - $(i + NF / 2)
        if ($2 != $(2 + NF / 2) || !(gap * gap <= 4e-4 * (1 + $i * $i))) print $2, $i, $(i + NF / 2)
    }
}')
[ -z "$far" ] || fail "far from it: $(echo "$far" | head -n 3 | tr '\n' ',')"
[ "$(wc -l <"$folder/trained.$first")" -eq 15 ] || fail "it trained $(wc -l <"$folder/trained.$first") parts"
end

exit "$failures"
