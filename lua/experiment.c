#include "lua/experiment.h"

#include <stdio.h>
#include <string.h>

#include "base/sanitize.h"
#include "lua/bind/bind.h"

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
    bind_open_optim(L, session);
    bind_open_data(L, session);
    bind_open_run(L, session);
    bind_open_weights(L, session);
    bind_open_calls(L, session);
    return 1;
}

// `mp` is what lua/mp/init.lua returns.
static int open_mp(lua_State *L) {
    lua_getglobal(L, "require");
    lua_pushliteral(L, "mp.init");
    lua_call(L, 1, 1);
    return 1;
}

typedef struct Training { // what the machine's calls back are given
    const Session *session;
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

static bool stop_wanted(void *context) {
    const Training *training = context;
    return run_is_to_stop(training->session->run);
}

static LuaVm *machine_new(Session *session, const LuaVmOptions *options, Error *error) {
    LuaVm *vm = lua_vm_new(options, error);
    if (!vm)
        return NULL;
    session->vm = vm;
    lua_State *L = lua_vm_state(vm);
    lua_gc(L, LUA_GCGEN, 0, 0); // a step makes handles that die young
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

// Runs the script and leaves what it returned, which must be an experiment.
static bool load_experiment(LuaVm *vm, const char *path, Error *error) {
    if (!lua_vm_run_file(vm, path, 1, error))
        return false;
    lua_State *L = lua_vm_state(vm);
    bool is_experiment = lua_istable(L, -1) && luaL_getmetafield(L, -1, "experiment");
    if (!is_experiment)
        return error_fail(
            error, ERROR_FAILED,
            "%s: an experiment must `return mp.experiment { .. }`; this script returned "
            "%s",
            path, luaL_typename(L, -1));
    return true; // the table, and the function that trains it
}

static bool train(LuaVm *vm, const char *path, Error *error) {
    if (!load_experiment(vm, path, error))
        return false;
    lua_insert(lua_vm_state(vm), -2);
    return lua_vm_call(vm, 1, 0, error);
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

bool lua_run_experiment(Run *run, const char *path, const LuaRunOptions *options, Error *error) {
    Session session = {.run = run,
                       .engine = run->engine,
                       .keeping = options->keeping,
                       .resume = options->resume,
                       .weights = options->weights};
    Training training = {&session, options};
    run->checkpointer = (RunCheckpointer){&session, bind_want_checkpoint};
    LuaVmOptions vm_options = {.memory_limit = options->memory_limit,
                               .trust = options->trust,
                               .traceback = options->traceback,
                               .print = print_line,
                               .on_stuck = options->stuck ? end_stuck : NULL,
                               .stop_wanted = stop_wanted,
                               .context = &training};
    bool ready = !options->resume ||
                 checkpoint_read_journal(options->resume, &session.inventory.journal, error);
    LuaVm *vm = ready ? machine_new(&session, &vm_options, error) : NULL;
    if (!vm) {
        inventory_clear(&session.inventory);
        run_finish(run, error);
        return false;
    }
    bool done = train(vm, path, error);
    // The run ends itself through an interrupt: that is no fault.
    if (!done && error->code == ERROR_STOPPED)
        done = true;
    if (!done && ends_by_refusal(error, &session.refusal))
        *error = session.refusal;
    done = bind_end_script(&session, done, error);
    const char *traceback = lua_vm_traceback(vm);
    if (!done && options->traceback && options->print && traceback[0])
        options->print(options->context, traceback, strlen(traceback));
    run_finish(run, done ? NULL : error);
    session.finished = true;
    run->checkpointer = (RunCheckpointer){NULL, NULL};
    lua_vm_free(vm);
    bind_release_unclaimed(&session);
    inventory_clear(&session.inventory);
    return done;
}

// ---- what an experiment says of itself ----------------------------------------------------------

static void copy_field(lua_State *L, int index, const char *field, char *text, size_t size) {
    lua_getfield(L, index, field);
    snprintf(text, size, "%s", lua_type(L, -1) == LUA_TSTRING ? lua_tostring(L, -1) : "");
    lua_pop(L, 1);
}

static int read_info(lua_State *L) {
    LuaExperimentInfo *info = lua_touserdata(L, 1);
    lua_getfield(L, LUA_REGISTRYINDEX, "mp.described");
    int experiment = lua_gettop(L);
    copy_field(L, experiment, "name", info->name, sizeof info->name);
    copy_field(L, experiment, "about", info->about, sizeof info->about);
    if (lua_getfield(L, experiment, "parameter_names") != LUA_TTABLE)
        return 0;
    int names = lua_gettop(L);
    lua_getfield(L, experiment, "params");
    lua_Integer count = (lua_Integer)lua_rawlen(L, names);
    for (lua_Integer i = 1; i <= count && info->parameter_count < LUA_INFO_PARAMETERS; i++) {
        lua_rawgeti(L, names, i);
        lua_getfield(L, names + 1, lua_tostring(L, -1));
        int at = info->parameter_count++;
        bind_parameter(L, lua_gettop(L) - 1, lua_gettop(L), &info->parameters[at].usual);
        snprintf(info->parameters[at].value, sizeof info->parameters[at].value, "%s",
                 luaL_tolstring(L, -1, NULL));
        lua_pop(L, 3);
    }
    return 0;
}

bool lua_describe_experiment(const char *path, LuaExperimentInfo *info, Error *error) {
    *info = (LuaExperimentInfo){.parameter_count = 0};
    RunOptions run_options = {.device = "cpu", .threads = 1, .seed = 1};
    Run *run = run_new(&run_options, error);
    if (!run)
        return false;
    Session session = {.run = run, .engine = run->engine};
    LuaVmOptions options = {.memory_limit = (size_t)64 << 20, .stuck_seconds = 2};
    LuaVm *vm = machine_new(&session, &options, error);
    bool done = vm && load_experiment(vm, path, error);
    if (done) {
        lua_State *L = lua_vm_state(vm);
        lua_pop(L, 1);
        lua_setfield(L, LUA_REGISTRYINDEX, "mp.described");
        done = lua_vm_protect(vm, read_info, info, error);
    }
    session.finished = true;
    lua_vm_free(vm);
    bind_release_unclaimed(&session);
    inventory_clear(&session.inventory);
    run_free(run);
    return done;
}

const char *lua_library(void) {
    return LUA_VERSION_MAJOR "." LUA_VERSION_MINOR "." LUA_VERSION_RELEASE;
}
