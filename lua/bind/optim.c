// Optimizers as Lua objects, and the clipping of gradients.
#include <stdlib.h>
#include <string.h>

#include "base/mix.h"
#include "lua/bind/callback.h"
#include "lua/bind/step.h"

static const char optimizer_type[] = "mp.optimizer";

// ---- lists of parameters ------------------------------------------------------------------------

Tensor **bind_push_tensor_list(lua_State *L, const char *function, int index, int *count) {
    index = lua_absindex(L, index);
    if (!lua_istable(L, index))
        bind_argument_error(L, function, index, "parameters", "a list of tensors");
    lua_Integer n = bind_list(L, function, index);
    if (n > 1 << 20)
        bind_error(L, "%s: %lld parameters are too many", function, (long long)n);
    luaL_checkstack(L, 4, function);
    Tensor **tensors = lua_newuserdatauv(L, (size_t)(n ? n : 1) * sizeof *tensors, 1);
    lua_createtable(L, (int)n, 0);
    for (lua_Integer i = 0; i < n; i++) {
        lua_rawgeti(L, index, i + 1);
        tensors[i] = bind_test_tensor(L, -1);
        if (!tensors[i])
            bind_error(L, "%s: parameters[%lld]: a tensor expected, got %s", function,
                       (long long)i + 1, luaL_typename(L, -1));
        lua_rawseti(L, -2, i + 1);
    }
    lua_setiuservalue(L, -2, 1);
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
    Optimizer **slot = bind_object(L, index, optimizer_type);
    if (!slot || !*slot)
        bind_argument_error(L, function, index, "optimizer", "an optimizer");
    return *slot;
}

static int optimizer_create(lua_State *L) {
    Error error = {0};
    Session *session = session_of(L);
    OptimizerKind kind = (OptimizerKind)lua_tointeger(L, lua_upvalueindex(2));
    lua_settop(L, 2);
    OptimizerOptions options = optimizer_defaults(kind);
    bind_optimizer_options(L, &options);
    OptimizerGroup groups[BIND_MOST_GROUPS];
    int count = bind_optimizer_groups(L, &options, groups);
    Optimizer **slot = lua_newuserdatauv(L, sizeof(Optimizer *), 1);
    BIND_ENTERED(L, *slot = optimizer_new(session->engine, &options, groups, count, &error));
    if (!*slot)
        return bind_raise(L, &error);
    luaL_setmetatable(L, optimizer_type);
    lua_vm_charge(L, BIND_OBJECT_BYTES);
    bind_collect(L, session); // most of what comes before the first step has come
    run_add_optimizer(session->run, *slot);
    if (!inventory_add(&session->inventory, MEMBER_OPTIMIZER, *slot, &error))
        return bind_raise(L, &error);
    return 1;
}

static int optimizer_gc(lua_State *L) {
    Optimizer **slot = lua_touserdata(L, 1);
    Session *session = session_of(L);
    lua_vm_discharge(L, BIND_OBJECT_BYTES);
    step_forget(session);
    if (!session->finished)
        run_remove_optimizer(session->run, *slot);
    inventory_remove(&session->inventory, MEMBER_OPTIMIZER, *slot);
    step_end_forget(&session->step_end, *slot);
    optimizer_free(*slot);
    *slot = NULL;
    return 0;
}

static bool zero_grad_again(Capture *capture, const CaptureAct *act, void *context, Error *error) {
    (void)capture;
    (void)context;
    (void)error;
    optimizer_zero_grad(act->on);
    return true;
}

static int optimizer_zero_grad_method(lua_State *L) {
    Optimizer *optimizer = *optimizer_slot(L, "zero_grad");
    Capture *capture = session_of(L)->engine->capture;
    step_begin_act(L, &(CaptureAct){.does = zero_grad_again, .on = optimizer});
    for (int i = 0; capture && i < optimizer_parameter_count(optimizer); i++)
        capture_note_emptied(capture, optimizer_parameter(optimizer, i));
    optimizer_zero_grad(optimizer);
    step_end_act(L);
    return 0;
}

// Which group an argument asks for, from 0; `missing` where it is left out.
static int group_at(lua_State *L, const char *function, int argument, const Optimizer *optimizer,
                    int missing) {
    int count = optimizer_group_count(optimizer);
    if (lua_isnoneornil(L, argument))
        return missing;
    int64_t group = bind_integer(L, function, argument, "group");
    if (group < 1 || group > count)
        bind_error(L, "%s: group %lld: the optimizer has %d, counted from 1", function,
                   (long long)group, count);
    return (int)group - 1;
}

