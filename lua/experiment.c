#include "lua/experiment.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/sanitize.h"
#include "lua/bind/callback.h"
#include "lua/bind/step.h"

// ---- the module ---------------------------------------------------------------------------------

// `mp.core`: the C half. lua/mp builds on it and leaves `mp.engine` out of what scripts see.
static int open_core(lua_State *L) {
    Session *session;
    lua_getfield(L, LUA_REGISTRYINDEX, "mp.session");
    session = lua_touserdata(L, -1);
    lua_pop(L, 1);
    lua_newtable(L);
    lua_newtable(L);
    lua_setfield(L, -2, "engine");
    bind_open_tensor(L, session);
    bind_open_ops(L, session);
    bind_open_module(L, session);
    bind_open_gradient(L, session);
    bind_open_custom(L, session);
    bind_open_optim(L, session);
    bind_open_data(L, session);
    bind_open_run(L, session);
    bind_open_measure(L, session);
    bind_open_weights(L, session);
    bind_open_calls(L, session);
    return 1;
}

// `mp` is what lua/mp/init.lua returns.
static int open_mp(lua_State *L) {
    lua_vm_require_inner(L, "mp.init");
    return 1;
}

typedef struct Training { // what the machine's calls back are given
    Session *session;
    const LuaRunOptions *options;
} Training;

static void print_line(void *context, const char *text, size_t length) {
    const Training *training = context;
    if (training->options->print && !bind_is_replaying(training->session))
        training->options->print(training->options->context, text, length);
}

// On the watchdog's thread: the run's is in a library call that does not return, so that nobody
// else touches the run.
static void end_stuck(void *context, const char *why) {
    Training *training = context;
    Error error = {0};
    error_fail(&error, ERROR_FAILED, "%s", why);
    run_finish(training->session->run, &error);
    training->options->stuck(training->options->context, &error);
}

// The same, while the run's thread is in the engine and does not come back.
static void end_left(void *context) {
    Training *training = context;
    Error error = {0};
    error_fail(&error, ERROR_STOPPED, "stopped in the middle of an operation");
    run_finish(training->session->run, &error);
    training->options->left(training->options->context);
}

static double step_seconds(void *context) {
    const Training *training = context;
    return bind_step_seconds(training->session);
}

static void attend(void *context) {
    const Training *training = context;
    bind_attend(training->session);
}

static bool stop_wanted(void *context) {
    const Training *training = context;
    return run_is_to_stop(training->session->run);
}

// For the lookout of the engine: "file:line", without what a message has behind it.
static void tell_place(void *context, char text[LOOKOUT_PLACE_SIZE]) {
    const Session *session = context;
    lua_vm_where_now(session->vm, text, LOOKOUT_PLACE_SIZE);
    size_t length = strlen(text);
    while (length > 0 && (text[length - 1] == ' ' || text[length - 1] == ':'))
        text[--length] = 0;
}

static LuaVm *machine_new(Session *session, const LuaVmOptions *options, Error *error) {
    LuaVm *vm = callback_begin(session, error) ? lua_vm_new(options, error) : NULL;
    if (!vm)
        return NULL;
    lua_vm_set_places(vm, &(LuaVmPlaces){bind_place, bind_move, session});
    session->vm = vm;
    session->engine->lookout.place = tell_place;
    session->engine->lookout.place_context = session;
    lua_State *L = lua_vm_state(vm);
    // A step makes handles that die young: at its end (bind_collect). A collection of Lua's own
    // within it would take what the step still needs for old, so that comes as late as may be.
    const int percent = 100;
    lua_gc(L, LUA_GCGEN, percent, 0);
    lua_pushlightuserdata(L, session);
    lua_setfield(L, LUA_REGISTRYINDEX, "mp.session");
    lua_vm_seed(vm, session->run->options->seed);
    if (lua_vm_protect(vm, bind_open_clock, session, error) &&
        lua_vm_preload(vm, "mp.core", open_core, error) && lua_vm_preload(vm, "mp", open_mp, error))
        return vm;
    lua_vm_free(vm);
    return NULL;
}

// ---- training -----------------------------------------------------------------------------------

// (value) -> the function that trains it, or nil where mp.experiment did not make it
static int find_training(lua_State *L) {
    luaL_getsubtable(L, LUA_REGISTRYINDEX, bind_experiments);
    lua_pushvalue(L, 1);
    lua_rawget(L, -2);
    return 1;
}

