#!/bin/sh
# shellcheck disable=SC1091,SC2034,SC2154 # what shell.sh sets, reads and calls
# A card that fails, runs out of memory or is one of several, as a run meets it (faults 56 to 60).
. "$(dirname "$0")/../shell.sh"

use_emulated_card faults_of_cards

cat >"$folder/small.lua" <<'LUA'
local mp = require "mp"
local nn, F = mp.nn, mp.fn
return mp.experiment { name = "small", params = { steps = 12, size = 16 }, run = function(run)
    local p = run.params
    local net = run:model(nn.Sequential { nn.Linear(8, p.size), nn.ReLU(), nn.Linear(p.size, 1) })
    local opt = mp.optim.SGD(net:parameters(), { lr = 1e-2 })
    for step = 1, p.steps do
        local x = mp.randn(16, 8)
        opt:zero_grad()
        local loss = F.mse(net(x), x:sum(2, true))
        loss:backward()
        opt:step()
        run:log { loss = loss }
        if step == 4 then run:checkpoint() end
    end
end }
LUA

# train SETTINGS [OPTION ...]   over a card with such settings
train() {
    export MPBENCH_EMULATOR="$1"
    shift
    run run "$folder/small.lua" -p fp32 --quiet "$@"
}

begin "without a card that works the processor trains, and a request says why"
train cards=0
expect_status 0
run show @last --json
expect_out '"device":"cpu"'
train cards=0 -d gpu
expect_error 3 'device gpu: this machine has no card that its driver serves'
end

begin "a driver that is too old is told with both versions"
train driver=11080 -d gpu
expect_error 3 'the driver serves CUDA 11.8, this build needs 13.0'
end

begin "a card that cannot train is refused before anything is begun"
train capability=75 -d gpu
expect_error 3 'has capability 7.5, 8.0 or later is needed'
end

begin "a card without memory left says how much was asked for, and is usable again"
train memory=128M -d gpu --set size=3000000
expect_status 1
expect_err 'device gpu is out of memory: [0-9]* MiB asked, [0-9]* MiB of its 128 in use; a smaller batch'
train memory=128M -d gpu
expect_status 0
end

begin "a card that fails as memory is asked for is not taken for one that is full"
train fail=cuMemAlloc/20:700 -d gpu
expect_status 1
expect_err 'device gpu: taking memory of the card: .*(error 700); what the card computes is not to be trusted'
end

begin "of two cards of which one fails the other trains"
train cards=2,fail=cuStreamCreate/1:999
expect_status 0
run show @last
expect_out 'gpu:1'
expect_out 'device.passed *device gpu: making a stream: unknown error'
end

begin "a card that is lost ends the run, and a resume goes on from the last checkpoint to the bit"
train '' -d gpu --seed 3 --name whole
expect_status 0
train crash=260:700 -d gpu --seed 3 --name lost
expect_status 1
expect_err 'device gpu: .*(error 700); what the card computes is not to be trusted any more: resume'
export MPBENCH_EMULATOR=
run resume lost --quiet
expect_status 0
"$mpbench" show whole --json | grep -o '"loss":{[^}]*}' >"$folder/whole"
"$mpbench" show lost --json | grep -o '"loss":{[^}]*}' >"$folder/lost"
grep -q last "$folder/whole" || fail "no loss is known"
grep -o '"last":[^,}]*' "$folder/whole" >"$folder/a"
grep -o '"last":[^,}]*' "$folder/lost" >"$folder/b"
cmp -s "$folder/a" "$folder/b" || fail "the last loss is $(cat "$folder/b"), not $(cat "$folder/a")"
end

begin "a plugin of another build is refused by name"
cat >"$folder/other.c" <<'C'
static const struct { unsigned long stamp; const void *backend; } plugin = {1, 0};
const void *mpbench_plugin(void) { return &plugin; }
C
compile "$folder/other.so" "$folder/other.c" || fail "it does not compile: $(head -n 1 "$folder/err")"
MPBENCH_GPU=$folder/other.so train '' -d gpu
expect_error 3 'device gpu: .*other.so is of another build of mpbench: run make again'
end

# A real one is opened before the sandbox closes, and opens parts of itself when these are needed.
begin "what lies beside the library of a card can be read as a run on it ends, and else cannot"
far=$(mktemp -d)
echo text >"$far/part.so"
cat >"$far/library.c" <<'C'
#include <stdio.h>
__attribute__((destructor)) static void look(void) {
    FILE *part = fopen(FAR "/part.so", "r");
    fprintf(stderr, "beside: %s\n", part ? "read" : "shut");
}
C
compile "$far/libcublasLt.so.13" -DFAR="\"$far\"" "$far/library.c" || fail "the library is not compiled"
near() { # [VARIABLE=VALUE ..]: runs on $device; leaves what the library says at the end in $beside
    env LD_LIBRARY_PATH="$far" MPBENCH_EMULATOR=files=1 "$@" "$mpbench" run "$folder/small.lua" -p fp32 -d "$device" \
        --quiet >"$folder/out" 2>"$folder/err"
    status=$?
    expect_status 0
    beside=$(grep '^beside' "$folder/err" | tail -n 1)
}
device=cpu near "LD_PRELOAD=$far/libcublasLt.so.13"
is_shut=$beside
device=gpu near
rm -rf "$far"
[ "$beside" = "beside: read" ] || fail "on a card: $beside"
if [ "$is_shut" = "beside: read" ] && [ -z "$why" ]; then
    echo "skip $name: this kernel lacks Landlock, and shuts nothing"
else
    [ "$is_shut" = "beside: shut" ] || fail "without a card: $is_shut"
    end
fi

exit "$failures"
