#!/bin/sh
# shellcheck disable=SC1091,SC2034,SC2154 # what shell.sh sets and reads
# The program from outside: exit statuses, help, errors that name the cause and the nearest name,
# and what lands on which stream. $MPBENCH is the program.
. "$(dirname "$0")/../shell.sh"

write_tiny

# ---- finding one's way ---------------------------------------------------------------------------

begin "without a command it says where to begin"
run
expect_status 0
expect_out "mpbench run NAME"
expect_silent err
end

begin "help and version are results"
run --help
expect_status 0
expect_out "formats"
expect_out "Exit status"
run help run
expect_status 0
expect_out "--loss-scale S"
run run --help
expect_status 0
expect_out "--loss-scale S"
run formats --help
expect_status 0
grep -q -e "--loss-scale" "$folder/out" && fail "formats shows an option of run"
run --version
expect_status 0
expect_out "^mpbench [0-9]"
end

begin "help lua is the page about what scripts can name"
run help lua
expect_status 0
cmp -s "$folder/out" "$(dirname "$0")/../../docs/lua.md" || fail "it differs from docs/lua.md"
end

begin "help tells what an experiment does"
run help "$tiny"
expect_status 0
expect_out "Made for a test"
expect_out "lr  *0.1"
end

begin "experiments are found by name in a folder of one's own"
MPBENCH_EXPERIMENTS=$folder run help tiny
expect_status 0
expect_out "Made for a test"
MPBENCH_EXPERIMENTS=$folder run run tinny
expect_usage_error "did you mean tiny"
end

begin "experiments in a folder of the folder have its name, which may be left out"
mkdir -p "$folder/kinds/deeper"
cp "$tiny" "$folder/kinds/first.lua"
cp "$tiny" "$folder/kinds/deeper/unseen.lua"
MPBENCH_EXPERIMENTS=$folder run help
expect_out "^  kinds/first "
expect_no_out "unseen"
for asked in kinds/first first; do
    MPBENCH_EXPERIMENTS=$folder run run "$asked" --quiet --no-history
    expect_status 0
done
MPBENCH_EXPERIMENTS=$folder run run kinds/frist
expect_usage_error "did you mean kinds/first"
mkdir "$folder/others"
cp "$tiny" "$folder/others/first.lua"
MPBENCH_EXPERIMENTS=$folder run run first # whose
expect_usage_error "kinds/first.*others/first"
MPBENCH_EXPERIMENTS=$folder run run kinds/none.lua
expect_usage_error "no such file"
end

begin "help shows what a script says at its top, and none of what it does"
printf -- '-- What it shows.\n--     mpbench run top\n-- bell \007\n' >"$folder/top.lua"
cat "$tiny" >>"$folder/top.lua"
run help "$folder/top.lua"
expect_status 0
expect_out "^What it shows.$"
expect_out "^    mpbench run top$"
expect_no_out "local mp"
! grep -q "$(printf '\007')" "$folder/out" || fail "the bell rang"
end

begin "a loss scale of 0 is dynamic, as in the scripts of others"
run run simple -p fp16 --loss-scale 0 --steps 2 --no-history --json --quiet
expect_status 0
expect_out '"scale":{"last":65536,"min":65536'
end

begin "what is printed without a terminal stands in columns"
run
expect_status 0
columns=$(sed -n 's/^  mpbench [^ ]*\( [^ ]\+\)\?  \+/&|/p' "$folder/out" | sed 's/|.*//' | awk '{ print length }' | sort -u)
[ "$(echo "$columns" | wc -w)" -eq 1 ] || fail "what commands do begins at columns $(echo "$columns" | tr '\n' ' ')"
end

begin "paths of experiments go no way back"
run help simple
expect_status 0
expect_out "/experiments/simple.lua"
expect_no_out "/\.\./"
end

begin "an experiment is found as its file is spelt and as its runs are"
for name in keras_cnn keras-cnn custom-gradient fashion-mlp; do
    run help "$name"
    expect_status 0
    expect_out "/experiments/$(echo "$name" | tr - _).lua"
done
run matrix keras-cnn --set none=1
expect_error 2 "keras-cnn has no such parameter"
end

begin "a file that is no experiment is not said to be missing"
run run README.md
expect_usage_error "README.md: a file, but no Lua experiment; .* ends in .lua"
end

