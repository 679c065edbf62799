#!/bin/sh
# shellcheck disable=SC1091,SC2034,SC2154 # what shell.sh sets, reads and calls
# What experiments do when they are given data of one's own, for two steps: expected.txt has them as they come.
. "$(dirname "$0")/../shell.sh"

train() { # EXPERIMENT OPTION..
    run run "$@" -p bf16 --threads 2 --quiet --json --no-history
    expect_status 0
}

begin "resnet trains on CIFAR-10's binary batches, in colour"
mkdir "$folder/cifar"
record() { # LABEL BYTE: a picture of one grey
    printf '%b' "$(printf '\\0%o' "$1")"
    head -c 3072 /dev/zero | tr '\000' "$2"
}
for i in 1 2 3 4 5; do
    for label in 0 1 2 3 4 5 6 7 8 9; do record $label "$label"; done >"$folder/cifar/data_batch_$i.bin"
done
cp "$folder/cifar/data_batch_1.bin" "$folder/cifar/test_batch.bin"
train resnet --set dir="$folder/cifar" --set limit=0 --set batch=10 --set width=4 --epochs 1 --steps 2
[ "$(value_of steps)" = 2 ] || fail "$(value_of steps) steps"
grey=$(value_of weights)
train resnet --set limit=50 --set batch=10 --set width=4 --steps 2
# Three channels of 4 * 3 * 3 weights instead of one.
[ "$grey" -gt "$(value_of weights)" ] || fail "no more weights than for one channel: $grey"
head -c 5000 /dev/zero >"$folder/cifar/data_batch_5.bin"
run run resnet --set dir="$folder/cifar" --steps 2 --quiet --no-history
expect_error 1 'data_batch_5.bin: has 5000 bytes'
end

begin "bert takes words as it takes letters"
tiny="--set width=16 --set layers=1 --set batch=4 --steps 2"
# shellcheck disable=SC2086 # options are words
train bert $tiny
letters=$(value_of weights)
# shellcheck disable=SC2086
train bert $tiny --set unit=words
words=$(value_of weights)
[ "$words" -gt $((2 * letters)) ] || fail "words take $words bytes of weights, letters $letters"
i=0
while [ $((i += 1)) -le 4000 ]; do echo "one two three four five six seven eight nine ten"; done >"$folder/book.txt"
# shellcheck disable=SC2086
train bert $tiny --set unit=words --set path="$folder/book.txt"
[ "$(value_of weights)" -lt "$letters" ] || fail "ten words take $(value_of weights) bytes, all letters $letters"
end

exit "$failures"
