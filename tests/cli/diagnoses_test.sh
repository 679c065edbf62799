#!/bin/sh
# shellcheck disable=SC1091,SC2034,SC2086,SC2154 # what shell.sh sets and reads; options are words
# Every kind of diagnosis that a small script can provoke: in the progress lines, in --json, in
# show. What takes seconds to be seen (casting, small_kernels) is in tests/unit/run_test.c. And runs
# that are well draw none. $MPBENCH is the program.
. "$(dirname "$0")/../shell.sh"

# experiment NAME STEPS LOSS < SETUP: fc1 and head on 8 numbers a row, `x` of 4 rows; the setup may
# change anything before the loop and set each(step), called before each.
experiment() {
    {
        echo 'local mp = require "mp" local nn, F = mp.nn, mp.fn return mp.experiment { name = "ill", run = function(run)
    local net = run:model(nn.Sequential { nn.Linear(8, 8):named "fc1", nn.Linear(8, 4):named "head" })
    local opt = mp.optim.SGD(net:parameters(), { lr = 0.01 })
    local scaler = run:scaler()
    local x, y, each = mp.randn(4, 8), mp.randint(4, 4), nil'
        cat
        echo "for step = 1, $2 do
        opt:zero_grad()
        if each then each(step) end
        local loss = mp.autocast(function() return $3 end)
        scaler:scale(loss):backward()
        scaler:step(opt)
        scaler:update()
        run:log { loss = loss }
    end
end }"
    } >"$folder/$1.lua"
}
entropy='F.cross_entropy(net(x), y)'

# diagnosed KIND LAYER TEXT EXPERIMENT [OPTION ...]: the run says so everywhere, once.
diagnosed() {
    kind=$1 layer=$2 text=$3
    shift 3
    "$mpbench" run "$@" --json --threads 1 >"$folder/out" 2>"$folder/err" </dev/null
    told "$kind" "$layer" "$text"
}
told() {
    [ "$(grep -o "\"kind\":\"$1\",\"layer\":[\"$2nul]*,\"step\"" "$folder/out" | wc -l)" -eq 1 ] ||
        fail "the JSON has not one $1 of $2: $(sed 's/.*"diagnoses"//' "$folder/out") $(tail -n 2 "$folder/err")"
    expect_err "$3"
    [ "$(grep -c -e "$3" "$folder/err")" -le 3 ] || fail "it is said again and again"
    "$mpbench" show @last >"$folder/shown" 2>&1
    sed -n '/^Diagnoses$/,/^$/p' "$folder/shown" | grep -q -e "$3" || fail "show lacks it"
    grep -q -e "diagnosis *.*$3" "$folder/shown" || fail "show lacks its event"
}

begin "a scale at its floor is diagnosed"
experiment floor 60 "$entropy * math.huge" </dev/null
diagnosed scale_floor head.weight '20 steps in a row skipped with the loss scale at 1,' "$folder/floor.lua" -p fp16
expect_out '"kind":"loss_not_finite"'
end

begin "a loss that is not finite is diagnosed"
experiment loss 5 "$entropy / (step == 2 and 0 or 1)" </dev/null
diagnosed loss_not_finite '' 'loss is inf after step 2: it went wrong on the way forward' "$folder/loss.lua" -p fp16
end

begin "a loss that leaves its course is diagnosed, and in a fork from shortly before it"
experiment leaves 200 "$entropy + (step > 150 and 100 or 0)" </dev/null
diagnosed diverged '' 'over 10 times that from step 151 on, 20 times in a row: .mpbench fork leaves --at 76.' "$folder/leaves.lua" \
    --name leaves
leaves=$(value_of id)
run fork leaves --at 140 --name again --json
expect_out '"kind":"diverged"'
expect_err "over 10 times that from step 151 on, 20 times in a row: .mpbench fork $leaves --at 76. before it" # its parent
end

begin "what is said of a loss in fp16 is said to its end"
sed 's/{ loss = loss }/{ loss_of_the_discriminator_on_what_is_real_and_what_is_not = loss }/' \
    "$folder/loss.lua" >"$folder/long.lua"
diagnosed loss_not_finite '' 'where it began is told$' "$folder/long.lua" -p fp16
end

