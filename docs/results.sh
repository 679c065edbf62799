#!/bin/sh
# What every experiment gives in every format, over several seeds, as docs/results.md has it.
#
#   sh docs/results.sh train [EXPERIMENT..]   trains what the history lacks; goes on where it was ended
#   sh docs/results.sh time [EXPERIMENT..]    some seconds of each, the formats in turn: half an hour, on
#                                             a quiet machine, else no speed is told
#   sh docs/results.sh claims                 trains what `mpbench claims` lacks
#   sh docs/results.sh page [EXPERIMENT..]    prints the page, of what is there; what is not is taken
#                                             over from the page that is kept
#
# $RESULTS is the history, $MPBENCH the program, $RESULTS_PAGE the page that is kept. docs/results.txt
# has what only a person can add: why a result is outside its interval, and how long each experiment
# is to be timed. The result that an experiment is judged by is that of its first row for soak in
# tests/experiments/expected.txt.
set -eu
mpbench=${MPBENCH:-build/mpbench}
MPBENCH_DB=${RESULTS:-build/results/history.db}
table=${RESULTS_TABLE:-docs/results.txt}
kept=${RESULTS_PAGE:-docs/results.md}
expected=tests/experiments/expected.txt
formats=fp32,bf16,fp16,fp8
seeds=${SEEDS:-3}
threads=${THREADS:-1} # of one, what else the machine does disturbs less
export MPBENCH_DB
step=${1:?train, time, claims or page is wanted}
shift

listing=$("$mpbench" help)
named() { # the experiments asked for; else all
    echo "$listing" | awk -v asked=" $* " '
        /^Experiments:$/ { inside = 1; next }
        inside && NF == 0 { exit }
        inside && (asked == "  " || index(asked, " " $1 " ")) { print $1 }'
}
for experiment; do
    [ -n "$(named "$experiment")" ] || { echo "results: $experiment: no such experiment" >&2 && exit 2; }
done
[ -n "$(named)" ] || { echo "results: $mpbench finds no experiments: MPBENCH_EXPERIMENTS names their folder" >&2 && exit 3; }
about() { # EXPERIMENT
    echo "$listing" | awk -v name="$1" '
        /^Experiments:$/ { inside = 1 }
        inside && $1 == name { sub(/^ *[^ ]+ */, ""); print; exit }'
}
field() { # FILE NAME-OF-ROW-IN-FIRST-FIELD SECOND-FIELD COLUMN: of rows cut by |
    awk -F ' *[|] *' -v first="$2" -v second="$3" -v column="$4" '
        { sub(/^ */, "", $1); sub(/ *$/, "", $NF) }
        $1 == first && (second == "" || $2 == second) { print $column; exit }' "$1"
}

# shellcheck disable=SC2046,SC2086 # options are words
matrix() { # EXPERIMENT OPTION..
    "$mpbench" matrix "$@" -p "$formats" --threads "$threads" --quiet
}
# shellcheck disable=SC2046 # options are words
timed() { # EXPERIMENT SEEDS OPTION..: the matrix of its times; false: it has none
    how=$(field "$table" "time" "$1" 3)
    [ -n "$how" ] || return 1
    experiment=$1 count=$2
    shift 2
    # shellcheck disable=SC2086
    matrix "$experiment" --seeds "$count" $how "$@"
}

# What fails is told and left out; a signal, or a history that cannot be written, ends it all.
attempt() { # EXPERIMENT COMMAND..
    experiment=$1 status=0
    shift
    "$@" >/dev/null || status=$?
    [ "$status" -lt 4 ] || exit "$status"
    [ "$status" -eq 0 ] || echo "$experiment: not all of it" >&2
}

# Times that were taken beside other programs tell nothing: they are taken again.
forget_busy() { # EXPERIMENT
    timed "$1" "$seeds" --list --markdown 2>/dev/null | grep -q 'not told: busy' || return 0
    ids=$(timed "$1" "$seeds" --list --json | tr '{,' '\n' | sed -n 's/^"id"://p')
    # shellcheck disable=SC2086 # ids are words
    "$mpbench" rm $ids >/dev/null
}

# ---- the page -------------------------------------------------------------------------------------

# Of a table's first row, for awk: which column is whose. "bf16 +1 layer", which the experiment keeps in
# another format, is its bf16.
# shellcheck disable=SC2016 # awk's, not the shell's
labels='function read_labels(label) {
            for (columns = 3; columns < NF; columns++) {
                label = $columns
                sub(/[ ,].*/, "", label)
                at[label] = columns
            }
        }'

