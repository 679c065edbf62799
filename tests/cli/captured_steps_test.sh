#!/bin/sh
# shellcheck disable=SC1091,SC2034,SC2154 # what shell.sh sets, reads and calls
# Steps that a script hands over, captured on the processor, beside the same called each time: the
# same bits whatever happens between two steps, and most of them are captured.
. "$(dirname "$0")/../shell.sh"

# Of what may happen in a training something happens every few steps.
cat >"$folder/turns.lua" <<'LUA'
local mp = require "mp"
local nn, F = mp.nn, mp.fn
local optimizers = {
    SGD = { lr = 1e-2, momentum = 0.9 }, Adam = { lr = 1e-2 }, AdamW = { lr = 1e-2 }, LAMB = { lr = 1e-2 },
}
return mp.experiment { name = "turns",
    params = { steps = 96, optimizer = "SGD", images = false, scaler = true, unscale = false, warm = false,
        average = false },
    run = function(run)
    local p = run.params
    local Net = nn.class "Net"
    function Net:init()
        if p.images then self.conv, self.bn = nn.Conv2d(1, 6, 3, { padding = 1 }), nn.BatchNorm(6) end
        self.fc1 = nn.Linear(p.images and 96 or 16, 24, { activation = "relu" })
        self.norm, self.fc2 = p.images and nn.LayerNorm(24) or nn.BatchNorm(24), nn.Linear(24, 4)
    end
    function Net:forward(x)
        if p.images then
            x = F.relu(self.bn(self.conv(x:reshape(x:shape()[1], 4, 4, 1))))
            x = x:reshape(x:shape()[1], 96)
        end
        return self.fc2(self.norm(self.fc1(x)))
    end
    local net = run:model(Net())
    local opt = mp.optim[p.optimizer](net:parameters(), optimizers[p.optimizer])
    if p.warm then opt:schedule(mp.optim.schedule.cosine { warmup = 8, total = 96 }) end
    local scaler, weights = p.scaler and run:scaler(), net:parameters()
    local average = p.average and mp.optim.EMA(net, 0.9)
    local data = mp.data.tensors { x = mp.randn(60, 16), y = mp.randint(4, 60), batch = 8, shuffle = true }
    local function loss_of(x, y) return F.cross_entropy(net(x), y) end
    local function step(x, y)
        opt:zero_grad()
        local loss = mp.autocast(loss_of, x, y)
        if scaler then
            scaler:scale(loss):backward()
            if p.unscale then
                scaler:unscale(opt)
                run:log { norm = mp.optim.clip_norm(weights, 0.5) }
            end
            scaler:step(opt)
            scaler:update()
            if average then average:update(opt) end
        else
            loss:backward()
            opt:step()
        end
        run:log { loss = loss }
        return loss
    end
    local at, sum = 0, 0
    while at < p.steps do
        for b in data do
            at = at + 1
            local x, y = b.x, b.y
            if at == 34 then x, y = x:slice(1, 1, 5), y:slice(1, 1, 5) end
            local loss = run:step(step, x, y)
            if at % 8 == 0 then sum = sum + loss:item() end
            if at == 18 then net:find "fc1":precision "fp32" end
            if at == 26 then net:find "fc1":precision "auto" end
            if at == 46 then
                net:eval()
                mp.no_grad(function() run:log { held = F.accuracy(net(x), y) } end)
                net:train()
            end
            if at == 58 then run:checkpoint() end
            if at == 66 then opt:lr(5e-3) end
            if at == 74 then net.fc2.bias:copy(mp.zeros(4)) end
            if at == 82 then net.fc2.weight:requires_grad(false) end
            if at == p.steps then break end
        end
    end
    if average then
        average:with(function() sum = sum + F.cross_entropy(net(mp.ones(2, 16)), mp.randint(4, 2)):item() end)
    end
    run:result { sum = sum }
end }
LUA

share_of() { # RUN: of its steps that were captured, in thousandths
    "$mpbench" show "$1" | awk '$1 == "steps.captured" { print int($2 * 1000) }'
}