// Runs the script and leaves what it returned, which must be an experiment, and what trains it.
static bool load_experiment(LuaVm *vm, const char *path, Error *error) {
    lua_State *L = lua_vm_state(vm);
    if (!lua_vm_run_file(vm, path, 1, error))
        return false;
    lua_pushcfunction(L, find_training); // lua_vm_run_file left room
    lua_pushvalue(L, -2);
    if (!lua_vm_call(vm, 1, 1, error))
        return false;
    if (lua_isfunction(L, -1))
        return true;
    bool is_table = lua_istable(L, -2);
    return error_fail(
        error, ERROR_FAILED,
        "%s: an experiment must `return mp.experiment { .. }`; this script returned %s", path,
        is_table ? "a table that mp.experiment did not make" : luaL_typename(L, -2));
}

static bool train(LuaVm *vm, const char *path, Error *error) {
    if (!load_experiment(vm, path, error))
        return false;
    lua_insert(lua_vm_state(vm), -2);
    return lua_vm_call(vm, 1, 0, error);
}

// What the device found after the calls had returned came first: it is the cause, however the
// script ended.
static bool device_agrees(Device *device, bool done, Error *error) {
    Error late = {0};
    device_synchronize(device);
    if (device_check(device, &late))
        return done;
    *error = late;
    return false;
}

// Whether what ended the script is the refusal, which it may have caught: the error is "PLACE:
// TEXT" then, cut where the place is long.
static bool ends_by_refusal(const Error *error, const Error *refusal) {
    char text[ERROR_TEXT_SIZE];
    if (refusal->code == ERROR_NONE)
        return false;
    sanitize_line(text, sizeof text, refusal->text, strlen(refusal->text));
    bool is_cut = strlen(error->text) == sizeof error->text - 1;
    const char *at = error->text;
    while (strncmp(at, text, is_cut ? strlen(at) : sizeof text) != 0) {
        at = strstr(at, ": ");
        if (!at || !*(at += strlen(": ")))
            return false;
    }
    return true;
}

// Of what was typed no place in the script is told.
static void take_refusal(const Error *refusal, Error *error) {
    if (refusal->code == ERROR_MEMORY)
        error->code = ERROR_MEMORY;
    else
        *error = *refusal;
}

// A loop of the script's own is left there, as an error would; the usual one ends with a result.
static void tell_of_limit(Run *run) {
    char text[EVENT_TEXT_SIZE];
    snprintf(text, sizeof text,
             "the script was left at step %" PRId64
             ", the last that was asked for (--steps): what it does after its loop was not done",
             run->step);
    run_tell(run, EVENT_LIFE, "", (double)NAN, text);
}

bool lua_run_experiment(Run *run, const char *path, const LuaRunOptions *options, Error *error) {
    Session session = {.run = run,
                       .engine = run->engine,
                       .trust = options->trust,
                       .keeping = options->keeping,
                       .resume = options->resume,
                       .weights = options->weights,
                       .evaluation = options->evaluation,
                       .scan = options->scan,
                       .step_at = clock_seconds()};
    Training training = {&session, options};
    run->checkpointer = (RunCheckpointer){&session, bind_want_checkpoint};
    LuaVmOptions vm_options = {.memory_limit = options->memory_limit,
                               .trust = options->trust,
                               .traceback = options->traceback,
                               .print = print_line,
                               .on_stuck = options->stuck ? end_stuck : NULL,
                               .stop_wanted = stop_wanted,
                               .step_seconds = step_seconds,
                               .on_left = options->left ? end_left : NULL,
                               .attend = attend,
                               .context = &training};
    session.step_end.leader_ends = options->resume && checkpoint_leader_ends(options->resume);
    bool ready = !options->resume ||
                 checkpoint_read_journal(options->resume, &session.inventory.journal, error);
    LuaVm *vm = ready ? machine_new(&session, &vm_options, error) : NULL;
    if (!vm) {
        callback_close(&session);
        step_free(&session);
        inventory_clear(&session.inventory);
        run_finish(run, error);
        return false;
    }
    bool done = train(vm, path, error);
    // The run ends itself through an interrupt: that is no fault.
    bool was_cut = !done && error->code == ERROR_STOPPED;
    done = done || was_cut;
    if (!done && ends_by_refusal(error, &session.refusal))
        take_refusal(&session.refusal, error);
    done = device_agrees(run->engine->device, done, error);
    done = bind_end_script(&session, done, error);
    const char *traceback = lua_vm_traceback(vm);
    if (!done && options->traceback && options->print && traceback[0])
        options->print(options->context, traceback, strlen(traceback));
    const bool is_stopped = was_cut && run_is_to_stop(run);
    if (done && was_cut && !is_stopped)
        tell_of_limit(run);
    run_finish(run, !done || is_stopped ? error : NULL);
    session.finished = true;
    run->checkpointer = (RunCheckpointer){NULL, NULL};
    session.engine->lookout.place = NULL;
    lua_vm_free(vm);
    callback_close(&session);
    step_free(&session);
    inventory_clear(&session.inventory);
    return done;
}

