#!/bin/sh
# shellcheck disable=SC1091,SC2034,SC2154,SC2317 # what shell.sh sets, reads and calls
# Where `export -o` writes, and where it must not. $MPBENCH is the program.
. "$(dirname "$0")/../shell.sh"

mpbench=$(cd "$(dirname "$mpbench")" && pwd)/$(basename "$mpbench")
mkdir "$folder/own" # the history and all that is its own
export MPBENCH_DB="$folder/own/history.db"
"$mpbench" run simple --quiet --steps 20 --threads 1 --name one >/dev/null 2>"$folder/err" || cat "$folder/err"
checkpoint=$(find "$folder/own/checkpoints" -name '*.safetensors' | head -n 1)
# All that the history has, by content.
sum() { find "$folder/own" -type f -exec sha256sum {} + | sort; }

begin "export never writes over a file of the history, whatever its name"
ln -s own/history.db "$folder/link"
ln "$folder/own/history.db" "$folder/hard"
ln -s own "$folder/way"
ln -s own/history.db-journal "$folder/journal"
sum >"$folder/before"
[ -n "$checkpoint" ] || fail "there is no checkpoint"
for file in "$folder/own/history.db" "$folder/own/../own/history.db" "$folder/link" "$folder/hard" \
    "$folder/way/history.db" "$folder/own/history.db-journal" "$folder/way/history.db-wal" \
    "$folder/own/history.db-shm" "$folder/own/history.db.backup-v1" "$checkpoint" \
    "$folder/own/checkpoints/1/mine.csv" "$folder/own/checkpoints/x"; do
    for format in csv jsonl safetensors; do
        run export one --format $format -o "$file"
        expect_error 2 "is a file of the history"
    done
done
run export one -o "$folder/journal"
expect_error 2 "is a file of the history"
(cd "$folder/own" && "$mpbench" export one -o history.db >"$folder/out" 2>"$folder/err")
status=$?
expect_error 2 "is a file of the history"
"$mpbench" export one 2>"$folder/err" >>"$folder/own/history.db"
status=$?
expect_error 2 "is a file of the history"
sum | cmp -s - "$folder/before" || fail "it was changed: $(sum | diff - "$folder/before" | head -n 2 | tr '\n' ' ')"
end

begin "a history is not made where SQLite keeps the journal of another"
run run simple --quiet --steps 2 --db "$folder/own/history.db-journal"
expect_error 4 "keeps the journal of"
sum | cmp -s - "$folder/before" || fail "the folder was changed"
end

begin "what is no regular file is written through"
run export one
expect_status 0
cp "$folder/out" "$folder/whole"
mkfifo "$folder/pipe"
timeout 20 cat "$folder/pipe" >"$folder/came" &
worker=$!
workers="$workers $worker"
run export one -o "$folder/pipe"
expect_status 0
wait "$worker"
cmp -s "$folder/came" "$folder/whole" || fail "another text came through the pipe"
[ -p "$folder/pipe" ] || fail "the pipe is none any more"
[ -w /dev ] || { # where a fault could not harm the system
    run export one -o /dev/null
    expect_status 0
}
"$mpbench" export one -o /dev/stdout | cmp -s - "$folder/whole" || fail "/dev/stdout as a pipe"
{
    echo before
    "$mpbench" export one -o /dev/stdout
    echo after
} >"$folder/out" 2>"$folder/err"
[ "$(sed -n '1p;$p' "$folder/out" | tr '\n' ' ')" = "before after " ] || fail "/dev/stdout as a file: $(cat "$folder/err")"
sed '1d;$d' "$folder/out" | cmp -s - "$folder/whole" || fail "/dev/stdout as a file has another text"
end

if mknod "$folder/null" c 1 3 2>/dev/null && : >"$folder/null"; then
    begin "a device node stays one"
    run export one -o "$folder/null"
    expect_status 0
    [ -c "$folder/null" ] || fail "a file took its place"
    end
else
    echo "skip a device node stays one: none may be made here"
fi

begin "no cell of a table is a formula"
cat >"$folder/cells.lua" <<'LUA'
return require("mp").experiment { name = "cells", run = function(run)
    run:log { ["=1+2"] = -1, ["+x"] = 2, ["-x,y"] = 3, ["@sum"] = -math.huge, plain = 5 }
end }
LUA
run run "$folder/cells.lua" --quiet --name cells
expect_status 0
run export cells
expect_status 0
head -n 1 "$folder/out" | tr ',' '\n' | grep -q '^"\{0,1\}[=+@-]' && fail "the head is $(head -n 1 "$folder/out")"
for cell in "'=1+2" "'+x" "\"'-x,y\"" "'@sum" plain; do
    head -n 1 "$folder/out" | grep -q -F "$cell" || fail "no cell $cell in $(head -n 1 "$folder/out")"
done
[ "$(sed -n 2p "$folder/out" | tr ',' '\n' | tail -n +2 | sort | tr '\n' ' ')" = "-1 -inf 2 3 5 " ] ||
    fail "numbers are $(sed -n 2p "$folder/out")"
run export cells --format jsonl
expect_out '"=1+2"'
end

begin "a file that may not be written is left alone"
echo mine >"$folder/kept.csv"
chmod 444 "$folder/kept.csv"
run export one -o "$folder/kept.csv"
expect_error 1 "kept.csv may not be written"
[ "$(cat "$folder/kept.csv")" = mine ] || fail "it was written over"
run export one -o "$folder/own"
expect_error 1 "is a folder"
ln -s "$folder/nowhere/x" "$folder/lost"
run export one -o "$folder/lost"
expect_error 1 "is a link to what is not there"
end

begin "a file is replaced through its link, and keeps who may read it"
echo old >"$folder/target.csv"
chmod 640 "$folder/target.csv"
ln -s target.csv "$folder/to.csv"
run export one -o "$folder/to.csv"
expect_status 0
[ -L "$folder/to.csv" ] || fail "the link is gone"
cmp -s "$folder/target.csv" "$folder/whole" || fail "the file that it leads to has another text"
[ "$(stat -c %a "$folder/target.csv")" = 640 ] || fail "its mode is $(stat -c %a "$folder/target.csv")"
end

exit "$failures"
