// Scalers of the loss as Lua objects.
#include <float.h>
#include <math.h>

#include "lua/bind/callback.h"
#include "lua/bind/step.h"

static const char scaler_type[] = "mp.scaler", step_field[] = "mp.step_by";

typedef struct ScalerHandle {
    Scaler *scaler;
    bool written_in_lua; // user values: the function and its state
} ScalerHandle;

static ScalerHandle *scaler_handle(lua_State *L, const char *function) {
    ScalerHandle *handle = luaL_testudata(L, 1, scaler_type);
    if (!handle)
        bind_argument_error(L, function, 1, "self", "a scaler (called with a colon)");
    if (!handle->scaler)
        bind_error(L, "%s: this scaler is closed", function);
    return handle;
}

static ScaleRule rule_at(lua_State *L, int index) {
    Error error = {0};
    ScaleRule rule;
    if (!scale_rule_parse("dynamic", &rule, &error))
        bind_raise(L, &error);
    if (lua_istable(L, index)) {
        rule.init = bind_field_number(L, "scaler", index, "init", rule.init);
        rule.growth = bind_field_number(L, "scaler", index, "growth", rule.growth);
        rule.backoff = bind_field_number(L, "scaler", index, "backoff", rule.backoff);
        rule.interval = bind_field_integer(L, "scaler", index, "interval", rule.interval);
        rule.hysteresis = bind_field_integer(L, "scaler", index, "hysteresis", rule.hysteresis);
        rule.floor = bind_field_number(L, "scaler", index, "floor", rule.floor);
        rule.ceiling = bind_field_number(L, "scaler", index, "ceiling", rule.ceiling);
        if (!scale_rule_check(&rule, &error))
            bind_raise(L, &error);
    } else if (lua_isfunction(L, index)) {
        rule.kind = SCALE_GIVEN;
    } else if (!lua_isnoneornil(L, index)) {
        if (!scale_rule_parse(luaL_checkstring(L, index), &rule, &error)) {
            error_prefix(&error, "scaler");
            bind_raise(L, &error);
        }
    }
    return rule;
}

int bind_push_scaler(lua_State *L, const ScaleRule *rule) {
    Error error = {0};
    ScalerHandle *handle = lua_newuserdatauv(L, sizeof *handle, 2);
    *handle = (ScalerHandle){NULL, false};
    luaL_setmetatable(L, scaler_type);
    Session *session = session_of(L);
    BIND_ENTERED(L, handle->scaler = scaler_new(&session->engine->scalers, rule, &error));
    if (handle->scaler)
        lua_vm_charge(L, BIND_OBJECT_BYTES);
    if (!handle->scaler ||
        !inventory_add(&session->inventory, MEMBER_SCALER, handle->scaler, &error))
        return bind_raise(L, &error);
    return 1;
}

Scaler *bind_scaler_at(lua_State *L, int index) {
    const ScalerHandle *handle = bind_object(L, index, scaler_type);
    return handle ? handle->scaler : NULL;
}

// scaler(preset | number | options | function(stats, state))
static int mp_scaler(lua_State *L) {
    lua_settop(L, 1);
    ScaleRule rule = rule_at(L, 1);
    bind_push_scaler(L, &rule);
    if (lua_isfunction(L, 1)) {
        ScalerHandle *handle = lua_touserdata(L, -1);
        handle->written_in_lua = true;
        lua_pushvalue(L, 1);
        lua_setiuservalue(L, -2, 1);
        lua_newtable(L);
        lua_setiuservalue(L, -2, 2);
    }
    return 1;
}

static int scaler_gc(lua_State *L) {
    ScalerHandle *handle = lua_touserdata(L, 1);
    Session *session = session_of(L);
    if (!session->finished && handle->scaler && session->run->scaler == handle->scaler)
        session->run->scaler = NULL;
    if (!handle->scaler)
        return 0;
    step_forget(session);
    lua_vm_discharge(L, BIND_OBJECT_BYTES);
    inventory_remove(&session->inventory, MEMBER_SCALER, handle->scaler);
    step_end_forget(&session->step_end, handle->scaler);
    scaler_free(handle->scaler);
    handle->scaler = NULL;
    return 0;
}

