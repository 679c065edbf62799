#!/bin/sh
# shellcheck disable=SC1091,SC2034,SC2154 # what shell.sh sets and reads
# `run` from outside: its result, what is refused before the first step, signals. What a script's
# mistakes come to is run_mistakes_test.sh's. $MPBENCH is the program.
. "$(dirname "$0")/../shell.sh"

write_tiny
cat >"$folder/endless.lua" <<'LUA'
local mp = require "mp"
return mp.experiment { name = "endless", run = function() print "started" while true do end end }
LUA

begin "a run ends with its result on standard output"
run run "$tiny" -p fp32
expect_status 0
expect_out "^tiny-1 finished"
expect_out "30 applied, 0 skipped"
expect_out "answer *42"
end

begin "the summary and \`show\` count memory alike: the low weights, and their fp32 masters"
run run simple -p fp16 --device cpu --steps 20
expect_status 0
parts=$(grep -o "weights [0-9.]* [KMG]*i*B, masters [0-9.]* [KMG]*i*B, activations [0-9.]* [KMG]*i*B" "$folder/out")
[ -n "$parts" ] || fail "weights and masters are not told apart"
run show @last
expect_out "$parts"
run show @last --json # half the bytes, and what little stays in fp32 beside them
weights=$(value_of weights) masters=$(value_of masters)
[ "$weights" -lt $((masters * 6 / 10)) ] || fail "fp16 weights take $weights bytes beside masters of $masters"
end

begin "a result that is the end of a series is told once, and accuracy has no lowest"
sed 's/run:log { loss = loss }/run:log { loss = loss, accuracy = 1 \/ step } if step == p.steps then run:result { accuracy = 1 \/ step } end/' \
    "$tiny" >"$folder/accurate.lua"
run run "$folder/accurate.lua" -p fp32 --quiet --no-history --steps 4
expect_status 0
expect_out "^  accuracy *1 -> 0.25\$"
[ "$(grep -c "^  accuracy" "$folder/out")" = 1 ] || fail "it is told twice: $(grep accuracy "$folder/out" | tr '\n' ' ')"
expect_out "^  time .* s in all; in training [0-9.e+]* steps/s"
end

begin "a run writes JSON and nothing else on standard output"
run run "$tiny" -p fp16 --json --quiet --steps 20 --seed 3 --set lr=0.01 --name mine --layer head=fp32
expect_status 0
[ "$(wc -l <"$folder/out")" -eq 1 ] || fail "more than one line"
expect_out '^{"id":[0-9]*,"name":"mine","experiment":"tiny","status":"finished","precision":"fp16"'
expect_out '"seed":3,"steps":20,"applied":20,"skipped":0'
expect_out '"lr":0.01'
expect_out '"layers":\[{"name":"head","precision":"fp32"}\]'
expect_out '"error":null}$'
end

