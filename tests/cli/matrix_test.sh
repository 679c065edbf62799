#!/bin/sh
# shellcheck disable=SC1091,SC2034,SC2154,SC2317 # what shell.sh sets, reads and calls
# The matrix: every combination of precisions, seeds and settings, trained by processes of its own.
. "$(dirname "$0")/../shell.sh"

write_endless
matrix() {
    run matrix simple --steps 40 --threads 2 "$@"
}

begin "a matrix runs every combination and ends with the comparison"
matrix -p fp32,bf16 --seeds 2 --workers 2 --json
expect_status 0
expect_err "4/4 done"
expect_out '"verdict":\["bf16 '
ids=$(value_of runs)
[ -n "$ids" ] || fail "no runs in the object"
"$mpbench" ls --json | tr -d '[:space:]' | grep -o '"name":"simple[^"]*"' | sort -u >"$folder/names"
before=$(wc -l <"$folder/names")
matrix -p fp32,bf16 --seeds 2 --workers 2
expect_status 0
expect_err "4 of 4 done before"
"$mpbench" ls --json | tr -d '[:space:]' | grep -o '"name":"simple[^"]*"' | sort -u >"$folder/names"
[ "$(wc -l <"$folder/names")" -eq "$before" ] || fail "finished runs were run again"
end

begin "a matrix that grows runs what it lacks"
matrix -p fp32,bf16 --seeds 2 --set lr=0.01,0.02
expect_status 0
expect_err "8/8 done"
expect_out "lr=0.02"
"$mpbench" rm @last >/dev/null
matrix -p fp32,bf16 --seeds 2 --set lr=0.01,0.02 --list # trains nothing
expect_status 0
expect_out "lr=0.02"
expect_err "^7 of 8 done\$"
expect_out '^combination  *run  state$'
[ "$(grep -c '^fp32, lr=0.0[12], seed [12]  *[0-9][0-9]*  finished$' "$folder/out")" = 4 ] || fail "fp32 is not there: $(head -n 9 "$folder/out")"
[ "$(grep -c '  -  to be trained$' "$folder/out")" = 1 ] || fail "not one is to be trained: $(head -n 9 "$folder/out")"
matrix -p fp32,bf16 --set lr=0.07 --list # of which there is none
expect_status 0
[ "$(grep -c ', lr=0.07, seed 1  *-  to be trained$' "$folder/out")" = 2 ] || fail "it lists $(cat "$folder/out")"
matrix -p fp32,bf16 --seeds 2 --set lr=0.01,0.02 --list --markdown
expect_no_out 'to be trained'
matrix -p fp32,bf16 --seeds 2 --set lr=0.01,0.02
expect_err "7 of 8 done before"
expect_err "8/8 done: "
end

begin "what is only listed leaves no row in the history"
matrices() { in_history 'SELECT count(*) FROM matrices'; }
before=$(matrices)
run matrix simple --steps 41 -p fp32,bf16 --list
expect_status 0
[ "$(grep -c '  -  to be trained$' "$folder/out")" = 2 ] || fail "it lists $(cat "$folder/out")"
[ "$(matrices)" = "$before" ] || fail "$(matrices) matrices, and $before before"
end

begin "a comment that is edited leaves a matrix what it has, and code does not"
write_tiny
run matrix "$tiny" -p fp32,bf16 --steps 3
expect_err "2/2 done: "
{
    echo "-- Another word."
    cat "$tiny"
} >"$folder/told.lua" && mv "$folder/told.lua" "$tiny"
run matrix "$tiny" -p fp32,bf16,fp16 --steps 3
expect_err "2 of 3 done before"
expect_no_out "script" # one group would be two
if command -v sqlite3 >/dev/null; then # as older histories have it: by the hash of the whole text
    in_history "UPDATE matrices SET specification = 'script ' || (SELECT script_hash FROM runs
        WHERE matrix = matrices.id LIMIT 1) || substr(specification, 70) WHERE id = (SELECT max(matrix) FROM runs)"
    run matrix "$tiny" -p fp32,bf16,fp16 --steps 3
    expect_err "3 of 3 done before"
    run matrix "$tiny" -p fp32,bf16,fp16 --steps 4
    ! grep -q "done before" "$folder/err" || fail "another code was taken for the same"
fi
echo "local other" | cat - "$tiny" >"$folder/told.lua" && mv "$folder/told.lua" "$tiny"
run matrix "$tiny" -p fp32,bf16,fp16 --steps 3
! grep -q "done before" "$folder/err" || fail "another code was taken for the same"
end

