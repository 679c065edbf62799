#!/bin/sh
# shellcheck disable=SC1091,SC2034,SC2154 # what shell.sh sets, reads and calls
# `make gpu-check` (check.sh) where there is no card, and over the emulated one.
. "$(dirname "$0")/../shell.sh"

here=$(dirname "$0")
plugin=$(dirname "$mpbench")/emulator/mpbench-gpu.so

# check STATUS PARTS: runs these parts; leaves their lines in out.
check() {
    GPU_CHECK_PARTS=$2 GPU_CHECK_OUT="$folder/left" MPBENCH=$mpbench \
        sh "$here/check.sh" >"$folder/out" 2>"$folder/err" </dev/null
    status=$?
    expect_status "$1"
}

begin its_parts_take_ten_minutes_together
total=$(sed -n "s/^parts='//; s/^[a-z]* \([0-9]*\) .*/\1/p" "$here/check.sh" | awk '{ s += $1 } END { print s }')
# shellcheck disable=SC2016 # what Markdown has around names
named=$(sed -n 's/^| `\(.*\)` |.*/\1/p' "$here/../../docs/gpu.md" | tr -d ',`' | wc -w)
listed=$(grep -c '^part_[a-z]*()' "$here/check.sh")
{ [ "$total" -gt 300 ] && [ "$total" -le 600 ]; } || fail "their limits are $total seconds"
[ "$named" -eq "$listed" ] || fail "docs/gpu.md names $named of $listed parts"
end

# In an empty folder make would build all of them.
begin what_its_parts_run_is_what_make_builds
programs=$(sed -n '/^part_/,/}/p' "$here/check.sh" | tr -s ' ;' '\n' | grep -E '^[a-z]+/[a-z_]+_test$')
[ "$(echo "$programs" | wc -l)" -gt 15 ] || fail "its parts run no more than $programs"
env -u MAKEFLAGS -u MFLAGS -u MAKELEVEL make -n BUILD="$folder/none" NVCC= gpu-check >"$folder/made" 2>&1 ||
    fail "make: $(tail -n 1 "$folder/made")"
for program in $programs; do
    grep -q -- "-o $folder/none/tests/$program " "$folder/made" || fail "make gpu-check builds no $program"
done
end

begin no_card_is_said_and_is_status_3
MPBENCH_GPU=$folder/none.so check 3 machine
expect_out '^gpu-check: no card: device gpu: MPBENCH_GPU: .*none.so: No such file'
[ "$(wc -l <"$folder/out")" -eq 1 ] || fail "more than one line: $(tail -n 1 "$folder/out")"
end

if [ ! -e "$plugin" ]; then
    echo "skip check_over_emulated_card: $plugin is not built: it needs cuda.h and a C++ compiler"
    exit "$failures"
fi
export MPBENCH_GPU="$plugin"

begin driver_without_a_card_is_status_3
MPBENCH_EMULATOR=cards=0 check 3 machine
expect_out 'no card: .*this machine has no card that its driver serves'
end

begin parts_say_what_came_of_them
check 0 "machine bits"
expect_out '^machine: ok, [0-9]* s: .*: [2-9] ok, 0 failed, '
expect_out '^bits: ok, .*: [1-9][0-9]* ok, 0 failed, 0 skipped$'
expect_out "^gpu-check: all of it lies in $folder/left\$"
[ "$(wc -l <"$folder/out")" -eq 3 ] || fail "parts ran that nobody asked for"
grep -q '^ok uniform_numbers_are_the_cpus' "$folder/left/bits.log" || fail "what a part printed is lost"
grep -q '"name"' "$folder/left/doctor-json.txt" || fail "the card's properties are lost"
end

# A kernel that dies makes every later call fail.
begin part_that_fails_is_status_1
MPBENCH_EMULATOR=crash=50:700 check 1 bits
expect_out '^bits: FAILED, .* failed, 0 skipped; not ok '
end

# Several run at a time. A log that is not appended to loses lines of theirs.
begin operations_are_run_and_none_is_a_failure
mkdir -p "$folder/stub/tests/conformance"
cp "$mpbench" "$folder/stub/mpbench"
for test in conformance_test multi_test update_test; do
    # shellcheck disable=SC2016 # for the stub
    echo '[ "$1" = --operations ] && { seq 60; exit 0; }; echo "ok ${1:-one} gpu"' |
        sed '1i #!/bin/sh' >"$folder/stub/tests/conformance/$test"
    chmod +x "$folder/stub/tests/conformance/$test"
done
cat >"$folder/stub/tests/conformance/multi_test" <<'STUB'
#!/bin/sh
flags=$(sed -n 's/^flags:[[:space:]]*//p' /proc/$$/fdinfo/1)
[ $((0$flags & 02000)) -ne 0 ] && echo ok appends || echo not ok appends
STUB
whole=$mpbench
mpbench=$folder/stub/mpbench
check 0 conformance
expect_out '^conformance: ok, .*: 62 ok, 0 failed, 0 skipped$'
rm "$folder/stub/tests/conformance/conformance_test"
check 1 conformance
expect_out '^conformance: FAILED, .*gives no operations'
mpbench=$whole
end

begin part_that_is_none_is_refused
check 2 machines
expect_out '^gpu-check: no such part: machines$'
end

begin part_that_takes_too_long_is_cut_off
GPU_CHECK_SCALE=0.001 check 1 bits
expect_out '^bits: cut off, '
end

exit "$failures"