# A row of the first table: the result in fp32, what each other format differs by, and whether that is
# more than seeds do, which stands in bold.
row() { # EXPERIMENT RESULT; reads its table
    awk -F ' *[|] *' -v experiment="$1" -v result="$2" -v table="$table" '
        BEGIN {
            split("bf16 fp16 fp8", others, " ")
            while ((getline line <table) > 0) {
                split(line, part, / *[|] */)
                if (part[1] == "why" && part[2] == experiment) why[part[3]] = part[4]
            }
        }
        $2 == "" && !columns { read_labels(); next }
        result == "" && $2 != "runs" && $2 !~ /^-/ { result = $2 }
        $2 == result { for (label in at) value[label] = $at[label] }
        $2 == result " − fp32" { for (label in at) delta[label] = $at[label] }
        END {
            printf "| [%s](#%s) | %s | %s |", experiment, anchor(experiment), result, known(value["fp32"])
            for (i = 1; i <= 3; i++) {
                label = others[i]
                printf " %s |", known(delta[label])
                # An interval that is larger than the result itself, as where one seed of three diverges, says nothing.
                split(delta[label], about, " ± ")
                is_wide = about[2] + 0 > size(value["fp32"]) && size(value["fp32"]) > 0
                is_outside = delta[label] ~ /^[*][*]/ || is_wide
                if (delta[label] == "" || delta[label] == "unknown") missing = missing " " label
                else if (is_outside)
                    said = said (said ? "; " : "") (is_wide ? "**cannot be told**: " : "**outside**: ") \
                        label ": " (label in why ? why[label] : "nobody has looked why")
                if (label in why && !is_outside && delta[label] ~ /[0-9]/) {
                    printf "results: %s in %s: it is inside the interval: take its row out of %s\n",
                        experiment, label, table >"/dev/stderr"
                    failed = 1
                }
            }
            print " " (said ? said : "inside") (missing ? "; not trained:" missing : "") " |"
            exit failed
        }
        '"$labels"'
        function size(text) { text += 0; return text < 0 ? -text : text }
        function known(text) { return text == "" ? "-" : text }
        function anchor(text) { gsub(/[^a-z0-9_-]/, "", text); return text }'
}

speed_row() { # EXPERIMENT; reads the table of its times
    awk -F ' *[|] *' -v experiment="$1" '
        $2 == "" && !columns { read_labels(); next }
        $2 == "steps/s" { rate = $at["fp32"] }
        $2 == "speed" { for (label in at) value[label] = $at[label] }
        /^Other programs kept up to/ { load = $0; sub(/ processors busy.*/, "", load); sub(/^.*up to /, "", load) }
        END {
            printf "| %s | %s | %s | %s | %s | %s |\n", experiment, rate, value["bf16"], value["fp16"], value["fp8"],
                load ? load : "under a twentieth"
        }
        '"$labels"
}

# The lines of a section, with the memory of the timed runs in place of its own: a program changes what it
# holds more often than anybody trains all of it again.
held='^[|] (memory, at most|weights|masters|activations|gradients|optimizer|workspace) [|]'
with_memory_of() { # TIMES; reads the section
    awk -v times="$1" -v held="$held" '
        $0 !~ held { print; next }
        !done { while ((getline line <times) > 0) if (line ~ held) print line }
        { done = 1 }'
}
# Whether the timed runs have that memory, in the formats that the section has.
have_memory() { # TIMES SECTION
    grep -q -E "$held" "$1" && [ "$(grep -m 1 '^| |' "$1")" = "$(grep -m 1 '^| |' "$2")" ]
}

# Where and by what, each once, from its first day to its last; of short runs nobody counted the processors.
origins() { # FILE: "Trained on ..; by ..; 2026-11-23 to 2026-11-28."
    sort -u "$1" | awk '
        {
            days = $0; sub(/^.*; /, "", days); sub(/[.]$/, "", days)
            where = substr($0, 1, length($0) - length(days) - 1)
            first = substr(days, 1, 10); last = substr(days, length(days) - 9)
            short = where; sub(/, [0-9]+ processors/, "", short)
            if (length(where) > length(line[short])) line[short] = where
            if (!(short in from) || first < from[short]) from[short] = first
            if (last > to[short]) to[short] = last
        }
        END {
            for (short in line)
                printf "%s%s%s.\n", line[short], from[short], (to[short] > from[short]) ? " to " to[short] : ""
        }' | sort
}

# All of it takes hours: an experiment can be trained anew by itself, on another day, and the rest stays
# as it was measured. What the kept page says of an experiment, by its section: a row, or the lines.
kept_lines() { # SECTION SUBSECTION: headings; "": what stands before the first subsection
    [ ! -e "$kept" ] || awk -v section="$1" -v subsection="$2" '
        /^##? / { current = $0; within = ""; blank = ""; next }
        /^### / { within = $0; blank = ""; next }
        current != section || within != subsection { next }
        /^$/ { blank = blank "\n"; next }
        { printf "%s%s\n", blank, $0; blank = "" }' "$kept"
}
kept_row() { # SECTION NAME
    kept_lines "$1" "" | awk -F ' *[|] *' -v name="$2" '$2 == name || index($2, "[" name "](") == 1 { print; exit }'
}

