#!/bin/sh
# shellcheck disable=SC1091,SC2034,SC2154,SC2317 # what shell.sh sets, reads and calls
# What changes the history: tags and notes as JSON, rm, gc, beside runs in progress and beside each
# other. $MPBENCH is the program.
. "$(dirname "$0")/../shell.sh"

write_endless
for seed in 1 2 3 4 5; do
    "$mpbench" run simple --quiet --steps 60 --threads 1 -p fp32 --seed $seed >/dev/null || exit 1
done

begin "what changes the history says what it did as JSON, where that is asked for"
cp "$MPBENCH_DB" "$folder/json.db"
while read -r status text command; do
    # shellcheck disable=SC2086 # words
    run $command --json --db "$folder/json.db"
    expect_status "$status"
    said=$(tr -d '[:space:]' <"$folder/out")
    [ "${said:--}" = "$text" ] || fail "$command: $(cat "$folder/out" "$folder/err")"
done <<'ROWS'
0 {"id":1,"tag":"a\"b"} tag 1 a"b
0 {"id":1,"note":"twowords"} note 1 two words
0 {"removed":[1,2],"files":0,"bytes":0} rm 1 2 1
2 - rm 1
1 - ctl 3 pause
ROWS
run gc --json --dry-run --db "$folder/json.db"
expect_out '^{"dry_run": *true, *"files": *0, *"bytes": *0, *"superseded": *0, *"in_progress": *0, *"history_before"'
run gc --json --db "$folder/json.db"
[ "$(value_of history_after)" -le "$(value_of history_before)" ] || fail "$(cat "$folder/out")"
end

begin "rm takes runs out, all that are named or none"
run rm 5 99
expect_error 2 "99"
run show 5 --json
expect_status 0
run rm 5 5
expect_status 0
expect_out "^1 run removed"
run show 5
expect_error 2 "5"
end

begin "rm takes no other run for one that is gone"
"$mpbench" run simple --quiet --steps 5 --name again >/dev/null
"$mpbench" run simple --quiet --steps 5 --name again-2 >/dev/null
"$mpbench" run simple --quiet --steps 5 --name 90th >/dev/null
run rm again
expect_out "^1 run removed: again[;,]"
for gone in again 9 90; do
    run rm $gone
    expect_usage_error "$gone: no such run"
done
run tag 90 kept
expect_usage_error "90: no such run"
run rm again-2 90th
expect_out "^2 runs removed: again-2, 90th[;,]"
end

begin "a run in progress is not removed"
"$mpbench" run "$folder/endless.lua" --quiet --threads 1 --name busy >/dev/null 2>&1 &
worker=$!
workers="$workers $worker"
wait_until 10 is_running busy 1
run rm busy
expect_error 1 "is in progress"
kill -TERM "$worker"
wait "$worker"
run rm busy
expect_status 0
end

begin "gc removes what no run needs, and nothing else"
mkdir -p "$folder/checkpoints/77" "$folder/checkpoints/1" "$folder/checkpoints/mine"
echo left >"$folder/checkpoints/77/10.safetensors"
echo left >"$folder/checkpoints/1/10.safetensors.tmp"
echo mine >"$folder/checkpoints/mine/notes"
run gc --dry-run
expect_status 0
expect_out "^2 files .* would be removed"
[ -e "$folder/checkpoints/77/10.safetensors" ] || fail "--dry-run removed a file"
run gc
expect_status 0
expect_out "^2 files .* removed"
expect_out "the history takes"
for path in 77 1/10.safetensors.tmp; do
    [ ! -e "$folder/checkpoints/$path" ] || fail "$path is left"
done
[ -e "$folder/checkpoints/mine/notes" ] || fail "a folder of somebody else's was emptied"
run ls
[ "$(wc -l <"$folder/out")" -eq 5 ] || fail "runs are missing"
end

holds_checkpoint() { # FOLDER
    [ -n "$(find "$1" -name '*.safetensors' 2>/dev/null)" ]
}

# A checkpoint of run 1, as a worker leaves it: the file, then the row.
plant_checkpoint() { # STEP SEGMENT TEXT
    mkdir -p "$folder/checkpoints/1"
    printf '%s' "$3" >"$folder/checkpoints/1/$1.safetensors"
    in_history "INSERT INTO checkpoints (run, segment, step, created_ms, why, bytes, hash, file) VALUES
        (1, $2, $1, 1700000000000, 'asked', $(printf '%s' "$3" | wc -c),
        '$(printf '%s' "$3" | sha256sum | cut -d' ' -f1)', '1/$1.safetensors')"
}

