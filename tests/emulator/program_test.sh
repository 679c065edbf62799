#!/bin/sh
# shellcheck disable=SC1091,SC2034,SC2154 # what shell.sh sets, reads and calls
# The program over the emulated card: what it says of machines, drivers and cards of all kinds.
. "$(dirname "$0")/../shell.sh"

use_emulated_card program_over_emulated_card

# What doctor says of the card that $1 describes must contain $2.
doctor_says() {
    MPBENCH_EMULATOR=$1 "$mpbench" doctor >"$folder/out" 2>"$folder/err"
    tr -s ' \n' ' ' <"$folder/out" | grep -qF "$2" || fail "$1: doctor lacks \"$2\": $(grep -A2 '  gpu' "$folder/out" | tr -s ' \n' ' ')"
}

begin doctor_names_the_card
doctor_says capability=90 'gpu Emulated card 9.0'
doctor_says capability=120 'gpu Emulated card 12.0'
[ ! -s "$folder/err" ] || fail "stderr: $(head -n 1 "$folder/err")"
end

begin doctor_knows_every_card
doctor_says cards=2 'gpu:0 Emulated card 9.0, capability 9.0, 4.0 GiB, its driver serves CUDA 13.0 gpu:1 Emulated card'
doctor_says cards=2,fail=cuStreamCreate/1:999 'gpu:0 making a stream: unknown error (error 999); use another, or --device cpu gpu:1 Emulated card'
end

begin doctor_says_why_there_is_no_card
doctor_says cards=0 'this machine has no card that its driver serves'
doctor_says driver=11080 'the driver serves CUDA 11.8, this build needs 13.0: install a newer driver'
doctor_says capability=75 'has capability 7.5, 8.0 or later is needed: use --device cpu'
doctor_says fail=cuModuleLoadData/1:209 'this build has no kernels for Emulated card 9.0 (capability 9.0): it was made with GPU_ARCHS="80 90", build it anew with 90 among them'
doctor_says fail=cuModuleLoadData/1:222 'the driver of Emulated card 9.0 is older than the compiler of this build'"'"'s kernels: install a newer driver'
doctor_says fail=cuInit/1:999 'the driver does not start: unknown error (cuInit: 999)'
end

begin doctor_says_what_cards_work_with
doctor_says '' 'gpu capability 9.0, driver 580.65.06, CUDA 13.0, cuBLASLt 13.0.2, cuDNN 9.14.0, NVML 13.580.65.06 trains in fp32, tf32, bf16, fp16, e4m3, e5m2, fp8, mxfp8, mxfp6, mxfp6_e2m3, mxfp4, nvfp4; large products gain by tf32, bf16, fp16'
doctor_says '' 'nothing is missing'
doctor_says cards=2 'gpu:1 capability 9.0, driver 580.65.06'
MPBENCH_EMULATOR='' "$mpbench" doctor --json >"$folder/out"
expect_out '"name":"gpu","error":null,"hardware":"Emulated card 9.0","memory":4294967296,"threads":[0-9]*,"gains":\["tf32","bf16","fp16"\],"operations":'
expect_out '"trains":\["fp32","tf32","bf16","fp16","e4m3","e5m2","fp8","mxfp8","mxfp6","mxfp6_e2m3","mxfp4","nvfp4"\],"parts":{"capability":"9.0","driver":"580.65.06","CUDA":"13.0","cuBLASLt":"13.0.2","cuDNN":"9.14.0","NVML":"13.580.65.06"},"missing":\[\]'
end

# By published figures: on some cards tensor cores are no faster in tf32 than the others in fp32.
begin doctor_says_what_a_card_gains_by
for capability in 80 90 100 103; do
    doctor_says capability=$capability 'large products gain by tf32, bf16, fp16'
done
for capability in 86 89 120 121; do
    doctor_says capability=$capability 'mxfp4, nvfp4; large products gain by bf16, fp16'
done
for capability in 80:16 89:2 90:14.8; do
    MPBENCH_EMULATOR=capability=${capability%:*} run run simple -p auto --steps 1 --no-history
    expect_status 0
    grep -q "about ${capability#*:} times as fast as in fp32" "$folder/out" "$folder/err" ||
        fail "$capability: $(head -n 5 "$folder/out" "$folder/err" | tr '\n' ' ')"
