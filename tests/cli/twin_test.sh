#!/bin/sh
# shellcheck disable=SC1091,SC2154 # what shell.sh sets and reads
# Two trainings in lock step: that those that compute alike never part, that a disturbance is found
# where it was put, and that the end of one never leaves the other waiting. Under MPBENCH_SOAK the
# disturbance is put in a hundred places. $MPBENCH is the program.
. "$(dirname "$0")/../shell.sh"
cases="forward,b,2,1 backward,c,3,2 weights,a,4,3 forward,d,1,4 backward,a,1,5 weights,d,2,6 forward,a,5,7 backward,d,4,8"
if [ -n "${MPBENCH_SOAK:-}" ]; then
    cases=
    for i in $(seq 0 99); do
        kind=$(echo forward backward weights | cut -d ' ' -f $((i % 3 + 1)))
        layer=$(echo a b c d | cut -d ' ' -f $((i / 3 % 4 + 1)))
        cases="$cases $kind,$layer,$((i / 12 % 5 + 1)),$((i + 1))"
    done
fi

# Four layers; in the run of the precision `in`, one of them is disturbed in one step alone: what it
# gives forward, its gradient, or its weights are doubled.
cat >"$folder/disturbed.lua" <<'LUA'
local mp = require "mp"
local nn, F = mp.nn, mp.fn
local Part = nn.class "Part"
function Part:init(from, to)
    self.weight = mp.nn.Linear(from, to).weight
    self.factor, self.back = 1, 1
    self.weight:hook(function(gradient) return gradient * self.back end)
end
function Part:forward(x) return F.tanh(F.linear(x, self.weight) * self.factor) end
return mp.experiment {
    name = "disturbed",
    params = { steps = 6, kind = "none", layer = "a", at = 1, where = "fp16", busy = 0 },
    run = function(run)
        local p = run.params
        local net = nn.class "Net"
        function net:init() self.a, self.b, self.c, self.d = Part(16, 32), Part(32, 32), Part(32, 32), Part(32, 8) end
        function net:forward(x) return self.d(self.c(self.b(self.a(x)))) end
        local m = run:model(net())
        local opt = mp.optim.Adam(m:parameters(), { lr = 1e-3 })
        local scaler = run:scaler()
        local is_here = mp.policy().preset == p.where
        for step = 1, p.steps do
            local hit = is_here and step == p.at
            local part = m[p.layer]
            part.factor = hit and p.kind == "forward" and 2 or 1
            part.back = hit and p.kind == "backward" and 2 or 1
            if hit and p.kind == "weights" then part.weight:copy(part.weight:detach() * 2) end
            if hit and p.kind == "clock" then
                local nudge = 1 + 1e-2 * (mp.clock() * 1e4 % 1)
                part.weight:copy(part.weight:detach() * nudge)
            end
            if hit and p.kind == "error" then error("planted") end
            if hit and p.kind == "forever" then while true do end end
            for _ = 1, p.busy do end
            opt:zero_grad()
            local x = mp.randn(64, 16)
            local loss = mp.autocast(function() return F.mse(m(x), mp.randn(64, 8)) end)
            scaler:scale(loss):backward()
            scaler:step(opt)
            scaler:update()
            run:log { loss = loss }
        end
    end,
}
LUA
pair() { # PRECISION TWIN [OPTION ...]
    precision=$1
    twin=$2
    shift 2
    run run "$folder/disturbed.lua" -p "$precision" --twin "$twin" --threads 1 "$@"
}

# ---- what is found --------------------------------------------------------------------------------

for precision in fp32 fp16 bf16; do
    begin "twins in $precision never part, to the last bit"
    pair "$precision" "$precision" --json
    expect_status 0
    expect_out '"steps":6,"alike":6,"loss":{"last":0,"most":0},"parted":null'
    pair "$precision" "$precision" --no-history
    expect_out 'In all 6 steps both are the same, to the last bit\.'
    end
done

begin "in fp16 beside fp32 rounding alone parts no layer, and the distance is there"
pair fp16 fp32 --json
expect_status 0
expect_out '"parted":null,"ended":null'
expect_no_out '"alike":[1-9]'
expect_out '{"name":"c","activations":{"last":[0-9.e-]*[1-9]'
pair fp16 fp32
tr '\n' ' ' <"$folder/out" | tr -s ' ' >"$folder/line"
grep -q 'no layer is farther apart than rounding explains: at most the [a-z]* of [a-z]*, [0-9.e-]* apart, where it explains [0-9.e-]*\. The losses end [0-9.e-]* % apart\.' "$folder/line" ||
    fail "$(cat "$folder/line")"
if command -v sqlite3 >/dev/null 2>&1; then # which the live page lists
    in_history "SELECT text FROM events WHERE step = 6" >"$folder/line"
    grep -q '^beside its twin no layer was farther apart .* where it explains [0-9.e-]*$' "$folder/line" ||
        fail "its events: $(cat "$folder/line")"
fi
expect_out '^layer  *activations  *at most  *gradients  *at most  *weights  *at most$'
end

