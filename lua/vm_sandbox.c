// The library that a script sees: what computes, nothing that reaches files, programs or the
// machine itself. What is withheld says so, and names --trust.
#include <lauxlib.h>
#include <lualib.h>
#include <string.h>

#include "base/nearest.h"
#include "lua/vm_private.h"

#define HINT_TRUST "scripts may not use it; run with --trust if you trust this one"

// Names that people look for and do not find, with the way on.
static const struct {
    const char *name, *hint;
} hints[] = {
    {"io", HINT_TRUST},
    {"debug", HINT_TRUST},
    {"package", HINT_TRUST},
    {"dofile", HINT_TRUST ", or `require` a file beside it"},
    {"loadfile", HINT_TRUST ", or `require` a file beside it"},
    {"mp", "write local mp = require \"mp\""},
    {"nn", "write local nn = mp.nn"},
    {"F", "write local F = mp.fn"},
    {"unpack", "in Lua 5.4 it is table.unpack"},
    {"loadstring", "in Lua 5.4 it is load"},
    {"self", "it is known only in functions declared with a colon"},
};

static const char *const os_kept[] = {"time", "clock", "date", "difftime"};

static const char *hint_for(const char *name) {
    for (size_t i = 0; i < sizeof hints / sizeof hints[0]; i++)
        if (strcmp(hints[i].name, name) == 0)
            return hints[i].hint;
    return NULL;
}

// ---- globals -----------------------------------------------------------------------------------

// A global that was never assigned is a mistake: it is named, with the nearest that is known.
// Upvalue 1: the names that scripts have assigned, whose value may since have become nil.
static int missing_global(lua_State *L) {
    if (lua_type(L, 2) != LUA_TSTRING)
        return 0;
    lua_pushvalue(L, 2);
    if (lua_rawget(L, lua_upvalueindex(1)) != LUA_TNIL)
        return 0;
    const char *name = lua_tostring(L, 2);
    const char *hint = hint_for(name);
    if (hint)
        return luaL_error(L, "'%s' is not there: %s", name, hint);
    Nearest nearest;
    nearest_begin(&nearest, name);
    lua_settop(L, 2);
    lua_pushnil(L);
    while (lua_next(L, 1)) {
        if (lua_type(L, -2) == LUA_TSTRING)
            nearest_offer(&nearest, lua_tostring(L, -2));
        lua_pop(L, 1);
    }
    if (nearest.best)
        return luaL_error(L, "'%s' is not defined; did you mean '%s'?", name, nearest.best);
    return luaL_error(L, "'%s' is not defined", name);
}

static int new_global(lua_State *L) {
    lua_pushvalue(L, 2);
    lua_pushboolean(L, true);
    lua_rawset(L, lua_upvalueindex(1));
    lua_rawset(L, 1);
    return 0;
}

static void watch_globals(lua_State *L) {
    lua_pushglobaltable(L);
    lua_createtable(L, 0, 3);
    lua_newtable(L);
    lua_pushvalue(L, -1);
    lua_pushcclosure(L, missing_global, 1);
    lua_setfield(L, -3, "__index");
    lua_pushcclosure(L, new_global, 1);
    lua_setfield(L, -2, "__newindex");
    lua_pushboolean(L, false);
    lua_setfield(L, -2, "__metatable");
    lua_setmetatable(L, -2);
    lua_pop(L, 1);
}

// ---- functions that are narrower than the library's --------------------------------------------

static int missing_os(lua_State *L) {
    return luaL_error(L, "'os.%s' is not there: " HINT_TRUST, luaL_tolstring(L, 2, NULL));
}

static void open_small_os(lua_State *L) {
    lua_pushcfunction(L, luaopen_os);
    lua_call(L, 0, 1);
    lua_newtable(L);
    for (size_t i = 0; i < sizeof os_kept / sizeof os_kept[0]; i++) {
        lua_getfield(L, -2, os_kept[i]);
        lua_setfield(L, -2, os_kept[i]);
    }
    lua_createtable(L, 0, 2);
    lua_pushcfunction(L, missing_os);
    lua_setfield(L, -2, "__index");
    lua_pushboolean(L, false);
    lua_setfield(L, -2, "__metatable");
    lua_setmetatable(L, -2);
    lua_setglobal(L, "os");
    lua_pop(L, 1);
}

