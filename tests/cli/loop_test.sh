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

begin "an experiment without epochs among its parameters trains as many as are asked for"
sed 's/epochs = 3, //' "$folder/gather.lua" >"$folder/bare.lua"
run run "$folder/bare.lua" -p fp32 --json
expect_out '"steps":2,'
run run "$folder/bare.lua" -p fp32 --json --epochs 2
expect_out '"steps":5,'
end

begin "a loop that counts no epochs refuses to end after some"
run run simple --epochs 2
expect_status 2
expect_err '^mpbench: --epochs 2: simple counts no epochs, its own loop says when it ends; --steps N ends it sooner$'
end

begin "more batches than there are in all epochs are refused"
sed 's/batch = 1 }/batch = 5 }/' "$folder/gather.lua" >"$folder/few.lua"
run run "$folder/few.lua" --epochs 2 --json
expect_out '"steps":1,'
run run "$folder/few.lua" --epochs 1
expect_err '2 batches are fewer than the 4 that one step accumulates'
end

begin "a clip without sense is refused before the data are read"
for clip in -1 0 0/0 math.huge; do
    sed "s|accumulate = 4,|clip = $clip,|; s|data = function() return|data = function() error 'read' return|" \
        "$folder/gather.lua" >"$folder/clip.lua"
    run run "$folder/clip.lua" -p fp32
    expect_error 1 'clip: a positive, finite norm expected, got'
done
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

begin "a run that is shorter than its warm-up ends in it, and says so"
sed 's/linear_warmup {}/linear_warmup { warmup = 3 }/' "$folder/last.lua" >"$folder/warm.lua"
run run "$folder/warm.lua" -p fp32 --json --steps 2
expect_status 0
expect_out '"weight":-6.222'
expect_err 'the run ends within the warm-up of its schedule: 2 steps of 3'
run run "$folder/warm.lua" -p fp32 --json --steps 3
expect_status 0
! grep -q 'warm-up' "$folder/err" || fail "what is as long as its warm-up is told"
end

# ---- an average of the weights ---------------------------------------------------------------------

# Weights -7, -13, -18, -22, -25, -27 and -28, of which by hand, from 0 on: half of what it was and
# half of the weight. Evaluations between the steps must leave the weights as they were.
begin "a declared average moves with each step, and is what is evaluated"
sed 's/accumulate = 4,/accumulate = 4, average = 0.5,/' "$folder/last.lua" >"$folder/mean.lua"
run run "$folder/mean.lua" -p fp32 --json --name mean
expect_status 0
expect_out '"weight":-26.0703125[,}]'
run run "$folder/mean.lua" -p fp32 --json --steps 2
expect_out '"weight":-7[,}]' # of -7 and -10.5
sed 's/epochs = 3 }/epochs = 3, decay = 0.5 }/; s/accumulate = 4,/accumulate = 4, average = function(p) return p.decay end,/' \
    "$folder/last.lua" >"$folder/chosen.lua"
run run "$folder/chosen.lua" -p fp32 --json
expect_out '"weight":-26.0703125[,}]'
run run "$folder/chosen.lua" -p fp32 --json --set decay=0
expect_out '"weight":-28[,}]'
end

begin "a step that is skipped leaves a declared average alone, and a fork goes on with it"
sed 's|return m(b.x):sum() end|return m(b.x):sum() * (opt:lr() > 4 and opt:lr() < 6 and 1 / 0 or 1) end|' \
    "$folder/mean.lua" >"$folder/skips.lua"
run run "$folder/skips.lua" -p fp32 --loss-scale dynamic --json
expect_status 0
expect_out '"applied":2,"skipped":5'
expect_out '"weight":-8.25[,}]' # of -7 and -13
run fork mean --at 3 --name again --json
expect_status 0
expect_out '"weight":-26.0703125[,}]'
end

begin "an average without sense is refused before the data are read, in one line"
for decay in -0.5 1 0/0 'function() return "half" end'; do
    sed "s|accumulate = 4,|average = $decay,|; s|data = function() return|data = function() error 'read' return|" \
        "$folder/gather.lua" >"$folder/decay.lua"
    run run "$folder/decay.lua" -p fp32
    expect_error 1 'average: a decay from 0 to below 1 expected, got'
done
end

# ---- an evaluation that fails ---------------------------------------------------------------------

begin "an evaluation that cannot be made is found before the first step"
sed 's/eval = .*/eval = function(m, b) return m(b.x) end,/' "$folder/last.lua" >"$folder/wrong.lua"
run run "$folder/wrong.lua" -p fp32 --name wrong
expect_error 1 'eval: the function must return a table of named values, it returned a tensor'
[ "$(says wrong steps)" = 0 ] || fail "it made $(says wrong steps) steps"
end

