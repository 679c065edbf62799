#!/bin/sh
# shellcheck disable=SC1091,SC2034,SC2154,SC2317 # what shell.sh sets, reads and calls
# What the system can do to a process: the clock set, no more threads or forks, no memory. $MPBENCH is the program.
. "$(dirname "$0")/../shell.sh"
here=$(dirname "$0")
export CLOCK_SHIFT="$folder/shift"

cat >"$folder/tiny.lua" <<'LUA'
local mp = require "mp"
return mp.experiment {
    name = "tiny",
    params = { grow = 1 },
    run = function(run)
        local net = run:model(mp.nn.Linear(8, 4):named "head")
        local opt = mp.optim.SGD(net:parameters(), { lr = 0.01 })
        local scaler = run:scaler()
        local rows = 16
        while true do
            local x, y = mp.randn(rows, 8), mp.randint(4, rows)
            rows = rows * run.params.grow
            opt:zero_grad()
            local loss = mp.fn.cross_entropy(net(x), y)
            scaler:scale(loss):backward()
            scaler:step(opt)
            scaler:update()
            run:log { loss = loss }
        end
    end,
}
LUA

# field RUN KEY: of `show --json`.
field() {
    "$mpbench" show "$1" --json 2>/dev/null | sed -n "s/.*\"$2\":\"*\([^,\"}]*\).*/\1/p"
}
has_more() { # steps of RUN in the history than COUNT
    now=$(field "$1" steps)
    [ "${now:-0}" -gt "$2" ]
}
# The last sign of life of whom there is one.
beat() {
    in_history 'SELECT max(beat_ms) FROM workers' 2>/dev/null
}
has_beaten_since() {
    [ "$(beat)" != "$1" ]
}
stands_still() { # nothing new of RUN comes into the history
    still=$(field "$1" steps)
    sleep 0.5
    [ "$(field "$1" steps)" = "$still" ]
}
is_whole() {
    [ "$(in_history 'PRAGMA quick_check')" = ok ] || fail "the history is damaged"
    "$mpbench" ls --json | grep -q '"status":"running"' && fail "a run is left running"
}

begin "memory that runs out in the middle of a run is told with its size, and is in the history"
timeout $((10 * patience)) prlimit --as=256000000 "$mpbench" run "$folder/tiny.lua" --name large --threads 1 --set grow=2 \
    --quiet >/dev/null 2>"$folder/err"
status=$?
if ldd "$mpbench" 2>/dev/null | grep -q -e libasan -e libtsan; then
    echo "skip what the system does to a process: nothing can be limited in this build"
    exit 0
fi
[ "$status" -eq 1 ] || fail "exit status $status instead of 1"
grep -q 'out of memory: [0-9]* MiB asked.*a smaller batch' "$folder/err" || fail "$(cat "$folder/err")"
[ "$(field large status)" = failed ] || fail "status is $(field large status)"
is_whole
end

# limited BYTES COMMAND ...: no file may become larger.
limited() {
    most=$1
    shift
    prlimit --fsize="$most" "$mpbench" "$@" >"$folder/out" 2>"$folder/err"
    status=$?
}
begin "a file that may not grow is told with the limit to raise"
"$mpbench" run simple --name whole --steps 60 --threads 1 --quiet >/dev/null 2>&1
for bytes in 4096 50000 400000; do
    rm -rf "$folder/small"
    limited "$bytes" run simple --threads 1 --steps 3000 --name grown --quiet --db "$folder/small/history.db"
    expect_error 4 'small/history.db may not grow: File too large; raise the limit on the size of files'
done
"$mpbench" show grown --db "$folder/small/history.db" >"$folder/out" 2>&1
expect_out '^ *error .* or could not write the history'
limited 4096 export whole --format jsonl -o "$folder/whole.jsonl"
expect_error 1 'File too large; raise the limit'
limited 20000 fork whole --at 50 --quiet
expect_status 4
expect_err '^mpbench: checkpoint: .*scratch-1/step-50.safetensors.*: File too large'
end

if ! compile "$folder/process.so" "$here/process.c"; then
    echo "skip the clock, threads and forks: $(head -n 1 "$folder/err")"
    exit "$failures"
fi

begin "threads that cannot be started are one line with cause and remedy"
for left in 0 1 2 3; do
    THREADS_LEFT=$left LD_PRELOAD="$folder/process.so" timeout $((2 * patience)) "$mpbench" run "$folder/tiny.lua" \
        --name "threads$left" --threads 3 --quiet >/dev/null 2>"$folder/err"
    status=$?
    [ "$status" -eq 1 ] || fail "$left threads: exit status $status instead of 1"
    [ "$(wc -l <"$folder/err")" -eq 1 ] || fail "$left threads: $(cat "$folder/err")"
    grep -q 'Resource temporarily unavailable; raise the limit on processes' "$folder/err" ||
        fail "$left threads: $(cat "$folder/err")"
done
is_whole
end

begin "a matrix that cannot start its runs says why"
FORKS_LEFT=0 timeout $((5 * patience)) env LD_PRELOAD="$folder/process.so" "$mpbench" matrix "$folder/tiny.lua" -p fp32,bf16 \
    >/dev/null 2>"$folder/err"
status=$?
[ "$status" -eq 1 ] || fail "exit status $status instead of 1: $(cat "$folder/err")"
grep -q 'cannot be started: .*; raise the limit on processes' "$folder/err" || fail "$(cat "$folder/err")"
end

begin "a clock that is put a year on or back changes nothing of a run"
LD_PRELOAD="$folder/process.so" timeout $((20 * patience)) "$mpbench" run "$folder/tiny.lua" --name timeless --threads 1 \
    --quiet >/dev/null 2>&1 &
worker=$!
workers="$workers $worker"
before=0
wait_until 10 has_more timeless 0 || fail "nothing is recorded"
for shift in 0 31536000 -31536000; do
    echo "$shift" >"$folder/new" && mv "$folder/new" "$CLOCK_SHIFT"
    last=$(beat)
    wait_until 10 has_beaten_since "$last" || fail "shifted by $shift it gives no sign of life"
    wait_until 10 has_more timeless "$before" || fail "shifted by $shift nothing is recorded"
    [ "$(field timeless status)" = running ] || fail "shifted by $shift it is $(field timeless status)"
    before=$(field timeless steps)
    LD_PRELOAD="$folder/process.so" "$mpbench" ls 2>&1 | grep -q 'timeless  *running' || fail "ls, shifted by $shift"
done
kill "$worker"
wait "$worker"
seconds=$(field timeless wall_s)
[ "${seconds%%.*}" -lt 20 ] || fail "it took $seconds s"
is_whole
end
begin "descriptors that run out in the middle of a run are waited for, and nothing is lost"
timeout $((20 * patience)) "$mpbench" run "$folder/tiny.lua" --name open --threads 1 --quiet --json >"$folder/json" 2>"$folder/err" &
worker=$!
workers="$workers $worker"
wait_until 10 has_more open 0 || fail "nothing is recorded"
process=$(pgrep -P "$worker")
prlimit --pid "$process" --nofile=3:
wait_until 10 stands_still open || fail "it is recorded without descriptors"
prlimit --pid "$process" --nofile=64:
kill "$process"
wait "$worker"
status=$?
[ "$status" -eq 143 ] || fail "exit status $status: $(tail -n 1 "$folder/err")"
made=$(sed -n 's/.*"steps":\([0-9]*\).*/\1/p' "$folder/json")
[ "$(field open steps)" = "$made" ] || fail "$made steps were made, $(field open steps) are in the history"
is_whole
end
exit "$failures"
