#!/bin/sh
# bench.sh: whole training steps of mpbench beside PyTorch's, in one run, with the bars to reach.
#
# MPBENCH           the program                                      (build/mpbench)
# PEER_PYTHON       python with PyTorch; several with commas between (python3)
# BENCH_SECONDS     timed, each measurement                          (3)
# BENCH_ROUNDS      measurements of each, of which the median counts (3)
# BENCH_WORKLOADS   of a b c e, see workloads/                       (a b c e)
#
# PyTorch's best configuration (threads, eager or compiled, layout) is looked for first; then the
# two take turns. Without PyTorch its half is left out, and said to be. Peak memory is that of the
# process. Exit status 1: something could not be measured; a bar that is not met is no failure.
set -u
here=$(dirname "$0")
mpbench=${MPBENCH:-build/mpbench}
seconds=${BENCH_SECONDS:-3}
rounds=${BENCH_ROUNDS:-3}
workloads=${BENCH_WORKLOADS:-a b c e}
processors=$(nproc)
folder=$(mktemp -d)
# Lines "workload precision mpbench|torch ms_per_step peak_MiB how"; "how" of mpbench is "-".
measured=$folder/measured
trap 'rm -rf "$folder"' EXIT
export MPBENCH_DB="$folder/history.db" # with telemetry, as everybody trains
trap 'exit 130' INT TERM
failed=0
load=$(cut -d' ' -f1 /proc/loadavg 2>/dev/null)
: >"$measured"

# ---- mpbench ------------------------------------------------------------------------------------

# steps_per_second WORKLOAD PRECISION STEPS: trains; the run's peak memory goes to $folder/peak.
steps_per_second() {
    "$mpbench" run "$here/workloads/$1.lua" --precision "$2" --steps "$3" --quiet --json \
        >"$folder/json" 2>"$folder/errors" &
    process=$!
    # The kernel forgets the peak with the process; asking now and then disturbs nobody.
    echo 0 >"$folder/peak"
    while peak_now=$(sed -n 's/^VmHWM:[^0-9]*\([0-9]*\).*/\1/p' "/proc/$process/status" 2>/dev/null) &&
        [ -n "$peak_now" ]; do
        echo "$peak_now" >"$folder/peak"
        sleep 0.4
    done
    if ! wait "$process"; then
        sed -n 1p "$folder/errors" >&2
        return 1
    fi
    sed -n 's/.*"steps_per_s":\([0-9.e+]*\).*/\1/p' "$folder/json"
}

# measure_own WORKLOAD PRECISION: one measurement of about $seconds.
measure_own() {
    steps=$(sed -n "s/^$1 $2 //p" "$folder/steps")
    rate=
    [ -n "$steps" ] && rate=$(steps_per_second "$1" "$2" "$steps")
    if [ -z "$rate" ]; then
        echo "bench: $1 in $2 could not be measured" >&2
        failed=1
        return
    fi
    awk -v rate="$rate" -v peak="$(cat "$folder/peak")" -v key="$1 $2" \
        'BEGIN { printf "%s mpbench %.6g %.1f -\n", key, 1000 / rate, peak / 1024 }' >>"$measured"
}

# How many steps fill the time; from a short run, and a second one where that was too short to say.
calibrate() {
    steps=3
    for share in 0.1 1; do
        rate=$(steps_per_second "$1" "$2" "$steps")
        [ -n "$rate" ] || return
        steps=$(awk -v n="$rate" -v seconds="$seconds" -v share="$share" \
            'BEGIN { n *= seconds * share; print int(n < 5 ? 5 : n) }')
    done
    echo "$1 $2 $steps" >>"$folder/steps"
}

# ---- PyTorch ------------------------------------------------------------------------------------

# The interpreters of the list that have it, commas between.
find_peers() {
    peers=
    for python in $(echo "${PEER_PYTHON:-python3}" | tr , ' '); do
        if "$python" -c 'import torch' >/dev/null 2>&1; then
            peers=$peers${peers:+,}$python
        fi
    done
}

# run_peer WORKLOAD PRECISION THREADS MODES SECONDS: the fastest of these, as
# "ms MiB threads mode how", words of "how" joined by underscores.
run_peer() {
    "${peers%%,*}" "$here/peer_torch.py" --python "$peers" --workloads "$1" --precision "$2" \
        --threads "$3" --modes "$4" --seconds "$5" --json 2>"$folder/errors" |
        sed -n 's/^{"best": //p' | awk '
            function field(key,    value) {
                if (!match($0, "\"" key "\": *\"?[^,}\"]*")) return ""
                value = substr($0, RSTART, RLENGTH)
                sub(/^"[^"]*": *"?/, "", value)
                return value
            }
            field("median_ms") != "" {
                how = field("mode") "," field("variant") "," field("threads") "_threads,torch_" field("torch")
                sub(/,plain/, "", how)
                print field("median_ms"), field("peak_mib"), field("threads"), field("mode"), how
            }'
}

choose_peer() {
    threads=1
    [ "$processors" -gt 1 ] && threads=1,$processors
    best=$(run_peer "$1" "$2" "$threads" eager,compile 1)
    if [ -z "$best" ]; then
        echo "bench: PyTorch could not be measured on $1 in $2" >&2
        failed=1
        return
    fi
    echo "$1 $2 $best" >>"$folder/chosen"
}

