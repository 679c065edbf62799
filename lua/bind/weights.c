// mp.load: the tensors of a safetensors file, by their names.
#include <string.h>

#include "checkpoint/weights.h"
#include "lua/bind/bind.h"

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
        BIND_TENSOR(L, weights_read(session->engine->device, *slot, &header->entries[i], &error),
                    &error);
        lua_setfield(L, -2, header->entries[i].name);
    }
    return 1;
}

static const BindFunction functions[] = {{"load", mp_load, "path"}, {0}};

void bind_open_weights(lua_State *L, Session *session) {
    bind_functions(L, session, "mp.", functions);
}
