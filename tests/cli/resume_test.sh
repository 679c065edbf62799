#!/bin/sh
# shellcheck disable=SC1091,SC2034,SC2154 # what shell.sh sets and reads
# resume and fork as people type them: a run that was stopped or killed goes on, a fork begins where
# it was asked to, and what cannot go on says why.
. "$(dirname "$0")/../shell.sh"

run() {
    "$mpbench" "$@" --quiet >"$folder/out" 2>"$folder/err"
    status=$?
}
# Beside the error there may be warnings.
expect_error() {
    expect_status "$1"
    expect_err "$2"
}

cat >"$folder/long.lua" <<'LUA'
local mp = require "mp"
local nn, F = mp.nn, mp.fn
return mp.experiment { name = "long", params = { steps = 400, lr = 1e-2, rest = 0 }, run = function(run)
    local p = run.params
    local net = run:model(nn.Sequential { nn.Linear(8, 16), nn.ReLU(), nn.Dropout(0.2), nn.Linear(16, 1) })
    local opt = mp.optim.Adam(net:parameters(), { lr = p.lr })
    local scaler = run:scaler()
    local w = mp.randn(8, 1)
    for step = 1, p.steps do
        local x = mp.randn(16, 8)
        opt:zero_grad()
        local loss = mp.autocast(function() return F.mse(net(x), x:matmul(w)) end)
        scaler:scale(loss):backward()
        scaler:step(opt)
        scaler:update()
        run:log { loss = loss }
        for _ = 1, p.rest do math.sqrt(2) end
        if step == 120 then run:checkpoint() end
    end
end }
LUA

begin "a fork with the parent's options ends as the parent did"
run run "$folder/long.lua" --threads 1 -p fp16 --checkpoint-every 100
expect_status 0
run fork 1 --at 300
expect_status 0
run fork 1 --at 37
expect_status 0
for id in 2 3; do
    [ "$(says $id last)" = "$(says 1 last)" ] || fail "run $id: $(says $id last), not $(says 1 last)"
    [ "$(says $id steps)" = 400 ] || fail "run $id has $(says $id steps) steps"
done
end

begin "a fork keeps its own beginning, so that each of its steps can be forked and resumed"
run run "$folder/long.lua" --threads 1 -p fp16 --steps 200 --name stem --db "$folder/forks.db"
run fork stem --at 137 --set lr=2e-2 --name branch --db "$folder/forks.db"
run fork branch --at 150 --name leaf --db "$folder/forks.db"
expect_status 0
run fork branch --at 137 --name twin --db "$folder/forks.db"
expect_status 0
run resume branch --at 140 --db "$folder/forks.db"
expect_status 0
points() { # RUN: from step 151 on
    "$mpbench" export "$1" --format csv --db "$folder/forks.db" | awk -F, '$1 > 150' | cut -d, -f1,3,5
}
points branch >"$folder/of-branch"
[ "$(wc -l <"$folder/of-branch")" -ge 50 ] || fail "nothing was exported: $(head -n 2 "$folder/of-branch")"
for fork in leaf twin; do
    points $fork | cmp -s - "$folder/of-branch" || fail "$fork goes another way than the fork did"
done
points stem | cmp -s - "$folder/of-branch" && fail "the fork's own rate changed nothing"
end

begin "what a fork cost is shown as of its own steps"
"$mpbench" show 2 >"$folder/out"
expect_out "fork of *1 at step 300"
expect_out "time .* s since step 300"
"$mpbench" compare 1 2 >"$folder/out"
expect_out "is a fork of run 1: its time"
end

begin "the memory of a fork is that of its steps, not of the way to them"
rest=$(says 2 peak) whole=$(says 1 peak)
[ "$rest" -gt 0 ] || fail "no memory at all"
[ "$rest" -le "$((whole + whole / 4))" ] || fail "$rest bytes, its parent took $whole"
end

begin "a fork takes other options"
run fork 1 --at 300 -p bf16 --set lr=1e-3 --loss-scale 8
expect_status 0
[ "$(says 4 precision)" = '"bf16"' ] || fail "precision $(says 4 precision)"
[ "$(says 4 last)" != "$(says 1 last)" ] || fail "nothing changed"
run fork 1 --at 4000
expect_error 2 "ended at step 400"
end

