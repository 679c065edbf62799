#!/bin/sh
# shellcheck disable=SC1091,SC2034,SC2154,SC2317 # what shell.sh sets, reads and calls
# Runs and their history from outside: what is recorded, orders, signals, and what a run that is
# killed at any moment leaves behind. $MPBENCH is the program.
. "$(dirname "$0")/../shell.sh"
rounds=50
[ -z "${MPBENCH_SOAK:-}" ] || rounds=5000

write_endless
printf 'local mp = require "mp"\nreturn mp.experiment { name = "bad", run = function(run) run:event "here" error "broken" end }\n' >"$folder/bad.lua"

# start NAME [OPTION ...]: a run in the background; its process in $worker.
start() {
    named=$1
    shift
    "$mpbench" run "$endless" --name "$named" --threads 1 --quiet --json "$@" \
        >"$folder/$named.json" 2>"$folder/$named.err" &
    worker=$!
    workers="$workers $worker"
}
# field RUN KEY: of `show --json`, the last of that name.
field() {
    "$mpbench" show "$1" --json 2>/dev/null | sed -n "s/.*\"$2\":\"*\([^,\"}]*\).*/\1/p"
}
is_so() { [ "$(field "$1" "$2")" = "$3" ]; }
# wait_for RUN KEY VALUE [SECONDS]
wait_for() {
    wait_until "${4:-10}" is_so "$1" "$2" "$3" && return 0
    fail "$1 has $2 $(field "$1" "$2") instead of $3"
    return 1
}
has_steps() {
    step=$(field "$1" steps)
    [ "${step:-0}" -gt 0 ]
}
# Until the run has made a step that the history knows.
wait_for_steps() {
    wait_until 10 has_steps "$1" && return 0
    fail "$1 has no step in the history: $(head -n 1 "$folder/$1.err")"
    return 1
}

# ---- recorded ------------------------------------------------------------------------------------

begin "a run is in the history when it has ended"
"$mpbench" run "$endless" --name whole --steps 500 --tag mine --quiet >/dev/null 2>"$folder/err" ||
    fail "exit status $?: $(cat "$folder/err")"
[ "$(field whole status)" = finished ] || fail "status is $(field whole status)"
[ "$(field whole steps)" = 500 ] || fail "steps are $(field whole steps)"
"$mpbench" ls tag:mine | grep -q whole || fail "ls does not find it by its tag"
end

begin "a run that fails is in the history with its error"
"$mpbench" run "$folder/bad.lua" --name failing --quiet >/dev/null 2>&1 && fail "exit status 0"
[ "$(field failing status)" = failed ] || fail "status is $(field failing status)"
field failing error | grep -q 'bad.lua:2: broken' || fail "error is $(field failing error)"
end

begin "without history nothing is kept"
before=$("$mpbench" ls --json | grep -o '"name"' | wc -l)
"$mpbench" run "$endless" --steps 50 --no-history --quiet >/dev/null 2>&1 || fail "exit status $?"
[ "$("$mpbench" ls --json | grep -o '"name"' | wc -l)" -eq "$before" ] || fail "a run was added"
end

begin "a history that cannot be opened is exit status 4, before anything is trained"
echo "no database" >"$folder/foreign.db"
"$mpbench" run "$endless" --db "$folder/foreign.db" --quiet >"$folder/out" 2>"$folder/err"
[ $? -eq 4 ] || fail "exit status is not 4: $(cat "$folder/err")"
[ "$(cat "$folder/foreign.db")" = "no database" ] || fail "the file was touched"
end

begin "a name is given once"
"$mpbench" run "$endless" --name whole --steps 5 --quiet >/dev/null 2>"$folder/err"
[ $? -eq 2 ] || fail "exit status is not 2: $(cat "$folder/err")"
end

# ---- orders --------------------------------------------------------------------------------------

# How long steered took by its own record, which lacks what lies between the two.
stands_still_from() { seen=$(date +%s%N) seconds=$(field steered wall_s); }
stands_still_to() { told=$(date +%s%N); }
goes_on() {
    after=$(field steered wall_s)
    awk -v "took=$after" -v "before=$seconds" 'BEGIN { exit !(took > before) }'
}
is_left_out() {
    wait_until 10 goes_on || fail "its seconds stand still"
    awk -v "went=$(($(date +%s%N) - told))" -v "stood=$((told - seen))" -v "took=$after" -v "before=$seconds" \
        'BEGIN { exit !(took - before < (went + stood / 2) / 1e9) }'
}

