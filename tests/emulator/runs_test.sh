#!/bin/sh
# Runs as people make them, on the emulated card: the loop that trains an experiment, checkpoints,
# resume and fork. What names no device takes the card.
set -u
here=$(dirname "$0")
plugin=$(dirname "${MPBENCH:-build/mpbench}")/emulator/mpbench-gpu.so
if [ ! -e "$plugin" ]; then
    echo "skip runs_over_emulated_card: $plugin is not built, for lack of cuda.h or of a C++ compiler"
    exit 0
fi
export MPBENCH_GPU="$plugin"
failures=0
for script in loop resume; do
    said=$(sh "$here/../cli/${script}_test.sh" 2>&1) || failures=1
    echo "$said" | grep -E '^(ok|not ok|skip) ' |
        sed -e 's/^\(not ok [^:]*\):/\1 [card]:/' -e 's/^ok .*/& [card]/'
    echo "$said" | grep -q '^ok ' || echo "not ok ${script}_test [card]: it ran no test"
done
exit "$failures"
