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
expect_out "tf32 *to look at only"
expect_out "^history .*history.db: "
expect_out "^what to do "
expect_no_out "matmul"
[ "$(wc -l <"$folder/out")" -le 24 ] || fail "$(wc -l <"$folder/out") lines"
echo "not a history" >"$folder/other.db"
run doctor --db "$folder/other.db"
expect_status 0
expect_out "for a history: see above"
end

begin "doctor --verbose and --json list what devices run"
run doctor --verbose
expect_status 0
expect_out "^devices *cpu "
expect_out "^  matmul  *- *yes"
run doctor --json
expect_status 0
expect_out '"matmul":\["fp32","bf16","fp16"\]'
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