// What multiplies by the scale is a kernel, which is captured by itself.
static bool scale_again(Capture *capture, const CaptureAct *act, void *context, Error *error) {
    (void)capture;
    (void)context;
    (void)error;
    return scaler_begin(act->on) == act->with; // else its rule is another one by now
}

static int scaler_scale_method(lua_State *L) {
    Error error = {0};
    ScalerHandle *handle = scaler_handle(L, "scale");
    Tensor *loss = bind_tensor(L, "scale", 2, "loss");
    if (session_of(L)->engine->capture) {
        step_begin_act(L, &(CaptureAct){.does = scale_again,
                                        .on = handle->scaler,
                                        .with = scaler_begin(handle->scaler)});
        step_end_act(L);
    }
    return BIND_TENSOR(L, engine_scale_loss(session_of(L)->engine, handle->scaler, loss, &error),
                       &error);
}

static bool unscale_again(Capture *capture, const CaptureAct *act, void *context, Error *error) {
    lua_State *L = context;
    (void)capture;
    BIND_DONE(L, optimizer_unscale(act->with, act->on, error), error);
    return true;
}

static int scaler_unscale_method(lua_State *L) {
    Error error = {0};
    ScalerHandle *handle = scaler_handle(L, "unscale");
    Optimizer *optimizer = bind_optimizer_at(L, 2, "unscale");
    callback_refuse(L, "unscale");
    step_begin_act(
        L, &(CaptureAct){
               .does = unscale_again, .on = handle->scaler, .with = optimizer, .is_final = true});
    BIND_DONE(L, optimizer_unscale(optimizer, handle->scaler, &error), &error);
    step_end_act(L);
    return 0;
}

static bool step_again(Capture *capture, const CaptureAct *act, void *context, Error *error) {
    lua_State *L = context;
    (void)capture;
    BIND_DONE(L, optimizer_step_scaled(act->with, act->on, error), error);
    return true;
}

static int scaler_step_method(lua_State *L) {
    Error error = {0};
    ScalerHandle *handle = scaler_handle(L, "step");
    Optimizer *optimizer = bind_optimizer_at(L, 2, "step");
    callback_refuse(L, "step");
    bind_check_layers(L);
    if (lua_istable(L, 2)) { // an optimizer of one's own has a step of its own
        capture_refuse(session_of(L)->engine, "an optimizer of the script's steps");
        lua_getfield(L, LUA_REGISTRYINDEX, step_field);
        lua_insert(L, 1);
        lua_call(L, 2, 0);
        return 0;
    }
    step_begin_act(
        L, &(CaptureAct){
               .does = step_again, .on = handle->scaler, .with = optimizer, .is_final = true});
    BIND_DONE(L, optimizer_step_scaled(optimizer, handle->scaler, &error), &error);
    step_end_act(L);
    return 0;
}

// What a user's function goes by: of all optimizers together, and the scale so far.
typedef struct ScaleReport {
    double found_inf, largest, mean, norm, scale;
} ScaleReport;

static ScaleReport read_report(const Run *run, Scaler *scaler) {
    OptimizerReport total = {0};
    for (int i = 0; i < run->optimizer_count; i++) {
        OptimizerReport report = optimizer_report(run->optimizers[i]);
        total.found_inf = total.found_inf || report.found_inf;
        total.largest = fmax(total.largest, report.largest);
        total.sum += report.sum;
        total.count += report.count;
        total.norm = hypot(total.norm, report.norm);
    }
    return (ScaleReport){.found_inf = total.found_inf,
                         .largest = total.largest,
                         .mean = total.count ? total.sum / (double)total.count : 0,
                         .norm = total.norm,
                         .scale = scaler_get(scaler)};
}

// stats(): what the step found, as a rule that is a function gets it
static int push_report(lua_State *L, Scaler *scaler) {
    ScaleReport report;
    if (!bind_recall(L, JOURNAL_REPORT, &report, sizeof report)) {
        BIND_ENTERED(L, report = read_report(session_of(L)->run, scaler));
        bind_remember(L, JOURNAL_REPORT, &report, sizeof report);
    }
    lua_createtable(L, 0, 5);
    lua_pushboolean(L, report.found_inf != 0);
    lua_setfield(L, -2, "found_inf");
    lua_pushnumber(L, report.largest);
    lua_setfield(L, -2, "largest");
    lua_pushnumber(L, report.mean);
    lua_setfield(L, -2, "mean");
    lua_pushnumber(L, report.norm);
    lua_setfield(L, -2, "norm");
    lua_pushnumber(L, report.scale);
    lua_setfield(L, -2, "scale");
    return 1;
}

