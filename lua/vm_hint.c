// What a mistyped field was probably meant to be: `self.hed` is nil, and Lua says so alone. Where
// it goes into a call of ours that wants a number, all that is known there is that it got nil: so
// modules note what they are asked for and have not.
#include <stdio.h>
#include <string.h>

#include "base/nearest.h"
#include "lua/vm_private.h"

enum {
    MOST_LOCALS = 100,
    MOST_KEYS = 2000, // of a table; more are no fields that somebody named
    MOST_CLASSES = 8  // one above the other
};

// The field or method of which a message of Lua's says that it is nil; false: it says it of none.
static bool find_name(const char *message, char name[VM_NAME_SIZE]) {
    static const char *const kinds[] = {"(field '", "(method '"};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        const char *at = strstr(message, kinds[i]);
        const char *begin = at ? at + strlen(kinds[i]) : NULL;
        const size_t length = begin ? strcspn(begin, "'") : 0;
        if (!strstr(message, "a nil value") || length == 0 || length >= VM_NAME_SIZE)
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

int lua_vm_note_missing(lua_State *L) {
    lua_Debug at;
    const char *name = lua_type(L, 2) == LUA_TSTRING ? lua_tostring(L, 2) : "";
    VmMissing *missing = &lua_vm_of(L)->missing;
    if (!name[0] || name[0] == '_' || !lua_getstack(L, 1, &at) || !lua_getinfo(L, "S", &at))
        return 0;
    snprintf(missing->name, sizeof missing->name, "%s", name);
    snprintf(missing->source, sizeof missing->source, "%s", at.short_src);
    missing->line = at.linedefined;
    return 0;
}

static bool ends_in_nil(const char *message) {
    const char *at = strstr(message, "got nil");
    return at && (strcmp(at, "got nil") == 0 || strcmp(at, "got nil)") == 0);
}

// The innermost function of Lua; `beyond_own`: of the script.
static bool find_function(lua_State *L, bool beyond_own, lua_Debug *at) {
    for (int level = 0; lua_getstack(L, level, at) && lua_getinfo(L, "Sl", at); level++) {
        const bool is_own = strncmp(at->short_src, "mp/", 3) == 0;
        if (at->currentline > 0 && !(is_own && beyond_own))
            return !is_own;
    }
    return false;
}

const char *vm_hint(lua_State *L, const char *message, char hint[VM_HINT_SIZE]) {
    const VmMissing *missing = &lua_vm_of(L)->missing;
    char name[VM_NAME_SIZE];
    lua_Debug at;
    hint[0] = 0;
    const bool is_named = find_name(message, name);
    if ((!is_named && !ends_in_nil(message)) || !lua_checkstack(L, 8) ||
        !find_function(L, !is_named, &at))
        return hint;
    if (!is_named) {
        if (at.linedefined != missing->line || strcmp(at.short_src, missing->source) != 0)
            return hint;
        memcpy(name, missing->name, sizeof name);
    }
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
    if (!nearest.best || strcmp(nearest.best, name) == 0)
        return hint;
    if (is_named)
        snprintf(hint, VM_HINT_SIZE, "; did you mean %.*s?", VM_NAME_SIZE, nearest.best);
    else
        snprintf(hint, VM_HINT_SIZE, "; no field %s, did you mean %.*s?", name, VM_NAME_SIZE,
                 nearest.best);
    return hint;
}

int lua_vm_tell_meant(lua_State *L) {
    char hint[VM_HINT_SIZE];
    if (lua_type(L, 1) == LUA_TSTRING && vm_hint(L, lua_tostring(L, 1), hint)[0])
        lua_pushfstring(L, "%s%s", lua_tostring(L, 1), hint);
    return 1;
}
