#!/bin/sh
# shellcheck disable=SC1091,SC2034,SC2154 # what shell.sh sets and reads
# eval: a trained model on its test data, in formats side by side.
. "$(dirname "$0")/../shell.sh"

# Two classes that a line parts, of which the test data has as many as 100 batches of 8.
cat >"$folder/parted.lua" <<'LUA'
local mp = require "mp"
local nn, F = mp.nn, mp.fn
local function data(p)
    local function part(count, seed)
        mp.seed(seed)
        local x = mp.randn(count, 16)
        local y = F.greater(x:slice(2, 1, 8):sum(2), x:slice(2, 9, 16):sum(2)):to "int32"
        return mp.data.tensors { x = x, y = y, batch = p.batch }
    end
    return { train = part(800, 1), test = part(804, 2) }
end
local function model(p)
    mp.seed(3)
    return nn.Sequential { nn.Linear(16, p.width, { activation = "relu" }):named "hidden",
        nn.Linear(p.width, 2):named "head" }
end
return mp.experiment {
    name = "parted",
    params = { batch = 8, width = 32, lr = 1e-2 },
    data = data, model = model,
    loss = function(m, b) return F.cross_entropy(m(b.x), b.y) end,
    eval = function(m, b) return { accuracy = F.accuracy(m(b.x), b.y) } end,
    optim = function(params, p) return mp.optim.Adam(params, { lr = p.lr }) end,
}
LUA
run run "$folder/parted.lua" -d cpu --threads 1 -p bf16 --set width=24 --quiet --json
trained=$(value_of accuracy)

# of FORMAT KEY: a key's value in that format's part of the JSON
of() {
    sed 's/[[:space:]]//g' "$folder/out" | grep -o "\"precision\":\"$1\".*" | grep -o "\"$2\":[^,}]*" | head -n 1 | cut -d: -f2-
}
is() { # TEXT: what awk makes true
    awk "BEGIN { exit !($1) }"
}

begin "the weights of the last checkpoint give what the training ended with"
run eval 1 --json --quick
expect_status 0
expect_silent err
[ "$(of bf16 accuracy)" = "$trained" ] || fail "accuracy $(of bf16 accuracy), the run had $trained"
[ "$(value_of samples)" = 804 ] || fail "$(value_of samples) samples"
[ "$(value_of batch)" = 8 ] || fail "batches of $(value_of batch)"
end

begin "its own precision, fp32 and others stand side by side, each with what it is over fp32"
for format in bf16 fp32 fp16; do
    [ -n "$(of $format loss)" ] || fail "no $format"
done
is "$(of bf16 loss) != $(of fp32 loss)" || fail "bf16 computes as fp32 does"
is "$(of bf16 weights_disk) < $(of fp32 weights_disk)" || fail "weights of bf16: $(of bf16 weights_disk) bytes"
[ "$(of fp32 weights_disk)" = "$((4 * (16 * 24 + 24 + 24 * 2 + 2)))" ] || fail "weights of fp32: $(of fp32 weights_disk) bytes"
is "$(of fp32 activations) > 0 && $(of fp32 peak) > $(of fp32 activations)" || fail "activations: $(of fp32 activations) bytes"
end

begin "of what was not timed no column tells"
run eval 1 --quick -p fp32,bf16
expect_out '^precision .* weights'
expect_no_out 'x fp32'
end

