#!/bin/sh
# shellcheck disable=SC1091,SC2034,SC2154,SC2317 # what shell.sh sets, reads and calls
# A run that is killed, as the system kills what takes too much memory, at any moment while it writes
# a checkpoint every few steps: it is told as dead, and goes on from the last one as if it had never
# been killed, or says that it has none. $MPBENCH is the program.
[ ! -w /dev/shm ] || export TMPDIR=/dev/shm # a kill does not ask how fast the disk is
. "$(dirname "$0")/../shell.sh"
rounds=4
[ -z "${MPBENCH_SOAK:-}" ] || rounds=300
every=7

cat >"$folder/slow.lua" <<'LUA'
local mp = require "mp"
local nn, F = mp.nn, mp.fn
return mp.experiment { name = "slow", run = function(run)
    local net = run:model(nn.Sequential { nn.Linear(8, 64), nn.ReLU(), nn.Dropout(0.2), nn.Linear(64, 1) })
    local opt = mp.optim.Adam(net:parameters(), { lr = 1e-2 })
    local scaler = run:scaler()
    for _ = 1, 120 do
        opt:zero_grad()
        local loss = mp.autocast(function() return F.mse(net(mp.randn(16, 8)), mp.ones(16, 1)) end)
        scaler:scale(loss):backward()
        scaler:step(opt)
        scaler:update()
        run:log { loss = loss }
        for _ = 1, 20000 do math.sqrt(2) end
    end
end }
LUA

# losses NAME: step and loss of every step that counts.
losses() {
    "$mpbench" export "$1" --format csv | awk -F, '
        NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next }
        { print $at["step"], $at["loss"] }'
}
# tensors NAME: the bytes of the last checkpoint behind its header, which has times in it.
tensors() {
    "$mpbench" export "$1" --format safetensors >"$folder/weights" 2>/dev/null
    tail -c "+$(($(od -An -tu8 -N8 "$folder/weights") + 9))" "$folder/weights"
}
has_checkpoint() { "$mpbench" show "$1" 2>/dev/null | grep -q '^Checkpoints'; }
is_dead() { [ "$(says "$1" status)" = '"dead"' ]; }
is_over() { [ "$(says "$1" status)" = '"finished"' ] || is_dead "$1"; }

begin "a run that is killed at any moment goes on from its last checkpoint to the bit"
"$mpbench" run "$folder/slow.lua" --name whole --threads 1 -p fp16 --quiet >/dev/null 2>"$folder/err" ||
    fail "exit status $?: $(cat "$folder/err")"
losses whole >"$folder/losses"
[ "$(wc -l <"$folder/losses")" -eq 120 ] || fail "$(wc -l <"$folder/losses") losses"
tensors whole >"$folder/tensors"
[ -s "$folder/tensors" ] || fail "no weights"
resumed=0
round=0
while [ "$round" -lt "$rounds" ] && [ -z "$why" ]; do
    round=$((round + 1))
    named=killed$round
    "$mpbench" run "$folder/slow.lua" --name "$named" --threads 1 -p fp16 --checkpoint-every "$every" --quiet \
        >/dev/null 2>&1 &
    worker=$!
    workers="$workers $worker"
    [ $((round % 3)) -eq 0 ] || wait_until 10 has_checkpoint "$named" # else before it, perhaps
    # shellcheck disable=SC2046 # any moment
    sleep $(awk -v seed="$round$$" 'BEGIN { srand(seed); print 0.2 * rand() }')
    kill -9 "$worker" 2>/dev/null
    wait "$worker" 2>/dev/null
    [ -n "$(says "$named" status)" ] || continue # before it had a row
    wait_until 5 is_over "$named" || fail "round $round: it is $(says "$named" status)"
    "$mpbench" show "$named" >"$folder/shown"
    ! is_dead "$named" || grep -q 'error .*killed, as by a second Ctrl-C or where memory runs out.*mpbench resume' "$folder/shown" ||
        fail "round $round: nobody says why: $(head -n 5 "$folder/shown")"
    run resume "$named" --quiet
    if [ "$status" -eq 0 ]; then
        resumed=$((resumed + 1))
        losses "$named" | cmp -s - "$folder/losses" || fail "round $round: other losses than the whole run"
        tensors "$named" | cmp -s - "$folder/tensors" || fail "round $round: other weights than the whole run"
    else
        grep -q -e 'has no checkpoint' -e 'has finished' "$folder/err" || fail "round $round: $(cat "$folder/err")"
    fi
done
[ "$resumed" -gt 0 ] || fail "no run could go on in $rounds rounds"
[ "$(in_history 'PRAGMA quick_check')" = ok ] || fail "the history is damaged"
end

begin "what a killed run has left of a checkpoint is cleared away"
part=$folder/checkpoints/$(says "$named" id)/step-999.safetensors.tmp # few are killed in a write
mkdir -p "${part%/*}" && : >"$part"
"$mpbench" gc >"$folder/out" 2>"$folder/err" || fail "gc: $(cat "$folder/err")"
[ -z "$(find "$folder/checkpoints" -name '*.tmp')" ] || fail "a part is left"
end
exit "$failures"
