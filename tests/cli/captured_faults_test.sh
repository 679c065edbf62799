#!/bin/sh
# shellcheck disable=SC1091,SC2034,SC2154 # what shell.sh sets, reads and calls
# What is not finite in steps that a script hands over is told of alike, captured and not: the page,
# what led there, diagnoses, skipped steps and whose gradient is to blame.
. "$(dirname "$0")/../shell.sh"

# At step 30 steps have long been captured; what happens then comes in with what they are handed.
cat >"$folder/handed.lua" <<'LUA'
local mp = require "mp"
local nn, F = mp.nn, mp.fn
return mp.experiment { name = "handed", params = { kind = "none", steps = 60 }, run = function(run)
    local kind = run.params.kind
    local up, bn = nn.Linear(8, 16):named "up", nn.BatchNorm(16):named "bn"
    local head = nn.Linear(16, 3):named "head"
    local net = run:model(nn.Sequential { up, bn, head })
    local opt, scaler = mp.optim.SGD(net:parameters(), { lr = 0.01 }), run:scaler()
    local function step(x, y, forward, back)
        opt:zero_grad()
        local loss = mp.autocast(function() return F.cross_entropy(head(bn(F.dropout(F.relu(up(x)), 0.1) * forward)), y) end)
        scaler:scale(loss * back):backward()
        scaler:step(opt)
        scaler:update()
        run:log { loss = loss }
    end
    for at = 1, run.params.steps do
        local function if_now(which, value, else_value) return at == 30 and kind == which and value or else_value end
        local x = mp.randn(8, 8)
        if at == 30 and kind == "data" then x:slice(1, 3, 3):copy(mp.zeros(1, 8) / 0) end
        local loud = kind == "loud" and at >= 30 and 4000 or if_now("forward", 3e38, 1)
        run:step(step, x, mp.randint(3, 8), mp.tensor { loud },
            mp.tensor { if_now("back", 1e30, if_now("steep", 3e38, 1)) })
    end
end }
LUA

told_of() { # RUN FILE: all that is told of it
    {
        "$mpbench" show "$1" --first-nan --json | sed 's/"id":[0-9]*,"name":"[^"]*",//; s/mpbench fork [0-9]*/mpbench fork/'
        "$mpbench" show "$1" --json | grep -o '"diagnoses":\[[^]]*\]\|"skipped":[0-9]*'
        "$mpbench" export "$1" --format jsonl | grep '^{"kind":"\(point\|event\|skip\)' |
            grep -v '"series":"step_seconds"\|"what":"life"' | sed 's/"time_ms":[0-9]*,//'
    } >"$2"
}
alike() { # KIND TEXT OPTION..: which is told
    kind=$1 text=$2
    shift 2
    for way in captured plain; do
        told="$kind-$(echo "$*" | tr -dc 'a-z0-9')-$way"
        no_capture=$([ $way = captured ] || echo --no-capture)
        # shellcheck disable=SC2086 # an option, or none
        run run "$folder/handed.lua" -d cpu --threads 1 --quiet --name "$told" --set "kind=$kind" $no_capture "$@"
        echo "exit status $status" >"$folder/$way.status"
        told_of "$told" "$folder/$way"
    done
    share=$("$mpbench" show "${told%plain}captured" | awk '$1 == "steps.captured" { print int($2 * 1000) }')
    [ "${share:-0}" -ge 200 ] || fail "$kind: ${share:-0} of 1000 steps were captured"
    cmp -s "$folder/captured.status" "$folder/plain.status" || fail "$kind $*: other exit status"
    cmp -s "$folder/captured" "$folder/plain" ||
        fail "$kind $*: $(diff "$folder/captured" "$folder/plain" | cut -c1-400 | tr '\n' ' ')"
    grep -q -e "$text" "$folder/captured" || fail "$kind $*: lacks $text: $(cut -c1-300 "$folder/captured" | head -n 3)"
}

for precision in fp16 fp32; do
    begin "what is not finite in captured steps is told of as in others, in $precision"
    alike none '"found":false' -p $precision
    alike forward '"step":30,.*"tensor":"output of mul"' -p $precision
    alike data '"step":30,.*"tensor":"data"' -p $precision
    alike steep '"step":30' -p $precision
    alike back '"skipped":' -p $precision
    end
done

begin "statistics that stay inf are told of alike"
alike loud '"kind":"poisoned_statistics"' -p fp16 --keep-fp32 losses
end

begin "of a step that is skipped no running statistic keeps anything"
for precision in fp16 fp32; do
    run show data-p$precision-captured --first-nan
    expect_out 'nan at step 30 .* in the data that'
    expect_no_out 'keeps it for every evaluation'
done
end
exit "$failures"
