#!/bin/sh
# shellcheck disable=SC1091,SC2034,SC2154,SC2317 # what shell.sh sets and reads; by its name
# tf32 on a processor, which rounds what it multiplies: as a run's precision, as a layer's, on the way,
# and what is said of its speed.
. "$(dirname "$0")/../shell.sh"

use_loop
cat >"$folder/small.lua" <<'LUA'
local mp = require "mp"
local nn, F = mp.nn, mp.fn
return mp.experiment { name = "small", params = { steps = 40, toggles = 0 }, run = function(run)
    local p = run.params
    local Net = nn.class "Net"
    function Net:init()
        self.conv = nn.Conv2d(4, 16, 3, { padding = 1 })
        self.up = nn.ConvTranspose2d(16, 8, 2, { stride = 2 })
        self.attention = nn.Attention(8, 2)
        self.head = nn.Linear(8, 4)
    end
    function Net:forward(x)
        x = F.relu(self.up(F.relu(self.conv(x))))
        x = self.attention(x:reshape(16, 64, 8))
        return self.head(x:mean(2))
    end
    local net = run:model(Net())
    local opt = mp.optim.Adam(net:parameters(), { lr = 1e-3 })
    local formats = { "tf32", "bf16", "fp32", "auto" }
    require "loop" (run, opt, p.steps, function(x, y) return (F.cross_entropy(net(x), y)) end, function(step)
        if p.toggles > 0 and step % p.toggles == 0 then
            net:find("*"):precision(formats[step // p.toggles % #formats + 1])
        end
        return mp.randn(16, 4, 4, 4), mp.randint(4, 16)
    end)
end }
LUA
train() { # NAME OPTION..: leaves what the run came by: its losses and gradients, and what they ended with
    what=$1
    shift
    run run "$folder/small.lua" -d cpu --quiet --name "$what" "$@"
    expect_status 0
    look "$what"
}
look() { # NAME
    last=$(says "$1" last)
    [ -n "$last" ] || fail "$1: no loss"
    came=$(points_of "$1" | cksum)
}

begin "a run in tf32 rounds in every layer, and in no other than those that are set to it"
train full -p fp32
full=$came full_loss=$last
train whole -p tf32
whole=$came
[ "$whole" != "$full" ] || fail "nothing was rounded: $last in both"
awk "BEGIN { d = $last / $full_loss; exit !(d > 0.99 && d < 1.01) }" || fail "$last is far from $full_loss in fp32"
train layers -p fp32 --layer '*=tf32'
[ "$came" = "$whole" ] || fail "one thing by the precision, another by layers: $last"
for layer in conv up attention head; do
    train "$layer" -p fp32 --layer "$layer=tf32"
    [ "$came" != "$full" ] || fail "$layer: nothing was rounded"
    [ "$came" != "$whole" ] || fail "$layer: as if all were rounded"
done
train none -p tf32 --layer '*=fp32'
[ "$came" = "$full" ] || fail "$full_loss in fp32, $last where every layer is set to it"
run show whole --json
expect_out '{"name":"conv","precision":"tf32"'
end

begin "its memory is fp32's, and the loss needs no scale"
run show whole
expect_no_out '^loss scale'
for of in weights masters; do
    [ "$(says whole $of)" = "$(says full $of)" ] || fail "$of: $(says whole $of), $(says full $of) in fp32"
done
end

begin "a fork and a resume end as the run that was never interrupted"
train switched -p tf32 --set toggles=3 --checkpoint-every 20
whole=$came whole_loss=$last
run fork switched --at 31 --quiet --name forked
expect_status 0
[ "$(says forked last)" = "$whole_loss" ] || fail "the fork: $(says forked last), not $whole_loss"
run resume switched --at 20 --quiet
expect_status 0
look switched
[ "$came" = "$whole" ] || fail "the resume: $last, not $whole_loss"
train plain -p fp32 --checkpoint-every 20
run fork plain --at 20 --layer head=tf32 --quiet --name other
expect_status 0
[ "$(says other last)" != "$last" ] || fail "the fork's layer made no difference"
end

begin "an order sets a layer to it, and the screen is told that it can be set"
"$mpbench" run "$folder/small.lua" -d cpu -p fp32 --name live --set steps=100000000 --quiet >"$folder/live" 2>&1 &
worker=$!
wait_until 10 is_running live 1
run ctl live set layer.head=tf32
expect_status 0
expect_no_out 'still'
run ctl live stop
wait "$worker"
run show live
expect_out '^head  *tf32  *tf32 '
expect_out '^  formats fp32 tf32 bf16 fp16 '
end

begin "a matrix trains in it beside fp32, and eval has it beside others"
run matrix "$folder/small.lua" -d cpu -p fp32,tf32 --set steps=3 --json
expect_status 0
expect_out '"precision": *"tf32"'
cat >"$folder/parted.lua" <<'LUA'
local mp = require "mp"
local nn, F = mp.nn, mp.fn
local function data()
    local x = mp.randn(200, 16)
    return mp.data.tensors { x = x, y = F.greater(x:sum(2), mp.zeros(200)):to "int32", batch = 8 }
end
return mp.experiment { name = "parted", params = {},
    data = function() return { train = data(), test = data() } end,
    model = function() return nn.Sequential { nn.Linear(16, 2):named "head" } end,
    loss = function(m, b) return F.cross_entropy(m(b.x), b.y) end,
    optim = function(params) return mp.optim.Adam(params, { lr = 1e-2 }) end }
LUA
run run "$folder/parted.lua" -d cpu -p tf32 --epochs 1 --quiet --name parted
expect_status 0
run eval parted --quick --json
expect_status 0
expect_silent err
loss_of() {
    sed 's/[[:space:]]//g' "$folder/out" | grep -o "\"precision\":\"$1\".*" | grep -o '"loss":[^,}]*' | head -n 1
}
[ -n "$(loss_of tf32)" ] || fail "the run's own is not evaluated"
[ "$(loss_of tf32)" != "$(loss_of fp32)" ] || fail "it is evaluated as fp32 is: $(loss_of fp32)"
end

begin "nothing says that a processor gains by it"
run doctor
expect_out '^ *.*tf32 trains, no faster than fp32$'
run doctor --json
expect_out '"trains":\["fp32","tf32","bf16"'
expect_no_out '"gains":\[[^]]*"tf32"'
run help precisions
expect_out 'tf32: products round their fp32 factors'
expect_out 'no faster'
end

exit "$failures"
