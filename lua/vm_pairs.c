// pairs, in an order that is the same in every process.
//
// Lua hashes strings with a seed of its own each time it starts, so that the order of a table's
// string keys is another one in every process, and with it that of all that a loop over them
// computes, draws or logs. A run that is repeated or resumed must not depend on that: a table with
// two string keys or more is gone through by its other keys, as they come, then by these, sorted.
#include <lauxlib.h>
#include <stdlib.h>
#include <string.h>

#include "lua/vm_private.h"

typedef struct Key {
    const char *text; // a list keeps it
    size_t length;
} Key;

static int by_text(const void *a, const void *b) {
    const Key *x = a, *y = b;
    size_t shorter = x->length < y->length ? x->length : y->length;
    int order = memcmp(x->text, y->text, shorter);
    return order ? order : (x->length > y->length) - (x->length < y->length);
}

// Upvalues: the keys, and how many of them were given.
static int next_in_order(lua_State *L) {
    lua_Integer at = lua_tointeger(L, lua_upvalueindex(2));
    lua_settop(L, 1);
    for (;;) {
        if (lua_rawgeti(L, lua_upvalueindex(1), ++at) == LUA_TNIL)
            return 1;
        lua_pushvalue(L, -1);
        if (lua_rawget(L, 1) != LUA_TNIL) // else it was taken out since
            break;
        lua_settop(L, 1);
    }
    lua_pushinteger(L, at);
    lua_replace(L, lua_upvalueindex(2));
    return 2;
}

// Pushes a list of the table's keys, in order, the strings among them sorted. Any memory that is
// taken may run a __gc that changes the table: what counts is what was found.
static void push_keys(lua_State *L) {
    lua_newtable(L);
    int list = lua_gettop(L);
    lua_newtable(L); // the strings, as they come
    lua_Integer others = 0, found = 0;
    lua_pushnil(L);
    while (lua_next(L, 1)) {
        lua_pop(L, 1);
        bool is_string = lua_type(L, -1) == LUA_TSTRING;
        lua_pushvalue(L, -1);
        if (is_string)
            lua_rawseti(L, list + 1, ++found);
        else
            lua_rawseti(L, list, ++others);
    }
    Key *keys = lua_newuserdatauv(L, (size_t)(found + 1) * sizeof *keys, 0);
    for (lua_Integer i = 0; i < found; i++) {
        lua_rawgeti(L, list + 1, i + 1);
        keys[i].text = lua_tolstring(L, -1, &keys[i].length);
        lua_pop(L, 1);
    }
    qsort(keys, (size_t)found, sizeof *keys, by_text);
    for (lua_Integer i = 0; i < found; i++) {
        lua_pushlstring(L, keys[i].text, keys[i].length);
        lua_rawseti(L, list, others + i + 1);
    }
    lua_settop(L, list);
}

// Upvalue 1: the library's own next.
static int ordered_pairs(lua_State *L) {
    luaL_checkany(L, 1);
    if (luaL_getmetafield(L, 1, "__pairs") != LUA_TNIL) {
        lua_pushvalue(L, 1);
        lua_call(L, 1, 3);
        return 3;
    }
    size_t strings = 0;
    lua_settop(L, 1);
    if (lua_istable(L, 1)) {
        lua_pushnil(L);
        while (lua_next(L, 1)) {
            strings += lua_type(L, -2) == LUA_TSTRING;
            lua_pop(L, 1);
        }
    }
    if (strings < 2) {
        lua_pushvalue(L, lua_upvalueindex(1));
    } else {
        push_keys(L);
        lua_pushinteger(L, 0);
        lua_pushcclosure(L, next_in_order, 2);
    }
    lua_pushvalue(L, 1);
    lua_pushnil(L);
    return 3;
}

void vm_pairs_open(lua_State *L) {
    lua_getglobal(L, "next");
    lua_pushcclosure(L, ordered_pairs, 1);
    lua_setglobal(L, "pairs");
}
