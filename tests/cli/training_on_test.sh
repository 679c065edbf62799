#!/bin/sh
# shellcheck disable=SC1091,SC2034,SC2154 # what shell.sh sets and reads
# A run that has finished trains on as a fork: what it ended with, an evaluation, is none of what the
# longer one passes, which is to the bit the run that was asked for that length from its start.
. "$(dirname "$0")/../shell.sh"

train() { # ARGUMENT..
    run "$@" --quiet
    expect_status 0
}
# From a step on, what was recorded of every step but its time.
points() { # RUN STEP
    "$mpbench" export "$1" --format jsonl |
        awk -v from="$2" -F'"step":' '/"(loss|accuracy|test_loss|scale)","step"/ && $2 + 0 >= from' | sort
}
expect_same() { # RUN OTHER FROM: step for step, and in the weights at the end
    points "$1" "$3" >"$folder/of-one"
    points "$2" "$3" >"$folder/of-other"
    [ "$(wc -l <"$folder/of-one")" -gt 5 ] || fail "$1: nothing was exported"
    cmp -s "$folder/of-one" "$folder/of-other" ||
        fail "$2 goes another way than $1: $(diff "$folder/of-one" "$folder/of-other" | head -n 3 | tr '\n' ' ')"
    keep_known "$1" "$folder/one"
    keep_known "$2" "$folder/other"
    cmp -s "$folder/one.weights" "$folder/other.weights" || fail "$2 ends with other weights than $1"
}

# Chance in the order of the data, in the model and in the script; 12 steps an epoch.
cat >"$folder/declared.lua" <<'LUA'
local mp = require "mp"
local nn, F = mp.nn, mp.fn
local function set(count, batch)
    return mp.data.tensors { x = mp.randn(count, 8), y = mp.randint(4, count), batch = batch, shuffle = true }
end
return mp.experiment {
    name = "declared", params = { epochs = 3 }, average = 0.9,
    data = function() return { train = set(96, 8), test = set(40, 16) } end,
    model = function()
        return nn.Sequential { nn.Linear(8, 16):named "fc1", nn.BatchNorm(16), nn.ReLU(), nn.Dropout(0.3),
            nn.Linear(16, 4) }
    end,
    optim = function(parameters) return mp.optim.Adam(parameters, { lr = 1e-2 }) end,
    loss = function(net, batch) return F.cross_entropy(net(batch.x), batch.y) + 0 * math.random() end,
    eval = function(net, batch)
        local y = net(batch.x)
        return { accuracy = F.accuracy(y, batch.y), loss = F.cross_entropy(y, batch.y) }
    end,
}
LUA

begin "a run that ended with an evaluation within an epoch trains on as if it had not ended"
train run "$folder/declared.lua" --threads 1 -p fp16 --steps 20 --name long
train run "$folder/declared.lua" --threads 1 -p fp16 --steps 7 --name short
train fork short --steps 20 --name longer
expect_same long longer 8
[ "$(says longer steps)" = 20 ] || fail "$(says longer steps) steps"
end

begin "so does one that ended with its epochs"
train run "$folder/declared.lua" --threads 1 -p fp16 --name whole
train run "$folder/declared.lua" --threads 1 -p fp16 --epochs 2 --name half
train fork half --epochs 3 --name rest
expect_same whole rest 25
end

begin "and the longer one in its turn, and one that had only its steps up to there trained again"
train fork longer --steps 30 --name longest
train run "$folder/declared.lua" --threads 1 -p fp16 --steps 30 --name thirty
expect_same thirty longest 21
train fork thirty --at 11 --name between
expect_same thirty between 12
end

# A loop of one's own, which evaluates at its end alone, one on a part of the data only.
cat >"$folder/own.lua" <<'LUA'
local mp = require "mp"
local nn, F = mp.nn, mp.fn
return mp.experiment { name = "own", params = { steps = 10, by_hand = false }, run = function(run)
    local net = run:model(nn.Sequential { nn.Linear(8, 8):named "fc1", nn.Dropout(0.3), nn.Linear(8, 4) })
    local opt, scaler = mp.optim.Adam(net:parameters(), { lr = 1e-2 }), run:scaler()
    local test = mp.data.tensors { x = mp.randn(40, 8), y = mp.randint(4, 40), batch = 8, shuffle = true }
    local function look()
        local sum = 0
        for b in test do
            sum = sum + F.accuracy(net(b.x), b.y):item()
            if sum >= 0 and b.count == 8 then break end
        end
        return sum
    end
    local evaluate = function(f) return run:evaluate(f) end
    if run.params.by_hand then evaluate = mp.no_grad end
    for step = 1, run.params.steps do
        opt:zero_grad()
        local loss = mp.autocast(function() return F.cross_entropy(net(mp.randn(16, 8)), mp.randint(4, 16)) end)
        scaler:scale(loss):backward()
        scaler:step(opt)
        scaler:update()
        run:log { loss = loss }
        if step == 5 then evaluate(look) end
    end
    run:result { accuracy = evaluate(look) }
end }
LUA

begin "a loop of one's own trains on past the evaluation that it ended with"
for way in false true; do
    train run "$folder/own.lua" --threads 1 -p fp16 --set by_hand=$way --steps 20 --name "long.$way"
    train run "$folder/own.lua" --threads 1 -p fp16 --set by_hand=$way --name "short.$way"
    train fork "short.$way" --steps 20 --name "longer.$way"
    expect_same "long.$way" "longer.$way" 11
done
end

if command -v sqlite3 >/dev/null 2>&1; then
    begin "so does a run of a history in which the end was kept after the evaluation had begun"
    train run "$folder/declared.lua" --threads 1 -p fp16 --steps 7 --name old
    file=$folder/checkpoints/$(says old id)/step-7.safetensors
    LC_ALL=C sed -i 's/"waypoint":"0"/"waypoint":"1"/' "$file"
    grep -aq '"waypoint":"1"' "$file" || fail "the file does not say where it was taken"
    in_history "UPDATE checkpoints SET hash = '$(sha256sum "$file" | cut -d' ' -f1)'
        WHERE run = $(says old id)"
    train fork old --steps 20 --name old-longer
    expect_same long old-longer 8
    end
else
    echo "skip so does a run of a history in which the end was kept after the evaluation had begun: no sqlite3"
fi

begin "that a run's end can be trained again is said where a checkpoint lies before it, with its step"
run resume short
expect_error 2 "run short has finished, at step 7: .mpbench fork short --steps N. trains on$"
train run "$folder/declared.lua" --threads 1 --steps 20 --checkpoint-every 6 --name kept
run resume kept
expect_error 2 "trains on, .mpbench resume kept --at 18. trains its end again$"
train resume kept --at 18
run resume longer
expect_error 2 "trains on, .mpbench resume longer --at 7. trains its end again$"
train resume longer --at 7
expect_same long longer 8
end

exit "$failures"
