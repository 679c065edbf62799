#!/bin/sh
# shellcheck disable=SC1091,SC2034,SC2154,SC2317 # what faults.sh sets, reads and calls
# Faults of scripts and of what scripts ask for: each is one line that names cause and place, the
# right exit status, and never the end of the program. Rows 1 to 19 of the list of faults.
. "$(dirname "$0")/faults.sh"

# ---- 1: syntax and run-time errors --------------------------------------------------------------

printf 'local mp = require "mp"\nlocal x = = 1\n' >"$folder/syntax_error.lua"
refused syntax_error 'syntax_error.lua:2:' "near '='"

printf 'return 1\n' >"$folder/no_experiment.lua"
refused no_experiment 'no_experiment.lua' 'mp.experiment'

experiment run_time_error <<'LUA'
local t = nil
t.x = 1
LUA
refused run_time_error 'run_time_error.lua:3:' 'nil'

experiment error_with_a_table <<'LUA'
error({ code = 1 })
LUA
refused error_with_a_table 'table'

experiment error_in_a_layer <<'LUA'
local net = run:model(nn.Sequential { nn.Linear(8, 4):named "fc2" })
net(mp.randn(2, 7))
LUA
refused error_in_a_layer 'error_in_a_layer.lua:3:' 'fc2' '7' '8'

experiment escapes_in_a_message <<'LUA'
error("red \27[31m text\nsecond line")
LUA
run_case escapes_in_a_message
expect_error 1
! grep -q "$(printf '\033')" "$folder/err" || fail "an escape reached the terminal"
end

# ---- 2, 3, 5: scripts without end ---------------------------------------------------------------

# What has no end says first that it is there.
endless() {
    { echo 'print "it is there"' && cat; } | experiment "$1"
}
has_ended() { ! kill -0 "$worker" 2>/dev/null; }
ticks() { cut -d' ' -f14 "/proc/$worker/stat" 2>/dev/null; } # of a hundredth of a second
has_worked() { [ "$(ticks)" -gt "$1" ]; }

# interrupt NAME SECONDS: starts it, sends SIGINT when it has worked since it is there, and waits so
# long for its end.
interrupt() {
    begin "$1"
    "$mpbench" run "$folder/$1.lua" -d cpu --threads 1 --quiet --json >"$folder/out" 2>"$folder/err" </dev/null &
    worker=$!
    workers=$worker
    wait_until 10 grep -q 'it is there' "$folder/err" || fail "it did not begin"
    wait_until 10 has_worked $(($(ticks) + 10)) || fail "it ended by itself: $(tail -n 2 "$folder/err")"
    kill -INT "$worker" 2>/dev/null
    wait_until "$2" has_ended || fail "it still runs $2 s after SIGINT"
    kill -KILL "$worker" 2>/dev/null
    wait "$worker"
    status=$?
    workers=
}

# It ends within a few seconds, as stopped.
answers() {
    interrupt "$1" 4
    expect_status 130
    wants_json '"status":"stopped"'
    end
}

# A library call that nothing can interrupt: the watchdog ends the process, and says why.
never_returns() {
    interrupt "$1" 8
    expect_status 1
    wants_text 'mpbench: the script has not ended' 'library call'
    end
}

endless endless_loop <<'LUA'
while true do end
LUA
answers endless_loop

endless endless_loop_in_pcall <<'LUA'
while true do pcall(function() while true do end end) end
LUA
answers endless_loop_in_pcall

endless endless_loop_in_a_coroutine <<'LUA'
while true do
    local co = coroutine.wrap(function() while true do end end)
    pcall(co)
end
LUA
answers endless_loop_in_a_coroutine

endless endless_loop_of_steps <<'LUA'
local net = run:model(nn.Linear(4, 4))
local opt, scaler = mp.optim.SGD(net:parameters(), { lr = 1e-3 }), run:scaler()
while true do
    opt:zero_grad()
    scaler:scale(F.mse(net(mp.randn(2, 4)), mp.zeros(2, 4))):backward()
    scaler:step(opt)
    scaler:update()
end
LUA
answers endless_loop_of_steps

