// What the Lua half needs to build models: parameters, layers, autocast regions, the tape's switch.
#include <string.h>

#include "lua/bind/step.h"
#include "ops/views.h"

// ---- parameters ---------------------------------------------------------------------------------

// parameter(tensor, name, layer, norm_or_bias): makes it trained, or names it anew.
static int mp_parameter(lua_State *L) {
    Error error = {0};
    capture_refuse(session_of(L)->engine, "it makes a parameter");
    Tensor *tensor = bind_tensor(L, "parameter", 1, "tensor");
    if (!parameter_attach(tensor, luaL_checkstring(L, 2), (int)luaL_optinteger(L, 3, 0),
                          lua_toboolean(L, 4), &error))
        return bind_raise(L, &error);
    allocator_assign(tensor_device(tensor)->allocator, tensor->storage->data, MEMORY_WEIGHTS);
    lua_settop(L, 1);
    return 1;
}

// parameter_name(tensor): name, is it a norm's or a bias; nil for what is none
static int mp_parameter_name(lua_State *L) {
    Parameter *parameter = parameter_of(bind_tensor(L, "parameter_name", 1, "tensor"));
    if (!parameter)
        return 0;
    lua_pushstring(L, parameter->name);
    lua_pushboolean(L, parameter->norm_or_bias);
    return 2;
}

// store_low(tensor): keeps the parameter itself in the preset's low format (O3: no masters).
static int mp_store_low(lua_State *L) {
    Error error = {0};
    Tensor *tensor = bind_tensor(L, "store_low", 1, "parameter");
    if (tensor->parameter)
        parameter_of(tensor)->asked_in = tensor->view.format;
    Format format = policy_storage(session_of(L)->engine->policy, tensor->view.format);
    if (format == tensor->view.format)
        return 0;
    return BIND_DONE(L, parameter_store_in(tensor, format, &error), &error);
}

// mode_changed(): a module trains from now on, or no longer
static int mp_mode_changed(lua_State *L) {
    capture_refuse(session_of(L)->engine, "it changes the mode of a module");
    step_forget(session_of(L));
    return 0;
}

// ---- layers -------------------------------------------------------------------------------------

static int mp_add_layer(lua_State *L) {
    Error error = {0};
    int layer = policy_add_layer(session_of(L)->engine->policy, luaL_checkstring(L, 1),
                                 (int)luaL_checkinteger(L, 2), &error);
    if (layer < 0)
        return bind_raise(L, &error);
    lua_pushinteger(L, layer);
    return 1;
}

// enter(layer, training) -> a guard for a to-be-closed variable, which puts the layer and the mode
// before back, whatever ends the block. Each guard remembers them by itself: a coroutine that is
// left in the middle of a forward never closes its own.
enum { LAYER_DEPTH = 256 };

typedef struct LayerGuard {
    int layer, depth; // before
    bool evaluates;
} LayerGuard;

static const char guard_type[] = "mp.guard";

static int mp_enter(lua_State *L) {
    Session *session = session_of(L);
    Engine *engine = session->engine;
    lua_Integer layer = lua_tointeger(L, 1);
    if (session->depth >= LAYER_DEPTH)
        return bind_error(L, "modules are nested more than %d deep", LAYER_DEPTH);
    LayerGuard *guard = lua_newuserdatauv(L, sizeof *guard, 0);
    *guard = (LayerGuard){engine->layer, session->depth, session->evaluates};
    luaL_setmetatable(L, guard_type);
    if (session->depth++ == 0 && session->evaluation)
        bind_model_begins(session);
    session->evaluates = !lua_toboolean(L, 2);
    session->looked += session->evaluates;
    if (session->depth == 1 && session->evaluates)
        session->evaluations++;
    else if (session->evaluations > 0 && session->depth == 1 && tape_is_enabled(engine->tape))
        bind_training_begins(session);
    if (layer > 0 && layer < policy_layer_count(engine->policy))
        engine->layer = (int)layer;
    return 1;
}

static int guard_close(lua_State *L) {
    Session *session = session_of(L);
    const LayerGuard *guard = luaL_checkudata(L, 1, guard_type);
    session->engine->layer = guard->layer;
    session->depth = guard->depth;
    session->evaluates = guard->evaluates;
    if (session->depth == 0 && session->evaluation)
        bind_model_ends(session);
    return 0;
}

