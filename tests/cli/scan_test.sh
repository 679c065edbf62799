#!/bin/sh
# shellcheck disable=SC1091,SC2016,SC2034,SC2154,SC2317 # what shell.sh sets, reads and calls
# `mpbench scan`: it finds the layers that a format breaks, and its policy trains.
. "$(dirname "$0")/../shell.sh"

# One layer's outputs are too large for fp16, and made small again by the next: nothing is wrong with
# it in a format of more range.
cat >"$folder/subject.lua" <<'LUA'
local mp = require "mp"
local nn, F = mp.nn, mp.fn
return mp.experiment {
    name = "subject", params = { fragile = 0, times = 1e6, lr = 0.01, batch = 32 },
    data = function(p)
        return { train = mp.data.synthetic { shape = { 24 }, classes = 5, count = 2048, batch = p.batch, shuffle = true } }
    end,
    model = function(p)
        local Net = nn.class "Net"
        function Net:init()
            self.layers = { nn.Linear(24, 32), nn.Linear(32, 32), nn.Linear(32, 32), nn.Linear(32, 32) }
            self.head = nn.Linear(32, 5)
            for i, layer in ipairs(self.layers) do
                if i == p.fragile then mp.no_grad(function() layer.weight:copy(layer.weight * p.times) end) end
            end
        end
        function Net:forward(x)
            for i, layer in ipairs(self.layers) do
                x = F.relu(layer(x)):to "fp32"
                if i == p.fragile then x = x * (1 / p.times) end
            end
            return self.head(x)
        end
        return Net()
    end,
    loss = function(model, b) return F.cross_entropy(model(b.x), b.y) end,
    optim = function(params, p) return mp.optim.Adam(params, { lr = p.lr }) end,
}
LUA
scan() {
    run scan "$folder/subject.lua" -d cpu --threads 1 --quiet "$@"
}
policy_of() { # LAYER, of standard output as JSON
    sed -n "s/.*\"name\":\"$1\",\"parameters\":[0-9]*,\"policy\":\"\([^\"]*\)\".*/\1/p" "$folder/out"
}

# A policy is verified where its seeds told so, of standard output as JSON.
expect_verified_as_told() {
    if grep -q '"label":"policy"[^}]*"outcome":"within"' "$folder/out"; then
        expect_out '"verified":true,"unverified":null'
    else
        expect_out '"label":"policy"[^}]*"told":false,"outcome":"cannot be told"'
        expect_out '"verified":false,"unverified":"cannot be told"'
        expect_out '"verdict":"[^"]*cannot be told'
    fi
}

begin "a layer that fp16 breaks is found wherever it is, by every seed"
for seed in 1 2 3 4 5; do
    fragile=$((seed % 4 + 1))
    scan --quick --json --formats fp16 --seed "$seed" --set fragile="$fragile"
    expect_status 0
    broken=$(grep -o '"name":"[^"]*","parameters":[0-9]*,"policy":"[^"]*","formats":{"fp16":{"breaks":true' "$folder/out" |
        sed 's/"name":"\([^"]*\)".*/\1/')
    [ "$broken" = "layers.$fragile" ] || fail "seed $seed: layers.$fragile is fragile, \"$broken\" was found"
    [ "$(policy_of "layers.$fragile")" = fp32 ] || fail "seed $seed: it is not left in fp32"
done
end

begin "a format that nothing trains in is refused before a scan is begun"
run scan "$folder/subject.lua" -d cpu --formats int8 --quick
expect_error 3 "--formats: int8: for evaluation alone"
run ls --json
expect_no_out scan
run scan "$folder/subject.lua" -d cpu --formats int8 --quick
expect_error 3
grep -q "goes on" "$folder/err" && fail "a scan goes on"
end

begin "its policy trains where all low does not, and --layers takes it"
scan --json --formats fp16,bf16 --steps 30 --seeds 2 --set fragile=2 -o "$folder/policy.lua"
expect_status 0
expect_out '"label":"all fp16"[^}]*"within":false'
expect_out '"label":"policy"[^}]*"within":true'
expect_verified_as_told
grep -q '^    \["layers.2"\] = "\(fp32\|bf16\)",$' "$folder/policy.lua" || fail "$(cat "$folder/policy.lua")"
run run "$folder/subject.lua" --set fragile=2 -p fp32 --layers "$folder/policy.lua" --layer 'head=bf16' -d cpu --json --quiet
expect_status 0
expect_out '"name":"head","precision":"bf16"'
expect_no_out '"name":"layers.2","precision":"fp16"'
rm "$folder/policy.lua"
run fork @last --at 10 --quiet # its rows were kept with the run
expect_status 0
end

