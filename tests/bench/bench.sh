#!/bin/sh
# bench.sh: whole training steps of mpbench beside PyTorch's, in one run, with the bars to reach.
#
# MPBENCH           the program                                      (build/mpbench)
# LIMITS            what measures the machine                        (build/tests/bench/limits)
# PEER_PYTHON       python with PyTorch; several with commas between (python3)
# BENCH_WORKLOADS   of a b c d e f, see workloads/                   (all)
# BENCH_MINUTES     after which no second round is begun             (4)
# BENCH_SECONDS     timed, each measurement                          (2)
# BENCH_ROUNDS      measurements of each, of which the median counts (3)
# BENCH_MODES       of PyTorch: eager, or eager,compile              (eager)
#
# What the machine can do at most is measured beside each round, and the most of that counts; a step is
# held against it, and against PyTorch.
# PyTorch's best configuration (layout, modes; where steps are short, also one thread against all) is
# looked for first; then the two take turns.
# Without PyTorch its half is left out, and said to be. Exit status 1: something could not be
# measured; a bar that is not met is no failure.
set -u
here=$(dirname "$0")
mpbench=${MPBENCH:-build/mpbench}
limits=${LIMITS:-build/tests/bench/limits}
seconds=${BENCH_SECONDS:-2}
rounds=${BENCH_ROUNDS:-3}
workloads=${BENCH_WORKLOADS:-a b c d e f}
modes=${BENCH_MODES:-eager}
started=$(date +%s)
ends=$((started + 60 * ${BENCH_MINUTES:-4}))
processors=$(nproc)
folder=$(mktemp -d)
# Lines "workload precision mpbench|torch ms_per_step peak_MiB how"; "how" of mpbench is the bytes that
# it used at most, all at once and by purpose.
measured=$folder/measured
trap 'rm -rf "$folder"' EXIT
export MPBENCH_DB="$folder/history.db" # with telemetry, as everybody trains
trap 'exit 130' INT TERM
failed=0
load=$(cut -d' ' -f1 /proc/loadavg 2>/dev/null)
: >"$measured"

# ---- mpbench ------------------------------------------------------------------------------------

# Numbers of what a run said of its memory, with commas between.
memory_of() {
    for purpose in peak activations gradients workspace; do
        sed -n "s/.*\"memory\":{[^}]*\"$purpose\":\([0-9]*\).*/\1/p" "$1"
    done | paste -sd, -
}

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
    awk -v rate="$rate" -v peak="$(cat "$folder/peak")" -v key="$1 $2" -v by="$(memory_of "$folder/json")" \
        'BEGIN { printf "%s mpbench %.6g %.1f %s\n", key, 1000 / rate, peak / 1024, by }' >>"$measured"
}

# How many steps fill the time; from a short run, and from a longer one where that was too short to say.
calibrate() {
    steps=3
    for share in 0.1 1; do
        rate=$(steps_per_second "$1" "$2" "$steps")
        [ -n "$rate" ] || return
        if awk -v n="$steps" -v rate="$rate" -v seconds="$seconds" 'BEGIN { exit n / rate < seconds / 4 }'; then
            share=1
        fi
        steps=$(awk -v n="$rate" -v seconds="$seconds" -v share="$share" \
            'BEGIN { n *= seconds * share; print int(n < 5 ? 5 : n) }')
        [ "$share" = 0.1 ] || break
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

# run_peer BY OPTION..: of peer_torch.py; the fastest of what these allow by mean_ms or p10_ms, as "ms MiB
# threads mode variant how", words of "how" joined by underscores.
run_peer() {
    by=$1
    shift
    "${peers%%,*}" "$here/peer_torch.py" --python "$peers" --json --by "$by" "$@" 2>"$folder/errors" |
        sed -n 's/^{"best": //p' | awk -v by="$by" '
            function field(key,    value) {
                if (!match($0, "\"" key "\": *\"?[^,}\"]*")) return ""
                value = substr($0, RSTART, RLENGTH)
                sub(/^"[^"]*": *"?/, "", value)
                return value
            }
            field(by) != "" {
                how = field("mode") "," field("variant") "," field("threads") "_threads,torch_" field("torch")
                sub(/,plain/, "", how)
                print field(by), field("peak_mib"), field("threads"), field("mode"), field("variant"), how
            }'
}