begin "the layer that overflows on the way forward is diagnosed, and only the first"
experiment overflow 6 "$entropy" <<'LUA'
    x = mp.ones(4, 8) * 3e4
    net:parameters()[1]:copy(mp.ones(8, 8))
LUA
diagnosed forward_overflow fc1 'fc1 gives values past 65504.*--layer fc1=bf16' "$folder/overflow.lua" -p fp16
expect_no_out '"kind":"forward_overflow","layer":"head"'
end

begin "so is one whose values are not numbers for it, and what lies outside of every layer"
experiment beyond 6 "F.cross_entropy(odd(x), y)" <<'LUA'
    local Odd = nn.class "Odd"
    function Odd:init() self.inner = nn.Linear(8, 4) end
    function Odd:forward(t) local h = self.inner(t) return h * 1e4 - h * 1e4 end
    local odd = run:model(Odd(), "odd")
    x = mp.ones(4, 8) * 10
    odd:parameters()[1]:copy(mp.ones(4, 8))
    opt = mp.optim.SGD(odd:parameters(), { lr = 0.01 })
LUA
diagnosed forward_overflow odd 'odd gives values past 65504.*--layer odd=bf16' "$folder/beyond.lua" -p fp16
experiment outside 6 "F.cross_entropy(net(x) * 6e4 * 6e4, y)" <<'LUA'
    x = mp.ones(4, 8) * 100
    net:parameters()[1]:copy(mp.ones(8, 8))
LUA
diagnosed forward_overflow '' 'mul, outside of every layer, gives values past 65504' "$folder/outside.lua" -p fp16
end

# blamed KIND EXPERIMENT OPTION ...: the run has this diagnosis, and none of an overflow.
blamed() {
    kind=$1
    shift
    run run "$@" --json
    expect_out "\"kind\":\"$kind\""
    expect_no_out '"kind":"forward_overflow"'
    expect_no_err 'overflowed'
}
expect_no_err() {
    ! grep -q -e "$1" "$folder/err" || fail "standard error has \"$1\": $(grep -e "$1" "$folder/err" | head -n 1)"
}

begin "data that is not finite is told to be that, and no overflow"
experiment nan_given 6 "$entropy" <<'LUA'
    local given, bad = x, x * (0 / 0)
    each = function(step) x = step > 2 and bad or given end
LUA
for precision in fp16 bf16 fp32; do
    blamed data_not_finite "$folder/nan_given.lua" -p $precision
    expect_err 'what fc1 is given is not finite already, which is no overflow'
done
cat >"$folder/nan_loaded.lua" <<'LUA'
local mp = require "mp" local nn, F = mp.nn, mp.fn
return mp.experiment { name = "loaded", data = function()
        local x = mp.ones(40, 2)
        x = F.where(F.equal(mp.arange(80):to "fp32":reshape(40, 2), 35), 0 / 0, x)
        return { train = mp.data.tensors { x = x, y = mp.zeros(40, 1), batch = 4 } }
    end,
    model = function() return nn.Linear(2, 1) end,
    loss = function(model, b) return F.mse(model(b.x), b.y) end,
    optim = function(params) return mp.optim.SGD(params, { lr = 0.01 }) end }
LUA
blamed data_not_finite "$folder/nan_loaded.lua" -p fp16
expect_err '1 number of x, data to train or test on, is inf or nan, the first in sample 18'
end

# A panel of the screen has two rows for what is said: the remedy has to stand in them.
begin "the layer to set otherwise is named within two rows"
run run "$folder/overflow.lua" -p fp16
expect_err '^.\{1,75\}: use --layer fc1=bf16'
end

begin "a weight that is not finite is told to be that"
experiment nan_weight 6 "$entropy" <<'LUA'
    each = function(step) if step == 3 then net:parameters()[3]:copy(mp.ones(4, 8) * (0 / 0)) end end
LUA
blamed weights_not_finite "$folder/nan_weight.lua" -p fp16
expect_err 'head.weight is not finite, and so will be every loss'
end

begin "an operation that divides by 0 is told to do that"
experiment divides 6 "$entropy + (step > 2 and F.log(x:abs() * 0):mean() or 0)" </dev/null
for precision in fp16 fp32; do
    blamed operation_not_finite "$folder/divides.lua" -p $precision
    expect_err 'log in the script, outside of every layer, gives .*a division by 0 or a logarithm of 0'
