// Averages of weights as Lua objects: what mp.optim.EMA is made of.
#include "lua/bind/step.h"

static const char average_type[] = "mp.average";

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
    Tensor **parameters = bind_push_tensor_list(L, "EMA", 1, &count);
    WeightAverage **slot = lua_newuserdatauv(L, sizeof(WeightAverage *), 0);
    BIND_ENTERED(
        L, *slot = weight_average_new(session_of(L)->engine, parameters, count, decay, &error));
    if (!*slot)
        return bind_raise(L, &error);
    luaL_setmetatable(L, average_type);
    lua_vm_charge(L, BIND_OBJECT_BYTES);
    if (!inventory_add(&session_of(L)->inventory, MEMBER_AVERAGE, *slot, &error))
        return bind_raise(L, &error);
    return 1;
}

static int average_gc(lua_State *L) {
    WeightAverage **slot = lua_touserdata(L, 1);
    lua_vm_discharge(L, BIND_OBJECT_BYTES);
    step_forget(session_of(L));
    inventory_remove(&session_of(L)->inventory, MEMBER_AVERAGE, *slot);
    weight_average_free(*slot);
    *slot = NULL;
    return 0;
}

static bool update_again(Capture *capture, const CaptureAct *act, void *context, Error *error) {
    lua_State *L = context;
    const StepFlags *flags = act->with ? optimizer_flags(act->with) : NULL;
    (void)capture;
    BIND_DONE(L, weight_average_update(act->on, flags, error), error);
    return true;
}

// update([optimizer]): a step that the optimizer skipped leaves the average alone
static int average_update(lua_State *L) {
    Error error = {0};
    const CaptureAct act = {.does = update_again,
                            .on = average_at(L, "update"),
                            .with =
                                lua_isnoneornil(L, 2) ? NULL : bind_optimizer_at(L, 2, "update"),
                            .is_final = true};
    step_begin_act(L, &act);
    update_again(NULL, &act, L, &error);
    step_end_act(L);
    return 0;
}

static int average_swap(lua_State *L) {
    Error error = {0};
    WeightAverage *average = average_at(L, "swap");
    capture_refuse(session_of(L)->engine, "it moves an average of weights");
    return BIND_DONE(L, weight_average_swap(average, &error), &error);
}

static const BindFunction average_methods[] = {
    {"update", average_update, NULL}, {"swap", average_swap, NULL}, {0}};

static const BindFunction functions[] = {{"average", average_create, NULL}, {0}};

void bind_open_average(lua_State *L, Session *session) {
    const BindFunction events[] = {{"__gc", average_gc, NULL}, {0}};
    bind_metatable(L, session, average_type, "", average_methods, events);
    lua_pop(L, 1);
    bind_functions(L, session, "", functions);
}