begin "so does code of a file that is required, and one that this requires"
mkdir -p "$folder/parts/deep"
sed 's/^local mp = require "mp"/&  local one = require "parts.one"/' "$tiny" >"$folder/whole.lua"
grep -q parts.one "$folder/whole.lua" || fail "the script requires nothing"
echo 'return { require "parts.deep" }' >"$folder/parts/one.lua"
echo 'return 1' >"$folder/parts/deep/init.lua"
whole() {
    run matrix "$folder/whole.lua" -p fp32 --steps 3
}
whole
expect_err "1/1 done: "
echo '-- Another word.' >>"$folder/parts/one.lua"
whole
expect_err "1 of 1 done before"
for part in parts/one.lua parts/deep/init.lua; do
    sed 's/^return/local other return/' "$folder/$part" >"$folder/told.lua" && mv "$folder/told.lua" "$folder/$part"
    whole
    ! grep -q "done before" "$folder/err" || fail "another code of $part was taken for the same"
done
end

begin "scales, layers and what is kept vary like precisions"
matrix -p fp16 --loss-scale dynamic,1 --layer 'fc2=auto,fp32' --keep-fp32 all,losses+functions --steps 5
expect_status 0
expect_err "8/8 done: .*fc2=fp32, loss-scale=1, keep-fp32=losses+functions, seed 1"
expect_out "keep=losses"
matrix -p fp16 --loss-scale dynamic,1 --layer 'fc2=auto,fp32' --keep-fp32 all,losses+functions --steps 5
expect_err "8 of 8 done before"
matrix -p fp16 --loss-scale 1 --layer 'fc2=fp32' --keep-fp32 all --steps 5 # one of them
expect_err "1 of 1 done before"
matrix -p fp16 --loss-scale dynamic,dynamc
expect_usage_error "did you mean dynamic"
matrix -p fp16 --layer 'fc2=fp32,fp61'
expect_usage_error "layer fc2=fp61.*did you mean fp16"
matrix -p fp16 --keep-fp32 all,batchnorm
expect_usage_error "did you mean batch_norm"
matrix -p fp16 --loss-scale 1,1
expect_usage_error "1 is named twice"
end

begin "the same matrix twice at once is refused"
"$mpbench" matrix simple -p fp32,bf16 --set lr=0.03 --steps 2000000 --quiet >/dev/null 2>&1 &
first=$!
for _ in $(seq 200); do # until its first run trains
    run ls status:running
    grep -q running "$folder/out" && break
    sleep 0.05
done
run matrix simple -p bf16,fp16 --set lr=0.03 --steps 2000000
expect_error 1 "another process trains this matrix"
run ls status:running
[ "$(grep -c running "$folder/out")" = 1 ] || fail "it trained beside the first"
run matrix simple -p fp32 --set lr=0.03 --steps 30 --quiet # another one is free to go
expect_status 0
kill "$first"
wait "$first"
run matrix simple -p fp32,bf16 --set lr=0.03 --steps 40 --quiet # and the lock went with it
expect_status 0
end

begin "a run of a matrix that fails is named, and tried again"
cat >"$folder/fails.lua" <<'LUA'
return require("mp").experiment {
    name = "fails", params = { bad = 0 },
    run = function(run)
        if run.params.bad == 1 then error "on purpose" end
        run:log { loss = 1 }
        run:result { accuracy = 0.5 }
    end,
}
LUA
run matrix "$folder/fails.lua" --set bad=0,1 --seeds 2
expect_status 1
expect_err "bad=1, seed 2 failed"
expect_err "^mpbench: matrix: 2 of 4 runs failed"
run matrix "$folder/fails.lua" --set bad=0,1 --seeds 2
expect_err "2 of 4 done before"
run export @last:failed --format safetensors -o "$folder/none.safetensors"
expect_error 1 "has no checkpoint"
[ ! -e "$folder/none.safetensors" ] || fail "an empty file was left"
end

begin "what its first run refuses is refused as a whole"
run matrix simple -p fp32,bf16 --layer fc9=bf16 --steps 3
expect_status 2
expect_err "^mpbench: matrix: what it asks for is refused, as told above"
[ "$(grep -c "^mpbench: --layer fc9: no layer of the model has such a name; did you mean fc1?$" "$folder/err")" = 1 ] ||
    fail "the cause is not told once"
end