begin "formats come by several options, with commas, by other names, and once"
run eval 1 -p fp32,half --precision fp16 -p mxfp8 --quick --json
expect_status 0
[ "$(grep -o '"precision":"[a-z0-9]*"' "$folder/out" | cut -d'"' -f4 | tr '\n' ' ')" = "fp32 fp16 mxfp8 " ] ||
    fail "formats: $(grep -o '"precision":"[a-z0-9]*"' "$folder/out")"
end

begin "--layer holds in every format"
run eval 1 -p fp32,bf16 --layer '*=fp32' --quick --json
expect_status 0
[ "$(of bf16 loss)" = "$(of fp32 loss)" ] || fail "bf16 $(of bf16 loss), fp32 $(of fp32 loss)"
[ "$(of bf16 weights_disk)" = "$(of fp32 weights_disk)" ] || fail "$(of bf16 weights_disk) bytes of weights"
end

begin "what the run was trained in is said to be it, but for layers that were set anew"
run eval 1 --quick
expect_out '[*] what the run was trained in *$'
run eval 1 --layer '*=fp16' --quick
expect_out 'trained in, but for the layers that --layer sets'
end

begin "formats are timed in turn, and how far rounds scatter is told"
sed 's/eval = function(m, b) .*/eval = function(m, b) local y = m(b.x) print(y:dtype()) return { accuracy = F.accuracy(y, b.y) } end,/' \
    "$folder/parted.lua" >"$folder/telling.lua"
run run "$folder/telling.lua" -d cpu --threads 1 -p bf16 --quiet --set batch=400
run eval @last -p fp32,bf16 --quiet --json
expect_status 0
changes=$(uniq "$folder/err" | wc -l)
[ "$changes" -ge 12 ] || fail "formats took turns $changes times"
is "$(of bf16 speedup_least) <= $(of bf16 speedup) && $(of bf16 speedup) <= $(of bf16 speedup_most)" ||
    fail "a spread of $(of bf16 speedup_least) to $(of bf16 speedup_most) about $(of bf16 speedup)"
grep -q '"load_of_others":' "$folder/out" || fail "what others kept busy is not told"
end

begin "a model that fails on a single sample keeps its results, and a note says why"
cat >"$folder/halves.lua" <<'LUA'
local mp = require "mp" local nn, F = mp.nn, mp.fn
return mp.experiment { name = "halves", params = {},
  data = function() local d = mp.data.tensors { x = mp.ones(8, 4), batch = 4 } return { train = d, test = d } end,
  model = function() return nn.Sequential { nn.Linear(4, 2) } end,
  loss = function(m, b)
    local y, half = m(b.x), b.count // 2
    if half == 0 then error "no halves" end
    return F.mse(y:slice(1, 1, half), y:slice(1, half + 1, 2 * half))
  end,
  optim = function(params) return mp.optim.SGD(params, { lr = 0 }) end }
LUA
run run "$folder/halves.lua" -d cpu --threads 1 -p fp32 --epochs 1 --quiet --name halves
run eval halves -p fp32,bf16
expect_status 0
expect_out '^A single sample was not timed, since the model fails on it (in [a-z0-9]*): .*no halves'
expect_no_out 'ms, one'
expect_out '^precision .* ms, 4 '
run eval halves -p fp32,bf16 --json
expect_status 0
expect_out '"one":{"samples":1,"median_s":null,"count":0,"rounds_s":\[\]}'
expect_out '"one_fails":".*no halves'
is "$(of bf16 speedup) > 0" || fail "a speed of $(of bf16 speedup)"
run rm halves
end

begin "where there is no memory for one more, it is evaluated when the others are done"
sed "s/print(y:dtype())/if y:dtype() == 'bf16' then print 'no room' mp.zeros(2^44) end/" \
    "$folder/telling.lua" >"$folder/alone.lua"
mv "$folder/alone.lua" "$folder/telling.lua"
run eval @last -p fp32,bf16 --quiet
expect_status 1
expect_err "out of memory"
[ "$(grep -c '^no room' "$folder/err")" = 2 ] || fail "it was tried $(grep -c '^no room' "$folder/err") times"
sed -i "s/mp.zeros(2^44)/error 'out of memory'/" "$folder/telling.lua" # which tells it by words alone
run eval @last -p fp32,bf16 --quiet
expect_status 1
[ "$(grep -c '^no room' "$folder/err")" = 1 ] || fail "words were taken for a lack of memory"
end

begin "times are medians that say of how many"
run eval 1 -p fp32 --json
expect_status 0
is "$(value_of median_s) > 0 && $(value_of samples_per_s) > 0" || fail "no times"
is "$(value_of count) >= 5" || fail "$(value_of count) calls"
end

begin "the table names what it compares with and says what is worth it"
run eval 1 -p bf16 -p fp32
expect_status 0
expect_out '^precision  *accuracy  *change'
expect_out '^bf16\*'
expect_out '804 samples on cpu, 1 thread'
expect_out 'is worth it\|fp32 stays\|cannot be told'
expect_out 'medians of [0-9]* rounds through all formats'
[ "$("$mpbench" ls --json | grep -o '"status"' | wc -l)" = 2 ] || fail "the evaluation is in the history"
end

begin "all that \`eval\` gives is told, whatever leads"
sed 's/eval = function(m, b) .*/eval = function() return { psnr = 17.5, first = 1.25, second = 2.25, third = 3.25 } end,/' \
    "$folder/parted.lua" >"$folder/results.lua"
run run "$folder/results.lua" -d cpu --threads 1 -p bf16 --quiet --name results
run eval results -p fp32,bf16 --quick
expect_status 0
expect_out '^precision  *loss  *change  *[a-z]*  *change'
for result in psnr first second third; do
    expect_out "$result"
done
[ "$(grep -oE '17\.5|1\.25|2\.25|3\.25' "$folder/out" | sort | uniq -c | tr -s ' ' | tr '\n' ' ')" = \
    " 2 1.25  2 17.5  2 2.25  2 3.25 " ] || fail "not all of both formats: $(cat "$folder/out")"
expect_out '^third  *3.25  3.25 (+0.0000)'
run rm results
end

begin "the run's own precision is left out with a line where the device lacks it"
run eval 1 -d gpu:99 --quick --quiet
expect_err "^mpbench: bf16, the run's own precision, is left out: device gpu"
expect_no_out '^bf16'
end

begin "int8 is evaluated, loses little, and nothing trains in it"
run eval 1 -p fp32,int8 --quick --json
expect_status 0
is "$(of int8 loss) != $(of fp32 loss)" || fail "int8 computes as fp32 does"
is "$(of fp32 accuracy) - $(of int8 accuracy) <= 0.005" || fail "accuracy $(of int8 accuracy), fp32 has $(of fp32 accuracy)"
is "$(of int8 weights_disk) < 0.4 * $(of fp32 weights_disk)" || fail "weights of $(of int8 weights_disk) bytes"
exact=$(of int8 loss)
run eval 1 -p int8 -d ref --quick --json
[ "$(of int8 loss | cut -c1-8)" = "$(echo "$exact" | cut -c1-8)" ] || fail "loss $(of int8 loss) on ref, $exact on cpu"
run eval 1 -p int8 --layer 'head=fp32' --quick --json
is "$(of int8 loss) != $exact" || fail "the head in fp32 changes nothing"
run run "$folder/parted.lua" -d cpu -p int8
expect_error 3 "int8: for evaluation alone: .*mpbench eval RUN -p int8"
run run "$folder/parted.lua" -d cpu --layer 'head=int8'
expect_error 3 "mpbench eval RUN -p int8"
end

begin "a format by itself says what it is not held against"
run eval 1 -p int8 --quick
expect_status 0
expect_out '^fp32, which changes and speeds are held against, is not among -p'
run eval 1 -p fp32,int8 --quick
expect_no_out 'is not among -p'
end

begin "what int8 is scaled by is the percentile that loses least, or the largest, of so many batches"
run eval 1 -p int8 --calibrate 1,largest --quick --json
expect_status 0
is "$(of int8 loss) != $exact" || fail "one batch's largest and eight batches' percentile give the same"
run eval 1 -p int8 --calibrate 8,smallest
expect_usage_error "N,largest"
run eval 1 -p int8 --calibrate 0
expect_usage_error "calibrate"
end

begin "int8 costs a transformer at most 1 % of its loss"
steps=30 set="--set layers=2 --set width=64 --set heads=2 --set context=16"
[ -z "${MPBENCH_SOAK:-}" ] || { steps=300; set=; }
# shellcheck disable=SC2086 # words
run run gpt -d cpu --threads 2 -p fp32 --set steps=$steps --set write=0 $set --quiet
expect_status 0
run eval @last -p fp32,int8 --quick --json
is "$(of int8 loss) <= 1.01 * $(of fp32 loss)" || fail "loss $(of int8 loss), fp32 has $(of fp32 loss)"
is "$(of int8 loss) != $(of fp32 loss)" || fail "int8 computes as fp32 does"
end

if [ -n "${MPBENCH_SOAK:-}" ]; then
    begin "int8 costs fashion_cnn at most half a point of accuracy"
    run run fashion_cnn -d cpu -p fp32 --set epochs=1 --quiet
    expect_status 0
    run eval @last -p fp32,int8 --quick --json
    is "$(of fp32 accuracy) - $(of int8 accuracy) <= 0.005" || fail "accuracy $(of int8 accuracy), fp32 has $(of fp32 accuracy)"
    end
fi

begin "other weights, a checkpoint at a step, and what is not there"
run export 1 --format safetensors -o "$folder/w.safetensors"
run eval 1 --weights "$folder/w.safetensors" -p bf16 --quick --json
expect_status 0
[ "$(of bf16 accuracy)" = "$trained" ] || fail "accuracy $(of bf16 accuracy)"
[ "$(value_of step)" = null ] || fail "weights of a file are of step $(value_of step)"
run eval 1 --weights none
expect_usage_error "--weights: none: .*check the path"
run run "$folder/parted.lua" --weights none --no-history
expect_usage_error "--weights: none: .*check the path"
for format in int8 mxfp4 fp8; do
    "$mpbench" export 1 --format safetensors -p $format -o "$folder/few.safetensors"
    run eval 1 --weights "$folder/few.safetensors"
    expect_error 1 "is quantised in this file: weights in fp32 or 16 bits are wanted"
done
run eval 1 --at 3
expect_error 1 "no checkpoint at or before that step; --weights FILE"
run eval 7
expect_error 2
run eval 1 -p fp12
expect_usage_error "not known"
end

begin "weights that are not finite are named in a line, and in the object"
cat >"$folder/broken.lua" <<'LUA'
local mp = require "mp" local nn = mp.nn
return mp.experiment { name = "broken", params = {},
  data = function() local d = mp.data.tensors { x = mp.ones(2, 3), batch = 2 } return { train = d, test = d } end,
  model = function() return nn.Sequential { nn.Linear(3, 2):named "good", nn.Linear(2, 1):named "bad" } end,
  loss = function(m, b) return m(b.x):sum() end,
  optim = function(params) params[3]:copy(mp.full(1 / 0, 1, 2)) return mp.optim.SGD(params, { lr = 0 }) end }
LUA
run run "$folder/broken.lua" -p fp32 --loss-scale none --epochs 1 --quiet --name broken
run eval broken -p fp32,bf16 --quick --quiet
expect_status 0
expect_err '^mpbench: these weights are of no use: .*bad.weight holds inf or nan.* in all; --at an earlier step'
[ "$(grep -c 'of no use' "$folder/err")" = 1 ] || fail "it is not told once"
run eval broken -p fp32 --quick --json
expect_out '"weights_not_finite":{"first":".*bad.weight","tensors":[1-9]'
run eval 1 -p fp32 --quick --json
expect_out '"weights_not_finite":null'
! grep -q 'of no use' "$folder/err" || fail "finite weights are told of"
end

# same_bytes FORMAT [--layer PATTERN=P]: what export writes of `which` is what eval counted, in `all`
same_bytes() {
    format=$1
    run export "$which" --format safetensors -p "$@" -o "$folder/q.safetensors"
    expect_status 0
    header=$(od -An -t u4 -N 4 "$folder/q.safetensors" | tr -d ' ')
    cp "$folder/all" "$folder/out"
    [ "$(wc -c <"$folder/q.safetensors")" -eq $((8 + header + $(of "$format" weights_disk))) ] ||
        fail "$*: $(wc -c <"$folder/q.safetensors") bytes with a header of $header, not $(of "$format" weights_disk) more"
}

begin "export writes the weights in the bytes that eval counts"
which=1
run eval 1 -p fp16,int8,mxfp4,nvfp4,fp8 --quick --json
mv "$folder/out" "$folder/all"
for format in fp16 int8 mxfp4 nvfp4 fp8; do
    same_bytes $format
done
grep -q '"quantised":"fp8"' "$folder/q.safetensors" || fail "the file does not say what it is"
grep -q '"hidden.weight.scale":{"dtype":"F32","shape":\[1\]' "$folder/q.safetensors" || fail "no scale of hidden.weight"
run export 1 --format safetensors -p fp16 -o "$folder/q.safetensors"
run eval 1 -p fp16 --weights "$folder/q.safetensors" --quick --json
expect_status 0
[ "$(of fp16 accuracy)" = "$(cp "$folder/all" "$folder/out" && of fp16 accuracy)" ] || fail "other weights came back"
run export 1 --format safetensors -p O2 -o "$folder/q.safetensors"
expect_usage_error "no format to write weights in"
run export 1 -p int8
expect_usage_error "of weights alone: add --format safetensors"
for command in "eval 1 -p int8 --quick" "export 1 -p int8 --format safetensors -o $folder/none.safetensors"; do
    # shellcheck disable=SC2086 # words
    run $command --layer hed=fp32
    expect_usage_error "--layer hed: no layer of the model has such a name; did you mean head?"
done
[ ! -e "$folder/none.safetensors" ] || fail "a file was written"
end

begin "in bytes, too, layers are as --layer says, what lies below one as it, and buffers in fp32"
cat >"$folder/deep.lua" <<'LUA'
local mp = require "mp" local nn, F = mp.nn, mp.fn
local Net = nn.class "Net"
function Net:init()
    self.body = nn.Sequential { nn.Linear(16, 16):named "first", nn.Linear(16, 16):named "second" }
    self.head, self.turn = nn.Linear(16, 2), mp.ones(16, 16)
end
function Net:forward(x) return self.head(self.body(F.matmul(x, self.turn))) end
return mp.experiment { name = "deep", params = {},
  data = function() local d = mp.data.tensors { x = mp.ones(4, 16), y = mp.ones(4, 2), batch = 2 } return { train = d, test = d } end,
  model = function() return Net() end,
  loss = function(m, b) return F.mse(m(b.x), b.y) end,
  optim = function(params) return mp.optim.SGD(params, { lr = 0 }) end }
LUA
which=deep
run run "$folder/deep.lua" -d cpu --threads 1 -p fp32 --epochs 1 --quiet --name deep
expect_status 0
for layer in body=fp32 head=fp32; do
    run eval deep -p fp16,int8 --layer $layer --quick --json
    expect_status 0
    mv "$folder/out" "$folder/all"
    same_bytes fp16 --layer $layer
    same_bytes int8 --layer $layer
done
run rm deep
end

begin "what no product takes, and what the script sets, is exported as it was evaluated"
cat >"$folder/words.lua" <<'LUA'
local mp = require "mp" local nn, F = mp.nn, mp.fn
local Net = nn.class "Net"
function Net:init()
    self.words, self.head = nn.Embedding(64, 16), nn.Linear(16, 4)
    self.own = nn.Linear(16, 16)
end
function Net:forward(x) return self.head(self.own(self.words(x))) end
return mp.experiment { name = "words", params = {}, precision = { default = "bf16", own = "fp32" },
  data = function()
    local d = mp.data.tensors { x = mp.zeros(4):to "int32", y = mp.zeros(4):to "int32", batch = 2 }
    return { train = d, test = d }
  end,
  model = function() return Net() end,
  loss = function(m, b) return F.cross_entropy(m(b.x), b.y) end,
  optim = function(params) return mp.optim.SGD(params, { lr = 0 }) end }
LUA
which=words
run run "$folder/words.lua" -d cpu --threads 1 --layer head=fp32 --epochs 1 --quiet --name words
expect_status 0
run eval words -p bf16,fp32,int8 --quick --json
expect_status 0
cp "$folder/out" "$folder/all"
[ "$(of int8 weights_disk)" = "$((4 * (64 * 16 + 16 * 16 + 16 + 4 + 4) + 16 * 4))" ] ||
    fail "$(of int8 weights_disk) bytes of weights in int8"
[ "$(of bf16 weights_disk)" = "$(of fp32 weights_disk)" ] || fail "$(of bf16 weights_disk) bytes in its own"
for format in bf16 fp32 int8; do
    same_bytes $format
    expect_silent err
done
run export words --format safetensors -p bf16 -o "$folder/q.safetensors"
run eval words -p bf16 --weights "$folder/q.safetensors" --quick
expect_status 0
expect_no_out 'do not say which'
sed 's/"takers"/"untold"/' "$folder/q.safetensors" >"$folder/u.safetensors" # as other programs write it
run eval words -p bf16 --weights "$folder/u.safetensors" --quick
expect_status 0
expect_out 'do not say which of them no product takes'
run eval words -p int8 --layer words=int8 --quick --json
cp "$folder/out" "$folder/all"
[ "$(of int8 weights_disk)" = "$((64 * 16 + 4 * (64 + 16 * 16 + 16 + 4 + 4) + 16 * 4))" ] ||
    fail "$(of int8 weights_disk) bytes with the words in int8"
same_bytes int8 --layer words=int8
run rm words
end

begin "under a cap the largest batch that fits is found, and all is evaluated in such"
run eval 1 -p fp32,int8 --quick --json
mv "$folder/out" "$folder/all"
run eval 1 -p fp32,int8 --memory 64KiB --quick --json
expect_status 0
is "$(of fp32 largest_batch) >= 4 && $(of int8 largest_batch) >= 4" || fail "fp32 fits $(of fp32 largest_batch), int8 $(of int8 largest_batch)"
is "$(of fp32 one_takes) > $(of int8 one_takes)" || fail "fp32 takes $(of fp32 one_takes), int8 $(of int8 one_takes)"
[ "$(of fp32 accuracy | cut -c1-7)" = "$(cp "$folder/all" "$folder/out" && of fp32 accuracy | cut -c1-7)" ] ||
    fail "another accuracy: $(of fp32 accuracy) without a cap"
run eval 1 -p fp32 --memory 1KiB --quick
expect_status 1
expect_err "one sample does not fit into 1.0 KiB: fp32, which takes the least, takes"
takes=$(sed -n 's/.*takes the least, takes \([0-9.]*\) KiB.*/\1/p' "$folder/err")
for cap in 1 2; do # what one takes is enough, and what is too little is less
    run eval 1 -p fp32 --memory "$(awk -v of="$takes" -v cap="$cap" 'BEGIN { printf "%d", of * 1024 * (cap == 1 ? 1.05 : 0.8) }')" --quick --json
    if [ "$cap" = 1 ]; then
        expect_status 0
        is "$(of fp32 largest_batch) >= 1 && $(of fp32 one_takes) <= $takes * 1024 * 1.05" || fail "$(of fp32 largest_batch) at $takes KiB"
    else
        expect_status 1
        expect_err 'one sample does not fit into'
    fi
done
run eval 1 -p fp32 --memory 64MB
expect_usage_error "bytes are wanted"
end

begin "where batches differ each row tells its own, and nothing is over fp32 but per sample"
run run "$folder/parted.lua" -d cpu --threads 1 -p fp32 --set batch=400 --quiet --name large
run eval large -p fp32,int8 --memory 64KiB
expect_out ' ms, batch '
expect_out 'x fp32 is the median of what each round found per sample'
[ "$(grep -cE '^(fp32|int8).* \([0-9]+\) ' "$folder/out")" -eq 2 ] || fail "no batch beside times: $(cat "$folder/out")"
run rm large
end

begin "a loop of one's own is evaluated by what stands beside it"
cat >"$folder/own.lua" <<'LUA'
local mp = require "mp"
local spec = { name = "own", params = { beside = true } }
local function model() return mp.nn.Sequential { mp.nn.Linear(4, 2) } end
if spec.params.beside then
    spec.data = function() return { test = mp.data.tensors { x = mp.ones(6, 4), y = mp.ones(6, 2), batch = 4 } } end
    spec.model = function() return model(), "net" end
    spec.loss = function(m, b) return mp.fn.mse(m(b.x), b.y) end
end
spec.run = function(run)
    local net = run:model(model(), "net")
    local opt = mp.optim.SGD(net:parameters(), { lr = 0.1 })
    local loss = mp.fn.mse(net(mp.ones(6, 4)), mp.ones(6, 2))
    loss:backward()
    opt:step()
end
return mp.experiment(spec)
LUA
run run "$folder/own.lua" -d cpu --threads 1 -p fp32 --quiet --checkpoint-every 1
expect_status 0
run eval @last -p fp32 --quick --json
expect_status 0
is "$(value_of loss) >= 0" || fail "loss $(value_of loss)"
sed 's/beside = true/beside = false/' "$folder/own.lua" >"$folder/own2.lua"
mv "$folder/own2.lua" "$folder/own.lua"
run eval @last -p fp32 --quick
expect_status 1
expect_err "own trains by a loop of its own: declare"
end

begin "a stop ends it with what was evaluated by then"
cat >"$folder/slow.lua" <<'LUA'
local mp = require "mp"
return mp.experiment {
    name = "slow",
    data = function()
        return { train = mp.data.tensors { x = mp.ones(2, 4), y = mp.ones(2, 1), batch = 2 },
            test = mp.data.tensors { x = mp.ones(100000, 4), y = mp.ones(100000, 1), batch = 1 } }
    end,
    model = function() return mp.nn.Sequential { mp.nn.Linear(4, 1) } end,
    loss = function(m, b) return mp.fn.mse(m(b.x), b.y) end,
    optim = function(params) return mp.optim.SGD(params, { lr = 0.1 }) end,
}
LUA
run run "$folder/slow.lua" -d cpu --threads 1 -p fp32 --quiet
"$mpbench" eval @last -p fp32 --json >"$folder/out" 2>"$folder/err" &
workers=$!
sleep 0.7
kill -INT $workers
wait $workers
status=$?
workers=
expect_status 130
[ "$(grep -c '"formats":\[\]' "$folder/out")" = 1 ] || fail "a format that was not gone through is told of"
end
exit "$failures"
