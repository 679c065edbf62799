#include "lua/vm.h"

#include <assert.h>
#include <lauxlib.h>
#include <stdlib.h>
#include <string.h>

#include "lua/vm_private.h"

static const size_t default_memory = (size_t)1 << 30;

LuaVm *lua_vm_of(lua_State *L) {
    LuaVm *vm;
    memcpy(&vm, lua_getextraspace(L), sizeof vm); // a new coroutine inherits it
    return vm;
}

lua_State *lua_vm_state(LuaVm *vm) {
    return vm->L;
}

// ---- memory ------------------------------------------------------------------------------------

static void *refuse(LuaVm *vm, size_t size, bool by_system) {
    vm->refused = size ? size : 1;
    vm->refused_beside = vm->memory_used;
    vm->refused_by_system = by_system;
    vm->is_starved = true;
    vm->refused_where[0] = 0;
    // The line is lost once the stack unwinds, so it is taken down here. The main state's own calls
    // are consistent at every allocation, and looking at them allocates nothing.
    if (vm->L && atomic_load(&vm->pulse.calls) > 0)
        lua_vm_where(vm->L, vm->refused_where, sizeof vm->refused_where);
    return NULL;
}

// What the collector calls gets some more, so that it can be called at all: an object whose __gc
// never ran would go while others still know it. Inside, the collector answers with -1.
static bool has_room(const LuaVm *vm, size_t more) {
    enum { RESERVE = 64 << 10 };
    size_t limit = vm->options.memory_limit, used = vm->memory_used;
    if (used <= limit && more <= limit - used)
        return true;
    bool collects = vm->L && lua_gc(vm->L, LUA_GCISRUNNING) < 0;
    return collects && used <= limit + RESERVE && more <= limit + RESERVE - used;
}

static void *allocate(void *context, void *block, size_t old_size, size_t size) {
    LuaVm *vm = context;
    if (!block)
        old_size = 0; // Lua gives the kind of the object instead
    if (size == 0) {
        free(block);
        vm->memory_used -= old_size;
        return NULL;
    }
    if (size > old_size) {
        size_t more = size - old_size;
        if (!has_room(vm, more))
            return refuse(vm, more, false);
        vm->allocations++;
        if (vm->options.allocations && vm->allocations > vm->options.allocations)
            return refuse(vm, more, true);
    }
    void *moved = realloc(block, size);
    if (!moved)
        return size > old_size ? refuse(vm, size - old_size, true) : block;
    vm->memory_used = vm->memory_used - old_size + size;
    return moved;
}

LuaVmAsides lua_vm_asides(const LuaVm *vm) {
    return vm->asides;
}

void vm_recover(lua_State *L) {
    LuaVm *vm = lua_vm_of(L);
    vm->asides.caught++;
    if (!vm->is_starved || vm->charged < vm->options.memory_limit / 64)
        return;
    lua_gc(L, LUA_GCCOLLECT);
    vm->is_starved = false;
    vm->charged = 0;
}

void lua_vm_charge(lua_State *L, size_t bytes) {
    LuaVm *vm = lua_vm_of(L);
    vm->memory_used += bytes;
    vm->charged += bytes;
    if (vm->memory_used <= vm->options.memory_limit)
        return;
    lua_gc(L, LUA_GCCOLLECT);
    if (vm->memory_used <= vm->options.memory_limit)
        return;
    refuse(vm, bytes, false);
    luaL_error(L, "%s", vm_memory_text);
}

void lua_vm_discharge(lua_State *L, size_t bytes) {
    lua_vm_of(L)->memory_used -= bytes;
}

void lua_vm_memory(const LuaVm *vm, size_t *used, size_t *limit) {
    *used = vm->memory_used;
    *limit = vm->options.memory_limit;
}

// ---- calls -------------------------------------------------------------------------------------