in_pairs='^Differences are of runs of one seed' # as compare says it

# The kept page may have experiments of which no difference was taken so.
by_welch() {
    [ -s "$folder/welch" ] || return 0
    printf '\n\nOf %s differences are those of means, by Welch'"'"'s test, for lack of pairs: seeds widen their intervals.\n' \
        "$(paste -s -d , "$folder/welch" | sed 's/,/, /g; s/\(.*\), /\1 and /')" | fold -s -w 110 | sed 's/ *$//'
}

about_memory() {
    printf 'Memory is the most at once, of each purpose at its own highest, in the runs that were timed. '
    [ ! -s "$folder/apart" ] || printf 'Of %s it is that of the runs that were trained. ' \
        "$(paste -s -d , "$folder/apart" | sed 's/,/, /g; s/\(.*\), /\1 and /')"
    printf 'In fp8 the memory of the optimizer has what delayed scales are found from, too: the largest factors of '
    printf '1,024 steps, 12 KiB for every layer, up to three times that while their list grows. What a script holds of its '
    printf 'data is in the most at once alone. '
    [ ! -s "$folder/apart" ] || printf 'What was trained before 2026-11-24 03:00 held room for 64 layers, 0.8 MiB, and %s' \
        'counted masters among the weights of 16 bits, too. '
    printf 'Joules are unknown where nothing measures them.\n'
}

# Whether the kept page says that memory of this experiment is that of its training.
was_apart() { # EXPERIMENT
    kept_lines "## Experiments" "" | tr '\n' ' ' | grep -o 'Of [^.]* it is that of the runs that were trained' |
        tr -s ', ' '\n' | grep -qx "$1"
}

# Claims of which the history has nothing are as the kept page has them.
claims() {
    kept_lines "## What people say" "" | grep '^|' >"$folder/said" || :
    "$mpbench" claims --list --markdown | awk -F ' *[|] *' -v said="$folder/said" '
        BEGIN { while ((getline line <said) > 0) { split(line, part, / *[|] */); before[part[2]] = line } }
        / not tested/ && $2 in before { print before[$2]; next }
        { print }'
}