// ---- what an experiment says of itself ----------------------------------------------------------

// All of it is read raw, and taken for what it is: the script may have changed the table since
// mp.experiment made it.
static int raw_field(lua_State *L, int index, const char *field) {
    lua_pushstring(L, field);
    return lua_rawget(L, index);
}

static void copy_field(lua_State *L, int index, const char *field, char *text, size_t size) {
    raw_field(L, index, field);
    snprintf(text, size, "%s", lua_type(L, -1) == LUA_TSTRING ? lua_tostring(L, -1) : "");
    lua_pop(L, 1);
}

static bool can_be_parameter(lua_State *L, int index) {
    int type = lua_type(L, index);
    return type == LUA_TNUMBER || type == LUA_TSTRING || type == LUA_TBOOLEAN;
}

static int read_info(lua_State *L) {
    LuaExperimentInfo *info = lua_touserdata(L, 1);
    int experiment = 2;
    copy_field(L, experiment, "name", info->name, sizeof info->name);
    copy_field(L, experiment, "about", info->about, sizeof info->about);
    if (raw_field(L, experiment, "parameter_names") != LUA_TTABLE ||
        raw_field(L, experiment, "params") != LUA_TTABLE)
        return 0;
    const int names = lua_gettop(L) - 1;
    const bool has_choices = raw_field(L, experiment, "parameter_choices") == LUA_TTABLE;
    const int choices = has_choices ? lua_gettop(L) : 0;
    lua_Integer count = (lua_Integer)lua_rawlen(L, names);
    for (lua_Integer i = 1; i <= count && info->parameter_count < LUA_INFO_PARAMETERS; i++) {
        lua_settop(L, names + 2);
        bool is_name = lua_rawgeti(L, names, i) == LUA_TSTRING;
        lua_pushvalue(L, -1);
        lua_rawget(L, names + 1);
        if (!is_name || !can_be_parameter(L, -1))
            continue;
        int at = info->parameter_count++;
        bind_parameter(L, lua_gettop(L) - 1, lua_gettop(L), &info->parameters[at].usual);
        if (choices > 0)
            copy_field(L, choices, info->parameters[at].usual.name, info->parameters[at].choices,
                       sizeof info->parameters[at].choices);
        snprintf(info->parameters[at].value, sizeof info->parameters[at].value, "%s",
                 luaL_tolstring(L, -1, NULL));
    }
    return 0;
}

bool lua_describe_experiment(const char *path, LuaExperimentInfo *info, Error *error) {
    *info = (LuaExperimentInfo){.parameter_count = 0};
    // Nothing is computed: a device that measures itself when it is opened would take longer.
    RunOptions run_options = {.device = "ref", .threads = 1, .seed = 1};
    Run *run = run_new(&run_options, error);
    if (!run)
        return false;
    allocator_set_limit(run->device->allocator, (size_t)256 << 20);
    Session session = {.run = run, .engine = run->engine};
    LuaVmOptions options = {.memory_limit = (size_t)64 << 20};
    LuaVm *vm = machine_new(&session, &options, error);
    bool done = vm && load_experiment(vm, path, error);
    if (done) {
        lua_State *L = lua_vm_state(vm);
        lua_settop(L, 1);
        lua_pushcfunction(L, read_info);
        lua_pushlightuserdata(L, info);
        lua_rotate(L, 1, -1); // the experiment on top
        done = lua_vm_call(vm, 2, 0, error);
    }
    session.finished = true;
    session.engine->lookout.place = NULL;
    lua_vm_free(vm);
    callback_close(&session);
    step_free(&session);
    inventory_clear(&session.inventory);
    run_free(run);
    return done;
}

const char *lua_library(void) {
    return LUA_VERSION_MAJOR "." LUA_VERSION_MINOR "." LUA_VERSION_RELEASE;
}
