// What an experiment declares, below lua/mp/experiment.lua, and what the command line asks of it:
// before it trains.
#include <string.h>

#include "lua/bind/bind.h"
#include "store/parameter.h"

// The rules of the experiment's `precision`, until they were held against the model's layers.
static const char script_rules[] = "mp.rules";

// declare(experiment, train): what mp.experiment made, and the function that trains it. Tables of a
// script's own making are not in this list.
static int run_declare_call(lua_State *L) {
    luaL_checktype(L, 1, LUA_TTABLE);
    luaL_checktype(L, 2, LUA_TFUNCTION);
    lua_settop(L, 2);
    luaL_getsubtable(L, LUA_REGISTRYINDEX, bind_experiments);
    lua_insert(L, 1);
    lua_rawset(L, 1);
    return 0;
}

// What the script says, not the command line, is told with the script's name.
static void check_default(lua_State *L, const Run *run, const char *precision) {
    Error error = {0};
    Preset preset;
    if (precision && !run->options->precision && !run->options->evaluates &&
        !preset_resolve(precision, run->device, &preset, NULL, 0, &error) &&
        error.code == ERROR_USAGE)
        bind_raise(L, &error);
}

// configure(name, default precision, {{pattern, precision}, ..})
static int run_configure_call(lua_State *L) {
    enum { MOST = 256 };
    Error error = {0};
    Run *run = session_of(L)->run;
    const char *name = luaL_checkstring(L, 1);
    const char *precision = luaL_optstring(L, 2, NULL);
    luaL_checktype(L, 3, LUA_TTABLE);
    check_default(L, run, precision);
    RunLayerRule rules[MOST];
    lua_Integer count = (lua_Integer)lua_rawlen(L, 3);
    if (count > MOST)
        return bind_error(L, "precision: more than %d rules", MOST);
    luaL_checkstack(L, 2 * MOST + 4, "precision");
    for (lua_Integer i = 0; i < count; i++) { // the names stay on the stack, which keeps them
        lua_rawgeti(L, 3, i + 1);
        luaL_checktype(L, -1, LUA_TTABLE);
        lua_rawgeti(L, -1, 2);
        lua_rawgeti(L, -2, 1);
        lua_remove(L, -3);
        rules[i] = (RunLayerRule){.pattern = luaL_checkstring(L, -1)};
        if (!layer_precision_parse(luaL_checkstring(L, -2), run->device, &rules[i].precision,
                                   &error)) {
            error_prefix(&error, "precision.%s", rules[i].pattern);
            return bind_raise(L, &error);
        }
    }
    lua_pushvalue(L, 3);
    lua_setfield(L, LUA_REGISTRYINDEX, script_rules);
    size_t script_count;
    const Script *script = lua_vm_scripts(session_of(L)->vm, &script_count);
    if (script_count > 0) // the experiment is the first
        run_set_script(run, script->name, script->hash, script->text, script->length);
    run_add_fact(run, "library.Lua", lua_library());
    if (!run_configure(run, name, precision, rules, (int)count, &error)) {
        session_of(L)->refusal = error; // its code decides the exit status
        return bind_raise(L, &error);
    }
    run->is_silent = bind_is_replaying(session_of(L)); // it has told of its beginning
    return 0;
}

// result_better(name, "higher" or "lower"): as the script says it of a result
static int run_better_call(lua_State *L) {
    char fact[RECORD_NAME_SIZE];
    snprintf(fact, sizeof fact, RECORD_FACT_BETTER "%s", luaL_checkstring(L, 1));
    run_add_fact(session_of(L)->run, fact, luaL_checkstring(L, 2));
    return 0;
}

// result_leads(name): people look at it first
static int run_leads_call(lua_State *L) {
    run_add_fact(session_of(L)->run, RECORD_FACT_LEADS, luaL_checkstring(L, 1));
    return 0;
}

// result_falls(name): whether one of this name gets better so
static int run_falls_call(lua_State *L) {
    lua_pushboolean(L, record_metric_falls(luaL_checkstring(L, 1)));
    return 1;
}

