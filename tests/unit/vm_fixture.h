// tests/unit/vm_fixture.h: machines for tests of scripts: what is printed is collected, and a text
// runs to "" or its error.
#pragma once

#include "lua/vm.h"
#include "tests/test.h"

static Error error;
static char printed[400];

static inline void collect(void *context, const char *text, size_t length) {
    (void)context;
    size_t used = strlen(printed);
    if (used + length + 2 < sizeof printed) {
        memcpy(printed + used, text, length);
        memcpy(printed + used + length, "\n", 2);
    }
}

static inline LuaVm *machine(LuaVmOptions options) {
    printed[0] = 0;
    error = (Error){0};
    options.print = collect;
    LuaVm *vm = lua_vm_new(&options, &error);
    CHECK_MESSAGE(vm, "%s", error.text);
    return vm;
}

static inline bool run_in(LuaVm *vm, const char *text) {
    error = (Error){0};
    return lua_vm_load_text(vm, "exp.lua", text, strlen(text), &error) &&
           lua_vm_call(vm, 0, 0, &error);
}

// Runs a text in a machine of its own: "" or the error.
static inline const char *run_with(LuaVmOptions options, const char *text) {
    LuaVm *vm = machine(options);
    if (!vm)
        return "no machine";
    bool done = run_in(vm, text);
    CHECK_INT(lua_gettop(lua_vm_state(vm)), 0);
    lua_vm_free(vm);
    return done ? "" : error.text;
}

static inline const char *run(const char *text) {
    return run_with((LuaVmOptions){0}, text);
}
