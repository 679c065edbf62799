// The interrupt: a flag that anyone may raise, a hook that looks at it every few thousand
// instructions, and the library functions that catch errors, made to pass this one on. A counting
// hook costs a script about a third of its speed in pure Lua; the engine's work does not feel it.
#include <lauxlib.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "lua/vm_private.h"

enum { HOOK_INSTRUCTIONS = 10000 };

void lua_vm_interrupt(LuaVm *vm, const char *reason) {
    atomic_store(&vm->pulse.interrupt, reason ? reason : "interrupted");
}

void lua_vm_clear_interrupt(LuaVm *vm) {
    atomic_store(&vm->pulse.interrupt, NULL);
}

const char *lua_vm_interrupted(const LuaVm *vm) {
    return atomic_load(&vm->pulse.interrupt);
}

static void on_count(lua_State *L, lua_Debug *at);

// The error is no string, so that nothing on its way adds to it; and from here on this coroutine
// looks before every instruction, so that no __close of the script's holds the end up.
static void raise_interrupt(lua_State *L, LuaVm *vm) {
    if (!vm->interrupt_where[0])
        lua_vm_where(L, vm->interrupt_where, sizeof vm->interrupt_where);
    lua_sethook(L, on_count, LUA_MASKCOUNT, 1);
    vm->keeps_garbage = lua_gc(L, LUA_GCSTOP) == 0; // a last checkpoint has what the script held
    lua_pushlightuserdata(L, vm);
    lua_error(L);
}

void lua_vm_check(lua_State *L) {
    LuaVm *vm = lua_vm_of(L);
    atomic_fetch_add_explicit(&vm->pulse.beats, 1, memory_order_relaxed);
    if (lua_vm_interrupted(vm)) {
        luaL_checkstack(L, 1, NULL);
        raise_interrupt(L, vm);
    }
}

static void on_count(lua_State *L, lua_Debug *at) {
    (void)at;
    LuaVm *vm = lua_vm_of(L);
    if (lua_gethookcount(L) != HOOK_INSTRUCTIONS) // it was poked
        vm_guard_hook(L);
    if (vm->options.attend && !lua_vm_interrupted(vm))
        vm->options.attend(vm->options.context);
    lua_vm_check(L);
}

// The machine whose script this thread runs.
static _Thread_local LuaVm *_Atomic answering;

LuaVm *vm_answer(LuaVm *vm) {
    return atomic_exchange(&answering, vm);
}

// On the script's thread, wherever it is: has its next instruction looked at. lua_sethook may be
// called from a signal handler.
static void on_poke(int number) {
    (void)number;
    LuaVm *vm = atomic_load(&answering);
    lua_State *running = vm ? atomic_load(&vm->running) : NULL;
    if (running)
        lua_sethook(running, on_count, LUA_MASKCOUNT, 1);
}

void vm_guard_signal(void) {
    struct sigaction action = {.sa_handler = on_poke, .sa_flags = SA_RESTART};
    sigemptyset(&action.sa_mask);
    sigaction(WATCHDOG_SIGNAL, &action, NULL);
}

void vm_guard_hook(lua_State *L) {
    lua_sethook(L, on_count, LUA_MASKCOUNT, HOOK_INSTRUCTIONS);
}

void lua_vm_enter_engine(lua_State *L) {
    atomic_fetch_add(&lua_vm_of(L)->pulse.engine, 1);
}

void lua_vm_leave_engine(lua_State *L) {
    Pulse *pulse = &lua_vm_of(L)->pulse;
    atomic_fetch_add(&pulse->engine_calls, 1);
    while (atomic_load(&pulse->left)) // somebody else ends the run, and then the process
        nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
    atomic_fetch_add(&pulse->beats, 1);
    atomic_fetch_sub(&pulse->engine, 1);
}

void lua_vm_begin_patience(LuaVm *vm) {
    atomic_fetch_add(&vm->pulse.patience, 1);
}

