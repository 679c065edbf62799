#!/bin/sh
# shellcheck disable=SC1091,SC2034,SC2154 # what shell.sh sets and reads
# What formats would do to the gradients of a run: foretold of the format that a run is in, it is what
# was counted; of runs that underflow, that overflow, and that are well.
. "$(dirname "$0")/../shell.sh"

# Gradients of the weights are sums over rows, which alone leave the range of fp16 where x is large.
cat >"$folder/sum.lua" <<'LUA'
local mp = require "mp"
return mp.experiment { name = "sum", params = { size = 1.0, loss = 1.0 }, run = function(run)
    local p = run.params
    local net = run:model(mp.nn.Sequential { mp.nn.Linear(64, 32):named "one" })
    local opt = mp.optim.SGD(net:parameters(), { lr = 1e-30 })
    local scaler = run:scaler()
    for _ = 1, 5 do
        local x = mp.randn(64, 64) * p.size
        opt:zero_grad()
        local loss = mp.autocast(function() return net(x) end):sum() * p.loss
        scaler:scale(loss):backward()
        scaler:step(opt)
        scaler:update()
        run:log { loss = loss }
    end
end }
LUA

counted() { # RUN COLUMN: of the layer's row, in percent
    "$mpbench" show "$1" | awk -v wanted="$2" '
        /^layer / { at = index($0, wanted) + length(wanted) }
        /^one / { print substr($0, 1, at - 1) }' | sed 's/ *%$//; s/.* //; s/<//'
}
foretold() { # RUN KEY: in fp16, in percent
    "$mpbench" show "$1" --what-if=one --json | sed 's/.*"format": *"fp16"//' |
        grep -o "\"$2\": *[0-9.e+-]*" | head -n 1 | awk -F: '{ print 100 * $2 }'
}
agrees() { # RUN COLUMN KEY LEAST MOST
    awk -v a="$(counted "$1" "$2")" -v b="$(foretold "$1" "$3")" -v least="$4" -v most="$5" 'BEGIN {
        if (a == "" || b == "" || a < least || a > most || b - a > 0.5 || a - b > 0.5) print a " counted, " b " foretold" }'
}

begin "what fp16 flushes is what was foretold of it, and scales that suit keep it"
run run "$folder/sum.lua" -d cpu -p fp16 --loss-scale 1 --set loss=2.4e-4 --set size=1e-5 --quiet --name lost
expect_status 0
wrong=$(agrees lost flushed flushed 20 99)
[ -z "$wrong" ] || fail "$wrong"
least=$("$mpbench" show lost --what-if=one --json | sed 's/.*"format": *"fp16"//' | grep -o '"least_loss_scale": *[0-9.e+]*' | head -n 1 | cut -d: -f2)
run run "$folder/sum.lua" -d cpu -p fp16 --loss-scale "$least" --set loss=2.4e-4 --set size=1e-5 --quiet --name kept
expect_status 0
wrong=$(agrees kept flushed flushed 0 0.6)
[ -z "$wrong" ] || fail "at $least: $wrong"
end

begin "what overflows in fp16 is what was foretold of it"
run run "$folder/sum.lua" -d cpu -p fp16 --loss-scale 1 --set size=6000 --quiet --name over
wrong=$(agrees over overflowed overflowed 2 60)
[ -z "$wrong" ] || fail "$wrong"
end

begin "of a run that is well nothing would be lost in formats of enough range"
run run "$folder/sum.lua" -d cpu -p fp16 --loss-scale 1 --quiet --name well
expect_status 0
wrong=$(agrees well flushed flushed 0 0.01)
[ -z "$wrong" ] || fail "$wrong"
run show well --what-if
expect_status 0
expect_out '^layer  *fp32  *tf32  *bf16  *fp16  *e4m3  *e5m2  *fp8  *mxfp8  *mxfp6  *mxfp6_e2m3  *mxfp4  *nvfp4'
expect_out '^one  *0  *0  *0  *0 '
run show well --what-if=one
expect_status 0
expect_out '^one, computed in fp16; its true gradients: largest '
expect_out '^fp16  *2^0  .* 2^-[0-9]* to 2^[0-9]*'
expect_out 'loss scales for step [0-9]*$'
expect_out '^fp8  *own, 2^[0-9.]*  '
expect_out '^mxfp4  *from 2^-*[0-9.]*  *[0-9.]* %  *0 to [0-9.]* %'
end

begin "what is not finite already is told apart, and nothing is foretold of it"
run run "$folder/sum.lua" -d cpu -p fp16 --loss-scale 1e6 --quiet --name gone
run show gone --what-if
expect_status 0
expect_out '^layer  *came as *$'
expect_out '^one  *100.00 % not finite *$'
end

begin "where all gradients are zero no number looks healthy"
run run "$folder/sum.lua" -d cpu -p fp16 --loss-scale 1 --set loss=0 --quiet --name none
run show none --what-if
expect_status 0
expect_out '^layer  *came as *$'
expect_out '^one  *all zero *$'
run show none --what-if=one
expect_out '^one, computed in fp16; its true gradients were all zero when they came'
expect_no_out '^fp16'
expect_no_out '^tf32'
run show none --what-if --json
expect_out '"format":"fp16","element":"fp16","scale":[0-9.]*,"flushed":null'
end

begin "a layer that is not there is named, with the nearest"
run show well --what-if=on
expect_usage_error 'well has no such layer; did you mean one?'
run show well --what-if two
expect_usage_error 'two is one argument too many'
end
exit "$failures"
