#!/bin/sh
# What test scripts share: a folder with a history of its own that goes away at the end, the program
# run in it, and what must come of that. Sourced by sh. `begin NAME` .. `end` is a test: one line,
# "ok NAME" or "not ok NAME: why", where the first thing that fails is the why. A script ends with
# `exit "$failures"`. $MPBENCH is the program.
# shellcheck disable=SC2034 # scripts end with $failures
set -u
mpbench=${MPBENCH:-build/mpbench}
folder=$(mktemp -d) || exit 1
workers= # processes in the background; none outlives the script
# shellcheck disable=SC2086 # words
trap '[ -z "$workers" ] || kill -9 $workers 2>/dev/null; rm -rf "$folder"' EXIT
export MPBENCH_DB="$folder/history.db"
unset MPBENCH_CO2
failures=0
patience=${MPBENCH_TEST_PATIENCE:-1} # tests/test.h says what it is

begin() {
    name=$1
    why=
}
fail() {
    [ -n "$why" ] || why=$1
}
end() {
    if [ -z "$why" ]; then
        echo "ok $name"
    else
        echo "not ok $name: $why"
        failures=1
    fi
}

# sqlite3 on the history: it waits for programs beside it as they wait for each other. One that runs in
# the background is begun as it stands here, so that $! is that of sqlite3.
patient=".timeout $((10000 * ${patience%.*}))"
in_history() { # [SQL]: or what stands on standard input
    sqlite3 -cmd "$patient" "$MPBENCH_DB" "$@"
}

# Runs the program; leaves $status, and its streams in out and err.
run() {
    "$mpbench" "$@" >"$folder/out" 2>"$folder/err" </dev/null
    status=$?
}
expect_status() {
    [ "$status" -eq "$1" ] || fail "exit status $status instead of $1: $(tail -n 2 "$folder/err" | tr '\n' ' ')"
}
expect_out() {
    grep -q -e "$1" "$folder/out" || fail "standard output lacks \"$1\": $(head -n 3 "$folder/out" | tr '\n' ' ')"
}
expect_no_out() {
    ! grep -q -e "$1" "$folder/out" || fail "standard output has \"$1\""
}
expect_err() {
    grep -q -e "$1" "$folder/err" || fail "standard error lacks \"$1\": $(head -n 3 "$folder/err" | tr '\n' ' ')"
}
expect_silent() { # out or err
    [ ! -s "$folder/$1" ] || fail "std$1 should be empty: $(head -n 3 "$folder/$1" | tr '\n' ' ')"
}
expect_error() { # STATUS [TEXT]: in one line
    expect_status "$1"
    expect_err "^mpbench: .*${2:-}"
    [ "$(wc -l <"$folder/err")" -eq 1 ] || fail "not one line of error: $(head -n 3 "$folder/err" | tr '\n' ' ')"
}

# A mistake: nothing on standard output.
expect_usage_error() { # TEXT
    expect_silent out
    expect_error 2 "$1"
}

# A key's first value in the JSON of the last command.
value_of() {
    sed 's/[[:space:]]//g' "$folder/out" | grep -o "\"$1\":[^,}]*" | head -n 1 | cut -d: -f2-
}

# The last value of the loss, or a result of the run, in the JSON of the last command.
result_of() { # NAME
    if [ "$1" = loss ]; then
        sed -n 's/.*"loss":{[^}]*"last":\([^,}]*\).*/\1/p' "$folder/out"
    else
        sed -n 's/.*"metrics":{\([^}]*\)}.*/\1/p' "$folder/out" | tr ',' '\n' | sed -n "s/^\"$1\"://p"
    fi
}

# An experiment of one layer, head, that prints its `kind`; from step nan_from on its loss is no number.
write_tiny() {
    tiny=$folder/tiny.lua
    cat >"$tiny" <<'LUA'
local mp = require "mp"
return mp.experiment {
    name = "tiny",
    about = "Made for a test",
    params = { lr = 0.1, steps = 30, kind = "plain", nan_from = 1000 },
    run = function(run)
        local p, F = run.params, mp.fn
        local net = run:model(mp.nn.Sequential { mp.nn.Linear(8, 4):named "head" })
        local opt = mp.optim.SGD(net:parameters(), { lr = p.lr })
        local scaler = run:scaler()
        print("\27[31mkind\27[0m", p.kind)
        for step = 1, p.steps do
            opt:zero_grad()
            local loss = mp.autocast(function()
                local factor = step >= p.nan_from and 1 / 0 or 1
                return F.cross_entropy(net(mp.randn(16, 8)) * factor, mp.randint(4, 16))
            end)
            scaler:scale(loss):backward()
            scaler:step(opt)
            scaler:update()
            run:log { loss = loss }
        end
        run:result { answer = 42 }
    end,
}
LUA
}

