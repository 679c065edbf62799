#!/bin/sh
# shellcheck disable=SC1091,SC2154 # what shell.sh sets and reads
# Where the loop that trains an experiment, its plan, its schedule and its checkpoints must agree,
# and where a step ends. $MPBENCH is the program.
. "$(dirname "$0")/../shell.sh"

# ---- steps that gather several batches -----------------------------------------------------------

cat >"$folder/gather.lua" <<'LUA'
local mp = require "mp" local nn, F = mp.nn, mp.fn
return mp.experiment { name = "gather", params = { epochs = 3, window = 4 },
  data = function() return { train = mp.data.tensors { x = mp.ones(10, 2), y = mp.ones(10, 1), batch = 1 } } end,
  model = function() return nn.Linear(2, 1) end,
  loss = function(model, b) return F.mse(model(b.x), b.y) end,
  schedule = mp.optim.schedule.linear_warmup {},
  accumulate = 4,
  optim = function(params) return mp.optim.SGD(params, { lr = 0.5 }) end }
LUA

# gathers STEPS [OPTION ...]: so many were planned and made, and one checkpoint was kept of the end.
gathers() {
    wanted=$1
    shift
    run run "$folder/gather.lua" -p fp32 --json "$@"
    expect_status 0
    expect_out "\"steps\":$wanted,"
    "$mpbench" show @last >"$folder/shown"
    grep -q "steps  *$wanted of $wanted:" "$folder/shown" || fail "planned: $(grep steps "$folder/shown" | head -n 1)"
    [ "$(grep -c '(end)' "$folder/shown")" -eq 1 ] || fail "not one checkpoint of the end"
    grep -q "checkpoint of step $wanted," "$folder/shown" || fail "the checkpoint is of another step"
}

begin "steps that gather batches over the ends of epochs are as many as were planned"
gathers 7
gathers 2 --epochs 1
gathers 5 --epochs 2
gathers 3 --steps 3
gathers 7 --steps 100
gathers 2 --epochs 1 --steps 4
gathers 1 --epochs 2 --steps 1
end

begin "more batches than there are in all epochs are refused"
sed 's/batch = 1 }/batch = 5 }/' "$folder/gather.lua" >"$folder/few.lua"
run run "$folder/few.lua" --epochs 2 --json
expect_out '"steps":1,'
run run "$folder/few.lua" --epochs 1
expect_err '2 batches are fewer than the 4 that one step accumulates'
end

# The rate of the update that was made last, which moved the weight.
cat >"$folder/last.lua" <<'LUA'
local mp = require "mp" local nn = mp.nn
local model, opt
return mp.experiment { name = "last", params = { epochs = 3 },
  data = function() return { train = mp.data.tensors { x = mp.ones(10, 1), batch = 1 },
    test = mp.data.tensors { x = mp.ones(1, 1), batch = 1 } } end,
  model = function() model = nn.Linear(1, 1, { bias = false }) return model end,
  loss = function(m, b) return m(b.x):sum() end,
  eval = function(m) return { weight = m.weight:sum():item(), rate = opt:lr() } end,
  schedule = mp.optim.schedule.linear_warmup {}, accumulate = 4,
  optim = function(params) params[1]:copy(mp.zeros(1, 1)) opt = mp.optim.SGD(params, { lr = 7 }) return opt end }
LUA

begin "a schedule ends with the run, and its last step is worth making"
run run "$folder/last.lua" -p fp32 --json
expect_out '"weight":-28[,}]'
expect_out '"rate":0[,}]'
run run "$folder/last.lua" -p fp32 --json --steps 2
expect_out '"weight":-10.5[,}]'
end

exit "$failures"