begin "samples and seconds of training are those of steps, in a loop of one's own too"
cat >"$folder/between.lua" <<'LUA'
local mp = require "mp"
return mp.experiment {
    name = "between",
    params = { eval = false, gathers = 1, batch = 4, leaves = false, bare = false, raw = false },
    run = function(run)
        local p = run.params
        local model = run:model(mp.nn.Linear(4, 2))
        local opt = mp.optim.SGD(model:parameters(), { lr = 1e-3 })
        local train = mp.data.tensors { x = mp.randn(40, 4), batch = 4 }
        local test = mp.data.tensors { x = mp.randn(24, 4), batch = 8 }
        local x = mp.randn(300, 300)
        local function look(b)
            for _ = 1, 4 do mp.fn.softmax(x:matmul(x), -1):sum():item() end
            return model(b.x):sum():item()
        end
        local function evaluate()
            if p.eval then model:eval() end
            if p.bare then look { x = x:slice(2, 1, 4) } end
            for b in p.bare and function() end or test do
                if p.eval then look(b) else mp.no_grad(look, b) end
                if p.leaves then break end
            end
            model:train()
        end
        local gathered, steps = {}, 0
        local function learn(b)
            gathered[#gathered + 1] = b.x
            if #gathered == p.gathers then
                opt:zero_grad()
                model(mp.fn.cat(gathered, 1)):square():sum():backward()
                opt:step()
                gathered = {}
                steps = steps + 1
                if steps % 2 == 0 then evaluate() end
            end
        end
        for b in p.raw and function() end or train do learn(b) end
        for _ = 1, p.raw and 10 or 0 do learn { x = mp.randn(4, 4) } end
        evaluate()
    end,
}
LUA
for way in eval=false eval=true gathers=2 "eval=true leaves=true" "eval=true bare=true" \
    "eval=true raw=true" "eval=true raw=true leaves=true" "eval=true raw=true bare=true"; do
    # shellcheck disable=SC2046,SC2086 # options are words
    run run "$folder/between.lua" -p fp32 --json --quiet $(printf -- '--set %s ' $way)
    expect_status 0
    # What is between two steps takes far longer than they.
    sed 's/.*"steps":\([0-9]*\),.*"samples_per_s":\([^,]*\),"steps_per_s":\([^,]*\),"wall_s":\([^,]*\),.*/\1 \2 \3 \4/' \
        "$folder/out" >"$folder/pace"
    awk '{ samples = $1 * $2 / $3; exit !(samples > 39.9 && samples < 40.1 && ($1 - 1) / $3 < 0.5 * $4) }' "$folder/pace" ||
        fail "$way: steps, samples and steps a second, seconds: $(cat "$folder/pace")"
done
end

begin "the precision tells of layers that were set, as show does"
run run "$tiny" -p fp16 --quiet --steps 4 --layer head=fp32
expect_status 0
expect_out '^  precision *fp16, all layers fp32 on cpu'
end

begin "a metric that was logged once is told once"
sed 's/run:result.*/run:log { answer = 42 } run:result { answer = 42 }/' "$tiny" >"$folder/once.lua"
run run "$folder/once.lua" -p fp32 -d ref --quiet
expect_status 0
[ "$(grep -c '^  answer' "$folder/out")" -eq 1 ] || fail "the metric is there more than once"
expect_out "^  answer *42$"
expect_out ", 1 thread$"
end

begin "a --layer that names no layer is refused before the first step, and leaves no run"
cat >"$folder/declared.lua" <<'LUA'
local mp = require "mp"
return mp.experiment {
    name = "declared",
    data = function() return { train = mp.data.tensors { x = mp.randn(8, 4), y = mp.randint(2, 8), batch = 4 } } end,
    model = function() return mp.nn.Sequential { mp.nn.Linear(4, 2):named "head" } end,
    loss = function(model, b) print("a step") return mp.fn.cross_entropy(model(b.x), b.y) end,
    optim = function(params) return mp.optim.SGD(params, { lr = 0.1 }) end,
}
LUA
sed -e 's/local opt/local foot = run:model(mp.nn.Linear(8, 4), "foot") local opt/' "$tiny" >"$folder/two_models.lua"
for file in "$tiny" "$folder/declared.lua" "$folder/two_models.lua"; do
    run run "$file" --name refused --layer hed=fp32
    expect_status 2
    expect_err "no layer of the model has such a name; did you mean head?"
    ! grep -q "a step" "$folder/err" || fail "a step began"
    run show refused
    expect_error 2 "no such run"
done
run run "$folder/two_models.lua" --quiet --layer foot=fp32 --steps 1
expect_status 0
run run "$folder/declared.lua" --quiet --layer head=fp32
expect_status 0
no_run='^{"id":null,"name":null,"experiment":"tiny","status":"failed".*"steps":0,"applied":0,"skipped":0,"loss":{"first":null,"last":null,"best":null},"metrics":{},.*"error":".*no layer of the model'
run run "$tiny" --json --quiet --layer hed=fp32
expect_status 2
expect_out "$no_run"
run run "$tiny" --name parent --quiet
run fork parent --at 30 --steps 40 --quiet --name refused --layer hed=fp32
expect_error 2 "no layer of the model has such a name"
expect_silent out
run fork parent --at 30 --steps 40 --quiet --name refused --layer hed=fp32 --json
expect_error 2 "no layer of the model has such a name"
expect_out "$no_run"
run show refused
expect_error 2 "no such run"
run run "$folder/declared.lua" --name earlier --quiet
sed -i 's/print("a step")/error "it trained again"/' "$folder/declared.lua"
run fork earlier --at 1 --quiet --layer hed=fp32
expect_error 2 "--layer hed: no layer of the model has such a name; did you mean head?"
run fork earlier --at 1 --quiet --layer head=fp32
expect_error 1 "it trained again"
sed -i 's/error "it trained again"/print("a step")/' "$folder/declared.lua"
run run "$tiny" --name parent --json --quiet
expect_status 2
expect_out '^{"id":null,"name":null,"experiment":"tiny"'
run matrix "$folder/declared.lua" -p fp32,bf16 --layer hed=fp32 --quiet
expect_status 2
expect_err "no layer of the model has such a name"
expect_err "matrix: what it asks for is refused"
end

begin "a matrix whose runs are refused is refused again after another one"
for layer in hed head hed; do
    run matrix "$folder/declared.lua" -p fp32,bf16 --layer $layer=fp32 --quiet
    [ $layer = head ] && expect_status 0 && continue
    expect_status 2
    [ "$(grep -c "no layer of the model" "$folder/err")" -eq 1 ] ||
        fail "it was not refused once for its layer: $(tr '\n' ' ' <"$folder/err")"
done
end

begin "a precision that the script declares and nobody knows is told with the script's name"
for said in '"fp12"' '{ default = "fp12" }'; do
    sed "s/name = \"tiny\",/name = \"tiny\", precision = $said,/" "$tiny" >"$folder/unknown.lua"
    run run "$folder/unknown.lua" --quiet --no-history
    expect_error 1 "$folder/unknown.lua: precision fp12: not known; one of auto "
done
run run "$folder/unknown.lua" --quiet --no-history -p fp32 # which beats it
expect_status 0
end

begin "a --layer where the run knows no model says what makes it known"
sed 's/run:model(\(.*\))$/(\1)/' "$tiny" >"$folder/unknown.lua"
! grep -q run:model "$folder/unknown.lua" || fail "the script still makes its model known"
run run "$folder/unknown.lua" --quiet --layer head=fp32
expect_status 2
expect_err "^mpbench: --layer head: no layer of the model has such a name; the run knows no model: run:model(m) makes it known"
end

begin "a run that was refused its layer keeps what it recorded before"
for call in 'run:result { accuracy = 0.5 }' 'run:log { warmth = 1 }' 'run:event "warm"'; do
    sed "s/local opt/$call local opt/" "$tiny" >"$folder/kept.lua"
    run run "$folder/kept.lua" --quiet --json --layer hed=fp32
    expect_status 2
    id=$(sed -n 's/^{"id":\([0-9]*\),"name":"tiny-\1".*/\1/p' "$folder/out")
    [ -n "$id" ] || fail "after $call the run is not there: $(head -c 80 "$folder/out")"
    run show "$id"
    expect_status 0
    expect_out "no layer of the model has such a name"
done
end

begin "a fault of the script is told, though a refusal was caught before it"
sed 's/scaler:step(opt)/if not pcall(scaler.step, scaler, opt) then error "a fault of the script" end/' "$tiny" >"$folder/caught.lua"
run run "$folder/caught.lua" --quiet --name caught --layer hed=fp32
expect_status 1
expect_err "^mpbench: .*caught.lua:[0-9]*: a fault of the script"
run show caught
expect_status 0
expect_out "a fault of the script"
sed 's/scaler:step(opt)/local done, why = pcall(scaler.step, scaler, opt) if not done then error(why, 0) end/' "$tiny" >"$folder/passed_on.lua"
run run "$folder/passed_on.lua" --quiet --name passed_on --layer hed=fp32
expect_status 2
expect_err "^mpbench: --layer hed: no layer of the model has such a name"
run show passed_on
expect_error 2 "no such run"
end

begin "a pattern of a script that names no layer is an error"
sed 's/local opt/net:find("hed"):precision "fp32" local opt/' "$tiny" >"$folder/nowhere.lua"
run run "$folder/nowhere.lua" -p fp32
expect_status 1
expect_err 'nowhere.lua:[0-9]*: find("hed"):precision: no layer has such a name; did you mean head?'
sed 's/^\( *\)name = /\1precision = { default = "fp32", ["hed*"] = "bf16" }, name = /' "$tiny" >"$folder/ruled.lua"
grep -q 'hed\*' "$folder/ruled.lua" || fail "the script is not what it should be"
run run "$folder/ruled.lua"
expect_status 1
expect_err 'ruled.lua:[0-9]*: precision.hed\*: no layer of the model has such a name'
end

begin "a scaler made and never updated is told of"
sed -e 's/scaler:scale(loss)/loss/' -e 's/scaler:step(opt)/opt:step()/' -e '/scaler:update/d' \
    "$tiny" >"$folder/unused.lua"
run run "$folder/unused.lua" -p fp32 --quiet
expect_status 0
expect_out "30 times, but no step was counted"
end

begin "a quiet run still tells what came of it"
run run "$tiny" -p fp32 --quiet
expect_status 0
expect_out "^tiny-[0-9]* finished"
end

begin "what a script prints is shown, not obeyed"
escape=$(printf '\033')
run run "$tiny" --quiet
expect_err '^\\x1b\[31mkind'
grep -q "$escape" "$folder/err" && fail "an escape of the script reached standard error"
end

begin "the same seed trains the same"
run run "$tiny" --json --quiet --seed 5
sed 's/.*"loss":\({[^}]*}\).*/\1/' "$folder/out" >"$folder/first"
run run "$tiny" --json --quiet --seed 5
sed 's/.*"loss":\({[^}]*}\).*/\1/' "$folder/out" | cmp -s - "$folder/first" || fail "another loss"
run run "$tiny" --json --quiet --seed 6
sed 's/.*"loss":\({[^}]*}\).*/\1/' "$folder/out" | cmp -s - "$folder/first" && fail "the seed does nothing"
end

begin "a run that cannot go on fails and says why"
run run "$tiny" -p fp32 --json --set nan_from=5 --set steps=100
expect_status 1
expect_out '"status":"failed"'
expect_out '"kind":"scale_floor"'
expect_err "^mpbench: .*the loss scale cannot help any more.*: output of cross_entropy outside of every layer"
run show @last
expect_out "life .*failed after step .*take -1e4 for them" # to its last word
expect_out "^head .* 100.00 % "
expect_out "^layer .*  not finite  "
end

begin "what is wrong in a file of --layers is told of the file"
printf 'return {\n    head = "bf17",\n}\n' >"$folder/policy.lua"
run run "$tiny" --quiet --layers "$folder/policy.lua"
expect_usage_error "--layers: .*policy.lua:2: head=bf17: bf17 is not known; did you mean bf16?"
printf 'return { haed = "bf16" }\n' >"$folder/policy.lua"
run run "$tiny" --quiet --layers "$folder/policy.lua" --no-history
expect_status 2
expect_err "^mpbench: --layers .*policy.lua: haed: no layer of the model has such a name; did you mean head?"
end

begin "what is refused of layers is refused before anything is announced"
for options in '-p auto --layer hed=fp32' '-p bf16 --layer hed=fp16'; do
    # shellcheck disable=SC2086 # options are words
    run run "$tiny" $options --no-history
    expect_status 2
    expect_err "^mpbench: --layer hed: no layer of the model has such a name; did you mean head?"
    ! grep -q '^precision auto\|^loss scale' "$folder/err" || fail "$options: announced: $(head -n 1 "$folder/err")"
done
run run "$tiny" -p auto --layer head=fp16 --no-history
expect_status 0
expect_err '^precision auto: '
end

begin "a policy file is a regular file of text, whose bytes may be written as numbers"
printf 'return { head = "bf16" }\n\0return { head = "fp16" }\n' >"$folder/policy.lua"
run run "$tiny" --quiet --layers "$folder/policy.lua"
expect_usage_error "policy.lua: has a zero byte after 25 others"
mkfifo "$folder/fifo"
timeout 5 "$mpbench" run "$tiny" --quiet --layers "$folder/fifo" >"$folder/out" 2>"$folder/err"
status=$?
expect_usage_error "fifo: is not a regular file"
printf 'return { ["\\104ea\\100"] = "bf16" }\n' >"$folder/policy.lua"
run run "$tiny" --quiet --layers "$folder/policy.lua" --no-history --json
expect_status 0
expect_out '"name":"head","precision":"bf16"'
printf 'return { ["\\q"] = "bf16" }\n' >"$folder/policy.lua"
run run "$tiny" --quiet --layers "$folder/policy.lua"
expect_usage_error "policy.lua:1: .* behind a backslash is wanted"
end

begin "layers that are set to fp16 get a loss scale where the precision has none"
printf 'return { head = "fp16" }\n' >"$folder/policy.lua"
for precision in fp32 bf16; do
    run run "$tiny" -p $precision --layers "$folder/policy.lua" --steps 3 --no-history --json
    expect_out '"scale":{"last":65536,'
    expect_err 'loss scale dynamic, since layers are set to fp16; --loss-scale none trains without'
done
run run "$tiny" -p fp32 --layer head=fp16 --loss-scale none --steps 3 --no-history --json
expect_out '"scale":{"last":1,'
run run "$tiny" -p fp32 --layer head=bf16 --steps 3 --no-history --json
expect_out '"scale":{"last":1,'
run run "$tiny" -p O3 --layer head=fp16 --steps 3 --no-history --json
expect_out '"scale":{"last":1,'
end

begin "an unknown layer is answered with those that there are"
run run "$tiny" --quiet --layer nowhere=fp16
expect_status 2
expect_err "^mpbench: --layer nowhere: no layer of the model has such a name; there are head"
run run "$tiny" --quiet --layer head=fp17
expect_usage_error "--layer head=fp17: fp17 is not known; did you mean fp16? One of auto fp32 tf32 bf16"
end

begin "a device that is not there is status 3"
run run "$tiny" --device gpu:99
expect_status 3
expect_err "^mpbench: device gpu"
end

begin "where no plugin lies it is said where it was looked for and how one is made"
whole=$mpbench
mkdir "$folder/alone"
cp "$whole" "$folder/alone/mpbench"
mpbench=$folder/alone/mpbench MPBENCH_GPU=
run run "$tiny" --device gpu
mpbench=$whole
expect_error 3 "device gpu: .*: run make where nvcc is (docs/gpu.md), or use --device cpu; no mpbench-gpu.so lies in $folder/alone"
end

begin "a result that cannot be written is a failure"
if [ -w /dev/full ]; then
    "$mpbench" formats 1 >/dev/full 2>"$folder/err"
    status=$?
    expect_status 1
    expect_err "standard output"
fi
end

# Starts a run, waits until it prints, signals it, and leaves its status.
signal() { # SIGNAL COUNT EXPERIMENT [OPTIONS]
    number=$1
    count=$2
    shift 2
    : >"$folder/err" # what the run before printed is no sign of this one
    "$mpbench" run "$@" >"$folder/out" 2>"$folder/err" </dev/null &
    process=$!
    waited=0
    while ! grep -q -e kind -e started "$folder/err" && [ "$waited" -lt $((100 * patience)) ]; do
        sleep 0.1
        waited=$((waited + 1))
    done
    while [ "$count" -gt 0 ]; do
        kill -s "$number" "$process" 2>/dev/null
        sleep 0.3
        count=$((count - 1))
    done
    wait "$process"
    status=$?
}

cat >"$folder/held.lua" <<'EOF'
local mp = require "mp"
local nn, F = mp.nn, mp.fn
return mp.experiment {
    name = "held",
    params = { steps = 15 },
    run = function(run)
        local net = run:model(nn.Sequential { nn.Linear(256, 16), nn.Linear(16, 4096), nn.ReLU(),
                                              nn.Linear(4096, 4) })
        local opt = mp.optim.SGD(net:parameters(), { lr = 1e-3 })
        for _ = 1, run.params.steps do
            local x = mp.randn(512, 256) -- half a MiB that lives through most of the step
            opt:zero_grad()
            F.cross_entropy(net(x), mp.randint(4, 512)):backward()
            opt:step()
        end
    end,
}
EOF
peak_of() {
    run run "$folder/held.lua" --set steps="$1" --json --quiet --no-history
    expect_status 0
    peak=$(sed -n 's/.*"memory": *{"peak": *\([0-9]*\).*/\1/p' "$folder/out" | head -n 1)
}

begin "memory does not grow with the number of steps"
peak_of 15
early=$peak
peak_of 50
[ $((peak - early)) -lt $((4 << 20)) ] || fail "from $early bytes to $peak"
end

begin "SIGTERM finishes the step and ends the run with its result"
signal TERM 1 "$tiny" --set steps=1000000000 --set nan_from=1000000000 --json
expect_status 143
expect_out '"status":"stopped"'
end

cat >"$folder/evaluating.lua" <<'EOF'
local mp = require "mp"
local nn, F = mp.nn, mp.fn
return mp.experiment {
    name = "evaluating",
    data = function()
        local test = { x = mp.randn(64, 8), y = mp.randint(4, 64), batch = 8 }
        return { train = mp.data.tensors(test), test = mp.data.tensors(test) }
    end,
    model = function() return nn.Linear(8, 4) end,
    optim = function(parameters) return mp.optim.SGD(parameters, { lr = 0.1 }) end,
    loss = function(net, batch) return F.cross_entropy(net(batch.x), batch.y) end,
    eval = function()
        print("started")
        while true do end
    end,
}
EOF
begin "a signal that cuts off the last evaluation stops the run"
signal TERM 1 "$folder/evaluating.lua" --steps 2 --quiet --name cut-off
expect_status 143
expect_out 'cut-off stopped'
end

begin "a stopped run that is kept says how to go on"
signal INT 1 "$tiny" --set steps=1000000000 --set nan_from=1000000000 --name halted
expect_status 130
expect_out '^  go on  *mpbench resume [0-9]*$'
id=$(sed -n 's/^  go on *mpbench resume //p' "$folder/out")
"$mpbench" show "$id" | grep -q '^[0-9]* halted stopped' || fail "run $id is another"
signal INT 1 "$tiny" --set steps=1000000000 --set nan_from=1000000000 --db "$folder/else.db"
expect_out "^  go on  *mpbench resume 1 --db $folder/else.db\$"
run run "$tiny" --steps 2 --quiet
expect_no_out 'go on'
signal INT 1 "$tiny" --set steps=1000000000 --set nan_from=1000000000 --no-history
expect_status 130
expect_no_out 'go on'
end

begin "a second signal ends at once"
signal TERM 2 "$folder/endless.lua"
expect_status 143
end

begin "only a loss has a lowest, and a run of no steps says so"
cat >"$folder/lowest.lua" <<'LUA'
return require("mp").experiment { name = "lowest", run = function(run)
    for _, depth in ipairs { 64, 8, 4096 } do run:log { depth = depth, vanish = 0 / 0, d_loss = depth } end
    run:result { vanish = 0 / 0 }
end }
LUA
run run "$folder/lowest.lua" --no-history
expect_status 0
expect_out "depth  *64 -> 4096$"
expect_out "d_loss  *64 -> 4096, lowest 8$"
expect_out "steps  *none: nothing was trained"
[ "$(grep -c "^  vanish" "$folder/out")" -eq 1 ] || fail "vanish is told twice: $(cat "$folder/out")"
end

begin "zero has no sign in a result, as it has none in the history"
cat >"$folder/zero.lua" <<'LUA'
local mp = require "mp"
return mp.experiment { name = "zero", run = function(run)
    local net = run:model(mp.nn.Linear(1, 1))
    local opt = mp.optim.SGD(net:parameters(), { lr = 0.1 })
    for _ = 1, 2 do
        opt:zero_grad()
        local loss = (net(mp.ones(1, 1)) * 0):sum()
        loss:backward()
        opt:step()
        run:log { loss = loss, drift = -0.0 }
    end
    run:result { gap = -0.0 }
end }
LUA
run run "$folder/zero.lua"
expect_status 0
expect_out '^  gap  *0$'
expect_no_out '[ >]-0'
end

begin "a loop of one's own that --steps cuts is said to be cut"
cut='the script was left at step 3, the last that was asked for (--steps): what it does after its loop was not done'
write_loop own </dev/null
run run "$folder/own.lua" --steps 3
expect_status 0
expect_err "$cut"
for words in "run simple --steps 3" "run $folder/own.lua --set length=2 --steps 3"; do
    # shellcheck disable=SC2086 # words
    run $words
    expect_status 0
    ! grep -q 'was left' "$folder/err" || fail "$words: $(cat "$folder/err")"
done
end

begin "more threads than processors are told of"
processors=$(getconf _NPROCESSORS_ONLN)
run run simple --steps 2 --threads $((processors + 1))
expect_err "$((processors + 1)) threads on $processors processors*: they wait for each other"
run run simple --steps 2 --threads "$processors"
! grep -q 'wait for each other' "$folder/err" || fail "$(cat "$folder/err")"
end

exit "$failures"