begin "where parameters vary, what one run refuses is not refused for the others"
cat >"$folder/depth.lua" <<'LUA'
local mp = require "mp"
local nn, F = mp.nn, mp.fn
return mp.experiment { name = "depth", params = { depth = 1 }, run = function(run)
    local layers = {}
    for i = 1, run.params.depth do layers[i] = nn.Linear(4, 4):named("fc" .. i) end
    local net = run:model(nn.Sequential(layers))
    local opt = mp.optim.SGD(net:parameters(), { lr = 1e-3 })
    for _ = 1, 3 do
        opt:zero_grad()
        local loss = F.mse(net(mp.randn(2, 4)), mp.zeros(2, 4))
        loss:backward()
        opt:step()
        run:log { loss = loss }
    end
end }
LUA
run matrix "$folder/depth.lua" --set depth=1,2,3 --layer fc2=bf16
expect_status 1
expect_err "depth=1, .* failed"
expect_err "^mpbench: matrix: 1 of 3 runs failed"
expect_out "depth=3"
end

begin "a value that no run would take is refused before any trains"
runs=$("$mpbench" ls --json | grep -o '"name"' | wc -l)
run matrix simple --set lrr=1,2
expect_error 2 "simple has no such parameter; did you mean lr[?] It has: .*lr"
run matrix simple -p fp32 --set lr=0.1,x
expect_error 2 "lr=x: a number expected"
run matrix simple -p fp32,fp7 --set lr=0.1
expect_error 2 "fp7: not known"
[ "$("$mpbench" ls --json | grep -o '"name"' | wc -l)" -eq "$runs" ] || fail "something trained"
end

begin "a matrix is asked for rightly"
matrix -p fp32,fp61
expect_error 2 "did you mean fp16"
matrix -p fp32,fp32
expect_error 2 "named twice"
matrix -p half,fp16
expect_error 2 "named twice"
matrix -p fp32,bf16 --seeds 1000
expect_error 2 "more than 256"
matrix -p fp32 --name x
expect_error 2 "has no option --name"
end

begin "a signal to a matrix reaches its runs"
"$mpbench" matrix "$folder/endless.lua" --seeds 2 --workers 2 --threads 2 --quiet >/dev/null 2>&1 &
leader=$!
wait_until 10 is_running endless 2
kill -TERM "$leader"
wait "$leader"
status=$?
expect_status 143
run ls status:running
expect_out "No run is like that"
run ls status:stopped endless
[ "$(grep -c '^ *[0-9]' "$folder/out")" -eq 2 ] || fail "two stopped runs were expected: $(tail -n 2 "$folder/out")"
end

begin "a matrix that is killed leaves no run behind"
"$mpbench" matrix "$folder/endless.lua" --seeds 2 --workers 2 --threads 2 --steps 1000000000 --quiet >/dev/null 2>&1 &
leader=$!
workers="$workers $leader"
wait_until 10 is_running endless 2 || fail "it did not begin"
kill -KILL "$leader"
wait "$leader"
wait_until 10 is_running endless 0 || fail "$(pgrep -cf "$folder/endless.lua") processes go on"
run ls status:stopped endless
[ "$(grep -c '^ *[0-9]' "$folder/out")" -eq 4 ] || fail "four stopped runs were expected: $(tail -n 2 "$folder/out")"
end

# The terminal's stop reaches the matrix alone: its runs have groups of their own.
begin "a matrix that is stopped by Ctrl-Z stops its runs, and goes on with them"
"$mpbench" matrix "$folder/endless.lua" --seeds 2 --workers 2 --threads 2 --steps 1000000000 --quiet >/dev/null 2>&1 &
leader=$!
workers="$workers $leader"
wait_until 10 is_running endless 2 || fail "it did not begin"
stand_still() { # COUNT: so many of its runs
    still=0
    for run in $(pgrep -P "$leader"); do
        [ "$(cut -d ' ' -f 3 "/proc/$run/stat")" != T ] || still=$((still + 1))
    done
    [ "$still" -eq "$1" ]
}
is_stopped() { [ "$(cut -d ' ' -f 3 "/proc/$leader/stat")" = T ]; }
for turn in 1 2 3; do
    kill -TSTP "$leader"
    wait_until 5 is_stopped || fail "turn $turn: it goes on"
    stand_still 2 || fail "turn $turn: $still of 2 runs stand still"
    kill -CONT "$leader"
    wait_until 5 stand_still 0 || fail "turn $turn: its runs do not go on"
done
kill -TSTP "$leader"
wait_until 5 is_stopped || fail "it goes on"
left=$(pgrep -P "$leader")
kill -KILL "$leader"
wait "$leader"
# shellcheck disable=SC2086 # words; the kernel does it where nobody of this session takes them over
kill -CONT $left 2>/dev/null
wait_until 10 is_running endless 0 || fail "killed while it stood still, it leaves runs behind"
run ls status:stopped endless # it went on with the two of the one that was killed
[ "$(grep -c '^ *[0-9]' "$folder/out")" -eq 4 ] || fail "four stopped runs were expected: $(tail -n 2 "$folder/out")"
end

