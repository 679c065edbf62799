#!/bin/sh
# shellcheck disable=SC1091,SC2034,SC2154 # what shell.sh sets and reads
# Formats whose numbers share scales, as people meet them: runs and layers in them, recipes, forks and
# resumes to the bit, and what they make of a block of numbers.
. "$(dirname "$0")/../shell.sh"

says() { # ID KEY: of the run's JSON
    "$mpbench" show "$1" --json | grep -o "\"$2\": *[^,}]*" | head -n 1
}

cat >"$folder/small.lua" <<'LUA'
local mp = require "mp"
local nn, F = mp.nn, mp.fn
return mp.experiment { name = "small", params = { steps = 60, toggles = 0 }, run = function(run)
    local p = run.params
    local net = run:model(nn.Sequential { nn.Conv2d(4, 24, 3, { padding = 1 }):named "conv", nn.ReLU(),
        nn.Flatten(), nn.Linear(24 * 16, 40):named "hidden", nn.ReLU(), nn.Linear(40, 4):named "head" })
    local opt = mp.optim.Adam(net:parameters(), { lr = 1e-3 })
    local scaler, w = run:scaler(), mp.randn(4, 4, 4, 4)
    local formats = { "fp8", "mxfp8", "bf16", "mxfp6", "mxfp6_e2m3", "e4m3", "mxfp4", "fp32", "nvfp4",
        "e5m2", "fp8", "fp16", "auto" }
    for step = 1, p.steps do
        if p.toggles > 0 and step % p.toggles == 0 then
            net:find("h*"):precision(formats[step // p.toggles % #formats + 1])
        end
        local y = mp.randint(4, 16)
        local x = F.embedding(y, w:reshape(4, 64)):reshape(16, 4, 4, 4) + mp.randn(16, 4, 4, 4)
        opt:zero_grad()
        local loss = mp.autocast(function() return F.cross_entropy(net(x), y) end)
        scaler:scale(loss):backward()
        scaler:step(opt)
        scaler:update()
        run:log { loss = loss }
    end
end }
LUA

begin "every scaled format trains, as itself and on both devices alike"
for format in fp8 mxfp8 mxfp6 mxfp6_e2m3 nvfp4 e4m3 e5m2; do
    run run "$folder/small.lua" -p $format --threads 1 --quiet --json
    expect_status 0
    expect_out "\"precision\": *\"$format\""
    expect_out "\"status\": *\"finished\""
done
end

begin "a fork and a resume end as the run that was never interrupted, through every format"
run run "$folder/small.lua" --name whole --threads 1 -p bf16 --set toggles=3 --checkpoint-every 20 \
    --recipe history=4,rounding=random,hadamard=on --quiet
expect_status 0
last=$(says whole last)
[ -n "$last" ] || fail "no loss"
run fork whole --at 31 --quiet --name forked
expect_status 0
[ "$(says forked last)" = "$last" ] || fail "the fork: $(says forked last), not $last"
run resume whole --at 40 --quiet
expect_status 0
[ "$(says whole last)" = "$last" ] || fail "the resume: $(says whole last), not $last"
end

begin "a run in fp8 forks and resumes with the scales that it had"
run run "$folder/small.lua" --name scales --threads 1 -p fp8 --checkpoint-every 25 \
    --recipe history=8 --quiet
expect_status 0
last=$(says scales last)
run fork scales --at 33 --quiet --name scaled
expect_status 0
[ "$(says scaled last)" = "$last" ] || fail "the fork: $(says scaled last), not $last"
run run "$folder/small.lua" --name chance --threads 1 -p mxfp4 --recipe rounding=random \
    --checkpoint-every 20 --quiet
run fork chance --at 31 --quiet --name chosen
[ "$(says chosen last)" = "$(says chance last)" ] || fail "what is left to chance came otherwise"
run run "$folder/small.lua" --name other --threads 1 -p fp8 --recipe fp8=current --quiet
[ "$(says other last)" != "$last" ] || fail "the recipe made no difference"
end

begin "what a recipe does not know is refused by name"
run run "$folder/small.lua" -p fp8 --recipe fp8=soon
expect_error 2 "fp8=soon: delayed or current or blocks"
run run "$folder/small.lua" -p fp8 --recipe fp7=current
expect_error 2 "fp7: not known"
run help recipes
expect_out "rounding=nearest|random"
end

begin "formats shows a block of numbers"
run formats --block 448 1 0.3
expect_status 0
expect_out "mxfp8"
expect_out "^scale"
run formats --block 3 2688 --json
expect_status 0
expect_out '"format": *"nvfp4"'
run formats --block
expect_error 2 "from 1 to 128 numbers"
run formats --block 1 two
expect_error 2 "two"
end

exit "$failures"