begin "a scale that begins too high, and skips a step of every seed, ends no scan"
sed 's/F.cross_entropy(model(b.x), b.y)/& * 1000/' "$folder/subject.lua" >"$folder/high.lua"
run scan "$folder/high.lua" -d cpu --threads 1 --quiet --json --formats fp16 --steps 4 --seeds 24
expect_status 0
! grep -q '"scale":65536' "$folder/out" || fail "nothing overflowed at the first scale"
expect_out '"label":"all fp16"[^}]*"diverged":0'
expect_out '"label":"fp32"[^}]*"skipped":\[0,0,'
expect_out '"label":"all fp16"[^}]*"skipped":\[[1-4],[1-4],'
run show scan:last
expect_status 0
expect_out '^All fp16 skipped [1-4].* of 4 steps (of a seed, at the most), in which'
end

begin "of a healthy model every layer may go low"
scan --json --formats bf16 --quick
expect_status 0
for layer in layers.1 layers.4 head; do
    damage=$(sed -n "s/.*\"name\":\"$layer\"[^}]*\"damage\":\([0-9.e-]*\).*/\1/p" "$folder/out")
    awk -v d="$damage" 'BEGIN { exit !(d > 0 && d < 0.1) }' || fail "$layer has damage $damage"
done
end

begin "of scaled formats what their products take is counted, at their own scales"
scan --json --formats mxfp8,mxfp4,bf16 --quick
expect_status 0
of() { # FORMAT KEY: of the head
    sed -n "s/.*\"name\":\"head\".*\"$1\":{[^}]*\"$2\":\([^,}]*\).*/\1/p" "$folder/out"
}
awk -v four="$(of mxfp4 flushed)" -v eight="$(of mxfp8 flushed)" 'BEGIN { exit !(four > 0.01 && four > 1.5 * eight) }' ||
    fail "flushed are $(of mxfp4 flushed) in mxfp4 and $(of mxfp8 flushed) in mxfp8"
awk -v least="$(of mxfp4 least_scale)" -v middle="$(of mxfp4 middle_scale)" -v most="$(of mxfp4 most_scale)" \
    'BEGIN { exit !(least <= middle && middle <= most && least < most && most < 20) }' ||
    fail "scales are $(of mxfp4 least_scale) $(of mxfp4 middle_scale) $(of mxfp4 most_scale)"
[ "$(of bf16 least_scale)" = null ] || fail "bf16 has scales of blocks"
scan --json --formats mxfp4 --quick --recipe scales=floor
awk -v beyond="$(of mxfp4 overflowed)" 'BEGIN { exit !(beyond > 0.001) }' ||
    fail "of floor $(of mxfp4 overflowed) saturate"
end

begin "sentences fit a page, and how busy the machine was is told"
scan --formats bf16 --quick
expect_out '^Damage: '
expect_no_out 'Of what a layer loses'
expect_no_out 'shares scales'
[ "$(sed -n '/^Damage/,$p' "$folder/out" | awk 'length > 100' | wc -l)" -eq 0 ] || fail "a line is wider than 100"
scan --formats bf16 --quick --json
expect_out '"others_busy": *[0-9n]'
end

begin "what a table of several formats tells, and of activations beneath them, is said"
scan --formats bf16,mxfp4 --quick
expect_out '^Of what a layer loses, flushed and beyond are each the most of all formats[.]$'
expect_out '^Of what shares scales, as mxfp4, activations are as all else is, here fp32[.] A run of -p mxfp4'
end

begin "damage of more than the whole is a number, not a power of ten"
scan --formats mxfp4 --quick --batches 2 --set fragile=2
expect_out '  [1-9][0-9][0-9] %  '
expect_no_out 'e+0. %'
end

