#!/bin/sh
# shellcheck disable=SC1091,SC2034,SC2154 # what shell.sh sets and reads
# bench: what each format gains over fp32, measured.
. "$(dirname "$0")/../shell.sh"

begin "bench formats measures every format that trains, and int8 as it is evaluated"
run bench formats --quick -d cpu
expect_status 0
expect_out "^cpu: "
expect_out "^fp32 .* 1\.00x  *1\.00x  *1\.00x  *1\.00x$"
expect_out "^bf16  *16 .*x  .*x  .*x  .*x$"
expect_out "^fp16  *16  *65504 .*x  .*x  .*x  .*x$"
expect_out "^mxfp8  *8\.25  *448 .*x  .*x  .*x  .*x$"
expect_out "^int8  *8  *127  *1  *[0-9.]*x  *[0-9.]*x  *-  *0\.2[5-9]x$"
expect_out "^Nothing trains in int8: "
expect_no_out "nan"
expect_err "^measures [0-9]* formats on cpu, about "
end

begin "bench formats writes JSON, with nothing unknown in formats that train"
run bench formats --quick --quiet --json -d cpu --threads 1
expect_status 0
expect_silent err
expect_out '"threads":1,'
expect_out '{"format":"fp32","bits":32,.*"speedup":{"product":1,"convolution":1,"step":1},.*"memory_ratio":1,'
expect_out '"format":"bf16","bits":16,[^}]*"speedup":{"product":[0-9.]*,"convolution":[0-9.]*,"step":[0-9.]*}'
expect_out '"format":"int8","bits":8,"largest":127,"min_normal":1,"speedup":{"product":[0-9.]*,"convolution":[0-9.]*,"step":null},'
expect_out '"seconds":{"product":[0-9.e-]*,"convolution":[0-9.e-]*,"step":null},"memory_ratio":0\.2[5-9][0-9]*,"memory":null}'
sed 's/.*"format":"fp16"//' "$folder/out" | cut -d '{' -f 1-3 | grep -q null && fail "fp16 lacks a number"
end

begin "bench refuses what it does not measure"
run bench weights
expect_usage_error "weights: not known; what can be measured: formats"
run bench formats -d nowhere
expect_silent out
expect_error 2 "nowhere"
end

exit "$failures"