begin "a run is paused, goes on, and stops when it is told to"
start steered
if wait_for_steps steered; then
    "$mpbench" ctl steered pause >"$folder/out" 2>&1 || fail "pause: $(cat "$folder/out")"
    wait_for steered status paused
    step=$(field steered steps)
    stands_still_from
    sleep 1
    [ "$(field steered steps)" = "$step" ] || fail "it trains while it is paused"
    [ "$(field steered wall_s)" = "$seconds" ] || fail "its seconds go on while it is paused"
    stands_still_to
    "$mpbench" ctl steered resume --json >"$folder/out" 2>&1 || fail "resume: $(cat "$folder/out")"
    tr -d ' \n' <"$folder/out" | grep -q '^{"id":[0-9]*,"order":"resume","argument":null,"step":[0-9]*,"answer":"goeson' ||
        fail "resume --json: $(cat "$folder/out")"
    wait_for steered status running
    is_left_out || fail "it took $seconds s before its pause and $after after it"
    stands_still_from
    kill -TSTP "$worker"
    sleep 2
    kill -CONT "$worker"
    stands_still_to
    is_left_out || fail "it took $seconds s before Ctrl-Z and $after after it"
    "$mpbench" ctl steered set layer.head=bf16 >"$folder/out" 2>&1 || fail "set: $(cat "$folder/out")"
    grep -q 'head is bf16' "$folder/out" || fail "the answer is $(cat "$folder/out")"
    "$mpbench" ctl steered set layer.hat=bf16 >/dev/null 2>"$folder/err" && fail "an unknown layer was set"
    grep -q 'refused: hat: no layer' "$folder/err" || fail "the refusal is $(cat "$folder/err")"
    for wrong in layer.hat=bf16 foo=3 lr=x layer.head=fp99; do # as `run` says of what is typed wrong
        "$mpbench" ctl steered set "$wrong" >/dev/null 2>"$folder/err"
        [ $? -eq 2 ] || fail "$wrong is no wrong usage"
    done
    "$mpbench" ctl steered resume >/dev/null 2>"$folder/err" # a run that is not paused
    [ $? -eq 1 ] || fail "what the run is not fit for is wrong usage"
    "$mpbench" ctl steered stop >"$folder/out" 2>&1 || fail "stop: $(cat "$folder/out")"
fi
wait "$worker"
status=$?
[ "$status" -eq 0 ] || fail "exit status $status after stop"
[ "$(field steered status)" = stopped ] || fail "status is $(field steered status)"
"$mpbench" ctl steered pause >/dev/null 2>"$folder/err" && fail "a run that is over took an order"
grep -q 'is over' "$folder/err" || fail "the refusal is $(cat "$folder/err")"
end

begin "a paused run stops when it is told to"
start halted
if wait_for_steps halted; then
    "$mpbench" ctl halted pause >/dev/null 2>&1 || fail "pause failed"
    "$mpbench" ctl halted stop >/dev/null 2>&1 || fail "stop failed"
    [ "$(field halted status)" = stopped ] || fail "it was said to have stopped, and is $(field halted status)"
fi
wait "$worker"
[ "$(field halted status)" = stopped ] || fail "status is $(field halted status)"
end

if unshare -T --boottime 100000 true 2>/dev/null; then
    begin "a run is seen to live from another time namespace, and from inside of one"
    start outside
    wait_for_steps outside
    outside=$worker
    named=inside
    unshare -T --boottime 100000 "$mpbench" run "$endless" --name inside --threads 1 --quiet >/dev/null 2>"$folder/inside.err" &
    worker=$!
    workers="$workers $worker"
    wait_for_steps inside
    for name_of in outside inside; do
        is_so "$name_of" status running || fail "$name_of is $(field "$name_of" status)"
        unshare -T --boottime 100000 "$mpbench" show "$name_of" --json | grep -q '"status":"running"' ||
            fail "from inside $name_of is not running"
        unshare -T --boottime 100000 "$mpbench" rm "$name_of" >/dev/null 2>"$folder/err" && fail "$name_of was removed"
        grep -q 'is in progress' "$folder/err" || fail "rm: $(cat "$folder/err")"
    done
    kill "$outside" "$worker"
    wait "$outside" "$worker"
    end
else
    echo "skip a run is seen to live from another time namespace: none may be made here"
fi