begin "a trained run is scanned from its checkpoint"
run run "$folder/subject.lua" -p fp32 --steps 20 --quiet -d cpu --set fragile=3
run scan @last --quick --formats fp16 --json -d cpu --quiet
expect_status 0
expect_out '"subject":"run [0-9]* at step 20"'
[ "$(policy_of layers.3)" = fp32 ] || fail "its parameters are not the run's"
end

# What goes low besides products: a norm that is given more than fp16 holds.
cat >"$folder/keep.lua" <<'LUA'
local mp = require "mp"
local nn, F = mp.nn, mp.fn
return mp.experiment {
    name = "keep", params = { lr = 0.01, width = 24 },
    data = function(p)
        return { train = mp.data.synthetic { shape = { 24 }, classes = 5, count = 2048, batch = 32, shuffle = true } }
    end,
    model = function(p)
        local Net = nn.class "Net"
        function Net:init()
            self.a, self.norm, self.head = nn.Linear(24, p.width), nn.LayerNorm(p.width), nn.Linear(p.width, 5)
        end
        function Net:forward(x) return self.head(F.relu(self.norm(self.a(x):to "fp32" * 1e5))) end
        return Net()
    end,
    loss = function(model, b) return F.cross_entropy(model(b.x), b.y) end,
    optim = function(params, p) return mp.optim.Adam(params, { lr = p.lr }) end,
}
LUA
next_command() { # of standard output: the last command that it names
    sed -n "s|^  mpbench |'$mpbench' |p" "$folder/out"
}
loss_of() {
    "$mpbench" show @last --json | sed -n 's/.*"loss":{"first":[^,]*,"last":\([^,]*\).*/\1/p'
}

begin "of a run that lost by what it kept low, the command that is told mends it"
run run "$folder/keep.lua" -p fp32 --set width=32 --steps 40 --seed 2 --quiet -d cpu
whole=$(loss_of)
run run "$folder/keep.lua" -p fp16 --keep-fp32 none --loss-scale 1 --set width=32 --steps 40 --seed 2 --quiet -d cpu
expect_status 1
run scan @last --formats fp16,bf16 --steps 10 --seeds 1 --quiet
expect_status 0
expect_out "^  mpbench run $folder/keep.lua -p fp32 .*--keep-fp32 none"
expect_out '^There what --keep-fp32 none puts low outside of these layers stays in fp32'
expect_out ' --set width=32'
expect_out ' --seed 2'
expect_out ' --steps 40'
expect_no_out 'loss-scale' # that which may have lost
next_command >"$folder/next"
sh "$folder/next" >"$folder/out" 2>"$folder/err" || fail "$(cat "$folder/err")"
mended=$(loss_of)
awk -v a="$whole" -v b="$mended" 'BEGIN { exit !(b > 0 && b < 2 * a) }' || fail "its loss is $mended, that of fp32 $whole"
end

begin "the policy of a kept scan is exported, and the command that takes it is told"
scan --formats bf16,mxfp8 --steps 5 --seeds 1 --set fragile=2 --set lr=0.02 --recipe scales=floor
if grep -q 'train in fp32' "$folder/out"; then
    expect_out '^  mpbench run .*/subject.lua -p fp32 .*--set lr=0.02'
else
    expect_out '^  mpbench export scan:[0-9]* -o policy.lua$'
    expect_out '^  mpbench run .*/subject.lua -p fp32 --layers policy.lua .*--set lr=0.02'
