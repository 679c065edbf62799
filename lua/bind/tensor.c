// Tensors as Lua sees them: small handles that hold one reference each.
#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lua/bind/bind.h"
#include "ops/views.h"

typedef struct TensorHandle Handle;
struct TensorHandle {
    Tensor *tensor;          // NULL once freed
    uint64_t number;         // counted since the start of the script
    Handle *older, *younger; // of those that are not freed
};

Tensor *bind_test_tensor(lua_State *L, int index) {
    Handle *handle = lua_touserdata(L, index);
    if (!handle || !lua_getmetatable(L, index))
        return NULL;
    bool same = lua_topointer(L, -1) == session_of(L)->tensor_metatable;
    lua_pop(L, 1);
    return same ? handle->tensor : NULL;
}

Tensor *bind_tensor(lua_State *L, const char *function, int argument, const char *name) {
    Tensor *tensor = bind_test_tensor(L, argument);
    if (!tensor)
        bind_argument_error(L, function, argument, name, "a tensor");
    return tensor;
}

Tensor *bind_optional_tensor(lua_State *L, const char *function, int argument, const char *name) {
    return lua_isnoneornil(L, argument) ? NULL : bind_tensor(L, function, argument, name);
}

// A young collection costs microseconds and frees most of what a step left. What lived through two
// of them within its step, as a batch does, only a full one frees: that is due where much more is
// in use than after the last.
void bind_collect(lua_State *L) {
    const size_t least = (size_t)8 << 20;
    Session *session = session_of(L);
    const Allocator *allocator = session->engine->device->allocator;
    session->handle_bytes = 0;
    lua_gc(L, LUA_GCSTEP, 0);
    size_t spare = session->settled_bytes / 8;
    if (allocator_use(allocator).total_now <
        session->settled_bytes + (spare > least ? spare : least))
        return;
    lua_gc(L, LUA_GCCOLLECT);
    session->settled_bytes = allocator_use(allocator).total_now;
}

// The collector sees a handle as a few bytes. Once the handles made since its last round stand for
// much memory, it is made to run.
static void report_pressure(lua_State *L, Session *session, const Tensor *tensor) {
    const size_t least = (size_t)4 << 20;
    session->handle_bytes += tensor->storage->bytes;
    if (session->handle_bytes < least)
        return;
    size_t in_use = allocator_use(session->engine->device->allocator).total_now;
    if (session->handle_bytes < in_use / 8)
        return;
    bind_collect(L);
}

static void push_handle(lua_State *L, Session *session, Tensor **tensor) {
    Handle *handle = lua_newuserdatauv(L, sizeof *handle, 0);
    *handle = (Handle){*tensor, session->handle_count++, session->handles, NULL};
    if (session->handles)
        session->handles->younger = handle;
    session->handles = handle;
    *tensor = NULL;
    luaL_setmetatable(L, "mp.tensor");
    report_pressure(L, session, handle->tensor);
}

// Making a handle may raise. What waits for one meanwhile lies on a stack, since the collection
// that it may set off can come here again.
void bind_push_tensors(lua_State *L, Tensor *const *tensors, int count) {
    Session *session = session_of(L);
    int base = session->unclaimed_count, end = base + count;
    assert(count <= BIND_MOST_TENSORS && end <= 2 * BIND_MOST_TENSORS);
    memcpy(&session->unclaimed[base], tensors, (size_t)count * sizeof *tensors);
    session->unclaimed_count = end;
    luaL_checkstack(L, count, "tensors");
    for (int i = base; i < end; i++) {
        if (session->unclaimed[i])
            push_handle(L, session, &session->unclaimed[i]);
        else
            lua_pushnil(L);
    }
    if (session->unclaimed_count == end)
        session->unclaimed_count = base;
}

void bind_release_unclaimed(Session *session) {
    while (session->unclaimed_count > 0)
        tensor_release(session->unclaimed[--session->unclaimed_count]);
}

static int tensor_gc(lua_State *L) {
    Handle *handle = lua_touserdata(L, 1);
    if (!handle->tensor)
        return 0;
    if (handle->younger)
        handle->younger->older = handle->older;
    else
        session_of(L)->handles = handle->older;
    if (handle->older)
        handle->older->younger = handle->younger;
    tensor_release(handle->tensor);
    handle->tensor = NULL;
    return 0;
}

