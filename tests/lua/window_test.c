// Whatever a script calls that computes, reads or waits does so while the watchdog stands aside.
#include "lua/bind/callback.h"
#include "lua/vm_private.h"
#include "tests/test.h"

// Every function makes at least one call into the engine; what it works on is there already.
static const char script[] =
    "local core, found = ...\n"
    "local F = core.fn\n"
    "local x, w = core.randn(4, 3), core.randn(3):requires_grad(true)\n"
    "local mean, variance = core.zeros(3), core.ones(3)\n"
    "local classes = core.tensor({0, 1, 2, 0}, 'int32')\n"
    "local opt = core.optim.SGD({w}, {lr = 1})\n"
    "local scaler, lost = core.scaler(2), core.tensor(1)\n"
    "local loader = core.data.tensors {x = x, batch = 2}\n"
    "local function lossy() return (w * w):sum() end\n"
    "local loss = lossy()\n"
    "local calls = {\n"
    "  creation = function() core.zeros(2) end, full = function() core.full(1, 2) end,\n"
    "  random = function() core.randn(2) end, arange = function() core.arange(2) end,\n"
    "  from_tables = function() core.tensor {1, 2} end,\n"
    "  reshape = function() x:reshape(12) end, transpose = function() x:transpose() end,\n"
    "  permute = function() x:permute(2, 1) end, slice = function() x:slice(1, 2, 3) end,\n"
    "  expand = function() w:expand(2, 3) end, index = function() local _ = x[1] end,\n"
    "  detach = function() x:detach() end, clone = function() x:clone() end,\n"
    "  to = function() x:to 'bf16' end, copy = function() mean:copy(core.zeros(3)) end,\n"
    "  item = function() lost:item() end, table = function() x:table() end,\n"
    "  tostring = function() tostring(x) end,\n"
    "  backward = function() loss:backward() end,\n"
    "  numbers = function() local _ = 2 - x end,\n"
    "  softmax = function() F.softmax(x) end, softmax_of_another = function() F.softmax(x, 1) "
    "end,\n"
    "  batch_norm = function() F.batch_norm(x, mean, mean, mean, variance) end,\n"
    "  batch_norm_in_evaluation = function()\n"
    "    F.batch_norm(x, mean, mean, mean, variance, {training = false}) end,\n"
    "  cross_entropy = function() F.cross_entropy(x, classes) end,\n"
    "  cat = function() F.cat({x, x}, 1) end,\n"
    "  clip_norm = function() core.optim.clip_norm({w}, 1) end,\n"
    "  clip_value = function() core.optim.clip_value({w}, 1) end,\n"
    "  average = function() core.optim.average({w}, 0.5) end,\n"
    "  scale = function() scaler:scale(lost) end, scale_is_read = function() scaler:get() end,\n"
    "  steps = function() opt:steps() end,\n"
    "  loader = function() for _ in loader do break end end,\n"
    "}\n"
    "loss:backward(nil, {keep_graph = true})\n"
    "for name, f in pairs(calls) do found(name, f) end\n";

typedef struct Given {
    Session *session;
    int seen;
} Given;

// found(name, f)
static int found(lua_State *L) {
    Given *given = lua_touserdata(L, lua_upvalueindex(1));
    const Pulse *pulse = &given->session->vm->pulse;
    const char *name = luaL_checkstring(L, 1);
    unsigned before = atomic_load(&pulse->engine_calls);
    bool done = lua_pcall(L, 0, 0, 0) == LUA_OK;
    bool entered = atomic_load(&pulse->engine_calls) != before;
    given->seen++;
    CHECK_MESSAGE(done, "%s: %s", name, lua_tostring(L, -1));
    CHECK_MESSAGE(entered, "%s: the watchdog kept watching", name);
    CHECK_MESSAGE(atomic_load(&pulse->engine) == 0, "%s: it watches no more", name);
    return 0;
}

static int run_script(lua_State *L) {
    Given *given = lua_touserdata(L, 1);
    if (luaL_loadbuffer(L, script, sizeof script - 1, "=script") != LUA_OK)
        return lua_error(L);
    lua_newtable(L);
    lua_newtable(L);
    lua_setfield(L, -2, "engine");
    bind_open_tensor(L, given->session);
    bind_open_ops(L, given->session);
    bind_open_module(L, given->session);
    bind_open_optim(L, given->session);
    bind_open_data(L, given->session);
    bind_open_run(L, given->session);
    lua_pushlightuserdata(L, given);
    lua_pushcclosure(L, found, 1);
    lua_call(L, 2, 0);
    return 0;
}

static void every_call_into_the_engine_lets_the_watchdog_wait(void) {
    Error error = {0};
    RunOptions options = {.device = "ref", .threads = 1, .seed = 1};
    Run *run = run_new(&options, &error);
    Session session = {.run = run, .engine = run->engine};
    Given given = {&session, 0};
    CHECK(callback_begin(&session, &error));
    LuaVm *vm = session.vm = lua_vm_new(NULL, &error);
    bool done = lua_vm_protect(vm, run_script, &given, &error);
    CHECK_MESSAGE(done, "%s", error.text);
    CHECK(given.seen > 30);
    session.finished = true;
    lua_vm_free(vm);
    callback_close(&session);
    inventory_clear(&session.inventory);
    run_free(run);
}

int main(void) {
    RUN_TEST(every_call_into_the_engine_lets_the_watchdog_wait);
    return test_end();
}
