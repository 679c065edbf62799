#!/bin/sh
# shellcheck disable=SC1091,SC2034,SC2154,SC2317 # what shell.sh sets, reads and calls
# docs/results.md: what docs/results.sh makes of a history, and that what people wrote beside it is needed.
. "$(dirname "$0")/../shell.sh"

# Three experiments: formats that agree, one that is worse in fp16, and one that nobody trains.
mkdir "$folder/experiments"
write() { # NAME WORSE
    cat >"$folder/experiments/$1.lua" <<LUA
local mp = require "mp"
return mp.experiment {
    name = "$1", about = "Made for a test", precision = { head = "fp32" },
    run = function(run)
        local m = run:model(mp.nn.Sequential { mp.nn.Linear(4, 1):named "head" })
        local opt = mp.optim.SGD(m:parameters(), { lr = 1e-3 })
        for _ = 1, 4 do
            opt:zero_grad()
            local loss = m(mp.ones(2, 4)):sum()
            loss:backward()
            opt:step()
            run:log { loss = loss }
        end
        local worse = mp.policy().low == "fp16" and $2 or 0
        run:result { accuracy = 0.9 - worse + 0.001 * mp.rand(1):item() }
    end,
}
LUA
}
write alike 0
write worse 0.2
write never 0
export MPBENCH_EXPERIMENTS="$folder/experiments" RESULTS="$folder/results.db" SEEDS=2 MPBENCH="$mpbench"
export RESULTS_TABLE="$folder/table" RESULTS_PAGE="$folder/page.md"
: >"$RESULTS_TABLE"
results() {
    sh docs/results.sh "$@" >"$folder/out" 2>"$folder/err" </dev/null
    status=$?
}
another_day() { # with a history of its own
    RESULTS=$folder/other.db sh docs/results.sh "$@" >"$folder/out" 2>"$folder/err" </dev/null || fail "$(cat "$folder/err")"
}

begin "without runs there is no page"
results page never
expect_status 1
expect_err 'no experiment is trained'
results pages
expect_status 2
end

begin "an experiment that there is not, or a folder without any, is told"
results train alike alik
expect_status 2
expect_err '^results: alik: no such experiment$'
mkdir -p "$folder/none/build" # no experiments lie beside it
cp "$mpbench" "$folder/none/build"
MPBENCH="$folder/none/build/mpbench" MPBENCH_EXPERIMENTS="$folder/none" results page
expect_status 3
expect_err 'finds no experiments: MPBENCH_EXPERIMENTS'
end

begin "a page has a row of every experiment that was trained, and names the others"
results train alike worse
expect_status 0
results page alike worse never
expect_status 0
expect_out '^| \[alike\](#alike) | accuracy | 0\.9.* | inside |$'
expect_out '^| \[worse\](#worse) | accuracy | .* | \*\*-0\.2.*\*\* | .* | \*\*outside\*\*: fp16: nobody has looked why |$'
expect_out '^Not trained yet: never\.$'
expect_out '^### worse$'
expect_out '^| activations | .*B | .*B |'
expect_out '^Trained on cpu .*by mpbench [0-9]'
expect_out '^Not measured: '
expect_out '^| Mixed precision in bf16 trains .* | not tested'
grep -q '^| joules | ' "$folder/out" || fail "no energy"
end

begin "what the history lacks stays as the page has it"
results page alike worse
cp "$folder/out" "$RESULTS_PAGE"
results page alike worse never
diff "$RESULTS_PAGE" "$folder/out" >"$folder/differs"
grep -q '^> Not trained yet: never' "$folder/differs" || fail "what is not trained is not told"
[ "$(grep -c '^[<>] [^ ]' "$folder/differs")" -eq 1 ] || fail "$(cat "$folder/differs")"
another_day train worse
another_day page alike worse
diff "$RESULTS_PAGE" "$folder/out" >/dev/null || fail "$(diff "$RESULTS_PAGE" "$folder/out")"
sed 's/^\(Trained on .*\); [-0-9]*\.$/\1; 2020-01-02./' "$RESULTS_PAGE" >"$folder/page"
mv "$folder/page" "$RESULTS_PAGE"
another_day page alike worse
expect_out '^Trained on cpu .*; 2020-01-02 to 20[-0-9]*\.$'
[ "$(grep -c '^Trained on' "$folder/out")" -eq 1 ] || fail "two lines: $(grep '^Trained on' "$folder/out")"
sed -i 's/^Trained on .*; by/Trained on another machine; by/; s/^| \[alike\].*/| [alike](#alike) | accuracy | 5 | | | | inside |/' "$RESULTS_PAGE"
sed -i 's/^\(| Mixed precision in bf16 trains .* |\) not tested.*/\1 tried | **confirmed** |/' "$RESULTS_PAGE"
another_day page alike worse
expect_out '^| \[alike\](#alike) | accuracy | 5 | | | | inside |$'
expect_out '^| \[worse\](#worse) | accuracy | .* | \*\*outside\*\*: fp16'
expect_out '^Trained on another machine; by'
expect_out '^Trained on cpu'
expect_out '^| Mixed precision in bf16 trains .* | tried | \*\*confirmed\*\* |$'
expect_out '^| Mixed precision halves the memory of activations.* | not tested'
rm "$RESULTS_PAGE"
end

