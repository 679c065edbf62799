// Optimizers, scalers, clipping and averages of weights as Lua objects.
#include <math.h>
#include <string.h>

#include "lua/bind/bind.h"

static const char optimizer_type[] = "mp.optimizer", scaler_type[] = "mp.scaler",
                  average_type[] = "mp.average";

// ---- lists of parameters ------------------------------------------------------------------------

// The tensors of the list at `index` in a userdata on top of the stack; the list keeps them alive.
static Tensor **push_tensors(lua_State *L, const char *function, int index, int *count) {
    index = lua_absindex(L, index);
    if (!lua_istable(L, index))
        bind_argument_error(L, function, index, "parameters", "a list of tensors");
    lua_Integer n = (lua_Integer)lua_rawlen(L, index);
    if (n > 1 << 20)
        bind_error(L, "%s: %lld parameters are too many", function, (long long)n);
    Tensor **tensors = lua_newuserdatauv(L, (size_t)(n ? n : 1) * sizeof *tensors, 0);
    for (lua_Integer i = 0; i < n; i++) {
        lua_rawgeti(L, index, i + 1);
        tensors[i] = bind_test_tensor(L, -1);
        if (!tensors[i])
            bind_error(L, "%s: parameters[%lld]: a tensor expected, got %s", function,
                       (long long)i + 1, luaL_typename(L, -1));
        lua_pop(L, 1);
    }
    *count = (int)n;
    return tensors;
}

// ---- optimizers ---------------------------------------------------------------------------------

static Optimizer **optimizer_slot(lua_State *L, const char *function) {
    Optimizer **slot = luaL_testudata(L, 1, optimizer_type);
    if (!slot)
        bind_argument_error(L, function, 1, "self", "an optimizer (called with a colon)");
    if (!*slot)
        bind_error(L, "%s: this optimizer is closed", function);
    return slot;
}

static Optimizer *optimizer_at(lua_State *L, int index, const char *function) {
    Optimizer **slot = luaL_testudata(L, index, optimizer_type);
    if (!slot || !*slot)
        bind_argument_error(L, function, index, "optimizer", "an optimizer");
    return *slot;
}

static const char *const option_names[] = {
    "lr",       "momentum", "nesterov",        "weight_decay",
    "betas",    "eps",      "bias_correction", "max_grad_norm",
    "schedule", "grads",    "stochastic",      NULL};

// What lua/mp/optim.lua makes of a schedule, at `at`.
static Schedule schedule_at(lua_State *L, const char *function, int at, double rate) {
    static const char *const kinds[] = {"constant", "linear_warmup", "cosine", "step"};
    Schedule schedule = {.kind = SCHEDULE_CONSTANT, .rate = rate};
    if (lua_isnoneornil(L, at))
        return schedule;
    const char *kind = bind_field_text(L, function, at, "kind");
    for (int i = 0; kind && i < 4; i++)
        if (strcmp(kind, kinds[i]) == 0)
            schedule.kind = (ScheduleKind)i;
    schedule.warmup = bind_field_number(L, function, at, "warmup", 0);
    schedule.total = bind_field_number(L, function, at, "total", 0);
    schedule.floor = bind_field_number(L, function, at, "floor", 0);
    schedule.every = bind_field_number(L, function, at, "every", 1);
    schedule.factor = bind_field_number(L, function, at, "factor", 1);
    return schedule;
}

