#!/bin/sh
# shellcheck disable=SC1091,SC2034,SC2154,SC2317 # what shell.sh sets, reads and calls
# What is said of a run that went on from a checkpoint: its speed, its memory and its end are those of
# what was trained, wherever the checkpoint was taken.
. "$(dirname "$0")/../shell.sh"

# An epoch is 20 steps, and ends with an evaluation that takes far more memory than a step.
cat >"$folder/epochs.lua" <<'LUA'
local mp = require "mp"
local nn, F = mp.nn, mp.fn
local function made(count, batch, shuffle)
    return mp.data.synthetic { shape = { 64 }, classes = 4, count = count, batch = batch, shuffle = shuffle }
end
return mp.experiment {
    name = "epochs", params = { epochs = 2, lr = 0.1, width = 64, batch = 8 },
    data = function(p) return { train = made(20 * p.batch, p.batch), test = made(8192, 1024) } end,
    model = function(p) return nn.Sequential { nn.Linear(64, p.width), nn.Linear(p.width, 4) } end,
    optim = function(parameters, p) return mp.optim.SGD(parameters, { lr = p.lr }) end,
    loss = function(net, batch) return F.cross_entropy(net(batch.x), batch.y) end,
    eval = function(net, batch)
        local y = batch.x
        for _ = 1, 32 do y = y * 0.5 end
        return { spread = (y * y):mean(), loss = F.cross_entropy(net(batch.x), batch.y) }
    end,
}
LUA
train() {
    "$mpbench" "$@" --quiet >"$folder/out" 2>"$folder/err"
    status=$?
    expect_status 0
}
train run "$folder/epochs.lua" --threads 1 --checkpoint-every 20 --name whole

begin "the memory of a fork is its parent's, from the end of an epoch too"
most=$(says whole peak)
for at in 10 20 30; do
    train fork whole --at $at --name "from$at"
    [ "$(says "from$at" peak)" -le "$((most + most / 20))" ] ||
        fail "from step $at: $(says "from$at" peak) bytes, its parent took $most"
    [ "$(says "from$at" last)" = "$(says whole last)" ] || fail "from step $at: another loss"
done
end

begin "a run that goes on from the end of an epoch takes no more memory than before"
train resume whole --at 20
[ "$(says whole peak)" -le "$((most + most / 20))" ] || fail "$(says whole peak) bytes, and $most before"
end

# The steps before the checkpoint take long, those after it are few, and a replay computes nothing.
begin "a run that goes on from the end of an epoch is as fast as its steps were"
train run "$folder/epochs.lua" --threads 1 --checkpoint-every 20 --steps 24 --set width=2048 --set batch=128 --name slow
train resume slow --at 20
"$mpbench" export slow --format jsonl >"$folder/out"
sed -n 's/.*"step_seconds","step":\([0-9]*\),"value":\(.*\)}/\1 \2/p' "$folder/out" |
    awk -v speed="$(says slow steps_per_s)" '$1 > 1 && $1 <= 20 { before += $2 }
        END { trained = 23 / speed; print trained " s of training, of which " before " s before the checkpoint"
              exit !(before > 0 && trained > 0.9 * before) }' >"$folder/err" || fail "$(cat "$folder/err")"
end

# Two seconds of it; where the steps themselves took as much, the machine did.
begin "a run that was stopped by Ctrl-Z is as fast as its steps were"
"$mpbench" run "$folder/epochs.lua" --threads 1 --set epochs=100000 --set width=512 --name held --quiet >"$folder/out" 2>&1 &
worker=$!
workers="$workers $worker"
has_trained() { [ "0$(says held steps)" -gt "$1" ]; }
wait_until 20 has_trained 20 || fail "held does not train"
kill -STOP "$worker"
sleep 2
kill -CONT "$worker"
wait_until 20 has_trained "$(($(says held steps) + 20))" || fail "held does not go on"
kill -INT "$worker"
wait "$worker"
"$mpbench" export held --format jsonl >"$folder/out"
sed -n 's/.*"step_seconds","step":\([0-9]*\),"value":\(.*\)}/\1 \2/p' "$folder/out" |
    awk -v speed="$(says held steps_per_s)" -v steps="$(says held steps)" '
        $1 > 1 { timed++; sum += $2; if ($2 > most) most = $2 }
        END { print timed " of " steps " steps timed, the longest " most " s; " speed " steps/s, by steps " timed / sum
              exit !(timed >= steps - 3 && timed < steps && most < 1.5 && speed > 0.8 * timed / sum) }' >"$folder/err" ||
    fail "$(cat "$folder/err")"
