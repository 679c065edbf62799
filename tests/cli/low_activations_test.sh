#!/bin/sh
# shellcheck disable=SC1091,SC2154 # what shell.sh sets and reads
# Activations of experiments that ship, over whole runs with their evaluations: in 16 bits at most
# 0.6 of those in fp32. What a script lets go of must not lie there for long: it weighs twice as
# much beside what is half as large.
. "$(dirname "$0")/../shell.sh"

activations() { # EXPERIMENT PRECISION SETTINGS..: leaves $held
    what="$1 in $2"
    experiment=$1
    precision=$2
    shift 2
    run run "$experiment" -p "$precision" --threads 2 --json --no-history "$@"
    expect_status 0
    held=$(sed -n 's/.*"memory":{[^}]*"activations":\([0-9]*\).*/\1/p' "$folder/out")
}
hold_little() { # EXPERIMENT FORMATS SETTINGS..
    name_of=$1
    formats=$2
    shift 2
    activations "$name_of" fp32 "$@"
    full=$held
    for low in $formats; do
        activations "$name_of" "$low" "$@"
        [ "$((10 * held))" -le "$((6 * full))" ] || fail "$what: $held bytes of $full in fp32"
    done
}

begin "activations of gpt take little in 16 bits"
hold_little gpt "bf16 fp16" --set steps=6 --set write=0
end

begin "activations of resnet take little in 16 bits"
hold_little resnet "bf16 fp16" --steps 4 --set every=2
end

begin "activations of unet3d take little in 16 bits"
hold_little unet3d fp16 --set steps=4 --set uses=1
end

begin "samples of memory take little in 16 bits: as many more fit"
run run memory -p bf16 --threads 2 --json --no-history --set budget=3 --set steps=2
expect_status 0
gain=$(sed -n 's/.*"batch_gain":\([0-9.]*\).*/\1/p' "$folder/out")
[ "$(awk -v gain="$gain" 'BEGIN { print (gain >= 1 / 0.6) }')" = 1 ] || fail "$gain times the batch of fp32"
end

exit "$failures"
