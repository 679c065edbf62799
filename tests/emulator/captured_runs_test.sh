#!/bin/sh
# shellcheck disable=SC1091,SC2034,SC2154 # what shell.sh sets, reads and calls
# Trainings on the emulated card whose steps are captured as graphs, beside the same without: the
# same bits whatever happens between two steps, and graphs there are.
. "$(dirname "$0")/../shell.sh"

use_emulated_card captured_runs

# Of what may happen in a training something happens every few steps.
cat >"$folder/turns.lua" <<'LUA'
local mp = require "mp"
local nn, F = mp.nn, mp.fn
return mp.experiment { name = "turns", params = { steps = 64, adam = false, scaled = false, wrong = 0 }, run = function(run)
    local p = run.params
    local Net = nn.class "Net"
    function Net:init()
        self.fc1, self.norm, self.drop = nn.Linear(16, 24), nn.BatchNorm(24), nn.Dropout(0.2)
        self.fc2 = nn.Linear(24, 4)
    end
    function Net:forward(x) return self.fc2(self.drop(F.relu(self.norm(self.fc1(x))))) end
    local net = run:model(Net())
    local opt = p.adam and mp.optim.AdamW(net:parameters(), { lr = 1e-2 })
        or mp.optim.SGD(net:parameters(), { lr = 1e-2, momentum = 0.9 })
    local scaler = run:scaler()
    local data = mp.data.tensors { x = mp.randn(64, 16), y = mp.randint(4, 64), batch = 8, shuffle = true }
    local function batches() while true do for b in data do coroutine.yield(b) end end end
    local next_batch = coroutine.wrap(batches)
    local unknown = mp.data.tensors { x = mp.randn(64, 16), y = mp.randint(40, 64), batch = 8, shuffle = true }
    for step = 1, p.steps do
        local b = next_batch()
        if step == p.wrong then for other in unknown do b = other break end end
        local x, y, at = b.x, b.y, step
        if at == 34 then x, y = x:slice(1, 1, 5), y:slice(1, 1, 5) end
        opt:zero_grad()
        local loss = mp.autocast(function() return F.cross_entropy(net(x), y) end)
        scaler:scale(loss):backward()
        if at == 38 then run:event("loss " .. loss:item()) end
        scaler:step(opt)
        if at == 42 and p.scaled then scaler:update(512) else scaler:update() end
        run:log { loss = loss }
        if at == 18 then net:find "fc1":precision "fp32" end
        if at == 26 then net:find "fc1":precision "auto" end
        if at == 46 then
            net:eval()
            mp.no_grad(function() run:log { held = F.accuracy(net(x), y) } end)
            net:train()
        end
        if at == 50 then run:checkpoint() end
        if at == 54 then opt:lr(5e-3) end
    end
end }
LUA

# same NAME LEAST OPTION...: with graphs, LEAST at least, and without.
same() {
    what=$1 least=$2
    shift 2
    MPBENCH_EMULATOR="${settings:-},report=1" "$mpbench" run "$folder/turns.lua" -d gpu --quiet "$@" --name "$what" \
        >"$folder/out" 2>"$folder/err" || fail "$what: $(grep '^mpbench' "$folder/err")"
    graphs=$(sed -n 's/^emulator: .* \([0-9]*\) graphs, .*;.*/\1/p' "$folder/err")
    [ "${graphs:-0}" -ge "$least" ] || fail "$what: ${graphs:-0} graphs, not $least"
    MPBENCH_EMULATOR="${settings:-},report=1" "$mpbench" run "$folder/turns.lua" -d gpu --quiet --no-capture "$@" --name "$what-plain" \
        >"$folder/out" 2>"$folder/err" || fail "$what, not captured: $(grep '^mpbench' "$folder/err")"
    grep -q ' 0 graphs, [0-9]* products; ' "$folder/err" || fail "$what: --no-capture captures"
    ! grep '^emulator' "$folder/err" | grep -qv ' calls, ' || fail "$what: $(grep '^emulator' "$folder/err" | head -n 1)"
    expect_same_known "$what" "$what-plain"
}

begin captured_steps_are_the_same_to_the_bit_whatever_happens_between_them
same fp32 20 -p fp32
same fp16 20 -p fp16 --set scaled=true
same bf16 20 -p bf16 --set adam=true
end

begin captured_steps_are_the_same_to_the_bit_in_formats_whose_factors_share_scales
same fp8 20 -p fp8
same fp8-current 20 -p fp8 --recipe fp8=current
same fp8-chance 20 -p fp8 --recipe fp8=current,rounding=random
same mxfp8 20 -p mxfp8
same nvfp4 20 -p nvfp4
end

begin captured_steps_are_the_same_to_the_bit_where_steps_are_skipped
same skips 20 -p fp16 --loss-scale megatron --set adam=true
run show skips --json
expect_out '"skipped":[1-9]'
end

