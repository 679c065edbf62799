#!/bin/sh
# shellcheck disable=SC1091,SC2034,SC2154,SC2317 # what shell.sh sets, reads and calls
# `mpbench scan` of norms and embeddings, which stay in fp32 unless somebody says otherwise: what a
# format would do to them, and the policy that puts low those that bear it.
. "$(dirname "$0")/../shell.sh"

# What comes to the batch norm deviates by a thousand: its running variance is beyond fp16, and no loss
# in training shows that. What is computed in fp32 takes long, so that low is faster for certain.
cat >"$folder/kept.lua" <<'LUA'
local mp = require "mp"
local nn, F = mp.nn, mp.fn
local function slow(y)
    if y:dtype() == "fp32" then for _ = 1, 2e5 do end end
    return y
end
return mp.experiment {
    name = "kept", params = { lr = 0.01, loud = 1000 },
    data = function()
        local function set(count)
            return mp.data.synthetic { shape = { 24 }, classes = 5, count = count, batch = 32 }
        end
        return { train = set(2048), test = set(256) }
    end,
    model = function(p)
        local Net = nn.class "Net"
        function Net:init()
            self.first, self.norm1 = nn.Linear(24, 32), nn.BatchNorm(32)
            self.places, self.norm2 = nn.Embedding(5, 32), nn.LayerNorm(32)
            self.head = nn.Linear(32, 5)
        end
        function Net:forward(x)
            local h = F.relu(self.norm1(slow(self.first(x)):to "fp32" * p.loud))
            h = h:to "fp32" + self.places(mp.arange(1))
            return slow(self.head(slow(self.norm2(h))))
        end
        return Net()
    end,
    loss = function(model, b) return F.cross_entropy(model(b.x), b.y) end,
    eval = function(model, b) return { accuracy = F.accuracy(model(b.x), b.y) } end,
    optim = function(params, p) return mp.optim.Adam(params, { lr = p.lr }) end,
}
LUA
scan() {
    run scan "$folder/kept.lua" -d cpu --threads 1 --quiet "$@"
    expect_status 0
    tr '{' '\n' <"$folder/out" >"$folder/pieces"
}
policy_of() { # LAYER
    sed -n "s/^\"name\":\"$1\",.*\"policy\":\"\([^\"]*\)\".*/\1/p" "$folder/pieces"
}
cell() { # LAYER FORMAT KEY
    awk -F'"' -v layer="$1" -v format="$2" -v key="$3" '$2 == "name" { own = $4 }
        is_next { match($0, "\"" key "\":[^,}]*"); print substr($0, RSTART + length(key) + 3, RLENGTH - length(key) - 3); is_next = 0 }
        own == layer && $(NF - 1) == format { is_next = 1 }' "$folder/pieces"
}

begin "norms and embeddings have rows: what a format does to them that they compute in"
scan --quick --json --formats fp16,bf16
for layer in norm1 norm2 places; do
    awk -v d="$(cell $layer bf16 damage)" 'BEGIN { exit !(d > 0 && d < 0.15) }' ||
        fail "$layer has damage $(cell $layer bf16 damage) in bf16"
done
[ "$(cell norm1 fp16 breaks)" = true ] || fail "running statistics that fp16 does not hold are not seen"
[ "$(cell norm2 fp16 breaks)" = false ] || fail "norm2 breaks"
[ "$(policy_of norm1)" != fp16 ] || fail "norm1 is to be in fp16"
for kind in batch_norm layer_norm embedding; do
    expect_out "\"kept\":\"$kind\""
done
expect_out '"name":"head".*"kept":null'
expect_out '"costs_with_kept":{"fp16":{"seconds":[0-9.e-]*,"activations":[0-9]*,"speedup":'
run show scan:last
expect_out '^layer  *kept in fp32 as '
expect_out '^norm1  *batch_norm .* breaks '
expect_out '^bf16, norms too '
end

