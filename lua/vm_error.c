#include <lauxlib.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/sanitize.h"
#include "lua/vm_private.h"

// What Lua says when it has no memory, and when a string would pass its own bound of 2 GiB.
const char vm_memory_text[] = "not enough memory";
static const char too_large_text[] = "resulting string too large";

// Its own Lua, of which no user wants the line.
static bool is_of_module(const lua_Debug *at) {
    return strncmp(at->short_src, "mp/", 3) == 0;
}

// One that ended in a call of the module's, as in `return net(x)`, is not there any more, and the
// line is that from which it was called. The module's own functions that scripts call end in none
// (lua/mp/strict.lua). What allocates nothing may be asked where memory was refused.
static bool find_line(lua_State *L, char *out, size_t size, bool *has_own) {
    enum { MOST = 1024 };
    lua_Debug at;
    bool is_left = false;
    for (int level = 0; level < MOST && lua_getstack(L, level, &at); level++) {
        lua_getinfo(L, "Slt", &at);
        bool is_own = is_of_module(&at);
        if (at.currentline > 0 && !is_own) {
            snprintf(out, size, "%s:%d: %s", at.short_src, at.currentline,
                     is_left ? "in what this calls, which ends in `return f(..)`: " : "");
            return true;
        }
        if (at.currentline > 0)
            is_left = at.istailcall;
        *has_own = *has_own || is_own;
    }
    return false;
}

bool lua_vm_find_line(lua_State *L, char *out, size_t size) {
    bool has_own = false;
    out[0] = 0;
    return find_line(L, out, size, &has_own);
}

void lua_vm_where(lua_State *L, char *out, size_t size) {
    bool has_own = false;
    out[0] = 0;
    if (find_line(L, out, size, &has_own))
        return;
    // A script that ends in a call of the module's, as in `return mp.experiment ..`, has no line.
    const LuaVm *vm = lua_vm_of(L);
    if (has_own && vm->script_count > 0)
        snprintf(out, size, "%s: ", vm->scripts[0].name);
}

void lua_vm_where_now(const LuaVm *vm, char *out, size_t size) {
    lua_State *L = atomic_load(&vm->running);
    out[0] = 0;
    if (L)
        lua_vm_where(L, out, size);
}

static const char calling_key; // by its address

void lua_vm_push_calling(lua_State *L) {
    if (lua_rawgetp(L, LUA_REGISTRYINDEX, &calling_key) == LUA_TTABLE)
        return;
    lua_pop(L, 1);
    lua_createtable(L, 2, 0);
    lua_pushvalue(L, -1);
    lua_rawsetp(L, LUA_REGISTRYINDEX, &calling_key);
}

// Where the script's function on top of the stack is; pops it.
static bool find_function(lua_State *L, const char *name, char *out, size_t size) {
    lua_Debug at;
    lua_getinfo(L, ">S", &at);
    if (at.linedefined < 1 || is_of_module(&at))
        return false;
    if (at.lastlinedefined > at.linedefined)
        snprintf(out, size, "%s:%d: in %.20s, which ends at line %d: ", at.short_src,
                 at.linedefined, name, at.lastlinedefined);
    else
        snprintf(out, size, "%s:%d: ", at.short_src, at.linedefined);
    return true;
}

int lua_vm_fail_in(lua_State *L) {
    char where[LUA_VM_WHERE_SIZE] = "";
    luaL_checktype(L, 1, LUA_TFUNCTION);
    lua_pushvalue(L, 1);
    if (!find_function(L, luaL_checkstring(L, 2), where, sizeof where))
        lua_vm_where(L, where, sizeof where);
    lua_pushfstring(L, "%s%s", where, luaL_checkstring(L, 3));
    return lua_error(L);
}

// Where the script's function is that was being called, and has left the stack by ending in a call.
static bool find_called(lua_State *L, char *out, size_t size) {
    const int top = lua_gettop(L);
    lua_vm_push_calling(L);
    lua_rawgeti(L, -1, 2);
    const char *name = lua_tostring(L, -1);
    const bool found =
        lua_rawgeti(L, -2, 1) == LUA_TFUNCTION && name && find_function(L, name, out, size);
    lua_settop(L, top);
    return found;
}

// Does a message begin with "file:line: " or hold it (a path may hold colons too)?
static bool has_place(const char *text) {
    for (const char *colon = strchr(text, ':'); colon; colon = strchr(colon + 1, ':')) {
        size_t digits = strspn(colon + 1, "0123456789");
        if (digits > 0 && colon[1 + digits] == ':')
            return true;
        if (colon[1] == ' ')
            return false; // the end of whatever stands before the message
    }
    return false;
}

// Pushes the fields of a table that was raised as an error, as far as one line shows them.
static void push_fields(lua_State *L, int table) {
    enum { SHOWN = 6 };
    luaL_Buffer text;
    int shown = 0;
    lua_pushnil(L); // the key, kept below the buffer
    int key = lua_gettop(L);
    lua_pushliteral(L, "");
    while (shown < SHOWN) {
        lua_pushvalue(L, key);
        if (!lua_next(L, table))
            break;
        bool plain = lua_type(L, -2) == LUA_TSTRING &&
                     (lua_type(L, -1) == LUA_TSTRING || lua_type(L, -1) == LUA_TNUMBER ||
                      lua_type(L, -1) == LUA_TBOOLEAN);
        lua_pushvalue(L, -2);
        lua_replace(L, key);
        if (plain) {
            const char *name = lua_tostring(L, -2);
            const char *value = luaL_tolstring(L, -1, NULL);
            lua_pushfstring(L, "%s%s%s = %s", lua_tostring(L, key + 1), shown ? ", " : "", name,
                            value);
            lua_replace(L, key + 1);
            shown++;
        }
        lua_settop(L, key + 1);
    }
    lua_settop(L, key + 1);
    luaL_buffinit(L, &text);
    luaL_addstring(&text, "an error that is a table {");
    luaL_addstring(&text, lua_tostring(L, key + 1));
    luaL_addstring(&text, "}");
    luaL_pushresult(&text);
}

