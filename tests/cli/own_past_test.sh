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

begin "a fork of a run that was removed is still told and taken as one"
train run simple --steps 40 --name base
train fork base --at 20 --set lr=0.5 --name kid
"$mpbench" rm base >/dev/null
run fork kid --at 10
expect_usage_error "--at 10: run kid began at step 20, as a fork of a run that was removed, and has no checkpoint"
"$mpbench" show kid >"$folder/out"
expect_out 'fork of  *a run that was removed, at step 20'
expect_out 'time .* since step 20'
"$mpbench" run simple --steps 40 --name plain --quiet >/dev/null
"$mpbench" compare plain kid >"$folder/out" 2>&1
expect_out 'kid is a fork of a run that was removed: its time'
end

begin "no other script of the same name is trained in the place of one that is gone"
write_loop simple </dev/null
train run "$folder/simple.lua" --name mine
mv "$folder/simple.lua" "$folder/moved.lua"
run fork mine --at 10
expect_error 1 "simple.lua is not there any more; put it back, as with"
end

begin "compare goes by the option that a fork gave, not by its parent's"
train run simple -p bf16 --keep-fp32 none --steps 20 --name kept-1
train fork kept-1 --at 10 --keep-fp32 all --name kept-2
train run simple -p bf16 --keep-fp32 all --steps 20 --name kept-3
"$mpbench" compare kept-3 kept-2 >"$folder/out" 2>&1
expect_no_out 'keep-fp32'
"$mpbench" compare kept-3 kept-1 >"$folder/out" 2>&1
expect_out 'keep-fp32'
end

begin "compare takes no loss of steps that its runs do not share"
train run simple --steps 40 --name short
train fork short --steps 60 --name longer
"$mpbench" compare short longer --json >"$folder/out" 2>&1
expect_out '"loss_delta": *null'
"$mpbench" compare short longer >"$folder/out" 2>&1
expect_out '^longer begins where another of these runs had ended: they share no step at which their losses'
end

exit "$failures"