// is_own_series(name): whether the run records it by itself
static int run_is_own_call(lua_State *L) {
    lua_pushboolean(L, run_is_own_series(luaL_checkstring(L, 1)));
    return 1;
}

static void check_script_rules(lua_State *L) {
    if (lua_getfield(L, LUA_REGISTRYINDEX, script_rules) == LUA_TTABLE)
        for (lua_Integer i = 1, n = (lua_Integer)lua_rawlen(L, -1); i <= n; i++) {
            char hint[POLICY_HINT_SIZE];
            lua_rawgeti(L, -1, i);
            lua_rawgeti(L, -1, 1);
            const char *pattern = lua_tostring(L, -1);
            if (!policy_names(session_of(L)->engine->policy, pattern, hint))
                bind_error(L, "precision.%.60s: no layer of the model has such a name%s", pattern,
                           hint);
            lua_pop(L, 2);
        }
    lua_pop(L, 1);
    lua_pushnil(L);
    lua_setfield(L, LUA_REGISTRYINDEX, script_rules);
}

void bind_check_layers(lua_State *L) {
    Error error = {0};
    if (!run_check_layers(session_of(L)->run, &error)) {
        session_of(L)->refusal = error; // what was typed is wrong, not the script
        bind_raise(L, &error);
    }
    check_script_rules(L);
}

// layers_known(): the model is there
static int run_layers_known_call(lua_State *L) {
    bind_check_layers(L);
    return 0;
}

// replays(): whether it goes through steps that were trained already
static int run_replays_call(lua_State *L) {
    lua_pushboolean(L, bind_is_replaying(session_of(L)));
    return 1;
}

// options(): what the command line said: {steps, epochs, seed, device, settings = {{key, value},
// ..}}
static int run_options_call(lua_State *L) {
    const Run *run = session_of(L)->run;
    const RunOptions *options = run->options;
    lua_createtable(L, 0, 5);
    lua_pushinteger(L, options->steps);
    lua_setfield(L, -2, "steps");
    lua_pushinteger(L, options->epochs);
    lua_setfield(L, -2, "epochs");
    lua_pushinteger(L, (lua_Integer)options->seed);
    lua_setfield(L, -2, "seed");
    lua_pushstring(L, run->device->backend->name);
    lua_setfield(L, -2, "device");
    lua_createtable(L, options->setting_count, 0);
    for (int i = 0; i < options->setting_count; i++) {
        lua_createtable(L, 2, 0);
        lua_pushstring(L, options->settings[i].key);
        lua_rawseti(L, -2, 1);
        lua_pushstring(L, options->settings[i].value);
        lua_rawseti(L, -2, 2);
        lua_rawseti(L, -2, i + 1);
    }
    lua_setfield(L, -2, "settings");
    return 1;
}

void bind_parameter(lua_State *L, int at_name, int at_value, RecordParameter *parameter) {
    size_t length;
    const char *name = luaL_checklstring(L, at_name, &length);
    *parameter = (RecordParameter){.kind = RECORD_TEXT};
    if (length >= sizeof parameter->name)
        bind_error(L, "params.%s: names of up to %zu characters are possible", name,
                   sizeof parameter->name - 1);
    memcpy(parameter->name, name, length + 1);
    switch (lua_type(L, at_value)) {
    case LUA_TBOOLEAN:
        parameter->kind = RECORD_BOOLEAN;
        parameter->integer = lua_toboolean(L, at_value);
        break;
    case LUA_TNUMBER:
        parameter->kind = lua_isinteger(L, at_value) ? RECORD_INTEGER : RECORD_NUMBER;
        parameter->integer = lua_tointeger(L, at_value);
        parameter->number = lua_tonumber(L, at_value);
        break;
    default: {
        const char *text = luaL_checklstring(L, at_value, &length);
        if (length >= sizeof parameter->text)
            bind_error(L, "params.%s: texts of up to %zu bytes are possible", name,
                       sizeof parameter->text - 1);
        memcpy(parameter->text, text, length + 1);
    }
    }
}

