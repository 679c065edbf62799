#!/bin/sh
# shellcheck disable=SC1091,SC2034,SC2086,SC2154 # what shell.sh sets, reads and calls; options are words
# Runs on the emulated card: what the history keeps of how the card fared, and such a run beside one
# on the processors.
. "$(dirname "$0")/../shell.sh"

use_emulated_card runs_on_emulated_card

# Trains simple for 20 steps as run NAME, with further options; MPBENCH_EMULATOR is $1.
train() {
    settings=$1 run_name=$2
    shift 2
    MPBENCH_EMULATOR=$settings "$mpbench" run simple --seed 3 --steps 20 --quiet --name "$run_name" "$@" >"$folder/out" 2>"$folder/err" ||
        fail "$run_name does not train: $(tail -n 1 "$folder/err")"
}

begin card_of_a_run_is_kept
train power=123000,degrees=44,clock=1700,busy=31 whole -d gpu
run show whole
expect_out 'card.power 123$'
expect_out 'card.power.limit 700$'
expect_out 'card.temperature 44$'
expect_out 'card.temperature.most 44$'
expect_out 'card.clock 1700$'
expect_out 'card.memory.total 4294967296$'
expect_out 'card.busy 0.31$'
end

# Of 20 steps the first few are not.
begin share_of_captured_steps_is_kept
run show whole
expect_out 'steps.captured 0\.[1-8]'
train '' launched -d gpu --no-capture
run show launched
expect_no_out 'steps.captured'
train '' uncaptured -d cpu
run show uncaptured
expect_no_out 'steps.captured'
end

# Where two runs differ it is known whether the card's libraries did.
begin what_the_card_computed_with_is_kept
train '' versions -d gpu
run show versions
expect_out 'library.cuBLASLt 13.0.2$'
expect_out 'library.cuDNN 9.14.0$'
expect_out 'library.NVML 13.580.65.06$'
expect_out 'device.driver 580.65.06$'
train libraries=0,nvml=none bare -d gpu
run show bare
expect_no_out 'library.cu'
expect_no_out 'device.driver'
end

# The energy of show --json, over the seconds that it took.
watts_of() {
    "$mpbench" show "$1" --json | tr ',' '\n' |
        awk -F: '/"wall_s"/ { wall = $2 } /"energy_j"/ { energy = $2 } END { printf "%d\n", energy / wall }'
}

# The card takes 100 W, whichever way that is found. What is between the run and its samples is
# little of its time, before it or after it.
begin energy_of_a_run_is_its_card_s
train power=100000 counted -d gpu
train power=100000,nvml=old summed -d gpu
for name_of in counted summed; do
    watts=$(watts_of $name_of)
    if [ "$watts" -lt 80 ] || [ "$watts" -gt 120 ]; then
        fail "$name_of: $watts W"
    fi
done
end

begin what_the_card_does_not_tell_is_unknown
for nvml in none broken deaf; do
    train nvml=$nvml $nvml -d gpu
    run show $nvml
    expect_no_out 'card\.'
    expect_out 'energy *unknown'
    run show $nvml --json
    expect_out '"energy_j":null'
done
end

begin runs_of_one_seed_are_compared_across_devices
train '' card -d gpu -p fp32
train '' processors -d cpu -p fp32
run compare processors card
expect_status 0
expect_out '^device *cpu *gpu$'
expect_out '^machine .* Emulated card 9.0$'
expect_out '^device=cpu '
expect_out '^device=gpu .*x '
expect_out '^loss of device=gpu'
expect_out 'never beyond the noise of the loss'
expect_out 'were not on one kind of device'
expect_no_out 'were not on one machine'
expect_no_out 'same number of threads'
run compare processors card --json
expect_out '"loss_delta":-\{0,1\}[0-9]'
expect_out '"speedup":[0-9]'
end

begin a_layer_of_odd_sizes_is_told_on_the_card
train '' odd -d gpu -p fp16 --set width=100
run show odd --json
expect_out '"kind":"odd_sizes","layer":"fc1".*a side of 100: .*take 104'
train '' even -d gpu -p fp16 --set width=104
run show even --json
expect_no_out odd_sizes
end

# 4 million multiplications for each of the emulated card's 4 multiprocessors: 64 x 512 x 512 is more.
begin products_too_small_for_the_card_are_told
train '' small -d gpu -p bf16
run show small --json
expect_out '"kind":"small_kernels","layer":"fc1".*under 16 million .* do 100 % of the work .* 0.262 million in fc1: .* 4 multiprocessors.*larger batches'
for quiet in '-d gpu -p fp32' '-d gpu -p bf16 --layer fc1=fp32 --layer fc2=fp32' '-d cpu -p bf16' \
    '-d gpu -p bf16 --steps 4 --set batch=512 --set width=512'; do
    train '' "quiet$((quiets += 1))" $quiet
    run show "quiet$quiets" --json
    expect_no_out small_kernels
done
end

begin auto_takes_the_card_and_its_best_format
train '' chosen
run show chosen
expect_out 'precision *fp16 on gpu (Emulated card 9.0)'
end

exit "$failures"
