// What scripts measure: mp.memory, what the device's memory holds, and mp.clock.
#include <lauxlib.h>
#include <string.h>

#include "base/clock.h"
#include "kernel/allocator.h"
#include "lua/bind/bind.h"

// As scripts call what memory is held for; all of it together stands behind them.
static const char *const purposes[MEMORY_PURPOSES] = {[MEMORY_WEIGHTS] = "weights",
                                                      [MEMORY_MASTERS] = "masters",
                                                      [MEMORY_OPTIMIZER] = "optimizer",
                                                      [MEMORY_ACTIVATIONS] = "activations",
                                                      [MEMORY_GRADIENTS] = "gradients",
                                                      [MEMORY_WORKSPACE] = "workspace",
                                                      [MEMORY_DATA] = "data"};

// Bytes as doubles, which are exact up to 2^53.
typedef struct Reading {
    double bytes[MEMORY_PURPOSES], total;
} Reading;

static void push_reading(lua_State *L, const Reading *reading) {
    lua_createtable(L, 0, MEMORY_PURPOSES + 1);
    for (int i = 0; i < MEMORY_PURPOSES; i++) {
        lua_pushinteger(L, (lua_Integer)reading->bytes[i]);
        lua_setfield(L, -2, purposes[i]);
    }
    lua_pushinteger(L, (lua_Integer)reading->total);
    lua_setfield(L, -2, "total");
}

static Reading reading_of(const size_t bytes[MEMORY_PURPOSES], size_t total) {
    Reading reading = {.total = (double)total};
    for (int i = 0; i < MEMORY_PURPOSES; i++)
        reading.bytes[i] = (double)bytes[i];
    return reading;
}

static Allocator *allocator_of(lua_State *L) {
    return session_of(L)->engine->device->allocator;
}

// memory_now(): what lies there, when nothing is left that only waits to be collected.
static int memory_now_call(lua_State *L) {
    Reading reading;
    if (!bind_recall(L, JOURNAL_MEMORY, &reading, sizeof reading)) {
        lua_gc(L, LUA_GCCOLLECT);
        MemoryUse use = allocator_use(allocator_of(L));
        reading = reading_of(use.now, use.total_now);
        bind_remember(L, JOURNAL_MEMORY, &reading, sizeof reading);
    }
    push_reading(L, &reading);
    return 1;
}

// memory_begin(): peaks are those of what comes; gives what memory_end puts the run's back by
static int memory_begin_call(lua_State *L) {
    lua_gc(L, LUA_GCCOLLECT);
    MemoryUse *before = lua_newuserdatauv(L, sizeof *before, 0);
    *before = allocator_use(allocator_of(L));
    allocator_forget_peaks(allocator_of(L));
    return 1;
}

// memory_end(what memory_begin gave): the most of each since then
static int memory_end_call(lua_State *L) {
    const MemoryUse *before = lua_touserdata(L, 1);
    luaL_argcheck(L, before && lua_rawlen(L, 1) == sizeof *before, 1, "not from memory_begin");
    MemoryUse use = allocator_use(allocator_of(L));
    allocator_raise_peaks(allocator_of(L), before);
    Reading reading;
    if (!bind_recall(L, JOURNAL_MEMORY, &reading, sizeof reading)) {
        reading = reading_of(use.peak, use.total_peak);
        bind_remember(L, JOURNAL_MEMORY, &reading, sizeof reading);
    }
    push_reading(L, &reading);
    return 1;
}

// clock(): seconds since some moment, when the device has done all that it was given
static int clock_call(lua_State *L) {
    double seconds;
    if (!bind_recall(L, JOURNAL_CLOCK, &seconds, sizeof seconds)) {
        device_synchronize(session_of(L)->engine->device);
        seconds = clock_seconds();
        bind_remember(L, JOURNAL_CLOCK, &seconds, sizeof seconds);
    }
    lua_pushnumber(L, seconds);
    return 1;
}

static const BindFunction clocks[] = {{"clock", clock_call, ""}, {0}};

static const BindFunction functions[] = {{"memory_now", memory_now_call, NULL},
                                         {"memory_begin", memory_begin_call, NULL},
                                         {"memory_end", memory_end_call, NULL},
                                         {0}};

void bind_open_measure(lua_State *L, Session *session) {
    bind_functions(L, session, "mp.", clocks);
    lua_getfield(L, -1, "engine");
    bind_functions(L, session, "", functions);
    lua_pop(L, 1);
}
