#!/bin/sh
# shellcheck disable=SC1091,SC2034,SC2154 # what shell.sh sets, reads and calls
# Steps that a script hands over, captured on the processor, beside the same called each time: the
# same bits whatever happens between two steps, and most of them are captured.
. "$(dirname "$0")/../shell.sh"

# Of what may happen in a training something happens every few steps.
cat >"$folder/turns.lua" <<'LUA'
local mp = require "mp"
local nn, F = mp.nn, mp.fn
local optimizers = {
    SGD = { lr = 1e-2, momentum = 0.9 }, Adam = { lr = 1e-2 }, AdamW = { lr = 1e-2 }, LAMB = { lr = 1e-2 },
}
return mp.experiment { name = "turns",
    params = { steps = 96, optimizer = "SGD", images = false, scaler = true, unscale = false, warm = false },
    run = function(run)
    local p = run.params
    local Net = nn.class "Net"
    function Net:init()
        if p.images then self.conv, self.bn = nn.Conv2d(1, 6, 3, { padding = 1 }), nn.BatchNorm(6) end
        self.fc1 = nn.Linear(p.images and 96 or 16, 24, { activation = "relu" })
        self.norm, self.fc2 = p.images and nn.LayerNorm(24) or nn.BatchNorm(24), nn.Linear(24, 4)
    end
    function Net:forward(x)
        if p.images then
            x = F.relu(self.bn(self.conv(x:reshape(x:shape()[1], 4, 4, 1))))
            x = x:reshape(x:shape()[1], 96)
        end
        return self.fc2(self.norm(self.fc1(x)))
    end
    local net = run:model(Net())
    local opt = mp.optim[p.optimizer](net:parameters(), optimizers[p.optimizer])
    if p.warm then opt:schedule(mp.optim.schedule.cosine { warmup = 8, total = 96 }) end
    local scaler = p.scaler and run:scaler()
    local data = mp.data.tensors { x = mp.randn(60, 16), y = mp.randint(4, 60), batch = 8, shuffle = true }
    local function loss_of(x, y) return F.cross_entropy(net(x), y) end
    local function step(x, y)
        opt:zero_grad()
        local loss = mp.autocast(loss_of, x, y)
        if scaler then
            scaler:scale(loss):backward()
            if p.unscale then scaler:unscale(opt) end
            scaler:step(opt)
            scaler:update()
        else
            loss:backward()
            opt:step()
        end
        run:log { loss = loss }
        return loss
    end
    local at, sum = 0, 0
    while at < p.steps do
        for b in data do
            at = at + 1
            local x, y = b.x, b.y
            if at == 34 then x, y = x:slice(1, 1, 5), y:slice(1, 1, 5) end
            local loss = run:step(step, x, y)
            if at % 8 == 0 then sum = sum + loss:item() end
            if at == 18 then net:find "fc1":precision "fp32" end
            if at == 26 then net:find "fc1":precision "auto" end
            if at == 46 then
                net:eval()
                mp.no_grad(function() run:log { held = F.accuracy(net(x), y) } end)
                net:train()
            end
            if at == 58 then run:checkpoint() end
            if at == 66 then opt:lr(5e-3) end
            if at == 74 then net.fc2.bias:copy(mp.zeros(4)) end
            if at == 82 then net.fc2.weight:requires_grad(false) end
            if at == p.steps then break end
        end
    end
    run:result { sum = sum }
end }
LUA

# What is known of a run beside its seconds.
kept() { # RUN FILE
    "$mpbench" export "$1" --format csv |
        awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) if ($i == "step_seconds") skip = i }
                 { $skip = ""; print }' >"$2.csv"
    "$mpbench" export "$1" --format safetensors -o "$2.file" 2>/dev/null
    LC_ALL=C sed -e 's/^.*"__metadata__":{[^}]*},//' -e 's/}} */}}/' "$2.file" >"$2.weights"
    grep -q 'fc1' "$2.weights" || fail "$1: no weights were kept"
    "$mpbench" show "$1" --json | grep -o '"metrics":{[^}]*}\|"skipped":[0-9]*' >"$2.facts"
}

share_of() { # RUN: of its steps that were captured, in thousandths
    "$mpbench" show "$1" | awk '$1 == "steps.captured" { print int($2 * 1000) }'
}

# same NAME LEAST OPTION...: captured, LEAST thousandths of the steps at least, and not.
same() {
    what=$1 least=$2
    shift 2
    run run "$folder/turns.lua" -d cpu --threads 1 --quiet "$@" --name "$what"
    expect_status 0
    run run "$folder/turns.lua" -d cpu --threads 1 --quiet --no-capture "$@" --name "$what-plain"
    expect_status 0
    share=$(share_of "$what")
    [ "${share:-0}" -ge "$least" ] || fail "$what: ${share:-0} of 1000 steps were captured, not $least"
    [ -z "$(share_of "$what-plain")" ] || fail "$what: --no-capture captures"
    kept "$what" "$folder/a"
    kept "$what-plain" "$folder/b"
    [ "$(wc -l <"$folder/a.csv")" -gt 10 ] || fail "$what: nothing was kept"
    cmp -s "$folder/a.csv" "$folder/b.csv" || fail "$what: $(diff "$folder/a.csv" "$folder/b.csv" | sed -n 2p) is not $(diff "$folder/a.csv" "$folder/b.csv" | sed -n 4p)"
    for part in weights facts; do
        cmp -s "$folder/a.$part" "$folder/b.$part" || fail "$what: other $part"
    done
}

begin captured_steps_are_the_same_to_the_bit_whatever_happens_between_them
same fp32 500 -p fp32
same bf16 500 -p bf16 --set optimizer=Adam
same fp16 300 -p fp16 --set optimizer=AdamW --set unscale=true
same images 500 -p bf16 --set images=true --set optimizer=LAMB --set warm=true
same alone 500 -p fp32 --set scaler=false
end

begin captured_steps_are_the_same_to_the_bit_where_steps_are_skipped
same skips 200 -p fp16 --loss-scale dynamic --set images=true
run show skips --json
expect_out '"skipped":[1-9]'
end

exit "$failures"