begin "differences are of pairs, and of those that the page keeps it is told which are not"
results page alike worse
expect_out '^Differences are of runs of one seed, pair by pair'
expect_no_out 'differences are those of means'
cp "$folder/out" "$RESULTS_PAGE"
another_day page alike worse
expect_no_out 'differences are those of means'
sed -i '/^Differences are of runs/d' "$RESULTS_PAGE" # as older pages were
another_day page alike worse
expect_out '^Of alike differences are those of means, by Welch'
rm "$RESULTS_PAGE"
end

begin "times alone fill the speeds of a page that is kept"
results page alike worse
cp "$folder/out" "$RESULTS_PAGE"
printf 'time | alike | --steps 3\npace | alike | a step is short.\npace | worse | so is its.\n' >"$RESULTS_TABLE"
timed_db=$folder/timed.db
RESULTS=$timed_db sh docs/results.sh time alike >/dev/null 2>"$folder/err" || fail "$(cat "$folder/err")"
RESULTS=$timed_db sh docs/results.sh page alike worse >"$folder/out" 2>"$folder/err" || fail "$(cat "$folder/err")"
expect_out '^| \[alike\](#alike) | accuracy | 0\.9' # as kept
expect_out '^| alike | too short to tell '
expect_out '^Timed on cpu'
expect_out '^Of alike: a step is short\.$'
expect_no_out '^Of worse:' # which nobody timed
expect_out '^Not timed yet: worse\.$'
sed 's/^| memory, at most |.*/| memory, at most | 9 GiB |/; s/^| weights |.*/| weights | 8 GiB |/' "$folder/out" >"$RESULTS_PAGE"
memory_of() { # EXPERIMENT: its row of the page that was made
    RESULTS=$timed_db sh docs/results.sh page alike worse |
        sed -n "/^### $1\$/,/^| workspace/p" | grep -E '^[|] (memory, at most|weights) [|]'
}
memory_of alike | grep -q GiB && fail "its memory is not that of the timed runs: $(memory_of alike)"
[ "$(memory_of alike | wc -l)" -eq 2 ] || fail "rows of memory: $(memory_of alike)"
memory_of worse | grep -q '^| memory, at most | 9 GiB' || fail "an experiment that was not timed keeps no memory"
echo 'held | alike | another batch' >>"$RESULTS_TABLE"
memory_of alike | grep -q '^| weights | 8 GiB' || fail "its memory is not that of its training"
RESULTS=$timed_db sh docs/results.sh page alike worse | tr '\n' ' ' >"$folder/kept"
grep -q 'Of alike and worse it is that of the runs that were trained\.' "$folder/kept" || fail "whose memory it is"
sed -i '/^held/d' "$RESULTS_TABLE"
RESULTS=$timed_db sh docs/results.sh page alike worse >"$folder/of_times.md" # and that page kept, without runs
RESULTS=$folder/other.db RESULTS_PAGE=$folder/of_times.md sh docs/results.sh page alike worse | tr '\n' ' ' >"$folder/kept"
grep -q 'Of worse it is that' "$folder/kept" || fail "whose memory it is on a page that is kept"
sed -i "s/^| | fp32.*/| | fp32 | fp16 |/" "$RESULTS_PAGE" # a page of other formats
memory_of alike | grep -q '^| weights | 8 GiB' || fail "memory stands in columns of other formats: $(memory_of alike)"
sed -i 's/too short to tell/7.0/' "$folder/out" && cp "$folder/out" "$RESULTS_PAGE"
results page worse alike # whose history has no times
expect_out '^| alike | 7\.0 '
expect_out '^Timed on cpu'
: >"$RESULTS_TABLE"
rm "$RESULTS_PAGE"
end

