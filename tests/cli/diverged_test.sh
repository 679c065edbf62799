#!/bin/sh
# shellcheck disable=SC1091,SC2016,SC2034,SC2154 # what shell.sh sets and reads; commands in texts
# A fork whose loss is off its course says whose doing that is: its parent's, before it, its own
# change's, or neither's. $MPBENCH is the program.
. "$(dirname "$0")/../shell.sh"

use_loop
# One weight that is to be 1; from step `leaves` on the loss is another.
cat >"$folder/leaves.lua" <<'LUA'
local mp = require "mp"
local F = mp.fn
return mp.experiment { name = "leaves", params = { lr = 0.1, leaves = 0, steps = 300, mark = 0 }, run = function(run)
    local p = run.params
    local net = run:model(mp.nn.Linear(1, 1, { bias = false }), "fc")
    local opt = mp.optim.SGD(net:parameters(), { lr = p.lr })
    require "loop" (run, opt, p.steps, function(step)
        local loss = F.mse(net(mp.ones(1, 1)), mp.ones(1, 1)) + 0.1
        return p.leaves > 0 and step > p.leaves and loss + 100 or loss
    end)
end }
LUA
# one OPTION..: the run, of which it leaves what it says of its divergence in out.
one() {
    run "$@" -p fp32 --threads 1 --json
    expect_status 0
}
forked() { # OPTION..: likewise a fork
    run fork "$@" --json
    expect_status 0
}

begin "a run in fp32 is not told to take fp32"
one run "$folder/leaves.lua" --name broken --set leaves=150
expect_out 'over 10 times that from step 151 on, 20 times in a row: `mpbench fork broken --at 76` before it with one change: a lower rate"'
end

begin "a fork from a state that has left already is told so, and where before that to fork"
forked broken --at 200 --set mark=1 --name late --checkpoint-every 20
expect_out 'is over 10 times that: run 1, that it was forked from at step 200, had diverged by step 151 already; fork before it'
expect_out 'see what the change does: `mpbench fork 1 --at 76 --set mark=1`"'
forked late --at 285 --set mark=2 --steps 400 # and the one from that one
expect_out 'run 2, that it was forked from at step 285, had diverged by step 151 already; .* `mpbench fork 1 --at 76 --set mark=2`"'
end

begin "a fork is not forked from before its own beginning, which is its parent's, nor where it kept nothing"
run fork late --at 150
expect_usage_error '--at 150: run late began at step 200, as a fork of run 1: fork that one, .mpbench fork 1 --at 150.$'
: >"$folder/checkpoints/$(($("$mpbench" ls | wc -l)))" # where the next run's are to lie
forked broken --at 200 --set mark=1 --name bare
run fork bare --at 230
expect_usage_error "--at 230: run bare, a fork of run 1 at step 200, has no checkpoint up to there; .mpbench show. lists"
end

begin "a comparison tells of a run that diverged within the steps that are compared"
one run "$folder/leaves.lua" --name short --set lr=0.05 --set steps=100
run compare broken short
expect_status 0
expect_no_out 'had diverged by step'
one run "$folder/leaves.lua" --name long --set lr=0.05
run compare broken long
expect_out '; [^;]* had diverged by step'
end

begin "a comparison tells of both by which step, and what a fork began with is not laid at its door"
run compare long late broken
tr '\n' ' ' <"$folder/out" | tr -s ' ' >"$folder/line"
grep -q '; [^;]*mark=1 had diverged by step 151 (a loss of 0.1 before, 100 in the end), as run 1 had already when it was forked from that at step 200; ' "$folder/line" ||
    fail "of the fork: $(cat "$folder/line")"
grep -q '; [^;]*mark=0 had diverged by step 151 (a loss of 0.1 before, 100 in the end); ' "$folder/line" || fail "of its parent: $(cat "$folder/line")"
end

begin "one without a change of its own is told what the run was told"
forked broken --at 160 --steps 250
expect_out 'run 1, that it was forked from at step 160, had diverged by step 151 already; fork before it with one change, `mpbench fork 1 --at 76`: a lower rate"'
forked broken --at 200 --steps 250
expect_out 'from step 151 on, 20 times in a row: `mpbench fork broken --at 76` before it with one change'
end

begin "a fork that leaves by its own change is not sent to its parent, which did not"
one run "$folder/leaves.lua" --name sound
sound=$(value_of id)
forked sound --at 150 --set lr=1.5
expect_out "; without --set lr=1.5 run $sound, that it was forked from at step 150, held its course: that change did it; fork it with another, or with less of it: \`mpbench fork $sound --at 150\`\""
forked sound --at 290 --set lr=1.5 --set steps=400 # the parent was not trained so far
expect_out "lower rate; run $sound, that it was forked from at step 290, ended at step 300, and does not tell whether --set lr=1.5 --set steps=400 did it\""
end

begin "a fork whose change averts nothing is told so"
forked broken --at 100 --set mark=1
expect_out '; run 1, that it was forked from at step 100, left at the same step without --set mark=1: `mpbench fork 1 --at 76` before it with another change: a lower rate"'
forked broken --at 100 --set leaves=120
expect_out '; run 1, that it was forked from at step 100, left 30 steps later without --set leaves=120: `mpbench fork 1 --at 61` before it with another change'
forked broken --at 100 --set leaves=170
expect_out '; run 1, that it was forked from at step 100, left 20 steps earlier without --set leaves=170'
end

begin "a loss that only changes its sign has not diverged"
cat >"$folder/signed.lua" <<'LUA'
local mp = require "mp"
return mp.experiment { name = "signed", params = { steps = 10 }, run = function(run)
    local net = run:model(mp.nn.Linear(1, 1, { bias = false }), "fc")
    local opt = mp.optim.SGD(net:parameters(), { lr = 0.1 })
    local step = 0
    require "loop" (run, opt, run.params.steps, function()
        step = step + 1
        local losses = { -0.5, -0.4, -0.3, -0.2, -0.1, 1e-5, 0.1, 0.2, 0.3, 0.4 }
        return net(mp.ones(1, 1)):sum() * 0 + losses[step]
    end)
end }
LUA
one run "$folder/signed.lua" --name signed
expect_no_out 'the loss grew'
end
exit "$failures"
