#!/bin/sh
# demo.sh: trains one network in fp32 and in mixed precision, and says what the difference was.
#
# MPBENCH          the program               (build/mpbench)
# DEMO_EXPERIMENT  what is trained           (fashion_cnn)
# DEMO_EPOCHS      passes over the data      (1)
# DEMO_PRECISIONS  compared with fp32        (bf16 fp16)
# Progress goes to standard error, the comparison to standard output. On a terminal the screen follows.
set -u
mpbench=${MPBENCH:-build/mpbench}
experiment=${DEMO_EXPERIMENT:-fashion_cnn}
epochs=${DEMO_EPOCHS:-1}
precisions=${DEMO_PRECISIONS:-bf16 fp16}
kept=$(mktemp)
ids=
trap 'rm -f "$kept"' EXIT
trap 'exit 130' INT TERM

for precision in fp32 $precisions; do
    echo "$mpbench run $experiment --precision $precision --epochs $epochs" >&2
    "$mpbench" run "$experiment" --precision "$precision" --epochs "$epochs" --json >"$kept"
    status=$?
    if [ "$status" -ne 0 ]; then
        echo "demo: training in $precision ended with status $status; \`$mpbench doctor\` says what" \
            "this machine can do" >&2
        exit "$status"
    fi
    ids="$ids $(sed -n 's/^{ *"id": *\([0-9]*\).*/\1/p' "$kept")"
done
echo

# shellcheck disable=SC2086 # ids are words
"$mpbench" compare $ids || exit
echo
echo "What this machine can do: $mpbench doctor"
if [ -t 0 ] && [ -t 1 ]; then
    printf 'Enter opens the screen on these runs (q closes it), ^C ends here: '
    if read -r _; then
        rm -f "$kept"
        exec "$mpbench"
    fi
fi
