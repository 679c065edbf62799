#!/bin/sh
# check.sh: all that a card can show of mpbench, in ten minutes at most: `make gpu-check`.
#
# MPBENCH          the program; its plugin and test programs lie beside it     (build/mpbench)
# MPBENCH_GPU      another plugin than the one beside the program
# GPU_CHECK_OUT    the folder that gets what each part left        (build/gpu-check/DATE)
# GPU_CHECK_PARTS  of the parts below, those that are to run                   (all)
# GPU_CHECK_SCALE  what the limits of the parts are multiplied by              (1)
# PEER_PYTHON      python with PyTorch                                         (python3)
#
# One line a part: its name, ok, FAILED, cut off or skipped, the seconds that it took, and what came
# of it. Exit status 0: no part failed; 1: one did, or was cut off; 2: there is no part of that name;
# 3: there is no card.
# shellcheck disable=SC2317 # parts are called by their names
set -u
here=$(dirname "$0")
mpbench=${MPBENCH:-build/mpbench}
build=$(dirname "$mpbench")
out=${GPU_CHECK_OUT:-$build/gpu-check/$(date -u +%Y%m%dT%H%M%SZ)}
export MPBENCH_TEST_DEVICE=gpu MPBENCH="$mpbench"
# Of test programs, which lie elsewhere, too.
[ -n "${MPBENCH_GPU:-}" ] || [ ! -e "$build/mpbench-gpu.so" ] ||
    export MPBENCH_GPU="$build/mpbench-gpu.so"

# Name, seconds at most (ten minutes in all), and what it is.
parts='machine 20 what the card, its driver and the program say of themselves
bits 20 what the card must compute to the bit of the processor
conformance 100 every operation in every format, held against float64
own 30 the same of what libraries do, by our own kernels alone
golden 40 whole models held against recorded traces
units 40 engine, scalers, optimizers, and that no step waits
scales 70 products in scaled formats, which open the card about a hundred times
lua 50 scripts that promise something of every function
runs 50 training in each format, twice and launched one by one, the same bits
resume 50 runs that were stopped or killed, resumed and forked
memcheck 60 accesses out of bounds, on a shortened suite
racecheck 40 races in shared memory, on the same
bench 30 steps a second, beside PyTorch on the same card'

# What is offered to libraries of NVIDIA's.
offered='matmul linear conv2d conv2d_backward_input conv2d_backward_weight conv_transpose2d attention
    attention_backward'
conformance_test=$build/tests/conformance/conformance_test
short='cast fill uniform add gelu sum softmax layer_norm embedding embedding_backward matmul linear
    conv2d conv2d_backward_weight max_pool2d_backward cross_entropy attention attention_backward'

# ---- parts: each prints lines "ok ..", "not ok ..", "skip .." ------------------------------------

# passes NAME COMMAND...: a line of its own for what prints none.
passes() {
    name=$1
    shift
    if "$@" >"$out/$name.txt" 2>&1; then
        echo "ok $name"
    else
        echo "not ok $name: exit status $?: $(tail -n 1 "$out/$name.txt")"
    fi
}

# Runs test programs, those that were built.
programs() {
    for program in "$@"; do
        if [ -x "$build/tests/$program" ]; then
            "$build/tests/$program"
            status=$?
            [ "$status" -le 1 ] || echo "not ok $program: exit status $status"
        else
            echo "not ok $program: it is not built: make gpu-check builds it"
        fi
    done
}

part_machine() {
    if command -v nvidia-smi >/dev/null; then
        passes nvidia-smi nvidia-smi -q
    else
        echo "skip nvidia-smi: it is not installed"
    fi
    passes doctor-json "$mpbench" doctor --json
    passes doctor "$mpbench" doctor --verbose
}

part_bits() { programs unit/gpu_draw_test unit/gpu_select_test unit/gpu_cast_test; }