# looked_for WORKLOAD PRECISION THREADS: the best of PyTorch's configurations on so many, by its quicker
# steps: what else the machine does would choose by their mean.
looked_for() {
    run_peer p10_ms --workloads "$1" --precision "$2" --threads "$3" --modes "$modes" --seconds 1 --fewest 2
}

# Where steps are short, to hand work to other threads can cost more than they save. Of the long ones, d to f,
# one thread needed 1.5 to 1.9 times as long as two on a Zen 3: it is not waited for.
choose_peer() {
    best=$(looked_for "$1" "$2" "$processors")
    if [ "$processors" -gt 1 ] && { [ -z "$best" ] || [ "${best%%.*}" -lt 250 ]; }; then
        best=$({
            [ -z "$best" ] || echo "$best"
            looked_for "$1" "$2" 1
        } | sort -n | head -n 1)
    fi
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
    # shellcheck disable=SC2086 # six words
    set -- "$1" "$2" $chosen
    result=$(run_peer mean_ms --workloads "$1" --precision "$2" --threads "$5" --modes "$6" --variants "$7" \
        --seconds "$seconds")
    [ -n "$result" ] && echo "$result" | while read -r ms peak _ _ _ how; do
        echo "$1 $2 torch $ms $peak $how" >>"$measured"
    done
}

# ---- the machine --------------------------------------------------------------------------------

# A look of a moment may fall where others use the machine: it is looked at again and again.
look_at_limits() {
    "$limits" >>"$folder/looks" || failed=1
    sort -k1,1n -k2,2 -k3,3nr "$folder/looks" | awk '!seen[$1, $2]++' >"$folder/limits"
}

# ---- the run ------------------------------------------------------------------------------------

: >"$folder/steps"
: >"$folder/chosen"
find_peers
if [ -z "$peers" ]; then
    echo "skip PyTorch: no torch in ${PEER_PYTHON:-python3}; PEER_PYTHON names a python that has it"
fi
look_at_limits

# Where no instruction multiplies bf16, PyTorch takes many times as long in it as in fp32 (18 times, of b
# on a Zen 3), and no bar asks for it.
peer_precisions=fp32
grep -q '^[0-9]* bf16 ' "$folder/limits" && peer_precisions="fp32 bf16"

# Each workload has its share of the time; what its rounds leave is the next one's.
left=$(echo "$workloads" | wc -w)
for workload in $workloads; do
    now=$(date +%s)
    until=$((now + (ends - now) / left))
    left=$((left - 1))
    echo "workload $workload: $(sed -n 's/.*about = "speed: \(.*\)",/\1/p' "$here/workloads/$workload.lua")" >&2
    for precision in fp32 bf16 fp16; do
        calibrate "$workload" "$precision"
    done
    for precision in ${peers:+$peer_precisions}; do
        choose_peer "$workload" "$precision"
    done
    round=0
    while [ "$round" -lt "$rounds" ]; do
        [ "$round" -eq 0 ] || [ "$(date +%s)" -lt "$until" ] || break
        round=$((round + 1))
        look_at_limits
        for precision in fp32 bf16 fp16; do
            measure_own "$workload" "$precision"
            measure_peer "$workload" "$precision" # where one was chosen
        done
    done
done

echo "at most, GFLOP/s by multiply-adds of fp32, of pairs of bf16, of tiles, and GB/s read, the best of several looks:"
sed 's/^\([0-9]*\) \([a-z0-9]*\) /  threads \1  \2  /' "$folder/limits"

