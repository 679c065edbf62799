#!/bin/sh
# shellcheck disable=SC1091,SC2034,SC2154 # what shell.sh sets and reads
# A fork and a resume go on from what their run was: its weights, its script, its scale, and nothing
# else that has the same name or lies in the same place.
. "$(dirname "$0")/../shell.sh"

train() {
    "$mpbench" "$@" --quiet >"$folder/out" 2>"$folder/err"
    status=$?
    expect_status 0
}
point() { # SERIES RUN STEP
    "$mpbench" export "$2" --format jsonl | sed -n "s/.*\"$1\",\"step\":$3,\"value\":\(.*\)}/\1/p"
}

begin "layers that a fork sets to fp16 are scaled, where the parent needed no scale"
train run underflow -p bf16 --steps 40 --name wide
train fork wide --at 20 --layer '*=fp16' --name low
[ "$(point scale low 40)" = 65536 ] || fail "the scale is $(point scale low 40)"
train fork wide --at 20 --layer '*=fp16' --loss-scale none --name unscaled
[ "$(point scale unscaled 40)" = 1 ] || fail "the scale is $(point scale unscaled 40), and none was asked for"
"$mpbench" show unscaled >"$folder/out"
expect_out "of the gradients became zero in fp16 at scale 1 .*use --loss-scale dynamic"
end