# same NAME LEAST OPTION...: captured, LEAST thousandths of the steps at least, and not.
same() {
    what=$1 least=$2
    shift 2
    run run "$folder/turns.lua" -d cpu --threads 1 --quiet "$@" --name "$what"
    expect_status 0
    run run "$folder/turns.lua" -d cpu --threads 1 --quiet --no-capture "$@" --name "$what-plain"
    expect_status 0
    share=$(share_of "$what")
    [ "${share:-0}" -ge "$least" ] || fail "$what: ${share:-0} of 1000 steps were captured, not $least"
    [ -z "$(share_of "$what-plain")" ] || fail "$what: --no-capture captures"
    expect_same_known "$what" "$what-plain"
}

begin captured_steps_are_the_same_to_the_bit_whatever_happens_between_them
same fp32 500 -p fp32
same bf16 500 -p bf16 --set optimizer=Adam
same fp16 300 -p fp16 --set optimizer=AdamW --set unscale=true --set average=true
same images 500 -p bf16 --set images=true --set optimizer=LAMB --set warm=true
same alone 500 -p fp32 --set scaler=false
end

begin captured_steps_are_the_same_to_the_bit_where_steps_are_skipped
same skips 200 -p fp16 --loss-scale dynamic --set images=true
run show skips --json
expect_out '"skipped":[1-9]'
end

begin a_fork_of_captured_steps_ends_as_its_parent_did
run fork bf16 --at 58 --name again --quiet
expect_status 0
keep_known bf16 "$folder/a"
keep_known again "$folder/b"
cmp -s "$folder/a.weights" "$folder/b.weights" || fail "other weights"
for side in a b; do # a fork has no column of what was evaluated before it
    tail -n 14 "$folder/$side.csv" | sed 's/ *$//' >"$folder/$side.last"
done
cmp -s "$folder/a.last" "$folder/b.last" || fail "other losses: $(diff "$folder/a.last" "$folder/b.last" | sed -n 2p)"
[ "$(share_of again)" -ge 300 ] || fail "the fork's steps are not captured"
end

# A step that is like the others but for one thing each: LINES within it, and what an event says.
# Further: what begins it, what it is handed beside, what it returns, and the lines behind it.
plain_small() {
    first='opt:zero_grad()' more='' returned='loss' behind=''
}
plain_small
small() { # NAME LINES [AROUND]
    cat >"$folder/small.lua" <<LUA
local mp = require "mp"
local nn, F = mp.nn, mp.fn
return mp.experiment { name = "small", params = { steps = 40, wrong = 0 }, run = function(run)
    local net = run:model(nn.Linear(8, 4))
    local opt = mp.optim.SGD(net:parameters(), { lr = 1e-2 })
    local scaler, count, kept, told = run:scaler(), 0, nil, { count = 0 }
    local mask = mp.ones(8)
    local function step(x, y, more)
        $first
        local loss = mp.autocast(function() return F.cross_entropy(net(x), y) end)
        $2
        scaler:scale(loss):backward()
        scaler:step(opt)
        scaler:update()
        run:log { loss = loss }
        return $returned
    end
    local ys = { mp.randint(4, 6), mp.randint(4, 6), mp.tensor({ 7, 7, 7, 7, 7, 7 }, "int32") }
    for at = 1, run.params.steps do
        count = 0
        local out = run:step(${3:-step}, mp.randn(6, 8), ys[at == run.params.wrong and 3 or 1 + at % 2] $more)
        $behind
    end
    run:result { told = told.count }
end }
LUA
    run run "$folder/small.lua" -d cpu --threads 1 --quiet --name "$1"
    expect_status 0
    run run "$folder/small.lua" -d cpu --threads 1 --quiet --no-capture --name "$1-plain"
    expect_status 0
    for side in "$1" "$1-plain"; do
        points_of "$side" >"$folder/$side.csv"
    done
    cmp -s "$folder/$1.csv" "$folder/$1-plain.csv" || fail "$1: $(diff "$folder/$1.csv" "$folder/$1-plain.csv" | sed -n 2p) is not as it was called"
}

