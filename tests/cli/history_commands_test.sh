#!/bin/sh
# shellcheck disable=SC1091,SC2034,SC2154,SC2317 # what shell.sh sets, reads and calls
# The commands on the history, on short real runs: what they print, what they refuse, and what they
# leave. $MPBENCH is the program.
. "$(dirname "$0")/../shell.sh"

train() { # ARGUMENTS of run
    "$mpbench" run simple --quiet --steps 60 --threads 1 "$@" >/dev/null 2>>"$folder/train" || fail "a run failed"
}

# ---- nothing recorded -----------------------------------------------------------------------------

begin "an empty history is no error for ls"
run ls
expect_status 0
expect_out "No run was recorded yet"
run ls --json
expect_status 0
expect_out '^\[\]$'
[ ! -e "$MPBENCH_DB" ] || fail "reading made a file"
run show 1
expect_error 2 "the history is empty"
end

begin "a folder that was named and is not there is no empty history"
for command in ls "ls --json" "show 1" "compare 1 2" "export 1" "watch 1" "ctl 1 stop" "rm 1" gc ""; do
    # shellcheck disable=SC2086 # words
    run $command --db "$folder/nowhere/history.db"
    expect_error 4 "there is no folder $folder/nowhere: look at --db"
    expect_silent out
done
MPBENCH_DB=$folder/nowhere/history.db run ls
expect_error 4 "there is no folder"
[ ! -e "$folder/nowhere" ] || fail "reading made it"
MPBENCH_DB='' XDG_DATA_HOME=$folder/data run ls # the usual place, before the first run
expect_status 0
run watch 1
expect_error 2 "the history is empty"
[ ! -e "$MPBENCH_DB" ] || fail "watching made a file"
end

begin "what is no history is left alone, with status 4"
echo "not a database, but a text of somebody's" >"$folder/notes.txt"
cp "$folder/notes.txt" "$folder/before"
for command in ls "show 1" "rm 1" gc; do
    # shellcheck disable=SC2086 # words
    run $command --db "$folder/notes.txt"
    expect_error 4 "notes.txt"
done
cmp -s "$folder/notes.txt" "$folder/before" || fail "it was changed"
end

# ---- lists and pages ------------------------------------------------------------------------------

begin "runs are listed, the newest first"
train -p fp32 --seed 1
train -p fp32 --seed 2
train -p bf16 --seed 1
train -p bf16 --seed 2 --name last-one
run ls
expect_status 0
expect_out '^id  *name  *status'
[ "$(sed -n 2p "$folder/out" | awk '{ print $1, $2, $3, $4 }')" = "4 last-one finished bf16" ] ||
    fail "the first row is $(sed -n 2p "$folder/out")"
[ "$(wc -l <"$folder/out")" -eq 5 ] || fail "not four rows"
run ls precision:fp32 --limit 1
[ "$(wc -l <"$folder/out")" -eq 2 ] || fail "--limit and a filter do not give one row"
expect_out '^ *2 '
run ls precision:fp16
expect_status 0
expect_out "No run is like that"
run ls sede:1
expect_error 2 "seed"
run ls precision:fp17
expect_error 2 "did you mean fp16"
run ls accuarcy\>0.5
expect_error 2 "did you mean accuracy"
run ls bf16 --limit 9
[ "$(wc -l <"$folder/out")" -eq 3 ] || fail "a bare word does not find the two runs in bf16"
run
expect_status 0
expect_out '^ *4  last-one'
expect_out "mpbench show RUN"
end

begin "ls --json is an array of runs without layers"
run ls --json
expect_status 0
[ "$(sed 's/[[:space:]]//g' "$folder/out" | cut -c1-8)" = '[{"id":4' ] || fail "it begins $(head -c 40 "$folder/out")"
expect_out '"precision": *"bf16"'
expect_no_out '"layers"'
expect_out '"params": *{"batch": *32'
run ls nothing-like-that --json
expect_out '^\[\]$'
end