static void read_options(lua_State *L, const char *name, OptimizerOptions *options) {
    bind_known_fields(L, name, 2, option_names);
    bool has_rate = lua_istable(L, 2) && lua_getfield(L, 2, "lr") != LUA_TNIL;
    lua_settop(L, 2);
    if (!has_rate)
        bind_error(L, "%s: lr: a learning rate is needed, as in {lr = 1e-3}", name);
    double rate = bind_field_number(L, name, 2, "lr", 0);
    lua_getfield(L, 2, "schedule");
    options->schedule = schedule_at(L, name, 3, rate);
    lua_settop(L, 2);
    options->momentum = bind_field_number(L, name, 2, "momentum", options->momentum);
    options->nesterov = bind_field_boolean(L, name, 2, "nesterov", options->nesterov);
    options->weight_decay = bind_field_number(L, name, 2, "weight_decay", options->weight_decay);
    options->epsilon = bind_field_number(L, name, 2, "eps", options->epsilon);
    options->bias_correction =
        bind_field_boolean(L, name, 2, "bias_correction", options->bias_correction);
    options->max_grad_norm = bind_field_number(L, name, 2, "max_grad_norm", options->max_grad_norm);
    options->stochastic = bind_field_boolean(L, name, 2, "stochastic", false);
    const char *grads = bind_field_text(L, name, 2, "grads");
    if (grads && strcmp(grads, "fp32") != 0 && strcmp(grads, "layer") != 0)
        bind_error(L, "%s: grads: \"layer\" (rounded to the layer's format) or \"fp32\"", name);
    options->full_gradients = grads && strcmp(grads, "fp32") == 0;
    if (lua_getfield(L, 2, "betas") == LUA_TTABLE) {
        double *const betas[2] = {&options->beta1, &options->beta2};
        for (int i = 0; i < 2; i++) {
            int is_number;
            lua_rawgeti(L, -1, i + 1);
            *betas[i] = lua_tonumberx(L, -1, &is_number);
            if (!is_number)
                bind_error(L, "%s: betas: two numbers expected, as in {0.9, 0.999}", name);
            lua_pop(L, 1);
        }
    } else if (!lua_isnil(L, -1)) {
        bind_error(L, "%s: betas: two numbers expected, as in {0.9, 0.999}", name);
    }
    lua_settop(L, 2);
}

// Groups come as {params = list, lr =, weight_decay =}; a plain list of tensors is one group. What
// the groups point to stays on the stack.
static int read_groups(lua_State *L, const char *name, const OptimizerOptions *options,
                       OptimizerGroup *groups, int most) {
    static const char *const known[] = {"params", "lr", "weight_decay", NULL};
    if (!lua_istable(L, 1))
        bind_argument_error(L, name, 1, "parameters", "a list of tensors or of groups");
    lua_rawgeti(L, 1, 1);
    bool grouped = lua_istable(L, -1);
    lua_pop(L, 1);
    if (!grouped) {
        groups[0].parameters = push_tensors(L, name, 1, &groups[0].count);
        groups[0].lr_factor = 1;
        groups[0].weight_decay = options->weight_decay;
        return 1;
    }
    lua_Integer count = (lua_Integer)lua_rawlen(L, 1);
    if (count > most)
        bind_error(L, "%s: %lld groups: at most %d are possible", name, (long long)count, most);
    luaL_checkstack(L, (int)count * 3 + 8, name);
    for (lua_Integer i = 0; i < count; i++) {
        lua_rawgeti(L, 1, i + 1);
        int group = lua_gettop(L);
        bind_known_fields(L, name, group, known);
        double rate = bind_field_number(L, name, group, "lr", options->schedule.rate);
        groups[i].lr_factor = options->schedule.rate != 0 ? rate / options->schedule.rate : 1;
        groups[i].weight_decay =
            bind_field_number(L, name, group, "weight_decay", options->weight_decay);
        lua_getfield(L, group, "params");
        groups[i].parameters = push_tensors(L, name, -1, &groups[i].count);
    }
    return (int)count;
}

static int optimizer_create(lua_State *L) {
    enum { MOST_GROUPS = 64 };
    Error error = {0};
    Session *session = session_of(L);
    OptimizerKind kind = (OptimizerKind)lua_tointeger(L, lua_upvalueindex(2));
    const char *name = optimizer_kind_name(kind);
    lua_settop(L, 2);
    OptimizerOptions options = optimizer_defaults(kind);
    read_options(L, name, &options);
    OptimizerGroup groups[MOST_GROUPS];
    int count = read_groups(L, name, &options, groups, MOST_GROUPS);
    Optimizer **slot = lua_newuserdatauv(L, sizeof(Optimizer *), 1);
    *slot = optimizer_new(session->engine, &options, groups, count, &error);
    if (!*slot)
        return bind_raise(L, &error);
    luaL_setmetatable(L, optimizer_type);
    if (session->run->optimizer_count < RUN_MAX_OPTIMIZERS)
        session->run->optimizers[session->run->optimizer_count++] = *slot;
    return 1;
}

static int optimizer_gc(lua_State *L) {
    Optimizer **slot = lua_touserdata(L, 1);
    Session *session = session_of(L);
    for (int i = 0; *slot && !session->finished && i < session->run->optimizer_count; i++)
        if (session->run->optimizers[i] == *slot)
            session->run->optimizers[i] = session->run->optimizers[--session->run->optimizer_count];
    optimizer_free(*slot);
    *slot = NULL;
    return 0;
}

