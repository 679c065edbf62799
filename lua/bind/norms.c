// Normalisations as Lua functions.
#include "lua/bind/ops.h"
#include "ops/functions.h"

int bind_layer_norm(lua_State *L) {
    Tensor *const inputs[] = {bind_op_input(L, 1, "input"), bind_op_optional(L, 2, "weight"),
                              bind_op_optional(L, 3, "bias")};
    OpAttr attr = {.has_out_format = false};
    attr.norm.epsilon = luaL_optnumber(L, 4, 1e-5);
    return bind_op_run(L, inputs, 3, &attr, 1);
}

// group_norm(input, groups [, weight, bias, epsilon])
int bind_group_norm(lua_State *L) {
    Tensor *const inputs[] = {bind_op_input(L, 1, "input"), bind_op_optional(L, 3, "weight"),
                              bind_op_optional(L, 4, "bias")};
    OpAttr attr = {.has_out_format = false};
    attr.norm.groups = bind_integer(L, "group_norm", 2, "groups");
    attr.norm.epsilon = luaL_optnumber(L, 5, 1e-5);
    return bind_op_run(L, inputs, 3, &attr, 1);
}

// batch_norm(input [, weight, bias, running_mean, running_variance, {training, momentum, eps}])
int bind_batch_norm(lua_State *L) {
    Error error = {0};
    Engine *engine = session_of(L)->engine;
    Tensor *inputs[5] = {bind_op_input(L, 1, "input"), bind_op_optional(L, 2, "weight"),
                         bind_op_optional(L, 3, "bias"), bind_op_optional(L, 4, "running_mean"),
                         bind_op_optional(L, 5, "running_variance")};
    OpAttr attr = {.has_out_format = false};
    attr.norm.epsilon = bind_field_number(L, "batch_norm", 6, "eps", 1e-5);
    attr.norm.momentum = bind_field_number(L, "batch_norm", 6, "momentum", 0.1);
    bool by_mode = (inputs[3] && inputs[4] && session_of(L)->evaluates);
    bool training = bind_field_boolean(L, "batch_norm", 6, "training", !by_mode);
    return BIND_TENSOR(L, op_batch_norm(engine, inputs, &attr, training, &error), &error);
}