// Pushes what the error at index 1 says.
static void push_message(lua_State *L) {
    if (lua_type(L, 1) == LUA_TSTRING)
        lua_pushvalue(L, 1);
    else if (luaL_getmetafield(L, 1, "__tostring") != LUA_TNIL)
        luaL_tolstring(L, 1, NULL);
    else if (lua_istable(L, 1))
        push_fields(L, 1);
    else
        lua_pushfstring(L, "an error that is no text but %s (a %s)", luaL_tolstring(L, 1, NULL),
                        luaL_typename(L, 1));
}

static void keep_traceback(LuaVm *vm, const char *text, size_t length) {
    size_t size = sanitize_text(NULL, 0, text, length) + 1;
    char *kept = realloc(vm->traceback, size);
    if (!kept)
        return; // the message itself is on its way; this is an extra
    vm->traceback = kept;
    sanitize_text(kept, size, text, length);
}

const char *lua_vm_traceback(const LuaVm *vm) {
    return vm->traceback ? vm->traceback : "";
}

// Pushes the message with what was meant, and where it lacks its line.
static void push_placed(lua_State *L, const char *message) {
    char where[LUA_VM_WHERE_SIZE] = "";
    bool has_own = false;
    vm_push_meant(L, message);
    message = lua_tostring(L, -1);
    if (has_place(message))
        return;
    if (!find_line(L, where, sizeof where, &has_own) && !find_called(L, where, sizeof where))
        lua_vm_where(L, where, sizeof where);
    lua_pushfstring(L, "%s%s", where, message);
}

// What else was raised may be caught and looked at by the script.
int lua_vm_tell_meant(lua_State *L) {
    const char *message = lua_type(L, 1) == LUA_TSTRING ? lua_tostring(L, 1) : "";
    if (strstr(message, "attempt to ") == message)
        push_placed(L, message);
    else if (message[0])
        vm_push_meant(L, message);
    return 1;
}

int vm_error_handler(lua_State *L) {
    LuaVm *vm = lua_vm_of(L);
    if (lua_vm_interrupted(vm))
        return 1;
    lua_settop(L, 1);
    push_message(L);
    push_placed(L, lua_tostring(L, -1));
    if (vm->options.traceback) {
        size_t length;
        luaL_traceback(L, L, NULL, 1);
        const char *text = lua_tolstring(L, -1, &length);
        keep_traceback(vm, text, length);
        lua_pop(L, 1);
    }
    return 1;
}

static bool ends_in(const char *text, size_t length, const char *tail) {
    size_t tail_length = strlen(tail);
    return length >= tail_length && memcmp(text + length - tail_length, tail, tail_length) == 0;
}

static bool take_memory_error(const LuaVm *vm, Error *error) {
    char where[LUA_VM_WHERE_SIZE];
    sanitize_line(where, sizeof where, vm->refused_where, strlen(vm->refused_where));
    const double mib = 1024 * 1024;
    if (vm->refused_by_system)
        return error_fail(error, ERROR_MEMORY,
                          "%sthe machine has no memory left: the script holds %.0f MiB and wanted "
                          "%.1f MiB more; keep less, or end other programs",
                          where, (double)vm->refused_beside / mib, (double)vm->refused / mib);
    return error_fail(error, ERROR_MEMORY,
                      "%sscript memory limit (%.0f MiB) reached: %.0f MiB in use and %.1f MiB more "
                      "wanted; keep less in tables, strings and tensors",
                      where, (double)vm->options.memory_limit / mib,
                      (double)vm->refused_beside / mib, (double)vm->refused / mib);
}

bool vm_error_take(LuaVm *vm, int status, Error *error) {
    lua_State *L = vm->L;
    char line[ERROR_TEXT_SIZE];
    const char *reason = lua_vm_interrupted(vm);
    if (reason) {
        char where[LUA_VM_WHERE_SIZE];
        sanitize_line(where, sizeof where, vm->interrupt_where, strlen(vm->interrupt_where));
        return error_fail(error, ERROR_STOPPED, "%s%s", where, reason);
    }
    // Anything else than a string would have to be converted, which may raise an error here.
    const char *text = lua_type(L, -1) == LUA_TSTRING ? lua_tostring(L, -1) : "an unknown error";
    size_t length = lua_type(L, -1) == LUA_TSTRING ? lua_rawlen(L, -1) : strlen(text);
    if (status == LUA_ERRMEM || (vm->refused && ends_in(text, length, vm_memory_text)))
        return take_memory_error(vm, error);
    sanitize_line(line, sizeof line, text, length);
    if (ends_in(text, length, too_large_text) && length < sizeof line)
        return error_fail(error, ERROR_MEMORY, "%.*sscript memory limit (%zu MiB) reached: %s",
                          (int)(strlen(line) - strlen(too_large_text)), line,
                          vm->options.memory_limit >> 20, too_large_text);
    return error_fail(error, ERROR_FAILED, "%s", line);
}
