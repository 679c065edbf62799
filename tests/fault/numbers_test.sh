#!/bin/sh
# shellcheck disable=SC1091,SC2034,SC2154,SC2317 # what faults.sh sets, reads and calls
# Numbers that go wrong: not finite in the data, the loss or the gradients, scales at their end,
# gradients of zero, precision changed in the middle, and calls of the scaler out of turn. Rows 61
# to 65 of the list of faults.
. "$(dirname "$0")/faults.sh"

# training NAME LOSS [SETUP]: 60 steps of a layer "fc1" and a layer "head", whose loss is an
# expression in `loss` and `step`.
training() {
    experiment "$1" <<LUA
local net = run:model(nn.Sequential { nn.Linear(8, 8):named "fc1", nn.Linear(8, 4):named "head" })
local opt = mp.optim.SGD(net:parameters(), { lr = 0.1, momentum = 0.9 })
local scaler = run:scaler()
local x, y = mp.randn(4, 8), mp.randint(4, 4)
local function weight() return net:parameters()[1]:clone() end
local first = weight()
for step = 1, 60 do
    opt:zero_grad()
    local loss = mp.autocast(function() return F.cross_entropy(net(x), y) end)
    loss = $2
    scaler:scale(loss):backward()
    scaler:step(opt)
    scaler:update()
    run:log { loss = loss }
end
run:result { moved = F.abs(weight() - first):max() }
LUA
}

# in_precision NAME PRECISION [options]
in_precision() {
    name=$1 precision=$2
    shift 2
    run_case "$name" -p "$precision" --json "$@"
}

# ---- 61: data -----------------------------------------------------------------------------------

for kind in nan inf; do
    case $kind in nan) value='0/0' ;; *) value='1/0' ;; esac
    printf 'mp.data.tensors { x = mp.tensor { { 1, 2 }, { 3, %s } }, batch = 1 }\n' "$value" |
        experiment "data_with_$kind"
    refused "data_with_$kind" "data_with_$kind.lua:2:" "$kind" 'index 4'
done

# ---- 62: loss and gradients ---------------------------------------------------------------------

training one_infinite_loss 'step == 30 and loss * math.huge or loss'
for precision in fp32 bf16 fp16; do
    in_precision one_infinite_loss "$precision"
    expect_status 0
    wants_json '"status":"finished"' '"skipped":1' '"applied":59'
    verdict "one_infinite_loss_$precision"
done

# Of that one step the gradient in fp16 is not finite, and the loss is.
training a_skip_names_its_layer 'step == 30 and loss + (loss - loss:detach()) * 1e30 or loss'
in_precision a_skip_names_its_layer fp16
expect_status 0
wants_json '"skipped":1'
"$mpbench" show @last >"$folder/out"
expect_out 'step 30 skipped: gradient of head.weight not finite, scale 65536 -> 32768'
end

training one_loss_of_nan 'step == 1 and loss * (0 / 0) or loss'
in_precision one_loss_of_nan fp16
expect_status 0
wants_json '"status":"finished"' '"skipped":1' '"applied":59'
verdict one_loss_of_nan_fp16

# ---- 63: scale collapse -------------------------------------------------------------------------

# 16 halvings from 65536 to the floor of 1, and 20 skips there.
training always_infinite 'loss * math.huge'
in_precision always_infinite fp16
expect_error 1
wants_text '20 steps in a row' 'head.weight' 'forward' 'the loss scale at 1,'
wants_json '"status":"failed"' '"skipped":36' '"applied":0' '"kind":"scale_floor"'
verdict scale_collapse
for scale in none 1024; do
    in_precision always_infinite fp16 --loss-scale "$scale"
    expect_error 1
    wants_text '20 steps in a row' 'head.weight'
    wants_json '"status":"failed"' '"skipped":20' '"applied":0'
    verdict "scale_collapse_$scale"
done

# The loss is finite, its gradient in fp16 is not, whatever the scale.
training overflow_on_the_way_back 'loss + F.cross_entropy(net(x), y):detach() * 0 + (loss - loss:detach()) * 1e30'
in_precision overflow_on_the_way_back fp16
expect_error 1
wants_text 'backward' 'head'
wants_json '"status":"failed"'
verdict scale_collapse_on_the_way_back

# ---- 64: zeros, and scales that grow ------------------------------------------------------------

training all_zero 'loss * 0'
for precision in fp32 fp16; do
    in_precision all_zero "$precision"
    expect_status 0
    wants_json '"status":"finished"' '"skipped":0' '"applied":60' '"moved":0'
    verdict "all_zero_gradients_$precision"
done

