#!/bin/sh
# shellcheck disable=SC1091,SC2034,SC2154 # what shell.sh sets and reads
# What is mistyped in a script, or as a command, is told in one line, with what was meant. $MPBENCH is
# the program.
. "$(dirname "$0")/../shell.sh"

printf 'return mp.experiment {\n    name = = 1\n}\n' >"$folder/broken.lua"

begin "a script's mistake is one line with its place"
run run "$folder/broken.lua"
expect_status 1
expect_err "^mpbench: .*broken.lua:2: "
end

begin "a forgotten return is told of, with the function and the file"
cat >"$folder/declared.lua" <<'LUA'
local mp = require "mp"
return mp.experiment {
    name = "declared",
    data = function() return { train = mp.data.tensors { x = mp.randn(8, 4), batch = 4 } } end,
    model = function() return mp.nn.Linear(4, 2) end,
    loss = function(model, b) return model(b.x):mean() end,
    optim = function(params) return mp.optim.SGD(params, { lr = 0.1 }) end,
}
LUA
run run "$folder/declared.lua" -p fp32 --quiet
expect_status 0
for field in data model loss optim; do
    sed "/ $field = /s/return //; / $field = /s/function(\(.*\)) \([{m].*\) end,/function(\1) local _ = \2 end,/" \
        "$folder/declared.lua" >"$folder/lost.lua"
    run run "$folder/lost.lua" -p fp32 --quiet
    expect_status 1
    expect_err "^mpbench: .*lost.lua: $field: .*is its .return. missing"
done
sed 's/loss =/lost =/' "$folder/declared.lua" >"$folder/field.lua"
run run "$folder/field.lua"
expect_status 1
expect_err "^mpbench: .*field.lua: experiment.lost: no such field; did you mean loss"
end

begin "a mistake in a function that ends in a call names the script's line"
sed 's/return model(b.x):mean()/return mp.fn.mse(model(b.x), nil)/' "$folder/declared.lua" >"$folder/ending.lua"
run run "$folder/ending.lua" -p fp32 --quiet
expect_status 1
expect_err "^mpbench: .*ending.lua:6: mse: argument 2"
sed -e 's/return model(b.x):mean()/\n        local y = model(b.x)\n        return mp.fn.mse(y, nil)\n   /' \
    "$folder/declared.lua" >"$folder/ending.lua"
run run "$folder/ending.lua" -p fp32 --quiet
expect_status 1
expect_err "^mpbench: .*ending.lua:6: in loss, which ends at line 9: mse: argument 2"
cat >"$folder/called.lua" <<'LUA'
local mp = require "mp"
return mp.experiment { name = "called", params = { by = "" }, run = function(run)
    local net, x = mp.nn.Linear(4, 3), mp.randn(8, 5)
    local function ends(y)
        return net(y)
    end
    local loss = mp.fn.nll
    if run.params.by == "nll" then loss(x, mp.randn(3, 3)) end
    ends(x)
end }
LUA
run run "$folder/called.lua" -p fp32 --quiet
expect_err "^mpbench: .*called.lua:9: in what this calls, which ends in .return f(..).: .*input has 5"
run run "$folder/called.lua" -p fp32 --quiet --set by=nll
expect_err "^mpbench: .*called.lua:8: nll: "
end

# mistaken SED TEXT: the experiment, changed so, says that.
mistaken() {
    sed "$1" "$folder/mistyped.lua" >"$folder/mistaken.lua"
    run run "$folder/mistaken.lua" -p fp32 -d cpu --threads 1 --quiet --no-history
    expect_error_at_end "$2"
}
expect_error_at_end() {
    expect_status 1
    [ "$(grep -c '^mpbench: ' "$folder/err")" -eq 1 ] || fail "not one line of error"
    expect_err "^mpbench: .*mistaken.lua:.*$1"
}
cat >"$folder/mistyped.lua" <<'LUA'
local mp = require "mp"
local nn, F = mp.nn, mp.fn
local Net = nn.class "Net"
function Net:init() self.head = nn.Linear(4, 3) self.act = nn.ReLU() end
function Net:forward(x) return self.act(self.head(x)) end
local function some() return mp.data.synthetic { shape = { 4 }, classes = 3, count = 16, batch = 4 } end
return mp.experiment {
    name = "mistyped", params = { lr = 0.1 },
    data = function() return { train = some(), test = some() } end,
    model = function() return nn.Sequential { Net(), nn.ReLU() } end,
    loss = function(model, b) return F.cross_entropy(model(b.x), b.y) end,
    optim = function(params, p) return mp.optim.SGD(params, { lr = p.lr }) end,
    eval = function(model, b) return { accuracy = F.accuracy(model(b.x), b.y) } end,
}
LUA