# Of a step: its multiply-adds, in thousand millions (of attention, those that its mask leaves); the
# numbers of its parameters and the bytes that an update must move for each; and the numbers that
# products and norms put out, each written, read onwards and backwards, and the same of its gradient.
cat >"$folder/steps_of" <<'STEPS'
step a 0.000585 0.0089 24 0.0024
step b 1.224 1.863 32 0.531
step c 4.580 1.199 32 8.73
step d 106.5 11.17 24 78.6
step e 69.0 10.74 32 75.5
step f 39.7 6.34 32 12.7
STEPS

# The bars: workload, precision, the share of the limit, and how many times as fast as PyTorch's best
# in the same precision; fp16, which PyTorch has not on a CPU, against mpbench's own fp32.
tiles=$(grep -c '^flags.* amx_bf16' /proc/cpuinfo 2>/dev/null)
cat >"$folder/bars" <<'BARS'
bar a fp32 - 10
bar a bf16 - 15
bar a fp16 - 0.8
bar b fp32 0.85 1.2
bar b bf16 0.65 1.2
bar b fp16 - 0.95
bar c fp32 0.6 1.2
bar c bf16 0.45 1.3
bar c fp16 - 0.95
bar d fp32 0.6 1.1
bar d bf16 0.45 1.2
bar d fp16 - 0.95
bar e fp32 0.8 1.1
bar e bf16 0.6 1.3
bar e fp16 - 0.95
bar f fp32 0.6 1.3
bar f bf16 0.45 1.5
bar f fp16 - 0.95
BARS
[ "${tiles:-0}" -eq 0 ] || cat >>"$folder/bars" <<'BARS'
bar b bf16 - 3
bar c bf16 - 2.5
bar d bf16 - 1.5
bar e bf16 - 1.8
bar f bf16 - 2.2
bar b fp16 - 1.5
bar c fp16 - 1.5
bar d fp16 - 1.5
bar e fp16 - 1.5
bar f fp16 - 1.5
BARS

if [ "$peer_precisions" = fp32 ]; then
    sed -i '/^bar . bf16/d' "$folder/bars"
fi