experiment scale_overflow <<'LUA'
local w = nn.Parameter(mp.zeros(2))
local opt = mp.optim.SGD({ w }, { lr = 1 })
local scaler = mp.scaler { init = 1e38, growth = 16, interval = 1, ceiling = 3e38 }
for _ = 1, 5 do
    opt:zero_grad()
    scaler:scale((w * 0):sum()):backward()
    scaler:step(opt)
    scaler:update()
    assert(math.abs(scaler:get() / 1e38 - 1) < 1e-6, "the scale is " .. scaler:get())
end
LUA
passes scale_overflow

# ---- 65: precision changed in the middle of a step ----------------------------------------------

experiment precision_in_the_middle <<'LUA'
local net = run:model(nn.Sequential { nn.Linear(8, 8):named "fc1", nn.Linear(8, 4):named "head" })
local opt, scaler = mp.optim.SGD(net:parameters(), { lr = 0.1 }), run:scaler()
local x, y = mp.randn(4, 8), mp.randint(4, 4)
local function format() return mp.autocast(function() return net(x):dtype() end) end
for step = 1, 6 do
    opt:zero_grad()
    local loss = mp.autocast(function() return F.cross_entropy(net(x), y) end)
    local before = format()
    if step == 3 then net:find("head"):precision "fp32" end
    assert(format() == before, "step " .. step .. ": it changed inside the step")
    scaler:scale(loss):backward()
    scaler:step(opt)
    scaler:update()
    run:log { loss = loss }
    local wanted = step < 3 and "bf16" or "fp32"
    if step ~= 3 then assert(format() == wanted, "step " .. step .. ": " .. format()) end
end
LUA
in_precision precision_in_the_middle bf16
expect_status 0
wants_json '"status":"finished"' '"applied":6'
verdict precision_in_the_middle

# ---- calls of the scaler out of turn ------------------------------------------------------------

# out_of_turn NAME TEXT .. < CALLS: what follows a loss that was walked back.
out_of_turn() {
    {
        echo 'local w = nn.Parameter(mp.ones(2)) local opt = mp.optim.SGD({ w }, { lr = 1 }) local scaler = mp.scaler "dynamic" local function back() scaler:scale((w * w):sum()):backward() end'
        cat
    } | experiment "$1"
    refused "$@"
}

out_of_turn unscale_twice unscale_twice.lua:5: 'unscale: called twice' 'step 1' <<'LUA'
back()
scaler:unscale(opt)
scaler:unscale(opt)
LUA
out_of_turn unscale_once_a_micro_batch unscale_once_a_micro_batch.lua:5: 'unscale: called twice' 'accumulate first' <<'LUA'
for _ = 1, 4 do
    back()
    scaler:unscale(opt)
end
scaler:step(opt)
LUA
out_of_turn gradients_added_after_unscale gradients_added_after_unscale.lua:6: 'added after unscale' 'every micro-batch first' <<'LUA'
back()
scaler:unscale(opt)
back()
scaler:step(opt)
LUA
out_of_turn unscale_after_step unscale_after_step.lua:5: 'unscale: called after step' 'update' <<'LUA'
back()
scaler:step(opt)
scaler:unscale(opt)
LUA
out_of_turn step_twice step_twice.lua:5: 'step: called twice' 'update' <<'LUA'
back()
scaler:step(opt)
scaler:step(opt)
LUA
out_of_turn step_before_scale step_before_scale.lua:4: 'before any scale()' <<'LUA'
(w * w):sum():backward()
scaler:step(opt)
LUA
out_of_turn step_without_a_gradient step_without_a_gradient.lua:4: 'no gradient was recorded' 'backward' <<'LUA'
scaler:scale((w * w):sum())
scaler:step(opt)
LUA
out_of_turn update_before_step update_before_step.lua:4: 'update: nothing was checked' 'step' <<'LUA'
back()
scaler:update()
LUA
out_of_turn clip_before_unscale clip_before_unscale.lua:7: 'not unscaled yet' 'threshold 1' '65536' <<'LUA'
back()
scaler:step(opt)
scaler:update()
back()
mp.optim.clip_norm({ w }, 1)
LUA
out_of_turn scale_changed_inside_a_window 'the scale changed from 65536 to 32' <<'LUA'
back()
scaler:update(32)
back()
scaler:step(opt)
LUA
out_of_turn update_by_nonsense update_by_nonsense.lua:5: 'update: scale is -1' <<'LUA'
back()
scaler:step(opt)
scaler:update(-1)
LUA
out_of_turn a_step_of_no_scaler a_step_of_no_scaler.lua:3: 'no gradient was recorded' <<'LUA'
opt:step()
LUA

experiment bce_in_fp16 <<'LUA'
local net = run:model(nn.Linear(4, 2))
mp.autocast("fp16", function() return F.bce(F.sigmoid(net(mp.randn(2, 4))), mp.zeros(2, 2)) end)
LUA
refused bce_in_fp16 'bce_in_fp16.lua:3:' 'bce_with_logits'

exit "$failures"