begin "a disturbed layer is named, and the step, wherever it is"
for case in $cases; do
    IFS=, read -r kind layer at seed <<C
$case
C
    case $kind in forward) found=activations ;; backward) found=gradients ;; weights) found=weights ;; esac
    for where in fp16 fp32; do
        pair fp16 fp32 --json --no-history --seed "$seed" --set kind="$kind" --set layer="$layer" \
            --set at="$at" --set where=$where
        grep -q "\"parted\":{\"step\":$at,\"cause\":\"beyond rounding\",\"layer\":\"$layer\",\"in\":\"$found\"" "$folder/out" ||
            fail "$case in $where: $(sed 's/.*"loss":{"last"[^}]*},//;s/,"ended".*//' "$folder/out" | tail -n 1)"
    done
done
end

# What goes by the clock is another thing in each process.
begin "a difference that no rounding makes, between twins that compute alike, is told"
pair fp32 fp32 --json --no-history --set kind=clock --set layer=c --set at=3 --set where=fp32
expect_out '"parted":{"step":3,"cause":"beyond rounding","layer":"c","in":"[a-z]*","who":null,"distance":[0-9.e-]*,"within":0}'
end

begin "gradients that fp16 flushes to zero part where that begins, next to the loss"
run run underflow -p fp16 --twin fp32 --loss-scale none --steps 3 --json --no-history
expect_out '"parted":{"step":1,"cause":"beyond rounding","layer":"head","in":"gradients","who":null,"distance":1,'
end

begin "a step that one of them skipped is told as that"
pair fp16 fp32 --loss-scale 2^40 --steps 2 --no-history
expect_out 'At step 1 fp16 skipped the update that fp32 made: its gradients of [abcd] were not finite'
end

# Of the output of fc2 samples are held against each other, and 8 of its 320 numbers are inf in both.
begin "where both cease to be finite neither is said to do so alone, nor are they 0 % apart"
run run simple -d cpu --threads 1 -p bf16 --twin fp32 --set lr=30 --name both --quiet
expect_status 1
for how in run show; do
    [ $how = run ] || run show both
    tr '\n' ' ' <"$folder/out" | tr -s ' ' >"$folder/line"
    grep -q ' \.\.*\. At step 13 sampled activations of fc2 cease to be finite in fp32 that are finite in bf16\. At the end neither loss is finite\.' "$folder/line" ||
        fail "$how: $(cat "$folder/line")"
done
run show both --json
expect_out '"loss":{"last":"nan"'
end

# ---- in the history -------------------------------------------------------------------------------

begin "the pair is two runs that name each other, and keep what was found"
pair fp16 fp32 --name one --set kind=forward --set layer=b --set at=2 --quiet
run show one
expect_out '^  twin  *run [0-9]* in fp32\. They part at step 2, in the activations of b: '
expect_out '^b  .* step 2, activations'
expect_out '  apart  *activations of b parted: '
run show one-twin
expect_out '^  twin  *of run [0-9]* in fp16\. What is known of the two is kept with the other\.'
expect_out '^  options  *--threads 1 .*--precision fp32 --name one-twin$'
run show one --json
expect_out '"twin":{"run":[0-9]*,"role":"run","precision":"fp32","steps":6,.*"parted":{"step":2,"cause":"beyond rounding","layer":"b",'
run show one-twin --json
expect_out '"twin":{"run":[0-9]*,"role":"twin","precision":"fp16"}'
run export one --format csv
expect_out 'apart\.activations\.b'
run show @last
expect_out '^[0-9]* one finished'
end

begin "of a twin whose other run was removed it is said that nothing is kept"
pair fp16 fp32 --name left --set kind=forward --set layer=b --set at=2 --quiet --db "$folder/left.db"
for side in left left-twin; do
    cp "$folder/left.db" "$folder/pair.db"
    run rm "$side" --db "$folder/pair.db"
    expect_status 0
    run show "$([ $side = left ] && echo left-twin || echo left)" --db "$folder/pair.db"
    if [ $side = left ]; then
        expect_out '^  twin  *of run [0-9]* (removed) in fp16\. What was known of the two went with it\.'
    else
        expect_out '^  twin  *run [0-9]* (removed) in fp32\. They part at step 2, '
    fi
done
end

begin "a run without a twin has none in its JSON"
run run "$folder/disturbed.lua" -p fp32 --steps 2 --json --no-history
expect_out '"twin":null,'
end

begin "a run of a pair goes on alone, says so, and keeps what was found"
pair fp16 fp32 --name cut --set kind=forward --set at=2 --set steps=8 --steps 4 --checkpoint-every 2 --quiet
run resume cut --at 2 --quiet
expect_status 0
expect_err '^mpbench: it was trained beside run [0-9]*, and goes on alone$'
run show cut
expect_out '^  twin  *run [0-9]* in fp32\. They part at step 2, in the activations of a: '
run fork one --at 6 --steps 8 --json
expect_status 0
expect_out '"twin":null,'
end

# ---- the end of one -------------------------------------------------------------------------------