// A finalizer runs where no hook runs, so that one that loops could not be interrupted.
static int narrow_setmetatable(lua_State *L) {
    luaL_checktype(L, 1, LUA_TTABLE);
    if (!lua_isnoneornil(L, 2))
        luaL_checktype(L, 2, LUA_TTABLE);
    else
        luaL_argexpected(L, lua_isnil(L, 2), 2, "nil or table");
    if (luaL_getmetafield(L, 1, "__metatable") != LUA_TNIL)
        return luaL_error(L, "this metatable is protected and cannot be changed");
    lua_settop(L, 2);
    if (lua_istable(L, 2)) {
        lua_pushliteral(L, "__gc");
        if (lua_rawget(L, 2) != LUA_TNIL)
            return luaL_error(L, "scripts may not set __gc: use a local with <close>, or --trust");
        lua_pop(L, 1);
    }
    lua_setmetatable(L, 1);
    return 1;
}

static int narrow_collectgarbage(lua_State *L) {
    static const char *const kept[] = {"collect", "count", "step", NULL};
    const char *what = luaL_optstring(L, 1, "collect");
    size_t i = 0;
    while (kept[i] && strcmp(kept[i], what) != 0)
        i++;
    if (!kept[i])
        return luaL_error(L,
                          "collectgarbage '%s' is not open to scripts, only 'collect', 'count' "
                          "and 'step'",
                          what);
    lua_pushvalue(L, lua_upvalueindex(1));
    lua_insert(L, 1);
    lua_call(L, lua_gettop(L) - 1, LUA_MULTRET);
    return lua_gettop(L);
}

// ---- output ------------------------------------------------------------------------------------

static int send_line(lua_State *L, const char *prefix, const char *between) {
    LuaVm *vm = lua_vm_of(L);
    int count = lua_gettop(L);
    vm->asides.said++;
    luaL_Buffer line;
    luaL_buffinit(L, &line);
    luaL_addstring(&line, prefix);
    for (int i = 1; i <= count; i++) {
        if (i > 1)
            luaL_addstring(&line, between);
        luaL_tolstring(L, i, NULL);
        luaL_addvalue(&line);
    }
    luaL_pushresult(&line);
    size_t length;
    const char *text = lua_tolstring(L, -1, &length);
    if (vm->options.print)
        vm->options.print(vm->options.context, text, length);
    return 0;
}

static int send_print(lua_State *L) {
    return send_line(L, "", "\t");
}

static int send_warning(lua_State *L) {
    for (int i = 1; i <= lua_gettop(L); i++)
        luaL_checkstring(L, i);
    return send_line(L, "warning: ", "");
}

// ---- opening -----------------------------------------------------------------------------------

static void open_narrow(lua_State *L) {
    static const luaL_Reg libraries[] = {
        {"_G", luaopen_base},   {"table", luaopen_table}, {"string", luaopen_string},
        {"math", luaopen_math}, {"utf8", luaopen_utf8},   {"coroutine", luaopen_coroutine},
    };
    static const char *const removed[] = {"dofile", "loadfile"};
    for (size_t i = 0; i < sizeof libraries / sizeof libraries[0]; i++) {
        luaL_requiref(L, libraries[i].name, libraries[i].func, 1);
        lua_pop(L, 1);
    }
    for (size_t i = 0; i < sizeof removed / sizeof removed[0]; i++) {
        lua_pushnil(L);
        lua_setglobal(L, removed[i]);
    }
    open_small_os(L);
    lua_getglobal(L, "string");
    lua_pushnil(L);
    lua_setfield(L, -2, "dump"); // makes the bytecode that nothing here loads
    lua_pop(L, 1);
    lua_pushcfunction(L, narrow_setmetatable);
    lua_setglobal(L, "setmetatable");
    lua_getglobal(L, "collectgarbage");
    lua_pushcclosure(L, narrow_collectgarbage, 1);
    lua_setglobal(L, "collectgarbage");
    lua_pushliteral(L, "");
    lua_getmetatable(L, -1);
    lua_pushboolean(L, false);
    lua_setfield(L, -2, "__metatable");
    lua_pop(L, 2);
}

void vm_sandbox_open(lua_State *L) {
    if (lua_vm_of(L)->options.trust)
        luaL_openlibs(L);
    else
        open_narrow(L);
    vm_pairs_open(L);
    lua_getglobal(L, "math");
    vm_random_open(L);
    lua_pop(L, 1);
    lua_pushcfunction(L, send_print);
    lua_setglobal(L, "print");
    lua_pushcfunction(L, send_warning);
    lua_setglobal(L, "warn");
    lua_getglobal(L, "require"); // nil but in a trusted machine
    lua_pushcclosure(L, vm_require, 1);
    lua_setglobal(L, "require");
    vm_guard_library(L);
    vm_inner_open(L);
    watch_globals(L);
}