// Where in the model the script is belongs to each coroutine by itself.
uint64_t bind_place(void *context) {
    const Session *session = context;
    return (uint64_t)session->evaluates << 63 | (uint64_t)session->depth << 32 |
           (uint32_t)session->engine->layer;
}

void bind_move(void *context, uint64_t place) {
    Session *session = context;
    session->evaluates = place >> 63;
    session->depth = (int)(place >> 32 & INT32_MAX);
    session->engine->layer = (int)(place & UINT32_MAX);
}

static int mp_layers(lua_State *L) {
    Policy *policy = session_of(L)->engine->policy;
    int count = policy_layer_count(policy);
    lua_createtable(L, count - 1, 0);
    for (int i = 1; i < count; i++) {
        const PolicyLayer *layer = policy_layer(policy, i);
        lua_createtable(L, 0, 3);
        lua_pushstring(L, layer->name);
        lua_setfield(L, -2, "name");
        lua_pushstring(L, layer_precision_name(layer->own));
        lua_setfield(L, -2, "own");
        lua_pushstring(L, layer_precision_name(layer->in_force));
        lua_setfield(L, -2, "precision");
        lua_rawseti(L, -2, i);
    }
    return 1;
}

// policy(): what is in force
static int mp_policy(lua_State *L) {
    Engine *engine = session_of(L)->engine;
    const Preset *preset = policy_preset(engine->policy);
    lua_createtable(L, 0, 5);
    lua_pushstring(L, preset->name);
    lua_setfield(L, -2, "preset");
    lua_pushstring(L, format_name(preset->low));
    lua_setfield(L, -2, "low");
    lua_pushboolean(L, engine->autocast.enabled);
    lua_setfield(L, -2, "autocast");
    lua_pushstring(L, preset->loss_scale);
    lua_setfield(L, -2, "loss_scale");
    mp_layers(L);
    lua_setfield(L, -2, "layers");
    return 1;
}

static LayerPrecision precision_at(lua_State *L, int index) {
    Error error = {0};
    LayerPrecision precision;
    if (lua_type(L, index) != LUA_TSTRING)
        bind_error(L, "precision: a format's name expected, got %s", bind_what_is(L, index));
    if (!layer_precision_parse(lua_tostring(L, index), session_of(L)->engine->device, &precision,
                               &error))
        bind_raise(L, &error);
    return precision;
}

// check_precision(precision): one that a layer can be set to
static int mp_check_precision(lua_State *L) {
    precision_at(L, 1);
    return 0;
}

// set_precision(pattern, precision [, now]): queued for the next step boundary; at once before the
// first step. Returns how many layers match.
static int mp_set_precision(lua_State *L) {
    Error error = {0};
    Session *session = session_of(L);
    Policy *policy = session->engine->policy;
    const char *pattern = luaL_checkstring(L, 1);
    LayerPrecision precision = precision_at(L, 2);
    int matched = 0;
    bool done = session->run->step == 0 ? policy_set(policy, pattern, precision, &matched, &error)
                                        : policy_queue(policy, pattern, precision, &error);
    if (!done)
        return bind_raise(L, &error);
    lua_pushinteger(L, matched);
    return 1;
}

// ---- regions ------------------------------------------------------------------------------------

BindState bind_state(const Session *session) {
    const Engine *engine = session->engine;
    return (BindState){engine->autocast, tape_is_enabled(engine->tape), session->evaluates,
                       engine->walking_back, engine->layer};
}

void bind_restore(Session *session, const BindState *state) {
    Engine *engine = session->engine;
    session->evaluates = state->evaluates;
    engine->autocast = state->region;
    engine->layer = state->layer;
    engine->walking_back = state->walking_back;
    tape_set_enabled(engine->tape, state->recording);
}

// Calls the function below the topmost `arguments` values and returns what it returns.
static int call_restoring(lua_State *L, int function, const BindState *before) {
    lua_pushcfunction(L, lua_vm_tell_meant);
    lua_insert(L, function);
    int status = lua_pcall(L, lua_gettop(L) - function - 1, LUA_MULTRET, function);
    lua_remove(L, function);
    bind_restore(session_of(L), before);
    if (status != LUA_OK)
        return lua_error(L);
    return lua_gettop(L) - function + 1;
}