done
experiment steep 6 "$entropy" <<'LUA'
    opt = mp.optim.SGD(net:parameters(), { lr = 1e38 })
LUA
blamed operation_not_finite "$folder/steep.lua" -p fp32
expect_err '^linear in .\{1,80\}: lower the learning rate' # in two rows, too
end

# A panel of the screen has two rows for it.
begin "of weights that a rate blew up the rate is to blame, not fp16"
for rate in 1e6 1e5; do
    experiment "rate$rate" 40 "$entropy" <<LUA
    opt = mp.optim.SGD(net:parameters(), { lr = $rate })
LUA
    blamed weights_grew "$folder/rate$rate.lua" -p fp16
    expect_err '^[a-z0-9]*.weight has grown to .\{1,110\}: lower the learning rate'
    expect_no_err 'set that layer to bf16'
done
end

begin "of weights that grew the layer's own is named as the cause, and none that lies behind it"
experiment behind 6 "$entropy" <<'LUA'
    each = function(step)
        if step ~= 3 then return end
        x = mp.ones(4, 8) * 3e4
        net:parameters()[1]:copy(mp.ones(8, 8))
        net:parameters()[4]:copy(mp.ones(4) * 102)
    end
LUA
run run "$folder/behind.lua" -p fp16
expect_err 'fc1 gives values past 65504.*: weights have grown, head.bias most, to 102: lower the'
run show @last --first-nan
expect_out 'remedy  *weights have grown, head.bias most, to 102: a lower learning rate'
sed 's/.1.:copy(mp.ones(8, 8))/&; net:parameters()[2]:copy(mp.ones(8) * 101)/' "$folder/behind.lua" >"$folder/own.lua"
run run "$folder/own.lua" -p fp16
run show @last --first-nan
expect_out 'remedy  *fc1.bias has grown to 101: a lower learning rate'
end

begin "a step on gradients that are still scaled is refused, and no overflow is spoken of"
experiment scaled_step 4 "$entropy" </dev/null
sed -i 's/scaler:step(opt)/opt:step()/' "$folder/scaled_step.lua"
run run "$folder/scaled_step.lua" -p fp16
expect_status 1
expect_err 'the gradient of fc1.weight is not unscaled yet: it is 65536 times the true one'
expect_no_err 'overflow'
end

begin "skips again and again are diagnosed, the way down of a scale is not"
experiment often 34 "$entropy" <<'LUA'
    opt = mp.optim.SGD(net:parameters(), { lr = 1e-9 })
    scaler = mp.scaler { init = 2^20, interval = 1 }
LUA
diagnosed many_skips '' 'of the last [3-6][0-9] steps were skipped: the loss scale grows again after 1 step without overflow' \
    "$folder/often.lua" -p fp16
experiment seldom 80 "$entropy" <<'LUA'
    scaler = mp.scaler { init = 2^24, floor = 1, interval = 2000 }
LUA
run run "$folder/seldom.lua" -p fp16 --json
expect_no_out many_skips
experiment lazily 40 "$entropy" <<'LUA'
    local other = nn.Linear(8, 4):named "other"
    local second, its = mp.optim.SGD(other:parameters(), { lr = 0.01 }), mp.scaler { init = 2^24 }
    function each(step)
        if step % 3 > 0 then return end
        second:zero_grad()
        its:scale(mp.autocast(function() return 4 * F.cross_entropy(other(x), y) end)):backward()
        its:step(second)
        its:update()
    end
LUA
run run "$folder/lazily.lua" -p fp16 --json
expect_out '"skipped":[89],'
expect_no_out many_skips
expect_err 'step 3 skipped: gradient of weight not finite, scale 16777216 -> 8388608;'
experiment bursts 34 "$entropy * (step % 3 == 0 and math.huge or 1)" </dev/null
diagnosed many_skips '' 'of the last [3-6][0-9] steps were skipped, others in between were not: gradients of head.weight' \
    "$folder/bursts.lua" -p fp16 --loss-scale 16
end

begin "a run of which every step was skipped says that nothing was trained"
diagnosed many_skips "" "nothing was trained: all its steps were skipped" simple -p fp16 --loss-scale 1e30 --steps 16
"$mpbench" run simple -p fp16 --loss-scale 1e5 --steps 16 --json >"$folder/out" 2>/dev/null
expect_no_out many_skips
end