begin "a format in which nothing trains is refused before the parent is trained again"
"$mpbench" fork 1 --at 61 -p int8 >"$folder/out" 2>"$folder/err"
status=$?
expect_error 3 'int8: for evaluation alone'
[ "$(wc -l <"$folder/err")" -eq 1 ] || fail "$(head -n 1 "$folder/err")"
"$mpbench" fork 1 --at 61 --layer '*=int8' >"$folder/out" 2>"$folder/err"
status=$?
expect_error 3 'int8: for evaluation alone'
[ "$(wc -l <"$folder/err")" -eq 1 ] || fail "$(head -n 1 "$folder/err")"
end

begin "what no run takes is refused before the parent is trained again"
refused() {
    "$mpbench" fork 1 --at 61 "$@" >"$folder/out" 2>"$folder/err"
    status=$?
}
refused --set rl=1
expect_error 2 "^mpbench: --set rl: long has no such parameter; it has: lr rest steps$"
[ "$(wc -l <"$folder/err")" -eq 1 ] || fail "$(head -n 1 "$folder/err")"
refused --set lr=much
expect_error 2 "^mpbench: --set lr=much: a number expected"
[ "$(wc -l <"$folder/err")" -eq 1 ] || fail "$(head -n 1 "$folder/err")"
refused --layer fc9=bf16
expect_error 2 "^mpbench: --layer fc9: no layer of the model has such a name"
[ "$(wc -l <"$folder/err")" -eq 1 ] || fail "$(head -n 1 "$folder/err")"
end

begin "what would train nothing is refused at once"
run resume 1
expect_error 2 "has finished, at step 400.*fork"
run fork 1
expect_error 2 "would train nothing: give --at"
run fork 1 --at 300 --steps 200
expect_error 2 "--steps 200: the fork begins after step 300"
end

if command -v sqlite3 >/dev/null 2>&1; then
    begin "only what a run may be asked for is asked for again"
    cp "$MPBENCH_DB" "$folder/kept.db"
    in_history "INSERT INTO options SELECT 1, 100 + value, key, '$folder/made' FROM
        json_each('{\"db\": 0, \"output\": 1, \"version\": 2, \"help\": 3, \"seeds\": 4, \"limit\": 5}')"
    run fork 1 --at 300 --steps 310
    expect_status 0
    [ ! -e "$folder/made" ] || fail "a row of the history made a file"
    [ "$(says @last steps)" = 310 ] || fail "the fork is not in this history"
    mv "$folder/kept.db" "$MPBENCH_DB"
    end
else
    echo "skip only what a run may be asked for is asked for again: no sqlite3"
fi

begin "a run that was killed is resumed and ends as if it had not been"
"$mpbench" run "$folder/long.lua" --threads 1 -p fp16 --checkpoint-every 100 --set rest=30000 \
    --quiet >"$folder/out" 2>&1 &
worker=$!
workers="$workers $worker"
wait_until 10 test -e "$folder/checkpoints/5/step-200.safetensors"
run resume 5
expect_error 1 "in progress"
run fork 5 --at 399 # where it may never come: nobody could see or stop what trains up to there
expect_error 2 "--at 399: run long-5 has only come to step [0-9]*"
kill -9 "$worker"
wait "$worker" 2>/dev/null
sleep 0.2
run resume 5
expect_status 0
[ "$(says 5 last)" = "$(says 1 last)" ] || fail "loss $(says 5 last), not $(says 1 last)"
[ "$(says 5 status)" = '"finished"' ] || fail "status $(says 5 status)"
[ "$(says 5 applied)" = "$(says 1 applied)" ] || fail "applied $(says 5 applied)"
end

begin "the first step after a resume took its own time, not that of the steps before it"
"$mpbench" export 5 --format jsonl >"$folder/out"
sed -n 's/.*"step_seconds","step":\([0-9]*\),"value":\(.*\)}/\1 \2/p' "$folder/out" |
    awk '$1 <= 200 { before += $2 } ($1 == 201 || $1 == 301) && $2 > took { took = $2 }
        END { print took " s, all before it " before " s"; exit !(took > 0 && took < before) }' \
        >"$folder/err" || fail "$(cat "$folder/err")"
