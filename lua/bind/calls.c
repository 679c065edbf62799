// Calls of what is no function. Lua lets all values of a basic type share a metatable; those of
// numbers and of nil hold one event, __call.
//
// `run.step` is a plain number, and `run:step(f)`, which is `run.step(run, f)`, runs a step. A
// method that is not there is nil: its name is told with the nearest that the object has. Any other
// call of a number or of nil fails as it would without us, with the words of Lua's own.
#include <string.h>

#include "base/nearest.h"
#include "lua/bind/step.h"

// The words of Lua's own, and what was probably meant.
static int refuse_call(lua_State *L, const lua_Debug *at, const char *near) {
    const char *type = luaL_typename(L, 1);
    if (!at->name)
        return bind_error(L, "attempt to call a %s value", type);
    return bind_error(L, "attempt to call a %s value (%s '%s')%s%s%s", type, at->namewhat, at->name,
                      near ? "; did you mean " : "", near ? near : "", near ? "?" : "");
}

// How the function that runs now was named where it was called.
static lua_Debug called_as(lua_State *L) {
    lua_Debug at;
    if (!lua_getstack(L, 0, &at) || !lua_getinfo(L, "n", &at))
        at.name = NULL;
    return at;
}

static int refuse_number(lua_State *L) {
    lua_Debug at = called_as(L);
    if (at.name && strcmp(at.namewhat, "field") == 0 && strcmp(at.name, "step") == 0 &&
        bind_is_callable(L, 2))
        return bind_error(L, "run.step: called with a dot; write run:step(f)");
    return refuse_call(L, &at, NULL);
}

// (number, run, f, ..): upvalue 2 is the run.
static int number_call(lua_State *L) {
    bool of_run =
        lua_rawequal(L, 2, lua_upvalueindex(2)) && lua_tointeger(L, 1) == session_of(L)->run->step;
    if (!of_run)
        return refuse_number(L);
    if (!bind_is_callable(L, 3))
        return bind_error(L, "run:step: a function expected, got %s", bind_what_is(L, 3));
    return step_run(L, 3);
}

// Offers the names of functions in the value at `index`, where it is a table, and in the tables
// that it asks for what it lacks. The tables keep the names.
static void offer_methods(lua_State *L, Nearest *nearest, int index) {
    enum { MOST_TABLES = 8 };
    lua_pushvalue(L, index);
    for (int i = 0; i < MOST_TABLES; i++) {
        if (lua_istable(L, -1))
            for (lua_pushnil(L); lua_next(L, -2); lua_pop(L, 1))
                if (lua_type(L, -2) == LUA_TSTRING && bind_is_callable(L, -1) &&
                    *lua_tostring(L, -2) != '_')
                    nearest_offer_unordered(nearest, lua_tostring(L, -2));
        if (!lua_getmetatable(L, -1))
            return;
        lua_pushliteral(L, "__index");
        lua_rawget(L, -2);
    }
}

// "optimizer" for what is called mp.optimizer among types; NULL: it is none of ours.
static const char *type_of_ours(lua_State *L, int index) {
    const char *name =
        luaL_getmetafield(L, index, "__name") == LUA_TSTRING ? lua_tostring(L, -1) : "";
    return strncmp(name, "mp.", 3) == 0 ? name + 3 : NULL;
}

// (nil, self, ..)
static int nil_call(lua_State *L) {
    lua_Debug at = called_as(L);
    luaL_checkstack(L, 32, "a call of nil");
    if (!at.name || strcmp(at.namewhat, "method") != 0)
        return refuse_call(L, &at, NULL);
    Nearest nearest;
    nearest_begin(&nearest, at.name);
    offer_methods(L, &nearest, 2);
    const char *class = lua_vm_class_of(L, 2), *type = type_of_ours(L, 2);
    if (!class[0] && !type)
        return refuse_call(L, &at, nearest.best);
    return bind_error(L, "the %s%s has no method %s%s%s%s", class[0] ? "module " : type, class,
                      at.name, nearest.best ? "; did you mean " : "",
                      nearest.best ? nearest.best : "", nearest.best ? "?" : "");
}

// Gives all values of the type of the one on top of the stack, which it takes, this function to be
// called by. The function's upvalues lie below: the session, and `upvalues` - 1 others.
static void set_call(lua_State *L, lua_CFunction function, int upvalues) {
    lua_insert(L, -upvalues - 1);
    lua_pushcclosure(L, function, upvalues);
    lua_createtable(L, 0, 2);
    lua_insert(L, -2);
    lua_setfield(L, -2, "__call");
    lua_pushboolean(L, false);
    lua_setfield(L, -2, "__metatable");
    lua_setmetatable(L, -2);
    lua_pop(L, 1);
}

// let_step_be_called(run)
static int let_step_be_called(lua_State *L) {
    luaL_checktype(L, 1, LUA_TTABLE);
    lua_pushlightuserdata(L, session_of(L));
    lua_pushvalue(L, 1);
    lua_pushinteger(L, 0); // any number stands for all
    set_call(L, number_call, 2);
    return 0;
}

void bind_open_calls(lua_State *L, Session *session) {
    lua_pushlightuserdata(L, session);
    lua_pushnil(L);
    set_call(L, nil_call, 1);
}

const BindFunction bind_step_functions[] = {{"let_step_be_called", let_step_be_called, NULL}, {0}};
