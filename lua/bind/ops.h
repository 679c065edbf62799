// lua/bind/ops.h: what the files of operations as Lua functions share. Nobody else includes it.
//
// A function serves all operations of a family of ops.def; which one it runs is its second upvalue.
#pragma once

#include "lua/bind/bind.h"

static inline OpId bind_op(lua_State *L) {
    return (OpId)lua_tointeger(L, lua_upvalueindex(2));
}

static inline const char *bind_op_name(lua_State *L) {
    return op_table[bind_op(L)].name;
}

// Runs the operation and pushes its first `results` outputs.
int bind_op_run(lua_State *L, Tensor *const *inputs, int count, const OpAttr *attr, int results);
// An argument that must be a tensor, or may be left out.
Tensor *bind_op_input(lua_State *L, int argument, const char *name);
Tensor *bind_op_optional(lua_State *L, int argument, const char *name);

// ---- products.c ---------------------------------------------------------------------------------

int bind_matmul(lua_State *L);
int bind_linear(lua_State *L);
int bind_conv2d(lua_State *L);
int bind_conv_transpose2d(lua_State *L);
int bind_attention(lua_State *L);

// ---- line.c -------------------------------------------------------------------------------------

int bind_cumsum(lua_State *L);
int bind_prod(lua_State *L);
int bind_pad_by_itself(lua_State *L, const OpAttr *pairs); // F.pad with a mode

// ---- norms.c ------------------------------------------------------------------------------------

int bind_layer_norm(lua_State *L);
int bind_group_norm(lua_State *L);
int bind_batch_norm(lua_State *L);