end

begin "a long replay says where it is"
if command -v script >/dev/null 2>&1; then
    TERM=xterm script -qec "'$mpbench' fork 5 --at 300" /dev/null </dev/null >"$folder/out" 2>&1
    grep -q 'replaying to step 300  at step [0-9]' "$folder/out" || fail "$(head -c 300 "$folder/out")"
fi
end

begin "what a fork that was killed left behind is taken away by gc"
mkdir "$folder/tmp"
scratch() { # the folder of a fork between checkpoints
    find "$folder/checkpoints" -name 'scratch-*' | grep .
}
TMPDIR=$folder/tmp "$mpbench" fork 5 --at 150 --quiet >/dev/null 2>&1 &
worker=$!
workers="$workers $worker"
wait_until 10 scratch >/dev/null || fail "no folder beside the checkpoints"
kill -STOP "$worker"
touch "$(scratch)/step-150.safetensors.tmp"
"$mpbench" gc >"$folder/out"
expect_out "1 run in progress left alone"
scratch >/dev/null || fail "gc took the folder of a fork that lives"
kill -9 "$worker"
wait "$worker" 2>/dev/null
"$mpbench" gc >"$folder/out"
expect_out "1 file of checkpoints that no run needs removed"
scratch >/dev/null && fail "gc left the folder"
[ -z "$(ls "$folder/tmp")" ] || fail "a temporary folder elsewhere"
run fork 5 --at 150
expect_status 0
scratch >/dev/null && fail "a fork that is done left its folder"
end

begin "one flipped bit is seen, and the checkpoint before it offered"
file=$folder/checkpoints/1/step-400.safetensors
size=$(wc -c <"$file")
printf '\377' | dd of="$file" bs=1 seek=$((size - 40)) conv=notrunc 2>/dev/null
run fork 1 --steps 500
expect_error 1 "checksum.*--at 300"
run fork 1 --at 300
expect_status 0
end

begin "a script that has changed is told, and one that goes another way refused"
sed -i 's/Dropout(0.2)/Dropout(0.2), nn.ReLU(), nn.Linear(16, 16)/' "$folder/long.lua"
run fork 1 --at 300
expect_error 1 "has changed since"
grep -q "another model.*missing in the file: weight/linear3.weight" "$folder/err" ||
    fail "$(head -c 400 "$folder/err")"
end

begin "a parameter that shapes the model is refused to a fork, and leaves no run"
cat >"$folder/wide.lua" <<'LUA'
local mp = require "mp"
return mp.experiment { name = "wide", params = { width = 4, lr = 0.1 }, run = function(run)
    local net = run:model(mp.nn.Linear(4, run.params.width))
    local opt = mp.optim.SGD(net:parameters(), { lr = run.params.lr })
    for _ = 1, 8 do
        opt:zero_grad()
        net(mp.randn(2, 4)):pow(2):mean():backward()
        opt:step()
    end
end }
LUA
run run "$folder/wide.lua" --name wide --threads 1
expect_status 0
run fork wide --at 4 --set lr=0.2 --set width=16 --name wider
expect_error 2 '^mpbench: .*--set .*width=16: the checkpoint is of another model; what shapes the model cannot change'
! "$mpbench" show wider >"$folder/out" 2>&1 || fail "the run is there"
run fork wide --at 4 --set lr=0.2 --name wider
expect_status 0
end

begin "a run that goes on past its plan keeps no checkpoint a step, and tells no end"
cat >"$folder/more.lua" <<'LUA'
local mp = require "mp"
return mp.experiment { name = "more", params = { steps = 5 }, run = function(run)
    local net = run:model(mp.nn.Linear(4, 4))
    local opt = mp.optim.SGD(net:parameters(), { lr = 0.1 })
    for _ = 1, 8 * run.params.steps do
        opt:zero_grad()
        local loss = net(mp.randn(2, 4)):pow(2):mean()
        loss:backward()
        opt:step()
        run:log { loss = loss }
    end
end }
LUA
run run "$folder/more.lua" --name more --threads 1
expect_status 0
"$mpbench" show more >"$folder/out"
expect_out "steps  *40"
grep -q "of 5" "$folder/out" && fail "shown as $(grep "steps  " "$folder/out")"
kept=$(find "$folder" -path "*/$(says more id)/*.safetensors" | wc -l)
if [ "$kept" -lt 1 ] || [ "$kept" -gt 2 ]; then
    fail "$kept checkpoints of 40 steps are kept"
