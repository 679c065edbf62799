#!/bin/sh
# shellcheck disable=SC1091,SC2034,SC2154 # what shell.sh sets and reads
# formats: what becomes of a number in each format; and colour, which it shows by.
. "$(dirname "$0")/../shell.sh"

begin "formats shows that a product can vanish"
run formats '1e-4*1e-4'
expect_status 0
expect_out "^fp16 .*0x0000 *0 .*flushed to zero"
expect_out "^bf16 .*0x322C "
expect_silent err
end

begin "formats shows the ends of the formats"
run formats 65519.99 65520 464 2^-25 -0.0
expect_status 0
expect_out "^fp16 .*0x7BFF *65504 "
expect_out "^fp16 .*0x7C00 *inf .*overflowed"
expect_out "^e4m3 .*0x7E *448 .*"
run formats -- -2^-25
expect_out "^fp16 .*flushed to zero"
run formats -1.0625
expect_out "^e4m3 .*0xB8 *-1 .*rounded"
end

begin "formats without a number lists them"
run formats
expect_status 0
expect_out "^fp16 .* 65504 "
expect_out "^e5m2 .* 57344 "
end

begin "formats refuses what is no number"
run formats '1+'
expect_usage_error "column 3"
run formats 1 'two'
expect_usage_error "column 1"
end

begin "formats writes JSON"
run formats --json '1e-4*1e-4' inf
expect_status 0
expect_out '"format":"fp16","hex":"0x0000"'
expect_out '"expression":"inf","value":"inf"'
end

begin "formats says what a double cannot hold"
run formats 1e400
expect_status 0
expect_out "^1e400 = inf$"
expect_out "exceeds a double.*neighbours are those of the rounded value"
run formats -1e-400
expect_out "too small for a double.*neighbours are those of the rounded value"
run formats inf 1/0 65504*2 1e300 0
expect_no_out "double"
run formats --json 1e400 1e300
expect_out '"expression":"1e400","value":"inf","beyond_double":true,'
expect_out '"expression":"1e300","value":1e+300,"beyond_double":false,'
end

begin "formats --block scales by the rule that is asked for"
run formats --block 7 0.2
expect_status 0
expect_out "^7  .* 8  "
expect_out "scales=up: large enough"
run formats --block --recipe scales=floor 7 0.2
expect_status 0
expect_out "^saturated .* 1 "
expect_out "scales=floor: by the standard's rule"
run formats --block --json --recipe scales=floor 7
expect_out '"format":"mxfp4","element":"e2m1","scale_format":"e8m0","block":32,"scales":"floor"'
expect_out '"scale":1,"element":6,"value":6,"error":-1'
run formats --block --json 7
expect_out '"format":"mxfp4",.*"scales":"up",'
expect_out '"format":"nvfp4","element":"e2m1","scale_format":"e4m3","block":16,"scales":null,'
run formats --block --recipe blocks=best 7
expect_usage_error "blocks=best changes nothing that is shown"
run formats --recipe scales=floor 7
expect_usage_error "for --block alone"
end

begin "colour comes when it is asked for"
escape=$(printf '\033')
run formats 1
grep -q "$escape" "$folder/out" && fail "colour without a terminal"
run formats 1 --color always
expect_out "$escape"
end

exit "$failures"