page() {
    folder=$(mktemp -d)
    trap 'rm -rf "$folder"' EXIT
    missing='' untimed='' failed=0
    for list in origins clocks sections rows speeds welch apart; do
        : >"$folder/$list"
    done
    for experiment in $(named "$@"); do
        timed "$experiment" "$seeds" --list --markdown >"$folder/times" 2>/dev/null || :
        matrix "$experiment" --seeds "$seeds" --list --markdown >"$folder/table" 2>/dev/null || :
        if [ -s "$folder/table" ]; then
            result=$(awk -F ' *[|] *' -v name="$experiment" '$1 == name && $2 == "soak" { print $5; exit }' "$expected")
            row "$experiment" "$result" <"$folder/table" >>"$folder/rows" || failed=1
            {
                printf '%s\n\n' "$(about "$experiment")"
                # Speeds have a table of their own; what was trained where is said once, at the top.
                grep -E '^\|' "$folder/table" | grep -v -E '^\| (steps/s|speed) \|'
                sed -n 's/^Differences are/\n&/p' "$folder/table"
            } >"$folder/section"
            grep '^Trained on' "$folder/table" >>"$folder/origins" || :
        elif [ -n "$(kept_row "# Results" "$experiment")" ]; then
            kept_row "# Results" "$experiment" >>"$folder/rows"
            kept_lines "## Experiments" "### $experiment" | sed 1d >"$folder/section"
            kept_lines "# Results" "" | grep '^Trained on' >>"$folder/origins" || :
        else
            missing="$missing${missing:+, }$experiment"
            : >"$folder/section"
        fi
        if [ -s "$folder/section" ]; then
            is_held=$(field "$table" "held" "$experiment" 3)
            if [ -z "$is_held" ] && have_memory "$folder/times" "$folder/section"; then
                with_memory_of "$folder/times" <"$folder/section" >"$folder/renewed"
                mv "$folder/renewed" "$folder/section"
            elif [ -n "$is_held" ] || [ -s "$folder/table" ] || was_apart "$experiment"; then
                echo "$experiment" >>"$folder/apart"
            fi
            printf '\n### %s\n\n' "$experiment" | cat - "$folder/section" >>"$folder/sections"
            grep -q "$in_pairs" "$folder/section" || echo "$experiment" >>"$folder/welch"
        fi
        if [ -s "$folder/times" ]; then
            speed_row "$experiment" <"$folder/times" >>"$folder/speeds"
            sed -n 's/^Trained on/Timed on/p' "$folder/times" >>"$folder/clocks"
        elif [ -n "$(kept_row "## Speed" "$experiment")" ]; then
            kept_row "## Speed" "$experiment" >>"$folder/speeds"
            kept_lines "## Speed" "" | grep '^Timed on' >>"$folder/clocks" || :
        else
            untimed="$untimed${untimed:+, }$experiment"
        fi
    done
    [ -s "$folder/rows" ] || { echo "results: no experiment is trained: sh docs/results.sh train" >&2 && exit 1; }

    differences=$(awk -F ' *[|] *' '{ for (i = 5; i <= 7; i++) n += $i ~ /[0-9]/ } END { print n + 0 }' "$folder/rows")
    outside=$(awk -F ' *[|] *' '{ for (i = 5; i <= 7; i++) n += $i ~ /^[*][*]/ } END { print n + 0 }' "$folder/rows")
    cat <<TEXT
# Results

Made by \`make results\` from runs alone: every experiment as it comes, in fp32, bf16, fp16 and fp8, with
seeds 1 to $seeds each, one after the other.

$(origins "$folder/origins")

What follows ± is a 95 % interval over the seeds. Differences are taken seed by seed: two runs of a seed share
their first weights and the order of their data, and differ by less than seeds do. A difference is **bold**
where its interval leaves out 0, which chance alone does in one of twenty: of $differences here $outside. Three seeds make
wide intervals: inside says that no difference was seen that is larger than them.$(by_welch)

| experiment | result | fp32 | bf16 − fp32 | fp16 − fp32 | fp8 − fp32 | |
|---|---|---:|---:|---:|---:|---|
$(cat "$folder/rows")
TEXT
    [ -z "$missing" ] || printf '\nNot trained yet: %s.\n' "$missing"
    printf '\n## Speed\n\n'
    if [ -s "$folder/speeds" ]; then
        cat <<TEXT
Of a pass of its own: a few seconds of each, the formats in turn, $seeds rounds. It is told where each run took
3 s at least and other programs kept less than a twentieth of the machine busy.

$(origins "$folder/clocks")

| experiment | steps/s in fp32 | bf16 | fp16 | fp8 | others kept busy, at most |
|---|---:|---:|---:|---:|---|
$(cat "$folder/speeds")
TEXT
        awk -F ' *[|] *' -v rows="$folder/speeds" '
            BEGIN { while ((getline line <rows) > 0) { split(line, part, / *[|] */); timed[part[2]] = 1 } }
            $1 == "pace" && $2 in timed { printf "\nOf %s: %s\n", $2, $3 }' "$table" | fold -s -w 110 | sed 's/ *$//'
        [ -z "$untimed" ] || printf '\nNot timed yet: %s.\n' "$untimed" | fold -s -w 110 | sed 's/ *$//'
    else
        echo "Not measured: the machine was busy with much else. \`sh docs/results.sh time\` does, on a quiet one."
    fi
    cat <<TEXT

## Experiments

$(about_memory | fold -s -w 110 | sed 's/ *$//')
TEXT
    cat "$folder/sections"
    cat <<TEXT

## What people say

A training for each sentence, and one rule for what bears it out: a share or an error that is given, from
half of it to twice it, and as a bound up to twice it; a range as it stands; "half" within a fifth of it;
"as good as" within half a point or a tenth of a nat, "worse" beyond that; "most" is more than half of all,
"none" within a point of nothing; what is mended has a tenth of its error left at most. Trainings that are
held against each other are paired by their seed, and ± is of the differences. "Not here" is said of what depends on the device,
and of what differs in its measure from what was published, as the row says; "cannot be told", where part of
the interval would bear it out and part would not, or other programs kept the machine busy. Memory has no
interval: it is nearly the same in every run.

TEXT
    sed -n 's/^said *| *\(.*\)/\1\n/p' "$table" | fold -s -w 110 | sed 's/ *$//'
    claims
    exit "$failed"
}

case $step in
    train)
        for experiment in $(named "$@"); do
            echo "$experiment" >&2
            attempt "$experiment" matrix "$experiment" --seeds "$seeds"
        done
        ;;
    time) # one more seed at a time: so the formats take turns
        for experiment in $(named "$@"); do
            echo "$experiment" >&2
            forget_busy "$experiment"
            count=0
            while [ $((count += 1)) -le "$seeds" ]; do
                attempt "$experiment" timed "$experiment" "$count"
            done
        done
        ;;
    claims)
        status=0
        "$mpbench" claims --seeds "$seeds" --threads "$threads" >/dev/null || status=$?
        # Its seeds scatter more than others do; `masterless` has the same runs.
        "$mpbench" claims stochastic --seeds "$((3 * seeds))" --threads "$threads" >/dev/null || status=$?
        exit "$status"
        ;;
    page) page "$@" ;;
    *) echo "results: $step: train, time, claims or page is wanted" >&2 && exit 2 ;;
esac