fi
end

begin "weights are found by their names, and a missing one is refused"
run run "$folder/long.lua" --weights "$folder/checkpoints/1/step-300.safetensors"
expect_error 1 "missing in the file: linear3.weight"
sed -i 's/, nn.ReLU(), nn.Linear(16, 16)//' "$folder/long.lua"
run run "$folder/long.lua" --weights "$folder/checkpoints/1/step-300.safetensors" --set lr=0 --steps 1
expect_status 0
run resume 5 --weights-only
expect_status 0
end

cat >"$folder/eval.lua" <<'LUA'
local mp = require "mp"
local nn, F = mp.nn, mp.fn
return mp.experiment { name = "eval", params = { steps = 150, widths = 4 }, run = function(run)
    local net = run:model(nn.Linear(4, run.params.widths))
    local opt = mp.optim.SGD(net:parameters(), { lr = 1e-3 })
    local scaler = run:scaler()
    local x = mp.randn(8, 4)
    for step = 1, run.params.steps do
        opt:zero_grad()
        local loss = (net(x) ^ 2):mean() * (step == 101 and math.huge or 1)
        scaler:scale(loss):backward()
        scaler:step(opt)
        scaler:update()
        run:log { loss = loss }
        if step % 50 == 0 then run:log { accuracy = net(x):mean():item() } end
    end
end }
LUA
begin "the evaluation of the checkpoint's own step is logged again by a resume and a fork"
run run "$folder/eval.lua" --threads 1 -p fp16 --checkpoint-every 100 --name evaluated
expect_status 0
skipped=$(says evaluated skipped)
[ "$skipped" = 1 ] || fail "$skipped steps were skipped"
run resume evaluated --at 100
expect_status 0
[ "$(says evaluated status)" = '"finished"' ] || fail "status $(says evaluated status)"
[ "$(says evaluated steps)" = 150 ] || fail "$(says evaluated steps) steps"
run fork evaluated --at 100 --name forked
expect_status 0
[ "$(says forked status)" = '"finished"' ] || fail "status of the fork $(says forked status)"
end

begin "a step that is skipped as the first after a resume counts as skipped"
for one in evaluated forked; do
    [ "$(says $one skipped)" = 1 ] || fail "$one: $(says $one skipped) skipped"
    [ "$(says $one applied)" = 149 ] || fail "$one: $(says $one applied) applied"
done
end

begin "a resume that is refused leaves the run as it was"
"$mpbench" show evaluated --json >"$folder/before"
sed -i 's/nn.Linear(4, /nn.Linear(4, 1 + /' "$folder/eval.lua"
run resume evaluated --at 100
expect_error 1 "another model"
expect_no_out failed
"$mpbench" show evaluated --json >"$folder/after"
cmp -s "$folder/before" "$folder/after" || fail "$(diff "$folder/before" "$folder/after" | head -c 300)"
run resume evaluated --at 150
expect_error 2 "has finished, at step 150" # what came after the step is not superseded
end

cat >"$folder/epochs.lua" <<'LUA'
local mp = require "mp"
local nn, F = mp.nn, mp.fn
return mp.experiment {
    name = "epochs", params = { epochs = 3 },
    data = function() return { train = mp.data.synthetic { shape = { 8 }, classes = 4, count = 64, batch = 8 } } end,
    model = function() return nn.Linear(8, 4) end,
    optim = function(parameters) return mp.optim.SGD(parameters, { lr = 0.1 }) end,
    loss = function(net, batch) return F.cross_entropy(net(batch.x), batch.y) end,
}
LUA
begin "a fork of a run whose epochs are over is one of more epochs"
run run "$folder/epochs.lua" --name whole --epochs 2
expect_status 0
run resume whole
expect_error 2 "fork whole --epochs N"
run fork whole --epochs 4 --name longer
expect_status 0
[ "$(says longer steps)" = 32 ] || fail "$(says longer steps) steps"
run fork whole --steps 24 --name empty
expect_error 2 "begins after step 16, where the epochs end, .*: --epochs N gives it more"
"$mpbench" show empty >"$folder/out" 2>&1 && fail "a run is left of it"
run run "$folder/epochs.lua" --name short --steps 8
run resume short
expect_error 2 "fork short --steps N"
run fork short --steps 12 --name on
expect_status 0
[ "$(says on steps)" = 12 ] || fail "$(says on steps) steps"
end

