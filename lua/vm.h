// lua/vm.h: the virtual machine that an experiment runs in: a Lua 5.4 state that cannot take the
// program down.
//
// It owns the state, the sandbox, the memory cap, the interrupt, the watchdog and the texts of the
// scripts it has read. The binding (lua/bind) adds the module `mp` through lua_vm_preload; lua/ and
// the worker call the rest. One thread runs a machine; from any other thread or from a signal
// handler only lua_vm_interrupt may be called. Nothing here prints or exits (but for a script that
// no longer answers, see on_stuck), and no longjmp leaves a function that takes an Error.
//
// What it protects from: mistakes, endless loops, runaway memory, and scripts that would read or
// write files or start programs. What it does not: it is one process, so a fault in Lua itself or
// in the engine is not contained, and a trusted machine (options.trust) may do whatever the user
// may.
#pragma once

#include <lua.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "lua/script.h"

typedef struct LuaVm LuaVm;

typedef struct LuaVmOptions {
    size_t memory_limit;   // bytes that the script may hold; 0: 1 GiB
    bool trust;            // the full library: io, os, debug, package, __gc, bytecode in load
    bool traceback;        // keep a traceback of each error for lua_vm_traceback
    double answer_seconds; // how long an interrupt may go unanswered; 0: 5, negative: for ever
    double stuck_seconds;  // how long one library call may take without one; 0: 60, negative: ever
    const char *mp_folder; // read `mp.NAME` from here first; NULL: $MPBENCH_LUA, "": nowhere
    uint64_t allocations;  // for tests: every later allocation fails; 0: no such limit
    // A line of `print` or `warn`, as the script wrote it: not sanitised. NULL: dropped.
    void (*print)(void *context, const char *text, size_t length);
    // The script has not answered and cannot be stopped from inside. Called once, on the watchdog's
    // thread, while the script's thread still runs: mark the run, then end the process. NULL: a
    // line on standard error and _exit(1).
    void (*on_stuck)(void *context, const char *why);
    // Whether the run is to end, and how long a step takes (0: unknown). Asked on the watchdog's
    // thread, see lua/watchdog.h. NULL: never; unknown.
    bool (*stop_wanted)(void *context);
    double (*step_seconds)(void *context);
    // The run is to end and an engine call in progress goes on; it will not come back. Called once,
    // on the watchdog's thread: end the run, then the process. NULL: such calls are waited for.
    void (*on_left)(void *context);
    // Every few thousand instructions, on the script's thread: must not touch the machine. May
    // wait, with lua_vm_begin_patience. NULL: nothing is to be done.
    void (*attend)(void *context);
    void *context; // of all six
} LuaVmOptions;

// options may be NULL. The machine is the caller's, to lua_vm_free; the options are copied.
LuaVm *lua_vm_new(const LuaVmOptions *options, Error *error);
void lua_vm_free(LuaVm *vm); // NULL is allowed

lua_State *lua_vm_state(LuaVm *vm);
LuaVm *lua_vm_of(lua_State *L); // the machine that a state or coroutine belongs to

// ---- running -----------------------------------------------------------------------------------
// Errors come as one sanitised line "file:line: message"; their code is ERROR_STOPPED after an
// interrupt, ERROR_MEMORY at the memory limit, ERROR_FAILED otherwise.

// Compiles an experiment and leaves its function on the stack; its name gives the folder in which
// `require` looks. The text form is for scripts that come from the history.
MUST_CHECK bool lua_vm_load_file(LuaVm *vm, const char *path, Error *error);
MUST_CHECK bool lua_vm_load_text(LuaVm *vm, const char *name, const char *text, size_t length,
                                 Error *error);
// Calls the function below the `arguments` topmost values, as lua_call does, and leaves `results`
// values (or LUA_MULTRET); on failure it leaves none.
MUST_CHECK bool lua_vm_call(LuaVm *vm, int arguments, int results, Error *error);
// Loads an experiment, runs it, and leaves `results` values.
MUST_CHECK bool lua_vm_run_file(LuaVm *vm, const char *path, int results, Error *error);
// Runs C code that may raise Lua errors; it finds `argument` as a light userdata at index 1.
MUST_CHECK bool lua_vm_protect(LuaVm *vm, lua_CFunction function, void *argument, Error *error);

// The traceback of the last error, sanitised, of several lines; "" without options.traceback.
const char *lua_vm_traceback(const LuaVm *vm);
// The scripts read so far from files or given as text, the experiment first; borrowed.
const Script *lua_vm_scripts(const LuaVm *vm, size_t *count);
void lua_vm_memory(const LuaVm *vm, size_t *used, size_t *limit);

