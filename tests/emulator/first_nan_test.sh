#!/bin/sh
# shellcheck disable=SC1091,SC2034,SC2154 # what shell.sh sets and reads
# The first number that is not finite, on the emulated card. It is not asked within a step: what a
# loss tells is looked for in the steps after it, so that a fault that stays is named, and of one
# that is gone by then the page says that it was not looked for.
. "$(dirname "$0")/../shell.sh"

use_emulated_card first_nan_on_emulated_card

cat >"$folder/inject.lua" <<'LUA'
local mp = require "mp"
local nn, F = mp.nn, mp.fn
local faults = {
    overflow = function(x) return x * 30000 * 30000 end,
    divide = function(x) return x / (x - x) end,
    log = function(x) return F.log(x - x) end,
    root = function(x) return F.sqrt(x - x - 1) end,
}
local kind, armed
local Block = nn.class "Block"
function Block:init(is_bad) self.is_bad, self.fc = is_bad, nn.Linear(8, 8) end
function Block:forward(x)
    local fault = armed and self.is_bad and faults[kind]
    return self.fc(fault and fault(x) or x)
end
return mp.experiment { name = "inject", params = { kind = "", lasts = 1 }, run = function(run)
    kind = run.params.kind
    local net = run:model(nn.Sequential { Block(), Block(true), nn.Linear(8, 3) })
    local opt = mp.optim.SGD(net:parameters(), { lr = 0.01 })
    local scaler = run:scaler()
    for step = 1, 20 do
        armed = step >= 4 and step < 4 + run.params.lasts
        local values = {}
        for i = 1, 32 do values[i] = math.random() + 0.5 end
        if armed and kind == "data" then values[11] = 0 / 0 end
        local x, y = mp.tensor(values):reshape(4, 8), mp.randint(3, 4)
        opt:zero_grad()
        local loss = mp.autocast(function() return F.cross_entropy(net(x), y) end)
        scaler:scale(loss):backward()
        scaler:step(opt)
        scaler:update()
        run:log { loss = loss }
    end
end }
LUA

injected() { # KIND LASTS
    run run "$folder/inject.lua" -d gpu -p fp16 --quiet --name "$1-$2" --set "kind=$1" --set "lasts=$2"
    expect_status 0
    run show "$1-$2" --first-nan
    expect_status 0
}

begin "a fault that stays is named on a card too"
while IFS='|' read -r kind where; do
    injected "$kind" 20
    expect_out "$where"
done <<'LIST'
overflow|output of mul, in fp16
divide|output of div, in fp16
log|output of log
root|output of sqrt
data|data, in
LIST
end

begin "the layer is named as well"
run show divide-20 --first-nan --json
expect_out '"layer":"block2"'
expect_out '"way":"forward"'
end

begin "of a fault that is gone a step later it is told that a card was not asked"
injected divide 1
expect_out 'A card is not asked within a step'
end

exit "$failures"
