// Normalisations as Lua functions.
#include "lua/bind/ops.h"

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

// The running statistics move on; the step that turns out to be skipped takes them back.
static bool track(Engine *engine, Tensor *const running[2], Tensor *mean, Tensor *inverse,
                  const OpAttr *attr, Tensor *owner, Error *error) {
    Tensor *const inputs[] = {running[0], running[1], mean, inverse};
    Tensor *outputs[2];
    bool previous = tape_set_enabled(engine->tape, false);
    bool done = op_apply(engine, OP_batch_norm_track, inputs, 4, attr, outputs, error);
    tape_set_enabled(engine->tape, previous);
    if (!done)
        return false;
    for (int i = 0; i < 2; i++) {
        done = done && engine_change_buffer(engine, running[i], outputs[i], owner, error);
        tensor_release(outputs[i]);
    }
    return done;
}

// inputs: x, weight, bias and the running statistics; the latter may be NULL while training.
static Tensor *batch_norm(Engine *engine, Tensor *const inputs[5], OpAttr *attr, bool training,
                          Error *error) {
    Tensor *outputs[OP_MAX_OUTPUTS];
    if (!training)
        return op_apply(engine, OP_batch_norm_infer, inputs, 5, attr, outputs, error) ? outputs[0]
                                                                                      : NULL;
    if (!op_apply(engine, OP_batch_norm, inputs, 3, attr, outputs, error))
        return NULL;
    const View *x = &inputs[0]->view;
    attr->norm.count = view_count(x) / (x->shape[x->ndim - 1] ? x->shape[x->ndim - 1] : 1);
    bool done = !inputs[3] || !inputs[4] ||
                track(engine, &inputs[3], outputs[1], outputs[2], attr, inputs[1], error);
    tensor_release(outputs[1]);
    tensor_release(outputs[2]);
    if (done)
        return outputs[0];
    tensor_release(outputs[0]);
    return NULL;
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
    if (!training && (!inputs[3] || !inputs[4]))
        return bind_error(L, "batch_norm: evaluation needs running statistics");
    return BIND_TENSOR(L, batch_norm(engine, inputs, &attr, training, &error), &error);
}