static int scaler_stats_method(lua_State *L) {
    return push_report(L, scaler_handle(L, "stats")->scaler);
}

// Calls the user's function with the step's statistics and its own state; returns the new scale.
static double scale_from_lua(lua_State *L, Scaler *scaler) {
    lua_getiuservalue(L, 1, 1);
    push_report(L, scaler);
    lua_getiuservalue(L, 1, 2);
    lua_call(L, 2, 1);
    int is_number;
    double scale = lua_tonumberx(L, -1, &is_number);
    if (!is_number || !(scale > 0) || isinf(scale))
        bind_error(L, "scaler: the function must return a positive, finite scale, got %s",
                   luaL_tolstring(L, -1, NULL));
    lua_pop(L, 1);
    return scale;
}

// Moves the scale, and ends the step of the run where that does.
static void update(lua_State *L, Scaler *scaler, double given) {
    Error error = {0};
    BIND_DONE(L, scaler_update(scaler, given, &error), &error);
    Run *run = session_of(L)->run;
    if (!run->scaler) // none came from run:scaler(): the first one used marks the steps
        run->scaler = scaler;
    StepEnd *end = &session_of(L)->step_end;
    bool ends = step_end_updated(end, scaler, run->scaler == scaler);
    if (end->leader == scaler) // the one before was never used
        run->scaler = scaler;
    if (ends)
        bind_end_step(L);
}

static bool update_again(Capture *capture, const CaptureAct *act, void *context, Error *error) {
    (void)capture;
    (void)error;
    update(context, act->on, 0);
    return true;
}

static int scaler_update_method(lua_State *L) {
    ScalerHandle *handle = scaler_handle(L, "update");
    double given = lua_isnoneornil(L, 2) ? 0 : bind_number(L, "update", 2, "scale");
    if (!lua_isnoneornil(L, 2) && (!(given > 0) || isinf(given)))
        return bind_error(L, "update: scale is %g: positive and finite is wanted", given);
    callback_refuse(L, "update");
    if (handle->written_in_lua || given != 0)
        capture_refuse(session_of(L)->engine, "the script moves the scale");
    if (handle->written_in_lua && given == 0)
        given = scale_from_lua(L, handle->scaler);
    step_begin_act(L, &(CaptureAct){.does = update_again, .on = handle->scaler, .is_final = true});
    update(L, handle->scaler, given);
    step_end_act(L);
    return 0;
}

static int scaler_get_method(lua_State *L) {
    Scaler *scaler = scaler_handle(L, "get")->scaler;
    double scale = 0;
    if (!bind_recall(L, JOURNAL_SCALE, &scale, sizeof scale)) {
        lua_vm_enter_engine(L);
        scale = scaler_get(scaler);
        lua_vm_leave_engine(L);
        bind_remember(L, JOURNAL_SCALE, &scale, sizeof scale);
    }
    lua_pushnumber(L, scale);
    return 1;
}

static int scaler_applied_method(lua_State *L) {
    Error error = {0};
    bool applied = false;
    ScalerHandle *handle = scaler_handle(L, "applied");
    const Optimizer *optimizer = bind_optimizer_at(L, 2, "applied");
    BIND_READ(L, scaler_applied(handle->scaler, optimizer_gradients(optimizer), &applied, &error),
              &error);
    if (!bind_recall(L, JOURNAL_APPLIED, &applied, sizeof applied))
        bind_remember(L, JOURNAL_APPLIED, &applied, sizeof applied);
    lua_pushboolean(L, applied);
    return 1;
}