begin "of two scalers the one that cannot help is told, at its own scale"
experiment two 60 "$entropy" <<'LUA'
    local other = nn.Linear(8, 4):named "other"
    local second, its = mp.optim.SGD(other:parameters(), { lr = 0.01 }), mp.scaler(2^30)
    function each()
        second:zero_grad()
        its:scale(mp.autocast(function() return F.cross_entropy(other(x), y) end)):backward()
        its:step(second)
        its:update()
    end
LUA
run run "$folder/two.lua" -p fp16
expect_status 1
expect_err 'step 2 skipped: gradient of weight not finite at scale 1073741824;'
expect_err '20 steps in a row were skipped with the loss scale fixed at 1073741824, by .* one that finds its own, mp.scaler "dynamic"'
end

begin "a scale that does not come up again is diagnosed"
experiment stuck 60 "$entropy * (step <= 12 and math.huge or 1)" <<'LUA'
    scaler = mp.scaler "logmax"
LUA
diagnosed scale_stuck '' 'the loss scale has stood at 1 for 30 steps, though gradients .* would fit at' "$folder/stuck.lua" -p fp16
end

begin "what is skipped in fp32 is not advised fp32"
experiment wide 60 "$entropy * math.huge" </dev/null
for precision in fp32 bf16; do
    run run "$folder/wide.lua" -p $precision --loss-scale dynamic
    expect_status 1
    expect_err 'the first that was not finite: data outside of every layer, forward'
    expect_no_err '\(fp16\|bf16\|--layer\)'
done
end

begin "a layer is shown in the format that it was computed in"
experiment plainly 12 "mp.autocast(false, function() return F.cross_entropy(net(x), y) end)" </dev/null
run run "$folder/plainly.lua" -p fp16 --json
expect_out '"name":"fc1","precision":"fp32"'
"$mpbench" show @last | grep -q '^ *fc1  *fp32' || fail "show: $("$mpbench" show @last | grep fc1)"
experiment partly 12 "F.cross_entropy(deep(x), y)" <<'LUA'
    local deep = run:model(nn.Sequential { nn.Linear(8, 8):named "low", nn.LayerNorm(8):named "norm", nn.Linear(8, 4):named "wide" }, "deep")
    deep:find "wide":precision "fp32"
    opt = mp.optim.SGD(deep:parameters(), { lr = 0.01 })
LUA
run run "$folder/partly.lua" -p fp16 --json
expect_out '"name":"deep.low","precision":"fp16"'
expect_out '"name":"deep.norm","precision":"fp32"'
expect_out '"name":"deep.wide","precision":"fp32"'
end

begin "a layer near the end of fp16 is diagnosed"
experiment near 3 "$entropy * 1e-6" <<'LUA'
    x = mp.ones(4, 8) * 7500
    net:parameters()[1]:copy(mp.ones(8, 8))
LUA
diagnosed near_overflow fc1 'fc1 gives values up to 600.*--layer fc1=bf16' "$folder/near.lua" -p fp16
end

begin "a mask whose constant fp16 cannot hold is diagnosed"
experiment mask 3 "F.cross_entropy(F.where(mp.zeros(4, 4):to 'uint8', net(x), -1e9), y)" </dev/null
diagnosed constant_overflow '' 'where: the number -1e+09 meets a tensor in fp16.*take -30000' "$folder/mask.lua" -p fp16
run run "$folder/mask.lua" -p bf16 --json --quiet
expect_no_out constant_overflow
end

begin "gradients that vanish without a scaler are diagnosed"
diagnosed no_scaler '' '% of the gradients became zero in fp16 at scale 1 .*--loss-scale dynamic' \
    underflow --steps 12 -p fp16 --loss-scale none
end

begin "what came as 0 already is told beside what the rounding made 0"
experiment both 12 "F.cross_entropy(deep(x), y) * 1e-5" <<'LUA'
    x, y = mp.randn(64, 8), mp.randint(4, 64)
    local deep = run:model(nn.Sequential { nn.Linear(8, 32):named "in", nn.Tanh(), nn.Linear(32, 32):named "mid",
        nn.Tanh(), nn.Linear(32, 4):named "out" }, "deep")
    opt = mp.optim.SGD(deep:parameters(), { lr = 0.01 })