// The generator behind math.random: the same seed gives the same numbers on every machine. Its
// four words are part of a checkpoint.
void lua_vm_seed(LuaVm *vm, uint64_t seed);
void lua_vm_random_state(const LuaVm *vm, uint64_t state[4]);
void lua_vm_set_random_state(LuaVm *vm, const uint64_t state[4]);

// What the script has done so far beside computing: who computes something again without the script
// wants to know that there was nothing.
typedef struct LuaVmAsides {
    uint64_t caught; // errors, by pcall and its like
    uint64_t said;   // lines, by print and warn
} LuaVmAsides;
LuaVmAsides lua_vm_asides(const LuaVm *vm);

// ---- stopping ----------------------------------------------------------------------------------

// Makes the running script end with the error "file:line: reason", which it cannot catch. Any
// thread, and signal handlers. reason is a constant text (NULL: "interrupted"). It stays pending,
// for later calls too, until it is cleared.
void lua_vm_interrupt(LuaVm *vm, const char *reason);
void lua_vm_clear_interrupt(LuaVm *vm);
const char *lua_vm_interrupted(const LuaVm *vm); // the reason, or NULL

// ---- coroutines --------------------------------------------------------------------------------

// What each coroutine has for itself though somebody else keeps it: where in a model the script is.
// It is put back when a coroutine gives way, and again when that one goes on.
typedef struct LuaVmPlaces {
    uint64_t (*place)(void *context);
    void (*move)(void *context, uint64_t place);
    void *context;
} LuaVmPlaces;
void lua_vm_set_places(LuaVm *vm, const LuaVmPlaces *places);

// ---- for C functions that a script calls -------------------------------------------------------

// Raises the interrupt if one is pending; called by long loops, after engine calls, and after
// every lua_pcall that a binding makes, so that nothing swallows it.
void lua_vm_check(lua_State *L);
// A message handler for such calls: where Lua says that a field is nil, tells what was meant, and
// the line, which only it can still see.
int lua_vm_tell_meant(lua_State *L);
// What asks a module for a field that nothing gave it comes to, as the __index of the table that
// has its class's `_name`: nil, and both names are kept in case an error follows.
int lua_vm_note_missing(lua_State *L);
// The name of the class that the value is of, borrowed from it; "" for what is no module.
const char *lua_vm_class_of(lua_State *L, int index);
// fail_in(f, name, text): raises an error that lies in the function f of the script.
int lua_vm_fail_in(lua_State *L);
// Between these two the watchdog waits: the engine is at work. Both may nest. No Lua may run and no
// Lua error may be raised in between.
void lua_vm_enter_engine(lua_State *L);
void lua_vm_leave_engine(lua_State *L);
// Between these two it does, too, and no stop interrupts: the run pauses, or a checkpoint is kept.
void lua_vm_begin_patience(LuaVm *vm);
void lua_vm_end_patience(LuaVm *vm);
// Memory that an object of Lua's stands for beside its own: counted until the object is collected.
// Raises the error of the memory limit, where a collection leaves too little; it is counted then
// all the same.
void lua_vm_charge(lua_State *L, size_t bytes);
void lua_vm_discharge(lua_State *L, size_t bytes);
// `require "name"` will call `open` (as a lua_CFunction: name and ":preload:" in, module out).
// Modules named "mp.NAME", preloaded or part of the program, are its own: scripts cannot require
// them, and no global that a script sets reaches them.
MUST_CHECK bool lua_vm_preload(LuaVm *vm, const char *name, lua_CFunction open, Error *error);
// Pushes one of the program's own modules, or raises an error.
void lua_vm_require_inner(lua_State *L, const char *name);
enum { LUA_VM_WHERE_SIZE = 160 }; // Lua keeps 60 characters of the file
// Writes "file:line: " of the script's innermost function that is still there, and whether the
// error is in one that it called and that ended in a call; "", and false, when there is none.
// Allocates nothing.
bool lua_vm_find_line(lua_State *L, char *out, size_t size);
// The same; where there is none, the script alone.
void lua_vm_where(lua_State *L, char *out, size_t size);
// The same of what is being run now, wherever that is called from.
void lua_vm_where_now(const LuaVm *vm, char *out, size_t size);
// Pushes the table in which the module's own Lua keeps {function, name} while it calls one of the
// script's: what ends in a call, as in `return F.mse(..)`, leaves no other trace of its line.
void lua_vm_push_calling(lua_State *L);
