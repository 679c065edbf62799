#!/bin/sh
# shellcheck disable=SC1091,SC2034,SC2154 # what shell.sh sets, reads and calls
# Steps that a script hands over, captured on the processor, in every format that a run or a layer can
# be set to, with dropout and noise: the same bits as where each is called, resumed and forked too.
. "$(dirname "$0")/../shell.sh"

# A layer is toggled from the format of the run to `other` and back; before one step in three more is drawn.
cat >"$folder/drawn.lua" <<'LUA'
local mp = require "mp"
local nn, F = mp.nn, mp.fn
return mp.experiment { name = "drawn", params = { steps = 60, other = "auto", norms = false }, run = function(run)
    local p = run.params
    local Net = nn.class "Net"
    function Net:init()
        self.conv, self.drop = nn.Conv2d(4, 16, 3, { padding = 1 }), nn.Dropout(0.3)
        self.fc1 = nn.Linear(16 * 16, 32)
        if p.norms then self.norm = nn.LayerNorm(32) end
        self.fc2 = nn.Linear(32, 4)
    end
    function Net:forward(x)
        x = self.drop(F.relu(self.conv(x)))
        x = self.fc1(x:reshape(x:shape()[1], 256))
        if p.norms then x = self.norm(x) end
        return self.fc2(self.drop(F.relu(x)))
    end
    local net = run:model(Net())
    local opt, scaler = mp.optim.Adam(net:parameters(), { lr = 1e-2 }), run:scaler()
    local function step(x, y)
        opt:zero_grad()
        mp.rand(0, 3) -- draws nothing, from where the next one draws
        local noisy = x + mp.randn(8, 4, 4, 4) * 0.1
        local loss = mp.autocast(function() return F.cross_entropy(net(noisy), y) end)
        scaler:scale(loss):backward()
        scaler:step(opt)
        scaler:update()
        run:log { loss = loss }
        return loss
    end
    local xs, ys = {}, {} -- made once: what else is alive at the end is for the collector to say
    for i = 1, 5 do xs[i], ys[i] = mp.randn(8, 4, 4, 4), mp.randint(4, 8) end
    for at = 1, p.steps do
        if at % 3 == 0 then xs[1] = mp.randn(8, 4, 4, 4) end
        local loss = run:step(step, xs[1 + at % 5], ys[1 + at % 5])
        if at == 20 then net:find "fc1":precision(p.other) end
        if at == 28 then net:find "fc1":precision "auto" end
        if at == 36 then mp.seed(7) end
        if at == 44 then run:log { last = loss:item() } end
    end
    run:result { drawn = mp.rand(1):item() }
end }
LUA

share_of() { # RUN: of its steps that were captured, in thousandths
    "$mpbench" show "$1" | awk '$1 == "steps.captured" { print int($2 * 1000) }'
}
same() { # NAME OPTION..: captured, and not
    what=$1
    shift
    run run "$folder/drawn.lua" -d cpu --threads 1 --quiet "$@" --name "$what"
    expect_status 0
    run run "$folder/drawn.lua" -d cpu --threads 1 --quiet --no-capture "$@" --name "$what-plain"
    expect_status 0
    share=$(share_of "$what")
    [ "${share:-0}" -ge 500 ] || fail "$what: ${share:-0} of 1000 steps were captured: $("$mpbench" show "$what" | grep captured:)"
    expect_same_known "$what" "$what-plain"
}

# As the program lists them, and each is toggled to by the one before it.
run run "$folder/drawn.lua" -p none
precisions=$(sed -n 's/.*one of \(.*\)/\1/p' "$folder/err")
begin captured_steps_are_the_same_to_the_bit_in_every_format
count=0 before=auto
for precision in $precisions; do
    case $precision in int8 | O[0-3] | amp | mixed_*) continue ;; esac # of these it is in the others
    same "$precision" -p "$precision" --set other="$before"
    before=$precision count=$((count + 1))
done
[ "$count" -ge 13 ] || fail "$count formats: $(cat "$folder/err")"
end

begin captured_steps_are_the_same_to_the_bit_by_every_recipe
same current -p fp8 --recipe fp8=current
same blocks -p fp8 --recipe fp8=blocks
same random -p mxfp8 --recipe rounding=random
same turned -p nvfp4 --recipe rounding=random,hadamard=on
end

begin a_fork_and_a_resume_of_captured_steps_end_as_the_run_did
for recipe in fp8=delayed fp8=current,rounding=random; do
    whole=${recipe%%,*}
    run run "$folder/drawn.lua" -d cpu --threads 1 -p fp8 --recipe "$recipe" --checkpoint-every 20 --quiet --name "$whole"
    expect_status 0
    keep_known "$whole" "$folder/a"
    run fork "$whole" --at 31 --quiet --name "$whole-again"
    expect_status 0
    keep_known "$whole-again" "$folder/b"
    cmp -s "$folder/a.weights" "$folder/b.weights" || fail "$recipe: the fork has other weights"
    [ "$(says "$whole" drawn)" = "$(says "$whole-again" drawn)" ] || fail "$recipe: the fork drew other numbers"
    [ "$(share_of "$whole-again")" -ge 300 ] || fail "$recipe: the fork's steps are not captured"
    run resume "$whole" --at 40 --quiet
    expect_status 0
    keep_known "$whole" "$folder/b"
    cmp -s "$folder/a.weights" "$folder/b.weights" || fail "$recipe: resumed it has other weights"
done
end
exit "$failures"
