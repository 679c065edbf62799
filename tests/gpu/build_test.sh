#!/bin/sh
# shellcheck disable=SC1091,SC2034,SC2154 # what shell.sh sets, reads and calls
# The plugin as nvcc makes it, on whatever machine this is, and the program that was built without one.
. "$(dirname "$0")/../shell.sh"
build=$(dirname "$mpbench")
plugin=$build/mpbench-gpu.so
bare=$build/tests/gpu/bare/mpbench # where no nvcc was found

# What doctor says of the device gpu, in one line.
said_of_gpu() {
    "$@" doctor >"$folder/out" 2>"$folder/err" || fail "doctor ends with $?: $(cat "$folder/err")"
    expect_silent err
    sed -n '/^ *gpu /,/^ *ref /p' "$folder/out" | sed '$d' | tr -s ' \n' ' ' >"$folder/gpu"
}
expect_said() {
    grep -qE "$1" "$folder/gpu" || fail "doctor says of the card: $(cat "$folder/gpu")"
}

unset MPBENCH_GPU

begin a_build_without_nvcc_says_so_and_what_to_install
said_of_gpu "$bare"
expect_said '^ gpu this build has none: there was no nvcc \(Debian: nvidia-cuda-toolkit\)'
expect_said 'docs/gpu.md'
"$bare" run experiments/simple.lua --device gpu --steps 2 --no-history >"$folder/out" 2>"$folder/err"
status=$?
expect_error 3 'device gpu: this build has none: .*nvidia-cuda-toolkit'
"$bare" run experiments/simple.lua --steps 2 --no-history >"$folder/out" 2>"$folder/err"
status=$?
expect_status 0
end

# A compiler in nvcc's place, which writes down what it was asked for.
begin images_are_compiled_anew_for_other_cards
cat >"$folder/nvcc" <<'SH'
#!/bin/sh
case $* in *--list-gpu-arch*) echo compute_80 compute_90 | tr ' ' '\n' && exit ;; esac
echo "$*" >>"$0.calls"
while [ $# -gt 0 ]; do
    case $1 in -o | -MF) : >"$2" ;; esac
    shift
done
SH
chmod +x "$folder/nvcc"
image=$folder/build/plugin/images/flags.fatbin
compiled() { # TIMES OPTION ...
    times=$1
    shift
    make -s BUILD="$folder/build" NVCC="$folder/nvcc" "$@" "$image" >"$folder/out" 2>&1 ||
        fail "make $*: $(tail -n 1 "$folder/out")"
    [ "$(wc -l <"$folder/nvcc.calls")" -eq "$times" ] ||
        fail "make $*: compiled $(wc -l <"$folder/nvcc.calls") times instead of $times"
}
unset GPU_ARCHS MAKEFLAGS MFLAGS MAKELEVEL
compiled 1
grep -q 'code=sm_80 .*code=sm_90 .*code=compute_80 ' "$folder/nvcc.calls" ||
    fail "not compiled for all that it knows: $(cat "$folder/nvcc.calls")"
compiled 1
compiled 2 GPU_ARCHS=90
compiled 2 GPU_ARCHS=90
grep -q 'Werror all-warnings .*-warn-spills.*Werror' "$folder/nvcc.calls" || fail "warnings are no errors"
end

begin a_soak_compiles_for_all_that_the_compiler_knows
make -n BUILD="$folder/build" NVCC="$folder/nvcc" GPU_ARCHS=90 soak >"$folder/out" 2>&1 ||
    fail "make soak: $(tail -n 1 "$folder/out")"
grep 'attention_mma.cu' "$folder/out" | grep -q 'code=sm_80 .*code=sm_90 .*code=compute_80 ' ||
    fail "not compiled for all: $(grep -m 1 'attention_mma.cu' "$folder/out")"
end

if [ ! -e "$plugin" ]; then
    echo "skip plugin_of_nvcc: $plugin is not built, for lack of nvcc (docs/gpu.md) or for sanitizers"
    exit "$failures"
fi

begin the_plugin_shows_its_door_and_nothing_else
shown=$(nm -D --defined-only "$plugin" | awk '{ print $3 }' | tr '\n' ' ')
[ "$shown" = "mpbench_plugin " ] || fail "it shows $shown"
needed=$(readelf -d "$plugin" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' | grep -vE '^lib(c|m|dl|pthread|gcc_s)[.]so|^ld-linux')
[ -z "$needed" ] || fail "it needs $needed"
end

begin the_plugin_has_an_image_of_every_file_of_kernels
for file in gpu/kernels/*.cu; do
    image=$build/plugin/images/$(basename "$file" .cu).fatbin
    [ -s "$image" ] || fail "$file was not compiled"
done
end

# Whether there is a driver here, and a card that it serves, is the machine's; where a card's file is
# there must be both.
begin the_plugin_opens_and_tells_the_truth_of_this_machine
said_of_gpu "$mpbench"
if [ -e /dev/nvidia0 ]; then
    expect_said 'its driver serves CUDA [0-9]'
elif grep -q '^ gpu no driver is installed (libcuda.so.1): install' "$folder/gpu"; then
    ! PATH=$PATH:/usr/sbin ldconfig -p | grep -q 'libcuda[.]so[.]1' || fail "there is a driver: $(cat "$folder/gpu")"
    run run simple --device gpu --steps 2 --no-history
    expect_error 3 'device gpu: no driver is installed'
else
    expect_said 'its driver serves CUDA [0-9]|no card that its driver serves|does not start|newer driver|or later is needed'
fi
run run simple --steps 2 --no-history
expect_status 0
end

exit "$failures"