begin "a script of this folder is offered, with its ending or a letter amiss"
mkdir "$folder/mine"
echo 'return require("mp").experiment { name = "vae", run = function() end }' >"$folder/mine/vae.lua"
program=$(realpath "$mpbench")
for typed in vae vea.lua; do
    (cd "$folder/mine" && "$program" run $typed >"$folder/out" 2>"$folder/err")
    status=$?
    expect_usage_error "$typed: no such experiment.*did you mean vae.lua?"
done
end

begin "misspelt names are answered with the nearest"
run rnu x
expect_usage_error "rnu.*did you mean run?"
run runs # as others call it, though run is near
expect_usage_error "runs.*did you mean ls?"
run help runs
expect_usage_error "runs.*did you mean ls?"
run run --stepz 3 "$tiny"
expect_usage_error "did you mean --steps?"
run run "$tiny" -d cuda:1
expect_usage_error "--device cuda.*did you mean gpu?"
run run "$tiny" -p fp61
expect_usage_error "--precision fp61.*did you mean fp16?"
for device in cpu ref; do # every format that is listed trains
    listed=$(sed -n 's/.*One of //p' "$folder/err")
    [ -n "$listed" ] || fail "no list"
    for format in $listed; do
        [ "$format" = int8 ] && continue # says by name that it is for `eval`
        "$mpbench" run "$tiny" -p "$format" -d $device --steps 1 --quiet --no-history >/dev/null 2>&1 ||
            fail "$format is listed, and refused on $device"
    done
done
run run "$tiny" -p fp4
expect_usage_error "--precision fp4.*did you mean mxfp4?"
run run "$tiny" -p tf23
expect_usage_error "--precision tf23.*did you mean tf32?"
run run "$tiny" -p e4m4
expect_usage_error "--precision e4m4.*did you mean e4m3?"
run run "$tiny" --device gup
expect_usage_error "did you mean gpu?"
run run "$tiny" --device abacus
expect_usage_error "one of auto cpu gpu ref"
run run "$tiny" --loss-scale tourch
expect_usage_error "did you mean torch?"
run run "$tiny" --device cpx
expect_usage_error "did you mean cpu?"
run run "$tiny" --layer head=fp61
expect_usage_error "did you mean fp16?"
run run "$tiny" --quiet --set lrr=1
expect_usage_error "did you mean lr?"
end

begin "an option that is given nothing says so"
for command in "run simple --tag" "run simple --name" "run simple --note" "run simple --tag=" "export 1 -o" "report 1 -o" \
    "scan simple -o" "run simple --weights" "ls --db"; do
    # shellcheck disable=SC2086 # words
    case $command in *=) run $command ;; *) run $command "" ;; esac
    expect_usage_error "its value is empty: .* is wanted"
done
end

begin "formats go by the names that other tools give them"
run run "$tiny" -p float16 --steps 1 --quiet --no-history --json
expect_status 0
expect_out '"precision": *"fp16"'
run run "$tiny" -p float32 --layer '*=bfloat16' --steps 1 --quiet --no-history --json
expect_status 0
expect_out '"precision": *"bf16"'
run run "$tiny" -p double
expect_usage_error "--precision double.*one of auto"
! grep -q " int8 " "$folder/err" || fail "nothing trains in int8"
end

begin "arguments are checked"
run run "$tiny" --steps 1e3x
expect_usage_error "--steps 1e3x: a whole number"
run run "$tiny" --steps 0
expect_usage_error "--steps 0: from 1"
run run "$tiny" --steps 2.5
expect_usage_error "a whole number"
run run "$tiny" --seed -1
expect_usage_error "from 0"
run run "$tiny" --threads
expect_usage_error "--threads: N is missing"
run run "$tiny" --json=yes
expect_usage_error "takes no value"
run run "$tiny" --layer fp16
expect_usage_error "PATTERN=PRECISION"
run run "$tiny" --set lr
expect_usage_error "KEY=VALUE"
run run "$tiny" --quiet --set lr=abc
expect_usage_error "lr=abc"
for setting in lr=1e-9999 lr=1e9999 lr=-1 steps=0 steps=-5; do
    run run "$tiny" --quiet --set "$setting"
    expect_usage_error "--set $setting: "
done
run run "$tiny" --loss-scale -3
expect_usage_error "loss"
run run
expect_usage_error "EXPERIMENT is missing"
run run "$tiny" more
expect_usage_error "one argument too many"
run formats --steps 3
expect_usage_error "has no option --steps"
run run "$tiny" --checkpoint-every 0.5
expect_usage_error "checkpoint-every"
run run "$folder/none.lua"
expect_usage_error "no such file"
run run "$folder"
expect_usage_error "a folder; give the path of a Lua file"
end

exit "$failures"
