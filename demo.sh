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
results=$(mktemp)
trap 'rm -f "$results"' EXIT
trap 'exit 130' INT TERM

for precision in fp32 $precisions; do
    echo "$mpbench run $experiment --precision $precision --epochs $epochs" >&2
    "$mpbench" run "$experiment" --precision "$precision" --epochs "$epochs" --json >>"$results"
    status=$?
    if [ "$status" -ne 0 ]; then
        echo "demo: training in $precision ended with status $status; \`$mpbench doctor\` says what" \
            "this machine can do" >&2
        exit "$status"
    fi
done
echo

# One line a run, of the fields that are compared; "-" where a field is unknown.
sed 's/[[:space:]]//g' "$results" | awk '
    # The value of a key, looked for after `section` (the name of an object, or "" for the whole).
    function field(line, section, key,    at, value) {
        if (section != "") {
            at = index(line, "\"" section "\":{")
            if (!at) return "-"
            line = substr(line, at)
            line = substr(line, 1, index(line, "}"))
        }
        at = index(line, "\"" key "\":")
        if (!at) return "-"
        value = substr(line, at + length(key) + 3)
        sub(/[,}].*/, "", value)
        gsub(/"/, "", value)
        return value == "null" ? "-" : value
    }
    {
        print field($0, "", "precision"), field($0, "metrics", "accuracy"), field($0, "loss", "last"), \
            field($0, "", "samples_per_s"), field($0, "memory", "peak"), field($0, "", "skipped")
    }' | awk '
    function percent(x) { return x == "-" ? x : sprintf("%.2f %%", 100 * x) }
    function number(x, form) { return x ~ /^[0-9.eE+-]*[0-9]$/ ? sprintf(form, x) : x }
    function ratio(x, y) { return x == "-" || y == "-" || y == 0 ? "-" : sprintf("%.2fx", x / y) }
    function megabytes(x) { return x == "-" ? x : sprintf("%.1f MB", x / 1e6) }
    NR == 1 {
        accuracy = $2; speed = $4; memory = $5
        form = "%-10s %10s %10s %12s %8s %12s %8s %8s\n"
        printf form, "precision", "accuracy", "last loss", "samples/s", "of fp32", "peak memory", \
            "of fp32", "skipped"
    }
    {
        printf form, $1, percent($2), number($3, "%.4f"), number($4, "%.0f"), ratio($4, speed), \
            megabytes($5), ratio($5, memory), $6
    }
    NR > 1 {
        says = says $1 ": "
        points = 100 * ($2 - accuracy)
        if ($2 == "-" || accuracy == "-") says = says "accuracy unknown"
        else if (points < -1.5) says = says sprintf("%.2f points less accurate than fp32", -points)
        else if (points > 1.5) says = says sprintf("%.2f points more accurate than fp32", points)
        else says = says sprintf("as accurate as fp32 (%+.2f points; another seed moves it by about one)", points)
        gain = speed > 0 ? $4 / speed : 1
        if (gain > 1.05) { faster++; says = says sprintf(", %.2f times as fast", gain) }
        else if (gain < 0.95) says = says sprintf(", slower (%.2f times its speed)", gain)
        else says = says ", no faster and no slower"
        share = memory > 0 ? $5 / memory : 1
        if (share < 0.98) says = says sprintf(", in %.0f %% of the memory.\n", 100 * share)
        else if (share > 1.02) says = says sprintf(", and takes %.2f times the memory.\n", share)
        else says = says ", and saves no memory.\n"
    }
    END {
        printf "\n%s", says
        if (NR > 1 && !faster)
            print "Low precision is no faster on this processor: a CPU gains speed from bf16 and fp16 only " \
                "with\nmatrix units for them (AMX). What it shows here is what they do to accuracy and memory."
    }'
echo "What this machine can do: $mpbench doctor"
if [ -t 0 ] && [ -t 1 ]; then
    printf 'Enter opens the screen on these runs (q closes it), ^C ends here: '
    if read -r _; then
        rm -f "$results"
        exec "$mpbench"
    fi
fi