LUA
diagnosed no_scaler '' '[0-9] % of the gradients became zero in fp16 at scale 1 ([0-9]* % in .*), and a further [0-9]* % had come as 0 ([0-9]* % in deep.[a-z.]*), vanished before or of units that are off: use --loss-scale dynamic' \
    "$folder/both.lua" -p fp16 --loss-scale none
end

begin "a parameter whose gradients vanish at the scale there is is diagnosed"
experiment flushed 12 "$entropy + faint(x * 1e-3):sum() * 1e-10" <<'LUA'
    local faint = run:model(nn.Linear(8, 8), "faint")
    opt = mp.optim.SGD({ net:parameters()[1], faint:parameters()[1] }, { lr = 0.01 })
LUA
diagnosed flushed faint '% of the gradients of faint.weight became zero in fp16 at scale 65536' "$folder/flushed.lua" -p fp16
end

begin "weights that come without their loss scale are diagnosed"
experiment scaled 4 "$entropy * (step == 2 and math.huge or 1)" </dev/null
run run "$folder/scaled.lua" -p fp16 --name scaled --quiet
expect_status 0
"$mpbench" resume scaled --weights-only --json >"$folder/out" 2>"$folder/err" </dev/null
told no_scaler_state '' 'loss scale stood at 32768, and this run begins at 65536'
end

begin "weights without masters are diagnosed"
diagnosed no_masters fc1 'fc1.weight and what is like it is kept in fp16 without an fp32 master: updates under 1/2048' \
    simple --steps 3 -p O3
end

begin "updates below the spacing of the weights are diagnosed"
experiment lost 3 "$entropy" <<'LUA'
    opt = mp.optim.SGD(net:parameters(), { lr = 1e-7 })
LUA
diagnosed lost_updates fc1 'the last update moved fc1.weight by .* of its size: fp16 keeps nothing under 1/2048' "$folder/lost.lua" -p O3
end

begin "updates that are small because a schedule ends are not"
experiment ends 40 "$entropy" <<'LUA'
    opt = mp.optim.SGD(net:parameters(), { lr = 1, schedule = mp.optim.schedule.cosine { total = 20 } })
LUA
run run "$folder/ends.lua" -p O3 --json
expect_status 0
expect_no_out lost_updates
end

begin "a parameter that no gradient reaches is diagnosed"
experiment unused 12 "$entropy" <<'LUA'
    local spare = run:model(nn.Linear(8, 4), "spare")
    opt = mp.optim.SGD({ net:parameters()[1], spare:parameters()[1] }, { lr = 0.01 })
LUA
diagnosed no_gradient spare 'spare.weight had no gradient in 10 steps' "$folder/unused.lua" -p fp32
end

