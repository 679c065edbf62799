#!/bin/sh
# shellcheck disable=SC1091,SC2034,SC2154 # what shell.sh sets and reads
# A layer that is set to a format in which it does not compute: `run` and the answer to `set` say so,
# and why. And kinds to keep in fp32 where nothing is lower.
. "$(dirname "$0")/../shell.sh"

cat >"$folder/kept.lua" <<'LUA'
local mp = require "mp"
return mp.experiment { name = "kept", params = { steps = 4 }, run = function(run)
    local net = run:model(mp.nn.Sequential {
        mp.nn.Embedding(16, 8):named "embed", mp.nn.LayerNorm(8):named "norm", mp.nn.Linear(8, 4):named "head",
    })
    local opt, scaler = mp.optim.SGD(net:parameters(), { lr = 0.01 }), run:scaler()
    for _ = 1, run.params.steps do
        opt:zero_grad()
        local loss = mp.autocast(function()
            return mp.fn.cross_entropy(net(mp.randint(16, 32)), mp.randint(4, 32))
        end)
        scaler:scale(loss):backward()
        scaler:step(opt)
        scaler:update()
        run:log { loss = loss }
    end
end }
LUA
trains() { # OPTION..
    run run "$folder/kept.lua" -d cpu -p bf16 --no-history "$@"
    expect_status 0
}

begin "\`run\` says of a --layer that is kept in fp32 that it stays there"
trains --layer embed=fp16
expect_err "^--layer embed=fp16: embed computes in fp32 nevertheless: embedding is kept in fp32 (--keep-fp32)\$"
trains --layer 'e*=fp16' --layer norm=mxfp8
expect_err "^--layer e\*=fp16: embed computes in fp32 nevertheless"
expect_err "^--layer norm=mxfp8: norm computes in fp32 nevertheless: layer_norm is kept in fp32 (--keep-fp32)\$"
end

begin "\`run\` says nothing where it is not kept, or where another layer takes it"
trains --layer embed=fp16 --keep-fp32 none
! grep -q nevertheless "$folder/err" || fail "it is not kept"
trains --layer '*=fp16'
! grep -q nevertheless "$folder/err" || fail "head takes it"
trains --layer norm=mxfp8 --recipe norms=scaled
! grep -q nevertheless "$folder/err" || fail "the recipe rounds norms"
end

begin "\`run\` says that --keep-fp32 changes nothing where all is in fp32 anyway"
trains -p fp32 --keep-fp32 none
expect_err "^--keep-fp32 none: nothing heeds it so far: without a layer in bf16 or fp16 (-p, --layer) what is no product is in fp32 anyway\$"
for low in "-p bf16" "-p mxfp8" "-p fp32 --layer head=fp16" "-p fp32 --twin bf16"; do
    # shellcheck disable=SC2086 # options
    trains $low --keep-fp32 none
    ! grep -q "heeds it" "$folder/err" || fail "$low heeds it"
done
end

begin "the answer to \`set\` says what does not take its format"
"$mpbench" run "$folder/kept.lua" -d cpu -p bf16 --set steps=100000000 --name live --quiet >/dev/null 2>&1 &
worker=$!
workers="$workers $worker"
i=0
until "$mpbench" ctl live set layer.head=bf16 >/dev/null 2>&1; do
    i=$((i + 1))
    [ $i -lt $((100 * patience)) ] || break
    sleep 0.1
done
run ctl live set layer.embed=fp16
expect_status 0
expect_out "^embed is set to fp16 from step [0-9]* on, but computes in fp32 still: embedding is kept in fp32 (--keep-fp32)\$"
run ctl live set 'layer.*=fp8'
expect_status 0
expect_out "^all layers are fp8 from step [0-9]* on, but embed and 1 more compute in fp32 still: embedding"
run ctl live set layer.head=fp32
expect_out "^head is fp32 from step [0-9]* on\$"
run ctl live stop
wait "$worker"
end
exit "$failures"
