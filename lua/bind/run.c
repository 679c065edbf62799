// The run as Lua sees it, below lua/mp/experiment.lua, while it trains: steps that end, points of
// series, results.
#include <string.h>

#include "base/nearest.h"
#include "kernel/allocator.h"
#include "lua/bind/step.h"

static int run_epoch_call(lua_State *L) {
    session_of(L)->run->epoch = bind_integer(L, "epoch", 1, "epoch");
    return 0;
}

static int run_step_call(lua_State *L) {
    capture_refuse(session_of(L)->engine, "it reads run.step");
    lua_pushinteger(L, session_of(L)->run->step);
    return 1;
}

// reached_limit(): the run's last step, as the command line has it, was made
static int run_limit_call(lua_State *L) {
    lua_pushboolean(L, bind_reached_limit(session_of(L)));
    return 1;
}

// samples_a_step(count): what a step takes, should no loader count it
static int run_samples_call(lua_State *L) {
    session_of(L)->run->samples_a_step = (uint64_t)bind_integer(L, "samples_a_step", 1, "count");
    return 0;
}

// An evaluation may be long, and a run that is stopped in the middle of one goes on from its last
// checkpoint: where that is old, or there is none, one is kept before.
static int run_evaluating_call(lua_State *L) {
    Session *session = session_of(L);
    Run *run = session->run;
    if (lua_toboolean(L, 1)) {
        bind_leave_boundary(L);
        bind_pass_waypoint(session);
        bind_keep_before_evaluation(session);
        run_pause_clock(run);
    } else {
        run_resume_clock(run);
    }
    return 0;
}

// A table of values by name is gone through in the order of the names: Lua's own order is another
// one in every process. Names and values are pushed, which keeps them, and read raw.
enum { MOST_VALUES = RUN_MAX_SERIES };

typedef struct NamedValue {
    const char *name;
    int at; // on the stack
} NamedValue;

static int push_values(lua_State *L, const char *function, NamedValue values[MOST_VALUES]) {
    int count = 0;
    luaL_checktype(L, 1, LUA_TTABLE);
    luaL_checkstack(L, 2 * MOST_VALUES + 8, function);
    lua_pushnil(L);
    while (lua_next(L, 1)) {
        size_t length;
        if (lua_type(L, -2) != LUA_TSTRING)
            return bind_error(L, "%s: a name expected, got %s", function, luaL_typename(L, -2));
        const char *name = lua_tolstring(L, -2, &length);
        if (strlen(name) != length)
            return bind_error(L, "%s: %s: a name without zero bytes expected", function, name);
        if (count == MOST_VALUES)
            return bind_error(L, "%s: more than %d values", function, MOST_VALUES);
        int at = count++;
        for (; at > 0 && strcmp(values[at - 1].name, name) > 0; at--)
            values[at] = values[at - 1];
        values[at] = (NamedValue){name, lua_gettop(L)};
        lua_pushvalue(L, -2); // the key for the next; name and value stay below
    }
    return count;
}

static int refuse_value(lua_State *L, const char *function, const NamedValue *value) {
    return bind_error(L, "%s: %s: a number or a tensor expected, got %s", function, value->name,
                      luaL_typename(L, value->at));
}

// The tensor that was logged holds another number in the next step, before this one is read.
static bool log_again(Capture *capture, const CaptureAct *act, void *context, Error *error) {
    (void)context;
    Tensor *copy = tensor_copy_as(act->tensor, act->tensor->view.format, MEMORY_ACTIVATIONS, error);
    bool done = copy && run_log(act->on, act->with, copy, error);
    tensor_release(copy);
    (void)capture;
    return done;
}

static bool log_tensor(lua_State *L, Run *run, const char *name, Tensor *tensor, Error *error) {
    const RunSeries *series = run_series(run, name); // which keeps the name; the first has none yet
    if (!run->engine->capture || !series) {
        capture_refuse_now(run->engine);
        return run_log(run, name, tensor, error);
    }
    const CaptureAct act = {.does = log_again,
                            .on = run,
                            .with = (void *)(uintptr_t)series->name,
                            .tensor = tensor,
                            .is_final = true};
    // The copy outlives the step, which is not to find its own memory taken by it.
    Allocator *allocator = run->device->allocator;
    step_begin_act(L, &act);
    allocator_take_anew(allocator, true);
    bool done = log_again(NULL, &act, NULL, error);
    allocator_take_anew(allocator, false);
    step_end_act(L);
    return done;
}

// log(table): a point of each series named in it
static int run_log_call(lua_State *L) {
    Error error = {0};
    Run *run = session_of(L)->run;
    NamedValue values[MOST_VALUES];
    if (bind_is_replaying(session_of(L)))
        return 0;
    int count = push_values(L, "log", values);
    for (int i = 0; i < count; i++) {
        Tensor *tensor = bind_test_tensor(L, values[i].at);
        int is_number;
        double value = lua_tonumberx(L, values[i].at, &is_number);
        if (!tensor && !is_number)
            return refuse_value(L, "log", &values[i]);
        if (!tensor)
            capture_refuse(run->engine, "it logs a number");
        bool done = tensor ? log_tensor(L, run, values[i].name, tensor, &error)
                           : run_log_number(run, values[i].name, value, &error);
        if (!done)
            return bind_raise(L, &error);
    }
    return 0;
}