static void check_callable(lua_State *L, const char *function, int index) {
    if (!bind_is_callable(L, index))
        bind_error(L, "%s: a function or a module expected, got %s", function,
                   bind_what_is(L, index));
}

// autocast(f, ..) | autocast(false, f, ..) | autocast("bf16", f, ..)
static int mp_autocast(lua_State *L) {
    Engine *engine = session_of(L)->engine;
    AutocastRegion region = {.enabled = true}; // in fp32 too: a layer may be set lower
    int function = 1;
    if (lua_type(L, 1) == LUA_TBOOLEAN) {
        region.enabled = lua_toboolean(L, 1);
        region.refused = !region.enabled;
        function = 2;
    } else if (lua_type(L, 1) == LUA_TSTRING) {
        LayerPrecision precision;
        Error error = {0};
        if (!layer_precision_parse(lua_tostring(L, 1), engine->device, &precision, &error))
            return bind_raise(L, &error);
        if (precision != LAYER_AUTO)
            region = (AutocastRegion){
                .enabled = true, .given = true, .format = layer_precision_format(precision)};
        function = 2;
    }
    check_callable(L, "autocast", function);
    BindState before = bind_state(session_of(L));
    engine->autocast = region;
    return call_restoring(L, function, &before);
}

// unscaled(f, ..): inside autocast or outside, products as attention has them
static int mp_unscaled(lua_State *L) {
    Engine *engine = session_of(L)->engine;
    BindState before = bind_state(session_of(L));
    engine->autocast.unscaled = true;
    return call_restoring(L, 1, &before);
}

static int mp_no_grad(lua_State *L) {
    Engine *engine = session_of(L)->engine;
    check_callable(L, "no_grad", 1);
    BindState before = bind_state(session_of(L));
    session_of(L)->looked++;
    tape_set_enabled(engine->tape, false);
    return call_restoring(L, 1, &before);
}

// enable_grad(f, ..): records what f computes, inside of no_grad or of a gradient of one's own
static int mp_enable_grad(lua_State *L) {
    Engine *engine = session_of(L)->engine;
    check_callable(L, "enable_grad", 1);
    BindState before = bind_state(session_of(L));
    tape_set_enabled(engine->tape, true);
    engine->walking_back = false;
    return call_restoring(L, 1, &before);
}

static int mp_seed(lua_State *L) {
    Session *session = session_of(L);
    uint64_t seed = (uint64_t)bind_integer(L, "seed", 1, "seed");
    engine_seed(session->engine, seed);
    lua_vm_seed(session->vm, seed);
    return 0;
}

static const BindFunction inner[] = {
    {"enter", mp_enter, NULL},
    {"parameter", mp_parameter, NULL},
    {"parameter_name", mp_parameter_name, NULL},
    {"store_low", mp_store_low, NULL},
    {"mode_changed", mp_mode_changed, NULL},
    {"add_layer", mp_add_layer, NULL},
    {"layers", mp_layers, NULL},
    {"set_precision", mp_set_precision, NULL},
    {"check_precision", mp_check_precision, NULL},
    {"unscaled", mp_unscaled, NULL},
    {"note_missing", lua_vm_note_missing, NULL},
    {"fail_in", lua_vm_fail_in, NULL},
    {0},
};

static const BindFunction outer[] = {
    {"autocast", mp_autocast, "[precision,] f, .."},
    {"no_grad", mp_no_grad, "f, .."},
    {"enable_grad", mp_enable_grad, "f, .."},
    {"seed", mp_seed, "n"},
    {"policy", mp_policy, ""},
    {0},
};

static const BindFunction guard_events[] = {{"__close", guard_close, NULL}, {0}};

void bind_open_module(lua_State *L, Session *session) {
    bind_functions(L, session, "mp.", outer);
    lua_getfield(L, -1, "engine"); // what only the Lua half of the module calls
    bind_functions(L, session, "", inner);
    bind_functions(L, session, "", bind_step_functions);
    bind_functions(L, session, "", bind_signature_functions);
    bind_functions(L, session, "", bind_line_functions);
    lua_pop(L, 1);
    luaL_newmetatable(L, guard_type);
    bind_functions(L, session, "", guard_events);
    lua_pushliteral(L, "guard");
    lua_setfield(L, -2, "__metatable");
    lua_pop(L, 1);
}