begin captured_steps_are_the_same_to_the_bit_however_the_card_behaves
settings=streams=shuffled,order=shuffled same shuffled 20 -p fp16
settings=dnn=right,libraries=0 same alone 20 -p bf16
end

begin a_fork_of_captured_steps_ends_as_its_parent_did
run fork fp16 --at 50 --name again --quiet
expect_status 0
keep_known fp16 "$folder/a"
keep_known again "$folder/b"
cmp -s "$folder/a.weights" "$folder/b.weights" || fail "other weights"
for side in a b; do # a fork has no column of what was evaluated before it
    tail -n 14 "$folder/$side.csv" | sed 's/ *$//' >"$folder/$side.last"
done
cmp -s "$folder/a.last" "$folder/b.last" || fail "other losses: $(diff "$folder/a.last" "$folder/b.last" | sed -n 2p)"
end

# What kernels find wrong with values they tell in a graph too, in the same words.
begin a_wrong_value_in_a_captured_step_is_told
run run "$folder/turns.lua" -d gpu -p fp32 --quiet --set wrong=30
expect_status 1
captured=$(grep '^mpbench' "$folder/err")
run run "$folder/turns.lua" -d gpu -p fp32 --quiet --set wrong=30 --no-capture
expect_status 1
expect_err 'cross_entropy.*class [0-9]* '
[ "$captured" = "$(grep '^mpbench' "$folder/err")" ] || fail "$captured, not $(grep '^mpbench' "$folder/err")"
end

# A number of the script's that is another in each step: a step of it is never like another.
begin a_number_of_a_script_that_changes_is_never_frozen
sed 's/F.cross_entropy(net(x), y) end/F.cross_entropy(net(x), y) * (1 + 1 \/ step) end/' "$folder/turns.lua" >"$folder/numbers.lua"
! cmp -s "$folder/numbers.lua" "$folder/turns.lua" || fail "the script is the one before"
cp "$folder/numbers.lua" "$folder/turns.lua"
same numbers 0 -p fp32
[ "$graphs" = 0 ] || fail "$graphs graphs of steps that differ"
keep_known fp32 "$folder/a"
! cmp -s "$folder/a.csv" "$folder/b.csv" || fail "the number changes nothing"
end

# What the driver itself counts, whoever asks it: a run of two steps takes as much of it as one of many.
cat >"$folder/images.lua" <<'LUA'
local mp = require "mp"
local nn, F = mp.nn, mp.fn
return mp.experiment { name = "images", params = { epochs = 4 }, clip = 1.0,
    data = function()
        return { train = mp.data.tensors { x = mp.randn(64, 12, 12, 1), y = mp.randint(4, 64), batch = 8, shuffle = true } }
    end,
    model = function()
        return nn.Sequential { nn.Conv2d(1, 8, 3, { activation = "relu" }), nn.BatchNorm(8), nn.MaxPool2d(2),
            nn.Flatten(), nn.Dropout(0.1), nn.Linear(200, 4) }
    end,
    optim = function(parameters) return mp.optim.Adam(parameters, { lr = 1e-3 }) end,
    loss = function(m, b) return F.cross_entropy(m(b.x), b.y) end }
LUA
begin no_memory_is_taken_of_the_driver_after_the_second_step
for experiment in simple "$folder/images.lua"; do
    for steps in 2 24; do
        MPBENCH_EMULATOR=report=1 run run "$experiment" -d gpu -p fp16 --steps $steps --quiet
        expect_status 0
        sed -n 's/^emulator: .* \([0-9]*\) blocks taken, .*/\1/p' "$folder/err" >"$folder/taken.$steps"
    done
    [ -s "$folder/taken.2" ] || fail "$experiment: nothing is counted"
    cmp -s "$folder/taken.2" "$folder/taken.24" ||
        fail "$experiment: $(cat "$folder/taken.2") blocks in two steps, $(cat "$folder/taken.24") in 24"
done
end

begin a_library_that_is_not_captured_is_launched_call_by_call_and_it_is_said_once
MPBENCH_EMULATOR=products=uncaptured run run "$folder/images.lua" -d gpu -p bf16 --steps 12 --quiet --name shy
expect_status 0
run show shy
expect_out 'steps.captured 0.000'
[ "$(grep -c 'cuBLASLt does not let itself be captured' "$folder/out")" = 1 ] || fail "it is not said once"
end

if [ -n "${MPBENCH_SOAK:-}" ]; then
    begin captured_steps_are_the_same_to_the_bit_with_every_scaler
    for scaler in none 1024 torch apex keras deepspeed fairseq logmax adaptive; do
        same "$scaler" 20 -p fp16 --loss-scale "$scaler"
        same "$scaler-adam" 20 -p fp16 --loss-scale "$scaler" --set adam=true --set scaled=true
    done
    end
fi

exit "$failures"