static int optimizer_zero_grad_method(lua_State *L) {
    optimizer_zero_grad(*optimizer_slot(L, "zero_grad"));
    return 0;
}

static int optimizer_lr(lua_State *L) {
    Error error = {0};
    Optimizer *optimizer = *optimizer_slot(L, "lr");
    if (!lua_isnoneornil(L, 2) &&
        !optimizer_set_rate(optimizer, bind_number(L, "lr", 2, "rate"), &error))
        return bind_raise(L, &error);
    lua_pushnumber(L, optimizer_rate(optimizer));
    return 1;
}

// schedule(table): how the rate moves from now on
static int optimizer_schedule(lua_State *L) {
    Error error = {0};
    Optimizer *optimizer = *optimizer_slot(L, "schedule");
    luaL_checktype(L, 2, LUA_TTABLE);
    Schedule schedule = schedule_at(L, "schedule", 2, optimizer_rate(optimizer));
    if (!optimizer_set_schedule(optimizer, &schedule, &error))
        return bind_raise(L, &error);
    return 0;
}

static int optimizer_steps(lua_State *L) {
    lua_pushinteger(L, (lua_Integer)optimizer_applied(*optimizer_slot(L, "steps")));
    return 1;
}

// A step without a scaler of the run's ends the run's step too.
static int optimizer_step_method(lua_State *L) {
    Error error = {0};
    Session *session = session_of(L);
    Optimizer *optimizer = *optimizer_slot(L, "step");
    lua_vm_enter_engine(L);
    bool done = optimizer_step(optimizer, &error);
    lua_vm_leave_engine(L);
    if (!done)
        return bind_raise(L, &error);
    Run *run = session->run;
    if (run->scaler || run->optimizer_count == 0 || run->optimizers[0] != optimizer)
        return 0;
    return bind_end_step(L);
}

// ---- scalers ------------------------------------------------------------------------------------

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
    static const char *const known[] = {"init",       "growth", "backoff", "interval",
                                        "hysteresis", "floor",  "ceiling", NULL};
    Error error = {0};
    ScaleRule rule;
    if (!scale_rule_parse("dynamic", &rule, &error))
        bind_raise(L, &error);
    if (lua_istable(L, index)) {
        bind_known_fields(L, "scaler", index, known);
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
        if (!scale_rule_parse(luaL_checkstring(L, index), &rule, &error))
            bind_raise(L, &error);
    }
    return rule;
}

int bind_push_scaler(lua_State *L, const ScaleRule *rule) {
    Error error = {0};
    ScalerHandle *handle = lua_newuserdatauv(L, sizeof *handle, 2);
    *handle = (ScalerHandle){NULL, false};
    luaL_setmetatable(L, scaler_type);
    handle->scaler = scaler_new(session_of(L)->engine, rule, &error);
    if (!handle->scaler)
        return bind_raise(L, &error);
    return 1;
}

Scaler *bind_scaler_at(lua_State *L, int index) {
    ScalerHandle *handle = luaL_testudata(L, index, scaler_type);
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
    scaler_free(handle->scaler);
    handle->scaler = NULL;
    return 0;
}

static int scaler_scale_method(lua_State *L) {
    Error error = {0};
    ScalerHandle *handle = scaler_handle(L, "scale");
    Tensor *loss = bind_tensor(L, "scale", 2, "loss");
    return bind_push_tensor(L, scaler_scale(handle->scaler, loss, &error), &error);
}

static int scaler_unscale_method(lua_State *L) {
    Error error = {0};
    ScalerHandle *handle = scaler_handle(L, "unscale");
    Optimizer *optimizer = optimizer_at(L, 2, "unscale");
    lua_vm_enter_engine(L);
    bool done = scaler_unscale(handle->scaler, optimizer, &error);
    lua_vm_leave_engine(L);
    if (!done)
        return bind_raise(L, &error);
    return 0;
}

static int scaler_step_method(lua_State *L) {
    Error error = {0};
    ScalerHandle *handle = scaler_handle(L, "step");
    Optimizer *optimizer = optimizer_at(L, 2, "step");
    lua_vm_enter_engine(L);
    bool done = scaler_step(handle->scaler, optimizer, &error);
    lua_vm_leave_engine(L);
    if (!done)
        return bind_raise(L, &error);
    return 0;
}