begin "show tells all of one run"
run show last-one
expect_status 0
for part in 'precision .*bf16' 'steps .*60 applied' 'loss .* -> ' 'parameters .*lr' 'energy ' '^Layers' 'fc1 ' \
    '^Events' 'finished after step 60' '^Environment' 'memory .*weights' 'telemetry.share 0\.'; do
    expect_out "$part"
done
run show 4 --json
expect_status 0
[ "$(value_of id)" = 4 ] || fail "the id is $(value_of id)"
expect_out '"layers"'
expect_out '"energy_j": *\(null\|[0-9]\)'
end

# A few steps a second are measured, and the last is hardly one of them.
begin "what a layer's updates and time were last measured as is shown at the end of a long run"
run run simple -p fp32 -d cpu --threads 1 --steps 3000 --quiet --db "$folder/long.db"
run show 1 --db "$folder/long.db"
expect_out '^layer .* update  ms a step$'
end

# Of each step while few come in a second, else of sums: neither is "the end" of thousands.
begin "of what steps gradients were counted is told"
expect_out '^Layers, their true gradients in steps [0-9]* to 3000 (2^'
run show 1 --db "$folder/long.db" --what-if
expect_out '^From the exponents that were counted in steps [0-9]* to 3000\.'
run run simple -p fp32 -d cpu --threads 1 --steps 3 --quiet --db "$folder/long.db"
run show 2 --db "$folder/long.db"
expect_out '^Layers, their true gradients in step 3 (2^'
run report 2 --db "$folder/long.db" -o "$folder/report.html"
grep -q 'their true gradients in step 3<' "$folder/report.html" || fail "the report tells other steps"
end

begin "trainings of two experiments part at no step"
run run underflow -p fp32 -d cpu --threads 1 --steps 5 --quiet --db "$folder/long.db"
run compare 1 3 --db "$folder/long.db"
expect_status 0
expect_out 'are of two experiments'
expect_no_out 'other bits from step'
end

begin "a run is named by its number, its name, a beginning of it, @last"
for typed in 4 last-one last @last @last:bf16; do
    run show "$typed" --json
    [ "$(value_of id)" = 4 ] || fail "$typed is not run 4"
done
run show @last:fp32 --json
[ "$(value_of id)" = 2 ] || fail "@last:fp32 is not run 2"
run show last-won
expect_error 2 "last-one"
run show 99
expect_error 2 "99"
end

begin "curves and tables are ASCII where the locale is"
LC_ALL=C run show 1
[ -z "$(LC_ALL=C tr -d '\n\40-\176' <"$folder/out")" ] || fail "show prints more than ASCII"
LC_ALL=C run compare 1 2 3 4
[ -z "$(LC_ALL=C tr -d '\n\40-\176' <"$folder/out")" ] || fail "compare prints more than ASCII"
LC_ALL=C.UTF-8 run show 1
LC_ALL=C grep -q "$(printf '\342\240')" "$folder/out" || fail "no braille with UTF-8"
end

begin "show has every series that was logged"
cat >"$folder/logs.lua" <<'LUA'
return require("mp").experiment {
    name = "logs",
    run = function(run)
        local mp = require "mp"
        local net = run:model(mp.nn.Sequential { mp.nn.Linear(2, 1):named "head" })
        local opt = mp.optim.SGD(net:parameters(), { lr = 0.01 })
        for i = 1, 8 do
            net(mp.ones(1, 2)):sum():backward()
            opt:step()
            run:log { loss = 1 / i, busiest = i / 4, flat = 3, once = i == 5 and 0.75 or nil }
        end
    end,
}
LUA
"$mpbench" run "$folder/logs.lua" --quiet --db "$folder/logs.db" >/dev/null
LC_ALL=C.UTF-8 run show 1 --db "$folder/logs.db"
expect_out '^series  *points  *first  *last  *from lowest to highest$'
expect_out '^busiest  *8  *0.25  *2  *▁.*█ *$'
expect_out '^flat  *8  *3  *3  *flat$'
expect_out '^once  *1  *0.75  *0.75'
expect_no_out '^loss  *8'
end

