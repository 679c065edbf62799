#!/bin/sh
# shellcheck disable=SC1091,SC2034,SC2154,SC2317 # what shell.sh sets, reads and calls
# A full disk pauses training, and nothing is lost once there is room. $MPBENCH is the program.
. "$(dirname "$0")/../shell.sh"
here=$(dirname "$0")
export FULL_DISK="$folder/full"
write_endless

if ldd "$mpbench" 2>/dev/null | grep -q -e libasan -e libtsan ||
    ! compile "$folder/full_disk.so" "$here/full_disk.c"; then
    echo "skip a full disk pauses training: nothing can be loaded into this build"
    exit 0
fi

start() {
    LD_PRELOAD="$folder/full_disk.so" "$mpbench" run "$endless" --name "$1" --threads 1 --json \
        >"$folder/$1.json" 2>"$folder/$1.err" &
    worker=$!
    workers="$workers $worker"
}
steps() {
    "$mpbench" show "$1" --json 2>/dev/null | sed -n 's/.*"steps":\([0-9]*\).*/\1/p'
}
# wait_for FILE TEXT
wait_for() {
    wait_until 10 grep -q -e "$2" "$1" || fail "$1 lacks \"$2\": $(tail -n 2 "$1")"
}
has_more() {
    now=$(steps "$1")
    [ "${now:-0}" -gt "$2" ]
}
wait_for_more() {
    wait_until 10 has_more "$1" "$2" || fail "$1 does not go on after step $2"
}

begin "a disk that is full at the start is status 4"
: >"$FULL_DISK"
for command in "run $endless --quiet" "tag 1 x"; do
    # shellcheck disable=SC2086 # words
    LD_PRELOAD="$folder/full_disk.so" run $command
    expect_error 4
    "$mpbench" run simple --steps 2 --quiet >/dev/null 2>&1 # a history for the second
done
grep -q 'is full: free some space' "$folder/err" || fail "$(cat "$folder/err")"
rm "$FULL_DISK"
end

begin "a full disk pauses training until there is room"
start patient
wait_for_more patient 0
: >"$FULL_DISK"
wait_for "$folder/patient.err" 'the disk of the history is full: training waits'
before=$(steps patient)
sleep 1
[ "$(steps patient)" = "$before" ] || fail "steps were written to a full disk"
rm "$FULL_DISK"
wait_for "$folder/patient.err" 'the history has room again'
wait_for_more patient "$before"
kill "$worker"
wait "$worker"
status=$?
[ "$status" -eq 143 ] || fail "exit status $status instead of 143"
made=$(sed -n 's/.*"steps":\([0-9]*\).*/\1/p' "$folder/patient.json")
[ "$(steps patient)" = "$made" ] || fail "$made steps were made, $(steps patient) are in the history"
end

begin "a run that waits for room ends when it is told to, and says what is lost"
start hasty
wait_for_more hasty 0
: >"$FULL_DISK"
wait_for "$folder/hasty.err" 'training waits'
kill "$worker"
wait "$worker"
status=$?
[ "$status" -eq 4 ] || fail "exit status $status instead of 4"
grep -q 'not all of run hasty is in the history' "$folder/hasty.err" || fail "$(tail -n 1 "$folder/hasty.err")"
rm "$FULL_DISK"
[ "$("$mpbench" show hasty --json | sed -n 's/.*"status":"\([a-z]*\)".*/\1/p')" = dead ] || fail "it is not shown as dead"
end

# Once it is asked to, its tenth step fills the disk.
write_loop fills <<LUA
        if step == 10 and io.open "$folder/fill" then io.open("$FULL_DISK", "w"):close() end
LUA
begin "a disk that is full when a resume comes to its checkpoint is status 4, and no fault of the script"
run run "$folder/fills.lua" --trust --threads 1 --checkpoint-every 20 --name fills --quiet
expect_status 0
touch "$folder/fill"
LD_PRELOAD="$folder/full_disk.so" run resume fills --at 20 --trust --quiet
expect_error 4 'the disk of .* is full: free some space'
! grep -q 'fills.lua' "$folder/err" || fail "the script is named: $(cat "$folder/err")"
expect_silent out
rm "$folder/fill" "$FULL_DISK"
run resume fills --at 20 --trust --quiet
expect_status 0
end
exit "$failures"