awk -v workloads="$workloads" -v threads="$processors" '
    function median(key,    n, list, i, j, t) {
        n = split(times[key], list, " ")
        for (i = 2; i <= n; i++)
            for (j = i; j > 1 && list[j] + 0 < list[j - 1] + 0; j--) { t = list[j]; list[j] = list[j - 1]; list[j - 1] = t }
        low = list[1] + 0; high = list[n] + 0
        return n == 0 ? 0 : n % 2 ? list[(n + 1) / 2] + 0 : (list[n / 2] + list[n / 2 + 1]) / 2
    }
    function milliseconds(x) { return x == 0 ? "-" : sprintf(x < 1 ? "%.4f" : x < 100 ? "%.2f" : "%.0f", x) }
    # What a step takes where every loop runs at its limit.
    function limit_of(workload, precision,    rate, bytes, moved) {
        rate = most["fp32"]
        if (precision == "bf16" && most["bf16"] > rate) rate = most["bf16"]
        if (precision == "bf16" && most["tiles"] > rate) rate = most["tiles"]
        if (precision == "fp16" && most["tiles"] / 4 > rate) rate = most["tiles"] / 4 # four products
        bytes = precision == "fp32" ? 4 : 2
        moved = parameters[workload] * update[workload] + outputs[workload] * bytes * 6
        return rate && most["read"] ? 2e3 * multiplies[workload] / rate + moved / most["read"] : 0
    }
    function hold(got, wanted) {
        if (wanted == "" || wanted == "-") return ""
        verdict = got == 0 ? "unknown" : got >= wanted ? "met" : "not met"
        tally[verdict]++
        return sprintf(">= %s %s", wanted, verdict)
    }
    function mebibytes(key, which,    list) {
        split(memory[key], list, ",")
        return list[which] / 1048576
    }
    $1 == "bar" { if ($4 != "-") share_bar[$2 " " $3] = $4; bar[$2 " " $3] = $5; next }
    $1 == "step" { multiplies[$2] = $3; parameters[$2] = $4; update[$2] = $5; outputs[$2] = $6; next }
    NF == 3 { if ($1 == threads) most[$2] = $3; next }
    {
        key = $1 " " $2 " " $3
        times[key] = times[key] " " $4
        if ($5 > peak[key]) peak[key] = $5
        if (!(key in fastest) || $4 < fastest[key]) { fastest[key] = $4; how[key] = $6 }
        if ($3 == "mpbench") memory[key] = $6
    }
    END {
        form = "%-3s %-5s %8s %17s %8s %6s %-15s %8s %6s %-15s %s\n"
        printf "\nmedian milliseconds a step; share: of them what the machine cannot do without; ratio: PyTorch over\n"
        printf "mpbench, for fp16 fp32 over fp16, both mpbench\n"
        printf form, "", "", "mpbench", "(lowest..highest)", "limit", "share", "", "PyTorch", "ratio", "", "PyTorch configuration"
        count = split(workloads, names, " ")
        split("fp32 bf16 fp16", precisions, " ")
        for (i = 1; i <= count; i++) {
            base = 0
            for (k = 1; k <= 3; k++) {
                name = names[i] " " precisions[k]
                key = name " mpbench"
                peer = median(name " torch")
                own = median(key)
                if (own == 0) { printf form, names[i], precisions[k], "-", "", "-", "-", "", milliseconds(peer), "-", "", ""; continue }
                if (k == 1) base = own
                other = precisions[k] == "fp16" ? base : peer
                ratio = other == 0 ? 0 : other / own
                limit = limit_of(names[i], precisions[k])
                printf form, names[i], precisions[k], milliseconds(own), "(" milliseconds(low) ".." milliseconds(high) ")", \
                    milliseconds(limit), sprintf("%.1f %%", 100 * limit / own), hold(limit / own, share_bar[name]), \
                    milliseconds(peer), ratio ? sprintf("%.3f", ratio) : "-", hold(ratio, bar[name]), how[name " torch"]
            }
        }
        form = "%-3s %-5s %9s %9s %12s %10s %10s %7s %-15s %8s\n"
        printf "\nmost MiB of the device at once, and by purpose; part: of activations, gradients and workspace against fp32\n"
        printf form, "", "", "process", "device", "activations", "gradients", "workspace", "part", "", "PyTorch"
        for (i = 1; i <= count; i++) {
            base = 0
            for (k = 1; k <= 3; k++) {
                name = names[i] " " precisions[k]
                key = name " mpbench"
                if (!(key in memory)) continue
                step = mebibytes(key, 2) + mebibytes(key, 3) + mebibytes(key, 4)
                if (k == 1) base = step
                part = base ? step / base : 0
                wanted = k > 1 && names[i] ~ /[c-f]/
                if (wanted) tally[part <= 0.6 ? "met" : "not met"]++
                printf form, names[i], precisions[k], sprintf("%.0f", peak[key]), sprintf("%.1f", mebibytes(key, 1)), \
                    sprintf("%.1f", mebibytes(key, 2)), sprintf("%.1f", mebibytes(key, 3)), sprintf("%.1f", mebibytes(key, 4)), \
                    sprintf("%.3f", part), wanted ? part <= 0.6 ? "<= 0.6 met" : "<= 0.6 not met" : "", \
                    peak[name " torch"] ? sprintf("%.0f", peak[name " torch"]) : "-"
            }
        }
        printf "\nbars: %d met, %d not met, %d unknown\n", tally["met"], tally["not met"], tally["unknown"]
    }' "$folder/bars" "$folder/steps_of" "$folder/limits" "$measured"
awk -v load="${load:-0}" 'BEGIN { exit !(load > 0.5) }' &&
    echo "The machine was not idle when this began (load $load): measure again before believing it."
[ "$(date +%s)" -lt "$ends" ] || echo "The time was up before all had $rounds rounds (BENCH_MINUTES)."
exit "$failed"
