// `run.step` is a plain number, and `run:step(f)`, which is `run.step(run, f)`, runs a step.
//
// Lua lets all numbers of a machine share a metatable. Theirs holds one event, __call, which knows
// the run; any other call of a number fails as it would without it, with the words of Lua's own.
#include <string.h>

#include "lua/bind/bind.h"

static int call_ended(lua_State *L, int status, lua_KContext before) {
    (void)status;
    return lua_gettop(L) - (int)before;
}

static int refuse_call(lua_State *L) {
    lua_Debug at;
    bool named = lua_getstack(L, 0, &at) && lua_getinfo(L, "n", &at) && at.name;
    if (!named)
        return bind_error(L, "attempt to call a number value");
    if (strcmp(at.namewhat, "field") == 0 && strcmp(at.name, "step") == 0 && bind_is_callable(L, 2))
        return bind_error(L, "run.step: called with a dot; write run:step(f)");
    return bind_error(L, "attempt to call a number value (%s '%s')", at.namewhat, at.name);
}

// (number, run, f, ..): upvalue 2 is the run.
static int number_call(lua_State *L) {
    bool of_run =
        lua_rawequal(L, 2, lua_upvalueindex(2)) && lua_tointeger(L, 1) == session_of(L)->run->step;
    if (!of_run)
        return refuse_call(L);
    if (!bind_is_callable(L, 3))
        return bind_error(L, "run:step: a function expected, got %s", bind_what_is(L, 3));
    lua_callk(L, lua_gettop(L) - 3, LUA_MULTRET, 2, call_ended);
    return call_ended(L, LUA_OK, 2);
}

// let_step_be_called(run)
static int let_step_be_called(lua_State *L) {
    luaL_checktype(L, 1, LUA_TTABLE);
    lua_pushinteger(L, 0); // any number stands for all
    lua_createtable(L, 0, 2);
    lua_pushlightuserdata(L, session_of(L));
    lua_pushvalue(L, 1);
    lua_pushcclosure(L, number_call, 2);
    lua_setfield(L, -2, "__call");
    lua_pushboolean(L, false);
    lua_setfield(L, -2, "__metatable");
    lua_setmetatable(L, -2);
    return 0;
}

const luaL_Reg bind_step_functions[] = {{"let_step_be_called", let_step_be_called}, {NULL, NULL}};
