#!/bin/sh
# shellcheck disable=SC1091,SC2034,SC2154 # what shell.sh sets, reads and calls
# Every experiment that ships does what expected.txt has recorded of it: a result within its band,
# and no diagnosis but those named. `make test` runs the rows for it, a soak those as well that run
# experiments as they come. `sh experiments_test.sh NAME` runs the rows of one, all of them.
. "$(dirname "$0")/../shell.sh"
expected=$(dirname "$0")/expected.txt
here=$(dirname "$0")/../../experiments
only=
case ${1:-} in '' | build) ;; *) only=$1 ;; esac

names=$(cd "$here" && find . -maxdepth 2 -name '*.lua' | sed 's|^\./||; s|\.lua$||' | sort)

begin "every experiment has its expectation, an opening and a line for the list"
for experiment in $names; do
    for when in test soak; do
        grep -q "^$experiment  *| $when " "$expected" || fail "expected.txt has no row of $experiment for $when"
    done
    for precision in fp32 bf16 fp16; do
        grep "^$experiment  *| soak " "$expected" | cut -d'|' -f4 | grep -qw "$precision" ||
            fail "expected.txt has no row of $experiment in $precision for soak"
    done
    grep -q '^ *about = ' "$here/$experiment.lua" || fail "$experiment says nothing of itself in the list"
    sed '/^--/!q; s/^-- *//' "$here/$experiment.lua" | tr '\n' ' ' >"$folder/opening"
    grep -q "^${experiment##*/}: " "$folder/opening" || fail "$experiment does not open with what it shows"
    for word in Takes 'On the screen' Expect From:; do
        grep -q "$word" "$folder/opening" || fail "$experiment opens without \"$word\""
    done
    grep -q 'mpbench run ' "$folder/opening" || fail "$experiment opens without a command"
    sed -n '/^--/!q; s/^-- *\(.*[^ ]\) *$/\1/p' "$here/$experiment.lua" | tail -n 1 >"$folder/last"
    "$mpbench" help "$experiment" | grep -qF -f "$folder/last" || fail "help $experiment is cut"
done
end

is_within() { # VALUE LEAST MOST
    awk -v value="$1" -v least="$2" -v most="$3" \
        'BEGIN { exit !(value ~ /^-?[0-9]/ && value + 0 >= least + 0 && value + 0 <= most + 0) }'
}

# A run takes two minutes at most on two processors, a GAN and intervene five.
limit_of() {
    case $1 in gan/* | intervene) echo 300 ;; *) echo 120 ;; esac
}

train_row() { # EXPERIMENT OPTIONS PRECISION METRIC LEAST MOST DIAGNOSES
    begin "$1 $3${2:+ $2}: $4 within $5 and $6"
    # shellcheck disable=SC2086 # options are words
    run run "$1" --precision "$3" $2 --threads 2 --quiet --json --no-history
    expect_status 0
    value=$(result_of "$4")
    is_within "$value" "$5" "$6" || fail "$4 is ${value:-not there}"
    is_within "$(value_of wall_s)" 0 "$(limit_of "$1")" ||
        fail "it took $(value_of wall_s) s, $(limit_of "$1") are the most"
    sed 's/.*"diagnoses"://' "$folder/out" | grep -o '"kind":"[a-z_]*"' | cut -d'"' -f4 | sort -u >"$folder/kinds"
    while read -r kind; do
        case " $7 " in *" $kind "*) ;; *) fail "an unexpected diagnosis: $kind" ;; esac
    done <"$folder/kinds"
    end
}

begin "what is trained by its own loop and declares its model is evaluated without that"
for experiment in gpt resnet unet3d; do
    run run "$experiment" -p bf16 --steps 2 --threads 2 --quiet
    expect_status 0
    run eval @last -p bf16 --quick --json
    expect_status 0
    expect_out '"\(bits_per_character\|accuracy\|dice\)":[0-9]'
    is_within "$(value_of loss)" 0 5 || fail "$experiment: a loss of $(value_of loss)"
done
end

if [ -n "${MPBENCH_SOAK:-}" ]; then
    begin "and it is scanned"
    for experiment in gpt resnet unet3d; do
        run scan "$experiment" --formats bf16 --seeds 1 --again
        expect_status 0
        expect_out "^Kept as scan "
    done
    end
fi

begin "loops that say how many steps they take, take as many"
for planned in "resnet --set limit=600 --set width=4 --set every=1000 --epochs 1" \
    "masters --set limit=640 --set width=16 --epochs 2" "accumulate --set limit=1024 --set width=16 --epochs 2" \
    "intervene --set steps=7"; do
    # shellcheck disable=SC2086 # words
    run run $planned -p fp32 --threads 2 --quiet
    expect_status 0
    run show @last
    expect_out 'steps  *\([0-9,]*\) of \1:'
done
end

# A row: EXPERIMENT | test or soak | options | precisions | result | least | most [| diagnoses]
grep -v -e '^#' -e '^$' "$expected" | sed 's/ *| */|/g; s/ *$//' >"$folder/rows"
while IFS='|' read -r experiment when options precisions metric least most diagnoses; do
    if [ -n "$only" ]; then
        [ "$only" = "$experiment" ] || continue
    elif [ "$when" = soak ]; then
        [ -n "${MPBENCH_SOAK:-}" ] || continue
    fi
    for precision in $precisions; do
        train_row "$experiment" "$options" "$precision" "$metric" "$least" "$most" "$diagnoses"
    done
done <"$folder/rows"
exit "$failures"
