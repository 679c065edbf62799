# shellcheck shell=sh disable=SC2034 # what those that read this go on with
# tests/bench/measure.sh: how fast a program trains, by two clocks, for scripts that compare in pairs.
#
# The clock on the wall is what a user waits for; the processor's time, on one thread, counts every
# cycle on whichever thread, and is steadier: it is that of a long run less that of a short one, so
# that what a run costs once (opening, the checkpoint at its end) falls out. Who reads it has $here,
# $mpbench, a $folder that goes away at the end, and $failed to exit with.
here=$(dirname "$0")
mpbench=${MPBENCH:-build/mpbench}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
trap 'exit 130' INT TERM
failed=0

# The processor's time of all that this script has run goes to $spent, in seconds.
look_at_spent() {
    times >"$folder/times" # of this very shell: in a pipe it would be another's
    spent=$(awk 'NR == 2 { gsub(/[ms]/, " "); print $1 * 60 + $2 + $3 * 60 + $4 }' "$folder/times")
}

# train PROGRAM EXPERIMENT STEPS [OPTION ...]: sets $rate (steps a second; empty where it failed,
# for the reason in $folder/errors) and $work (seconds of processor).
train() {
    program=$1 experiment=$2 steps=$3
    shift 3
    look_at_spent
    before=$spent
    "$program" run "$experiment" --threads 1 --set "steps=$steps" --quiet --json "$@" \
        >"$folder/json" 2>"$folder/errors"
    look_at_spent
    rate=$(sed -n 's/.*"steps_per_s":\([0-9.e+]*\).*/\1/p' "$folder/json")
    work=$(awk -v a="$before" -v b="$spent" 'BEGIN { print b - a }')
}

# measure_side PROGRAM EXPERIMENT STEPS [OPTION ...]: "steps_per_s seconds_of_processor_a_step" in
# $side.
measure_side() {
    trained=$1 subject=$2 long=$3 short=$(($3 / 4))
    shift 3
    train "$trained" "$subject" "$short" "$@"
    fixed=$work
    train "$trained" "$subject" "$long" "$@"
    side=$(awk -v r="$rate" -v l="$work" -v s="$fixed" -v n="$((long - short))" \
        'BEGIN { print r, (l - s) / n }')
}

# find_steps PROGRAM EXPERIMENT SECONDS [OPTION ...]: how many fill the time, in $many; empty where
# it fails.
find_steps() {
    trained=$1 subject=$2 wanted=$3
    shift 3
    many=
    train "$trained" "$subject" 8 "$@"
    [ -n "$rate" ] && train "$trained" "$subject" \
        "$(awk -v r="$rate" -v s="$wanted" 'BEGIN { print int(r * s / 4) + 5 }')" "$@"
    [ -n "$rate" ] && many=$(awk -v r="$rate" -v s="$wanted" 'BEGIN { print int(r * s) + 8 }')
}

# in_turns COUNT ONE OTHER: calls both, which leave what measure_side did, so often; "one's other's" of
# a line each into $folder/pairs. Each pair in the other order than the one before: what else the
# machine does drifts.
in_turns() {
    left=$1
    : >"$folder/pairs"
    while [ "$left" -gt 0 ]; do
        left=$((left - 1))
        if [ $((left % 2)) -eq 0 ]; then
            "$2"
            one=$side
            "$3"
            another=$side
        else
            "$3"
            another=$side
            "$2"
            one=$side
        fi
        echo "$one $another" >>"$folder/pairs"
    done
}

# middle <NUMBERS: "median low high count" of a line each; low and high are what the median surely
# lies between, 19 times of 20, by its ranks: of n values sorted, those n/2 -+ 0.98 sqrt(n).
middle() {
    sort -g | awk '
        { value[++count] = $1 }
        END {
            if (count == 0) exit
            half = int((count + 1) / 2)
            low = int(count / 2 - 0.98 * sqrt(count)); if (low < 1) low = 1
            print count % 2 ? value[half] : (value[half] + value[half + 1]) / 2, value[low],
                value[count + 1 - low], count
        }'
}