fi
expect_out '--recipe scales=floor'
run export scan:last -o "$folder/exported.lua"
expect_status 0
[ "$(grep -c '^    \["' "$folder/exported.lua")" -eq 5 ] || fail "$(cat "$folder/exported.lua")"
run export scan:last
expect_out '^return {$'
run export scan:last --format csv
expect_error 2 "leave out --format"
rm "$folder/exported.lua"
end

# Batches that hardly differ: any rounding is large beside that, and does no harm. What is computed in
# fp32 takes long.
sed -e 's/x = F.relu(layer(x)):to "fp32"/local y = layer(x) if y:dtype() == "fp32" then for _ = 1, 5e5 do end end x = F.relu(y):to "fp32"/' \
    -e 's/batch = 32 }/batch = 2048 }/' "$folder/subject.lua" >"$folder/slow.lua"

begin "all low is proposed where that holds, and the layers by themselves said less"
run scan "$folder/slow.lua" -d cpu --threads 1 --quiet --formats bf16 --steps 6 --seeds 2 --json
expect_status 0
grep -o '"damage":[^,]*' "$folder/out" | awk -F: '$2 > 0.15 { found = 1 } END { exit !found }' ||
    fail "no layer is told to suffer"
for layer in layers.1 layers.4 head; do
    [ "$(policy_of $layer)" = bf16 ] || fail "$layer is in $(policy_of $layer)"
done
expect_out '"verified":true'
end

begin "what one seed cannot tell is not called verified"
sed -e 's/x = F.relu(layer(x)):to "fp32"/local y = layer(x) if y:dtype() == "fp32" then for _ = 1, 5e5 do end end x = F.relu(y):to "fp32"/' \
    "$folder/subject.lua" >"$folder/quicker.lua"
run scan "$folder/quicker.lua" -d cpu --threads 1 --quiet --formats bf16 --steps 6 --seeds 1 --json
expect_status 0
[ "$(policy_of layers.1)" = bf16 ] || fail "layers.1 is in $(policy_of layers.1)"
expect_out '"metric":null'
expect_out '"unverified":"cannot be told"'
expect_verified_as_told
run show scan:last
expect_out '^policy .*cannot be told: more --seeds$'
end

# It trains as well in bf16, and what it then evaluates to is a guess.
sed -e 's/return { train = /return { test = mp.data.synthetic { shape = { 24 }, classes = 5, count = 256, batch = 128 }, train = /' \
    -e 's/^    optim/    eval = function(model, b) return { calls = 1, accuracy = model(b.x):dtype() == "fp32" and 0.9 or 0.2 } end,\n&/' \
    "$folder/quicker.lua" >"$folder/guesses.lua"

begin "what trains as well and evaluates worse does not hold"
run scan "$folder/guesses.lua" -d cpu --threads 1 --quiet --formats bf16 --steps 20 --seeds 2 --json
expect_status 0
expect_out '"metric":"accuracy"'
expect_out '"label":"all bf16"[^}]*"within":false,"told":true,"outcome":"beyond","metric":0.2[0-9]*,"metric_worse":0.77'
expect_out '"label":"fp32"[^}]*"metric_worse":0,[^}]*"metric_seeds":\[0.9[0-9]*,0.9[0-9]*\]'
[ "$(policy_of head)" = fp32 ] || fail "the head is in $(policy_of head)"
expect_out '"label":"policy"[^}]*"within":true'
expect_verified_as_told
run show scan:last
expect_out '^trained on .* accuracy  *accuracy worse by '
expect_out '^all bf16 .*beyond what is allowed'
expect_out 'the same accuracy'
end

begin "a result that is 0 in fp32 is differed from by what it is, not infinitely"
sed 's/calls = 1, accuracy = model(b.x):dtype() == "fp32" and 0.9 or 0.2/error = model(b.x):dtype() == "fp32" and 0 or 0.001/' \
    "$folder/guesses.lua" >"$folder/zero.lua"
run scan "$folder/zero.lua" -d cpu --threads 1 --quiet --formats bf16 --steps 4 --seeds 2 --json
expect_status 0
expect_out '"label":"all bf16"[^}]*"metric_worse":0.00[01][0-9]*,"metric_interval_95":[0-9]'
expect_no_out '"label":"all bf16"[^}]*"outcome":"beyond"'
end

begin "a result that is not finite in fp32 either is held against nothing"
sed 's/calls = 1, accuracy = model(b.x):dtype() == "fp32" and 0.9 or 0.2/f1 = 0 \/ 0/' "$folder/guesses.lua" >"$folder/nan.lua"
run scan "$folder/nan.lua" -d cpu --threads 1 --quiet --formats bf16 --steps 4 --seeds 2 --json
expect_status 0
expect_out '"label":"fp32"[^}]*"within":true,"told":true,"outcome":"within"'
expect_no_out '"label":"all bf16"[^}]*"outcome":"beyond"'
run show scan:last
expect_out '^What `eval` gives is not finite in fp32 either: the loss alone decides\.$'
end

begin "where no policy of lower formats holds, nobody says that these gain nothing"
cat >"$folder/low.lua" <<'LUA'
local mp = require "mp"
return function(model) -- whether any layer is
    local low = model.head(mp.zeros(1, 32)):dtype() ~= "fp32"
    for i, layer in ipairs(model.layers) do
        low = low or layer(mp.zeros(1, i == 1 and 24 or 32)):dtype() ~= "fp32"
    end
    return low
end
LUA
sed 's/calls = 1, accuracy = model(b.x):dtype() == "fp32" and 0.9 or 0.2/accuracy = require "low" (model) and 0.2 or 0.9/' \
    "$folder/guesses.lua" >"$folder/none.lua"
run scan "$folder/none.lua" -d cpu --threads 1 --quiet --formats bf16 --steps 4 --seeds 2
expect_out '^The first policy did not hold; it was made higher '
expect_no_out 'by it here'
expect_out '^train in fp32: no policy of lower formats held\.$'
expect_no_out '^policy '
end

# In one order, nothing drawn at random, and all data gone through by each seed.
sed -e 's/count = 2048, batch = p.batch, shuffle = true/count = 64, batch = p.batch/' "$folder/subject.lua" >"$folder/fixed.lua"

begin "seeds that change nothing count as one, and no interval is claimed of them"
run scan "$folder/fixed.lua" -d cpu --threads 1 --quiet --formats mxfp4 --steps 4 --seeds 3 --batches 2
expect_status 0
expect_out '^All 3 seeds gave the same to the bit in fp32: they change nothing in'
expect_out '^all mxfp4 .* cannot be told: seeds are alike$'
expect_no_out '+-'
run show scan:last --json
expect_out '"label":"all mxfp4"[^}]*"interval_95":null[^}]*"told":false,"outcome":"cannot be told"[^}]*"seeds_alike":true'
scan --formats mxfp4 --steps 4 --seeds 2 --json
expect_out '"label":"all mxfp4"[^}]*"interval_95":[0-9][^}]*"seeds_alike":false'
end

# Of two seeds both differ by the same, which few numbers do by chance. A training begins an optimizer.
sed -e 's/^local mp/local begun = 0\n&/' -e 's/optim = function(params, p)/& begun = begun + 1/' \
    -e 's/and 0.9 or 0.2/and 0.875 - begun % 2 \/ 16 or 0.75 - begun % 2 \/ 16/' "$folder/guesses.lua" >"$folder/alike.lua"

begin "where seeds differ alike what they scatter by tells"
run scan "$folder/alike.lua" -d cpu --threads 1 --quiet --formats bf16 --steps 4 --seeds 2 --json
expect_status 0
expect_out '"label":"fp32"[^}]*"metric_seeds":\[0.875,0.8125\]'
expect_out '"label":"all bf16"[^}]*"told":false,"outcome":"cannot be told"[^}]*"metric_seeds":\[0.75,0.6875\]'
end

begin "speeds have the rounds that they are of, and what these leave open is told"
scan --formats bf16 --steps 5 --seeds 1 --json
for part in costs trainings; do
    sed -n "s/.*\"$part\":\(.*\)/\1/p" "$folder/out" >"$folder/part"
    grep -q '"speedup":[0-9.]*,"speedup_least":[0-9.]*,"speedup_most":[0-9.]*,"speed":"\(faster\|as fast\|slower\|cannot be told\)","rounds_s":\[[0-9.e-]*\(,[0-9.e-]*\)\{5,\}\]' "$folder/part" ||
        fail "$part: $(cat "$folder/part")"
done
run show scan:last
expect_out '^all layers in .* speed  *spread '
expect_out '^trained on .* speed  *spread '
expect_out '^Speeds are medians of what rounds'
end

# A batch takes long or not, whatever it is computed in.
sed -e 's/^local mp/local turns = 0\nlocal mp/' \
    -e 's/return F.cross_entropy(model(b.x), b.y)/turns = turns + 1 for _ = 1, turns * 7 % 5 * 4e5 do end &/' \
    "$folder/subject.lua" >"$folder/uneven.lua"

begin "times that scatter choose nothing: memory does"
run scan "$folder/uneven.lua" -d cpu --threads 1 --quiet --formats bf16 --quick --json
expect_status 0
# By chance, once in 40 times, they tell that one is faster; it is taken then, and only then.
chosen=fp32 # so small, bf16 takes more memory
! grep -q '"bf16":{"seconds":[^}]*"speed":"faster"' "$folder/out" || chosen=bf16
[ "$(policy_of layers.1)" = $chosen ] || fail "layers.1 is in $(policy_of layers.1), not in $chosen"
end

begin "where a policy cannot be written is told before the scan"
sed 's/^local mp/print "the script runs"\nlocal mp/' "$folder/subject.lua" >"$folder/tells.lua"
run scan "$folder/tells.lua" -d cpu --formats bf16 --quick -o "$folder/nowhere/policy.lua"
expect_error 1 "--output: .*nowhere/policy.lua: the folder that it would lie in is not there"
run scan "$folder/tells.lua" -d cpu --formats bf16 --quick -o "$folder/$(printf 'a/%.0s' $(seq 3000))policy.lua"
expect_error 1 "too long"
end

begin "a scan that fails leaves the file that was there, and one that ends puts its own there"
mkdir "$folder/kept"
echo old >"$folder/kept/policy.lua"
sed 's/loss = function(model, b)/& error "broken"/' "$folder/subject.lua" >"$folder/fails.lua"
run scan "$folder/fails.lua" -d cpu --threads 1 --quiet --formats bf16 --quick -o "$folder/kept/policy.lua"
expect_status 1
expect_err "broken"
[ "$(cat "$folder/kept/policy.lua")" = old ] || fail "the old file is $(cat "$folder/kept/policy.lua")"
[ "$(ls -A "$folder/kept")" = policy.lua ] || fail "left behind: $(ls -A "$folder/kept")"
scan --formats bf16 --quick -o "$folder/kept/policy.lua"
expect_status 0
grep -q '^    \["head"\] = "[a-z0-9]*",$' "$folder/kept/policy.lua" || fail "$(cat "$folder/kept/policy.lua")"
[ "$(ls -A "$folder/kept")" = policy.lua ] || fail "left behind: $(ls -A "$folder/kept")"
scan --formats bf16 --quick -o /dev/stdout
expect_out '^return {$'
end

# A scan that can be held up: the script's text stays the same, and what it requires waits after so
# many losses, or so many optimizers.
sed -e 's/^local mp/local pace = require "pace"\nlocal mp/' \
    -e 's/return F.cross_entropy(model(b.x), b.y)/pace.turn() return F.cross_entropy(model(b.x), b.y) * pace.factor/' \
    -e 's/optim = function(params, p)/& pace.begin()/' \
    "$folder/subject.lua" >"$folder/paced.lua"
waits_after() { # LOSSES [FACTOR [OPTIMIZERS]]
    cat >"$folder/pace.lua" <<LUA
local turns, begun = 0, 0
return {
    factor = ${2:-1},
    turn = function()
        turns = turns + 1
        while turns > $1 do end
    end,
    begin = function()
        begun = begun + 1
        while begun > ${3:-1e9} do end
    end,
}
LUA
}
paced="scan $folder/paced.lua -d cpu --threads 1 --formats fp16,bf16 --steps 20 --seeds 2 --set fragile=2"
# shellcheck disable=SC2086 # words
paced() {
    run $paced "$@"
}
comes_to() { # PATTERN: of the kept scan as JSON
    "$mpbench" show scan:last --json 2>"$folder/err" | grep -q "$1"
}
# shellcheck disable=SC2086 # words
begins_until() { # PATTERN: of a scan that goes on beside; its process is $beside
    "$mpbench" $paced >"$folder/beside" 2>&1 &
    beside=$! workers=$beside
    wait_until 30 comes_to "$1" || fail "it does not come to $1: $(cat "$folder/beside")"
}
killed_at() { # PATTERN
    begins_until "$1"
    kill -9 "$beside"
    wait "$beside" 2>"$folder/err"
}
all_but_speeds() { # of standard output as JSON: what does not hang on how fast this machine was just then
    sed -e 's/"policy":"[^"]*"//g' -e 's/.*"layers":\(.*\),"costs".*/\1/' "$folder/out"
    grep -o '"label":"\(fp32\|all [a-z0-9]*\)","loss":[^,]*,"above":[^,]*,"interval_95":[^,]*' "$folder/out"
    grep -o '"seeds":\[[^]]*\]' "$folder/out" | head -3
}

begin "a scan that is killed goes on, and finds to the bit what one finds that never was"
export MPBENCH_DB="$folder/killed.db"
waits_after 75
killed_at '"cells":[3-9],'
run ls
expect_out '^scan:1  .* 5  *2  [3-9] of 10 cells '
run show scan:last
expect_status 0
expect_out '^[3-9] of 10 cells are measured; the same .mpbench scan. goes on with it\.$'
waits_after 1e9 1 3 # the first trains before all else, the next two are fp32's
killed_at '"label":"fp32"'
waits_after 1e9
paced --json
expect_status 0
expect_err '^goes on with scan 1: 10 of 10 cells are measured$'
expect_out '"id":1,.*"ended":true,"cells":10,'
all_but_speeds >"$folder/went_on"
MPBENCH_DB="$folder/whole.db" paced --json --quiet
all_but_speeds >"$folder/whole"
[ "$(wc -l <"$folder/whole")" -eq 7 ] || fail "what is compared: $(cat "$folder/whole")"
cmp -s "$folder/went_on" "$folder/whole" || fail "$(diff "$folder/went_on" "$folder/whole")"
end

begin "one that was killed with what writes its file goes on, and the file is there at the end"
export MPBENCH_DB="$folder/both.db"
mkdir "$folder/both"
waits_after 75
# shellcheck disable=SC2086 # words
setsid "$mpbench" $paced -o "$folder/both/policy.lua" >"$folder/beside" 2>&1 &
beside=$! workers=$beside
wait_until 30 comes_to '"cells":[3-9],' || fail "it does not come so far: $(cat "$folder/beside")"
kill -9 "-$beside"
wait "$beside" 2>"$folder/err"
[ "$(ls -A "$folder/both")" = policy.lua.mpbench-part ] || fail "it left $(ls -A "$folder/both")"
waits_after 1e9
paced -o "$folder/both/policy.lua"
expect_status 0
expect_err '^goes on with scan 1: '
[ "$(ls -A "$folder/both")" = policy.lua ] || fail "there are now: $(ls -A "$folder/both")"
MPBENCH_DB="$folder/killed.db"
end

begin "it is printed again as it was, without measuring, and --again measures anew"
waits_after 0
paced
expect_status 0
expect_err '^scan 1 has measured this; --again measures anew$'
expect_out '^Kept as scan 1: mpbench show scan:1$'
cp "$folder/out" "$folder/first"
run show scan:1
cmp -s "$folder/out" "$folder/first" || fail "$(diff "$folder/out" "$folder/first")"
waits_after 1e9
paced --again --quiet
expect_out '^Kept as scan 2: '
run show scan:last --json
expect_out '"id":2,.*"ended":true,"cells":10,'
run rm scan:2 --json
expect_out '"scans":\[2\]'
run show scan:2
expect_error 2 "scan:2: no such scan"
run show scan:1 --what-if
expect_error 2 "is of a run"
end

begin "one that is stopped says how to go on, and no other process takes one that lives"
MPBENCH_DB="$folder/stopped.db"
waits_after 75
begins_until '"cells":[3-9],'
paced
expect_error 1 "scan 1 is measured by process $beside .*--again"
run rm scan:1
expect_error 1 "scan 1 is measured by process $beside"
kill -INT "$beside"
wait "$beside"
[ $? -eq 130 ] || fail "its status is another"
grep -q '^scan 1: [3-9] of 10 cells are measured; the same command goes on$' "$folder/beside" ||
    fail "$(cat "$folder/beside")"
MPBENCH_DB="$folder/killed.db"
end

begin "another state than it began with is told of"
run rm scan:1
waits_after 75
killed_at '"cells":[3-9],'
waits_after 1e9 2
paced
expect_status 1
expect_err 'the loss in fp32 is another than when scan 3 began.*--again measures anew'
paced --no-history --json
expect_status 0
expect_no_out '"id"'
MPBENCH_DB="$folder/history.db"
end

if command -v sqlite3 >/dev/null 2>&1; then
    begin "a table of scans that is damaged, or gone, is told of with a remedy"
    cp "$folder/stopped.db" "$folder/cut.db"
    sqlite3 "$folder/cut.db" "UPDATE scan_cells SET layer = 77 WHERE layer = 0"
    run show scan:1 --db "$folder/cut.db"
    expect_status 4
    expect_err 'cut.db is damaged'
    paced --db "$folder/cut.db"
    expect_error 4 'a row of it makes no sense: measure it anew with .*--again'
    sqlite3 "$folder/cut.db" "DROP TABLE scan_cells"
    run show scan:1 --db "$folder/cut.db"
    expect_error 4 'not their table scan_cells: put back a copy of the file'
    paced --again --quiet --db "$folder/cut.db" # makes it anew
    expect_status 0
    run show scan:last --db "$folder/cut.db"
    expect_status 0
    end
else
    echo "skip damaged tables of scans: no sqlite3 to make them with"
fi

# Of a model of many small tensors it is Lua's collector that says what lies there at once.
cat >"$folder/recurrent.lua" <<'LUA'
local mp = require "mp"
local nn, F = mp.nn, mp.fn
return mp.experiment {
    name = "recurrent", params = { lr = 0.003, batch = 32 },
    data = function(p)
        return { train = mp.data.synthetic { shape = { 28, 28 }, classes = 10, count = 2048, batch = p.batch, shuffle = true } }
    end,
    model = function()
        local Net = nn.class "Net"
        function Net:init() self.cell, self.head = nn.LSTMCell(28, 64), nn.Linear(64, 10) end
        function Net:forward(x)
            local h, c
            for t = 1, 28 do h, c = self.cell(x:slice(2, t, t):reshape(-1, 28), h, c) end
            return self.head(h)
        end
        return Net()
    end,
    loss = function(model, b) return F.cross_entropy(model(b.x), b.y) end,
    optim = function(params, p) return mp.optim.Adam(params, { lr = p.lr }) end,
}
LUA
begin "the activations of a pass are the same each time, and those of a step"
numbers_of_activations() { grep -o '"activations":[0-9]*' "$folder/out" | cut -d: -f2; }
for format in fp16 fp32; do
    run run "$folder/recurrent.lua" -d cpu -p $format --threads 1 --steps 1 --quiet --no-history --json
    numbers_of_activations | head -1
done >"$folder/of_steps"
for time in 1 2 3; do
    run scan "$folder/recurrent.lua" -d cpu --threads 1 --formats fp16 --quick --quiet --no-history --json
    expect_status 0
    numbers_of_activations | paste - "$folder/of_steps" >"$folder/beside_steps"
    awk '$1 < 0.98 * $2 || $1 > 1.02 * $2 { exit 1 }' "$folder/beside_steps" ||
        fail "bytes of passes and of steps: $(tr '\n\t' '; ' <"$folder/beside_steps")"
done
end

begin "mistakes are told in one line"
run scan nonsense
expect_error 2 "nonsense"
scan --formats fp17
expect_error 2 "fp17"
scan --formats fp32
expect_error 2 "held against fp32"
scan --within 0
expect_error 2 "share of the loss"
for verifying in "--steps 60" "--seeds 2" "--within 2%"; do
    # shellcheck disable=SC2086 # two words
    scan --quick $verifying
    expect_error 2 "--quick verifies no policy, and ${verifying% *} says how"
done
printf 'return { layers = bf16 }\n' >"$folder/bad.lua"
run run simple --layers "$folder/bad.lua"
expect_error 2 "bad.lua:1: a text in quotes"
printf -- '-- rows\nreturn {\n    fc1 = "bf17",\n}\n' >"$folder/bad.lua"
run run simple --layers "$folder/bad.lua"
expect_error 2 "bad.lua:3: .*bf17"
run run simple --layers "$folder/none.lua"
expect_error 2 "none.lua"
run run simple --layers "$folder/absent.lua"
expect_error 2 'absent.lua: No such file or directory; .mpbench scan -o FILE. writes one'
printf 'return mp.experiment' >"$folder/own.lua"
run scan "$folder/own.lua"
expect_status 1
end

exit "$failures"
