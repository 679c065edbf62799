// lua/vm_private.h: what the files of the virtual machine share. Nobody else includes it.
//
//   vm.c          the state, its memory, loading and calling
//   vm_error.c    what an error says
//   vm_hint.c     and what was meant
//   vm_guard.c    the interrupt, and the library functions that must not swallow it
//   vm_coroutine.c  coroutines, which must not either
//   vm_sandbox.c  the library that a script sees
//   vm_require.c  `require`
//   vm_random.c   math.random
//   vm_pairs.c    pairs, in an order to rely on
#pragma once

#include "lua/vm.h"
#include "lua/watchdog.h"

enum { VM_NAME_SIZE = 64 };

// A field that a module was asked for and has not, its class, and where the function began that
// asked.
typedef struct VmMissing {
    char name[VM_NAME_SIZE], class[VM_NAME_SIZE], source[LUA_IDSIZE];
    int line;
} VmMissing;

struct LuaVm {
    lua_State *L;
    LuaVmOptions options;
    Pulse pulse;
    Watchdog *watchdog;
    _Atomic(lua_State *) running; // the coroutine whose instructions are being done
    LuaVmPlaces places;

    size_t memory_used;
    uint64_t allocations;                    // made so far
    size_t refused;                          // the size last refused; 0: none since the call began
    size_t refused_beside;                   // what was in use then
    bool refused_by_system;                  // it was not our limit, the machine has no more
    char refused_where[LUA_VM_WHERE_SIZE];   // the line that asked for it
    char interrupt_where[LUA_VM_WHERE_SIZE]; // the line that an interrupt ended

    VmMissing missing; // the last; name "": none yet

    bool is_starved;    // memory was refused, and nothing was collected since
    size_t charged;     // by lua_vm_charge since then
    bool keeps_garbage; // since an interrupt ended the script
    char *traceback;
    char *folder; // of the experiment: "" or ends in '/'
    Script *scripts;
    size_t script_count, script_room;
    uint64_t seed;
    uint64_t random[4];
    LuaVmAsides asides;
};

// ---- vm.c

// After an error that was caught: where memory was refused, what the script let go of is collected
// with all that it stands for, if that is much. The collection before a refusal calls no __gc.
void vm_recover(lua_State *L);
// Takes a script over (also on failure) and gives the copy that is kept, NULL for no memory.
const Script *vm_keep_script(LuaVm *vm, Script *script);
// Compiles a kept text and pushes the function, or raises an error. Only inside a protected call.
void vm_compile(lua_State *L, const char *name, const char *text, size_t length);

// ---- vm_error.c

extern const char vm_memory_text[]; // what Lua says when it has no memory

// Message handler of every protected call: leaves a string "file:line: message".
int vm_error_handler(lua_State *L);
// Fills the error from the value on top of the stack; always false.
bool vm_error_take(LuaVm *vm, int status, Error *error);

// ---- vm_hint.c

// Pushes the message; where it says that a field is nil, with what was meant, of what the function
// at hand knows that has fields, and of the module that has no such field, where it is one;
// likewise where it ends in "got nil", and the function of the script has asked a module for a
// field that it has not. Within a message handler.
void vm_push_meant(lua_State *L, const char *message);

// ---- vm_guard.c

void vm_guard_hook(lua_State *L); // the count hook, on a state and on coroutines made from it
void vm_guard_signal(void);       // what pokes are answered with, for the whole process
LuaVm *vm_answer(LuaVm *vm);      // this thread's pokes are for it; the one before
void vm_guard_library(lua_State *L);

// ---- vm_coroutine.c

void vm_coroutine_open(lua_State *L); // replaces the functions that run coroutines

// ---- vm_sandbox.c, vm_require.c, vm_random.c: all run inside a protected call

void vm_sandbox_open(lua_State *L);
int vm_require(lua_State *L);      // upvalue 1: the library's own, or nil
void vm_inner_open(lua_State *L);  // what the program's own modules see; the sandbox is open
void vm_pairs_open(lua_State *L);  // replaces the global function
void vm_random_open(lua_State *L); // replaces two functions in the table on top of the stack
