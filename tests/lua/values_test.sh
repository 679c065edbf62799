#!/bin/sh
# shellcheck disable=SC1091,SC2034,SC2154 # what shell.sh sets, reads and calls
# Values that kernels refuse end a run that does not catch the error, in the same words on each device:
# ref and cpu, or that which MPBENCH_TEST_DEVICE names (tests/device.h), though it finds them later.
. "$(dirname "$0")/../shell.sh"

# refuses WORDS CALL: a run that makes the call, and never looks at what it gives.
refuses() {
    words=$1
    cat >"$folder/value.lua" <<LUA
local mp = require "mp"
local nn, F = mp.nn, mp.fn
return mp.experiment { name = "value", run = function(run)
    local rows, wrong = mp.zeros(2, 3), mp.tensor({ 1, 7 }, "int32")
    local net = run:model(nn.Linear(3, 3))
    local opt = mp.optim.SGD(net:parameters(), { lr = 1e-2 })
    for step = 1, 40 do
        opt:zero_grad()
        if step == 20 then $2 end
        F.mse(net(rows), rows):backward()
        opt:step()
    end
end }
LUA
    for device in ${MPBENCH_TEST_DEVICE:-ref cpu}; do
        run run "$folder/value.lua" -d "$device" -p fp32 --quiet
        expect_status 1
        expect_err "^mpbench: .*$words"
        [ "$(grep -c '^mpbench: ' "$folder/err")" -eq 1 ] || fail "$device: not one line: $(grep '^mpbench: ' "$folder/err" | tr '\n' ' ')"
        run show @last --json
        expect_out '"status":"failed"'
        # Nothing is taken for trained that came after it.
        steps=$(says @last steps)
        if [ "${steps:-0}" -lt 19 ] || [ "$steps" -gt 24 ]; then fail "$device: it ended at step $steps"; fi
    done
}

begin classes_past_the_end_end_a_run
refuses 'cross_entropy: class 7 at row 2: the logits have 3 classes' 'F.cross_entropy(rows, wrong)'
refuses '\(class\|index\) 7 at' 'F.nll(F.log_softmax(rows), wrong)'
end

begin indices_past_the_end_end_a_run
refuses 'embedding: ' 'F.embedding(wrong, rows)'
refuses 'index 7' 'F.gather(rows, 2, wrong:reshape(2, 1))'
end

exit "$failures"