done
end

begin doctor_says_what_is_missing_and_what_to_install
for nvml in none broken; do
    doctor_says libraries=0,nvml=$nvml 'driver unknown, CUDA 13.0, no cuBLASLt, no cuDNN, no NVML'
done
doctor_says libraries=0,cards=2 'install cuBLASLt (libcublasLt.so.13), NVIDIA'"'"'s package libcublas-13-0'
doctor_says libraries=0 'install cuDNN (libcudnn.so.9)'
doctor_says nvml=none 'for power, energy, temperature and clocks: install NVML'
MPBENCH_EMULATOR=libraries=0,cards=2 "$mpbench" doctor >"$folder/out"
[ "$(grep -c 'install cuDNN' "$folder/out")" -eq 1 ] || fail "two cards that lack one library: told not once"
MPBENCH_EMULATOR=libraries=0,nvml=none "$mpbench" doctor --json >"$folder/out"
expect_out '"driver":null,"CUDA":"13.0","cuBLASLt":null,"cuDNN":null,"NVML":null},"missing":\["for [^"]*cuBLASLt'
end

# Each call of the driver that the opening of a card makes fails in turn.
begin doctor_survives_every_failure_of_the_driver
report=$(MPBENCH_EMULATOR=report=1 "$mpbench" doctor 2>&1 >/dev/null)
calls=$(echo "$report" | sed -n 's/^emulator: \([0-9]*\) calls.*/\1/p')
[ "${calls:-0}" -gt 20 ] || fail "the card counts no calls: $report"
call=1
while [ "$call" -le "${calls:-0}" ]; do
    for code in 2 700 999; do
        MPBENCH_EMULATOR=fail=$call:$code,report=1 "$mpbench" doctor >"$folder/out" 2>"$folder/err"
        status=$?
        [ "$status" -le 1 ] || fail "call $call fails with $code: exit status $status"
        grep -q '^devices' "$folder/out" || fail "call $call fails with $code: no devices are shown"
        # Nothing is left behind but by calls that cannot free what they fail to free.
        if ! grep -qE 'cu[A-Za-z]*(Free|Destroy|Unload|Release)[a-zA-Z]* fails' "$folder/err" &&
            grep -q 'is left with' "$folder/err"; then
            fail "call $call fails with $code: $(tr '\n' ' ' <"$folder/err")"
        fi
    done
    call=$((call + 7))
done
end

# What a script may not open, the driver opens before the script is held to its files.
begin a_driver_is_started_before_scripts_are_shut_in
for device in gpu auto; do
    MPBENCH_EMULATOR=shut=1 run run simple --device $device --steps 2 --no-history
    expect_status 0
    grep -q 'on gpu' "$folder/out" || fail "$device: $(cat "$folder/err" "$folder/out" | head -n 3 | tr '\n' ' ')"
done
end

# As a preset and as a layer's format: other losses than in fp32, and the same both ways, where
# every layer is set.
begin tf32_is_trained_in_on_the_card
losses() {
    run run simple --device gpu --steps 3 --no-history --json "$@"
    expect_status 0
    sed -n 's/.*"loss":{\([^}]*\)}.*/\1/p' "$folder/out"
}
full=$(losses -p fp32)
whole=$(losses -p tf32)
layers=$(losses -p fp32 --layer '*=tf32')
[ -n "$whole" ] || fail "no loss is told: $(head -c 200 "$folder/out")"
[ "$whole" != "$full" ] || fail "nothing was rounded: $whole in both"
[ "$whole" = "$layers" ] || fail "$whole by the preset, $layers by layers"
end

# The card is lost while the first step's report is given room: that is no lack of memory.
begin a_card_that_is_lost_is_never_told_to_be_full
lost=0
for call in 13 14 15 16 17; do
    MPBENCH_EMULATOR=fail=cuMemHostAlloc/$call:700 run run simple --device gpu --steps 2 --no-history
    grep -q 'no memory' "$folder/err" && fail "call $call: $(head -n 1 "$folder/err")"
    grep -q 'reporting a step: .*(error 700); what the card computes' "$folder/err" && lost=1
done
[ "$lost" -eq 1 ] || fail "no call was that of a report"
end

exit "$failures"
