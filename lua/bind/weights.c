// mp.load: the tensors of a safetensors file, by their names.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lua/bind/bind.h"
#include "number/inline.h"

// The format that a type is taken in; FORMAT_COUNT: it is not.
static Format format_of(SafeType type) {
    switch (type) {
    case SAFE_F64:
    case SAFE_F32: return FORMAT_FP32;
    case SAFE_F16: return FORMAT_FP16;
    case SAFE_BF16: return FORMAT_BF16;
    case SAFE_I32: return FORMAT_INT32;
    case SAFE_U8: return FORMAT_UINT8;
    default: return FORMAT_COUNT;
    }
}

static Tensor *load_entry(Device *device, SafeFile *file, const SafeEntry *entry, Error *error) {
    Format format = format_of(entry->type);
    if (format == FORMAT_COUNT || entry->ndim > VIEW_MAX_DIMS) {
        error_fail(error, ERROR_FAILED, "%.80s: %s of %d dimensions cannot be a tensor here",
                   entry->name, safe_type_name(entry->type), entry->ndim);
        return NULL;
    }
    size_t size = (size_t)(entry->end - entry->begin);
    char *bytes = malloc(size ? size : 1);
    Tensor *tensor = NULL;
    if (!bytes)
        error_fail(error, ERROR_MEMORY, "%.80s: no memory for its %zu bytes", entry->name, size);
    else if (safe_read(file, entry, bytes, error)) {
        for (size_t i = 0; entry->type == SAFE_F64 && i < size / 8; i++) { // narrow in place
            double wide;
            memcpy(&wide, bytes + i * 8, 8);
            float narrow = number_fp64_to_fp32(wide);
            memcpy(bytes + i * 4, &narrow, 4);
        }
        tensor =
            tensor_from_host(device, format, entry->ndim, entry->shape, bytes, MEMORY_DATA, error);
    }
    free(bytes);
    return tensor;
}

static int file_gc(lua_State *L) {
    SafeFile **slot = lua_touserdata(L, 1);
    safe_close(*slot);
    *slot = NULL;
    return 0;
}

// load(path) -> {name = tensor, ..}
static int mp_load(lua_State *L) {
    Error error = {0};
    Session *session = session_of(L);
    if (lua_type(L, 1) != LUA_TSTRING)
        return bind_argument_error(L, "load", 1, "path", "the path of a safetensors file");
    if (strlen(lua_tostring(L, 1)) != lua_rawlen(L, 1))
        return bind_error(L, "load: a path without zero bytes expected");
    const char *path = bind_path(L, "load", lua_tostring(L, 1));
    SafeFile **slot = lua_newuserdatauv(L, sizeof *slot, 0);
    *slot = NULL;
    lua_createtable(L, 0, 1);
    lua_pushcfunction(L, file_gc);
    lua_setfield(L, -2, "__gc");
    lua_setmetatable(L, -2);
    BIND_DONE(L, (*slot = safe_open(path, &error)) != NULL, &error);
    const SafeHeader *header = safe_header(*slot);
    lua_createtable(L, 0, header->count);
    for (int i = 0; i < header->count; i++) {
        BIND_TENSOR(L, load_entry(session->engine->device, *slot, &header->entries[i], &error),
                    &error);
        lua_setfield(L, -2, header->entries[i].name);
    }
    return 1;
}

static const BindFunction functions[] = {{"load", mp_load, "path"}, {0}};

void bind_open_weights(lua_State *L, Session *session) {
    bind_functions(L, session, "mp.", functions);
}