begin "of many results each is in the comparison, or told to be left out"
kept=$MPBENCH_DB
export MPBENCH_DB="$folder/many.db"
cat >"$folder/many.lua" <<'LUA'
return require("mp").experiment {
    name = "many", params = { results = 6 },
    run = function(run)
        run:log { loss = 1 }
        for i = 1, run.params.results do run:result { [("r%02d"):format(i)] = 1 / i } end
    end,
}
LUA
for precision in fp32 bf16; do
    "$mpbench" run "$folder/many.lua" --quiet -p $precision >/dev/null
    "$mpbench" run "$folder/many.lua" --quiet -p $precision --set results=20 >/dev/null
done
run compare 1 3
expect_out '^ .* r01  *r02  *r03  *r04  *r05  *r06 '
expect_no_out 'no room here'
run compare 2 4
expect_out '^ .* r01 .* r16 '
expect_out '^4 more results that have no room here, in --json: r17, r18, r19, r20$'
run compare 2 4 --markdown
expect_out '^| r20 |'
export MPBENCH_DB="$kept"
end

# on COLUMNS COMMAND: runs it on a terminal so wide; what it prints is in out.
on() {
    TERM=xterm script -qec "stty cols $1; '$mpbench' $2 --color never" /dev/null </dev/null | tr -d '\r' >"$folder/out"
}
longest() { # line of out, in characters
    LC_ALL=C tr -d '\200-\277' <"$folder/out" | LC_ALL=C awk '{ if (length($0) > n) n = length($0) } END { print n + 0 }'
}

if command -v script >/dev/null 2>&1; then
    begin "a list gives up columns, the least first, to fit the terminal"
    on 44 ls
    [ "$(longest)" -le 44 ] || fail "a line of $(longest) columns on 44"
    grep -q '^id  *name .*loss' "$folder/out" || fail "id, name and loss should stay: $(head -n 1 "$folder/out")"
    ! grep -q 'memory' "$folder/out" || fail "memory should have given way"
    end

    begin "results that give way to a narrow terminal are named"
    export MPBENCH_DB="$folder/many.db"
    on 60 "compare 1 3"
    [ "$(longest)" -le 60 ] || fail "a line of $(longest) columns on 60"
    grep -q 'more results\{0,1\} that ha.* no room here, in --json: .*r06$' "$folder/out" || fail "none is told of: $(cat "$folder/out")"
    export MPBENCH_DB="$kept"
    end

    begin "lists, pages and comparisons fit every terminal"
    cp "$kept" "$folder/wide.db"
    export MPBENCH_DB="$folder/wide.db"
    cat >"$folder/wordy.lua" <<'LUA'
return require("mp").experiment {
    name = "wordy", params = { steps = 3, one_that_has_a_long_name = 1, another_with_a_long_name = 2 },
    run = function(run)
        local net = run:model(require("mp").nn.Sequential { require("mp").nn.Linear(4, 4):named "a_layer_with_quite_a_long_name" })
        for step = 1, run.params.steps do run:log { loss = 1 / step } end
        run:event(("a message of many words "):rep(12))
        run:event(("nospaces"):rep(30))
        run:result { accuracy = 0.5 }
        return net
    end,
}
LUA
    for seed in 1 2; do
        "$mpbench" run "$folder/wordy.lua" --quiet --seed $seed --name "wordy-$seed-of-several-with-long-names" \
            --tag words --note "$(printf 'a note that goes on %.0s' 1 2 3 4 5 6 7 8 9)" --set one_that_has_a_long_name=2 \
            >/dev/null 2>"$folder/err" || fail "$(cat "$folder/err")"
    done
    for columns in 44 60 80 120 200; do
        for command in ls "ls tag:none" "show wordy-1-of" "show 1" "compare 1 2 3" "compare 1 wordy-1-of wordy-2-of" \
            "matrix $folder/wordy.lua -p fp32,bf16 --set another_with_a_long_name=1,2 --quiet" "ls --db $folder/none.db"; do
            on "$columns" "$command"
            [ -s "$folder/out" ] || fail "$command printed nothing"
            [ "$(longest)" -le "$columns" ] || fail "$command: a line of $(longest) columns on $columns: $(LC_ALL=C tr -d "\200-\277" <"$folder/out" | awk "length(\$0) > $columns" | head -n 1)"
        done
    done
    on 60 "show wordy-1-of"
    [ "$(tr -d '\n ' <"$folder/out" | grep -o nospaces | wc -l)" -ge 30 ] || fail "a long word lost some of itself"
    [ "$(tr -s '\n ' ' ' <"$folder/out" | grep -o 'of many words' | wc -l)" -ge 12 ] || fail "an event lost words"
    export MPBENCH_DB="$kept"
    end

    begin "what a run says of itself is broken between words: events, notes, its error, its first nan"
    cat >"$folder/sick.lua" <<'LUA'