bool lua_vm_call(LuaVm *vm, int arguments, int results, Error *error) {
    lua_State *L = vm->L;
    int function = lua_gettop(L) - arguments;
    if (!lua_checkstack(L, 4)) {
        lua_settop(L, function - 1);
        return error_fail(error, ERROR_MEMORY, "no memory to call the script");
    }
    lua_pushcfunction(L, vm_error_handler);
    lua_insert(L, function);
    if (vm->keeps_garbage) {
        lua_gc(L, LUA_GCRESTART);
        vm->keeps_garbage = false;
    }
    vm->refused = 0;
    vm->interrupt_where[0] = 0;
    if (vm->traceback)
        vm->traceback[0] = 0;
    // Lua that is called from inside the engine is Lua all the same.
    int engine = atomic_exchange(&vm->pulse.engine, 0);
    lua_State *running = atomic_exchange(&vm->running, L);
    LuaVm *answering = vm_answer(vm);
    if (atomic_load(&vm->pulse.calls) == 0) {
        vm->pulse.thread = pthread_self();
        vm_guard_hook(L);
    }
    atomic_fetch_add(&vm->pulse.calls, 1);
    atomic_fetch_add(&vm->pulse.beats, 1);
    int status = lua_pcall(L, arguments, results, function);
    atomic_fetch_sub(&vm->pulse.calls, 1);
    atomic_store(&vm->pulse.engine, engine);
    vm_answer(answering);
    atomic_store(&vm->running, running);
    bool done = status == LUA_OK;
    if (!done) {
        vm_error_take(vm, status, error);
        lua_settop(L, function - 1);
    } else {
        lua_remove(L, function);
    }
    return done;
}

bool lua_vm_protect(LuaVm *vm, lua_CFunction function, void *argument, Error *error) {
    if (!lua_checkstack(vm->L, 4))
        return error_fail(error, ERROR_MEMORY, "no memory to call the script");
    lua_pushcfunction(vm->L, function);
    lua_pushlightuserdata(vm->L, argument);
    return lua_vm_call(vm, 1, 0, error);
}

// ---- scripts -----------------------------------------------------------------------------------

const Script *vm_keep_script(LuaVm *vm, Script *script) {
    for (size_t i = 0; i < vm->script_count; i++)
        if (strcmp(vm->scripts[i].name, script->name) == 0 &&
            strcmp(vm->scripts[i].hash, script->hash) == 0) {
            script_clear(script);
            return &vm->scripts[i];
        }
    if (vm->script_count == vm->script_room) {
        size_t room = vm->script_room ? 2 * vm->script_room : 8;
        Script *scripts = realloc(vm->scripts, room * sizeof *scripts);
        if (!scripts) {
            script_clear(script);
            return NULL;
        }
        vm->scripts = scripts;
        vm->script_room = room;
    }
    vm->scripts[vm->script_count] = *script;
    return &vm->scripts[vm->script_count++];
}

const Script *lua_vm_scripts(const LuaVm *vm, size_t *count) {
    *count = vm->script_count;
    return vm->scripts;
}

void vm_compile(lua_State *L, const char *name, const char *text, size_t length) {
    if (length >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0) {
        text += 3; // the mark that some editors put before UTF-8
        length -= 3;
    }
    if (length > 0 && text[0] == LUA_SIGNATURE[0])
        luaL_error(L, "%s: this is compiled Lua (bytecode), which is refused: give its source",
                   name);
    if (length > 0 && text[0] == '#') { // a line for the shell; the line end stays, for the count
        const char *line_end = memchr(text, '\n', length);
        length = line_end ? length - (size_t)(line_end - text) : 0;
        text = line_end ? line_end : text + length;
    }
    const char *chunk = lua_pushfstring(L, "@%s", name);
    if (luaL_loadbufferx(L, text, length, chunk, "t") != LUA_OK)
        lua_error(L);
    lua_remove(L, -2);
}

static int compile_kept(lua_State *L) {
    const Script *script = lua_touserdata(L, 1);
    vm_compile(L, script->name, script->text, script->length);
    return 1;
}