# still_captured NAME LINES: most steps are, and their numbers the same.
still_captured() {
    small "$1" "$2"
    [ "$(share_of "$1")" -ge 600 ] || fail "$1: $(share_of "$1") of 1000 steps were captured"
    plain_small
}

# refused NAME WHY LINES [FUNCTION]
refused() {
    small "$1" "$3" "${4:-}"
    [ "$(share_of "$1")" = 0 ] || fail "$1: $(share_of "$1") of 1000 steps were captured"
    run show "$1"
    expect_out "not captured: $2"
    [ "$(grep -c 'not captured' "$folder/out")" = 1 ] || fail "$1: it is not said once"
    plain_small
}

begin what_cannot_be_had_again_is_called_each_time_and_told
refused item "it reads a value" 'if loss:item() > 1e9 then loss = loss * 2 end'
refused step "it reads run.step" 'loss = loss * (1 + run.step)'
refused counter "it changes a variable" 'count = count + 1 loss = loss * count'
refused chance "it calls math.random" 'loss = loss * math.random()'
refused outside "it reads a tensor from outside" 'loss = loss + (x * mask):mean()'
refused keeps "it is another one each time" 'told.last = loss'
refused hides "it is another one each time" 'told.last = loss * 2'
refused turns "it is another one each time" 'told.count = 1 - told.count if told.count == 1 then loss = loss * 2 end'
refused numbers "it is another one each time" 'told.count = told.count + 1 loss = loss * told.count'
refused made "it calls mp.tensor" 'loss = loss * mp.tensor { 2 }:sum()'
refused adds "it adds gradients" 'if loss then net(x):mean():backward() end'
refused seed "it calls mp.seed" 'mp.seed(1)'
refused inline "its function is another one each time" '' 'function(x, y) return step(x, y) end'
refused result "it calls run:result" 'run:result { last = 1 }'
refused prints "it prints" 'if told.count > 1e9 then net = nil else print "a line" end'
refused catches "an error is caught" 'pcall(function() scaler:unscale(opt) scaler:unscale(opt) end)'
refused coroutine "an error is caught" 'coroutine.resume(coroutine.create(function() error "none" end))'
returned='net.weight:detach()' behind='if kept then run:log { w = kept:sum() } end kept = out'
refused weight "it returns what is no tensor of its own" ''
returned='x:reshape(48)' behind='run:log { x = out:sum() }'
refused view "it returns what is no tensor of its own" ''
behind='net:eval() net:train()'
refused stale "what it works on is changed between two steps" ''
more=', net.weight:detach()'
refused handed "it is handed weights" 'loss = loss + more:mean()'
end

begin gradients_that_a_script_keeps_are_not_written_over
behind='local g = net.weight:grad() if kept then run:log { old = (kept * g):sum() } end kept = g'
still_captured gradients ''
behind='run:log { one = net.bias:grad()[1] }'
still_captured parts ''
more=', net.weight:grad() or net.weight:detach() * 1'
still_captured gradients_in 'loss = loss + (more * more):sum()'
end

begin gradients_that_are_there_are_added_to
first='' behind='if at % 10 ~= 0 then opt:zero_grad() end'
still_captured accumulated ''
end

# What a script computes beside, in another format than the step, is no change of the step.
begin steps_are_captured_whatever_is_computed_beside_them
behind='local beside = net(mp.ones(2, 8))'
still_captured beside ''
behind='if at % 8 == 1 then run:checkpoint() end' # the first of them before a step that is watched
still_captured checkpoints ''
end

# Two steps, each of which walks back through what the other trains.
begin steps_that_share_gradients_are_the_same_to_the_bit
for zero in 'all' 'own'; do
    cat >"$folder/pair.lua" <<LUA