static int run_parameter_call(lua_State *L) {
    Error error = {0};
    RecordParameter parameter;
    bind_parameter(L, 1, 2, &parameter);
    if (!run_add_parameter(session_of(L)->run, &parameter, &error))
        return bind_raise(L, &error);
    return 0;
}

// usage(text): what was typed on the command line is wrong, not the script
static int run_usage_call(lua_State *L) {
    Session *session = session_of(L);
    error_fail(&session->refusal, ERROR_USAGE, "%s", luaL_checkstring(L, 1));
    return luaL_error(L, "%s", session->refusal.text);
}

// parse_parameter(name, default, text [, choices]): what --set says, of the default's kind
static int run_parse_parameter_call(lua_State *L) {
    Error error = {0};
    RecordParameter parameter;
    bind_parameter(L, 1, 2, &parameter);
    if (!parameter_parse(&parameter, luaL_optstring(L, 4, ""), luaL_checkstring(L, 3), &error)) {
        lua_settop(L, 0);
        lua_pushfstring(L, "--set %s", error.text);
        return run_usage_call(L);
    }
    switch (parameter.kind) {
    case RECORD_BOOLEAN: lua_pushboolean(L, parameter.integer != 0); break;
    case RECORD_INTEGER: lua_pushinteger(L, parameter.integer); break;
    case RECORD_NUMBER: lua_pushnumber(L, parameter.number); break;
    case RECORD_TEXT: lua_pushstring(L, parameter.text); break;
    }
    return 1;
}

// choice_limits(): the most bytes of a parameter's choice, and of all of them with their blanks
static int run_choice_limits_call(lua_State *L) {
    lua_pushinteger(L, PARAMETER_CHOICE_SIZE - 1);
    lua_pushinteger(L, PARAMETER_CHOICES_SIZE - 1);
    return 2;
}

// A fork that begins where the epochs are over trains nothing, however many steps it was to have.
static void refuse_empty_fork(lua_State *L, Session *session) {
    const Run *run = session->run;
    const int64_t from = session->resume ? checkpoint_step(session->resume) : 0;
    if (!session->resume || !run->options->parent || run->epochs == 0 || run->total_steps > from)
        return;
    const bool is_limited = run->step_limit > 0 && run->step_limit <= from;
    error_fail(&session->refusal, ERROR_USAGE,
               "the fork begins after step %lld, where %s, and would train nothing: --epochs N%s "
               "gives it more",
               (long long)from, is_limited ? "--steps and the epochs end" : "the epochs end",
               is_limited ? " with --steps N" : "");
    bind_error(L, "%s", session->refusal.text);
}

// plan(total steps [, epochs]): what the whole run will take; 0 where unknown
static int run_plan_call(lua_State *L) {
    Session *session = session_of(L);
    Run *run = session->run;
    run->total_steps = bind_integer(L, "plan", 1, "steps");
    if (!lua_isnoneornil(L, 2))
        run->epochs = bind_integer(L, "plan", 2, "epochs");
    if (run->step_limit > 0 && (run->total_steps == 0 || run->step_limit < run->total_steps))
        run->total_steps = run->step_limit;
    refuse_empty_fork(L, session);
    return 0;
}

const BindFunction bind_declare_functions[] = {
    {"declare", run_declare_call, NULL},
    {"usage", run_usage_call, NULL},
    {"configure", run_configure_call, NULL},
    {"result_better", run_better_call, NULL},
    {"result_leads", run_leads_call, NULL},
    {"is_own_series", run_is_own_call, NULL},
    {"result_falls", run_falls_call, NULL},
    {"layers_known", run_layers_known_call, NULL},
    {"replays", run_replays_call, NULL},
    {"options", run_options_call, NULL},
    {"add_parameter", run_parameter_call, NULL},
    {"parse_parameter", run_parse_parameter_call, NULL},
    {"choice_limits", run_choice_limits_call, NULL},
    {"plan", run_plan_call, NULL},
    {0},
};