if command -v sqlite3 >/dev/null 2>&1; then
    begin "ls --json says that a run cannot be read, and does not leave it out"
    cp "$MPBENCH_DB" "$folder/damaged.db"
    page=$(sqlite3 "$folder/damaged.db" "SELECT rootpage FROM sqlite_master WHERE name = 'params'")
    size=$(sqlite3 "$folder/damaged.db" 'PRAGMA page_size')
    dd if=/dev/zero of="$folder/damaged.db" bs="$size" seek=$((page - 1)) count=1 conv=notrunc 2>/dev/null
    run ls --db "$folder/damaged.db"
    expect_status 0
    run ls --json --db "$folder/damaged.db"
    expect_error 4 "damaged"
    end

    begin "export copies the newest checkpoint, once its checksum is right"
    plant_checkpoint 70 0 "older weights"
    plant_checkpoint 80 0 "newer weights"
    run export 1 --format safetensors -o "$folder/w.safetensors"
    expect_status 0
    [ "$(cat "$folder/w.safetensors")" = "newer weights" ] || fail "another file was copied"
    run show 1
    expect_out '^Checkpoints'
    expect_out '80 .*1/80.safetensors'
    printf 'newer wEights' >"$folder/checkpoints/1/80.safetensors"
    run export 1 --format safetensors
    expect_error 1 "checksum"
    [ ! -s "$folder/out" ] || fail "a damaged checkpoint was written out"
    end

    begin "gc waits for who writes, and keeps what came meanwhile"
    printf 'new weights' >"$folder/checkpoints/1/85.safetensors"
    {
        echo ".bail on"
        echo "BEGIN IMMEDIATE; INSERT INTO checkpoints (run, segment, step, created_ms, why, bytes, hash, file)
            VALUES (1, 0, 85, 1700000000000, 'asked', 11, '', '1/85.safetensors');"
        echo ".shell touch '$folder/locked'" # once it holds the lock, and not before
        sleep 0.7
        echo "COMMIT;"
    } | sqlite3 -cmd "$patient" "$MPBENCH_DB" &
    worker=$!
    workers="$workers $worker"
    wait_until 5 test -e "$folder/locked" || fail "nobody writes"
    run gc
    expect_status 0
    wait "$worker" || fail "the row was not kept"
    [ -e "$folder/checkpoints/1/85.safetensors" ] || fail "the checkpoint of the row is gone"
    end

    begin "two gc at once remove each file once, and nothing else"
    mkdir -p "$folder/checkpoints/78"
    for step in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
        echo left >"$folder/checkpoints/78/$step.safetensors"
        echo left >"$folder/checkpoints/1/$step.safetensors.tmp"
    done
    "$mpbench" gc >"$folder/first" 2>&1 &
    worker=$!
    run gc
    expect_status 0
    wait "$worker" || fail "the other failed: $(cat "$folder/first")"
    removed=$(cat "$folder/first" "$folder/out" | awk '/ removed/ { sum += $1 } END { print sum }')
    [ "$removed" = 40 ] || fail "$removed files are told as removed instead of 40"
    [ ! -e "$folder/checkpoints/78" ] || fail "files are left"
    [ -e "$folder/checkpoints/1/85.safetensors" ] || fail "a checkpoint is gone"
    in_history "DELETE FROM checkpoints WHERE step = 85"
    rm "$folder/checkpoints/1/85.safetensors"
    end

    begin "gc beside a run leaves the checkpoints of that run"
    "$mpbench" run "$folder/endless.lua" --quiet --threads 1 --name kept --checkpoint-every 2 >/dev/null 2>&1 &
    worker=$!
    workers="$workers $worker"
    wait_until 10 is_running kept 1
    run show kept --json
    expect_status 0
    kept=$folder/checkpoints/$(value_of id)
    wait_until 10 holds_checkpoint "$kept" || fail "it keeps no checkpoint"
    for _ in 1 2 3 4 5 6; do
        run gc
        expect_status 0
        expect_out '1 run in progress left alone'
    done
    kill -TERM "$worker"
    wait "$worker"
    in_history "SELECT file FROM checkpoints WHERE run = (SELECT id FROM runs WHERE name = 'kept')" >"$folder/rows"
    [ -s "$folder/rows" ] || fail "it kept no checkpoint"
    while read -r file; do
        [ -e "$folder/checkpoints/$file" ] || fail "$file is gone"
    done <"$folder/rows"
    "$mpbench" rm kept >/dev/null || fail "rm"
    end

    begin "gc removes what a resume superseded, and keeps what is in force"
    in_history "INSERT INTO segments (run, segment, after, why, began_ms) VALUES (1, 1, 75, 'resume', 1700000000000)"
    run gc --dry-run
    expect_out "^1 file .* would be removed.*(1 checkpoint that a resume superseded)"
    run gc
    expect_status 0
    [ -e "$folder/checkpoints/1/70.safetensors" ] || fail "the one in force is gone"
    [ ! -e "$folder/checkpoints/1/80.safetensors" ] || fail "the superseded one is there"
    [ "$(in_history 'SELECT count(*) FROM checkpoints WHERE step > 70')" = 0 ] || fail "a row is left"
    plant_checkpoint 90 1 "after the resume"
    run rm 1
    expect_out "3 files"
    [ ! -e "$folder/checkpoints/1" ] || fail "files are left"
    end
else
    echo "skip checkpoints of the history: no sqlite3 to plant them with"
fi

exit "$failures"