measure_peer() {
    chosen=$(sed -n "s/^$1 $2 //p" "$folder/chosen")
    [ -n "$chosen" ] || return
    # shellcheck disable=SC2086 # five words
    set -- "$1" "$2" $chosen
    result=$(run_peer "$1" "$2" "$5" "$6" "$seconds")
    [ -n "$result" ] && echo "$result" | while read -r ms peak _ _ how; do
        echo "$1 $2 torch $ms $peak $how" >>"$measured"
    done
}

# ---- the run ------------------------------------------------------------------------------------

: >"$folder/steps"
: >"$folder/chosen"
find_peers
if [ -z "$peers" ]; then
    echo "skip PyTorch: no torch in ${PEER_PYTHON:-python3}; PEER_PYTHON names a python that has it"
fi
for workload in $workloads; do
    echo "workload $workload: $(sed -n 's/.*about = "speed: \(.*\)",/\1/p' "$here/workloads/$workload.lua")" >&2
    for precision in fp32 bf16 fp16; do
        calibrate "$workload" "$precision"
    done
    if [ -n "$peers" ]; then
        choose_peer "$workload" fp32
        choose_peer "$workload" bf16
    fi
    round=0
    while [ "$round" -lt "$rounds" ]; do
        round=$((round + 1))
        for precision in fp32 bf16 fp16; do
            measure_own "$workload" "$precision"
            [ "$precision" = fp16 ] || [ -z "$peers" ] || measure_peer "$workload" "$precision"
        done
    done
done

# The bars: workload, precision, how many times as fast as PyTorch's best in the same precision;
# fp16, which PyTorch has not on a CPU, against mpbench's own fp32. Set on a processor with AMX.
cat >"$folder/bars" <<'BARS'
bar a fp32 8
bar a bf16 20
bar b fp32 1.6
bar b bf16 3
bar b fp16 1.6
bar c fp32 1.5
bar c bf16 2.5
bar c fp16 1.5
bar e fp32 1.3
bar e bf16 1.8
bar e fp16 1.8
BARS

awk -v workloads="$workloads" '
    function median(key,    n, list, i, j, t) {
        n = split(times[key], list, " ")
        for (i = 2; i <= n; i++)
            for (j = i; j > 1 && list[j] + 0 < list[j - 1] + 0; j--) { t = list[j]; list[j] = list[j - 1]; list[j - 1] = t }
        low = list[1] + 0; high = list[n] + 0
        return n == 0 ? 0 : n % 2 ? list[(n + 1) / 2] + 0 : (list[n / 2] + list[n / 2 + 1]) / 2
    }
    function milliseconds(x) { return x == 0 ? "-" : sprintf(x < 1 ? "%.4f" : x < 100 ? "%.2f" : "%.0f", x) }
    $1 == "bar" { bar[$2 " " $3] = $4; next }
    {
        key = $1 " " $2 " " $3
        times[key] = times[key] " " $4
        if ($5 > peak[key]) peak[key] = $5
        if (!(key in fastest) || $4 < fastest[key]) { fastest[key] = $4; how[key] = $6 }
    }
    END {
        form = "%-3s %-5s %10s %17s %12s %9s %8s %-8s %9s %9s  %s\n"
        printf "\nmedian milliseconds a step; ratio: PyTorch over mpbench, for fp16 fp32 over fp16, both mpbench\n"
        printf form, "", "", "mpbench", "(lowest..highest)", "PyTorch", "ratio", "bar", "", "MiB", "PyTorch", "PyTorch configuration"
        count = split(workloads, names, " ")
        split("fp32 bf16 fp16", precisions, " ")
        for (i = 1; i <= count; i++) {
            base = 0
            for (k = 1; k <= 3; k++) {
                key = names[i] " " precisions[k]
                peer = median(key " torch")
                own = median(key " mpbench")
                if (own == 0) { printf form, names[i], precisions[k], "-", "", milliseconds(peer), "-", "", "", "-", "-", ""; continue }
                if (k == 1) base = own
                other = precisions[k] == "fp16" ? base : peer
                ratio = other == 0 ? 0 : other / own
                wanted = bar[key]
                verdict = wanted == "" ? "" : ratio == 0 ? "unknown" : ratio >= wanted ? "met" : "not met"
                if (verdict != "") tally[verdict]++
                printf form, names[i], precisions[k], milliseconds(own), "(" milliseconds(low) ".." milliseconds(high) ")", \
                    milliseconds(peer), ratio ? sprintf("%.2f", ratio) : "-", wanted == "" ? "-" : ">= " wanted, verdict, \
                    sprintf("%.0f", peak[key " mpbench"]), peer ? sprintf("%.0f", peak[key " torch"]) : "-", how[key " torch"]
            }
        }
        printf "bars: %d met, %d not met, %d unknown\n", tally["met"], tally["not met"], tally["unknown"]
    }' "$folder/bars" "$measured"
grep -q '^flags.* amx_bf16' /proc/cpuinfo 2>/dev/null ||
    echo "This processor has no AMX: the bars of bf16 and fp16 were set on one that has."
awk -v load="${load:-0}" 'BEGIN { exit !(load > 0.5) }' &&
    echo "The machine was not idle when this began (load $load): measure again before believing it."
exit "$failed"