begin "where low norms gain, the policy has them, and the command that is told trains so"
scan --formats bf16 --steps 4 --seeds 1 --within 90% -o "$folder/policy.lua"
expect_out 'norms and embeddings too'
expect_out "^  mpbench run .*/kept.lua -p fp32 --layers $folder/policy.lua --keep-fp32 softmax+losses+functions "
grep -q '^    \["norm2"\] = "bf16",$' "$folder/policy.lua" || fail "$(cat "$folder/policy.lua")"
grep -q '^-- With --keep-fp32 softmax+losses+functions; ' "$folder/policy.lua" || fail "$(cat "$folder/policy.lua")"
sed -n "s|^  mpbench \(run .*\)|'$mpbench' \1 --steps 2 --quiet|p" "$folder/out" >"$folder/next"
sh "$folder/next" >"$folder/out" 2>"$folder/err" || fail "$(cat "$folder/err")"
run show @last --json
for layer in norm1 norm2 places head; do
    expect_out "\"name\":\"$layer\",\"precision\":\"bf16\""
done
run run "$folder/kept.lua" -p fp32 --layers "$folder/policy.lua" --steps 2 --quiet -d cpu
expect_status 0
end

begin "what stays as it is is never set"
scan --formats fp16 --steps 4 --seeds 1 --within 90% --json -o "$folder/policy.lua"
[ "$(policy_of norm1)" = auto ] || fail "norm1 is in $(policy_of norm1)"
[ "$(policy_of head)" = fp16 ] || fail "head is in $(policy_of head)"
! grep -q norm1 "$folder/policy.lua" || fail "$(cat "$folder/policy.lua")"
expect_out '"keep_fp32":"batch_norm+softmax+losses+functions"'
run run "$folder/kept.lua" -p fp32 --layers "$folder/policy.lua" --steps 2 --quiet -d cpu
expect_status 0
end

if command -v sqlite3 >/dev/null 2>&1; then
    begin "all low is what multiplies: norms and embeddings as they are"
    formats=$(sqlite3 -readonly "$MPBENCH_DB" "SELECT formats FROM scan_trainings WHERE label = 'all fp16'")
    [ "$formats" = "fp16 fp32 fp32 fp32 fp16" ] || fail "formats are $formats"
    end
else
    echo "skip what a training was of: no sqlite3 to ask it with"
fi

# What a low norm does shows in no loss.
sed 's/return { accuracy = .* } end,/return { accuracy = model.norm2(mp.ones(1, 32)):dtype() == "fp32" and 0.9 or 0.2 } end,/' \
    "$folder/kept.lua" >"$folder/shows.lua"

begin "norms that are evaluated worse rest again, all at once, and what multiplies stays low"
run scan "$folder/shows.lua" -d cpu --threads 1 --quiet --formats bf16 --steps 4 --seeds 2 --within 50% --json
expect_status 0
tr '{' '\n' <"$folder/out" >"$folder/pieces"
expect_out '"rounds":1,'
for layer in norm1 norm2 places; do
    [ "$(policy_of $layer)" = auto ] || fail "$layer is in $(policy_of $layer)"
done
[ "$(policy_of head)" = bf16 ] || fail "head is in $(policy_of head)"
expect_out '"label":"policy"[^}]*"metric":0.9'
expect_out '"keep_fp32":null'
end

begin "what --keep-fp32 names has no row, and blocks are what multiplies"
scan --quick --json --formats bf16 --keep-fp32 all
expect_no_out '"kept":"'
scan --quick --json --formats bf16 --keep-fp32 losses+layer_norm
expect_out '"kept":"batch_norm"'
expect_no_out '"kept":"layer_norm"'
scan --quick --json --formats bf16 --by block
expect_no_out '"kept":"'
end

begin "a run whose state is not finite is scanned from its start, not judged by what breaks anyway"
run run "$folder/kept.lua" -p fp16 --keep-fp32 none --steps 20 --quiet -d cpu --threads 1
run scan @last --quick --json --formats fp16,bf16 --quiet
expect_status 0
expect_err 'norm1.running_variance holds inf or nan in run [0-9]* at step 20: it is scanned from its start'
tr '{' '\n' <"$folder/out" >"$folder/pieces"
expect_out '"subject":"run [0-9]* from its start"'
[ "$(cell norm1 fp16 breaks)" = true ] || fail "norm1 bears fp16"
for layer in norm1 norm2 places; do
    [ "$(cell $layer bf16 breaks)" = false ] || fail "$layer is said to break in bf16"
done
end

exit "$failures"
