#!/bin/sh
# formats_loss.sh: by how much the loss of a training in some format is above bf16's, in pairs of the
# same seed, which see the same batches, and what that surely lies between. fp32 beside bf16 says
# how large chance is.
#
# MPBENCH           the program                                 (build/mpbench)
# BENCH_SEEDS       a pair each                                 (1 2 3 4 5 6)
# BENCH_WORKLOADS   of fashion_cnn and gpt, small ones          (fashion_cnn gpt)
# BENCH_STEPS       of each run                                 (200 and 250)
# BENCH_WIDTH       of the models                               (16 and 64)
# BENCH_PRECISIONS  the formats; with :KEY=VALUE,.. behind one, its recipe; with @LAYER=FORMAT behind
#                   that, a layer's own
#
# A line each workload and format: the mean over the pairs of "loss / bf16's - 1", the loss being the
# mean of the second half of the steps, at a rate that falls to nothing; its interval of 95 % by
# Student's t; how far pairs lie apart; and whether that is within 1 %: surely, surely not, or open.
# One thread, without a history; some 1.5 seconds of processor a run. Exit status 1: something could
# not be trained.
set -u
here=$(dirname "$0")
mpbench=${MPBENCH:-build/mpbench}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
trap 'exit 130' INT TERM
cp "$here"/formats_loss.lua "$here"/../../experiments/fashion_cnn.lua \
    "$here"/../../experiments/gpt.lua "$folder" || exit 1
nvfp4=nvfp4:backward=mxfp8,blocks=best
failed=0

# options_of WORKLOAD: what makes it small.
options_of() {
    steps=${BENCH_STEPS:-200} width=${BENCH_WIDTH:-16} more='--set batch=32'
    [ "$1" = gpt ] && steps=${BENCH_STEPS:-250} width=${BENCH_WIDTH:-64} \
        more='--set batch=16 --set lr=3e-3'
    echo "--set of=$1 --set steps=$steps --set width=$width $more"
}

# loss WORKLOAD SEED FORMAT[:RECIPE][@LAYER=FORMAT]: in $loss; empty where it failed.
loss() {
    rule=${3#*@} format=${3%%@*}
    recipe=${format#*:} format=${format%%:*}
    [ "$rule" = "$3" ] && rule=
    [ "$recipe" = "$format" ] && recipe=
    # shellcheck disable=SC2046 # words
    "$mpbench" run "$folder/formats_loss.lua" --threads 1 --no-history --quiet --json --seed "$2" \
        $(options_of "$1") -p "$format" ${recipe:+--recipe "$recipe"} ${rule:+--layer "$rule"} \
        >"$folder/json" 2>"$folder/errors"
    loss=$(sed -n 's/.*"late":\([0-9.e+-]*\).*/\1/p' "$folder/json")
    [ -n "$loss" ] && return
    echo "formats_loss: $1 in $3 could not be trained: $(sed -n 1p "$folder/errors")" >&2
    failed=1
}

# judged WHAT <PAIRS: "loss bf16's" of a line each.
judged() {
    awk -v what="$1" '
        BEGIN { # what 95 % lie within, by how many pairs there are
            split("0 12.71 4.303 3.182 2.776 2.571 2.447 2.365 2.306 2.262 2.228 2.201 2.179 2.160 " \
                  "2.145 2.131 2.120 2.110 2.101 2.093", t, " ")
        }
        $1 > 0 && $2 > 0 { x = 100 * ($1 / $2 - 1); sum += x; squares += x * x; n++ }
        END {
            if (n == 0) exit
            mean = sum / n
            apart = n > 1 && squares > n * mean * mean ? sqrt((squares - n * mean * mean) / (n - 1)) : 0
            half = n > 1 ? (n > 20 ? 2 : t[n]) * apart / sqrt(n) : 1e9
            low = mean - half; high = mean + half
            printf "%s %+.2f %% of bf16s loss, ", what, mean
            if (n > 1) printf "surely %+.2f to %+.2f, pairs %.2f apart, ", low, high, apart
            printf "%d pair%s: within 1 %% %s\n", n, (n > 1 ? "s" : ""),
                (high <= 1 ? "surely" : low > 1 ? "surely not" : "open")
        }' | sed "s/bf16s/bf16's/"
}

for workload in ${BENCH_WORKLOADS:-fashion_cnn gpt}; do
    for seed in ${BENCH_SEEDS:-1 2 3 4 5 6}; do
        loss "$workload" "$seed" bf16
        echo "$loss" >"$folder/$seed"
    done
    for precision in ${BENCH_PRECISIONS:-fp32 fp8 mxfp8 $nvfp4 $nvfp4@head=bf16 mxfp4}; do
        for seed in ${BENCH_SEEDS:-1 2 3 4 5 6}; do
            loss "$workload" "$seed" "$precision"
            echo "${loss:-0} $(cat "$folder/$seed")"
        done >"$folder/pairs"
        judged "$workload $precision" <"$folder/pairs"
    done
done
exit "$failed"
