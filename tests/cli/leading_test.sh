#!/bin/sh
# shellcheck disable=SC1091,SC2034,SC2154,SC2317 # what shell.sh sets, reads and calls
# What a script says of its results: which way is better, which leads; and what names say where it does not.
. "$(dirname "$0")/../shell.sh"

# In bf16 both of its results are a tenth larger.
write() { # FIELDS
    cat >"$folder/says.lua" <<LUA
local mp = require "mp"
local nn, F = mp.nn, mp.fn
return mp.experiment {
    name = "says", $1
    data = function()
        return { train = mp.data.synthetic { shape = { 8 }, classes = 4, count = 256, batch = 32, shuffle = true },
            test = mp.data.synthetic { shape = { 8 }, classes = 4, count = 64, batch = 32 } }
    end,
    model = function() return nn.Sequential { nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 4) } end,
    loss = function(model, b) return F.cross_entropy(model(b.x), b.y) end,
    optim = function(params) return mp.optim.SGD(params, { lr = 0.01 }) end,
    eval = function(model, b)
        local more = model(b.x):dtype() == "fp32" and 1 or 1.1
        return { accuracy = 0.5 * more, wobble = 2 * more }
    end,
}
LUA
}
scan() {
    run scan "$folder/says.lua" -d cpu --threads 1 --quiet --formats bf16 --steps 4 --seeds 2 --batches 2 --json
    expect_status 0
}
write ''
write_tiny

begin "what leads and which way is better is guessed where no script says it"
scan
expect_out '"metric":"accuracy"'
expect_out '"label":"all bf16"[^}]*"metric_worse":-0\.[01]'
end

begin "a script says which result leads, and which way each is better"
write 'results = { wobble = "lower" }, leads = "wobble",'
scan
expect_out '"metric":"wobble"'
expect_out '"label":"all bf16"[^}]*"metric_worse":0\.[01]'
run run "$folder/says.lua" -p fp32 -d cpu --threads 1 --quiet
run eval @last -p fp32,bf16 -d cpu --threads 1 --quiet
expect_status 0
expect_out '^fp32 stays: all others lose'
write 'results = { wobble = "higher" }, leads = "wobble",'
scan
expect_out '"label":"all bf16"[^}]*"metric_worse":-0\.[01]'
run run "$folder/says.lua" -p fp32 -d cpu --threads 1 --quiet
run eval @last -p fp32,bf16 -d cpu --threads 1 --quiet
expect_status 0
expect_no_out 'all others lose'
end

begin "a run keeps it, for lists and comparisons"
write 'results = { wobble = "lower" }, leads = "wobble",'
for precision in fp32 bf16; do
    run run "$folder/says.lua" -p $precision -d cpu --threads 1 --quiet
    expect_status 0
done
run show @last
expect_out 'better\.wobble  *lower'
run ls
expect_out ' wobble '
expect_no_out 'accuracy'
run compare @last:fp32 @last:bf16 --target wobble=2.1
expect_status 0
expect_out ' and its wobble'
expect_out 'to wobble <= 2\.1'
end

begin "what cannot be said is refused"
write 'results = { wobble = "down" },'
run run "$folder/says.lua" --steps 1 --quiet
expect_err 'experiment.results.wobble: "higher" or "lower" expected'
write 'results = { "wobble" },'
run run "$folder/says.lua" --steps 1 --quiet
expect_err 'experiment.results: results by their names expected'
end

begin "what eval does not give is refused before the first step"
for said in 'leads = "acuracy", :leads: no result is named acuracy; did you mean accuracy?' \
    'leads = "nothing", :leads: no result is named nothing; there are accuracy, wobble' \
    'results = { wobbel = "lower" }, :results: no result is named wobbel; did you mean wobble?'; do
    write "${said%%:*}"
    run run "$folder/says.lua" -d cpu --no-history --quiet
    expect_error 1 "experiment.${said#*:}"
done
write 'results = { loss = "lower" }, leads = "loss",' # which eval adds
run run "$folder/says.lua" -d cpu --no-history --quiet
expect_status 0
expect_silent err
end

begin "what a loop of one's own did not give is told when it has ended"
sed 's/name = "tiny",/name = "tiny", leads = "anwser",/' "$tiny" >"$folder/leads.lua"
run run "$folder/leads.lua" --no-history
expect_status 0
expect_err '^experiment.leads: no result is named anwser; did you mean answer?$'
run run "$folder/leads.lua" --no-history --steps 3
expect_status 0
! grep -q 'experiment.leads' "$folder/err" || fail "it had no time to"
end

exit "$failures"