local mp = require "mp"
local nn, F = mp.nn, mp.fn
return mp.experiment { name = "pair", params = { steps = 40 }, run = function(run)
    local maker, judge = run:model(nn.Linear(8, 4), "maker"), run:model(nn.Linear(4, 1), "judge")
    local makes, judges = mp.optim.SGD(maker:parameters(), { lr = 1e-2 }), mp.optim.Adam(judge:parameters(), { lr = 1e-2 })
    local function all() makes:zero_grad() judges:zero_grad() end
    local function judging(x, real)
        if "$zero" == "all" then all() else judges:zero_grad() end
        local fake = mp.no_grad(function() return maker(x) end)
        local loss = (judge(real) - 1):abs():mean() + judge(fake):abs():mean()
        loss:backward() judges:step() run:log { judge = loss }
    end
    local function making(x)
        if "$zero" == "all" then all() else makes:zero_grad() end
        local loss = (judge(maker(x)) - 1):abs():mean()
        loss:backward() makes:step() run:log { maker = loss }
        return loss
    end
    for at = 1, run.params.steps do
        run:step(judging, mp.randn(6, 8), mp.randn(6, 4))
        run:step(making, mp.randn(6, 8))
        if at % 5 == 0 then run:log { g = judge.weight:grad():sum() } end
    end
end }
LUA
    for option in '' --no-capture; do
        # shellcheck disable=SC2086 # none or one
        run run "$folder/pair.lua" -d cpu --threads 1 --quiet $option --name "pair-$zero$option"
        expect_status 0
        points_of "pair-$zero$option" >"$folder/pair$option.csv"
    done
    cmp -s "$folder/pair.csv" "$folder/pair--no-capture.csv" || fail "$zero: $(diff "$folder/pair.csv" "$folder/pair--no-capture.csv" | sed -n 2p) is not as it was called"
done
[ "$(share_of pair-all)" -ge 800 ] || fail "$(share_of pair-all) of 1000 steps were captured"
run show pair-own
expect_out 'have it call zero_grad for all'
end

# What docs/lua.md says of variables that no function closes over.
begin a_counter_in_a_table_stands_still_while_steps_are_captured
small table 'told.count = told.count + 1'
[ "$(share_of table)" -ge 700 ] || fail "$(share_of table) of 1000 steps were captured"
run show table --json
expect_out '"told":[1-9],\|"told":[1-9]}\|"told":1[0-9][,}]'
end

begin a_wrong_value_in_a_captured_step_is_told_as_if_it_were_called
small wrong ''
for option in '' --no-capture; do
    # shellcheck disable=SC2086 # none or one
    run run "$folder/small.lua" -d cpu --threads 1 -p fp32 --quiet --set wrong=30 $option
    expect_status 1
    expect_err 'class 7 '
    grep '^mpbench' "$folder/err" >"$folder/told$option"
done
cmp -s "$folder/told" "$folder/told--no-capture" || fail "$(cat "$folder/told"), not $(cat "$folder/told--no-capture")"
end

# What captured steps hold lies beside nothing but steps that are sampled.
begin captured_steps_hold_no_more_than_twice_what_a_step_needs
for option in '' --no-capture; do
    # shellcheck disable=SC2086 # none or one
    run run "$(dirname "$0")/../bench/workloads/a.lua" -d cpu --threads 1 --quiet --steps 400 $option --name "held$option"
    expect_status 0
    "$mpbench" show "held$option" | sed -n 's/^ *memory.steps \([0-9]*\) bytes.*/\1/p' >"$folder/bytes$option"
done
[ "$(share_of held)" -ge 900 ] || fail "$(share_of held) of 1000 steps were captured"
held=$(cat "$folder/bytes") called=$(cat "$folder/bytes--no-capture")
[ "$held" -le $((called * 2)) ] || fail "$held bytes are held, $called without"
end

if [ -n "${MPBENCH_SOAK:-}" ]; then
    begin captured_steps_are_the_same_to_the_bit_in_every_format_and_with_every_scaler
    for precision in O0 O1 O2 O3 mixed_float16 mixed_bfloat16 amp auto e4m3 e5m2 fp8 mxfp8 nvfp4; do
        same "$precision" 0 -p "$precision" --set images=true
    done
    for scaler in none 1024 torch apex keras deepspeed megatron fairseq logmax adaptive; do
        same "by-$scaler" 300 -p fp16 --loss-scale "$scaler" --set optimizer=Adam
    done
    end
fi

exit "$failures"