begin "what was mistyped is told with what was meant"
mistaken 's/self.head(x)/self.hed(x)/' '5: the module Net has no layer hed; did you mean head?$'
mistaken 's/self.head(x)/self.head2(self.fc1(x))/' '5: the module Net has no layer fc1; there are head, act$'
mistaken 's/self.head(x)/self.inner[1].haed(x)/;s/self.head =/self.inner = { nn.ReLU() } self.head =/' '5: the module ReLU has no layer haed; it has no fields$'
mistaken 's/self.head(x)/self:hed(x)/' '5: the module Net has no method hed; did you mean head?$'
mistaken 's/self.head(x)/self.hed:forward(x)/' '5: the module Net has no field hed; did you mean head?$'
mistaken 's/self.head(x)/x * (2 * self.haed)/' '5: the module Net has no field haed; did you mean head?$'
mistaken 's/function Net:init.*/function Net:init() end/;s/Net(), nn.ReLU()/Net(), nn.Linear(4, 3)/' '5: the module Net has no layer head; it has no fields$'
mistaken 's/self.head(x)/self.head(x) * self.haed/' 'mul: argument 2 (y): a tensor or a number expected, got nil; the module Net has no field haed; did you mean head?$'
mistaken 's/nn.ReLU() end/nn.Linear(3, self.haed) end/' 'Linear: out: a positive whole number expected, got nil; the module Net has no field haed; did you mean head?$'
mistaken 's/nn.ReLU() end/nn.Sequential { self.haed, nn.ReLU() } end/' '4: Sequential: element 1: a module expected, got nil; the module Net has no field haed; did you mean head?$'
mistaken 's/nn.ReLU() end/nn.Sequential { nn.ReLU(), self.haed, nn.ReLU() } end/' '4: Sequential: element 2: a module expected, got nil; the module Net has no field haed; did you mean head?$'
mistaken 's/return self.act/if not self.hed then x = x + nil end return self.act/' 'add: argument 2 (y): .*got nil; the module Net has no field hed; did you mean head?$'
mistaken 's/return self.act/if not self.other then x = x + nil end return self.act/' 'add: argument 2 (y): .*got nil$'
mistaken 's/self.head(x)/self.head:froward(x)/' '5: the module Linear has no method froward; did you mean forward?$'
mistaken 's/return self.act/for _, m in ipairs(self.haed) do m(x) end return self.act/' '5: attempt to index a nil value; the module Net has no field haed; did you mean head?$'
mistaken 's/self.head(x)/self.head(x:transpos())/' '5: a tensor has no transpos; did you mean transpose?$'
mistaken 's/self.head(x)/self.head(x):reshape(x.shape[1])/' "5: attempt to index a function value (field 'shape'); did you mean :shape()?$"
mistaken 's/SGD(params, { lr = p.lr })/SGD(params, { lr = p.lr }):stpe()/' '12: the optimizer has no method stpe; did you mean step?$'
mistaken 's/nn.ReLU() end/nn.Liner(3, 3) end/' '4: mp.nn.Liner: no such name; did you mean Linear?$'
mistaken 's/model(b.x), b.y) end/model(b.X), b.y) end/' 'batch.X: no such name; did you mean x?'
mistaken 's/model(b.x), b.y) end/model(b.x), b.labels) end/' 'batch.labels: no such name; a batch has x, y and count'
mistaken 's/p.lr/p.rate/' 'params.rate: no such name; there are lr'
mistaken 's/F.cross_entropy/mp.func.cross_entropy/' 'mp.func: no such name; did you mean fn?'
mistaken 's/train = some/trian = some/' 'data.trian: no such field; did you mean train?'
mistaken 's/train = some()/train = some/' 'data.train: a loader expected, as mp.data.tensors { x = .., y = .. } makes, got a function; .*run = function(run) .. end$'
mistaken 's/train = some()/train = { { x = mp.randn(4, 4) } }/' 'data.train: a loader expected, as .* makes, got a table;'
mistaken 's/test = some()/test = mp.randn(4, 4)/' 'data.test: a loader expected, as .* makes, got a tensor;'
mistaken 's/b.y) end/b.y, { reduction = "none" }) end/' 'loss: the function must return a tensor of one element, it returned one of .4.: take its :mean()$'
mistaken 's/batch = 4/batch = "4"/' 'synthetic: batch: a whole number expected, got the string "4"'
mistaken 's/nn.ReLU() }/nn.ReLU }/' 'Sequential: element 2: a module expected, got the class ReLU: ReLU(..) makes one'
mistaken 's/self.act = nn.ReLU()/self.act = nn.ReLU/' 'nn.ReLU takes no arguments, got 1; nn.ReLU() makes the layer'
mistaken 's/nn.Linear(4, 3)/nn.LSTM(4, 3, { layers = 2 })/' 'LSTM: no option layers; did you mean num_layers?'
mistaken 's/nn.Linear(4, 3)/nn.LSTM(4, 3, 2)/' 'LSTM: argument 3 (options): a table expected, got 2; as in { num_layers = .. }'
mistaken 's/b.y) end/b.y + 9, { reduction = "none" }):mean() end/' 'cross_entropy: class [0-9]* at row 1: the logits have 3 classes'
mistaken 's/accuracy = F.*b.y)/accuracy = "good"/' 'eval: accuracy: a number, or a tensor of one element, by a name is expected, got the string "good"'
sed 's/, test = some()//' "$folder/mistyped.lua" >"$folder/mistaken.lua"
run run "$folder/mistaken.lua" -p fp32 -d cpu --threads 1 --no-history
expect_status 0
expect_err '^eval is never called: data gives no loader .test. to call it with'
end

begin "a forward that returns nothing is told of where it stands"
mistaken 's/return self.act(self.head(x))/self.act(self.head(x))/' '5: the module Net returned nothing; a forward returns what it computed, as in .return y.$'
mistaken 's/return self.act(self.head(x))/return self.act(self.head(x)).grad(x)/' '5: the module Net returned nothing'
mistaken 's/forward(x) return self.act(self.head(x)) end/forward(x)\n    x = self.head(x)\nend/' '5: in forward, which ends at line 7: the module Net returned nothing'
end

begin "a command or topic that is not there is answered with what was meant"
run train
expect_usage_error "train: no such command; did you mean run?"
run gan
expect_usage_error "gan: a folder of experiments: .*gan/dcgan"
run help nosuch
expect_usage_error 'help: nosuch: no such command, topic or experiment; .mpbench help. lists them'
run help train
expect_usage_error 'help: train: no such command, topic or experiment; did you mean run?'
run help gtp
expect_usage_error 'help: gtp: no such command, topic or experiment; did you mean gpt?'
end

exit "$failures"