for signal in INT TERM HUP; do
    begin "SIG$signal ends a run with its last state in the history"
    start "signal$signal"
    wait_for_steps "signal$signal" && kill -s "$signal" "$worker"
    wait "$worker"
    status=$?
    [ "$status" -eq $((128 + $(kill -l "$signal" 2>/dev/null || case $signal in INT) echo 2 ;; TERM) echo 15 ;; *) echo 1 ;; esac))) ] ||
        fail "exit status $status"
    [ "$(field "signal$signal" status)" = stopped ] || fail "status is $(field "signal$signal" status)"
    said=$(sed -n 's/.*"steps":\([0-9]*\).*/\1/p' "$folder/signal$signal.json")
    [ "$(field "signal$signal" steps)" = "$said" ] || fail "the history lacks steps: $said were made"
    end
done

cat >"$folder/idle.lua" <<'LUA'
local mp = require "mp"
return mp.experiment { name = "idle", run = function() while true do end end }
LUA
cat >"$folder/stuck.lua" <<'LUA'
local mp = require "mp"
return mp.experiment { name = "stuck", run = function() string.find(("a"):rep(200), ("a*"):rep(100) .. "b") end }
LUA

begin "a script that makes no steps ends when it is told to stop"
"$mpbench" run "$folder/idle.lua" --name idle --quiet >/dev/null 2>&1 &
worker=$!
workers="$workers $worker"
wait_for idle status running
timeout $((8 * patience)) "$mpbench" ctl idle stop >"$folder/out" 2>&1 || fail "stop: $(cat "$folder/out")"
wait "$worker"
[ "$(field idle status)" = stopped ] || fail "status is $(field idle status)"
end

begin "a run whose script hangs is ended, and leaves its record"
"$mpbench" run "$folder/stuck.lua" --name stuck --quiet --json >"$folder/stuck.json" 2>"$folder/err" &
worker=$!
workers="$workers $worker"
wait_for stuck status running
kill "$worker"
wait "$worker"
status=$?
[ "$status" -eq 1 ] || fail "exit status $status instead of 1"
grep -q '"status":"failed".*"error":"the script has not ended' "$folder/stuck.json" || fail "the JSON is $(cat "$folder/stuck.json")"
[ "$(field stuck status)" = failed ] || fail "status is $(field stuck status)"
end

# ---- killed --------------------------------------------------------------------------------------

begin "two runs at once and a reader disturb nobody"
start twin1
first=$worker
start twin2
second=$worker
wait_for_steps twin1
wait_for_steps twin2
reads=0
while [ "$reads" -lt 20 ]; do
    "$mpbench" ls --json >/dev/null 2>"$folder/err" || fail "a reader failed: $(cat "$folder/err")"
    reads=$((reads + 1))
done
kill "$first" "$second"
wait "$first" "$second"
for twin in twin1 twin2; do
    [ "$(field "$twin" status)" = stopped ] || fail "$twin is $(field "$twin" status): $(cat "$folder/$twin.err")"
done
end

begin "a run that is killed is dead within 5 s, and lacks at most its last second"
round=0
while [ "$round" -lt "$rounds" ] && [ -z "$why" ]; do
    round=$((round + 1))
    start "killed$round"
    if [ $((round % 5)) -eq 1 ]; then # that it loses little is looked at now and then
        wait_for_steps "killed$round" || break
        sleep 1.2
        acknowledged=$(field "killed$round" steps)
    else
        acknowledged=0
        # shellcheck disable=SC2046 # a moment from 10 to 400 ms
        sleep $(awk -v seed="$round$$" 'BEGIN { srand(seed); printf "%.3f", 0.01 + 0.39 * rand() }')
    fi
    kill -9 "$worker"
    wait "$worker" 2>/dev/null
    "$mpbench" doctor >/dev/null 2>&1 || fail "round $round: doctor fails"
    "$mpbench" ls --json >"$folder/out" 2>"$folder/err" || fail "round $round: $(cat "$folder/err")"
    [ "$acknowledged" -eq 0 ] && continue
    wait_for "killed$round" status dead 5
    [ "$(field "killed$round" steps)" -ge "$acknowledged" ] || fail "round $round: rows were lost"
    last=$("$mpbench" export "killed$round" --format csv | tail -n 1 | cut -d, -f1)
    [ $((last + 4096)) -ge "$acknowledged" ] || # a row of many steps begins before its last one
        fail "round $round: the series end at $last, and step $acknowledged was acknowledged"
done
if command -v sqlite3 >/dev/null 2>&1; then
    [ "$(in_history 'PRAGMA quick_check')" = ok ] || fail "the history is damaged"
fi
"$mpbench" run "$endless" --name after --steps 50 --quiet >/dev/null 2>"$folder/err" ||
    fail "nothing can be recorded afterwards: $(cat "$folder/err")"
end

exit "$failures"
