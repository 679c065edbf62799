#!/bin/sh
# shellcheck disable=SC1091,SC2034,SC2154,SC2317 # what shell.sh sets, reads and calls
# Where output goes: a reader that goes away or stops reading, files that are written, terminals that
# show. $MPBENCH is the program.
. "$(dirname "$0")/../shell.sh"

steps() {
    count=$(says "$1" steps)
    echo "${count:-0}"
}
has_finished() { [ "$(says "$1" status)" = '"finished"' ]; }
is_beyond() { [ "$(steps "$1")" -gt "$2" ]; }

cat >"$folder/chatty.lua" <<'LUA'
local mp = require "mp"
return mp.experiment { name = "chatty", params = { steps = 1e9 }, run = function(run)
    local net = run:model(mp.nn.Sequential { mp.nn.Linear(4, 2) })
    local opt = mp.optim.SGD(net:parameters(), { lr = 0 })
    local x = mp.randn(2, 4)
    for step = 1, run.params.steps do
        opt:zero_grad()
        local loss = net(x):sum()
        loss:backward()
        opt:step()
        run:log { loss = loss }
        print(("step %d "):format(step) .. ("and more "):rep(10))
    end
end }
LUA

begin "a reader that goes away ends no training"
"$mpbench" run "$folder/chatty.lua" --threads 1 --set steps=300 --name left 2>&1 >/dev/null | head -n 1 >"$folder/first"
wait_until 10 has_finished left || fail "it is $(says left status)"
[ "$(steps left)" = 300 ] || fail "$(steps left) steps"
"$mpbench" matrix "$folder/chatty.lua" --threads 2 --set steps=20 --seeds 3 2>&1 >/dev/null | head -n 1 >"$folder/first"
[ "$("$mpbench" ls status:finished | grep -c chatty)" -ge 3 ] || fail "the matrix ended with its reader"
end

begin "a terminal that takes no output does not stop training, and is told what it lost"
mkfifo "$folder/terminal"
exec 3<>"$folder/terminal"
"$mpbench" run "$folder/chatty.lua" --threads 1 --name blocked 2>"$folder/terminal" >/dev/null &
workers=$!
wait_until 10 is_beyond blocked 2000 || fail "it stopped at step $(steps blocked)"
cat <&3 >"$folder/shown" &
reader=$!
wait_until 10 grep -q '[0-9] lines left out' "$folder/shown" ||
    fail "nothing says that lines are missing"
kill -TERM "$workers"
wait "$workers"
workers=
kill "$reader"
exec 3>&-
broken=$(grep 'and more' "$folder/shown" | grep -v '^step [0-9]* \(and more \)*$' | head -n 1)
[ -z "$broken" ] || fail "a broken line: $broken"
end

begin "every sample of a layer is exported once"
run run "$folder/chatty.lua" --threads 1 --set steps=3000 --name long --quiet
expect_status 0
if command -v sqlite3 >/dev/null 2>&1; then # as after a fast run, only sums are left of most
    in_history "DELETE FROM layer_samples WHERE level < 4 AND run = (SELECT id FROM runs WHERE name = 'long')"
fi
run export long --format jsonl
expect_status 0
for kind in layer point; do
    grep "^{\"kind\":\"$kind\"" "$folder/out" | cut -d, -f1-3 | sort | uniq -d >"$folder/twice"
    [ ! -s "$folder/twice" ] || fail "$kind: $(wc -l <"$folder/twice") lines come twice, $(head -n 1 "$folder/twice")"
    grep -q "^{\"kind\":\"$kind\"" "$folder/out" || fail "no $kind"
done
end

begin "a loss that is not a number is not unknown"
cat >"$folder/nan.lua" <<'LUA'
return require("mp").experiment { name = "nan", params = { x = 0 }, run = function(run)
    for step = 1, 20 do run:log { loss = run.params.x == 1 and 0 / 0 or step } end
    if run.params.x < 2 then run:result { accuracy = run.params.x == 1 and 0 / 0 or 0.5 } end
end }
LUA
for x in 0 1 2; do
    run run "$folder/nan.lua" --set x=$x --name "nan$x" --quiet
done
run compare nan0 nan1 nan2 --json
expect_status 0
for part in '"loss":"nan"' '"loss_delta":"nan"' '"metric_deltas":{"accuracy":"nan"}' '"metric_deltas":{"accuracy":null}' '"mean":"nan"'; do
    grep -q -F "$part" "$folder/out" || fail "no $part in $(head -c 600 "$folder/out")"
done
end