begin "what eval calls a loss stands beside that of the training, and no series of the run is taken"
sed 's/eval = .*/eval = function() return { loss = 77 } end, leads = "test_loss",/' "$folder/last.lua" >"$folder/own.lua"
run run "$folder/own.lua" -p fp32 --json
expect_status 0
expect_out '"test_loss":77[,}]'
[ "$(result_of loss)" != 77 ] || fail "it stands in the place of the training's loss"
for taken in grad_norm scale; do
    sed "s/eval = .*/eval = function() return { $taken = 1 } end,/" "$folder/last.lua" >"$folder/taken.lua"
    run run "$folder/taken.lua" -p fp32 --name "taken-$taken"
    expect_error 1 "eval: $taken: the run records a series of this name by itself"
    [ "$(says "taken-$taken" steps)" = 0 ] || fail "it made $(says "taken-$taken" steps) steps"
done
sed 's/eval = .*/eval = function() return { loss = 1, test_loss = 2 } end,/' "$folder/last.lua" >"$folder/both.lua"
run run "$folder/both.lua" -p fp32
expect_error 1 'eval: its loss is recorded as test_loss, which it returns as well'
end

begin "what an evaluation takes of chance and of the data is put back where it was but tried"
cat >"$folder/tried.lua" <<'LUA'
local mp = require "mp" local nn, F = mp.nn, mp.fn
local calls = 0
return mp.experiment { name = "tried", params = { epochs = 1 },
  data = function()
    local both = mp.data.tensors { x = mp.randn(12, 2), y = mp.ones(12, 1), batch = 2, shuffle = true }
    return { train = both, test = both }
  end,
  model = function() return nn.Linear(2, 1) end,
  loss = function(model, b)
    print(("%d %.9g %.9g %.9g"):format(calls, b.x:sum():item(), mp.rand(1):item(), math.random()))
    calls = 0
    return F.mse(model(b.x), b.y)
  end,
  eval = function(_, b) calls = calls + 1 return { seen = b.x:sum() + mp.rand(1) * math.random() } end,
  optim = function(params) return mp.optim.SGD(params, { lr = 0.1 }) end }
LUA
sed '/eval = /d' "$folder/tried.lua" >"$folder/untried.lua"
run run "$folder/tried.lua" -p fp32 --no-history --quiet
expect_status 0
cut -d' ' -f2- "$folder/err" >"$folder/tried"
[ "$(head -n 1 "$folder/err" | cut -d' ' -f1)" = 1 ] || fail "not tried on one batch: $(head -n 1 "$folder/err")"
run run "$folder/untried.lua" -p fp32 --no-history --quiet
expect_status 0
cut -d' ' -f2- "$folder/err" | cmp -s - "$folder/tried" || fail "the run is another one"
end

# ---- what the script does after its last step ----------------------------------------------------

cat >"$folder/average.lua" <<'LUA'
local mp = require "mp" local nn = mp.nn
return mp.experiment { name = "average", params = { steps = 3 }, run = function(run)
    local net = run:model(nn.Linear(1, 1, { bias = false }))
    net.weight:copy(mp.zeros(1, 1))
    local opt, scaler = mp.optim.SGD(net:parameters(), { lr = 1 }), run:scaler()
    local average = mp.optim.EMA(net, 0.5)
    for step = 1, run.params.steps do
        opt:zero_grad()
        scaler:scale(net.weight:sum()):backward()
        scaler:step(opt)
        scaler:update()
        average:update(opt)
    end
end }
LUA

begin "an export holds the last move of an average"
run run "$folder/average.lua" -p fp32 --loss-scale none --name average
"$mpbench" export average --format safetensors -o "$folder/average.safetensors" 2>"$folder/err"
cat >"$folder/read.lua" <<'LUA'
local mp = require "mp"
return mp.experiment { name = "read", run = function()
    for name, t in pairs(mp.load "average.safetensors") do
        if name:find "weight" then print(name, t:sum():item()) end
    end
end }
LUA
run run "$folder/read.lua" --no-history
expect_err 'average0/weight.*-2.125'
expect_err 'weight/weight.*-3'
end

begin "a run can be gone on with from its last step all the same"
run fork average --at 3 --set steps=5 --name longer
expect_status 0
[ "$(says longer steps)" = 5 ] || fail "it ended at step $(says longer steps)"
"$mpbench" export longer --format safetensors -o "$folder/average.safetensors"
run run "$folder/read.lua" --no-history
expect_err 'average0/weight.*-4.03125'
end

begin "a script that does nothing more leaves one checkpoint"
sed -e '/local average/d' -e '/average:update/d' "$folder/average.lua" >"$folder/plain.lua"
run run "$folder/plain.lua" -p fp32 --name plain
expect_status 0
"$mpbench" show plain >"$folder/shown"
[ "$(grep -c 'checkpoint of step' "$folder/shown")" -eq 1 ] || fail "not one: $(grep 'checkpoint of' "$folder/shown")"
end

# ---- two losses in turn --------------------------------------------------------------------------

