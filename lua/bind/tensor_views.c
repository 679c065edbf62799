// Other views of a tensor: shaped, turned, cut and repeated without a copy.
#include "base/nearest.h"
#include "lua/bind/bind.h"
#include "ops/views.h"

static int tensor_reshape(lua_State *L) {
    Error error = {0};
    Tensor *tensor = bind_tensor(L, "reshape", 1, "tensor");
    int64_t shape[VIEW_MAX_DIMS];
    int ndim = bind_sizes(L, "reshape", 2, shape);
    return BIND_TENSOR(L, op_reshape(session_of(L)->engine, tensor, ndim, shape, &error), &error);
}

static int tensor_transpose(lua_State *L) {
    Error error = {0};
    Tensor *tensor = bind_tensor(L, "transpose", 1, "tensor");
    int ndim = tensor->view.ndim, first = ndim - 2, second = ndim - 1;
    if (!lua_isnoneornil(L, 2)) {
        first = bind_dimension(L, "transpose", 2, ndim);
        second = bind_dimension(L, "transpose", 3, ndim);
    }
    return BIND_TENSOR(L, op_transpose(session_of(L)->engine, tensor, first, second, &error),
                       &error);
}

static int tensor_permute(lua_State *L) {
    Error error = {0};
    Tensor *tensor = bind_tensor(L, "permute", 1, "tensor");
    int order[VIEW_MAX_DIMS];
    int count = bind_dimensions(L, "permute", 2, tensor->view.ndim, order);
    if (count != tensor->view.ndim)
        return bind_error(L, "permute: %d dimensions named, the tensor has %d", count,
                          tensor->view.ndim);
    return BIND_TENSOR(L, op_permute(session_of(L)->engine, tensor, order, &error), &error);
}

// t:slice(dim, first, last): elements first to last, counted from 1, both included.
static int tensor_slice(lua_State *L) {
    Error error = {0};
    Tensor *tensor = bind_tensor(L, "slice", 1, "tensor");
    int dim = bind_dimension(L, "slice", 2, tensor->view.ndim);
    int64_t size = tensor->view.shape[dim];
    int64_t first = bind_integer(L, "slice", 3, "first");
    int64_t last = lua_isnoneornil(L, 4) ? size : bind_integer(L, "slice", 4, "last");
    if (first < 1 || last > size || last < first - 1)
        return bind_error(L, "slice: %lld to %lld: dimension %d has elements 1 to %lld",
                          (long long)first, (long long)last, dim + 1, (long long)size);
    return BIND_TENSOR(L, op_slice(session_of(L)->engine, tensor, dim, first - 1, last, &error),
                       &error);
}

// t:chunk(count [, dim]): so many equal parts.
static int tensor_chunk(lua_State *L) {
    Error error = {0};
    Tensor *tensor = bind_tensor(L, "chunk", 1, "tensor"), *parts[BIND_MOST_TENSORS];
    int64_t count = bind_integer(L, "chunk", 2, "count");
    int dim = lua_isnoneornil(L, 3) ? 0 : bind_dimension(L, "chunk", 3, tensor->view.ndim);
    if (tensor->view.ndim == 0)
        return bind_error(L, "chunk: the tensor has no dimensions");
    int64_t size = tensor->view.shape[dim];
    if (count < 1 || count > BIND_MOST_TENSORS || size % count)
        return bind_error(L,
                          "chunk: %lld parts: dimension %d has %lld elements, which must fall into "
                          "equal parts, at most %d",
                          (long long)count, dim + 1, (long long)size, BIND_MOST_TENSORS);
    BIND_DONE(L, op_chunk(session_of(L)->engine, tensor, dim, (int)count, parts, &error), &error);
    bind_push_tensors(L, parts, (int)count);
    return (int)count;
}

static int tensor_expand(lua_State *L) {
    Error error = {0};
    Tensor *tensor = bind_tensor(L, "expand", 1, "tensor");
    int64_t shape[VIEW_MAX_DIMS];
    int ndim = bind_sizes(L, "expand", 2, shape);
    return BIND_TENSOR(L, op_expand(session_of(L)->engine, tensor, ndim, shape, &error), &error);
}

