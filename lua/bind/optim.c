// Optimizers as Lua objects, and the clipping of gradients.
#include <math.h>
#include <string.h>

#include "lua/bind/bind.h"

static const char optimizer_type[] = "mp.optimizer";

// ---- lists of parameters ------------------------------------------------------------------------

Tensor **bind_push_tensor_list(lua_State *L, const char *function, int index, int *count) {
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

Optimizer *bind_optimizer_at(lua_State *L, int index, const char *function) {
    Optimizer **slot = luaL_testudata(L, index, optimizer_type);
    if (!slot || !*slot)
        bind_argument_error(L, function, index, "optimizer", "an optimizer");
    return *slot;
}

static const char *const option_names[] = {
    "lr",       "momentum", "nesterov",        "weight_decay",
    "betas",    "eps",      "bias_correction", "max_grad_norm",
    "schedule", "grads",    "stochastic",      NULL};

// What lua/mp/optim.lua makes of a schedule, at `at`. One without a kind would be constant unasked.
static Schedule schedule_at(lua_State *L, const char *function, int at, double rate) {
    static const char *const fields[] = {"kind",  "warmup", "total", "floor",
                                         "every", "factor", NULL};
    Error error = {0};
    Schedule schedule = {.kind = SCHEDULE_CONSTANT, .rate = rate};
    if (!lua_istable(L, at))
        bind_error(L,
                   "%s: schedule: a table expected, got %s; mp.optim.schedule.cosine and others "
                   "make one",
                   function, luaL_typename(L, at));
    bind_known_fields(L, "schedule", at, fields);
    const char *kind = bind_field_text(L, function, at, "kind");
    if (!kind)
        bind_error(L, "%s: schedule.kind is missing; mp.optim.schedule.cosine and others set it",
                   function);
    BIND_DONE(L, schedule_kind_parse(kind, &schedule.kind, &error), &error);
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
    options->schedule.rate = rate;
    if (lua_getfield(L, 2, "schedule") != LUA_TNIL)
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

enum { MOST_GROUPS = 64 };

// A group's rate is kept as a multiple of the base rate, which a schedule moves. Where that is 0
// the largest of the groups' own takes its place.
static void settle_rates(OptimizerOptions *options, OptimizerGroup *groups, const double *rates,
                         int count) {
    double *base = &options->schedule.rate;
    for (int i = 0, own = *base == 0; own && i < count; i++)
        *base = fabs(rates[i]) > fabs(*base) ? rates[i] : *base;
    for (int i = 0; i < count; i++)
        groups[i].lr_factor = *base != 0 ? rates[i] / *base : 1;
}

// Groups come as {params = list, lr =, weight_decay =}; a plain list of tensors is one group. What
// the groups point to stays on the stack.
static int read_groups(lua_State *L, const char *name, OptimizerOptions *options,
                       OptimizerGroup *groups) {
    static const char *const known[] = {"params", "lr", "weight_decay", NULL};
    double rates[MOST_GROUPS];
    if (!lua_istable(L, 1))
        bind_argument_error(L, name, 1, "parameters", "a list of tensors or of groups");
    lua_rawgeti(L, 1, 1);
    bool grouped = lua_istable(L, -1);
    lua_pop(L, 1);
    if (!grouped) {
        groups[0].parameters = bind_push_tensor_list(L, name, 1, &groups[0].count);
        groups[0].lr_factor = 1;
        groups[0].weight_decay = options->weight_decay;
        return 1;
    }
    lua_Integer count = (lua_Integer)lua_rawlen(L, 1);
    if (count > MOST_GROUPS)
        bind_error(L, "%s: %lld groups: at most %d are possible", name, (long long)count,
                   MOST_GROUPS);
    luaL_checkstack(L, (int)count * 3 + 8, name);
    for (lua_Integer i = 0; i < count; i++) {
        lua_rawgeti(L, 1, i + 1);
        int group = lua_gettop(L);
        bind_known_fields(L, name, group, known);
        rates[i] = bind_field_number(L, name, group, "lr", options->schedule.rate);
        groups[i].weight_decay =
            bind_field_number(L, name, group, "weight_decay", options->weight_decay);
        lua_getfield(L, group, "params");
        groups[i].parameters = bind_push_tensor_list(L, name, -1, &groups[i].count);
    }
    settle_rates(options, groups, rates, (int)count);
    return (int)count;
}

static int optimizer_create(lua_State *L) {
    Error error = {0};
    Session *session = session_of(L);
    OptimizerKind kind = (OptimizerKind)lua_tointeger(L, lua_upvalueindex(2));
    const char *name = optimizer_kind_name(kind);
    lua_settop(L, 2);
    OptimizerOptions options = optimizer_defaults(kind);
    read_options(L, name, &options);
    OptimizerGroup groups[MOST_GROUPS];
    int count = read_groups(L, name, &options, groups);
    Optimizer **slot = lua_newuserdatauv(L, sizeof(Optimizer *), 1);
    BIND_ENTERED(L, *slot = optimizer_new(session->engine, &options, groups, count, &error));
    if (!*slot)
        return bind_raise(L, &error);
    luaL_setmetatable(L, optimizer_type);
    run_add_optimizer(session->run, *slot);
    if (!inventory_add(&session->inventory, MEMBER_OPTIMIZER, *slot, &error))
        return bind_raise(L, &error);
    return 1;
}

static int optimizer_gc(lua_State *L) {
    Optimizer **slot = lua_touserdata(L, 1);
    Session *session = session_of(L);
    if (!session->finished)
        run_remove_optimizer(session->run, *slot);
    inventory_remove(&session->inventory, MEMBER_OPTIMIZER, *slot);
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
    double rate = optimizer_rate(optimizer), before;
    if (!bind_recall(L, JOURNAL_RATE, &before, sizeof before))
        bind_remember(L, JOURNAL_RATE, &rate, sizeof rate);
    else if (!checkpoint_has_own_settings(session_of(L)->resume))
        rate = before; // an order may have changed it
    lua_pushnumber(L, rate);
    return 1;
}

// schedule(table): how the rate moves from now on
static int optimizer_schedule(lua_State *L) {
    Error error = {0};
    Optimizer *optimizer = *optimizer_slot(L, "schedule");
    Schedule schedule = schedule_at(L, "schedule", 2, optimizer_rate(optimizer));
    if (!optimizer_set_schedule(optimizer, &schedule, &error))
        return bind_raise(L, &error);
    return 0;
}

static int optimizer_steps(lua_State *L) {
    Optimizer *optimizer = *optimizer_slot(L, "steps");
    uint64_t applied = 0;
    if (!bind_recall(L, JOURNAL_STEPS, &applied, sizeof applied)) {
        lua_vm_enter_engine(L);
        applied = optimizer_applied(optimizer);
        lua_vm_leave_engine(L);
        bind_remember(L, JOURNAL_STEPS, &applied, sizeof applied);
    }
    lua_pushinteger(L, (lua_Integer)applied);
    return 1;
}

// A step without a scaler of the run's ends the run's step too.
static int optimizer_step_method(lua_State *L) {
    Error error = {0};
    Session *session = session_of(L);
    Optimizer *optimizer = *optimizer_slot(L, "step");
    bind_check_layers(L);
    BIND_DONE(L, optimizer_step(optimizer, &error), &error);
    Run *run = session->run;
    if (run->scaler || run->optimizer_count == 0 || run->optimizers[0] != optimizer)
        return 0;
    return bind_end_step(L);
}

// ---- clipping -----------------------------------------------------------------------------------

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
    Tensor **parameters = bind_push_tensor_list(L, "clip_norm", 1, &count);
    return BIND_TENSOR(
        L, optimizer_clip_norm(session_of(L)->engine, parameters, count, limit, &error), &error);
}

static int clip_value(lua_State *L) {
    Error error = {0};
    int count;
    double limit = limit_at(L, "clip_value");
    Tensor **parameters = bind_push_tensor_list(L, "clip_value", 1, &count);
    return BIND_DONE(
        L, optimizer_clip_value(session_of(L)->engine, parameters, count, limit, &error), &error);
}

// ---- tables -------------------------------------------------------------------------------------

static const BindFunction optimizer_methods[] = {{"step", optimizer_step_method, ""},
                                                 {"zero_grad", optimizer_zero_grad_method, ""},
                                                 {"lr", optimizer_lr, "[rate]"},
                                                 {"steps", optimizer_steps, ""},
                                                 {"schedule", optimizer_schedule, "table"},
                                                 {0}};

static const BindFunction functions[] = {
    {"clip_norm", clip_norm, "params, c"}, {"clip_value", clip_value, "params, c"}, {0}};

void bind_open_optim(lua_State *L, Session *session) {
    const BindFunction optimizer_events[] = {{"__gc", optimizer_gc, NULL}, {0}};
    bind_metatable(L, session, optimizer_type, "opt:", optimizer_methods, optimizer_events);
    lua_pop(L, 1);
    bind_open_scaler(L, session);
    lua_newtable(L);
    bind_functions(L, session, "mp.optim.", functions);
    bind_open_average(L, session);
    for (int kind = 0; kind < OPTIMIZER_COUNT; kind++) {
        const BindFunction bound = {optimizer_kind_name((OptimizerKind)kind), optimizer_create,
                                    "params, options"};
        bind_push_held(L, session, "mp.optim.", &bound, (int)kind);
        lua_setfield(L, -2, bound.name);
    }
    lua_setfield(L, -2, "optim");
}