# Of the operations given, or of all. Plans of cuDNN take the processor longer than the card takes to
# run them: several operations at a time, each by `check.sh --operation NAME`.
conformance() {
    {
        if [ $# -gt 0 ]; then
            printf '%s\n' "$@"
        else
            "$conformance_test" --operations
        fi
    } | xargs -P "$(($(nproc) / 2 + 1))" -n 1 sh "$0" --operation ||
        echo "not ok conformance: $conformance_test gives no operations: make gpu-check builds it"
}
operation() {
    left=$out/operation-$1-${MPBENCH_GPU_LIBRARIES:-all}.txt
    "$conformance_test" "$1" >"$left" 2>&1
    status=$?
    cat "$left"
    [ "$status" -le 1 ] || echo "not ok $1: exit status $status"
}
part_conformance() {
    conformance
    programs conformance/multi_test conformance/update_test
}
part_own() {
    export MPBENCH_GPU_LIBRARIES=none
    # shellcheck disable=SC2086 # names of operations
    conformance $offered
    programs unit/compute_test
}
part_golden() { programs golden/ops_test golden/model_test golden/scaler_test; }
part_units() {
    programs unit/tape_test unit/scaler_test unit/scalers_test unit/waits_test \
        lua/waits_test unit/parameter_test unit/optim_test unit/optim_refused_test unit/views_test \
        unit/statistics_test unit/gpu_capture_test
}
part_scales() {
    programs unit/factors_test unit/scales_test unit/scales_apart_test unit/scales_products_test \
        unit/scales_recipe_test
}
part_lua() {
    sh "$here/../lua/lua_test.sh"
    sh "$here/../lua/values_test.sh"
}

# losses NAME ARGUMENTS...: trains, and leaves the loss of each step in NAME.losses.
losses() {
    run=$1
    shift
    passes "train-$run" "$mpbench" run "$@" --device gpu --seed 7 --name "$run" --quiet
    "$mpbench" export "$run" --format csv 2>"$out/$run.export" | awk -F, '
        NR == 1 { for (i = 1; i <= NF; i++) if ($i == "loss") column = i }
        column { print $1, $column }' >"$out/$run.losses"
}

# same_losses NAME ONE OTHER: those of two runs.
same_losses() {
    if [ "$(wc -l <"$out/$2.losses")" -le 60 ]; then
        echo "not ok $1: the runs have not 60 losses"
    elif cmp -s "$out/$2.losses" "$out/$3.losses"; then
        echo "ok $1"
    else
        echo "not ok $1: {$2,$3}.losses differ"
    fi
}

part_runs() {
    for precision in fp32 tf32 bf16 fp16; do
        losses "first-$precision" simple --steps 60 -p "$precision"
        losses "again-$precision" simple --steps 60 -p "$precision"
        losses "launched-$precision" simple --steps 60 -p "$precision" --no-capture
        same_losses "same_seed_same_bits_$precision" "first-$precision" "again-$precision"
        same_losses "captured_steps_same_bits_$precision" "first-$precision" "launched-$precision"
        share=$("$mpbench" show "first-$precision" | sed -n 's/^ *steps.captured //p')
        case $share in
        0.[3-9]*) echo "ok steps_are_captured_$precision" ;;
        *) echo "not ok steps_are_captured_$precision: a share of ${share:-nothing}" ;;
        esac
    done
}
part_resume() { sh "$here/../cli/resume_test.sh"; }

# sanitized TOOL: the shortened suite under a tool of compute-sanitizer.
sanitized() {
    if ! command -v compute-sanitizer >/dev/null; then
        echo "skip $1: compute-sanitizer is not installed (cuda-sanitizer of CUDA's packages)"
        return
    fi
    # Of our own kernels: what libraries do is theirs.
    # shellcheck disable=SC2086 # names of operations
    MPBENCH_GPU_LIBRARIES=none compute-sanitizer --tool "$1" --error-exitcode 9 \
        "$build/tests/conformance/conformance_test" $short >"$out/$1.txt" 2>&1
    status=$?
    grep -E '^(ok|not ok|skip) ' "$out/$1.txt"
    if [ "$status" -eq 9 ]; then
        echo "not ok $1: $(grep -m 1 'ERROR SUMMARY' "$out/$1.txt")"
    fi
}
part_memcheck() { sanitized memcheck; }
part_racecheck() { sanitized racecheck; }

