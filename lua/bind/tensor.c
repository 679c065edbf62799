// Tensors as Lua sees them: small handles that hold one reference each.
#include <assert.h>
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

static bool is_more(size_t bytes, size_t settled, size_t least, size_t part) {
    const size_t spare = settled / part;
    return bytes >= settled + (spare > least ? spare : least);
}

static bool is_much_more(size_t bytes, size_t settled) {
    return is_more(bytes, settled, (size_t)8 << 20, 8);
}

static size_t bytes_of_lua(lua_State *L) {
    return (size_t)lua_gc(L, LUA_GCCOUNT) << 10;
}

static size_t bytes_of_device(const Session *session) {
    return allocator_use(session->engine->device->allocator).total_now;
}

size_t bind_collect_all(lua_State *L, Session *session) {
    lua_gc(L, LUA_GCCOLLECT);
    session->settled_bytes = bytes_of_device(session);
    session->settled_data_bytes = session->data_bytes;
    session->settled_lua_bytes = bytes_of_lua(L);
    session->made_bytes = session->handle_bytes = 0;
    return session->settled_bytes;
}

// A full collection looks at all that Lua has. Where tensors of far more bytes were made, computing
// them took far longer. A card computes as much in no time.
static bool is_cheap_beside(lua_State *L, const Session *session, size_t made) {
    const size_t far_more = 16;
    return session->engine->device->memory == 0 && made / far_more >= bytes_of_lua(L);
}

// A young collection costs microseconds and frees most of what a step left. What lived through two
// of them, as a batch does within its step and a data set before the next, only a full one frees.
// Within a step that does harm as well, since what the step still needs is old from then on: it is
// due where much more is in use than after the last, or where it is cheap and more is in use than
// the step before had. Lua would see to what is its own, but asked as often as this it is never in
// debt. There it goes by its own rule, twice as much. Gives what is in use then.
static size_t collect(lua_State *L, Session *session) {
    const size_t some = (size_t)1 << 20;
    session->handle_bytes = 0;
    lua_gc(L, LUA_GCSTEP, 0);
    size_t of_lua = bytes_of_lua(L), in_use = bytes_of_device(session);
    bool is_due = is_much_more(in_use, session->settled_bytes) ||
                  (session->kept_bytes > 0 && is_more(in_use, session->settled_bytes, some, 32) &&
                   is_cheap_beside(L, session, session->made_bytes)) ||
                  is_much_more(session->data_bytes, session->settled_data_bytes) ||
                  (of_lua > 2 * session->settled_lua_bytes &&
                   is_much_more(of_lua, session->settled_lua_bytes));
    if (is_due)
        in_use = bind_collect_all(L, session);
    if (session->most_bytes < in_use)
        session->most_bytes = in_use;
    return in_use;
}

void bind_collect(lua_State *L, Session *session) {
    collect(L, session);
}

// What a step left beyond what those before it did would lie beside all that the next one makes,
// and weighs twice as much there where that is of 16 bits. What a clean one had in use, the next
// one needs as well.
void bind_collect_step(lua_State *L, Session *session) {
    const size_t some = (size_t)512 << 10;
    size_t in_use = collect(L, session);
    bool is_clean = in_use < session->kept_bytes + some;
    if (!is_clean && is_cheap_beside(L, session, session->step_bytes)) {
        session->kept_bytes = in_use = bind_collect_all(L, session);
        is_clean = true;
    }
    if (session->kept_bytes > in_use)
        session->kept_bytes = in_use;
    if (is_clean) // else the most grows by what is not freed
        session->settled_bytes = session->most_bytes;
    session->most_bytes = session->step_bytes = 0;
}

// The collector sees a handle as a few bytes. Once the handles made since its last round stand for
// much memory, it is made to run.
void bind_report_pressure(lua_State *L, Session *session, size_t bytes) {
    const size_t least = (size_t)4 << 20;
    session->handle_bytes += bytes;
    session->made_bytes += bytes;
    session->step_bytes += bytes;
    if (session->handle_bytes < least)
        return;
    const Device *device = session->engine->device;
    const size_t part = device->memory ? 8 : 32;
    if (session->handle_bytes < allocator_use(device->allocator).total_now / part)
        return;
    bind_collect(L, session);
}

static void push_handle(lua_State *L, Session *session, Tensor **tensor) {
    Handle *handle = lua_newuserdatauv(L, sizeof *handle, 0);
    *handle = (Handle){*tensor, session->handle_count++, session->handles, NULL};
    if (session->handles)
        session->handles->younger = handle;
    session->handles = handle;
    *tensor = NULL;
    luaL_setmetatable(L, "mp.tensor");
    lua_vm_charge(L, TENSOR_HOST_BYTES);
    const Storage *storage = handle->tensor->storage;
    if (storage->references == 1) // a view is of no more memory
        bind_report_pressure(L, session, storage->bytes);
}

