#!/bin/sh
# shellcheck disable=SC1091,SC2034,SC2154 # what shell.sh sets and reads
# Parameters that are one of a few texts: what else is set is refused before anything runs or is
# recorded. $MPBENCH is the program.
. "$(dirname "$0")/../shell.sh"

cat >"$folder/sized.lua" <<'LUA'
local mp = require "mp"
return mp.experiment { name = "sized", params = { size = { "small", "medium", "paper" }, steps = 60, keep = 5 },
  run = function(run)
    local net = run:model(mp.nn.Linear(4, 1))
    local opt = mp.optim.SGD(net:parameters(), { lr = 0.1 })
    run:result { is_small = run.params.size == "small" and 1 or 0 }
    for _ = 1, run.params.steps do
      opt:zero_grad()
      local loss = net(mp.randn(8, 4)):square():mean()
      loss:backward()
      opt:step()
      run:log { loss = loss }
    end
  end }
LUA

begin "the first of its choices is what a parameter is as it comes"
run run "$folder/sized.lua" --json
expect_status 0
expect_out '"is_small":1[,}]'
run run "$folder/sized.lua" --json --set size=paper
expect_status 0
expect_out '"is_small":0[,}]'
end

begin "what is none of the choices is refused, and no run is recorded"
run run "$folder/sized.lua" --set size=large --quiet
expect_status 2
expect_err "^mpbench: --set size=large: small, medium or paper expected$"
run matrix "$folder/sized.lua" --set size=small,large
expect_status 2
expect_err "size=large: small, medium or paper expected"
run fork 1 --at 30 --set size=large
expect_status 2
expect_err "^mpbench: --set size=large: small, medium or paper expected$"
run ls --json
[ "$(grep -o '"id":' "$folder/out" | wc -l)" -eq 2 ] || fail "a refused run is in the history"
end

begin "help tells what a parameter may be"
run help scalers
expect_status 0
expect_out '^  strategy  *run (run, follow, mean or clipping)$'
sed 's/^return mp.experiment/local e = mp.experiment/' "$folder/sized.lua" >"$folder/changed.lua"
cat >>"$folder/changed.lua" <<'LUA'
e.parameter_choices.size = "\27]0;x"
return e
LUA
run help "$folder/changed.lua"
expect_status 0
! grep -q "$(printf '\033')" "$folder/out" || fail "an escape reaches the terminal"
end

begin "choices that cannot be told apart are refused where they are declared"
# refused LIST PART: such a parameter is none.
refused() {
    sed "s|{ \"small\", \"medium\", \"paper\" }|$1|" "$folder/sized.lua" >"$folder/wrong.lua"
    run run "$folder/wrong.lua" --quiet
    expect_error 1 "params.size: $2"
}
refused '{}' 'a list of texts expected'
refused '{ "small" }' 'a list of texts expected'
refused '{ small = 1, "a", "b" }' 'a list of texts expected'
refused '{ "a", "b", nil, "c" }' 'a list of texts expected'
refused '{ "a", "a" }' 'choices are different texts'
refused '{ "a", "b c" }' 'choices are different texts'
refused '{ "a", "" }' 'choices are different texts'
refused '{ "a", 2 }' 'choices are different texts .* got 2 as number 2'
refused '{ "a", ("b"):rep(64) }' 'choices of up to 63 bytes are possible'
refused '{ ("a"):rep(63), ("b"):rep(63), ("c"):rep(32) }' 'choices of up to 159 bytes in all'
sed 's|{ "small", "medium", "paper" }|{ ("a"):rep(63), ("b"):rep(63), ("c"):rep(31) }|' "$folder/sized.lua" \
    >"$folder/long.lua"
run run "$folder/long.lua" --quiet --no-history --set "size=$(printf 'b%.0s' $(seq 63))"
expect_status 0
refused 'print' 'a number, string, boolean or list of strings expected, got function'
end

begin "a loop that plans its steps tells how many there are"
sed 's/    for _ = 1, run.params.steps do/    run:plan(7)\n    for _ = 1, 7 do/; s/steps = 60, //' \
    "$folder/sized.lua" >"$folder/planned.lua"
run run "$folder/planned.lua" --quiet
expect_status 0
run show @last
expect_out "steps  *7 of 7:"
run run "$folder/planned.lua" --quiet --steps 3
expect_status 0
run show @last
expect_out "steps  *3 of 3:"
sed 's/plan(7)/plan(0)/' "$folder/planned.lua" >"$folder/wrong.lua"
run run "$folder/wrong.lua" --quiet
expect_error 1 "run:plan: steps: a positive whole number expected, got 0"
sed 's/plan(7)/plan()/' "$folder/planned.lua" >"$folder/wrong.lua"
run run "$folder/wrong.lua" --quiet
expect_error 1 "run:plan: steps: a positive whole number expected, got nil"
end

exit "$failures"