local mp = require "mp"
local nn, F = mp.nn, mp.fn
return mp.experiment { name = "sick", run = function(run)
    local net = run:model(nn.Sequential { nn.Linear(8, 8):named "fc1", nn.Linear(8, 4):named "head" })
    local opt, scaler = mp.optim.SGD(net:parameters(), { lr = 0.01 }), run:scaler()
    net:parameters()[1]:copy(mp.ones(8, 8))
    for _ = 1, 60 do
        opt:zero_grad()
        local loss = mp.autocast(function() return F.cross_entropy(net(mp.ones(4, 8) * 3e4), mp.randint(4, 4)) end)
        scaler:scale(loss):backward()
        scaler:step(opt)
        scaler:update()
        run:log { loss = loss }
    end
end }
LUA
    export MPBENCH_DB="$folder/sick.db"
    for columns in 44 80 99; do
        on "$columns" "run $folder/sick.lua -p fp16 --threads 1"
        LC_ALL=C sed 's/\x1b\[K/\n/g' "$folder/out" >"$folder/lines" # where a live line was cleared away
        mv "$folder/lines" "$folder/out"
        [ "$(longest)" -le "$columns" ] || fail "run: a line of $(longest) columns on $columns"
        tr -s '\n ' ' ' <"$folder/out" >"$folder/words"
        grep -q 'note loss is nan after step 1: it went wrong' "$folder/words" || fail "run: a note lacks words on $columns"
        grep -q 'the loss scale cannot help any more: 20 steps' "$folder/words" || fail "the error lacks words on $columns"
        on "$columns" "show @last --first-nan"
        sed '/^  command/d; /^The way there/,$d' "$folder/out" >"$folder/lines" # what is copied, and a picture
        mv "$folder/lines" "$folder/out"
        [ "$(longest)" -le "$columns" ] || fail "show --first-nan: a line of $(longest) columns on $columns"
    done
    export MPBENCH_DB="$kept"
    end
else
    echo "skip lists and pages fit the terminal: no script to make one with"
fi

# ---- comparing --------------------------------------------------------------------------------------

begin "compare holds runs against the first"
run compare 3
expect_error 2 "compare: one more is wanted beside 3: compare RUN RUN"
run compare 1 3
expect_out "^loss: the mean of the last tenth of what all did; run, ls and show tell the last one"
expect_status 0
expect_out '^bf16  *run 3 '
expect_out '^precision  *fp32  *bf16'
run compare 1 3 --json
expect_status 0
expect_no_out '"differences":{[^}]*seed'
expect_out 'one seed cannot tell'
for key in speedup memory_ratio energy_ratio loss_delta metric_deltas first_divergence; do
    expect_out "\"$key\":"
done
[ "$(value_of energy_ratio)" = null ] || [ -n "$(value_of energy_j)" ] || fail "energy is neither known nor null"
end

begin "several seeds are one group with an interval"
run compare 1 2 3 4 --json
expect_status 0
expect_out '"runs":\[1,2\]'
expect_out '"runs":\[3,4\]'
expect_out '"standard_deviation":[0-9]'
expect_out '"interval_95":[0-9]'
expect_out 'two seeds cannot tell\|more than the noise'
expect_out '"loss_delta_by":"\(pairs\|welch\)"'
expect_out '"metric_deltas_95":{"[^}]*":[0-9]'
expect_out '"metric_deltas_by":{"[^}]*":"\(pairs\|welch\)"'
run compare 1 2 3 4 --by seconds
expect_status 0
expect_out "every run"
expect_no_out '^Differences are ' # none is in the tables
run compare 1 2 3 4 --markdown
expect_out '± .* ± '
expect_out '^Differences are '
end

