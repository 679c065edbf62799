// os.time, os.clock and os.date, where they say what the clock says: kept in the journal, so that a
// replay is told the same times again.
#include "lua/bind/bind.h"

// Calls the library's own function, upvalue 2, with what lies on the stack.
static void call_own(lua_State *L) {
    int arguments = lua_gettop(L);
    lua_pushvalue(L, lua_upvalueindex(2));
    lua_insert(L, 1);
    lua_call(L, arguments, 1);
}

// What a clock says, or said when the journal was written.
static int ask_clock(lua_State *L, bool is_whole) {
    union {
        lua_Integer whole;
        lua_Number seconds;
    } now;
    if (!bind_recall(L, JOURNAL_CLOCK, &now, sizeof now)) {
        call_own(L);
        if (is_whole)
            now.whole = lua_tointeger(L, -1);
        else
            now.seconds = lua_tonumber(L, -1);
        bind_remember(L, JOURNAL_CLOCK, &now, sizeof now);
    }
    if (is_whole)
        lua_pushinteger(L, now.whole);
    else
        lua_pushnumber(L, now.seconds);
    return 1;
}

// os.time(table) asks no clock.
static int clock_time(lua_State *L) {
    if (lua_isnoneornil(L, 1))
        return ask_clock(L, true);
    call_own(L);
    return 1;
}

static int clock_processor(lua_State *L) {
    return ask_clock(L, false);
}

// os.date(format) of now is os.date(format, os.time()); upvalue 3 is os.time.
static int clock_date(lua_State *L) {
    lua_settop(L, 2);
    if (lua_isnil(L, 1)) {
        lua_pushliteral(L, "%c");
        lua_replace(L, 1);
    }
    if (lua_isnil(L, 2)) {
        lua_pushvalue(L, lua_upvalueindex(3));
        lua_call(L, 0, 1);
        lua_replace(L, 2);
    }
    call_own(L);
    return 1;
}

// Puts the function in place of the library's, which it is given; the table is on top.
static void replace(lua_State *L, Session *session, const char *name, lua_CFunction function) {
    lua_pushlightuserdata(L, session);
    lua_getfield(L, -2, name);
    lua_getfield(L, -3, "time");
    lua_pushcclosure(L, function, 3);
    lua_setfield(L, -2, name);
}

int bind_open_clock(lua_State *L) {
    Session *session = lua_touserdata(L, 1);
    lua_getglobal(L, "os");
    replace(L, session, "time", clock_time); // before what is given it
    replace(L, session, "date", clock_date);
    replace(L, session, "clock", clock_processor);
    return 0;
}