begin "a second training finds all there"
"$mpbench" ls --db "$RESULTS" | grep -c '^ *[0-9]' >"$folder/before"
results train alike worse
"$mpbench" ls --db "$RESULTS" | grep -c '^ *[0-9]' | diff -q - "$folder/before" >/dev/null || fail "it trained again"
end

begin "why a result is outside is told, and an explanation that none needs is refused"
echo 'why | worse | fp16 | it was made so' >"$RESULTS_TABLE"
results page worse
expect_status 0
expect_out '\*\*outside\*\*: fp16: it was made so |$'
echo 'why | worse | bf16 | it was made so' >"$RESULTS_TABLE"
results page worse
expect_status 1
expect_err 'worse in bf16: it is inside the interval'
end

begin "no speed is told of runs that are too short"
echo 'time | alike | --steps 3' >"$RESULTS_TABLE"
results time alike
expect_status 0
results page alike
expect_out '^| alike | too short to tell | too short to tell | too short to tell | too short to tell |'
end

begin "a speed is told of a quiet machine, and taken again where it was not"
pretend() { # OTHERS: runs that took long enough, beside other programs
    sqlite3 "$RESULTS" "UPDATE runs SET wall_s = 9, steps_per_s = 100; DELETE FROM environment WHERE name = 'load.others';
        INSERT INTO environment SELECT id, 900, 'load.others', '$1' FROM runs"
}
if command -v sqlite3 >/dev/null; then
    pretend '0.01 of 2'
    results page alike
    expect_out '^| alike | 100.* | 1.00x.* | under a twentieth |$'
    pretend '0.90 of 2'
    results page alike
    expect_out '^| alike | not told: busy | not told: busy | .* | 0.9 of 2 |$'
    results time alike
    results page alike
    expect_out '^| alike | too short to tell |' # they are new
fi
end

begin "a difference that one seed makes is not called inside"
if command -v sqlite3 >/dev/null; then
    sqlite3 "$RESULTS" "UPDATE metrics SET value = 60 WHERE run = (SELECT min(r.id) FROM runs r JOIN metrics m ON m.run = r.id
        WHERE r.experiment = 'alike' AND r.precision = 'fp16')"
    results page alike
    expect_out '^| \[alike\](#alike) | .* | \*\*cannot be told\*\*: fp16: nobody has looked why |$'
fi
end

begin "a signal ends it, and no other experiment begins"
write_endless
mv "$folder/endless.lua" "$MPBENCH_EXPERIMENTS/alone.lua"
MPBENCH_DB=$RESULTS
sh docs/results.sh train alone never >/dev/null 2>"$folder/err" &
leader=$!
workers="$workers $leader"
wait_until 10 is_running endless 1 || fail "nothing trains: $(cat "$folder/err")"
# shellcheck disable=SC2046 # the matrix is its only child
kill -TERM $(pgrep -P "$leader" 2>/dev/null || ps -o pid= --ppid "$leader")
wait "$leader"
[ $? -gt 128 ] || fail "it went on"
! grep -q never "$folder/err" || fail "the next one began"
MPBENCH_DB=$folder/history.db
end

begin "what came from outside is no markup"
write_tiny
for kind in 'a|b' '<i>*c*'; do
    run run "$tiny" -p fp32 --steps 3 --set kind="$kind" --quiet
    expect_status 0
done
run compare 1 2 --markdown
expect_status 0
expect_out '^| | kind=a\\|b | kind=\\<i\\>\\\*c\\\* |$'
end

begin "every experiment that ships is timed, and no other"
(cd experiments && find . -maxdepth 2 -name '*.lua' ! -path './*/parts/*') | sed 's|^\./||; s|\.lua$||' | sort >"$folder/ships"
awk -F ' *[|] *' '$1 == "time" { print $2 }' docs/results.txt | sort | diff "$folder/ships" - >"$folder/differs" ||
    fail "docs/results.txt: $(tr '\n' ' ' <"$folder/differs")"
end

begin "the page that is kept has every explanation that is kept"
awk -F ' *[|] *' '$1 == "why" { print $2 "|" $3 "|" $4 }' docs/results.txt >"$folder/kept"
while IFS='|' read -r experiment format reason; do
    grep -F "[$experiment]" docs/results.md | grep -qF "$format: $reason" ||
        fail "docs/results.md: $experiment in $format: make results"
done <"$folder/kept"
[ -s docs/results.md ] || fail "no docs/results.md"
end

exit "$failures"
