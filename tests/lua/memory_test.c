// Scripts at the limit of their memory that catch the error and go on: nothing that was half made
// stays behind, and nothing ends the program.
#include "tests/lua/trial.h"

// Fills the memory to the last bytes, frees a little and calls each function there, again and
// again, so that every allocation that one makes is refused in its turn.
static const char at_the_limit[] =
    "local mp = require 'mp'\n"
    "local nn, F = mp.nn, mp.fn\n"
    "return mp.experiment { name = 'limit', run = function(run)\n"
    "  local x, image = mp.randn(16, 4):requires_grad(true), mp.randn(1, 4, 4, 2)\n"
    "  local net, conv = nn.Linear(4, 2), nn.Conv2d(2, 2, 2)\n"
    "  local loader = mp.data.tensors { x = x:detach(), batch = 8 }\n"
    "  local weight = nn.Parameter(mp.ones(3))\n"
    "  local calls = {\n"
    "    function() return -x end,\n"
    "    function() return x:chunk(4) end,\n"
    "    function() return F.topk(x, 2) end,\n"
    "    function() return net(x) end,\n"
    "    function() return conv(image) end,\n"
    "    function() return F.cat { x, x } end,\n"
    "    function() return mp.grad((x * x):sum(), { x })[1] end,\n"
    "    function() (x * 2):sum():backward() end,\n"
    "    function()\n"
    "      local y = mp.custom { forward = function(ctx, a) ctx:save(a) return a * 2 end,\n"
    "        backward = function(ctx, dy) return dy * ctx:saved() end }(x)\n"
    "      local hook = y:hook(function(g) return g * 2 end)\n"
    "      y:sum():backward()\n"
    "      hook:remove()\n"
    "    end,\n"
    "    function()\n"
    "      local g = mp.grad(net(x):tanh():sum(), { x }, true)[1]\n"
    "      return mp.grad(g:square():sum(), { net.weight })\n"
    "    end,\n"
    "    function() return mp.tensor { { 1, 2 }, { 3, 4 } } end,\n"
    "    function() return nn.Sequential { nn.Linear(4, 4), nn.ReLU() }(x) end,\n"
    "    function() return mp.optim.Adam({ weight }, { lr = 1 }) end,\n"
    "    function() return mp.scaler 'torch' end,\n"
    "    function() return mp.optim.EMA(net, 0.5) end,\n"
    "    function() for b in loader do return b end end,\n"
    "    function() return mp.autocast('bf16', net, x) end,\n"
    "    function() return mp.data.synthetic { shape = { 4 }, count = 8 } end,\n"
    "    function() return tostring(x), x:table() end,\n"
    "    function() run:log { loss = x:sum() } end,\n"
    "    function() return mp.policy() end,\n"
    "    function() return net:find 'x', net:parameters() end,\n"
    "  }\n"
    "  for _, call in ipairs(calls) do call() end\n"
    "  local keep, out, worked, failed = {}, {}, 0, 0\n"
    "  for i = 1, 4096 do out[i] = false end\n"
    "  local size = 1 << 20\n"
    "  local function fill() while true do keep = { keep, ('x'):rep(size) .. #out .. size } end "
    "end\n"
    "  while size > 0 do pcall(fill) size = size // 2 end\n"
    "  local function links() while true do keep = { keep } end end\n"
    "  local function store(i) out[i] = x:neg() end\n"
    "  for i = 1, 2000 do\n"
    "    local often = i % 4 > 0\n"
    "    pcall(links)\n"
    "    for _ = 1, often and i // 4 % 8 or i % 60 do keep = keep[1] or keep end\n"
    "    if pcall(often and store or calls[i // 4 % #calls + 1], i) then\n"
    "      worked = worked + 1\n"
    "    else\n"
    "      failed = failed + 1\n"
    "    end\n"
    "  end\n"
    "  keep = nil\n"
    "  collectgarbage()\n"
    "  for _, call in ipairs(calls) do call() end\n"
    "  print(failed > 100 and worked > 100 and 'went on' or failed .. ' ' .. worked)\n"
    "end }\n";

static void what_fails_for_memory_leaves_nothing_behind(void) {
    Trial trial = {.script = write_script("limit", at_the_limit), .memory_limit = (size_t)4 << 20};
    train(&trial); // ends with the device's check that nothing is in use
    CHECK_TEXT(trial.error.text, "");
    CHECK(trial.done);
    CHECK_TEXT(trial.printed, "went on;");
}

// What outlives a step or two is old to the collector, which is asked for the young at each step.
static const char lets_go_late[] = "local mp = require 'mp'\n"
                                   "return mp.experiment { name = 'late', run = function(run)\n"
                                   "  local net = run:model(mp.nn.Linear(2, 2))\n"
                                   "  local opt = mp.optim.SGD(net:parameters(), { lr = 0.1 })\n"
                                   "  local last, most = {}, 0\n"
                                   "  for step = 1, 300 do\n"
                                   "    last[step % 4] = ('x'):rep(100000) .. step\n"
                                   "    net(mp.ones(1, 2)):sum():backward()\n"
                                   "    opt:step()\n"
                                   "    most = math.max(most, collectgarbage 'count')\n"
                                   "  end\n"
                                   "  print(most < 16000 and 'freed' or most)\n"
                                   "end }\n";

static void what_a_script_lets_go_of_some_steps_later_is_freed(void) {
    Trial trial = {.script = write_script("late", lets_go_late)};
    train(&trial);
    CHECK_TEXT(trial.error.text, "");
    CHECK_TEXT(trial.printed, "freed;");
}

int main(void) {
    if (!trials_begin())
        return 1;
    RUN_TEST(what_fails_for_memory_leaves_nothing_behind);
    RUN_TEST(what_a_script_lets_go_of_some_steps_later_is_freed);
    return trials_end();
}
