#!/bin/sh
# shellcheck disable=SC1091,SC2034,SC2154 # what shell.sh sets and reads
# doctor: what this machine and this build can do, for people and for programs.
. "$(dirname "$0")/../shell.sh"

begin "doctor fits on a screen and says what to do"
run doctor
expect_status 0
expect_out "^mpbench .*oneDNN [0-9].*Lua 5.*SQLite 3"
expect_out "^devices *cpu "
expect_out "bf16 *trains"
expect_out "tf32 *trains, no faster than fp32"
expect_out "^history .*history.db: "
expect_out "^what to do "
expect_no_out "matmul"
[ "$(wc -l <"$folder/out")" -le 24 ] || fail "$(wc -l <"$folder/out") lines"
echo "not a history" >"$folder/other.db"
run doctor --db "$folder/other.db"
expect_status 0
expect_out "for a history: see above"
end

# It says what is wrong under `devices`; nothing missing would deny it.
begin "a card's plugin of another build is not told to be nothing missing"
cat >"$folder/other.c" <<'C'
static const struct { unsigned long stamp; const void *backend; } plugin = {1, 0};
const void *mpbench_plugin(void) { return &plugin; }
C
compile "$folder/other.so" "$folder/other.c" || fail "it does not compile: $(head -n 1 "$folder/err")"
export MPBENCH_GPU="$folder/other.so"
run doctor
unset MPBENCH_GPU
expect_status 0
expect_out "gpu  .*other.so"
expect_out "^what to do  *nothing is missing but gpu (see devices): "
expect_no_out "nothing is missing:"
end

begin "what doctor says of low formats is what bench formats measures"
run doctor
than=fp32
! grep -q 'bf16 trains, with products faster than in fp32' "$folder/out" || than=bf16
tr -s ' \n' '  ' <"$folder/out" >"$folder/words"
grep -q "e4m3, e5m2, fp8, mxfp8, .*: products alone, no faster than in $than" "$folder/words" ||
    fail "fp8 is not held against $than"
gain_of() { tr '}' '\n' <"$folder/out" | sed -n "s/.*\"format\":\"$1\".*\"product\":\([0-9.]*\).*/\1/p"; }
# Whether what was measured last is what doctor says; $apart tells what is not.
agrees() {
    apart=
    for format in mxfp4 nvfp4; do
        a=$(gain_of $format) b=$(gain_of $than) says=not
        ! grep -q " ${format}[a-z0-9_, ]*: products alone, those of linear layers faster than in $than" "$folder/words" || says=faster
        case $says in
        faster) awk -v a="${a:-0}" -v b="${b:-0}" 'BEGIN { exit !(b > 0 && a + 0 > 1.02 * b) }' || apart="$apart $format ${a:-none}, $than ${b:-none}" ;;
        *) awk -v a="${a:-0}" -v b="${b:-0}" 'BEGIN { exit !(a > 0 && a + 0 < 1.3 * b) }' || apart="$apart $format ${a:-none}, $than ${b:-none}" ;;
        esac
    done
    [ -z "$apart" ]
}
# On one thread, as doctor measures. Tests beside it disturb one measurement, by chance another, not three.
for _ in 1 2 3; do
    run bench formats --quick --threads 1 --json
    expect_status 0
    ! agrees || break
done
[ -z "$apart" ] || fail "three times:$apart"
end

begin "doctor --verbose and --json list what devices run"
run doctor --verbose
expect_status 0
expect_out "^devices *cpu "
expect_out "^  matmul  *- *yes"
run doctor --json
expect_status 0
expect_out '"matmul":\["fp32","tf32","bf16","fp16"\]'
end

begin "doctor --json has what doctor says of libraries and of the history"
rm -f "$folder/none.db"
run doctor --json --db "$folder/none.db"
expect_out '"libraries":{"oneDNN":"[0-9.]*","Lua":"5[0-9.]*","SQLite":"3[0-9.]*"}'
expect_out '"history":{"path":"[^"]*/none.db","readable":false,"runs":0,"checked":false,"error":null}'
"$mpbench" run simple --steps 5 --quiet --db "$folder/one.db" >/dev/null 2>&1 || fail "it does not train"
run doctor --json --db "$folder/one.db"
expect_out '"readable":true,"runs":1,"checked":false,"error":null'
run doctor --json --verbose --db "$folder/one.db"
expect_out '"readable":true,"runs":1,"checked":true,"error":null'
run doctor --json --db "$folder/other.db"
expect_status 0
expect_out '"readable":false,"runs":null,"checked":false,"error":"[^"]*other.db'
end

exit "$failures"