begin "the same run again is the same to the bit"
train -p fp32 --seed 1
run compare 1 5
expect_status 0
expect_out "the same loss to the bit"
end

begin "compare tells when a series was as good as a target, and what the run took of energy"
run compare 1 3 --target loss=1.5 --watts 36 --co2 500
expect_status 0
expect_out "^to loss <= 1.5 *reached by *steps *seconds"
expect_out " 1 of 1 "
expect_out "J, which is .* kWh and, at 500 g a kWh, .* g of CO2"
expect_out "it is stated, 36 W"
expect_no_out '% [a-z]* than fp32' # which runs as short as these cannot tell
run show 1 --watts 36 --co2 500
expect_out "energy .* J, .* g of CO2: stated, not measured, 36 W"
run compare 1 3 --watts 36 --json
expect_out '"energy_delta_j":[ ]*-*[0-9]'
expect_out '"energy_delta_kwh":[ ]*-*[0-9]'
expect_out '"co2_delta_g":[ ]*null'
run compare 1 3 --target loss=1.5 --watts 36 --json
steps=$(value_of steps)
seconds=$(sed 's/[[:space:]]//g' "$folder/out" | grep -o '"wall_s":[0-9.e-]*' | head -n 1 | cut -d: -f2)
kwh=$(value_of energy_kwh)
awk -v wall="$seconds" -v kwh="$kwh" 'BEGIN { exit !(kwh > 0 && kwh / (wall * 1e-5) > 0.999 && kwh / (wall * 1e-5) < 1.001) }' ||
    fail "36 W for $seconds s are $kwh kWh"
reached=$(sed 's/[[:space:]]//g' "$folder/out" | sed -n 's/.*"target":{"name":"loss","value":1.5,"reached":1,"steps":\([0-9]*\).*/\1/p')
if [ "${reached:-0}" -lt 2 ] || [ "$reached" -ge "$steps" ]; then
    fail "the loss came to 1.5 after ${reached:-no} steps of $steps"
fi
run compare 1 3 --target loss=-1
expect_out " 0 of 1 "
cat >"$folder/named.lua" <<'LUA'
local mp = require "mp"
return mp.experiment {
    name = "named",
    run = function(run)
        local m = run:model(mp.nn.Linear(1, 1))
        local opt = mp.optim.SGD(m:parameters(), { lr = 1e-3 })
        for step = 1, 9 do
            opt:zero_grad()
            m(mp.ones(1, 1)):sum():backward()
            opt:step()
            run:log { loss = 1, val_mse = 10 - step, confidence = step / 10 }
        end
    end,
}
LUA
for seed in 1 2; do
    "$mpbench" run "$folder/named.lua" --quiet --seed "$seed" --threads 1 --db "$folder/named.db" >"$folder/out" || fail "it does not train"
done
for target in val_mse=5 confidence=0.5 'val_mse<=5' 'confidence>=0.5' 'val_mse<5'; do
    run compare 1 2 --db "$folder/named.db" --target "$target" --json
    sed 's/[[:space:]]//g' "$folder/out" | grep -q '"reached":[12],"steps":5[,}]' ||
        fail "$target: $(sed 's/[[:space:]]//g' "$folder/out" | grep -o '"target":{[^}]*}' | head -n 1)"
done
run compare 1 2 --db "$folder/named.db" --target 'val_mse>=9' --json # whatever its name says
expect_out '"reached": *1, *"steps": *1[,}]'
expect_out '"falls": *false'
run compare 1 3 --target acuracy=0.5
expect_usage_error "target acuracy: no series"
for target in loss 'loss<' '<=3' 'loss>=x' '='; do
    run compare 1 3 --target "$target"
    expect_usage_error "NAME=VALUE is wanted"
done
run compare 1 3 --watts none
expect_usage_error "watts are wanted"
end

