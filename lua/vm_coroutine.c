// Coroutines: resumed, wrapped and closed as the library does it, but that an interrupt passes
// through, that the machine knows which one is running, and that each has a place of its own.
#include <lauxlib.h>

#include "lua/vm_private.h"

// The field of the registry with the places of coroutines that gave way, by coroutine.
static const char places_field[] = "vm.places";

void lua_vm_set_places(LuaVm *vm, const LuaVmPlaces *places) {
    vm->places = *places;
}

// ---- places -------------------------------------------------------------------------------------

static void push_places(lua_State *L) {
    if (!luaL_getsubtable(L, LUA_REGISTRYINDEX, places_field)) {
        lua_createtable(L, 0, 1);
        lua_pushliteral(L, "k");
        lua_setfield(L, -2, "__mode");
        lua_setmetatable(L, -2);
    }
}

static void push_thread(lua_State *L, lua_State *coroutine) {
    lua_pushthread(coroutine);
    lua_xmove(coroutine, L, 1);
}

// Goes to where the coroutine was when it gave way; one that begins starts where we are.
static void go_on(lua_State *L, lua_State *coroutine, const LuaVmPlaces *places) {
    push_places(L);
    push_thread(L, coroutine);
    if (lua_rawget(L, -2) == LUA_TNUMBER)
        places->move(places->context, (uint64_t)lua_tointeger(L, -1));
    lua_pop(L, 2);
}

// Remembers where the coroutine was, when it only gave way to another place.
static void give_way(lua_State *L, lua_State *coroutine, const LuaVmPlaces *places, bool is_over,
                     uint64_t ours) {
    uint64_t place = places->place(places->context);
    places->move(places->context, ours);
    push_places(L);
    push_thread(L, coroutine);
    if (is_over || place == ours)
        lua_pushnil(L);
    else
        lua_pushinteger(L, (lua_Integer)place);
    lua_rawset(L, -3);
    lua_pop(L, 1);
}

// ---- running ------------------------------------------------------------------------------------

static lua_State *coroutine_at(lua_State *L, int index) {
    lua_State *coroutine = lua_tothread(L, index);
    if (!coroutine)
        luaL_typeerror(L, index, "coroutine");
    return coroutine;
}

// Resumes it with the topmost `arguments` values; returns how many it gave, or -1 with its error.
static int resume(lua_State *L, lua_State *coroutine, int arguments) {
    LuaVm *vm = lua_vm_of(L);
    int results = 0;
    if (!lua_checkstack(coroutine, arguments + 1)) {
        lua_pushliteral(L, "too many arguments to resume");
        return -1;
    }
    luaL_checkstack(L, 3, "coroutine");
    bool has_place = vm->places.place && lua_status(coroutine) <= LUA_YIELD;
    uint64_t ours = has_place ? vm->places.place(vm->places.context) : 0;
    if (has_place && lua_status(coroutine) == LUA_YIELD)
        go_on(L, coroutine, &vm->places);
    lua_xmove(L, coroutine, arguments);
    atomic_store(&vm->running, coroutine);
    int status = lua_resume(coroutine, L, arguments, &results);
    atomic_store(&vm->running, L);
    bool failed = status != LUA_OK && status != LUA_YIELD;
    if (failed) {
        lua_xmove(coroutine, L, 1); // the error
        results = -1;
    } else if (!lua_checkstack(L, results + 4)) {
        lua_pop(coroutine, results);
        lua_pushliteral(L, "too many results to resume");
        results = -1;
    } else {
        lua_xmove(coroutine, L, results);
    }
    if (has_place)
        give_way(L, coroutine, &vm->places, status != LUA_YIELD, ours);
    return results;
}

static int coroutine_resume(lua_State *L) {
    lua_State *coroutine = coroutine_at(L, 1);
    int results = resume(L, coroutine, lua_gettop(L) - 1);
    lua_vm_check(L);
    if (results < 0)
        vm_recover(L);
    lua_pushboolean(L, results >= 0);
    int count = results >= 0 ? results : 1;
    lua_insert(L, -(count + 1));
    return count + 1;
}

// What closes a coroutine that died leaves its error on ours.
static void close_dead(lua_State *L, lua_State *coroutine) {
    LuaVm *vm = lua_vm_of(L);
    atomic_store(&vm->running, coroutine);
    lua_resetthread(coroutine);
    atomic_store(&vm->running, L);
    lua_pop(L, 1);
    lua_xmove(coroutine, L, 1);
}

// One that an interrupt ended is not closed: it was raised inside a hook, after which no hook runs
// in that coroutine any more, and a __close that loops would never end.
static int call_wrapped(lua_State *L) {
    lua_State *coroutine = lua_tothread(L, lua_upvalueindex(1));
    int results = resume(L, coroutine, lua_gettop(L));
    lua_vm_check(L);
    if (results >= 0)
        return results;
    if (lua_status(coroutine) > LUA_YIELD) {
        close_dead(L, coroutine);
        lua_vm_check(L);
    }
    return lua_error(L);
}

// Upvalue 1: the library's coroutine.create
static int coroutine_wrap(lua_State *L) {
    luaL_checktype(L, 1, LUA_TFUNCTION);
    lua_settop(L, 1);
    lua_pushvalue(L, lua_upvalueindex(1));
    lua_insert(L, 1);
    lua_call(L, 1, 1);
    lua_pushcclosure(L, call_wrapped, 1);
    return 1;
}

// Upvalue 1: the library's own
static int coroutine_close(lua_State *L) {
    LuaVm *vm = lua_vm_of(L);
    lua_State *coroutine = coroutine_at(L, 1);
    lua_vm_check(L); // one that an interrupt ended stays as it is
    lua_settop(L, 1);
    lua_pushvalue(L, lua_upvalueindex(1));
    lua_insert(L, 1);
    if (lua_status(coroutine) != LUA_OK) // else it has nothing to close, or is refused
        atomic_store(&vm->running, coroutine);
    int closed = lua_pcall(L, 1, LUA_MULTRET, 0);
    atomic_store(&vm->running, L);
    lua_vm_check(L);
    return closed == LUA_OK ? lua_gettop(L) : lua_error(L);
}

void vm_coroutine_open(lua_State *L) {
    lua_getglobal(L, "coroutine");
    int library = lua_gettop(L);
    lua_pushcfunction(L, coroutine_resume);
    lua_setfield(L, library, "resume");
    lua_getfield(L, library, "create");
    lua_pushcclosure(L, coroutine_wrap, 1);
    lua_setfield(L, library, "wrap");
    lua_getfield(L, library, "close");
    lua_pushcclosure(L, coroutine_close, 1);
    lua_setfield(L, library, "close");
    lua_settop(L, library - 1);
}