begin "no name of a series reaches a terminal as it is"
cat >"$folder/escape.lua" <<'LUA'
return require("mp").experiment { name = "escape", run = function(run)
    run:log { ["\27[31mred\u{202e}\u{9b}1m"] = 1 }
end }
LUA
run run "$folder/escape.lua" --quiet --name escape
expect_status 0
run export escape --format jsonl
expect_status 0
grep -q -F '\u001b[31mred\u202e\u009b1m' "$folder/out" || fail "JSON: $(grep -a point "$folder/out" | head -n 1)"
if command -v script >/dev/null 2>&1; then
    script -qec "'$mpbench' export escape" /dev/null </dev/null >"$folder/out" 2>&1
    ! grep -q "$(printf '\033')" "$folder/out" || fail "an escape came through"
    grep -q -F '\x1b[31mred\u{202e}' "$folder/out" || fail "the name is not shown: $(head -n 1 "$folder/out")"
fi
run export escape
grep -q "$(printf '\033')" "$folder/out" || fail "in a file the name is not as it is"
end

begin "no name of a parameter reaches a terminal as it is"
cat >"$folder/named.lua" <<'LUA'
return require("mp").experiment { name = "n\27[31m", about = "a\27[31m", params = { ["p\27[31mred"] = "v\27[31m" }, run = function() end }
LUA
for command in "help $folder/named.lua" "run $folder/named.lua --quiet" "show @last" ls "matrix $folder/named.lua --seeds 2" \
    "run $folder/named.lua --set x=1"; do
    # shellcheck disable=SC2086 # words
    run $command --color never
    ! grep -q "$(printf '\033')" "$folder/out" "$folder/err" || fail "$command: an escape came through"
done
run help "$folder/named.lua"
expect_out 'p\\x1b\[31mred'
end

begin "no name of a layer reaches a terminal as it is"
cat >"$folder/layer.lua" <<'LUA'
local mp = require "mp"
local Net = mp.nn.class "Net"
function Net:init() self["fc\27[31m"] = mp.nn.Linear(64, 8) end
function Net:forward(x) return self["fc\27[31m"](x) end
return mp.experiment { name = "layer", run = function(run)
    local net = run:model(Net())
    local opt = mp.optim.SGD(net:parameters(), { lr = 0.01 })
    for step = 1, 4 do
        opt:zero_grad()
        local x = mp.randn(64, 64)
        local loss = mp.autocast(function() return net(step == 3 and x * 1e6 or x):mean() end)
        loss:backward()
        opt:step()
        run:log { loss = loss }
    end
end }
LUA
for command in "run $folder/layer.lua -p fp16 --name layer --quiet" "show layer" "show layer --first-nan" \
    "show layer --what-if" "profile layer" "run $folder/layer.lua --twin fp16" "show @last" \
    "run $folder/layer.lua --dry-run" "profile $folder/layer.lua --no-history --steps 4"; do
    # shellcheck disable=SC2086 # words
    run $command --color never
    ! grep -q "$(printf '\033')" "$folder/out" "$folder/err" || fail "$command: an escape came through"
done
end

begin "what is written is for whom the umask says, or for whom it was, and no part is written over"
run run "$folder/nan.lua" --quiet --name empty
old=$(umask)
umask 027
for format in csv jsonl safetensors tensorboard; do
    run export long --format $format -o "$folder/tfevents.$format"
    expect_status 0
    [ "$(stat -c %a "$folder/tfevents.$format")" = 640 ] || fail "$format: mode $(stat -c %a "$folder/tfevents.$format")"
done
run report long -o "$folder/page.html"
[ "$(stat -c %a "$folder/page.html")" = 640 ] || fail "report: mode $(stat -c %a "$folder/page.html")"
chmod 604 "$folder/tfevents.safetensors"
run export long --format safetensors -o "$folder/tfevents.safetensors"
[ "$(stat -c %a "$folder/tfevents.safetensors")" = 604 ] || fail "mode 604 became $(stat -c %a "$folder/tfevents.safetensors")"
umask "$old"
ln -s "$folder/victim" "$folder/run.csv.mpbench-part"
run export long -o "$folder/run.csv"
expect_status 1
grep -q 'run.csv.mpbench-part is there already' "$folder/err" || fail "$(cat "$folder/err")"
[ ! -e "$folder/victim" ] || fail "it was written through a link"
rm "$folder/run.csv.mpbench-part"
run export long -o "$folder/run.csv"
expect_status 0
end

begin "an early write that failed fails the export"
cat >"$folder/fails_once.c" <<'C'
#define _GNU_SOURCE
#include <errno.h>
#include <string.h>
#include <sys/syscall.h>
#include <stdio.h>
#include <unistd.h>
ssize_t write(int file, const void *data, size_t size) {
    static int count;
    char link[64], path[1024];
    snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    ssize_t length = readlink(link, path, sizeof path - 1);
    path[length > 0 ? length : 0] = 0;
    if (strstr(path, ".csv.mpbench-part") && count++ == 0) {
        errno = ENOSPC;
        return -1;
    }
    return syscall(SYS_write, file, data, size);
}
FILE *unused;
C
if ! ldd "$mpbench" 2>/dev/null | grep -q -e libasan -e libtsan &&
    compile "$folder/fails_once.so" "$folder/fails_once.c"; then
    LD_PRELOAD="$folder/fails_once.so" run export left -o "$folder/full.csv"
    if [ "$status" -eq 0 ] && [ "$(wc -l <"$folder/full.csv")" -ge 300 ]; then
        : # this C library's streams write without it
    else
        expect_status 1
        [ ! -e "$folder/full.csv" ] || fail "a part of it is there"
    fi