end

# Ctrl-Z comes at any moment; in the middle of a commit it would lock all others out.
begin "a run that was stopped by Ctrl-Z holds no lock of the history"
"$mpbench" run "$folder/epochs.lua" --threads 1 --set epochs=100000 --name stopped --quiet >/dev/null 2>&1 &
worker=$!
workers="$workers $worker"
is_stopped() { [ "$(cut -d ' ' -f 3 "/proc/$worker/stat")" = T ]; }
wait_until 20 is_running stopped 1 || fail "it does not train"
for at in 1 2 3 4 5 6 7 8 9 10 11 12; do
    sleep 0.0$at
    kill -TSTP "$worker"
    wait_until 5 is_stopped || fail "stop $at: it goes on"
    "$mpbench" tag stopped "at $at" >"$folder/out" 2>&1 || fail "stop $at: $(cat "$folder/out")"
    kill -CONT "$worker"
done
at=0
while [ $((at += 1)) -le 60 ]; do # and once it goes on, no stop is left over
    sleep 0.0$((at % 7))
    kill -TSTP "$worker"
    wait_until 5 is_stopped || fail "stop $at: it goes on"
    kill -CONT "$worker"
    sleep 0.03
    ! is_stopped || fail "stop $at: it was stopped twice"
    kill -CONT "$worker"
done
kill -INT "$worker"
wait "$worker"
[ $? = 130 ] || fail "it did not end as a run does"
end

begin "a run has no checkpoint past its end to go on from"
"$mpbench" show whole --json >"$folder/before"
for words in "resume whole --at 41" "resume whole --at 5000" "resume whole --at 5000 --weights-only" \
    "fork whole --at 5000"; do
    # shellcheck disable=SC2086 # words
    run $words
    expect_usage_error "--at [0-9]*: run whole ended at step 40$"
done
run resume whole --at 40
expect_usage_error "run whole has finished, at step 40: .mpbench fork whole --epochs N. trains on"
"$mpbench" show whole --json >"$folder/after"
cmp -s "$folder/before" "$folder/after" || fail "the run is another one: $(diff "$folder/before" "$folder/after" | head -c 300)"
train resume whole --at 39
[ "$(says whole steps)" = 40 ] || fail "$(says whole steps) steps"
end

cat >"$folder/broken.lua" <<'LUA'
local mp = require "mp"
local breaks_at = require "breaks"
return mp.experiment { name = "broken", params = { steps = 40 }, run = function(run)
    local net = run:model(mp.nn.Linear(4, 1))
    local opt = mp.optim.SGD(net:parameters(), { lr = 0.1 })
    for step = 1, run.params.steps do
        opt:zero_grad()
        local loss = net(mp.randn(8, 4)):pow(2):mean()
        loss:backward()
        opt:step()
        run:log { loss = loss }
        if step == breaks_at then error "no more" end
    end
end }
LUA
begin "a run that did not finish goes on from its last checkpoint, from its very end too"
for kept in 20 30; do # every so many steps
    echo 'return 30' >"$folder/breaks.lua"
    run run "$folder/broken.lua" --threads 1 --checkpoint-every $kept --name "kept$kept" --quiet
    expect_error 1 "no more"
    run resume "kept$kept" --at 31
    expect_usage_error "--at 31: run kept$kept ended at step 30$"
    echo 'return 0' >"$folder/breaks.lua"
    train resume "kept$kept" --at 30
    [ "$(says "kept$kept" steps)" = 40 ] || fail "kept$kept: $(says "kept$kept" steps) steps"
    [ "$(says "kept$kept" status)" = '"finished"' ] || fail "kept$kept: $(says "kept$kept" status)"
done
end

# One that is resumed trained before and after, not in between.
begin "runs that took turns are not said to have trained at the same time"
write_endless
train_a_while() { # COMMAND ...: until it has trained, then it is stopped
    "$mpbench" "$@" --quiet >"$folder/out" 2>&1 &
    worker=$!
    workers="$workers $worker"
    wait_until 20 is_running turns 1 || fail "$1: it does not train"
    kill -INT "$worker"
    wait "$worker"
}
train_a_while run "$endless" --threads 1 --name turns
train run "$endless" --threads 1 --steps 500 --name between
train_a_while resume turns
run compare turns between
expect_status 0
expect_no_out "at the same time"
end

exit "$failures"