// What the next update takes. A schedule goes by how many were applied, which the device knows.
static double current_rate(lua_State *L, const Optimizer *optimizer, int group) {
    Session *session = session_of(L);
    uint64_t applied = 0;
    bool follows = optimizer_has_schedule(optimizer);
    if (!session->resume) {
        if (follows) {
            lua_vm_enter_engine(L);
            applied = optimizer_applied((Optimizer *)optimizer);
            lua_vm_leave_engine(L);
            bind_remember(L, JOURNAL_STEPS, &applied, sizeof applied);
        }
        double rate = optimizer_rate_after(optimizer, group, applied);
        bind_remember(L, JOURNAL_RATE, &rate, sizeof rate);
        return rate;
    }
    // An order may have changed the rate meanwhile; a fork's --set is the fork's own.
    double before = 0;
    if (journal_has(&session->inventory.journal, JOURNAL_STEPS))
        bind_recall(L, JOURNAL_STEPS, &applied, sizeof applied);
    bind_recall(L, JOURNAL_RATE, &before, sizeof before);
    return checkpoint_own(session->resume)->settings
               ? optimizer_rate_after(optimizer, group, applied)
               : before;
}

// lr([rate [, group]]): the rate of the next update, of groups without one of their own or of one
// group; sets the base rate of all groups, or of one.
static int optimizer_lr(lua_State *L) {
    Error error = {0};
    Optimizer *optimizer = *optimizer_slot(L, "lr");
    int group = group_at(L, "lr", 3, optimizer, -1);
    bool is_set = true;
    if (!lua_isnoneornil(L, 2)) {
        double rate = bind_number(L, "lr", 2, "rate");
        is_set = group < 0 ? optimizer_set_rate(optimizer, rate, &error)
                           : optimizer_set_group_rate(optimizer, group, rate, &error);
    }
    if (!is_set)
        return bind_raise(L, &error);
    lua_pushnumber(L, current_rate(L, optimizer, group));
    return 1;
}

// groups(): {{lr =, weight_decay =, count =}, ..}, as they are now
static int optimizer_groups(lua_State *L) {
    Optimizer *optimizer = *optimizer_slot(L, "groups");
    int count = optimizer_group_count(optimizer);
    lua_createtable(L, count, 0);
    for (int i = 0; i < count; i++) {
        OptimizerGroup group = optimizer_group(optimizer, i);
        lua_createtable(L, 0, 3);
        lua_pushnumber(L, current_rate(L, optimizer, i));
        lua_setfield(L, -2, "lr");
        lua_pushnumber(L, group.weight_decay);
        lua_setfield(L, -2, "weight_decay");
        lua_pushinteger(L, group.count);
        lua_setfield(L, -2, "count");
        lua_rawseti(L, -2, i + 1);
    }
    return 1;
}