fi
end

begin "a history that is opened to write is opened once, and may be empty"
: >"$folder/empty.db"
run gc --db "$folder/empty.db"
expect_status 0
end

begin "two histories in one folder have checkpoints of their own"
mkdir "$folder/two"
run run "$folder/chatty.lua" --db "$folder/two/history.db" --set steps=3 --quiet --threads 1
run run "$folder/chatty.lua" --db "$folder/two/mine.db" --set steps=5 --quiet --threads 1
[ -e "$folder/two/checkpoints/1/step-3.safetensors" ] || fail "history.db has none"
[ -e "$folder/two/mine.checkpoints/1/step-5.safetensors" ] || fail "mine.db has none"
run gc --db "$folder/two/mine.db"
run rm 1 --db "$folder/two/mine.db"
expect_status 0
run export 1 --db "$folder/two/history.db" --format safetensors
expect_status 0
[ ! -e "$folder/two/mine.checkpoints/1" ] || fail "its own are left"
end

# Stops a process where it does not hold the history: in the middle of a write it keeps all others
# out, so that no order could be sent.
stop_between_writes() { # PROCESS RUN
    kill -STOP "$1"
    timeout $((2 * patience)) "$mpbench" note "$2" stopped >/dev/null 2>&1 && return
    kill -CONT "$1"
    false
}
is_told() { grep -qs "^mpbench: waiting for $1 to answer, for about 10 s at most" "$folder/err"; }

begin "an order to a process that is killed is not waited for"
"$mpbench" run "$folder/chatty.lua" --threads 1 --name doomed --quiet >/dev/null 2>&1 &
workers=$!
wait_until 10 is_beyond doomed 10 || fail "it does not train"
wait_until 10 stop_between_writes "$workers" doomed || fail "it always writes"
began=$(date +%s)
"$mpbench" ctl doomed pause >"$folder/out" 2>"$folder/err" &
order=$!
wait_until 4 is_told doomed || fail "it waits without a word"
kill -9 "$workers"
wait "$workers" 2>/dev/null
workers=
wait "$order"
status=$?
expect_status 1
grep -q 'is gone, and the order is not done' "$folder/err" || fail "$(cat "$folder/err")"
# not as long as for one that may still answer
[ $(($(date +%s) - began)) -lt 10 ] || fail "it was waited for"
end

begin "an order to a process that is stopped says so"
"$mpbench" run "$folder/chatty.lua" --threads 1 --name halted --quiet >/dev/null 2>&1 &
workers=$!
wait_until 10 is_beyond halted 10 || fail "it does not train"
wait_until 10 stop_between_writes "$workers" halted || fail "it always writes"
began=$(date +%s)
"$mpbench" ctl halted pause >"$folder/out" 2>"$folder/err" &
order=$!
wait_until 4 is_told halted || fail "it waits without a word"
wait "$order"
status=$?
expect_status 1
[ $(($(date +%s) - began)) -le $((30 * patience)) ] || fail "it waited longer than it said"
grep -q "its process $workers is there but silent" "$folder/err" || fail "$(cat "$folder/err")"
kill -CONT "$workers"
kill -TERM "$workers"
wait "$workers"
workers=
end

begin "two signals at once to a matrix still reach its runs"
"$mpbench" matrix "$folder/chatty.lua" --seeds 2 --workers 2 --threads 2 --quiet --set steps=1000000000 >/dev/null 2>&1 &
leader=$!
both_run() { [ "$("$mpbench" ls status:running chatty 2>/dev/null | grep -c '^ *[0-9]')" -eq 2 ]; }
wait_until 10 both_run || fail "they do not run"
children=$(pgrep -P "$leader" 2>/dev/null || ps -o pid= --ppid "$leader")
workers="$leader $(echo "$children" | tr '\n' ' ')"
kill -STOP "$leader"
kill -TERM "$leader"
kill -INT "$leader"
kill -CONT "$leader"
wait "$leader"
workers="$(echo "$children" | tr '\n' ' ')"
none_lives() { for child in $children; do ! kill -0 "$child" 2>/dev/null || return 1; done; }
wait_until 10 none_lives || fail "a run goes on without its matrix"
[ -n "$children" ] || fail "no processes found"
[ -n "$why" ] || workers=
end

exit "$failures"
