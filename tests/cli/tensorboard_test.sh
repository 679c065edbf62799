#!/bin/sh
# shellcheck disable=SC1091,SC2034,SC2154,SC2317 # what shell.sh sets, reads and calls
# `export --format tensorboard`: the real TensorBoard gives back the history's numbers.
. "$(dirname "$0")/../shell.sh"

"$mpbench" run underflow -p fp16 --loss-scale 2^30 --quiet --steps 60 --threads 1 >/dev/null 2>"$folder/err" ||
    cat "$folder/err"
mkdir "$folder/events"

begin "a file that TensorBoard would not see is refused, with a name that it would"
run export 1 --format tensorboard -o "$folder/events/one"
expect_error 2 "-o $folder/events/events.out.tfevents.one"
run export 1 --format tensorboard -o "$folder/events/events.out.tfevents.one"
expect_status 0
expect_silent out
expect_silent err
[ -s "$folder/events/events.out.tfevents.one" ] || fail "there is no file"
"$mpbench" export 1 --format tensorboard | cmp -s - "$folder/events/events.out.tfevents.one" ||
    fail "another file comes through a pipe"
end

begin "TensorBoard reads the numbers of the history"
python=${MPBENCH_PYTHON:-python3}
if "$python" -c 'import tensorboard' 2>/dev/null; then
    run export 1 --format jsonl
    said=$(timeout 120 "$python" "$(dirname "$0")/tensorboard_read.py" "$folder/events" "$folder/out" 2>"$folder/err")
    [ "$said" = ok ] || fail "$said $(tail -n 1 "$folder/err")"
    end
else
    echo "skip $name: $python has no tensorboard: ${MPBENCH_PYTHON_LACKS:-MPBENCH_PYTHON names one that has}"
fi

exit "$failures"