endless endless_engine_calls <<'LUA'
while true do mp.zeros(1) end
LUA
answers endless_engine_calls

endless endless_long_calls <<'LUA'
local s = string.rep("a", 1000000)
while true do s:gsub("a", "b") end
LUA
answers endless_long_calls

endless endless_operation <<'LUA'
mp.ones(1):expand(1 << 44):max(1)
LUA
answers endless_operation

# What a step trained is kept when a script goes on after it: exactly where nothing was computed
# since, else its weights, which a resume passes over.
for after in '' 'mp.zeros(1)'; do
    case_file=kept_before_${after:+work_and_}the_end
    endless "$case_file" <<LUA
local net = run:model(nn.Linear(4, 4))
local opt = mp.optim.SGD(net:parameters(), { lr = 1e-3 })
F.mse(net(mp.randn(2, 4)), mp.zeros(2, 4)):backward()
opt:step()
while true do $after end
LUA
    interrupt "$case_file" 4
    expect_status 130
    if [ -z "$after" ]; then
        run show @last
        expect_out 'step  *1 .* stop '
    else
        run resume @last --quiet
        expect_error 1 'has no checkpoint'
        run show @last
        expect_out 'step  *1 .* weights '
        run export @last --format safetensors -o "$folder/left.safetensors"
        expect_status 0
    fi
    end
done

# Without a step, orders to pause and to go on are heeded all the same.
endless paused_without_a_step <<'LUA'
while true do mp.zeros(1) end
LUA
endless paused_without_the_engine <<'LUA'
while true do end
LUA
for name in paused_without_a_step paused_without_the_engine; do
    begin "$name"
    "$mpbench" run "$folder/$name.lua" -d cpu --threads 1 --quiet >"$folder/$name.out" 2>&1 </dev/null &
    worker=$!
    workers=$worker
    wait_until 10 grep -q 'it is there' "$folder/$name.out" || fail "it did not begin"
    for order in pause resume stop; do
        run ctl @last "$order"
        expect_status 0
    done
    expect_out 'stopped'
    wait_until 4 has_ended || fail "it still runs after the order to stop"
    kill -KILL "$worker" 2>/dev/null
    wait "$worker"
    workers=
    end
done

endless endless_pattern <<'LUA'
string.find(string.rep("a", 200), string.rep("a*", 100) .. "b")
LUA
never_returns endless_pattern

# ---- 4, 8, 9, 10: what a script does not get ----------------------------------------------------

experiment gc_metamethod <<'LUA'
setmetatable({}, { __gc = function() while true do end end })
LUA
refused gc_metamethod 'gc_metamethod.lua:2:' '__gc'

experiment bytecode <<'LUA'
assert(load(string.char(27) .. "Lua", "chunk", "b"))
LUA
refused bytecode 'bytecode.lua:2:'

for name in io.open os.execute debug.getinfo package.loadlib; do
    case_file=absent_$(echo "$name" | tr . _)
    echo "local f = $name" | experiment "$case_file"
    refused "$case_file" "$case_file.lua:2:" "${name%%.*}" '--trust'
done

experiment tensor_metatable <<'LUA'
getmetatable(mp.zeros(1)).__index = nil
LUA
refused tensor_metatable 'tensor_metatable.lua:2:'

experiment string_metatable <<'LUA'
getmetatable("").__index = nil
LUA
refused string_metatable 'string_metatable.lua:2:'

experiment module_tampering <<'LUA'
mp.zerros(1)
LUA
refused module_tampering 'module_tampering.lua:2:' 'mp.zerros' 'zeros'

echo 'return require "mp.core"' >"$folder/inner_module.lua"
refused inner_module 'inner_module.lua:1:' 'mp.core' 'not open to scripts'

# What a script makes of its globals before it opens `mp` sees nothing of the inside.
{
    echo 'local own, seen = { pairs = pairs, setmetatable = setmetatable }, 0'
    echo 'for name, f in own.pairs(own) do _G[name] = function(...) seen = seen + 1 return f(...) end end'
    echo 'local mp = require "mp"'
    echo 'mp.nn.Linear(2, 2)'
    echo 'return mp.experiment { name = "fault", run = function() assert(seen == 0, seen) end }'
} >"$folder/globals_before_mp.lua"
passes globals_before_mp

