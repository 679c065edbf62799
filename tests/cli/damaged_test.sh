#!/bin/sh
# shellcheck disable=SC1091,SC2034,SC2154,SC2317 # what shell.sh sets, reads and calls
# Histories that are cut, damaged, locked or hostile: what can be read is given, with exit status 4.
# $MPBENCH is the program.
. "$(dirname "$0")/../shell.sh"

for seed in 1 2 3; do
    "$mpbench" run simple --quiet --steps 400 --threads 1 --seed $seed --name run$seed >/dev/null 2>"$folder/err" ||
        cat "$folder/err"
done
"$mpbench" export 1 >"$folder/whole.csv"
"$mpbench" export 1 --format jsonl >"$folder/whole.jsonl"
size=$(stat -c %s "$MPBENCH_DB")
"$mpbench" run simple --quiet --steps 1 --db "$folder/least.db" >/dev/null
least=$(stat -c %s "$folder/least.db") # of which nearly all is the schema, and where each table begins
cut=$folder/cut.db

is_array() { # of $1 objects with an id, in one line
    [ "$(wc -l <"$folder/out")" -eq 1 ] && grep -q '^\[{"id":.*}\]$' "$folder/out" &&
        [ "$(grep -o '{"id":' "$folder/out" | wc -l)" -eq "$1" ]
}

begin "of a history that was cut all is read that can be reached, with status 4"
rows=0 page=$(od -An -tu1 -j16 -N2 "$MPBENCH_DB" | awk '{ print $1 * 256 + $2 }') # of its header
for part in 0 2 5 10 15 20 30 40 50 60 70 80 90 98; do # hundredths that are left of what the runs hold
    rm -f "$cut"*
    # Whole pages: a part of one that leads to others would hide what a shorter file shows.
    head -c $(((least + (size - least) * part / 100) / page * page)) "$MPBENCH_DB" >"$cut"
    run ls --db "$cut"
    expect_error 4 "cut.db is damaged: this is what can be read"
    [ "$(grep -c ' run[123] ' "$folder/out")" -eq 3 ] || fail "$part %: ls has not three runs"
    run ls --json --db "$cut"
    expect_error 4 "is damaged"
    is_array 3 || fail "$part %: ls --json is $(head -c 100 "$folder/out")"
    run show run1 --db "$cut"
    expect_error 4 "is damaged"
    expect_out '400 applied'
    run show run1 --json --db "$cut"
    expect_error 4 "is damaged"
    expect_out '^{"id":1,.*"error":null}$'
    for format in csv jsonl; do
        run export run1 --format $format --db "$cut"
        expect_error 4 "is damaged"
        [ $format = csv ] || ! grep -qv '^{.*}$' "$folder/out" || fail "$part %: a line is no object"
    done
    now=$(grep -c '"series":"loss","step":[0-9]*,"value"' "$folder/out")
    [ "$now" -ge "$rows" ] || fail "$part %: $now points are fewer than of a shorter file"
    rows=$now
    run export run1 -o "$folder/saved.csv" --db "$cut"
    expect_status 4
    [ -s "$folder/saved.csv" ] || fail "$part %: nothing was saved"
done

run export run1 --format jsonl --db "$cut"
cmp -s "$folder/out" "$folder/whole.jsonl" || fail "what lies before the cut is not all there"
run export run1 --db "$cut"
cmp -s "$folder/out" "$folder/whole.csv" || fail "what lies before the cut is not all there as CSV"
end

begin "wherever the schema is cut, it is damage that is told of, and nobody's code"
for at in $(seq 600 3989 "$least"); do # at a place of every page, another in each
    rm -f "$cut"*
    head -c "$at" "$MPBENCH_DB" >"$cut"
    run ls --db "$cut"
    expect_error 4 "is damaged"
done
end

begin "doctor says that a history is damaged"
run doctor --db "$cut"
tr -s ' \n' ' ' <"$folder/out" | grep -q 'cut.db is damaged: ls, show' || fail "$(cat "$folder/out")" # wrapped
run doctor --db "$cut" --json
expect_out '"readable": *false'
end

begin "a cut history is not written, and not gone on with"
for command in "tag 1 x" "rm 1" gc "run simple --steps 2 --quiet" "resume 1"; do
    # shellcheck disable=SC2086 # words
    run $command --db "$cut"
    expect_error 4 "is damaged"
done
end

