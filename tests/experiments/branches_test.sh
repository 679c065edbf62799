#!/bin/sh
# shellcheck disable=SC1091,SC2034,SC2154 # what shell.sh sets, reads and calls
# What experiments do when they are given data of one's own, or few steps: expected.txt has them as they come.
. "$(dirname "$0")/../shell.sh"

train() { # EXPERIMENT OPTION..
    run run "$@" -p bf16 --threads 1 --quiet --json --no-history
    expect_status 0
}

# Fashion-MNIST in the layout of CIFAR-10: five files to train on and one to test, of 500 pictures each.
begin "resnet trains on a folder of CIFAR-10's binary batches, in colour"
data=${MPBENCH_FASHION_MNIST:-/usr/share/datasets/fashion-mnist}
mkdir "$folder/cifar"
# shellcheck disable=SC2086 # a compiler may be words
${CC:-gcc} -O1 -o "$folder/convert" "$(dirname "$0")/cifar.c" 2>"$folder/err" || fail "$(head -n 1 "$folder/err")"
records() { # train or t10k, how many: the first of them
    gzip -dc "$data/$1-images-idx3-ubyte.gz" 2>/dev/null | head -c $((16 + $2 * 784)) >"$folder/pictures"
    gzip -dc "$data/$1-labels-idx1-ubyte.gz" 2>/dev/null >"$folder/labels"
    "$folder/convert" "$folder/pictures" "$folder/labels"
}
records train 2500 >"$folder/all"
for i in 1 2 3 4 5; do
    head -c $((i * 1536500)) "$folder/all" | tail -c 1536500 >"$folder/cifar/data_batch_$i.bin"
done
records t10k 500 >"$folder/cifar/test_batch.bin"
train resnet --set dir="$folder/cifar" --set limit=0 --set batch=50 --set width=4 --set every=1000 --epochs 2
[ "$(value_of steps)" = 100 ] || fail "$(value_of steps) steps"
in_colour=$(value_of masters) accuracy=$(value_of accuracy) # by chance 0.1
echo "$accuracy" | awk '{ exit !($1 > 0.3) }' || fail "it names $accuracy of the pictures"
train resnet --set limit=50 --set batch=10 --set width=4 --steps 2
# Three channels of 4 * 3 * 3 weights instead of one.
[ "$in_colour" -gt "$(value_of masters)" ] || fail "no more weights than for one channel: $in_colour"
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

begin "the judge of a GAN of few steps is trained for little longer than they"
train dcgan --set batch=8 --set width=4 --steps 1
accuracy=$(value_of judge_accuracy) # of one that was trained for half a minute: 0.9
echo "$accuracy" | awk '{ exit !($1 > 0.02 && $1 < 0.8) }' || fail "it names $accuracy of the pictures"
end

exit "$failures"