begin "what cannot be compared is refused"
run compare 1
expect_error 2 "compare: one more is wanted beside 1: compare RUN RUN"
run compare 1 1
expect_error 2 "given twice"
run compare 1 77
expect_error 2 "77"
run compare 1 2 --by hour
expect_error 2 "one of step epoch seconds samples"
run compare 1 2 --co2 -3
expect_error 2 "grams"
end

# ---- exporting --------------------------------------------------------------------------------------

begin "export writes a column a series, and an object a line"
run export 1
expect_status 0
head -n 1 "$folder/out" | grep -q '^step,.*loss' || fail "the head is $(head -n 1 "$folder/out")"
columns=$(head -n 1 "$folder/out" | tr -dc , | wc -c)
awk -F, -v n="$columns" 'NF != n + 1 { exit 1 }' "$folder/out" || fail "rows differ in length"
[ "$(wc -l <"$folder/out")" -ge 60 ] || fail "rows are missing"
run export 1 --format jsonl -o "$folder/run.jsonl"
expect_status 0
for kind in run point event layer; do
    grep -q "^{\"kind\":\"$kind\"" "$folder/run.jsonl" || fail "no line of kind $kind"
done
! grep -qv '^{.*}$' "$folder/run.jsonl" || fail "a line is no object"
[ ! -e "$folder/run.jsonl.mpbench-part" ] || fail "a part was left"
run export 1 --format cvs
expect_error 2 "did you mean csv"
run export 1 -o "$folder/nowhere/x.csv"
expect_error 1 "nowhere"
run export 1 --format safetensors -o "$folder/w.safetensors"
expect_status 0
[ -s "$folder/w.safetensors" ] || fail "no weights came out"
end

# ---- notes, and strings from outside ----------------------------------------------------------------

begin "tags and notes are kept, and no escape reaches the terminal"
escape=$(printf '\033[31m')
run tag 1 baseline
expect_status 0
run note 1 red "${escape}text"
expect_status 0
run tag 2 "${escape}x"
run ls tag:baseline
expect_out '^ *1 .*baseline'
run show 1
expect_out 'note  *red \\x1b\[31mtext'
for command in ls "show 1" "show 2" "compare 1 2" "compare 1 3"; do
    # shellcheck disable=SC2086 # words
    run $command --color never
    expect_status 0
    ! grep -q "$(printf '\033')" "$folder/out" || fail "$command: an escape came through"
done
run tag 99 x
expect_error 2 "99"
end

begin "a note may be as long as that of a run that begins"
long=$(printf '%0255d' 1)
run run simple --steps 1 --quiet --name noted --note "$long"
expect_status 0
for words in "$long" "${long#??} 1"; do
    # shellcheck disable=SC2086 # two words are joined by a blank
    run note noted $words
    expect_status 0
    run show noted
    expect_out "^  note  *$words\$"
done
for words in "${long}0" "${long#?} 1"; do
    # shellcheck disable=SC2086
    run note noted $words
    expect_error 2 "note: longer than 255 bytes"
done
end

begin "how the scale grows is noted, of scales that grow alone"
train -p fp16 --name growing
train -p fp16 --loss-scale 1024 --name still
run show growing
expect_out '^  scaler.interval 2000$'
expect_out '^  scaler.ceiling '
run show still
expect_no_out 'scaler\.'
end

begin "a run is called by what its layers are set to, and by what stays in fp32, too"
MPBENCH_DB=$folder/labels.db
train -p fp32 --layer fc1=bf16
train -p fp16 --keep-fp32 none
train -p fp16 --keep-fp32 all
run ls
expect_out ' simple-1 .* fp32 +1 layer  '
expect_out ' simple-2 .* fp16 keep=none  '
expect_out ' simple-3 .* fp16  '
run ls --json
expect_out '"precision":"fp32","precision_label":"fp32 +1 layer"'
expect_out '"precision":"fp16","precision_label":"fp16 keep=none"'
expect_out '"precision":"fp16","precision_label":"fp16",'
run show 1
expect_out '^  precision   fp32 +1 layer on cpu'
end

exit "$failures"