if command -v sqlite3 >/dev/null 2>&1; then
    begin "code that is planted in a history is refused where it is cut, too"
    cp "$MPBENCH_DB" "$cut"
    sqlite3 "$cut" "CREATE VIEW planted AS SELECT 1"
    truncate -s $((size * 9 / 10)) "$cut"
    run ls --db "$cut"
    expect_error 4 'holds the view "planted", which is not mpbench'
    end

    begin "behind a damaged page reading goes on"
    cp "$MPBENCH_DB" "$cut"
    page=$(sqlite3 "$cut" 'PRAGMA page_size')
    count=$((size / page))
    # One after another; the first ones, of the schema, are those without which nothing is found.
    lost=0
    for number in $(seq $((count / 4)) "$count"); do
        cp "$MPBENCH_DB" "$cut"
        dd if=/dev/zero of="$cut" bs="$page" seek=$((number - 1)) count=1 conv=notrunc 2>/dev/null
        run export run1 --db "$cut"
        case $status in
        0) continue ;; # a page of others
        4) lost=$((lost + 1)) ;;
        *) fail "page $number: exit status $status: $(cat "$folder/err")" ;;
        esac
        run export run1 --format jsonl --db "$cut"
        [ "$(wc -l <"$folder/out")" -ge 300 ] || fail "page $number: $(wc -l <"$folder/out") lines are left"
    done
    [ "$lost" -ge 5 ] || fail "only $lost of $count pages were missed"
    end

    begin "where nothing is damaged a sum stands for points that are not all there"
    cp "$MPBENCH_DB" "$cut"
    sqlite3 "$cut" "DELETE FROM points WHERE step IN (10, 11) AND
        series = (SELECT id FROM series WHERE run = 1 AND name = 'loss')"
    run export 1 --format jsonl --db "$cut"
    expect_status 0
    expect_out '"series":"loss","step":8,"width":8,"count":8,'
    expect_no_out '"series":"loss","step":14,'
    end

    begin "a layer whose parent is no layer is exported as if it had none"
    run run simple --quiet --steps 4 --threads 1 --db "$folder/own.db" --name own
    sqlite3 "$folder/own.db" "UPDATE layers SET parent = 100000000"
    run export own --db "$folder/own.db" --format safetensors -p bf16 -o "$folder/own.safetensors"
    expect_status 0
    [ -s "$folder/own.safetensors" ] || fail "no weights were written"
    end

    begin "a row that claims a step without end costs no time"
    cp "$MPBENCH_DB" "$cut"
    sqlite3 "$cut" "UPDATE runs SET step = 1 << 60; INSERT INTO points (series, step, segment, value)
        VALUES ((SELECT id FROM series WHERE run = 1 AND name = 'loss'), (1 << 60) + 5, 0, 1);
        INSERT INTO buckets VALUES ((SELECT id FROM series WHERE run = 1 AND name = 'loss'), 262144, 1 << 60, 0, 1, 0, 0, 0, 1, 1, 1, 1, 1)"
    for format in csv jsonl; do
        timeout $((5 * patience)) "$mpbench" export 1 --format $format --db "$cut" >"$folder/out" 2>"$folder/err"
        status=$?
        expect_status 0
        [ "$(wc -l <"$folder/out")" -eq $(($(wc -l <"$folder/whole.$format") + 1)) ] || fail "$format: $(wc -l <"$folder/out") lines"
        grep -q 1152921504606846 "$folder/out" || fail "$format: the point is not there: $(tail -n 1 "$folder/out")"
    done
    end

    begin "a history that is locked is status 4 at once for who begins"
    mkfifo "$folder/hold"
    sqlite3 -cmd "$patient" "$MPBENCH_DB" <"$folder/hold" >"$folder/held" &
    worker=$!
    workers="$workers $worker"
    exec 3>"$folder/hold"
    echo "BEGIN EXCLUSIVE; SELECT 1;" >&3
    wait_until 5 test -s "$folder/held"
    "$mpbench" ls >"$folder/ls.out" 2>"$folder/ls.err" &
    listing=$!
    "$mpbench" tag 1 x >"$folder/tag.out" 2>"$folder/tag.err" &
    tagging=$!
    run run simple --steps 2 --quiet
    expect_error 4 "another program has held"
    wait "$listing"
    [ $? -eq 4 ] || fail "ls: $(cat "$folder/ls.err")"
    wait "$tagging"
    [ $? -eq 4 ] || fail "tag: $(cat "$folder/tag.err")"
    exec 3>&-
    wait "$worker"
    run ls
    expect_status 0
    end
else
    echo "skip damaged pages, hostile rows and locks: no sqlite3 to make them with"
fi

exit "$failures"
