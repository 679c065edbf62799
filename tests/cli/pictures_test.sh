#!/bin/sh
# shellcheck disable=SC1091,SC2034,SC2154,SC2317 # what shell.sh sets, reads and calls
# Pictures that a script keeps: where they lie, who names them, and what becomes of them.
. "$(dirname "$0")/../shell.sh"
export MPBENCH_DB="$folder/history.db"

cat >"$folder/draws.lua" <<'LUA'
local mp = require "mp"
return mp.experiment { name = "draws", params = { steps = 4, name = "seen" }, run = function(run)
    local w = mp.zeros(2)
    w:requires_grad(true)
    local opt = mp.optim.SGD({ w }, { lr = 0.1 })
    for step = 1, run.params.steps do
        opt:zero_grad()
        local loss = ((w - 1) * (w - 1)):sum()
        loss:backward()
        opt:step()
        run:picture(run.params.name, mp.full(step / 4, 6, 5, 4, 1), { columns = 3 })
    end
    run:result { twice = run:evaluate(function(x) return x * 2 end, 21) }
end }
LUA
pictures() { find "$folder/checkpoints" -name '*.png' | sed 's|.*/checkpoints/||' | sort | tr '\n' ' '; }
draw() { run run "$folder/draws.lua" --threads 1 --quiet "$@"; }

begin "a run keeps its pictures as files of its own"
draw
expect_status 0
expect_out "twice       42"
[ "$(pictures)" = "1/seen-1.png 1/seen-2.png 1/seen-3.png 1/seen-4.png " ] || fail "it kept $(pictures)"
run show 1
expect_out "picture    seen-4.png"
expect_out "/checkpoints/1/seen-4.png; 3 before it"
run export 1 --format png -o "$folder/newest.png"
expect_status 0
cmp -s "$folder/newest.png" "$folder/checkpoints/1/seen-4.png" || fail "the newest is another one"
end

begin "pictures stay with their run, and go with it"
touch "$folder/checkpoints/1/left.png"
run gc
expect_out "1 file of checkpoints that no run needs removed"
[ "$(pictures | wc -w)" = 4 ] || fail "gc left $(pictures)"
run rm 1
[ -z "$(pictures)" ] || fail "rm left $(pictures)"
run export 1 --format png -o "$folder/newest.png"
expect_status 2
end

begin "a fork draws what comes after its step, and a run without a history nothing"
draw --checkpoint-every 2
run fork @last --at 2 --quiet
expect_status 0
[ "$(pictures)" = "2/seen-1.png 2/seen-2.png 2/seen-3.png 2/seen-4.png 3/seen-2.png 3/seen-3.png 3/seen-4.png " ] ||
    fail "they have $(pictures)"
draw --no-history
expect_status 0
[ "$(pictures | wc -w)" = 7 ] || fail "there are $(pictures)"
end

begin "what cannot be a file's name, or a picture, is refused"
draw --set name=../up
expect_error 1 "letters, digits"
sed -i 's/4, 1), { columns/4, 2), { columns/' "$folder/draws.lua"
draw
expect_error 1 "1 or 3 channels"
end
exit "$failures"