// schedule(table): how the rate moves from now on
static int optimizer_schedule(lua_State *L) {
    Error error = {0};
    Optimizer *optimizer = *optimizer_slot(L, "schedule");
    Schedule schedule = bind_schedule(L, "schedule", 2, optimizer_rate(optimizer));
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

// parameters(): a list of all that it trains
static int optimizer_parameters(lua_State *L) {
    Optimizer *optimizer = *optimizer_slot(L, "parameters");
    int count = optimizer_parameter_count(optimizer);
    lua_createtable(L, count, 0);
    for (int i = 0; i < count; i++) {
        Tensor *parameter = tensor_hold(optimizer_parameter(optimizer, i));
        bind_push_tensors(L, &parameter, 1);
        lua_rawseti(L, -2, i + 1);
    }
    return 1;
}

// change(state, value): the tensor `state` holds the value from now on, unless the step that
// follows turns out to be skipped
static int optimizer_change(lua_State *L) {
    Error error = {0};
    Optimizer *optimizer = *optimizer_slot(L, "change");
    Tensor *state = bind_tensor(L, "change", 2, "state");
    Tensor *value = bind_tensor(L, "change", 3, "value");
    char wanted[96], came[96];
    tensor_describe(state, wanted, sizeof wanted);
    tensor_describe(value, came, sizeof came);
    if (strcmp(wanted, came) != 0)
        return bind_error(L, "change: state is %s, the value %s: both have one shape and format",
                          wanted, came);
    if (tensor_wants_grad(state) || state->parameter)
        return bind_error(L, "change: state is trained: change(state, value) is for what an "
                             "optimizer itself keeps");
    return BIND_DONE(L,
                     engine_change_buffer(session_of(L)->engine, state, value,
                                          optimizer_parameter(optimizer, 0), &error),
                     &error);
}

// A step without a scaler of the run's ends the run's step too.
static void step_optimizer(lua_State *L, Optimizer *optimizer) {
    Error error = {0};
    Session *session = session_of(L);
    BIND_DONE(L, optimizer_step(optimizer, &error), &error);
    const Run *run = session->run;
    if (run->scaler || run->optimizer_count == 0)
        return;
    bool is_leader = run->optimizers[0] == optimizer;
    if (step_end_updated(&session->step_end, optimizer, is_leader))
        bind_end_step(L);
}

static bool step_again(Capture *capture, const CaptureAct *act, void *context, Error *error) {
    (void)capture;
    (void)error;
    step_optimizer(context, act->on);
    return true;
}

static int optimizer_step_method(lua_State *L) {
    Optimizer *optimizer = *optimizer_slot(L, "step");
    callback_refuse(L, "step");
    bind_check_layers(L);
    step_begin_act(L, &(CaptureAct){.does = step_again, .on = optimizer, .is_final = true});
    step_optimizer(L, optimizer);
    step_end_act(L);
    return 0;
}

// ---- clipping -----------------------------------------------------------------------------------

static double limit_at(lua_State *L, const char *function) {
    double limit = bind_number(L, function, 2, "limit");
    if (!(limit > 0))
        bind_error(L, "%s: the limit is %g: a positive number is wanted", function, limit);
    return limit;
}

typedef struct Clipping { // of a captured step
    double limit;
    int count;
    Tensor *parameters[]; // held
} Clipping;

static void clipping_free(void *on) {
    Clipping *clipping = on;
    for (int i = 0; i < clipping->count; i++)
        tensor_release(clipping->parameters[i]);
    free(clipping);
}

// The norm lies where the step that was captured had it.
static bool clip_again(Capture *capture, const CaptureAct *act, void *context, Error *error) {
    lua_State *L = context;
    const Clipping *clipping = act->on;
    Tensor *norm = NULL;
    BIND_ENTERED(L, norm = optimizer_clip_norm(capture_engine(capture), clipping->parameters,
                                               clipping->count, clipping->limit, error));
    bool done = norm && tensor_copy_into(act->tensor, norm, error);
    tensor_release(norm);
    return done;
}

static void note_clipping(lua_State *L, Tensor *const *parameters, int count, double limit,
                          Tensor *norm) {
    const size_t size = (size_t)count * sizeof *parameters;
    Clipping *clipping = malloc(sizeof *clipping + size);
    if (!clipping) {
        capture_refuse(session_of(L)->engine, "there is no memory to keep it");
        return;
    }
    *clipping = (Clipping){.limit = limit, .count = count};
    memcpy(clipping->parameters, parameters, size);
    for (int i = 0; i < count; i++)
        tensor_hold(parameters[i]);
    const uint64_t told = mix_bytes(mix_bytes(MIX_BEGIN, &limit, sizeof limit), parameters, size);
    step_begin_act(L, &(CaptureAct){.does = clip_again,
                                    .on = clipping,
                                    .release = clipping_free,
                                    .told = told,
                                    .tensor = norm,
                                    .is_final = true});
    step_end_act(L);
}

static int clip_norm(lua_State *L) {
    Error error = {0};
    int count;
    Engine *engine = session_of(L)->engine;
    double limit = limit_at(L, "clip_norm");
    Tensor **parameters = bind_push_tensor_list(L, "clip_norm", 1, &count);
    Tensor *norm = NULL;
    capture_pause(engine);
    BIND_ENTERED(L, norm = optimizer_clip_norm(engine, parameters, count, limit, &error));
    capture_end_act(engine);
    if (!norm)
        return bind_raise(L, &error);
    if (engine->capture)
        note_clipping(L, parameters, count, limit, norm);
    bind_push_tensors(L, &norm, 1);
    return 1;
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
                                                 {"lr", optimizer_lr, "[rate [, group]]"},
                                                 {"groups", optimizer_groups, ""},
                                                 {"steps", optimizer_steps, ""},
                                                 {"parameters", optimizer_parameters, ""},
                                                 {"change", optimizer_change, "state, value"},
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