// Calls the user's function with the step's statistics and its own state; returns the new scale.
static double scale_from_lua(lua_State *L, Scaler *scaler) {
    Session *session = session_of(L);
    lua_getiuservalue(L, 1, 1);
    lua_createtable(L, 0, 5);
    OptimizerReport total = {0};
    for (int i = 0; i < session->run->optimizer_count; i++) {
        OptimizerReport report = optimizer_report(session->run->optimizers[i]);
        total.found_inf = total.found_inf || report.found_inf;
        total.largest = fmax(total.largest, report.largest);
        total.sum += report.sum;
        total.count += report.count;
        total.norm = hypot(total.norm, report.norm);
    }
    lua_pushboolean(L, total.found_inf);
    lua_setfield(L, -2, "found_inf");
    lua_pushnumber(L, total.largest);
    lua_setfield(L, -2, "largest");
    lua_pushnumber(L, total.count ? total.sum / (double)total.count : 0);
    lua_setfield(L, -2, "mean");
    lua_pushnumber(L, total.norm);
    lua_setfield(L, -2, "norm");
    lua_pushnumber(L, scaler_get(scaler));
    lua_setfield(L, -2, "scale");
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

static int scaler_update_method(lua_State *L) {
    Error error = {0};
    ScalerHandle *handle = scaler_handle(L, "update");
    double given = lua_isnoneornil(L, 2) ? 0 : bind_number(L, "update", 2, "scale");
    if (!lua_isnoneornil(L, 2) && (!(given > 0) || isinf(given)))
        return bind_error(L, "update: scale is %g: positive and finite is wanted", given);
    if (handle->written_in_lua && given == 0)
        given = scale_from_lua(L, handle->scaler);
    if (!scaler_update(handle->scaler, given, &error))
        return bind_raise(L, &error);
    Run *run = session_of(L)->run;
    if (!run->scaler) // none came from run:scaler(): the first one used marks the steps
        run->scaler = handle->scaler;
    return run->scaler == handle->scaler ? bind_end_step(L) : 0;
}

static int scaler_get_method(lua_State *L) {
    lua_pushnumber(L, scaler_get(scaler_handle(L, "get")->scaler));
    return 1;
}

static int scaler_applied_method(lua_State *L) {
    Error error = {0};
    bool applied;
    ScalerHandle *handle = scaler_handle(L, "applied");
    if (!scaler_applied(handle->scaler, optimizer_at(L, 2, "applied"), &applied, &error))
        return bind_raise(L, &error);
    lua_pushboolean(L, applied);
    return 1;
}

static int scaler_state_method(lua_State *L) {
    ScaleState state = scaler_state(scaler_handle(L, "state")->scaler);
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
    Scaler *scaler = scaler_handle(L, "load")->scaler;
    ScaleState state = scaler_state(scaler);
    double scale = bind_field_number(L, "load", 2, "scale", (double)state.scale);
    if (!(scale > 0) || isinf(scale))
        return bind_error(L, "load: scale is %g: positive and finite is wanted", scale);
    state.scale = (float)scale;
    state.good = bind_field_integer(L, "load", 2, "good", state.good);
    state.hysteresis_left =
        bind_field_integer(L, "load", 2, "hysteresis_left", state.hysteresis_left);
    scaler_load(scaler, &state);
    return 0;
}

// ---- clipping and averages ----------------------------------------------------------------------

static double limit_at(lua_State *L, const char *function) {
    double limit = bind_number(L, function, 2, "limit");
    if (!(limit > 0))
        bind_error(L, "%s: the limit is %g: a positive number is wanted", function, limit);
    return limit;
}

static int clip_norm(lua_State *L) {
    Error error = {0};
    int count;
    double limit = limit_at(L, "clip_norm");
    Tensor **parameters = push_tensors(L, "clip_norm", 1, &count);
    Tensor *norm = optimizer_clip_norm(session_of(L)->engine, parameters, count, limit, &error);
    return bind_push_tensor(L, norm, &error);
}

static int clip_value(lua_State *L) {
    Error error = {0};
    int count;
    double limit = limit_at(L, "clip_value");
    Tensor **parameters = push_tensors(L, "clip_value", 1, &count);
    if (!optimizer_clip_value(session_of(L)->engine, parameters, count, limit, &error))
        return bind_raise(L, &error);
    return 0;
}

static WeightAverage *average_at(lua_State *L, const char *function) {
    WeightAverage **slot = luaL_testudata(L, 1, average_type);
    if (!slot || !*slot)
        bind_argument_error(L, function, 1, "self", "an average of weights");
    return *slot;
}

// average(parameters, decay): mp.optim.EMA hands the model's parameters in.
static int average_create(lua_State *L) {
    Error error = {0};
    int count;
    double decay = bind_number(L, "EMA", 2, "decay");
    if (!(decay >= 0 && decay < 1))
        return bind_error(L, "EMA: decay is %g: from 0 to below 1 is possible", decay);
    Tensor **parameters = push_tensors(L, "EMA", 1, &count);
    WeightAverage **slot = lua_newuserdatauv(L, sizeof(WeightAverage *), 0);
    *slot = weight_average_new(session_of(L)->engine, parameters, count, decay, &error);
    if (!*slot)
        return bind_raise(L, &error);
    luaL_setmetatable(L, average_type);
    return 1;
}

static int average_gc(lua_State *L) {
    WeightAverage **slot = lua_touserdata(L, 1);
    weight_average_free(*slot);
    *slot = NULL;
    return 0;
}

// update([optimizer]): a step that the optimizer skipped leaves the average alone
static int average_update(lua_State *L) {
    Error error = {0};
    WeightAverage *average = average_at(L, "update");
    const StepFlags *flags =
        lua_isnoneornil(L, 2) ? NULL : optimizer_flags(optimizer_at(L, 2, "update"));
    if (!weight_average_update(average, flags, &error))
        return bind_raise(L, &error);
    return 0;
}

static int average_swap(lua_State *L) {
    Error error = {0};
    if (!weight_average_swap(average_at(L, "swap"), &error))
        return bind_raise(L, &error);
    return 0;
}

// ---- tables -------------------------------------------------------------------------------------

static const luaL_Reg optimizer_methods[] = {{"step", optimizer_step_method},
                                             {"zero_grad", optimizer_zero_grad_method},
                                             {"lr", optimizer_lr},
                                             {"steps", optimizer_steps},
                                             {"schedule", optimizer_schedule},
                                             {NULL, NULL}};

static const luaL_Reg scaler_methods[] = {{"scale", scaler_scale_method},
                                          {"unscale", scaler_unscale_method},
                                          {"step", scaler_step_method},
                                          {"update", scaler_update_method},
                                          {"get", scaler_get_method},
                                          {"applied", scaler_applied_method},
                                          {"state", scaler_state_method},
                                          {"load", scaler_load_method},
                                          {NULL, NULL}};

static const luaL_Reg average_methods[] = {
    {"update", average_update}, {"swap", average_swap}, {NULL, NULL}};

static const luaL_Reg functions[] = {{"clip_norm", clip_norm},
                                     {"clip_value", clip_value},
                                     {"average", average_create},
                                     {NULL, NULL}};

static const luaL_Reg outer[] = {{"scaler", mp_scaler}, {NULL, NULL}};

void bind_open_optim(lua_State *L, Session *session) {
    const luaL_Reg optimizer_events[] = {{"__gc", optimizer_gc}, {NULL, NULL}};
    const luaL_Reg scaler_events[] = {{"__gc", scaler_gc}, {NULL, NULL}};
    const luaL_Reg average_events[] = {{"__gc", average_gc}, {NULL, NULL}};
    bind_metatable(L, session, optimizer_type, optimizer_methods, optimizer_events);
    bind_metatable(L, session, scaler_type, scaler_methods, scaler_events);
    bind_metatable(L, session, average_type, average_methods, average_events);
    lua_pop(L, 3);
    bind_functions(L, session, outer);
    lua_newtable(L);
    bind_functions(L, session, functions);
    for (int kind = 0; kind < OPTIMIZER_COUNT; kind++) {
        lua_pushlightuserdata(L, session);
        lua_pushinteger(L, kind);
        lua_pushcclosure(L, optimizer_create, 2);
        lua_setfield(L, -2, optimizer_kind_name((OptimizerKind)kind));
    }
    lua_setfield(L, -2, "optim");
}