# gan SCALERS: the graph of the fakes is walked for both losses.
gan() {
    cat >"$folder/gan.lua" <<LUA
local mp = require "mp" local nn, F = mp.nn, mp.fn
return mp.experiment { name = "gan", params = { steps = 12 }, run = function(run)
    local G = run:model(nn.Sequential { nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 6) }, "G")
    local D = run:model(nn.Sequential { nn.Linear(6, 8), nn.LeakyReLU(0.2), nn.Linear(8, 1) }, "D")
    local oG, oD = mp.optim.Adam(G:parameters(), { lr = 2e-3 }), mp.optim.SGD(D:parameters(), { lr = 1e-2 })
    local sD, sG = $1
    for _ = 1, run.params.steps do
        local fake = mp.autocast(function() return G(mp.randn(8, 4)) end)
        oD:zero_grad()
        local loss = mp.autocast(function()
            return F.bce_with_logits(D(mp.randn(8, 6) + 1), mp.ones(8, 1))
                + F.bce_with_logits(D(fake:detach()), mp.zeros(8, 1)) end)
        if sD then sD:scale(loss):backward() sD:step(oD) sD:update()
        else loss:backward() oD:step() end
        run:log { loss = loss }
        oG:zero_grad()
        loss = mp.autocast(function() return F.bce_with_logits(D(fake), mp.ones(8, 1)) end)
        if sG then sG:scale(loss):backward() sG:step(oG) sG:update()
        else loss:backward() oG:step() end
        run:log { g = loss }
    end
end }
LUA
}

begin "a step of two losses in turn ends with the second, and can be forked to any format"
gan 'run:scaler(), run:scaler()'
run run "$folder/gan.lua" -p fp16 --checkpoint-every 3 --name pair
expect_status 0
[ "$(says pair steps)" = 12 ] || fail "it made $(says pair steps) steps of 12"
for format in bf16 fp32; do
    run fork pair --at 9 -p $format --name "pair.$format"
    expect_status 0
    [ "$(says "pair.$format" steps)" = 12 ] || fail "the fork made $(says "pair.$format" steps) steps of 12"
done
end

begin "so does one without scalers"
gan nil
run run "$folder/gan.lua" -p fp32 --checkpoint-every 3 --name bare
expect_status 0
[ "$(says bare steps)" = 12 ] || fail "it made $(says bare steps) steps of 12"
run fork bare --at 9 -p bf16
expect_status 0
end

begin "a second loss that comes now and then ends no step"
gan 'run:scaler(), run:scaler()'
sed -e 's/for _ = 1/for step = 1/' -e 's/if sG then sG:scale/if step % 5 ~= 0 then run:log { none = 0 } elseif sG then sG:scale/' \
    "$folder/gan.lua" >"$folder/seldom.lua"
run run "$folder/seldom.lua" -p fp16 --name seldom
expect_status 0
[ "$(says seldom steps)" = 12 ] || fail "it made $(says seldom steps) steps of 12"
end

# ---- scalers that are made for nothing -----------------------------------------------------------

begin "a scaler that is made and never used keeps no step from ending"
cat >"$folder/idle.lua" <<'LUA'
local mp = require "mp" local nn = mp.nn
return mp.experiment { name = "idle", params = { steps = 12 }, run = function(run)
    local net = run:model(nn.Linear(1, 1))
    local opt = mp.optim.SGD(net:parameters(), { lr = 0.1 })
    local unused, scaler = run:scaler(), mp.scaler(8)
    for _ = 1, run.params.steps do
        opt:zero_grad()
        local loss = net(mp.ones(1, 1)):sum()
        scaler:scale(loss):backward()
        scaler:step(opt)
        scaler:update()
        run:log { loss = loss }
    end
    assert(unused)
end }
LUA
run run "$folder/idle.lua" -p fp16 --json
expect_status 0
expect_out '"steps":12,'
expect_out '"scale":{"last":8,'
end

# ---- classes that two files number ---------------------------------------------------------------

cat >"$folder/colours.lua" <<'LUA'
local mp = require "mp"
return mp.experiment { name = "colours", params = { steps = 1, list = false },
  data = function(p)
    local classes = p.list and { "red", "green", "blue" } or nil
    local function file(name)
        return mp.data.csv { path = name, batch = 3, classes = classes }
    end
    return { train = file "train.csv", test = file "test.csv" } end,
  model = function() return mp.nn.Linear(1, 3) end,
  loss = function(model, b) return mp.fn.cross_entropy(model(b.x), b.y) end,
  eval = function(model, b) return { loss = mp.fn.cross_entropy(model(b.x), b.y) } end,
  optim = function(params) return mp.optim.SGD(params, { lr = 0.5 }) end }
LUA
printf '1,red\n2,green\n3,blue\n' >"$folder/train.csv"

begin "a test whose classes have other numbers than those trained on is refused"
printf '1,red\n2,green\n' >"$folder/test.csv"
run run "$folder/colours.lua"
expect_status 1
expect_err "class 0 is blue in train and green in test; give both the same"
run run "$folder/colours.lua" --quiet --set list=true
expect_status 0
printf '1,blue\n2,green\n' >"$folder/test.csv" # those that are there have the same numbers
run run "$folder/colours.lua" --quiet
expect_status 0
end

exit "$failures"