begin "a fork that its parent's --steps would end at once is refused, whatever else is set"
run run "$folder/long.lua" --name capped --steps 8
for words in "capped --set lr=0.5" "capped --set steps=500" "short --epochs 5"; do
    # shellcheck disable=SC2086 # words
    run fork $words --name empty
    expect_error 2 "ended at step 8, so that a fork would train nothing: give --at an earlier step, or --steps N"
done
"$mpbench" show empty >"$folder/out" 2>&1 && fail "a run is left of it"
run fork capped --set lr=0.5 --steps 12 --name beyond
expect_status 0
[ "$(says beyond steps)" = 12 ] || fail "$(says beyond steps) steps"
run fork capped --set lr=0.5 --at 4
expect_status 0
end

begin "a fork keeps the layers that were set live but for those that it names"
"$mpbench" run "$folder/long.lua" -p fp16 --set steps=100000000 --name live --quiet >/dev/null 2>&1 &
worker=$!
workers="$workers $worker"
i=0
until "$mpbench" ctl live set layer.linear1=bf16 >/dev/null 2>&1; do
    i=$((i + 1))
    [ $i -lt $((100 * patience)) ] || break
    sleep 0.1
done
"$mpbench" ctl live set layer.linear2=bf16 >/dev/null 2>&1 || fail "linear2 was not set"
"$mpbench" ctl live stop >/dev/null 2>&1 || fail "it was not stopped"
wait "$worker"
more="--set steps=$(($(says live steps) + 2))"
formats_of() { # RUN: what its layers are set to
    "$mpbench" show "$1" | awk '$1 ~ /^linear[12]$/ { printf "%s=%s ", substr($1, 7), $3 }'
}
# shellcheck disable=SC2086 # options
for with in "kept:1=bf16 2=bf16" "one:1=fp32 2=bf16:--layer linear1=fp32" "none:1=auto 2=auto:-p bf16"; do
    fork=${with%%:*} rest=${with#*:}
    options=${rest#*:}
    [ "$options" != "$rest" ] || options=
    run fork live $more $options --name "$fork"
    expect_status 0
    [ "$(formats_of "$fork")" = "${rest%%:*} " ] || fail "$fork: $(formats_of "$fork")"
done
end

cat >"$folder/trusted.lua" <<'LUA'
local mp = require "mp"
return mp.experiment { name = "trusted", params = { steps = 100 }, run = function(run)
    io.open("/dev/null"):close()
    local net = run:model(mp.nn.Linear(4, 1))
    local opt = mp.optim.SGD(net:parameters(), { lr = 1e-3 })
    local scaler = run:scaler()
    for _ = 1, run.params.steps do
        opt:zero_grad()
        scaler:scale((net(mp.randn(4, 4)) ^ 2):mean()):backward()
        scaler:step(opt)
        scaler:update()
    end
end }
LUA
begin "trust is asked for at every resume of a run that had it"
run run "$folder/trusted.lua" --trust --checkpoint-every 50 --name trusted
expect_status 0
run resume trusted --at 50
expect_error 2 "was started with --trust"
run resume trusted --at 50 --trust
expect_status 0
run resume trusted --at 50
expect_error 2 "was started with --trust"
end

# Its tenth step tells that it is there, and waits until it may go on, once it is asked to.
write_loop waits <<LUA
        local function is_there(name) local file = io.open("$folder/" .. name) return file and file:close() end
        if step == 10 and is_there "wait" then
            io.open("$folder/waiting", "w"):close()
            while not is_there "go_on" do end
        end
LUA
begin "a resume that is stopped before its checkpoint leaves the run as it was, and says so"
run run "$folder/waits.lua" --trust --checkpoint-every 20 --name waits
"$mpbench" show waits --json >"$folder/before"
touch "$folder/wait"
for with in "" --json; do
    rm -f "$folder/waiting" "$folder/go_on"
    # shellcheck disable=SC2086 # an option or none
    "$mpbench" resume waits --at 20 --trust --quiet $with >"$folder/out" 2>"$folder/err" &
    worker=$!
    workers="$workers $worker"
    wait_until 10 test -e "$folder/waiting" || fail "it does not come to step 10"
    kill -INT "$worker"
    touch "$folder/go_on"
    wait "$worker"
    status=$?
    expect_status 130
    expect_silent out
    expect_err "^mpbench: waits was not resumed: it is as before$"
    "$mpbench" show waits --json >"$folder/after"
    cmp -s "$folder/before" "$folder/after" || fail "the run is another one"
done
rm "$folder/wait"
end

begin "a fork whose beginning has no place beside the history is status 4"
run run "$folder/long.lua" --steps 8 --name placeless --db "$folder/placeless/history.db"
expect_status 0
mv "$folder/placeless/checkpoints" "$folder/placeless/moved"
: >"$folder/placeless/checkpoints" # where a folder is wanted
run fork placeless --at 5 --db "$folder/placeless/history.db"
expect_error 4 "^mpbench: fork: cannot make the folder .*placeless/checkpoints/scratch-1: Not a directory"
end

begin "what is too long to be kept with a run is refused, not cut"
long=$(printf '%064d' 0)
run run simple --steps 1 --name "x$long"
expect_error 2 "--name: longer than 63 bytes"
run run simple --steps 1 --tag "$long"
expect_error 2 "--tag: longer than 63 bytes"
run run simple --steps 1 --note "$long$long$long$long"
expect_error 2 "--note: longer than 255 bytes"
run run "$folder/eval.lua" --set "steps=$long$long$long$long"
expect_error 2 "--set: longer than 255 bytes"
end

# Threads that nobody asked for are those of the device that it goes on on.
begin "a fork to another device has the threads of that one"
run run "$folder/long.lua" --steps 1 --device cpu
usual=$(sed -n 's/.* on cpu (.*), \([0-9]* thread\).*/\1/p' "$folder/out")
run run "$folder/long.lua" --steps 4 --device ref --name reference
run fork reference --at 2 --device cpu
expect_status 0
expect_out " on cpu .*, ${usual:-no threads shown}"
end

begin "resume and fork find the script from another folder, and say how to put back one that is gone"
mkdir "$folder/here" "$folder/there"
cp "$folder/long.lua" "$folder/here/away.lua"
program=$mpbench
[ "${mpbench#/}" != "$mpbench" ] || program=$PWD/$mpbench
(cd "$folder/here" && "$program" run ./away.lua --quiet --steps 4 --checkpoint-every 2 --name away >"$folder/out" 2>"$folder/err") ||
    fail "$(cat "$folder/err")"
(cd "$folder/there" && "$program" fork away --at 2 --quiet >"$folder/out" 2>"$folder/err") || fail "$(cat "$folder/err")"
(cd "$folder/there" && "$program" resume away --at 2 --quiet >"$folder/out" 2>"$folder/err") || fail "$(cat "$folder/err")"
cp "$folder/here/away.lua" "$folder/kept.lua"
rm "$folder/here/away.lua"
run fork away --at 2
expect_error 1 "here/away.lua is not there any more; put it back, as with .mpbench show [0-9]* --script >FILE"
"$mpbench" show away --script >"$folder/here/away.lua"
cmp -s "$folder/here/away.lua" "$folder/kept.lua" || fail "its text is another"
run fork away --at 2
expect_status 0
end

begin "a fork trains in every format that a run trains in"
for format in tf32 fp8 e5m2 mxfp8 mxfp6_e3m2 mxfp4 nvfp4 O2 auto amp; do
    run fork 1 --at 390 -p $format --name "in.$format"
    expect_status 0
    [ "$(says "in.$format" steps)" = 400 ] || fail "$format: $(says "in.$format" steps) steps"
done
end

exit "$failures"