typedef struct Waiting { // for handles
    Session *session;
    int count;
    Tensor *tensors[BIND_MOST_TENSORS]; // NULL: none, or it has its handle
} Waiting;

static int make_handles(lua_State *L) {
    Waiting *waiting = lua_touserdata(L, 1);
    luaL_checkstack(L, waiting->count + 4, "tensors");
    for (int i = 0; i < waiting->count; i++) {
        if (waiting->tensors[i])
            push_handle(L, waiting->session, &waiting->tensors[i]);
        else
            lua_pushnil(L);
    }
    return waiting->count;
}

// Making a handle may raise, and a script may go on after that: what has no handle yet is let go of
// first. Nothing before the protected call allocates.
void bind_push_tensors(lua_State *L, Tensor *const *tensors, int count) {
    Waiting waiting = {.session = session_of(L), .count = count};
    assert(count <= BIND_MOST_TENSORS);
    memcpy(waiting.tensors, tensors, (size_t)count * sizeof *tensors);
    bool fits = lua_checkstack(L, count + 4);
    int status = LUA_ERRMEM;
    if (fits) {
        lua_pushcfunction(L, make_handles);
        lua_pushlightuserdata(L, &waiting);
        status = lua_pcall(L, 1, count, 0);
    }
    if (status == LUA_OK)
        return;
    for (int i = 0; i < count; i++)
        tensor_release(waiting.tensors[i]);
    if (!fits)
        luaL_error(L, "stack overflow: no room for %d tensors", count);
    lua_error(L);
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
    lua_vm_discharge(L, TENSOR_HOST_BYTES);
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

uint64_t bind_handle_number(lua_State *L, int index) {
    const Handle *handle = lua_touserdata(L, index);
    return handle->number;
}

int bind_count_handles(const Session *session, uint64_t first) {
    int count = 0;
    for (const Handle *handle = session->handles; handle; handle = handle->older)
        count += handle->number >= first;
    return count;
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

// ---- copies -------------------------------------------------------------------------------------

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

// ---- what tensors do not do ---------------------------------------------------------------------

static int tensor_assign(lua_State *L) {
    if (lua_type(L, 2) != LUA_TNUMBER)
        return bind_error(L, "a tensor takes no fields: keep %s beside it, in a table",
                          lua_type(L, 2) == LUA_TSTRING ? lua_tostring(L, 2) : "it");
    return bind_error(L, "the parts of a tensor cannot be assigned: t[i]:copy(other) gives one its "
                         "contents, F.where(condition, x, t) makes another tensor");
}

static int tensor_order(lua_State *L) {
    return bind_error(L, "a tensor has no place before or after others: t:item() is the number of "
                         "one element, F.greater and F.less compare each element");
}

static const BindFunction methods[] = {
    {"detach", tensor_detach, ""},
    {"clone", tensor_clone, ""},
    {"copy", tensor_copy, "other"},
    {"to", tensor_to, "format"},
    {0},
};

static const BindFunction inner[] = {
    {"drop", mp_drop, NULL}, {"add_method", mp_add_method, NULL}, {0}};

static const BindFunction metamethods[] = {
    {"__gc", tensor_gc, NULL},
    {"__newindex", tensor_assign, NULL},
    {"__lt", tensor_order, NULL},
    {"__le", tensor_order, NULL},
    {0},
};

void bind_open_tensor(lua_State *L, Session *session) {
    bind_functions(L, session, "mp.", bind_creations);
    lua_getfield(L, -1, "engine");
    bind_functions(L, session, "", inner);
    lua_pop(L, 1);
    luaL_newmetatable(L, "mp.tensor");
    session->tensor_metatable = lua_topointer(L, -1);
    bind_functions(L, session, "", metamethods);
    bind_functions(L, session, "", bind_reading_events);
    lua_pushliteral(L, "tensor");
    lua_setfield(L, -2, "__metatable");
    lua_pushlightuserdata(L, session);
    lua_newtable(L); // methods; bind_open_ops adds the operations
    bind_functions(L, session, "t:", bind_view_methods);
    bind_functions(L, session, "t:", methods);
    bind_functions(L, session, "t:", bind_gradient_methods);
    bind_functions(L, session, "t:", bind_reading_methods);
    lua_pushvalue(L, -1);
    lua_setfield(L, LUA_REGISTRYINDEX, "mp.tensor.methods");
    lua_pushcclosure(L, bind_tensor_index, 2);
    lua_setfield(L, -2, "__index");
    lua_pop(L, 1);
}