void lua_vm_end_patience(LuaVm *vm) {
    atomic_fetch_add(&vm->pulse.beats, 1);
    atomic_fetch_sub(&vm->pulse.patience, 1);
}

// ---- the functions that catch errors -----------------------------------------------------------

// After the protected call: `kept` values of ours lie below its results, and `true` below those.
static int end_protected(lua_State *L, int status, lua_KContext kept) {
    lua_vm_check(L);
    if (status == LUA_OK || status == LUA_YIELD)
        return lua_gettop(L) - (int)kept;
    vm_recover(L);
    lua_pushboolean(L, false);
    lua_insert(L, -2);
    return 2;
}

static int guarded_pcall(lua_State *L) {
    luaL_checkany(L, 1);
    lua_pushboolean(L, true);
    lua_insert(L, 1);
    int status = lua_pcallk(L, lua_gettop(L) - 2, LUA_MULTRET, 0, 0, end_protected);
    return end_protected(L, status, 0);
}

// Stands before the script's own message handler. An interrupt is raised inside the hook, where no
// further hook runs: a handler that loops then would never end.
static int careful_handler(lua_State *L) {
    if (lua_vm_interrupted(lua_vm_of(L)))
        return 1;
    lua_settop(L, 1);
    lua_pushvalue(L, lua_upvalueindex(1));
    lua_insert(L, 1);
    lua_call(L, 1, 1);
    return 1;
}

static int guarded_xpcall(lua_State *L) {
    luaL_checktype(L, 2, LUA_TFUNCTION);
    int arguments = lua_gettop(L) - 2;
    lua_pushvalue(L, 2);
    lua_pushcclosure(L, careful_handler, 1);
    lua_replace(L, 2);
    lua_rotate(L, 1, -1); // handler arguments... function
    lua_rotate(L, 2, 1);  // handler function arguments...
    lua_pushboolean(L, true);
    lua_insert(L, 2); // handler true function arguments...
    int status = lua_pcallk(L, arguments, LUA_MULTRET, 1, 1, end_protected);
    return end_protected(L, status, 1);
}

// Calls the library's own function, the upvalue, and looks afterwards.
static int end_guarded(lua_State *L, int status, lua_KContext context) {
    (void)status;
    (void)context;
    lua_vm_check(L);
    return lua_gettop(L);
}

static int call_guarded(lua_State *L) {
    lua_pushvalue(L, lua_upvalueindex(1));
    lua_insert(L, 1);
    lua_callk(L, lua_gettop(L) - 1, LUA_MULTRET, 0, end_guarded);
    return end_guarded(L, LUA_OK, 0);
}

// The compiler catches what a reader function raises; and only a trusted script loads bytecode.
static int guarded_load(lua_State *L) {
    luaL_checkany(L, 1);
    if (!lua_vm_of(L)->options.trust) {
        size_t length = 0;
        const char *text = lua_type(L, 1) == LUA_TSTRING ? lua_tolstring(L, 1, &length) : NULL;
        if (length > 0 && text[0] == LUA_SIGNATURE[0]) {
            lua_pushnil(L);
            lua_pushliteral(L, "compiled Lua (bytecode) is refused: load its source");
            return 2;
        }
        if (lua_gettop(L) < 3)
            lua_settop(L, 3);
        lua_pushliteral(L, "t");
        lua_replace(L, 3);
    }
    return call_guarded(L);
}

// Puts `guard`, with the function now in that field as its upvalue, in its place.
static void guard_field(lua_State *L, int table, const char *name, lua_CFunction guard) {
    lua_getfield(L, table, name);
    lua_pushcclosure(L, guard, 1);
    lua_setfield(L, table, name);
}

void vm_guard_library(lua_State *L) {
    lua_pushglobaltable(L);
    int globals = lua_gettop(L);
    guard_field(L, globals, "pcall", guarded_pcall);
    guard_field(L, globals, "xpcall", guarded_xpcall);
    guard_field(L, globals, "load", guarded_load);
    vm_coroutine_open(L);
    lua_settop(L, globals - 1);
}
