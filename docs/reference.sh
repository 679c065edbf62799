#!/bin/sh
# Prints docs/reference.md: what the program says about itself. $MPBENCH is the program.
set -eu
mpbench=${MPBENCH:-build/mpbench}
unset MPBENCH_EXPERIMENTS MPBENCH_DB

say() { # HELP-OPERAND...
    echo '```'
    "$mpbench" help "$@" --color never | sed 's/ *$//'
    echo '```'
}
# The names below a heading of the overview.
names_below() {
    "$mpbench" help | awk -v heading="$1" '
        $0 == heading { inside = 1; next }
        inside && NF == 0 { exit }
        inside && /^  [a-z]/ { print $1 }'
}

echo '# Reference'
echo
echo "Made by \`make docs\` from the program itself. What scripts can call: [lua.md](lua.md). What the history holds: [history.md](history.md)."
echo
echo '## Commands'
echo
say
for command in $(names_below Commands:); do
    printf '\n### mpbench %s\n\n' "$command"
    echo '```'
    "$mpbench" help "$command" --color never | awk '
        /^Options of every command:$/ { exit }
        { while (blank > 0 && NF > 0) { print ""; blank-- } }
        NF == 0 { blank++; next }
        { sub(/ *$/, ""); print }'
    echo '```'
done
for topic in $(names_below 'Topics of help:'); do
    case $topic in
        lua | history) continue ;; # a page of its own
    esac
    title=$("$mpbench" help | awk -v topic="$topic" '
        /^Topics of help:$/ { inside = 1 }
        inside && $1 == topic { sub(/^ *[^ ]+ */, ""); print; exit }')
    printf '\n## %s: %s\n\n' "$topic" "$title"
    say "$topic"
done
