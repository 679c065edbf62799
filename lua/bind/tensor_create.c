// Tensors out of nothing, or out of the tables of a script.
#include <math.h>

#include "lua/bind/bind.h"
#include "ops/functions.h"

// The tensor; where there is none, the error says who wanted it.
static Tensor *named(Tensor *tensor, const char *name, Error *error) {
    if (!tensor)
        error_prefix(error, "%s", name);
    return tensor;
}

static int create_filled(lua_State *L, const char *name, double value, int first) {
    Error error = {0};
    int64_t shape[VIEW_MAX_DIMS];
    int ndim = bind_sizes(L, name, first, shape);
    Engine *engine = session_of(L)->engine;
    return BIND_TENSOR(
        L, named(op_fill(engine, FORMAT_FP32, ndim, shape, value, &error), name, &error), &error);
}

static int mp_zeros(lua_State *L) {
    return create_filled(L, "zeros", 0, 1);
}
static int mp_ones(lua_State *L) {
    return create_filled(L, "ones", 1, 1);
}
static int mp_full(lua_State *L) {
    return create_filled(L, "full", bind_number(L, "full", 1, "value"), 2);
}

static int create_random(lua_State *L, OpId op, const char *name, double a, double b, int first) {
    Error error = {0};
    int64_t shape[VIEW_MAX_DIMS];
    int ndim = bind_sizes(L, name, first, shape);
    Engine *engine = session_of(L)->engine;
    return BIND_TENSOR(L, named(op_random(engine, op, ndim, shape, a, b, &error), name, &error),
                       &error);
}

static int mp_randn(lua_State *L) {
    return create_random(L, OP_normal, "randn", 0, 1, 1);
}
static int mp_rand(lua_State *L) {
    return create_random(L, OP_uniform, "rand", 0, 1, 1);
}
static int mp_randint(lua_State *L) {
    int64_t high = bind_integer(L, "randint", 1, "high");
    if (high < 1 || high > INT32_MAX)
        return bind_error(L, "randint: high is %lld: from 1 to %d is possible", (long long)high,
                          INT32_MAX);
    return create_random(L, OP_randint, "randint", 0, (double)high, 2);
}

static int mp_arange(lua_State *L) {
    Error error = {0};
    int64_t count = bind_integer(L, "arange", 1, "n");
    return BIND_TENSOR(L, op_arange(session_of(L)->engine, count, &error), &error);
}

// The shape of nested tables, from the first element of each level down.
static int nested_shape(lua_State *L, int index, int64_t *shape) {
    int ndim = 0;
    lua_pushvalue(L, index);
    while (lua_istable(L, -1)) {
        if (ndim == VIEW_MAX_DIMS)
            return bind_error(L, "tensor: more than %d levels of tables", VIEW_MAX_DIMS);
        shape[ndim++] = (int64_t)lua_rawlen(L, -1);
        lua_rawgeti(L, -1, 1);
        lua_remove(L, -2);
    }
    lua_pop(L, 1);
    return ndim;
}

// Where the numbers of nested tables go, one after the other.
typedef struct Filling {
    Format format;
    char *next;
} Filling;

static void take_number(lua_State *L, Filling *filling) {
    int is_number;
    double value = lua_tonumberx(L, -1, &is_number);
    if (!is_number)
        bind_error(L, "tensor: a number expected, got %s", luaL_typename(L, -1));
    const FormatInfo *info = &format_table[filling->format];
    if (!format_is_floating(filling->format) &&
        !(value >= info->lowest && value <= info->largest && floor(value) == value))
        bind_error(L, "tensor: %.14g is no whole number from %.0f to %.0f, which %s holds", value,
                   info->lowest, info->largest, info->name);
    format_store(filling->format, filling->next, value, OVERFLOW_TO_SPECIAL);
    filling->next += info->bytes;
}

static void nested_read(lua_State *L, int ndim, const int64_t *shape, Filling *filling) {
    if (ndim == 0) {
        take_number(L, filling);
        return;
    }
    if (!lua_istable(L, -1) || bind_list(L, "tensor", -1) != shape[0])
        bind_error(L, "tensor: tables of unequal length: %lld elements expected, got %lld",
                   (long long)shape[0], lua_istable(L, -1) ? (long long)lua_rawlen(L, -1) : 1LL);
    luaL_checkstack(L, 1, "tensor: nested too deeply");
    for (int64_t i = 1; i <= shape[0]; i++) {
        lua_rawgeti(L, -1, i);
        nested_read(L, ndim - 1, shape + 1, filling);
        lua_pop(L, 1);
    }
}

static int mp_tensor(lua_State *L) {
    Error error = {0};
    Device *device = session_of(L)->engine->device;
    Format format = lua_isnoneornil(L, 2) ? FORMAT_FP32 : bind_format(L, "tensor", 2);
    int64_t shape[VIEW_MAX_DIMS];
    int ndim = nested_shape(L, 1, shape);
    size_t count = 1;
    for (int i = 0; i < ndim; i++)
        if (__builtin_mul_overflow(count, (size_t)shape[i], &count) || count > (size_t)1 << 32)
            return bind_error(L, "tensor: a table of this shape is too large");
    // A userdata, so that an error while the tables are read leaves nothing behind.
    char *values = lua_newuserdatauv(L, (count ? count : 1) * format_table[format].bytes, 0);
    lua_pushvalue(L, 1);
    nested_read(L, ndim, shape, &(Filling){format, values});
    return BIND_TENSOR(
        L, tensor_from_host(device, format, ndim, shape, values, MEMORY_DATA, &error), &error);
}

const BindFunction bind_creations[] = {
    {"zeros", mp_zeros, ".."},
    {"ones", mp_ones, ".."},
    {"full", mp_full, "value, .."},
    {"randn", mp_randn, ".."},
    {"rand", mp_rand, ".."},
    {"randint", mp_randint, "high, .."},
    {"arange", mp_arange, "n"},
    {"tensor", mp_tensor, "nested [, format]"},
    {0},
};