begin "a run of a matrix that was stopped is told of, and the same command goes on with it"
cat >"$folder/steady.lua" <<'LUA'
local mp = require "mp"
return mp.experiment {
    name = "steady",
    params = { steps = 4000 },
    run = function(run)
        local net = run:model(mp.nn.Linear(512, 512))
        local opt = mp.optim.SGD(net:parameters(), { lr = 0.01 })
        for _ = 1, run.params.steps do
            opt:zero_grad()
            local loss = net(mp.randn(32, 512)):pow(2):mean()
            loss:backward()
            opt:step()
            run:log { loss = loss }
        end
    end,
}
LUA
has_steps() { [ "0$(says "$1" steps)" -gt "$2" ]; }
begin_steady() { # OPTION..: a matrix of one run, which has trained a little
    "$mpbench" matrix "$folder/steady.lua" -p fp32 --seeds 1 --threads 1 "$@" >"$folder/out" 2>"$folder/err" &
    leader=$!
    workers="$workers $leader"
    { wait_until 20 is_running steady 1 && wait_until 20 has_steps @last 20; } || fail "it does not train"
}
run_steady() { run matrix "$folder/steady.lua" -p fp32 --seeds 1 --threads 1 "$@"; }
begin_steady
"$mpbench" ctl @last stop >/dev/null 2>&1 || fail "its run cannot be stopped"
wait "$leader"
status=$?
expect_status 1
expect_err "1 of 1 runs was stopped before the end, and not compared; the same command goes on with it"
run_steady --list
expect_out "seed 1 .*stopped, to go on"
run_steady --threads 2 --list # which would give other bits
expect_out "seed 1 .*to be trained"
cp "$folder/steady.lua" "$folder/copy.lua" # which the run would not go on by
run matrix "$folder/copy.lua" -p fp32 --seeds 1 --threads 1 --list
expect_out "seed 1 .*to be trained"
run_steady
expect_status 0
expect_err "1 was stopped before the end: from the last checkpoint on"
[ "$("$mpbench" ls steady --json | grep -o '"name"' | wc -l)" -eq 1 ] || fail "another run was trained"
"$mpbench" run "$folder/steady.lua" -p fp32 --seed 1 --threads 1 --name whole --quiet >/dev/null 2>&1
last=$(says steady last)
[ "${last:-none}" = "$(says whole last)" ] || fail "another loss than that of a run that was not stopped"
begin_steady --set steps=3999 # and one that has no checkpoint to go on from
kill -STOP "$leader"
kill -KILL "$(pgrep -P "$leader")"
kill -KILL "$leader"
wait "$leader"
run_steady --set steps=3999 --list
expect_out "seed 1 .*to be trained"
end

begin "a matrix says that its seeds change nothing, of one group too"
cat >"$folder/fixed.lua" <<'LUA'
local mp = require "mp"
return mp.experiment {
    name = "fixed",
    about = "Made for a test",
    params = { steps = 3 },
    run = function(run)
        for step = 1, run.params.steps do run:log { loss = 1 / step } end
        run:result { accuracy = 0.5 }
    end,
}
LUA
for precisions in fp32 fp32,bf16; do
    run matrix "$folder/fixed.lua" -p $precisions --seeds 2 --quiet --json
    expect_status 0
    expect_out '"label":"fp32","runs":\[[0-9,]*\],"seeds_alike":true'
    expect_no_out '"seeds_alike":false'
    expect_out "All seeds of fp32.* gave the same to the bit: they change nothing in this script"
done
run matrix simple --steps 20 -p fp32 --seeds 2 --json --quiet
expect_out '"seeds_alike":false'
expect_no_out 'to the bit'
end

begin "a matrix of one run, or of none, has an object like every other"
run matrix simple --steps 20 -p fp32 --set lr=0.5 --json --quiet
expect_status 0
expect_out '^{"by":"step","runs":\[{"id":[0-9]*,.*"verdict":\["One run is held against nothing: fp32 reaches accuracy'
cp "$folder/out" "$folder/first"
run matrix simple --steps 20 -p fp32 --set lr=0.5 --json --quiet
expect_status 0
cmp -s "$folder/out" "$folder/first" || fail "again it says $(head -c 200 "$folder/out")"
run matrix "$folder/fails.lua" --set bad=1 --json --quiet
expect_status 1
expect_out '^{"by":"step","runs":\[\],"groups":\[\],.*"verdict":\[\]}$'
end

exit "$failures"
