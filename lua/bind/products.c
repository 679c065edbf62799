// Products as Lua functions: matrices, convolutions, attention.
#include <string.h>

#include "lua/bind/ops.h"
#include "ops/functions.h"

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

int bind_conv_transpose2d(lua_State *L) {
    Error error = {0};
    Tensor *const inputs[] = {bind_op_input(L, 1, "input"), bind_op_input(L, 2, "weight"),
                              bind_op_optional(L, 3, "bias")};
    OpAttr attr = {.has_out_format = false};
    int64_t extra[2];
    field_pair(L, 4, "stride", 1, attr.conv.stride);
    field_pair(L, 4, "padding", 0, attr.conv.padding);
    field_pair(L, 4, "dilation", 1, attr.conv.dilation);
    field_pair(L, 4, "output_padding", 0, extra);
    attr.conv.groups = bind_field_integer(L, bind_op_name(L), 4, "groups", 1);
    Engine *engine = session_of(L)->engine;
    return BIND_TENSOR(L, op_conv_transpose2d(engine, inputs, &attr, extra, &error), &error);
}

int bind_attention(lua_State *L) {
    Tensor *const inputs[] = {bind_op_input(L, 1, "q"), bind_op_input(L, 2, "k"),
                              bind_op_input(L, 3, "v")};
    OpAttr attr = {.has_out_format = false};
    attr.attention.causal = bind_field_boolean(L, "attention", 4, "causal", false);
    attr.attention.scale =
        bind_field_number(L, "attention", 4, "scale", op_attention_scale(inputs[0]));
    return bind_op_run(L, inputs, 3, &attr, 1);
}
