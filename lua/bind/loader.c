// Loaders as Lua objects, which are iterated: `for b in loader do b.x, b.y end`.
#include "lua/bind/loader.h"

#include <string.h>

#include "base/nearest.h"
#include "data/text.h"
#include "lua/bind/transform.h"

const char bind_loader_type[] = "mp.loader";

static LoaderHandle *loader_at(lua_State *L, const char *function) {
    LoaderHandle *handle = luaL_testudata(L, 1, bind_loader_type);
    if (!handle)
        bind_argument_error(L, function, 1, "self", "a loader (called with a colon)");
    if (!handle->loader)
        bind_error(L, "%s: this loader is closed", function);
    return handle;
}

static Tensor *batch_tensor(Session *session, const LoaderArray *array, Error *error) {
    ProfileStart began = profile_begin_work(session->engine);
    Tensor *tensor = tensor_from_host(session->engine->device, array->format, array->ndim,
                                      array->shape, array->data, MEMORY_DATA, error);
    profile_end_work(session->engine, WORK_BATCH, began);
    return tensor;
}

// While the script is replayed nothing is prepared: the device would not take it.
static bool next_batch(const Session *session, Loader *loader, LoaderBatch *batch, bool *end,
                       Error *error) {
    if (device_is_idle(session->engine->device)) {
        loader_skip(loader, batch, end);
        return true;
    }
    ProfileStart began = profile_begin_work(session->engine);
    bool done = loader_next(loader, batch, end, error);
    profile_end_work(session->engine, WORK_BATCH, began);
    return done;
}

// A field that a batch does not have.
static int refuse_field(lua_State *L) {
    static const char *const names[] = {"x", "y", "count"};
    const char *name = luaL_tolstring(L, 2, NULL);
    lua_pushliteral(L, "y");
    const bool has_y = lua_rawget(L, 1) != LUA_TNIL;
    const char *near = nearest_name(name, names, sizeof names / sizeof *names);
    if (near && (has_y || strcmp(near, "y") != 0))
        return bind_error(L, "batch.%.60s: no such name; did you mean %s?", name, near);
    return bind_error(L, "batch.%.60s: no such name; a batch has x%s and count", name,
                      has_y ? ", y" : "");
}

static void seal_batch(lua_State *L) {
    if (luaL_newmetatable(L, "batch")) {
        lua_pushcfunction(L, refuse_field);
        lua_setfield(L, -2, "__index");
        lua_pushliteral(L, "batch");
        lua_setfield(L, -2, "__metatable");
    }
    lua_setmetatable(L, -2);
}

// What the batch before was for shows when the next is asked for: one that was looked at, and from
// which nothing was learnt, was no training, nor was the time that it took. Batches that were only
// gathered, to be trained on together, are.
static void judge_last_batch(Session *session, LoaderHandle *handle) {
    bind_leave_evaluation_out(session); // of any loader, or none
    if (handle->given > 0 && handle->judged == session->judged &&
        handle->learnt == session->learnt && handle->looked != session->looked) {
        session->fresh_samples -= (uint64_t)handle->given;
        run_leave_out(session->run, handle->given_at);
    }
    handle->given = 0;
}

static void note_batch(Session *session, LoaderHandle *handle, int64_t count) {
    if (!tape_is_enabled(session->engine->tape)) // what is only looked at is not trained on
        return;
    session->fresh_samples += (uint64_t)count;
    handle->given = count;
    handle->given_at = run_clock(session->run);
    handle->learnt = session->learnt;
    handle->looked = session->looked;
    handle->judged = session->judged;
}

// The iterator: (loader) -> {x =, y =}, or nil at the end of the epoch.
static int loader_step(lua_State *L) {
    Error error = {0};
    Session *session = session_of(L);
    LoaderHandle *handle = loader_at(L, "loader");
    LoaderBatch batch;
    bool end;
    lua_vm_check(L);
    judge_last_batch(session, handle);
    BIND_DONE(L, next_batch(session, handle->loader, &batch, &end, &error), &error);
    if (end)
        return 0;
    note_batch(session, handle, batch.count);
    lua_createtable(L, 0, 3);
    BIND_TENSOR(L, batch_tensor(session, &batch.x, &error), &error);
    lua_setfield(L, -2, "x");
    if (batch.y.ndim > 0) {
        BIND_TENSOR(L, batch_tensor(session, &batch.y, &error), &error);
        lua_setfield(L, -2, "y");
    }
    lua_pushinteger(L, batch.count);
    lua_setfield(L, -2, "count");
    seal_batch(L);
    return 1;
}

// `for b in loader do`: calling the loader with the generic for's (state, control) gives the next
// batch; the first call of a loop, control nil, begins an epoch.
static int loader_call(lua_State *L) {
    if (lua_isnil(L, 3) || lua_isnone(L, 3)) {
        Loader *loader = loader_at(L, "loader")->loader;
        bind_leave_boundary(L);
        loader_begin(loader);
    }
    lua_settop(L, 1);
    return loader_step(L);
}

