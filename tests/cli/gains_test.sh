#!/bin/sh
# shellcheck disable=SC1091,SC2034,SC2154 # what shell.sh sets and reads
# What the processor gains by is measured once and kept; a run goes on by what it began by, whatever
# is measured later.
. "$(dirname "$0")/../shell.sh"

export XDG_CACHE_HOME="$folder/cache"
kept=$XDG_CACHE_HOME/mpbench/gains
mkdir "$folder/cache"

if ! "$mpbench" doctor --json | grep -q '"isa":"\(avx512bf16\|spr\)"'; then
    echo "skip gains: this processor has no instruction for pairs of bf16"
    exit 0
fi

says_gain() {
    "$mpbench" doctor >"$folder/out"
    expect_out "$1"
}

# The rest is of vectors, which a processor with tiles is held to.
if "$mpbench" doctor --json | grep -q '"amx":true'; then
    begin "what tiles gain is measured, kept and believed"
    for what in tiles tiles_fp16; do
        grep -q "^$what [0-9.]* [0-9.]* ." "$kept" || fail "$what: kept $(cat "$kept")"
    done
    processor=$(sed -n 's/^tiles [0-9.]* //p' "$kept")
    printf 'tiles 3.0 %s\ntiles_fp16 1.0 %s\n' "$processor" "$processor" >"$kept"
    says_gain "bf16 are about 3 times as fast"
    printf 'tiles 1.0 %s\ntiles_fp16 1.0 %s\n' "$processor" "$processor" >"$kept"
    says_gain "neither bf16 nor fp16 is faster"
    end
    export MPBENCH_ISA=avx512bf16
    rm "$kept"
    "$mpbench" doctor >"$folder/out" || fail "doctor fails without tiles"
fi

begin "what is measured is kept by the processor's name"
[ "$(wc -l <"$kept")" = 3 ] || fail "kept $(cat "$kept")"
for what in pairs elements32 elements16; do
    grep -q "^$what [0-9.]* [0-9.]* ." "$kept" || fail "$what: kept $(cat "$kept")"
done
"$mpbench" doctor >"$folder/out"
[ "$(wc -l <"$kept")" = 3 ] || fail "measured again: $(cat "$kept")"
processor=$(sed -n 's/^pairs [0-9.]* //p' "$kept")
MPBENCH_ISA=avx2 "$mpbench" doctor >"$folder/out"
grep -q "^elements32 [0-9.]* [0-9.]* avx2 ." "$kept" || fail "of a level by itself: kept $(cat "$kept")"
end

begin "what is kept is believed"
echo "pairs 3.0 $processor" >"$kept"
says_gain "bf16 are about 3 times as fast"
echo "pairs 0.5 $processor" >"$kept"
says_gain "neither bf16 nor fp16 is faster"
end

begin "what cannot be believed is measured again"
for line in "pairs 900 $processor" "pairs x $processor" "pairs 3.0 another processor" "" "pairs -1 $processor" "pairs"; do
    echo "$line" >"$kept"
    "$mpbench" doctor >"$folder/out" || fail "doctor fails"
    sed 1d "$kept" | grep -q "^pairs [0-9.]* $processor\$" || fail "not measured again after: $line"
done
end

begin "a run needs no cache, and no home"
rm -rf "$XDG_CACHE_HOME"
touch "$XDG_CACHE_HOME" # a file: no folder can be made there
"$mpbench" doctor >"$folder/out" || fail "doctor fails"
HOME="" XDG_CACHE_HOME="" "$mpbench" doctor >"$folder/out" || fail "doctor fails without a home"
rm "$XDG_CACHE_HOME"
mkdir -p "$XDG_CACHE_HOME/mpbench"
end

cat >"$folder/net.lua" <<'LUA'
local mp = require "mp"
local nn, F = mp.nn, mp.fn
return mp.experiment { name = "net", params = { steps = 40 }, run = function(run)
    local net = run:model(nn.Sequential { nn.Linear(1024, 960), nn.ReLU(), nn.Linear(960, 1) })
    local opt = mp.optim.SGD(net:parameters(), { lr = 1e-3 })
    local scaler = run:scaler()
    local w = mp.randn(1024, 1)
    for step = 1, run.params.steps do
        local x = mp.randn(48, 1024)
        opt:zero_grad()
        local loss = mp.autocast(function() return F.mse(net(x), x:matmul(w)) end)
        scaler:scale(loss):backward()
        scaler:step(opt)
        scaler:update()
        run:log { loss = loss }
    end
end }
LUA
train() {
    echo "pairs $1 $processor" >"$kept"
    shift
    "$mpbench" "$@" --quiet >"$folder/out" 2>"$folder/err" || fail "$*: $(cat "$folder/err")"
}

begin "a run goes on by what it began by"
train 0.5 run "$folder/net.lua" -p bf16 --checkpoint-every 10
train 2.0 fork 1 --at 20
train 2.0 run "$folder/net.lua" -p bf16 --checkpoint-every 10
train 0.5 fork 3 --at 20
[ "$(says 2 last)" = "$(says 1 last)" ] || fail "begun in fp32: $(says 2 last), not $(says 1 last)"
[ "$(says 4 last)" = "$(says 3 last)" ] || fail "begun in pairs: $(says 4 last), not $(says 3 last)"
[ "$(says 3 last)" != "$(says 1 last)" ] || fail "both ways give the same bits: this proves nothing"
end

# Results are told apart in the last bits of sums alone, which seldom outlive the rounding to bf16.
begin "and so it does where elements are multiplied as whole numbers"
ways_of() { in_history "select value from environment where run = $1 and name = 'ways'"; }
train_whole() {
    echo "elements32 $1 $processor" >>"$kept"
    shift
    "$mpbench" "$@" --quiet >"$folder/out" 2>"$folder/err" || fail "$*: $(cat "$folder/err")"
}
train_whole 0.5 run "$folder/net.lua" -p mxfp4 --checkpoint-every 10
train_whole 3.0 fork 5 --at 20
train_whole 3.0 run "$folder/net.lua" -p mxfp4 --checkpoint-every 10
train_whole 0.5 fork 7 --at 20
for run in 5 6; do ways_of "$run" | grep -q "of 32 whole" && fail "run $run: $(ways_of "$run")"; done
for run in 7 8; do ways_of "$run" | grep -q "of 32 whole" || fail "run $run: $(ways_of "$run")"; done
[ "$(says 6 last)" = "$(says 5 last)" ] || fail "begun as bf16: $(says 6 last), not $(says 5 last)"
[ "$(says 8 last)" = "$(says 7 last)" ] || fail "begun as whole: $(says 8 last), not $(says 7 last)"
end

exit "$failures"
