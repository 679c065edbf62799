# shellcheck shell=sh disable=SC2034,SC2154 # what shell.sh sets, and who sources this reads
# A fault that is put into a known tensor of a known layer at a known step, and the page of the flight
# recorder held against it: sourced behind shell.sh, by the tests of processors and of cards.
#
# A test says `device`: the options by which it is chosen. MPBENCH_SOAK: ten of each fault.

# What is drawn of the seed: the depth, the layer, the step and the element.
cat >"$folder/inject.lua" <<'LUA'
local mp = require "mp"
local nn, F = mp.nn, mp.fn
local kind, at, bad, armed -- what is injected, when, in which layer; whether it is that step

local odd = mp.custom { name = "odd",
    forward = function(_, x) return armed and kind == "custom" and x / (x - x) or x * 1 end,
    backward = function(_, g) return armed and kind == "back" and g / (g - g) or g * 1 end }

local Block = nn.class "Block"
function Block:init(number) self.number, self.fc = number, nn.Linear(8, 8) end
function Block:forward(x)
    local here = armed and self.number == bad
    if self.number == bad and (kind == "custom" or kind == "back") then x = odd(x) end
    if here and kind == "forward" then x = x * 30000 * 30000 end
    if here and kind == "linear" then x = x * 0 + 1 end
    if here and kind == "divide" then x = x / (x - x) end
    if here and kind == "log" then x = F.log(x - x) end
    if here and kind == "root" then x = F.sqrt(x - x - 1) end
    return self.fc(x)
end

local Net = nn.class "Net"
function Net:init(depth)
    self.blocks = {}
    for i = 1, depth do self.blocks[i] = Block(i) end
    self.head = nn.Linear(8, 3)
end
function Net:forward(x)
    for _, block in ipairs(self.blocks) do x = block(x) end
    return self.head(x)
end

return mp.experiment { name = "inject", params = { kind = "none", depth = 3, steps = 7 }, run = function(run)
    local p = run.params
    kind = p.kind
    local net = run:model(Net(p.depth))
    local depth, steps = p.depth, p.steps
    bad, at = math.random(depth), math.random(2, steps - 1)
    -- What the first is given is data: in fp32, and without a gradient.
    if kind == "forward" or kind == "back" then bad = math.max(bad, 2) end
    local row, column = math.random(4), math.random(8)
    local opt = mp.optim.SGD(net:parameters(), { lr = 0.01 })
    local scaler = run:scaler()
    local block = net.blocks[bad]
    for step = 1, steps do
        armed = step == at
        local values = {}
        for i = 1, 32 do values[i] = math.random() + 0.5 end
        if armed and kind == "data" then values[(row - 1) * 8 + column] = 0 / 0 end
        local x, y = mp.tensor(values):reshape(4, 8), mp.randint(3, 4)
        local kept = block.fc.weight:detach():clone()
        if armed and kind == "linear" then block.fc.weight:copy(kept * 0 + 30000) end
        if armed and kind == "weight" then block.fc.weight:copy(kept / 0) end
        opt:zero_grad()
        local loss = mp.autocast(function() return F.cross_entropy(net(x), y) end)
        if armed and kind == "scale" then loss = loss * 1e6 end
        scaler:scale(loss):backward()
        scaler:step(opt)
        scaler:update()
        run:log { loss = loss }
        if kind == "linear" or kind == "weight" then block.fc.weight:copy(kept) end
    end
    local layer = "blocks." .. bad
    local faults = {
        forward = { layer, "forward", "output of mul", "" },
        linear = { layer .. ".fc", "forward", "output of linear", "" },
        divide = { layer, "forward", "output of div", "" },
        log = { layer, "forward", "output of log", "" },
        root = { layer, "forward", "output of sqrt", "" },
        custom = { layer, "forward", "output of div", "odd" },
        back = { layer, "backward", "gradient through odd", "odd" },
        data = { "blocks.1.fc", "forward", "data", "" },
        weight = { layer .. ".fc", "forward", ("weight %s.fc.weight"):format(layer), "" },
    }
    local f = faults[kind]
    if not f then return end
    run:event(("injected %d|%s|%s|%s|%s"):format(at, f[2], f[1], f[3], f[4]))
    if kind == "data" then run:event(("first %d, %d"):format(row, column)) end
end }
LUA

value() { # KEY: of the page, which is one line
    grep -o "\"$1\": *\(\"[^\"]*\"\|[-0-9.e+a-z]*\)" "$folder/page" | head -n 1 | sed 's/^[^:]*: *//; s/"//g'
}
# Names what was injected against what was told, where they differ.
compared() { # NAME
    "$mpbench" show "$1" --first-nan --json >"$folder/page"
    said="$(value step)|$(value way)|$(value layer)|$(value tensor)|$(value function)"
    done=$("$mpbench" export "$1" --format jsonl | grep -o 'injected [^"]*' | head -n 1)
    [ "injected $said" = "$done" ] || echo "$1: $done, and told: $said"
}
injected() { # KIND SEED OPTION..: on $device
    kind=$1 drawn=$2
    shift 2
    # shellcheck disable=SC2086 # words
    run run "$folder/inject.lua" $device --quiet --seed "$drawn" --name "$kind-$drawn" \
        --set "kind=$kind" "$@"
    expect_status 0
    wrong=$(compared "$kind-$drawn")
    [ -z "$wrong" ] || fail "$wrong"
}

faults="forward linear divide log root custom back data weight"
seeds=1
[ -z "${MPBENCH_SOAK:-}" ] || seeds=10