bool bind_list_live(const Session *session, LiveTensor **live, int *count, Error *error) {
    int number = 0;
    for (const Handle *handle = session->handles; handle; handle = handle->older)
        number++;
    *live = malloc(((size_t)number + 1) * sizeof **live);
    if (!*live)
        return error_fail(error, ERROR_MEMORY, "no memory to list the tensors of the script");
    *count = number;
    for (const Handle *handle = session->handles; handle; handle = handle->older)
        (*live)[--number] = (LiveTensor){handle->number, handle->tensor};
    return true;
}

// drop(tensor): lets go of it now instead of when the collector comes by. For handles that nobody
// else can have seen.
static int mp_drop(lua_State *L) {
    return bind_test_tensor(L, 1) ? tensor_gc(L) : 0;
}

// add_method(name, f): what the Lua half makes of operations is a method of tensors as they are.
static int mp_add_method(lua_State *L) {
    luaL_checktype(L, 2, LUA_TFUNCTION);
    lua_getfield(L, LUA_REGISTRYINDEX, "mp.tensor.methods");
    lua_insert(L, 1);
    lua_rawset(L, 1);
    return 0;
}

// ---- creation -----------------------------------------------------------------------------------

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
    if (count < 0 || count > INT32_MAX)
        return bind_error(L, "arange: n is %lld: from 0 to %d is possible", (long long)count,
                          INT32_MAX);
    OpAttr attr = {.out_format = FORMAT_INT32, .has_out_format = true};
    attr.create.ndim = 1;
    attr.create.shape[0] = count;
    attr.create.b = 1;
    Tensor *output;
    BIND_DONE(L, op_apply(session_of(L)->engine, OP_arange, NULL, 0, &attr, &output, &error),
              &error);
    bind_push_tensors(L, &output, 1);
    return 1;
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

static void nested_read(lua_State *L, int ndim, const int64_t *shape, float **next) {
    if (ndim == 0) {
        int is_number;
        *(*next)++ = (float)lua_tonumberx(L, -1, &is_number);
        if (!is_number)
            bind_error(L, "tensor: a number expected, got %s", luaL_typename(L, -1));
        return;
    }
    if (!lua_istable(L, -1) || (int64_t)lua_rawlen(L, -1) != shape[0])
        bind_error(L, "tensor: tables of unequal length: %lld elements expected, got %lld",
                   (long long)shape[0], lua_istable(L, -1) ? (long long)lua_rawlen(L, -1) : 1LL);
    luaL_checkstack(L, 1, "tensor: nested too deeply");
    for (int64_t i = 1; i <= shape[0]; i++) {
        lua_rawgeti(L, -1, i);
        nested_read(L, ndim - 1, shape + 1, next);
        lua_pop(L, 1);
    }
}

static Tensor *from_values(Engine *engine, Format format, int ndim, const int64_t *shape,
                           const float *values, Error *error) {
    Tensor *tensor =
        tensor_from_host(engine->device, FORMAT_FP32, ndim, shape, values, MEMORY_DATA, error);
    if (!tensor || format == FORMAT_FP32)
        return tensor;
    Tensor *cast = op_cast(engine, tensor, format, error);
    tensor_release(tensor);
    return cast;
}

static int mp_tensor(lua_State *L) {
    Error error = {0};
    Session *session = session_of(L);
    Format format = lua_isnoneornil(L, 2) ? FORMAT_FP32 : bind_format(L, "tensor", 2);
    int64_t shape[VIEW_MAX_DIMS];
    int ndim = nested_shape(L, 1, shape);
    size_t count = 1;
    for (int i = 0; i < ndim; i++)
        if (__builtin_mul_overflow(count, (size_t)shape[i], &count) || count > (size_t)1 << 32)
            return bind_error(L, "tensor: a table of this shape is too large");
    // A userdata, so that an error while the tables are read leaves nothing behind.
    float *values = lua_newuserdatauv(L, (count ? count : 1) * sizeof *values, 0);
    float *next = values;
    lua_pushvalue(L, 1);
    nested_read(L, ndim, shape, &next);
    return BIND_TENSOR(L, from_values(session->engine, format, ndim, shape, values, &error),
                       &error);
}

