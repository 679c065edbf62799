#!/bin/sh
# shellcheck disable=SC1091,SC2034,SC2154 # what shell.sh sets and reads
# Activations, gradients and workspace of a training in 16 bits: at most 0.6 of those of fp32, by the
# workloads of `make bench` in small. (`make bench` holds those to it as they are.)
. "$(dirname "$0")/../shell.sh"
workloads=$(dirname "$0")/../bench/workloads

bytes_of() { # PURPOSE
    sed -n "s/.*\"memory\":{[^}]*\"$1\":\([0-9]*\).*/\1/p" "$folder/out"
}
step_memory() { # WORKLOAD PRECISION SETTINGS..: leaves $bytes
    what="$1 $2"
    script=$workloads/$1.lua
    precision=$2
    shift 2
    run run "$script" -p "$precision" --steps 3 --threads 2 --json --no-history "$@"
    expect_status 0
    bytes=$(($(bytes_of activations) + $(bytes_of gradients) + $(bytes_of workspace)))
}
takes_little() { # WORKLOAD SETTINGS..
    workload=$1
    shift
    step_memory "$workload" fp32 "$@"
    full=$bytes
    for low in bf16 fp16; do
        step_memory "$workload" "$low" "$@"
        [ "$((10 * bytes))" -le "$((6 * full))" ] || fail "$what: $bytes bytes of $full in fp32"
    done
}

begin "a transformer takes little in 16 bits"
takes_little e --set width=96 --set context=128 --set layers=6
end

# On tiles small images in bf16 go by our own product, of which each thread holds the windows of 256 pixels and
# packed rows and columns: much beside so small a training, and no more in a large one.
tiles=0
"$mpbench" doctor --json | grep -q '"amx":true' && tiles=$((2 * 1600 * 1024))
begin "convolutions and their transposes need no more workspace in 16 bits than in fp32"
step_memory f fp32 --set width=24 --set batch=16
full=$(bytes_of workspace)
[ "$full" -ge "$tiles" ] || full=$tiles
for low in bf16 fp16; do
    step_memory f "$low" --set width=24 --set batch=16
    [ "$(bytes_of workspace)" -le "$full" ] || fail "$what: $(bytes_of workspace) bytes, $full in fp32"
done
if [ "$tiles" -gt 0 ]; then
    step_memory f bf16 --set width=24 --set batch=48
    [ "$(bytes_of workspace)" -le "$tiles" ] || fail "$what, a larger batch: $(bytes_of workspace) bytes"
fi
end

exit "$failures"