static int loader_length(lua_State *L) {
    lua_pushinteger(L, loader_len(loader_at(L, "len")->loader));
    return 1;
}

static int loader_sample_count(lua_State *L) {
    lua_pushinteger(L, loader_samples(loader_at(L, "samples")->loader));
    return 1;
}

// vocabulary(): how many different characters a text has; nil for other data
static int loader_vocabulary(lua_State *L) {
    const Dataset *dataset = loader_dataset(loader_at(L, "vocabulary")->loader);
    if (!dataset->text)
        return 0;
    lua_pushinteger(L, dataset->text->vocabulary);
    return 1;
}

// classes(): the names of classes in order; nil where they have none
static int loader_classes(lua_State *L) {
    const Dataset *dataset = loader_dataset(loader_at(L, "classes")->loader);
    if (!dataset->names)
        return 0;
    lua_createtable(L, dataset->classes, 0);
    for (int32_t i = 0; i < dataset->classes; i++) {
        lua_pushstring(L, dataset->names[i]);
        lua_rawseti(L, -2, i + 1);
    }
    return 1;
}

// decode(tokens): the text of a list of tokens, or of a tensor of them
static int loader_decode(lua_State *L) {
    const Dataset *dataset = loader_dataset(loader_at(L, "decode")->loader);
    if (!dataset->text)
        return bind_error(L, "decode: this loader's data is no text");
    int64_t count = bind_list(L, "decode", 2);
    int32_t *tokens = lua_newuserdatauv(L, (size_t)(count ? count : 1) * sizeof *tokens, 0);
    for (int64_t i = 0; i < count; i++) {
        lua_rawgeti(L, 2, i + 1);
        lua_Integer token = lua_tointeger(L, -1);
        lua_pop(L, 1);
        if (token < 0 || token >= dataset->text->vocabulary)
            return bind_error(L, "decode: token %lld: the vocabulary has 0 to %d", (long long)token,
                              dataset->text->vocabulary - 1);
        tokens[i] = (int32_t)token;
    }
    size_t size = (size_t)count * 4 + 1; // a code point takes at most four bytes
    char *text = lua_newuserdatauv(L, size, 0);
    lua_pushlstring(L, text, text_decode(dataset->text, tokens, count, text, size));
    return 1;
}

static int loader_gc(lua_State *L) {
    LoaderHandle *handle = lua_touserdata(L, 1);
    Session *session = session_of(L);
    if (handle->loader) {
        allocator_remove_host(session->engine->device->allocator, handle->bytes);
        session->data_bytes -= handle->bytes;
    }
    inventory_remove(&session->inventory, MEMBER_LOADER, handle->loader);
    loader_free(handle->loader);
    handle->loader = NULL;
    return 0;
}

LoaderHandle *bind_push_loader(lua_State *L, const char *function) {
    Session *session = session_of(L);
    LoaderHandle *handle = lua_newuserdatauv(L, sizeof *handle, 0);
    *handle = (LoaderHandle){.loader = NULL};
    luaL_setmetatable(L, bind_loader_type);
    handle->options = (LoaderOptions){
        .batch = bind_field_integer(L, function, 1, "batch", 32),
        .shuffle = bind_field_boolean(L, function, 1, "shuffle", false),
        .drop_last = bind_field_boolean(L, function, 1, "drop_last", false),
        .limit = bind_field_integer(L, function, 1, "limit", 0),
        .seed = (uint64_t)bind_field_integer(L, function, 1, "seed",
                                             (int64_t)session->run->options->seed),
        .transform = bind_transform(L, function, 1),
    };
    int64_t threads = bind_field_integer(L, function, 1, "threads", 1);
    if (threads < 1 || threads > LOADER_MOST_THREADS)
        bind_error(L, "%s: threads: from 1 to %d are possible, not %lld", function,
                   LOADER_MOST_THREADS, (long long)threads);
    handle->options.threads = (int)threads;
    return handle;
}

bool bind_fill_loader(Session *session, LoaderHandle *handle, const char *function,
                      Dataset *dataset, Error *error) {
    Allocator *allocator = session->engine->device->allocator;
    if (!dataset)
        return false;
    handle->bytes = dataset_memory(dataset);
    bool fits = allocator_add_host(allocator, handle->bytes, error);
    handle->loader = fits ? loader_new(dataset, &handle->options, error) : NULL;
    dataset_release(dataset);
    if (handle->loader) {
        session->data_bytes += handle->bytes;
        return true;
    }
    if (fits)
        allocator_remove_host(allocator, handle->bytes);
    return error_prefix(error, "%s", function);
}

static const BindFunction methods[] = {
    {"len", loader_length, ""},        {"samples", loader_sample_count, ""},
    {"classes", loader_classes, ""},   {"vocabulary", loader_vocabulary, ""},
    {"decode", loader_decode, "list"}, {0}};

void bind_open_loader(lua_State *L, Session *session) {
    const BindFunction events[] = {{"__gc", loader_gc, NULL}, {"__call", loader_call, NULL}, {0}};
    bind_metatable(L, session, bind_loader_type, "loader:", methods, events);
    lua_pop(L, 1);
}