begin "gradients that are all zero while others learn are diagnosed, not those of a frozen layer"
experiment dead 45 'F.cross_entropy(net(F.relu(dead(x * 60000):square() * 0)), y)' <<'LUA'
    local dead = run:model(nn.Sequential { nn.Linear(8, 8):named "in" }, "dead")
    local list = net:parameters()
    for _, one in ipairs(dead:parameters()) do list[#list + 1] = one end
    opt = mp.optim.SGD(list, { lr = 0.01 })
LUA
diagnosed zero_gradients dead.in 'all gradients of dead.in have been zero for 10 steps' "$folder/dead.lua" -p bf16
diagnosed zero_gradients dead.in 'nothing is learnt there; either the loss does not depend on it, or .*a relu' "$folder/dead.lua" -p fp32
expect_no_out '\(NAME=fp32\|--twin\)' # no format is to blame
run run "$folder/dead.lua" -p bf16 --layer dead.in=fp32 --json
expect_out 'zero_gradients'
expect_no_out 'NAME=fp32'
experiment zero 45 "F.cross_entropy(stack(x), y)" <<'LUA'
    local stack = run:model(nn.Sequential { nn.Linear(8, 8):named "in", nn.ReLU(), nn.Linear(8, 8):named "mid",
        nn.ReLU(), nn.Linear(8, 4):named "out" }, "stack")
    stack:parameters()[3]:copy(mp.zeros(8, 8))
    stack:parameters()[4]:copy(mp.zeros(8))
    opt = mp.optim.SGD(stack:parameters(), { lr = 0.01 })
LUA
for precision in fp32 fp16; do
    diagnosed zero_gradients stack.mid 'nothing is learnt there; stack.mid.weight is 0 throughout' "$folder/zero.lua" -p $precision
done
experiment frozen 45 "F.cross_entropy(net(frozen(x)), y)" <<'LUA'
    local frozen = run:model(nn.Linear(8, 8), "frozen")
    for _, one in ipairs(frozen:parameters()) do one:requires_grad(false) end
LUA
for precision in fp16 fp32; do
    run run "$folder/frozen.lua" -p $precision --json
    expect_status 0
    expect_no_out zero_gradients
done
end

begin "gradients that are all zero in all layers from the first step on are diagnosed, not those at the end"
experiment faint 45 "$entropy * 1e-12" </dev/null
diagnosed zero_gradients '' 'all gradients of all layers have been zero in all 39 steps: .*scale 65536 is too small .*the loss (.*e-12) .*--loss-scale 2^5[12], or -p bf16' \
    "$folder/faint.lua" -p fp16 --loss-scale dynamic
for options in "-p bf16" "-p fp16 --loss-scale 2^52"; do
    run run "$folder/faint.lua" $options --json
    expect_status 0
    expect_no_out '\(zero_gradients\|flushed\|no_scaler\)'
done
experiment learnt 45 "$entropy * (step <= 5 and 1 or 0)" </dev/null
experiment nothing 45 "F.mse(net(x), net(x):detach())" </dev/null
for of in learnt nothing; do
    run run "$folder/$of.lua" -p fp16 --json
    expect_status 0
    expect_no_out zero_gradients
done
experiment at_end 1045 "F.relu(1 - net(x * 0):sum()) + 0.001" </dev/null
run run "$folder/at_end.lua" -p fp16 --checkpoint-every 1000 --name at_end --json
expect_no_out zero_gradients
run resume at_end --at 1000 --json
expect_status 0
expect_out '"steps":1045'
expect_no_out zero_gradients
end

begin "bf16 of a layer of no products alone mends what overflows in it in fp16"
experiment by_hand 45 "$entropy" <<'LUA'
    local Norm = nn.class "Norm"
    function Norm:forward(given)
        local wide = given * 3000
        return wide / ((wide * wide):mean({ 2 }, true) + 1):sqrt()
    end
    net = run:model(nn.Sequential { nn.Linear(8, 8):named "fc", Norm():named "norm", nn.Linear(8, 4):named "out" }, "own")
    opt = mp.optim.SGD(net:parameters(), { lr = 0.01 })
LUA
diagnosed zero_gradients own.norm 'all gradients of own.fc have been zero.*on the way forward mul in own.norm gives more than fp16 holds (by_hand.lua:[0-9]*): --layer own.norm=bf16' "$folder/by_hand.lua" -p fp16
run show @last --first-nan
expect_out '^inf at step 39 on the way forward, in the output of mul in own.norm'
tr '\n' ' ' <"$folder/out" | tr -s ' ' >"$folder/line"
grep -q '; the loss is finite, and no gradient comes back through it; ' "$folder/line" || fail "$(cat "$folder/line")"
grep -q 'what led seen first at step 1; told now that gradients have been zero' "$folder/line" || fail "$(cat "$folder/line")"
expect_out '^  *! ! ! ! ! ! ! ! ! ! ! ! ! ! ! ! '
expect_no_out 'came at once'
run run "$folder/by_hand.lua" -p fp16 --layer own.norm=bf16 --json
expect_status 0
expect_no_out zero_gradients
end

begin "an overflow after the first update names the learning rate"
experiment first_update 45 "$entropy" <<'LUA'
    net = run:model(nn.Sequential { nn.Linear(8, 64):named "fc", nn.Linear(64, 4):named "out" }, "own")
    opt = mp.optim.Adam(net:parameters(), { lr = 60 })
LUA
run run "$folder/first_update.lua" -p fp16
run show @last --first-nan
tr '\n' ' ' <"$folder/out" | tr -s ' ' >"$folder/line"
grep -q "what led it came at once: the largest of the layer's outputs was [0-9.]* at step 1, the only one before it" \
    "$folder/line" || fail "$(cat "$folder/line")"
grep -q 'after one update in all a learning rate that is too high is as likely' "$folder/line" ||
    fail "$(cat "$folder/line")"
end

begin "an optimizer that makes no step is diagnosed at the end"
experiment idle 2 "$entropy" <<'LUA'
    local spare = run:model(nn.Linear(8, 4), "spare")
    local other = mp.optim.SGD(spare:parameters(), { lr = 0.01 })
    each = function() other:zero_grad() end
LUA
diagnosed no_gradient spare 'an optimizer over 2 parameters (spare.weight, ..) made no step in 2 of the run' "$folder/idle.lua" -p fp32
end

begin "steps that nobody counts are diagnosed"
cat >"$folder/uncounted.lua" <<'LUA'
local mp = require "mp" return mp.experiment { name = "ill", run = function(run)
    local w = mp.nn.Parameter(mp.ones(2))
    local opt, scaler = mp.optim.SGD({ w }, { lr = 0.01 }), run:scaler();
    (w * w):sum():backward()
    opt:step()
end }
LUA
diagnosed no_step_ended '' 'the optimizers were applied 1 times, but no step was counted' "$folder/uncounted.lua" -p fp32
end

begin "a schedule that a script takes on through skipped steps is diagnosed"
experiment ahead 6 "$entropy * (step == 3 and math.huge or 1)" <<'LUA'
    each = function(step) opt:lr(0.01 / step) end
LUA
diagnosed schedule_on_skip '' 'step 3 was skipped, yet the script took the learning rate on from 0.00333333 to 0.0025' "$folder/ahead.lua" -p fp16
experiment along 6 "$entropy * (step == 3 and math.huge or 1)" <<'LUA'
    each = function() opt:lr(0.01 / (opt:steps() + 1)) end
LUA
run run "$folder/along.lua" -p fp16 --json --quiet
expect_out '"skipped":1'
expect_no_out schedule_on_skip
end

begin "running statistics that are not finite are diagnosed"
experiment poisoned 4 "$entropy" <<'LUA'
    net = run:model(nn.Sequential { nn.Linear(8, 8), nn.BatchNorm(8):named "norm", nn.Linear(8, 4) }, "bn")
    opt = mp.optim.SGD(net:parameters(), { lr = 0.01 })
    each = function(step) if step == 1 then mp.no_grad(function() net(x * (0 / 0)) end) end end
LUA
diagnosed poisoned_statistics bn.norm 'the running statistics of bn.norm are not finite after step 1' "$folder/poisoned.lua" -p fp32
expect_err 'in the buffer running_mean in bn.norm, in fp32, which keeps it for every evaluation'
end

begin "sides that low formats gain little from are diagnosed"
experiment odd 2 "F.cross_entropy(odd(x), y)" <<'LUA'
    local odd = run:model(nn.Sequential { nn.Linear(8, 250):named "up", nn.Linear(250, 4):named "down" }, "odd")
    opt = mp.optim.SGD(odd:parameters(), { lr = 0.01 })
LUA
diagnosed odd_sizes odd.up 'odd.up.weight, used in bf16, has a side of 250.*take 256' "$folder/odd.lua" -p bf16
run run "$folder/odd.lua" -p fp32 --json --quiet
expect_no_out odd_sizes
end

# ---- skipped steps -------------------------------------------------------------------------------

# blames NAME LAYER.weight LIST: the step that is skipped names the parameter and lists all layers.
blames() {
    run run "$folder/$1.lua" -p fp16
    expect_err "step 2 skipped: gradient of $2 not finite, scale 65536 -> 32768;.*; not finite: $3\$"
    "$mpbench" show @last >"$folder/shown" 2>&1
    tr -s '\n ' '  ' <"$folder/shown" | grep -q "gradient of $2 not finite.*; not finite: $3" ||
        fail "show does not list the layers"
    "$mpbench" export @last --format jsonl 2>&1 | grep -q "\"layer\":\"${2%.weight}\".*skipped" ||
        fail "the event's layer is another"
}
# planted NAME FC1 HEAD: in step 2 so many values of each weight's gradient overflow as they are
# rounded to fp16.
planted() {
    experiment "$1" 3 "$entropy + (step == 2 and mp.autocast(false, big) or 0)" <<LUA
    local a, b = net:parameters()[1], net:parameters()[3]
    local function first(n, shape) return F.less(mp.arange(shape[1] * shape[2]):to "fp32", n):to "fp32":reshape(shape) * 1e3 end
    function big() return (a * first($2, a:shape())):sum() + (b * first($3, b:shape())):sum() end
LUA
}

begin "a skip blames the layer with the most values that overflowed, and lists the others"
planted most 2 7
blames most head.weight 'head 7 of 36, fc1 2 of 72'
planted most 7 2
blames most fc1.weight 'fc1 7 of 72, head 2 of 36'
end

begin "of layers with as many, a skip blames the one nearest the loss"
planted even 3 3
blames even head.weight 'head 3 of 36, fc1 3 of 72'
end

begin "what spreads from layer to layer is blamed on where it began"
experiment spread 3 "$entropy * (step == 2 and math.huge or 1)" </dev/null
blames spread head.weight 'head 36 of 36, fc1 72 of 72'
end

begin "the norm of gradients of which none is finite is recorded as what it is"
run run "$folder/spread.lua" -p fp16 --name spread
experiment past 3 "net(x):sum() * (step == 2 and 1e6 or 1)" <<'LUA'
    net = run:model(nn.Linear(8, 4), "only") -- whose gradients become inf
    opt = mp.optim.SGD({ net.bias }, { lr = 0.01 })
LUA
run run "$folder/past.lua" -p fp16 --loss-scale none --name past
for of in spread:nan past:inf; do
    norm=$("$mpbench" export "${of%:*}" --format csv | awk -F, '
        NR == 1 { for (i = 1; i <= NF; i++) if ($i == "grad_norm") at = i }
        NR == 3 { print $at }')
    [ "$norm" = "${of#*:}" ] || fail "${of%:*}: the norm is $norm"
done
run compare spread past --series grad_norm
expect_status 0
end

begin "a loop that forgets autocast is told that nothing is computed in what it asks for"
experiment forgets 12 "$entropy" </dev/null
sed -i 's/mp.autocast(function() return \(.*\) end)/\1/' "$folder/forgets.lua"
for precision in fp16 mxfp4; do
    diagnosed no_autocast '' "nothing was computed in $precision, which was asked for: 2 layers multiply outside of autocast, in fp32" \
        "$folder/forgets.lua" -p $precision
done
sed 's/local loss = \(.*\)$/local loss = mp.autocast(false, function() return \1 end)/' "$folder/forgets.lua" >"$folder/refuses.lua"
diagnosed no_autocast '' '2 layers multiply within mp.autocast(false, ..), in fp32; take the false away, or ask for -p fp32' \
    "$folder/refuses.lua" -p bf16
run run "$folder/forgets.lua" -p bf16 --steps 3
expect_err 'nothing was computed in bf16'
experiment knows 3 "mp.autocast(false, function() return $entropy end)" <<'LUA'
    mp.autocast(net, x)
LUA
run run "$folder/knows.lua" -p bf16 --json
expect_no_out no_autocast
for options in '-p fp32' '-p bf16 --layer *=fp32'; do
    # shellcheck disable=SC2086 # options are words
    run run "$folder/forgets.lua" $options --json
    expect_no_out no_autocast
done
end

# ---- runs that are well --------------------------------------------------------------------------

# Without the evaluation at the end, which takes longer than the steps.
here=$(dirname "$0")/../../experiments
sed '/^    eval = /d' "$here/fashion_mlp.lua" >"$folder/fashion_mlp.lua"
sed '/^    eval = /d' "$here/fashion_cnn.lua" >"$folder/fashion_cnn.lua"
# well NAME PRECISION [OPTION ...]
well() {
    "$mpbench" run "$1" -p "$2" --no-history --quiet --json --threads 1 --steps "$3" ${4:-} \
        >"$folder/well.$(basename "$1" .lua).$2" 2>&1
}
for precision in fp32 bf16 fp16; do
    well simple $precision 500 &
    well "$folder/fashion_mlp.lua" $precision 12 '--set batch=32 --set width=256' &
    well "$folder/fashion_cnn.lua" $precision 12 '--set batch=16' &
    well gpt $precision 12 '--set batch=4 --set layers=2 --set write=1' &
    wait
    for which in simple fashion_mlp fashion_cnn gpt; do
        begin "a healthy run of $which in $precision draws no diagnosis"
        grep -q '"status":"finished".*"steps":[1-9][0-9].*"diagnoses":\[\]' "$folder/well.$which.$precision" ||
            fail "it says: $(sed 's/.*"diagnoses"/"diagnoses"/' "$folder/well.$which.$precision")"
        end
    done
done

exit "$failures"
