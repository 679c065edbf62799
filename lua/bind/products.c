// Products as Lua functions: matrices, convolutions, attention.
#include <math.h>
#include <string.h>

#include "lua/bind/ops.h"

static Activation activation_named(lua_State *L, const char *name) {
    static const char *const names[ACTIVATION_COUNT] = {"none", "relu", "tanh", "sigmoid"};
    for (int i = 0; name && i < ACTIVATION_COUNT; i++)
        if (strcmp(name, names[i]) == 0)
            return (Activation)i;
    if (name)
        bind_error(L,
                   "%s: activation %s: none, relu, tanh or sigmoid can be fused; call others "
                   "behind it",
                   bind_op_name(L), name);
    return ACTIVATION_NONE;
}

int bind_matmul(lua_State *L) {
    Tensor *const inputs[] = {bind_op_input(L, 1, "x"), bind_op_input(L, 2, "y")};
    return bind_op_run(L, inputs, 2, NULL, 1);
}

int bind_linear(lua_State *L) {
    Tensor *const inputs[] = {bind_op_input(L, 1, "input"), bind_op_input(L, 2, "weight"),
                              bind_op_optional(L, 3, "bias")};
    OpAttr attr = {.has_out_format = false};
    attr.linear.activation = activation_named(L, luaL_optstring(L, 4, NULL));
    return bind_op_run(L, inputs, 3, &attr, 1);
}

// A field that is one number for both directions, or a table of height and width.
static void field_pair(lua_State *L, int index, const char *field, int64_t missing,
                       int64_t pair[2]) {
    pair[0] = pair[1] = missing;
    if (!lua_istable(L, index))
        return;
    if (bind_push_field(L, index, field) == LUA_TTABLE) {
        if (bind_list(L, bind_op_name(L), -1) != 2)
            bind_error(L, "%s: %s: two whole numbers expected", bind_op_name(L), field);
        for (int i = 0; i < 2; i++) {
            int is_integer;
            lua_rawgeti(L, -1, i + 1);
            pair[i] = lua_tointegerx(L, -1, &is_integer);
            if (!is_integer)
                bind_error(L, "%s: %s: two whole numbers expected", bind_op_name(L), field);
            lua_pop(L, 1);
        }
        lua_pop(L, 1);
        return;
    }
    lua_pop(L, 1);
    pair[0] = pair[1] = bind_field_integer(L, bind_op_name(L), index, field, missing);
}

int bind_conv2d(lua_State *L) {
    Tensor *const inputs[] = {bind_op_input(L, 1, "input"), bind_op_input(L, 2, "weight"),
                              bind_op_optional(L, 3, "bias")};
    OpAttr attr = {.has_out_format = false};
    field_pair(L, 4, "stride", 1, attr.conv.stride);
    field_pair(L, 4, "padding", 0, attr.conv.padding);
    field_pair(L, 4, "dilation", 1, attr.conv.dilation);
    attr.conv.groups = bind_field_integer(L, "conv2d", 4, "groups", 1);
    attr.conv.activation = activation_named(L, bind_field_text(L, "conv2d", 4, "activation"));
    return bind_op_run(L, inputs, 3, &attr, 1);
}

// The size along one side whose windows the input's are.
static int64_t size_before_windows(const ConvAttr *attr, int side, int64_t windows, int64_t kernel,
                                   int64_t extra) {
    int64_t stride = attr->stride[side], dilation = attr->dilation[side];
    const int64_t sizes[] = {stride, dilation, attr->padding[side], kernel, windows};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        if (sizes[i] < 0 || sizes[i] > INT32_MAX) // which the operation refuses
            return 0;
    return (windows - 1) * stride - 2 * attr->padding[side] + dilation * (kernel - 1) + 1 + extra;
}

int bind_conv_transpose2d(lua_State *L) {
    static const char *const sides[] = {"height", "width"};
    Tensor *const inputs[] = {bind_op_input(L, 1, "input"), bind_op_input(L, 2, "weight"),
                              bind_op_optional(L, 3, "bias")};
    const View *x = &inputs[0]->view, *weight = &inputs[1]->view;
    OpAttr attr = {.has_out_format = false};
    int64_t extra[2];
    field_pair(L, 4, "stride", 1, attr.conv.stride);
    field_pair(L, 4, "padding", 0, attr.conv.padding);
    field_pair(L, 4, "dilation", 1, attr.conv.dilation);
    field_pair(L, 4, "output_padding", 0, extra);
    attr.conv.groups = bind_field_integer(L, bind_op_name(L), 4, "groups", 1);
    for (int i = 0; i < 2 && x->ndim == 4 && weight->ndim == 4; i++) {
        if (extra[i] < 0 || (extra[i] > 0 && extra[i] >= attr.conv.stride[i]))
            return bind_error(L,
                              "%s: output_padding %s is %lld: from 0 to below the stride is "
                              "possible",
                              bind_op_name(L), sides[i], (long long)extra[i]);
        attr.conv.input[i] =
            size_before_windows(&attr.conv, i, x->shape[1 + i], weight->shape[1 + i], extra[i]);
    }
    return bind_op_run(L, inputs, 3, &attr, 1);
}

int bind_attention(lua_State *L) {
    Tensor *const inputs[] = {bind_op_input(L, 1, "q"), bind_op_input(L, 2, "k"),
                              bind_op_input(L, 3, "v")};
    const View *q = &inputs[0]->view;
    OpAttr attr = {.has_out_format = false};
    double depth = q->ndim == 4 ? (double)q->shape[3] : 1;
    attr.attention.causal = bind_field_boolean(L, "attention", 4, "causal", false);
    attr.attention.scale = bind_field_number(L, "attention", 4, "scale", 1 / sqrt(depth));
    return bind_op_run(L, inputs, 3, &attr, 1);
}
