// What a mistyped field was probably meant to be: `self.hed` is nil, and Lua says so alone.
#include <stdio.h>
#include <string.h>

#include "base/nearest.h"
#include "lua/vm_private.h"

enum {
    MOST_LOCALS = 100,
    MOST_KEYS = 2000, // of a table; more are no fields that somebody named
    MOST_CLASSES = 8, // one above the other
    NAME_SIZE = 64
};

// The field or method of which a message of Lua's says that it is nil; false: it says it of none.
static bool find_name(const char *message, char name[NAME_SIZE]) {
    static const char *const kinds[] = {"(field '", "(method '"};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        const char *at = strstr(message, kinds[i]);
        const char *begin = at ? at + strlen(kinds[i]) : NULL;
        const size_t length = begin ? strcspn(begin, "'") : 0;
        if (!strstr(message, "a nil value") || length == 0 || length >= NAME_SIZE)
            continue;
        memcpy(name, begin, length);
        name[length] = 0;
        return strcmp(begin + length, "')") == 0;
    }
    return false;
}

// Offers the names in the table on top of the stack, and in the classes that it is of. What begins
// with '_' is nobody's to call. Pops the table.
static void offer_fields(lua_State *L, Nearest *nearest) {
    for (int above = 0; above < MOST_CLASSES && lua_istable(L, -1); above++) {
        int seen = 0;
        for (lua_pushnil(L); seen < MOST_KEYS && lua_next(L, -2); seen++) {
            lua_pop(L, 1);
            if (lua_type(L, -1) == LUA_TSTRING && lua_tostring(L, -1)[0] != '_')
                nearest_offer(nearest, lua_tostring(L, -1));
        }
        if (seen == MOST_KEYS)
            lua_pop(L, 1); // the key
        if (!lua_getmetatable(L, -1)) {
            lua_pushnil(L);
        } else {
            lua_pushliteral(L, "__index");
            lua_rawget(L, -2);
            lua_remove(L, -2);
        }
        lua_replace(L, -2); // the table: it is held by what it was found in
    }
    lua_pop(L, 1);
}

const char *vm_hint(lua_State *L, const char *message, char hint[VM_HINT_SIZE]) {
    char name[NAME_SIZE];
    lua_Debug at;
    int level = 0;
    hint[0] = 0;
    if (!find_name(message, name) || !lua_checkstack(L, 8))
        return hint;
    for (;; level++) {
        if (!lua_getstack(L, level, &at) || !lua_getinfo(L, "Sl", &at))
            return hint;
        if (at.currentline > 0)
            break;
    }
    if (strncmp(at.short_src, "mp/", 3) == 0)
        return hint;
    Nearest nearest;
    nearest_begin(&nearest, name);
    for (int i = 1; i <= MOST_LOCALS && lua_getlocal(L, &at, i); i++)
        offer_fields(L, &nearest);
    lua_getinfo(L, "f", &at);
    for (int i = 1; i <= MOST_LOCALS; i++) {
        const char *variable = lua_getupvalue(L, -1, i);
        if (!variable)
            break;
        if (strcmp(variable, "_ENV") == 0)
            lua_pop(L, 1);
        else
            offer_fields(L, &nearest);
    }
    lua_pop(L, 1);
    if (nearest.best && strcmp(nearest.best, name) != 0)
        snprintf(hint, VM_HINT_SIZE, "; did you mean %.*s?", NAME_SIZE, nearest.best);
    return hint;
}

int lua_vm_tell_meant(lua_State *L) {
    char hint[VM_HINT_SIZE];
    if (lua_type(L, 1) == LUA_TSTRING && vm_hint(L, lua_tostring(L, 1), hint)[0])
        lua_pushfstring(L, "%s%s", lua_tostring(L, 1), hint);
    return 1;
}