// What scripts written for PyTorch ask for, and what has its place.
static const struct {
    const char *name, *ours;
} elsewhere[] = {
    {"view", "t:reshape(..)"},
    {"view_as", "t:reshape(other:shape())"},
    {"flatten", "t:reshape(#t, -1), or nn.Flatten"},
    {"unsqueeze", "t:reshape(..) with a size of 1"},
    {"squeeze", "t:reshape(..) without the size of 1"},
    {"size", "t:shape()"},
    {"dim", "#t:shape()"},
    {"ndim", "#t:shape()"},
    {"T", "t:transpose()"},
    {"type", "t:dtype()"},
    {"float", "t:to \"fp32\""},
    {"double", "t:to \"fp64\""},
    {"half", "t:to \"fp16\""},
    {"bfloat16", "t:to \"bf16\""},
    {"int", "t:to \"int32\""},
    {"long", "t:to \"int32\""},
    {"cuda", "-d: all tensors of a run are on its device"},
    {"cpu", "t:table() or t:item(), which wait for the device"},
    {"numpy", "t:table()"},
    {"tolist", "t:table()"},
    {"requires_grad_", "t:requires_grad(true)"},
    {"copy_", "t:copy(other)"},
    {"narrow", "t:slice(dim, first, last)"},
    {"split", "t:chunk(count, dim)"},
    {"contiguous", "t:clone()"},
};

// A name that tensors do not have, and the nearest of those in the table on top of the stack, or
// what is called otherwise elsewhere.
static int refuse_name(lua_State *L, const char *name) {
    if (name[0] == '_') // what modules keep for themselves
        return bind_error(L,
                          "a tensor has no %s: a method of a module was called with a dot; write "
                          "m(x) or m:forward(x)",
                          name);
    Nearest nearest;
    nearest_begin(&nearest, name);
    for (lua_pushnil(L); lua_next(L, -2); lua_pop(L, 1))
        if (lua_type(L, -2) == LUA_TSTRING)
            nearest_offer(&nearest, lua_tostring(L, -2)); // the table keeps it
    const unsigned cost = nearest.cost;
    const char *own = nearest.best;
    for (size_t i = 0; i < sizeof elsewhere / sizeof *elsewhere; i++)
        nearest_offer(&nearest, elsewhere[i].name);
    for (size_t i = 0; i < sizeof elsewhere / sizeof *elsewhere; i++)
        if (nearest.best == elsewhere[i].name && (!own || nearest.cost < cost))
            return bind_error(L, "a tensor has no %s; PyTorch's %s is here %s", name, nearest.best,
                              elsewhere[i].ours);
    return bind_error(L, "a tensor has no %s%s%s%s", name, own ? "; did you mean " : "",
                      own ? own : "", own ? "?" : "");
}

// t[i]: the i-th along the first dimension, without it; t.name: a method.
int bind_tensor_index(lua_State *L) {
    if (lua_type(L, 2) != LUA_TNUMBER) {
        lua_pushvalue(L, 2);
        lua_rawget(L, lua_upvalueindex(2));
        if (lua_isnil(L, -1) && lua_type(L, 2) == LUA_TSTRING) {
            lua_pushvalue(L, lua_upvalueindex(2));
            return refuse_name(L, lua_tostring(L, 2));
        }
        return 1;
    }
    Error error = {0};
    Tensor *tensor = bind_tensor(L, "index", 1, "tensor");
    int64_t i = bind_integer(L, "index", 2, "i");
    if (tensor->view.ndim == 0 || i < 1 || i > tensor->view.shape[0])
        return bind_error(L, "index %lld: the tensor has elements 1 to %lld", (long long)i,
                          tensor->view.ndim ? (long long)tensor->view.shape[0] : 0LL);
    return BIND_TENSOR(L, op_part(session_of(L)->engine, tensor, i - 1, &error), &error);
}

const BindFunction bind_view_methods[] = {
    {"reshape", tensor_reshape, ".."},
    {"transpose", tensor_transpose, "[a, b]"},
    {"permute", tensor_permute, ".."},
    {"slice", tensor_slice, "dim, first [, last]"},
    {"chunk", tensor_chunk, "count [, dim]"},
    {"expand", tensor_expand, ".."},
    {0},
};