# The program's steps a second are what `run` reports; PyTorch's what its best configuration takes.
part_bench() {
    for workload in a c e; do
        for precision in fp32 bf16; do
            rate=$("$mpbench" run "$here/../bench/workloads/$workload.lua" --device gpu \
                -p "$precision" --steps 200 --quiet --json 2>"$out/bench.err" |
                sed -n 's/.*"steps_per_s":\([0-9.e+]*\).*/\1/p')
            if [ -n "$rate" ]; then
                echo "ok bench $workload $precision: $rate steps/s"
            else
                echo "not ok bench $workload $precision: $(head -n 1 "$out/bench.err")"
            fi
        done
    done
    python=${PEER_PYTHON:-python3}
    if "$python" -c 'import sys, torch; sys.exit(not torch.cuda.is_available())' 2>/dev/null; then
        "$python" "$here/../bench/peer_torch.py" --device cuda --workloads a,c,e --threads 1 \
            --modes eager --seconds 1 | sed '/, torch /s/^/ok /'
    else
        echo "skip torch: no PyTorch of $python sees the card (PEER_PYTHON names another)"
    fi
}

# check.sh --part NAME: that part alone, as the loop below starts it.
if [ "${1:-}" = --part ]; then
    "part_$2"
    exit 0
elif [ "${1:-}" = --operation ]; then
    operation "$2"
    exit 0
fi

# ---- all of them --------------------------------------------------------------------------------

mkdir -p "$out" || exit 1
out=$(cd "$out" && pwd)
export GPU_CHECK_OUT="$out" MPBENCH_DB="$out/history.db"

# Whether there is a card is asked of the program: nothing else counts.
cat >"$out/probe.lua" <<'LUA'
local mp = require "mp"
return mp.experiment { name = "probe", run = function() mp.zeros(1):item() end }
LUA
"$mpbench" run "$out/probe.lua" --device gpu --quiet >"$out/probe.txt" 2>&1
status=$?
if [ "$status" -ne 0 ]; then
    echo "gpu-check: no card: $(sed 's/^mpbench: //' "$out/probe.txt" | head -n 1)"
    [ "$status" -eq 3 ] && exit 3
    exit 1
fi

echo "$parts" >"$out/parts.list"
for name in ${GPU_CHECK_PARTS:-}; do
    if ! grep -q "^$name " "$out/parts.list"; then
        echo "gpu-check: no such part: $name"
        exit 2
    fi
done
failed=0
while read -r name seconds text; do
    case " ${GPU_CHECK_PARTS:-$name} " in *" $name "*) ;; *) continue ;; esac
    log=$out/$name.log
    # Several write to the log at a time, and cat does not hold the offset that they share: unless
    # each appends, one writes over another.
    : >"$log"
    began=$(date +%s)
    timeout -k 5 "$(awk "BEGIN { print $seconds * ${GPU_CHECK_SCALE:-1} }")" sh "$0" --part "$name" >>"$log" 2>&1 </dev/null
    status=$?
    took=$(($(date +%s) - began))
    good=$(grep -c '^ok ' "$log")
    bad=$(grep -c '^not ok ' "$log")
    left=$(grep -c '^skip ' "$log")
    verdict=ok
    [ "$good" -gt 0 ] || verdict=skipped
    [ "$bad" -eq 0 ] && [ $((good + left)) -gt 0 ] || verdict=FAILED
    [ "$status" -ne 124 ] && [ "$status" -ne 137 ] || verdict="cut off"
    case $verdict in ok | skipped) ;; *) failed=1 ;; esac
    first=$(grep -m 1 -E '^(not ok|skip) ' "$log" | cut -c 1-160)
    echo "$name: $verdict, $took s: $text: $good ok, $bad failed, $left skipped${first:+; $first}"
done <"$out/parts.list"
rm -f "$out/parts.list"
echo "gpu-check: all of it lies in $out"
exit "$failed"
