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

"$mpbench" run simple --steps 40 --checkpoint-every 20 --name first --quiet >/dev/null || exit 1
begin "a run that begins with a checkpoint's weights can be forked from its own beginning"
train resume first --weights-only
mv "$folder/out" "$folder/again"
again=$(sed -n '1s/ .*//p' "$folder/again")
train fork "$again" --at 10 --name from-weights
[ -n "$(point loss "$again" 11)" ] || fail "there is no step 11 of $again"
[ "$(point loss from-weights 11)" = "$(point loss "$again" 11)" ] ||
    fail "step 11 is $(point loss from-weights 11), and $(point loss "$again" 11) in the run itself"
end

begin "the weights of a damaged checkpoint begin no run"
file=$(find "$folder/checkpoints/$(says first id)" -name '*40.safetensors')
size=$(wc -c <"$file")
printf '\377\377\377\377' | dd of="$file" bs=1 seek=$((size - 40)) conv=notrunc 2>/dev/null
run resume first --weights-only
expect_error 1 "the checkpoint of step 40 is damaged: its checksum is not the one that was recorded"
train resume first --weights-only --at 20
end

begin "a fork takes the weights that its parent began with, from wherever it is made"
mkdir "$folder/here" "$folder/there"
mpbench=$(realpath "$mpbench")
top=$PWD
"$mpbench" export first --format safetensors --output "$folder/here/w.safetensors" >/dev/null 2>&1 ||
    "$mpbench" export "$again" --format safetensors --output "$folder/here/w.safetensors" >/dev/null
"$mpbench" run simple --steps 5 --seed 9 --name other --quiet >/dev/null
"$mpbench" export other --format safetensors --output "$folder/there/w.safetensors" >/dev/null
cd "$folder/here" || exit 1
train run simple --weights w.safetensors --steps 40 --name begun
cd "$folder/there" || exit 1
train fork begun --at 10 --name begun-2
[ "$(point loss begun-2 11)" = "$(point loss begun 11)" ] || fail "other weights were taken"
cp w.safetensors ../here/w.safetensors
run fork begun --at 10 --quiet
expect_error 1 "w.safetensors is no longer the file that the run began with: put that one back"
train fork begun --at 40 --steps 50 --name begun-3
cd "$top" || exit 1
end