static int run_result_call(lua_State *L) {
    Error error = {0};
    NamedValue values[MOST_VALUES];
    if (bind_is_replaying(session_of(L)))
        return 0;
    int count = push_values(L, "result", values);
    for (int i = 0; i < count; i++) {
        Tensor *tensor = bind_test_tensor(L, values[i].at);
        int is_number;
        double value = lua_tonumberx(L, values[i].at, &is_number);
        if (!tensor && !is_number)
            return refuse_value(L, "result", &values[i]);
        if ((tensor && !tensor_item(tensor, &value, &error)) ||
            !run_result(session_of(L)->run, values[i].name, value, &error))
            return bind_raise(L, &error);
    }
    return 0;
}

static int run_event_call(lua_State *L) {
    const char *text = luaL_checkstring(L, 1);
    if (!bind_is_replaying(session_of(L)))
        run_event(session_of(L)->run, text);
    return 0;
}

// picture(name, tensor, columns): nothing of it comes back, so that a replay draws none
static int run_picture_call(lua_State *L) {
    Error error = {0};
    Session *session = session_of(L);
    const char *name = luaL_checkstring(L, 1);
    Tensor *tensor = bind_tensor(L, "picture", 2, "tensor");
    int64_t columns = bind_integer(L, "picture", 3, "columns");
    if (!bind_is_replaying(session))
        BIND_READ(L, run_picture(session->run, name, tensor, columns, &error), &error);
    return 0;
}

static int run_checkpoint_call(lua_State *L) {
    Error error = {0};
    char answer[128];
    Session *session = session_of(L);
    if (session->waypoints > 0) // what was evaluated before has moved the data on
        bind_pass_waypoint(session);
    if (!bind_is_replaying(session) &&
        !bind_want_checkpoint(session, session->run, "asked", answer, sizeof answer, &error))
        run_event(session->run, error.text);
    return 0;
}

// remember(name, tensor, is_buffer): what checkpoints call a tensor of a model
static int run_remember_call(lua_State *L) {
    Error error = {0};
    Session *session = session_of(L);
    Tensor *tensor = bind_tensor(L, "remember", 2, "tensor");
    if (!inventory_name(&session->inventory, luaL_checkstring(L, 1), tensor, lua_toboolean(L, 3),
                        &error))
        return bind_raise(L, &error);
    return 0;
}

// load_weights(): those of --weights, for tensors that were named since the last call
static int run_load_weights_call(lua_State *L) {
    Error error = {0};
    Session *session = session_of(L);
    int first = session->loaded_count;
    session->loaded_count = session->inventory.named_count;
    if (!session->weights || first == session->loaded_count)
        return 0;
    run_begin_with_weights(session->run, checkpoint_scale_of_weights(session->weights));
    return BIND_DONE(
        L, checkpoint_load_weights(session->weights, &session->inventory, first, &error), &error);
}

// run_scaler([spec]): the scaler that --loss-scale or the precision asks for; the first one decides
// when a step of the run ends
static int run_scaler_call(lua_State *L) {
    Run *run = session_of(L)->run;
    bind_push_scaler(L, &run->scale_rule);
    if (!run->scaler)
        run->scaler = bind_scaler_at(L, -1);
    return 1;
}

// lead_scaler(scaler): a scaler of the experiment's own takes that part
static int run_lead_call(lua_State *L) {
    session_of(L)->run->scaler = bind_scaler_at(L, 1);
    return 0;
}

static int run_end_step_call(lua_State *L) {
    capture_refuse(session_of(L)->engine, "an optimizer of the script's steps");
    return bind_end_step(L);
}

// ---- messages of the Lua half -------------------------------------------------------------------

// fail(text): an error at the place in the user's script
static int run_fail_call(lua_State *L) {
    return bind_error(L, "%s", luaL_checkstring(L, 1));
}

// nearest(wanted, names): the name that was probably meant, or nil
static int run_nearest_call(lua_State *L) {
    const char *wanted = luaL_checkstring(L, 1);
    luaL_checktype(L, 2, LUA_TTABLE);
    Nearest nearest;
    nearest_begin(&nearest, wanted);
    for (lua_Integer i = 1, n = (lua_Integer)lua_rawlen(L, 2); i <= n; i++) {
        lua_rawgeti(L, 2, i);
        if (lua_type(L, -1) == LUA_TSTRING)
            nearest_offer(&nearest, lua_tostring(L, -1)); // the table keeps it
        lua_pop(L, 1);
    }
    if (!nearest.best)
        return 0;
    lua_pushstring(L, nearest.best);
    return 1;
}

static const BindFunction functions[] = {
    {"fail", run_fail_call, NULL},
    {"nearest", run_nearest_call, NULL},
    {"epoch", run_epoch_call, NULL},
    {"reached_limit", run_limit_call, NULL},
    {"step", run_step_call, NULL},
    {"samples_a_step", run_samples_call, NULL},
    {"evaluating", run_evaluating_call, NULL},
    {"log", run_log_call, NULL},
    {"result", run_result_call, NULL},
    {"event", run_event_call, NULL},
    {"picture", run_picture_call, NULL},
    {"checkpoint", run_checkpoint_call, NULL},
    {"remember", run_remember_call, NULL},
    {"load_weights", run_load_weights_call, NULL},
    {"run_scaler", run_scaler_call, NULL},
    {"lead_scaler", run_lead_call, NULL},
    {"end_step", run_end_step_call, NULL},
    {0},
};

void bind_open_run(lua_State *L, Session *session) {
    lua_getfield(L, -1, "engine");
    bind_functions(L, session, "", functions);
    bind_functions(L, session, "", bind_declare_functions);
    bind_functions(L, session, "", bind_evaluation_functions);
    bind_functions(L, session, "", bind_scan_functions);
    lua_vm_push_calling(L);
    lua_setfield(L, -2, "calling");
    lua_pop(L, 1);
}