# Tables of a script's own making are no experiments, and nothing in one is taken for what it is not.
echo 'return setmetatable({ name = "x", parameter_names = { true }, params = {} }, { experiment = print })' \
    >"$folder/made_up.lua"
refused made_up 'made_up.lua: an experiment must'
{
    echo 'local mp = require "mp"'
    echo 'local e = mp.experiment { name = "x", params = { a = 1, b = 2 }, run = print }'
    echo 'e.name, e.parameter_names = 4, { true, 5, "a", "zz", "b" }'
    echo 'e.params = setmetatable({ a = 1, b = setmetatable({}, { __tostring = error }) }, { __index = error })'
    echo 'return e'
} >"$folder/changed_since.lua"
begin a_description_is_read_raw
for file in made_up changed_since; do
    timeout $((10 * patience)) "$mpbench" help "$folder/$file.lua" >"$folder/out" 2>"$folder/err"
    status=$?
    [ "$file" = changed_since ] && expect_status 0 && expect_out '^  a  *1'
    [ "$file" = made_up ] && expect_error 1 'made_up.lua: an experiment must'
done
end

# ---- 6, 7: memory and depth ---------------------------------------------------------------------

experiment string_of_8_gib <<'LUA'
string.rep("x", 8 * 2 ^ 30 // 1 | 0)
LUA
refused string_of_8_gib 'string_of_8_gib.lua:2:' 'memory'

experiment string_that_doubles <<'LUA'
local s = "xxxxxxxxxxxxxxxx"
while true do s = s .. s end
LUA
refused string_that_doubles 'string_that_doubles.lua:3:' 'script memory limit'

experiment table_without_end <<'LUA'
local t = {}
for i = 1, 2 ^ 40 do t[i] = i end
LUA
refused table_without_end 'table_without_end.lua:3:' 'script memory limit'

experiment tensor_past_memory <<'LUA'
mp.zeros(2 ^ 31, 2 ^ 20)
LUA
refused tensor_past_memory 'tensor_past_memory.lua:2:'

# Where the last allocation is a tensor's handle, the tensor is still given back.
experiment handle_past_memory <<'LUA'
local z, keep, strings, n = mp.zeros(1), {}, {}, 2 ^ 28 // 1 | 0
for i = 1, 2 ^ 16 do keep[i] = false end
while n > 2 ^ 16 do
    if collectgarbage("count") * 1024 + 2 * n + 2 ^ 16 < 2 ^ 30 then
        strings[#strings + 1] = string.rep("x", n)
    else
        n = n // 2
    end
end
for i = 1, 2 ^ 16 do keep[i] = z:detach() end
LUA
refused handle_past_memory 'script memory limit'

experiment endless_recursion <<'LUA'
local function f() return 1 + f() end
f()
LUA
refused endless_recursion 'endless_recursion.lua:2:' 'stack overflow'

experiment a_million_arguments <<'LUA'
local t = {}
for i = 1, 10000000 do t[i] = i end
print(table.unpack(t))
LUA
refused a_million_arguments 'a_million_arguments.lua:4:' 'too many'

experiment a_module_in_itself <<'LUA'
local Net = nn.class "Net"
function Net:forward(x) return self(x) end
Net()(mp.zeros(1))
LUA
refused a_module_in_itself 'a_module_in_itself.lua:4:' 'nested'

# ---- 11: wrong arguments ------------------------------------------------------------------------

# Every call must be refused with a message that begins with file:line and names what is asked for.
experiment wrong_arguments <<'LUA'
local w = nn.Parameter(mp.zeros(2, 2))
local calls = {
    { "dimension", function() mp.zeros(-1) end },
    { "size", function() mp.zeros(2 ^ 63) end },
    { "size", function() mp.zeros(0 / 0) end },
    { "high", function() mp.randint(0, 4) end },
    { "lr", function() mp.optim.SGD({ w }, { lr = -1 }) end },
    { "lr", function() mp.optim.SGD({ w }, { lr = 0 / 0 }) end },
    { "lr", function() mp.optim.SGD({ w }, { lr = "much" }) end },
    { "mass", function() mp.optim.SGD({ w }, { lr = 1, mass = 1 }) end },
    { "momentum", function() mp.optim.SGD({ w }, { lr = 1, momentum = -1 }) end },
    { "eps", function() mp.optim.Adam({ w }, { lr = 1, eps = 1e-60 }) end },
    { "beta", function() mp.optim.Adam({ w }, { lr = 1, betas = { 1, 1 } }) end },
    { "growth", function() mp.scaler { growth = 0.5 } end },
    { "init", function() mp.scaler { init = 0 / 0 } end },
    { "pytorch", function() mp.scaler "pytorch" end },
    { "batch", function() mp.data.tensors { x = mp.zeros(4, 1), batch = -1 } end },
    { "batch", function() mp.data.tensors { x = mp.zeros(4, 1), batch = 2 ^ 63 } end },
    { "x", function() mp.data.tensors { x = 1, batch = 1 } end },
    { "in", function() nn.Linear(0, 4) end },
    { "out", function() nn.Linear(4, "4") end },
    { "kernel", function() nn.Conv2d(1, 1, 0) end },
    { "p", function() F.dropout(w, 1.5) end },
    { "relu", function() F.relu(1) end },
    { "fp15", function() w:to "fp15" end },
    { "fp15", function() mp.autocast("fp15", print) end },
    { "reshape", function() w:reshape(3, 3) end },
    { "matmul", function() F.matmul(mp.zeros(2, 3), mp.zeros(2, 3)) end },
    { "seed", function() mp.seed "x" end },
    { "clip", function() mp.optim.clip_norm({ w }, -1) end },
}
local bad = {}
for i, call in ipairs(calls) do
    local done, message = pcall(call[2])
    message = tostring(message)
    if done or not message:find("^%S*wrong_arguments.lua:%d+:") or not message:find(call[1], 1, true) then
        bad[#bad + 1] = ("call %d should name '%s': %s"):format(i, call[1], done and "let through" or message)
    end
end
if #bad > 0 then error(table.concat(bad, "; ")) end
LUA
passes wrong_arguments

# ---- 12: things that are over -------------------------------------------------------------------

experiment loader_after_its_end <<'LUA'
local loader = mp.data.tensors { x = mp.zeros(4, 1), batch = 2 }
for _ = 1, 3 do
    local n = 0
    for b in loader do n = n + b.count end
    assert(n == 4, "an epoch gave " .. n)
end
LUA
passes loader_after_its_end

experiment graph_walked_twice <<'LUA'
local w = nn.Parameter(mp.ones(2))
local loss = (w * w):sum()
loss:backward()
loss:backward()
LUA
refused graph_walked_twice 'graph_walked_twice.lua:5:' 'walked'

# ---- 14 to 19: data that is not there or not right ----------------------------------------------

mkdir "$folder/folder"
mkfifo "$folder/pipe"
: >"$folder/empty"
printf '\000\000\010\003\000\000\000\002' >"$folder/cut_header"
printf '\000\000\010\003\000\000\000\002\000\000\000\002\000\000\000\002abc' >"$folder/cut_body"
printf '\001\002\003\004\000\000\000\002\000\000\000\002' >"$folder/bad_magic"
printf '\000\000\010\003\002\000\000\000\002\000\000\000\002\000\000\000abcdefgh' >"$folder/little_endian"
printf '\000\000\010\003\177\377\377\377\177\377\377\377\177\377\377\377' >"$folder/overflow"
printf '\000\000\010\003\000\000\000\002\000\000\000\001\000\000\000\002abcd' >"$folder/images"
printf '\000\000\010\001\000\000\000\003\000\001\002' >"$folder/labels3"
printf '\000\000\010\001\000\000\000\002\000\011' >"$folder/labels2"
printf '\037\213\010\000\000\000\000\000\000\003garbage' >"$folder/damaged.gz"

# idx NAME IMAGES LABELS TEXT ..
idx() {
    idx_case=$1
    printf 'mp.data.idx { images = "%s", labels = "%s", classes = 4, batch = 1 }\n' \
        "$folder/$2" "$folder/$3" | experiment "$idx_case"
    shift 3
    refused "$idx_case" "$idx_case.lua:2:" "$@"
}
idx data_missing nowhere labels2 nowhere 'No such file'
idx data_a_folder folder labels2 'folder: is a directory'
idx data_a_fifo pipe labels2 'pipe: is a FIFO'
idx data_empty empty labels2 'empty: is empty'
idx data_cut_header cut_header labels2 'cut_header: the header is cut at byte 8 of 16'
idx data_cut_body cut_body labels2 'cut_body: cut at byte 19' 'promises 8 bytes'
idx data_bad_magic bad_magic labels2 'bad_magic: not an IDX file' '01 02 03 04'
idx data_little_endian little_endian labels2 'little_endian: the dimensions are little-endian'
idx data_overflow overflow labels2 'overflow: the product of its 3 dimensions overflows'
idx data_damaged_gzip damaged.gz labels2 'damaged.gz: the gzip data is damaged'
idx data_other_count images labels3 'images: has 2 images but' 'labels3 has 3 labels'
idx data_label_past_classes images labels2 'label 9 at index 2 is outside the 4 classes'

mkdir "$folder/cifar"
for part in data_batch_1 data_batch_2 data_batch_3 data_batch_4 data_batch_5; do
    printf 'short' >"$folder/cifar/$part.bin"
done
printf 'mp.data.cifar10 { dir = "%s", batch = 1 }\n' "$folder/cifar" | experiment data_cifar_size
refused data_cifar_size 'data_cifar_size.lua:2:' 'data_batch_1.bin' '3073'

# One rule for every path: beside the script, or given with --set.
mkdir "$folder/apart"
printf 'some text, which is long enough\n' >"$folder/apart/text"
cp "$folder/apart/text" "$folder/beside"
mkdir "$folder/scripts" "$folder/scripts/below"
cp "$folder/beside" "$folder/scripts/below/text"
ln -s ../beside "$folder/scripts/link_out"
printf 'local mp = require "mp"\nreturn mp.experiment { name = "paths", params = { path = "below/text" }, run = function(run)
    print(mp.data.text { path = run.params.path, context = 2, batch = 1 }:vocabulary())
end }\n' >"$folder/scripts/paths.lua"
reads() {
    run run "$folder/scripts/paths.lua" -d cpu --threads 1 --quiet "$@"
}
begin a_script_reads_what_lies_beside_it_or_was_typed
reads
expect_status 0
for path in "$folder/beside" "$folder/scripts/below/text" "$folder/scripts/link_out"; do
    reads --set "path=$path"
    expect_status 0
done
end
begin a_typed_file_that_is_not_there_is_told_to_be_that
reads --set path=nothing
expect_error 1 'text: nothing: No such file or directory; what --set names counts from where'
end
begin a_script_reads_no_other_file
for path in /etc/passwd ../beside below/../../beside link_out nowhere/../../beside "$folder/beside"; do
    sed "s|\"below/text\"|\"$path\"|" "$folder/scripts/paths.lua" >"$folder/scripts/other.lua"
    run run "$folder/scripts/other.lua" -d cpu --threads 1 --quiet
    expect_error 1 "other.lua:3: text: .*: a script reads files that lie beside it"
    run run "$folder/scripts/other.lua" -d cpu --threads 1 --quiet --trust
    [ "$path" = /etc/passwd ] && expect_status 0
done
for call in 'mp.data.idx { images = P, labels = P }' 'mp.data.cifar10 { dir = P }' 'mp.load(P)'; do
    sed "s|print(.*|local P = '/etc/passwd' $call|" "$folder/scripts/paths.lua" >"$folder/scripts/other.lua"
    run run "$folder/scripts/other.lua" -d cpu --threads 1 --quiet
    expect_error 1 'a script reads files that lie beside it'
done
end
begin a_typed_folder_opens_what_lies_below_it
sed 's|run.params.path|run.params.path .. "/text"|' "$folder/scripts/paths.lua" >"$folder/scripts/other.lua"
run run "$folder/scripts/other.lua" -d cpu --threads 1 --quiet --set "path=$folder/apart"
expect_status 0
sed 's|run.params.path|run.params.path .. "/../beside"|' "$folder/scripts/paths.lua" >"$folder/scripts/other.lua"
run run "$folder/scripts/other.lua" -d cpu --threads 1 --quiet --set "path=$folder/apart"
expect_error 1 'a script reads files that lie beside it'
end

# The system holds every thread of a run to the sandbox, but for --trust.
endless held_by_the_system <<'LUA'
local net = run:model(nn.Linear(64, 64))
local opt = mp.optim.SGD(net:parameters(), { lr = 1e-3 })
while true do
    F.mse(net(mp.randn(512, 64)), mp.zeros(512, 64)):backward()
    opt:step()
end
LUA
for trust in '' --trust; do
    begin "every_thread_is_held_by_the_system${trust:+_but_for_trust}"
    run doctor --json
    if ! grep -q '"calls":true' "$folder/out"; then
        echo "skip $name: this kernel lacks seccomp"
        continue
    fi
    # shellcheck disable=SC2086 # none, or one word
    "$mpbench" run "$folder/held_by_the_system.lua" -d cpu --threads 2 --quiet $trust \
        >"$folder/$name.out" 2>&1 </dev/null &
    worker=$!
    workers=$worker
    wait_until 10 grep -q 'it is there' "$folder/$name.out" || fail "it did not begin"
    wanted=2
    [ -z "$trust" ] || wanted=0
    cat /proc/"$worker"/task/*/status >"$folder/tasks"
    [ "$(grep -c '^Seccomp:' "$folder/tasks")" -ge 3 ] || fail "it has too few threads"
    [ "$(grep '^Seccomp:' "$folder/tasks" | sort -u)" = "$(printf 'Seccomp:\t%s' "$wanted")" ] ||
        fail "not every thread has Seccomp $wanted"
    kill -TERM "$worker"
    wait "$worker"
    workers=
    end
done

# What a script says of itself is read by a process that may hang, crash or eat memory.
describes() { # NAME TEXT: refused in time, by one line with the text
    begin "a_description_that_$1"
    cat >"$folder/described.lua"
    timeout $((10 * patience)) "$mpbench" help "$folder/described.lua" >"$folder/out" 2>"$folder/err" </dev/null
    status=$?
    expect_error 1 "described.lua:$2"
    timeout $((10 * patience)) "$mpbench" matrix "$folder/described.lua" --set a=1,2 --quiet >"$folder/out" 2>"$folder/err" </dev/null
    status=$?
    [ "$status" -ne 124 ] || fail "the matrix hangs"
    end
}
describes never_ends ' says nothing of itself within 3 s' <<'LUA'
while true do end
LUA
describes calls_for_ever ' says nothing of itself within 3 s' <<'LUA'
string.find(string.rep("a", 200), string.rep("a*", 100) .. "b")
LUA
describes eats_memory '2: ones: .* out of memory' <<'LUA'
local mp, t = require "mp", {}
for i = 1, 1 << 20 do t[i] = mp.ones(1 << 24) end
LUA

# ---- usage --------------------------------------------------------------------------------------

usage() {
    run_case "$@"
    expect_error 2
}

experiment fine <<'LUA'
print "unused"
LUA
sed -i 's/name = "fault"/name = "fault", params = { lr = 0.1 }/' "$folder/fine.lua"
usage fine --set rl=1
wants_text '--set rl' 'lr'
verdict usage_unknown_parameter
usage fine --set lr=much
wants_text '--set lr=much' 'number'
verdict usage_parameter_of_another_type
usage fine --precision fp15
wants_text 'fp15' 'fp16'
verdict usage_unknown_precision
usage nowhere_at_all
wants_text 'nowhere_at_all'
verdict usage_no_such_file

exit "$failures"