// ---- views --------------------------------------------------------------------------------------

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
    int64_t wanted[VIEW_MAX_DIMS];
    int order[VIEW_MAX_DIMS], count = bind_sizes(L, "permute", 2, wanted);
    if (count != tensor->view.ndim)
        return bind_error(L, "permute: %d dimensions named, the tensor has %d", count,
                          tensor->view.ndim);
    for (int i = 0; i < count; i++)
        order[i] = (int)wanted[i] - 1;
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

// t:split(dim, count): so many equal parts.
static int tensor_split(lua_State *L) {
    Error error = {0};
    Tensor *tensor = bind_tensor(L, "split", 1, "tensor"), *parts[BIND_MOST_TENSORS];
    int dim = bind_dimension(L, "split", 2, tensor->view.ndim);
    int64_t size = tensor->view.shape[dim], count = bind_integer(L, "split", 3, "count");
    if (count < 1 || count > BIND_MOST_TENSORS || size % count)
        return bind_error(L,
                          "split: %lld parts: dimension %d has %lld elements, which must fall into "
                          "equal parts, at most %d",
                          (long long)count, dim + 1, (long long)size, BIND_MOST_TENSORS);
    BIND_DONE(L, op_split(session_of(L)->engine, tensor, dim, (int)count, parts, &error), &error);
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

static Tensor *part_at(Engine *engine, Tensor *tensor, int64_t i, Error *error) {
    Tensor *part = op_slice(engine, tensor, 0, i, i + 1, error);
    if (!part)
        return NULL;
    Tensor *result = op_reshape(engine, part, tensor->view.ndim - 1, &tensor->view.shape[1], error);
    tensor_release(part);
    return result;
}

// t[i]: the i-th along the first dimension, without it; t.name: a method.
static int tensor_index(lua_State *L) {
    if (lua_type(L, 2) != LUA_TNUMBER) {
        lua_pushvalue(L, 2);
        lua_rawget(L, lua_upvalueindex(2));
        if (lua_isnil(L, -1) && lua_type(L, 2) == LUA_TSTRING)
            return bind_error(L, "a tensor has no %s", lua_tostring(L, 2));
        return 1;
    }
    Error error = {0};
    Tensor *tensor = bind_tensor(L, "index", 1, "tensor");
    int64_t i = bind_integer(L, "index", 2, "i");
    if (tensor->view.ndim == 0 || i < 1 || i > tensor->view.shape[0])
        return bind_error(L, "index %lld: the tensor has elements 1 to %lld", (long long)i,
                          tensor->view.ndim ? (long long)tensor->view.shape[0] : 0LL);
    return BIND_TENSOR(L, part_at(session_of(L)->engine, tensor, i - 1, &error), &error);
}

// ---- gradients ----------------------------------------------------------------------------------

static int tensor_requires_grad(lua_State *L) {
    Tensor *tensor = bind_tensor(L, "requires_grad", 1, "tensor");
    if (lua_isnone(L, 2)) {
        lua_pushboolean(L, tensor_wants_grad(tensor));
        return 1;
    }
    bool wanted = lua_toboolean(L, 2);
    if (tensor->origin && !wanted)
        return bind_error(L, "requires_grad: only a tensor that no operation made can be switched "
                             "off; use :detach()");
    if (wanted && !format_is_floating(tensor->view.format))
        return bind_error(L, "requires_grad: a tensor of %s has no gradient",
                          format_name(tensor->view.format));
    if (!tensor->origin)
        tensor->requires_grad = wanted;
    lua_settop(L, 1);
    return 1;
}

static int tensor_grad(lua_State *L) {
    Tensor *tensor = bind_tensor(L, "grad", 1, "tensor");
    if (!tensor->grad) {
        lua_pushnil(L);
        return 1;
    }
    Tensor *gradient = tensor_hold(tensor->grad);
    bind_push_tensors(L, &gradient, 1);
    return 1;
}

static int tensor_zero_grad(lua_State *L) {
    Tensor *tensor = bind_tensor(L, "zero_grad", 1, "tensor");
    tensor_release(tensor->grad);
    tensor->grad = NULL;
    return 0;
}

static int tensor_backward(lua_State *L) {
    Error error = {0};
    Tensor *tensor = bind_tensor(L, "backward", 1, "tensor");
    Tensor *seed = bind_optional_tensor(L, "backward", 2, "gradient");
    BackwardOptions options = {.keep_graph =
                                   bind_field_boolean(L, "backward", 3, "keep_graph", false)};
    bind_train(L);
    return BIND_DONE(L, engine_backward(session_of(L)->engine, tensor, seed, &options, &error),
                     &error);
}

static int tensor_detach(lua_State *L) {
    Error error = {0};
    Tensor *tensor = bind_tensor(L, "detach", 1, "tensor");
    return BIND_TENSOR(L, op_detach(session_of(L)->engine, tensor, &error), &error);
}

static int tensor_clone(lua_State *L) {
    Error error = {0};
    Tensor *tensor = bind_tensor(L, "clone", 1, "tensor");
    return BIND_TENSOR(L, op_cast(session_of(L)->engine, tensor, tensor->view.format, &error),
                       &error);
}

static int tensor_to(lua_State *L) {
    Error error = {0};
    Session *session = session_of(L);
    Tensor *tensor = bind_tensor(L, "to", 1, "tensor");
    const char *what = luaL_optstring(L, 2, "");
    if (strcmp(what, session->engine->device->backend->name) == 0) {
        lua_settop(L, 1); // it is there already
        return 1;
    }
    for (const Backend *const *backend = backend_list; *backend; backend++)
        if (strcmp((*backend)->name, what) == 0)
            return bind_error(L,
                              "to: a run has one device, and this one's is %s; choose another "
                              "with --device %s",
                              session->engine->device->backend->name, what);
    Format format = bind_format(L, "to", 2);
    if (format == tensor->view.format) {
        lua_settop(L, 1);
        return 1;
    }
    return BIND_TENSOR(L, op_cast(session->engine, tensor, format, &error), &error);
}

// t:copy(other): new contents for a leaf: how weights are set by hand.
static int tensor_copy(lua_State *L) {
    Error error = {0};
    Tensor *tensor = bind_tensor(L, "copy", 1, "tensor");
    Tensor *source = bind_tensor(L, "copy", 2, "source");
    BIND_DONE(L, parameter_write(tensor, source, &error), &error);
    lua_settop(L, 1);
    return 1;
}

static const luaL_Reg creation[] = {
    {"zeros", mp_zeros},   {"ones", mp_ones},     {"full", mp_full},
    {"randn", mp_randn},   {"rand", mp_rand},     {"randint", mp_randint},
    {"arange", mp_arange}, {"tensor", mp_tensor}, {NULL, NULL},
};

static const luaL_Reg methods[] = {
    {"reshape", tensor_reshape},
    {"transpose", tensor_transpose},
    {"permute", tensor_permute},
    {"slice", tensor_slice},
    {"split", tensor_split},
    {"expand", tensor_expand},
    {"requires_grad", tensor_requires_grad},
    {"grad", tensor_grad},
    {"zero_grad", tensor_zero_grad},
    {"backward", tensor_backward},
    {"detach", tensor_detach},
    {"clone", tensor_clone},
    {"copy", tensor_copy},
    {"to", tensor_to},
    {NULL, NULL},
};

static const luaL_Reg inner[] = {{"drop", mp_drop}, {"add_method", mp_add_method}, {NULL, NULL}};

static const luaL_Reg metamethods[] = {
    {"__gc", tensor_gc},
    {NULL, NULL},
};

void bind_open_tensor(lua_State *L, Session *session) {
    bind_functions(L, session, creation);
    lua_getfield(L, -1, "engine");
    bind_functions(L, session, inner);
    lua_pop(L, 1);
    luaL_newmetatable(L, "mp.tensor");
    session->tensor_metatable = lua_topointer(L, -1);
    bind_functions(L, session, metamethods);
    bind_functions(L, session, bind_reading_events);
    lua_pushliteral(L, "tensor");
    lua_setfield(L, -2, "__metatable");
    lua_pushlightuserdata(L, session);
    lua_newtable(L); // methods; bind_open_ops adds the operations
    bind_functions(L, session, methods);
    bind_functions(L, session, bind_reading_methods);
    lua_pushvalue(L, -1);
    lua_setfield(L, LUA_REGISTRYINDEX, "mp.tensor.methods");
    lua_pushcclosure(L, tensor_index, 2);
    lua_setfield(L, -2, "__index");
    lua_pop(L, 1);
}
