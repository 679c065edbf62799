#!/bin/sh
# shellcheck disable=SC1091,SC2154 # what shell.sh sets and reads
# Twins of a script that hands its steps over: both capture them, what is held against each other is
# the same as where each is called, and a disturbance within a captured step is found where it was
# put. Under MPBENCH_SOAK it is put in a hundred places. $MPBENCH is the program.
. "$(dirname "$0")/../shell.sh"
cases="forward,b,2 backward,c,17 weights,a,30 forward,a,31 backward,a,39 forward,c,40 backward,b,1"
if [ -n "${MPBENCH_SOAK:-}" ]; then
    cases=
    for i in $(seq 0 99); do
        kind=$(echo forward backward weights | cut -d ' ' -f $((i % 3 + 1)))
        layer=$(echo a b c | cut -d ' ' -f $((i / 3 % 3 + 1)))
        cases="$cases $kind,$layer,$((i * 7 % 40 + 1))"
    done
fi

# Three layers. What each gives is multiplied by one number, and its gradient by another, which are
# handed over with the data: 1, but in one layer and step of the run of the precision `where`.
cat >"$folder/handed.lua" <<'LUA'
local mp = require "mp"
local nn, F = mp.nn, mp.fn
local Part = nn.class "Part"
function Part:init(from, to) self.weight = nn.Linear(from, to).weight end
function Part:forward(x, factor, back)
    local y = F.tanh(F.linear(x, self.weight) * factor)
    return y * back - (y * (back - 1)):detach()
end
return mp.experiment {
    name = "handed",
    params = { steps = 40, kind = "none", layer = "a", at = 1, where = "fp16", toggles = false },
    run = function(run)
        local p = run.params
        local Net = nn.class "Net"
        function Net:init() self.a, self.b, self.c = Part(16, 32), Part(32, 32), Part(32, 8) end
        function Net:forward(x, fa, ba, fb, bb, fc, bc)
            return self.c(self.b(self.a(x, fa, ba), fb, bb), fc, bc)
        end
        local m = run:model(Net())
        local opt, scaler = mp.optim.Adam(m:parameters(), { lr = 1e-3 }), run:scaler()
        local is_here = mp.policy().preset == p.where
        local function step(x, y, ...)
            local factors = { ... }
            opt:zero_grad()
            local loss = mp.autocast(function() return F.mse(m(x, table.unpack(factors)), y) end)
            scaler:scale(loss):backward()
            scaler:step(opt)
            scaler:update()
            run:log { loss = loss }
        end
        local one, two = mp.tensor { 1 }, mp.tensor { 2 }
        local function factor(layer, kind, at)
            return is_here and at == p.at and layer == p.layer and kind == p.kind and two or one
        end
        for at = 1, p.steps do
            if p.kind == "weights" and is_here and at == p.at then
                local weight = m[p.layer].weight
                weight:copy(weight:detach() * 2)
            end
            if p.toggles and at == 12 then m:find "b":precision "fp32" end
            if p.toggles and at == 20 then m:find "b":precision "auto" end
            local factors = {}
            for _, layer in ipairs { "a", "b", "c" } do
                factors[#factors + 1] = factor(layer, "forward", at):clone()
                factors[#factors + 1] = factor(layer, "backward", at):clone()
            end
            run:step(step, mp.randn(64, 16), mp.randn(64, 8), table.unpack(factors))
        end
    end,
}
LUA
pair() { # PRECISION TWIN [OPTION ...]
    precision=$1
    twin=$2
    shift 2
    run run "$folder/handed.lua" -d cpu -p "$precision" --twin "$twin" --threads 1 "$@"
}
# All points of series of distances, in $folder/NAME.apart.
keep_distances() {
    run export "$1" --format csv
    head -n 1 "$folder/out" | grep -q 'apart\.activations\.b' || fail "$1: no distances were kept"
    awk -F , 'NR == 1 { for (i = 1; i <= NF; i++) if ($i ~ /^apart/) which[++count] = i }
        { for (i = 1; i <= count; i++) printf "%s ", $which[i]; print "" }' "$folder/out" >"$folder/$1.apart"
}

begin "captured steps are held against each other as those that are called are"
for which in one toggled; do
    more=
    [ $which = one ] || more="--set toggles=true"
    # shellcheck disable=SC2086 # words
    pair fp16 fp32 --quiet --name $which $more
    expect_status 0
    # shellcheck disable=SC2086 # words
    pair fp16 fp32 --quiet --name $which-plain --no-capture $more
    expect_status 0
    for of in $which $which-twin; do
        share=$("$mpbench" show "$of" | awk '$1 == "steps.captured" { print int($2 * 1000) }')
        [ "${share:-0}" -ge 600 ] || fail "$of: ${share:-0} of 1000 steps were captured: $("$mpbench" show "$of" | grep captured:)"
    done
    keep_distances $which
    keep_distances $which-plain
    cmp -s "$folder/$which.apart" "$folder/$which-plain.apart" ||
        fail "$which: $(diff "$folder/$which.apart" "$folder/$which-plain.apart" | sed -n 2,3p)"
done
end

for precision in fp32 fp16; do
    begin "captured twins in $precision never part, to the last bit"
    pair "$precision" "$precision" --json --no-history
    expect_status 0
    expect_out '"steps":40,"alike":40,"loss":{"last":0,"most":0},"parted":null'
    end
done

begin "a disturbance within a captured step is found, and the step, wherever it is"
for case in $cases; do
    IFS=, read -r kind layer at <<C
$case
C
    case $kind in forward) found=activations ;; backward) found=gradients ;; weights) found=weights ;; esac
    for where in fp16 fp32; do
        pair fp16 fp32 --json --no-history --set kind="$kind" --set layer="$layer" --set at="$at" --set where=$where
        grep -q "\"parted\":{\"step\":$at,\"cause\":\"beyond rounding\",\"layer\":\"$layer\",\"in\":\"$found\"" "$folder/out" ||
            fail "$case in $where: $(sed 's/.*"loss":{"last"[^}]*},//;s/,"ended".*//' "$folder/out" | tail -n 1)"
    done
done
end
exit "$failures"