static int scaler_state_method(lua_State *L) {
    Scaler *scaler = scaler_handle(L, "state")->scaler;
    ScaleState state;
    if (!bind_recall(L, JOURNAL_SCALE, &state, sizeof state)) {
        lua_vm_enter_engine(L);
        state = scaler_state(scaler);
        lua_vm_leave_engine(L);
        bind_remember(L, JOURNAL_SCALE, &state, sizeof state);
    }
    lua_createtable(L, 0, 3);
    lua_pushnumber(L, (lua_Number)state.scale);
    lua_setfield(L, -2, "scale");
    lua_pushinteger(L, state.good);
    lua_setfield(L, -2, "good");
    lua_pushinteger(L, state.hysteresis_left);
    lua_setfield(L, -2, "hysteresis_left");
    return 1;
}

static int scaler_load_method(lua_State *L) {
    const int64_t most = (int64_t)1 << 53;
    Scaler *scaler = scaler_handle(L, "load")->scaler;
    ScaleState state;
    BIND_ENTERED(L, state = scaler_state(scaler));
    double scale = bind_field_number(L, "load", 2, "scale", (double)state.scale);
    if (!(scale >= (double)FLT_TRUE_MIN && scale <= (double)FLT_MAX))
        return bind_error(L, "load: scale is %g: a positive number that fp32 holds is wanted",
                          scale);
    state.scale = (float)scale;
    state.good = bind_field_integer(L, "load", 2, "good", state.good);
    state.hysteresis_left =
        bind_field_integer(L, "load", 2, "hysteresis_left", state.hysteresis_left);
    if (state.good < 0 || state.good > most)
        return bind_error(L, "load: good is %lld: a count of steps is wanted",
                          (long long)state.good);
    if (state.hysteresis_left < -most || state.hysteresis_left > most)
        return bind_error(L, "load: hysteresis_left is %lld: a count of overflows is wanted",
                          (long long)state.hysteresis_left);
    BIND_ENTERED(L, scaler_load(scaler, &state));
    return 0;
}

// ---- tables -------------------------------------------------------------------------------------

static const BindFunction methods[] = {
    {"scale", scaler_scale_method, "loss"},
    {"unscale", scaler_unscale_method, "opt"},
    {"step", scaler_step_method, "opt"},
    {"update", scaler_update_method, "[scale]"},
    {"get", scaler_get_method, ""},
    {"stats", scaler_stats_method, ""},
    {"applied", scaler_applied_method, "opt"},
    {"state", scaler_state_method, ""},
    {"load", scaler_load_method, "{ scale, good, hysteresis_left }"},
    {0}};

static const BindFunction events[] = {{"__gc", scaler_gc, NULL}, {0}};

static const BindFunction functions[] = {
    {"scaler", mp_scaler,
     "rule or { init, growth, backoff, interval, hysteresis, floor, ceiling }"},
    {0}};

// ---- for classes of the script's own (mp/class.lua) ---------------------------------------------

// step_by(f): f(scaler, optimizer) steps an optimizer that is an instance of a class
static int set_step_by(lua_State *L) {
    luaL_checktype(L, 1, LUA_TFUNCTION);
    lua_setfield(L, LUA_REGISTRYINDEX, step_field);
    return 0;
}

// has_unscaled(scaler, optimizer)
static int has_unscaled(lua_State *L) {
    const ScalerHandle *handle = scaler_handle(L, "step");
    const Optimizer *optimizer = bind_optimizer_at(L, 2, "step");
    lua_pushboolean(L, scaler_has_unscaled(handle->scaler, optimizer_gradients(optimizer)));
    return 1;
}

// methods("scaler" or "optimizer"): by name
static int methods_of(lua_State *L) {
    lua_pushfstring(L, "mp.%s", luaL_checkstring(L, 1));
    lua_gettable(L, LUA_REGISTRYINDEX);
    luaL_checktype(L, -1, LUA_TTABLE);
    lua_getfield(L, -1, "__index");
    return 1;
}

static const BindFunction inner[] = {{"step_by", set_step_by, NULL},
                                     {"has_unscaled", has_unscaled, NULL},
                                     {"methods", methods_of, NULL},
                                     {0}};

void bind_open_scaler(lua_State *L, Session *session) {
    bind_metatable(L, session, scaler_type, "s:", methods, events);
    lua_pop(L, 1);
    bind_functions(L, session, "mp.", functions);
    lua_getfield(L, -1, "engine");
    bind_functions(L, session, "", inner);
    lua_pop(L, 1);
}