# An experiment of one layer, head, and small steps, that trains until it is ended.
write_endless() {
    endless=$folder/endless.lua
    cat >"$endless" <<'LUA'
local mp = require "mp"
return mp.experiment {
    name = "endless",
    run = function(run)
        local net = run:model(mp.nn.Sequential { mp.nn.Linear(8, 4):named "head" })
        local opt = mp.optim.SGD(net:parameters(), { lr = 0.01 })
        local scaler = run:scaler()
        local x, y = mp.randn(16, 8), mp.randint(4, 16)
        while true do
            opt:zero_grad()
            local loss = mp.autocast(function() return mp.fn.cross_entropy(net(x), y) end)
            scaler:scale(loss):backward()
            scaler:step(opt)
            scaler:update()
            run:log { loss = loss }
        end
    end,
}
LUA
}
# write_loop NAME < LUA: $folder/NAME.lua trains a layer in a loop of its own; what is read comes at the
# end of each `step`, of which there are `run.params.length`.
write_loop() {
    {
        echo "local name = '$1'"
        cat <<'LUA'
local mp = require "mp"
return mp.experiment { name = name, params = { length = 30 }, run = function(run)
    local net = run:model(mp.nn.Linear(4, 1))
    local opt = mp.optim.SGD(net:parameters(), { lr = 1e-2 })
    for step = 1, run.params.length do
        opt:zero_grad()
        local loss = (net(mp.randn(4, 4)) ^ 2):mean()
        loss:backward()
        opt:step()
        run:log { loss = loss }
LUA
        cat
        echo '    end
    run:result { answer = 42 }
end }'
    } >"$folder/$1.lua"
}

is_running() { # NAME COUNT: whether so many runs like that are in progress
    "$mpbench" ls status:running "$1" 2>/dev/null | grep -c '^ *[0-9]' | grep -qx "$2"
}

# Has what the script runs use the emulated card; ends the script where that is not built.
use_emulated_card() { # NAME: of what is skipped then
    MPBENCH_GPU=$(dirname "$mpbench")/emulator/mpbench-gpu.so
    export MPBENCH_GPU
    [ ! -e "$MPBENCH_GPU" ] || return 0
    echo "skip $1: $MPBENCH_GPU is not built, for lack of cuda.h or of a C++ compiler"
    exit 0
}

# Compiles what a test loads into the program.
# shellcheck disable=SC2086 # a compiler may be words, as in "ccache gcc"
compile() { ${CC:-gcc} -shared -fPIC -O1 -o "$@" 2>"$folder/err"; }

# wait_until SECONDS COMMAND ...: until it succeeds; false where that takes longer.
wait_until() {
    tries=$(($1 * 20 * patience))
    shift
    until "$@"; do
        tries=$((tries - 1))
        [ "$tries" -gt 0 ] || return 1
        sleep 0.05
    done
}

# says RUN KEY: a key's first value in the JSON of a run.
says() {
    "$mpbench" show "$1" --json 2>/dev/null | tr ',{' '\n' | sed -n "s/^\"$2\"://p" | head -n 1
}

# What captured steps are held by (captured_steps_test.sh, captured_runs_test.sh): all that is known of
# a run but its seconds. Its model has a layer fc1.
points_of() { # RUN
    "$mpbench" export "$1" --format csv |
        awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) if ($i == "step_seconds") skip = i }
                 { $skip = ""; print }'
}
keep_known() { # RUN FILE: its points, weights and facts, each as FILE with another ending
    points_of "$1" >"$2.csv"
    "$mpbench" export "$1" --format safetensors -o "$2.file" 2>/dev/null
    LC_ALL=C sed -e 's/^.*"__metadata__":{[^}]*},//' -e 's/}} */}}/' "$2.file" >"$2.weights"
    grep -q 'fc1' "$2.weights" || fail "$1: no weights were kept"
    "$mpbench" show "$1" --json | grep -o '"metrics":{[^}]*}\|"skipped":[0-9]*' >"$2.facts"
}
expect_same_known() { # RUN OTHER
    keep_known "$1" "$folder/a"
    keep_known "$2" "$folder/b"
    [ "$(wc -l <"$folder/a.csv")" -gt 10 ] || fail "$1: nothing was kept"
    cmp -s "$folder/a.csv" "$folder/b.csv" || fail "$1: $(diff "$folder/a.csv" "$folder/b.csv" | sed -n 2p) is not $(diff "$folder/a.csv" "$folder/b.csv" | sed -n 4p)"
    for part in weights facts; do
        cmp -s "$folder/a.$part" "$folder/b.$part" || fail "$1: other $part"
    done
}

# Writes loop.lua beside the scripts of a test, which get it by `require "loop"`: the loop that trains.
# draw(step), where there is one, is called before each step, and what it returns goes to loss_of.
use_loop() {
    cat >"$folder/loop.lua" <<'LUA'
local mp = require "mp"
return function(run, opt, steps, loss_of, draw)
    local scaler = run:scaler()
    draw = draw or function(step) return step end
    for step = 1, steps do
        local x, y = draw(step)
        opt:zero_grad()
        local loss = mp.autocast(loss_of, x, y)
        scaler:scale(loss):backward()
        scaler:step(opt)
        scaler:update()
        run:log { loss = loss }
    end
end
LUA
}