begin "where the twin fails the run goes on alone, and the command fails with its cause"
pair fp16 fp32 --set kind=error --set at=3 --set where=fp32 --set steps=100 # more than the run may lead by
expect_status 1
expect_err 'its twin, run [0-9]*, failed after step 2: .*planted; this run goes on alone'
expect_err '^mpbench: its twin, run [0-9]*, failed after step 2: .*planted$'
expect_out '100 applied'
expect_out 'run [0-9]* in fp32, which failed after step 2: '
end

begin "a twin with other layers is held by its losses alone, from the first step on"
use_loop
cat >"$folder/unlike.lua" <<'LUA'
local mp = require "mp"
return mp.experiment { name = "unlike", run = function(run)
    local width = mp.policy().preset == "fp32" and 8 or 16
    local net = run:model(mp.nn.Sequential { mp.nn.Linear(4, width):named "a", mp.nn.Linear(width, 4):named "b" })
    local opt = mp.optim.SGD(net:parameters(), { lr = 0.1 })
    require "loop"(run, opt, 6, function() return net(mp.randn(8, 4)):square():mean() end)
end }
LUA
run run "$folder/unlike.lua" -p fp16 --twin fp32 --threads 1 --quiet
expect_status 0
expect_out 'Of layers nothing was compared\.'
expect_no_out 'They part'
end

begin "where the run fails its twin ends too"
pair fp16 fp32 --set kind=error --set at=3 --set steps=100
expect_error 1 'planted'
run ls --limit 2
expect_out 'stopped  *fp32'
end

begin "what the twin is refused, the run is refused, and neither is kept"
run ls --json
before=$(grep -o '"id"' "$folder/out" | wc -l)
pair fp16 int8
expect_silent out
expect_error 3 '--twin: int8'
pair fp16 fp32 --name one
expect_silent out
expect_error 2 'has this name'
pair fp16 fp32 --layer nothing=fp32
expect_error 2 'no layer of the model has such a name'
run ls --json
[ "$(grep -o '"id"' "$folder/out" | wc -l)" -eq "$before" ] || fail "runs were left behind"
run run simple --twin fp31
expect_usage_error '--twin fp31: not known; did you mean fp32?'
run run simple --twin fp32 --dry-run
expect_usage_error '--dry-run trains nothing, and so has no twin'
for command in "matrix simple" "fork one" "resume one" "profile simple"; do
    # shellcheck disable=SC2086 # words
    run $command --twin fp32
    expect_usage_error 'has no option --twin'
done
end

# Starts an endless pair; leaves the processes of the run and its twin.
start_pair() {
    "$mpbench" run "$folder/disturbed.lua" -p fp16 --twin fp32 --threads 1 --quiet --set steps=10000000 --set busy=20000 \
        "$@" >"$folder/out" 2>"$folder/err" </dev/null &
    first=$!
    wait_until 10 is_running disturbed 2 || fail "it does not begin"
    second=$(ps -o pid= --ppid $first | tr -d ' ')
    workers="$workers $first $second"
    sleep 0.3
}
is_gone() { ! kill -0 "$1" 2>/dev/null; }
for how in "KILL first" "TERM first" "INT first" "TERM both"; do
    begin "a run that gets ${how#* } SIG${how% *} takes its twin along"
    start_pair
    case $how in *both) kill -TERM "$first" "$second" ;; *) kill -"${how% *}" "$first" ;; esac
    wait "$first"
    wait_until 10 is_gone "$second" || fail "the twin lives on"
    wait_until 10 is_running disturbed 0 || fail "one is said to go on"
    end
done
for how in KILL TERM; do
    begin "a run whose twin gets SIG$how goes on alone, and ends when it is asked to"
    start_pair
    kill -$how "$second"
    wait_until 10 is_running disturbed 1 || fail "the twin is said to go on"
    ! is_gone "$first" || fail "the run ended too"
    kill -TERM "$first"
    wait "$first"
    [ $? -eq 143 ] || fail "exit status"
    run show @last
    expect_out "in fp32, which $([ $how = KILL ] && echo 'ended without a word' || echo stopped)"
    end
done

begin "neither waits for one that never ends its step"
start_pair --set kind=forever --set at=20 --set where=fp32
kill -TERM "$first"
wait "$first"
wait_until 20 is_gone "$second" || fail "the twin lives on"
end
if command -v script >/dev/null 2>&1; then
    begin "the live line tells how far the two are apart, and where that began"
    TERM=xterm script -qec "stty cols 160; '$mpbench' run $folder/disturbed.lua -p fp16 --twin fp32 --threads 1 \
        --set kind=forward --set layer=b --set at=2 --set steps=60 --set busy=1000000" "$folder/typed" </dev/null >/dev/null
    tr '\r' '\n' <"$folder/typed" | grep -q 'step [0-9]*.*  loss [^ ]*  apart [^ ]*  parted at step 2 in b  ' ||
        fail "it lacks that: $(tr '\r' '\n' <"$folder/typed" | grep '^step' | tail -n 1)"
    end
fi
exit "$failures"