// Takes the experiment over: its folder is where `require` looks.
static bool load(LuaVm *vm, Script *script, Error *error) {
    const char *slash = strrchr(script->name, '/');
    char *folder = strndup(script->name, slash ? (size_t)(slash + 1 - script->name) : 0);
    const Script *kept = vm_keep_script(vm, script);
    if (!folder || !kept || !lua_checkstack(vm->L, 4)) {
        free(folder);
        return error_fail(error, ERROR_MEMORY, "no memory for the script's text");
    }
    free(vm->folder);
    vm->folder = folder;
    lua_pushcfunction(vm->L, compile_kept);
    lua_pushlightuserdata(vm->L, (void *)kept);
    return lua_vm_call(vm, 1, 1, error);
}

bool lua_vm_load_file(LuaVm *vm, const char *path, Error *error) {
    Script script;
    return script_read(&script, path, path, error) && load(vm, &script, error);
}

bool lua_vm_load_text(LuaVm *vm, const char *name, const char *text, size_t length, Error *error) {
    Script script;
    return script_set(&script, name, text, length, error) && load(vm, &script, error);
}

bool lua_vm_run_file(LuaVm *vm, const char *path, int results, Error *error) {
    return lua_vm_load_file(vm, path, error) && lua_vm_call(vm, 0, results, error);
}

// ---- birth and death ---------------------------------------------------------------------------

static int open_everything(lua_State *L) {
    vm_sandbox_open(L);
    return 0;
}

LuaVm *lua_vm_new(const LuaVmOptions *options, Error *error) {
    LuaVm *vm = calloc(1, sizeof *vm);
    if (!vm) {
        error_fail(error, ERROR_MEMORY, "no memory for the script's machine");
        return NULL;
    }
    if (options)
        vm->options = *options;
    if (!vm->options.memory_limit)
        vm->options.memory_limit = default_memory;
    if (!vm->options.mp_folder)
        vm->options.mp_folder = getenv("MPBENCH_LUA");
    lua_vm_seed(vm, 0);
    vm->folder = strdup("");
    vm->L = vm->folder ? lua_newstate(allocate, vm) : NULL;
    if (!vm->L) {
        error_fail(error, ERROR_MEMORY, "no memory for the script's machine");
        goto failed;
    }
    memcpy(lua_getextraspace(vm->L), &vm, sizeof vm);
    WatchdogLimits limits = {vm->options.answer_seconds, vm->options.stuck_seconds};
    if (limits.answer_seconds == 0)
        limits.answer_seconds = 5;
    if (limits.stuck_seconds == 0)
        limits.stuck_seconds = 60;
    const WatchdogCalls calls = {.on_stuck = vm->options.on_stuck,
                                 .stop_wanted = vm->options.stop_wanted,
                                 .step_seconds = vm->options.step_seconds,
                                 .on_left = vm->options.on_left,
                                 .context = vm->options.context};
    vm_guard_signal();
    vm->watchdog = watchdog_new(&vm->pulse, limits, &calls, error);
    if (!vm->watchdog || !lua_vm_protect(vm, open_everything, vm, error))
        goto failed;
    return vm;
failed:
    lua_vm_free(vm);
    return NULL;
}

void lua_vm_free(LuaVm *vm) {
    if (!vm)
        return;
    if (vm->L) {
        // Closing runs what a trusted script asked for in __gc: the watchdog must see it.
        vm->pulse.thread = pthread_self();
        atomic_fetch_add(&vm->pulse.calls, 1);
        lua_close(vm->L);
        atomic_fetch_sub(&vm->pulse.calls, 1);
    }
    watchdog_free(vm->watchdog);
    assert(vm->memory_used == 0);
    for (size_t i = 0; i < vm->script_count; i++)
        script_clear(&vm->scripts[i]);
    free(vm->scripts);
    free(vm->traceback);
    free(vm->folder);
    free(vm);
}
