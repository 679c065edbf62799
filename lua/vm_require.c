// `require`: for scripts the module `mp` and files beside the experiment or below its folder,
// nothing else, unless the machine is trusted. For the program's own half of `mp`, which scripts
// neither name nor reach, the other parts of it (`mp.NAME`): it has a `require`, a list of what is
// loaded and globals of its own, so that no script can put a function of its own in their place.
#define _XOPEN_SOURCE 700 // realpath
#include <ctype.h>
#include <errno.h>
#include <lauxlib.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/embedded.h"
#include "base/nearest.h"
#include "lua/vm_private.h"

enum { PATH_SIZE = 1024, LONGEST_NAME = 200 };

// Fields of the registry.
static const char inner_loaded[] = "vm.inner.loaded", inner_preload[] = "vm.inner.preload",
                  inner_globals[] = "vm.inner.globals";

static bool is_inner(const char *name) {
    return strncmp(name, "mp.", 3) == 0;
}

// "models.gan" or "models/gan": letters, digits, '_' and '-' in parts that are not empty, so that
// neither ".." nor "/etc" can be written.
static bool is_module_name(const char *name, size_t length) {
    if (length == 0 || length > LONGEST_NAME)
        return false;
    bool part = false;
    for (size_t i = 0; i < length; i++) {
        unsigned char c = (unsigned char)name[i];
        bool letter = isalnum(c) || c == '_' || c == '-' || c >= 0x80;
        if (!letter && !((c == '.' || c == '/') && part))
            return false;
        part = letter;
    }
    return part;
}

// What became of the search for a file.
typedef enum Found { FOUND, ABSENT, REFUSED } Found;

// Reads folder + file, keeps it, and gives the copy.
static Found read_below(LuaVm *vm, const char *folder, const char *file, const Script **kept,
                        Error *error) {
    char path[PATH_SIZE];
    if ((size_t)snprintf(path, sizeof path, "%s%s", folder, file) >= sizeof path) {
        error_fail(error, ERROR_USAGE, "the path of %s is too long", file);
        return REFUSED;
    }
    char *real_file = realpath(path, NULL);
    if (!real_file)
        return errno == ENOENT || errno == ENOTDIR
                   ? ABSENT
                   : (error_fail(error, ERROR_FAILED, "%s: %s", path, error_cause(errno)), REFUSED);
    char *real_folder = realpath(folder[0] ? folder : ".", NULL);
    Script script;
    Found found = REFUSED;
    if (!real_folder) {
        error_fail(error, ERROR_FAILED, "%s: %s", folder, error_cause(errno));
    } else if (!script_lies_below(real_folder, real_file)) {
        error_fail(error, ERROR_USAGE, "%s leads out of the experiment's folder", path);
    } else if (script_read(&script, real_file, path, error)) {
        *kept = vm_keep_script(vm, &script);
        found = *kept ? FOUND : REFUSED;
        if (!*kept)
            error_fail(error, ERROR_MEMORY, "%s: no memory for the script's text", path);
    }
    free(real_folder);
    free(real_file);
    return found;
}

// Pushes the function of `mp.NAME` and what it was made from.
static bool find_embedded(lua_State *L, const char *name) {
    LuaVm *vm = lua_vm_of(L);
    const char *part = name + strlen("mp.");
    const char *folder = vm->options.mp_folder;
    if (folder && folder[0]) {
        Error error;
        const Script *script = NULL;
        const char *base = lua_pushfstring(L, "%s/", folder);
        const char *file = lua_pushfstring(L, "%s.lua", part);
        Found found = read_below(vm, base, file, &script, &error);
        if (found == REFUSED)
            return luaL_error(L, "module '%s': %s", name, error.text);
        if (found == FOUND) {
            vm_compile(L, script->name, script->text, script->length);
            lua_pushstring(L, script->name);
            return true;
        }
    }
    Nearest nearest;
    nearest_begin(&nearest, part);
    for (const EmbeddedText *file = embedded_lua; file->name; file++) {
        if (strcmp(file->name, part) == 0) {
            const char *shown = lua_pushfstring(L, "mp/%s.lua", part);
            vm_compile(L, shown, file->text, file->length);
            lua_pushstring(L, shown);
            return true;
        }
        nearest_offer(&nearest, file->name);
    }
    if (nearest.best)
        return luaL_error(L, "module '%s' does not exist; did you mean 'mp.%s'?", name,
                          nearest.best);
    return luaL_error(L, "module '%s' does not exist", name);
}

// Pushes the function of a file beside the experiment and its path.
static bool find_beside(lua_State *L, const char *name, size_t length) {
    static const char *const endings[] = {".lua", "/init.lua"};
    LuaVm *vm = lua_vm_of(L);
    if (!is_module_name(name, length))
        return luaL_error(L,
                          "require '%s': give the name of a file beside the experiment without "
                          "'.lua', as in \"models.gan\"; paths that lead elsewhere are refused",
                          name);
    for (size_t i = 0; i < sizeof endings / sizeof endings[0]; i++) {
        Error error;
        const Script *script = NULL;
        const char *stem = luaL_gsub(L, name, ".", "/");
        const char *file = lua_pushfstring(L, "%s%s", stem, endings[i]);
        Found found = read_below(vm, vm->folder, file, &script, &error);
        if (found == REFUSED)
            return luaL_error(L, "module '%s': %s", name, error.text);
        if (found == FOUND) {
            vm_compile(L, script->name, script->text, script->length);
            lua_pushstring(L, script->name);
            return true;
        }
        lua_pop(L, 2);
    }
    return false;
}

static int not_found(lua_State *L, const char *name) {
    static const char *const withheld[] = {"io", "os", "debug", "package"};
    for (size_t i = 0; i < sizeof withheld / sizeof withheld[0]; i++)
        if (strcmp(name, withheld[i]) == 0)
            return luaL_error(L,
                              "module '%s' is not open to scripts; run with --trust if you "
                              "trust this one",
                              name);
    const char *file = luaL_gsub(L, name, ".", "/");
    return luaL_error(L,
                      "module '%s' not found: no file %s%s.lua; scripts may require \"mp\" and "
                      "files beside the experiment",
                      name, lua_vm_of(L)->folder, file);
}

// Pushes a loader and what to give it as second argument; false: nobody knows the module.
static bool find(lua_State *L, const char *name, size_t length) {
    luaL_getsubtable(L, LUA_REGISTRYINDEX, LUA_PRELOAD_TABLE);
    if (lua_getfield(L, -1, name) != LUA_TNIL) {
        lua_pushliteral(L, ":preload:");
        return true;
    }
    return find_beside(L, name, length);
}

// Calls the loader below its data, both on top, with the module's name and the data; leaves the
// module, which is also kept in the table at index 2.
static void load_module(lua_State *L, const char *name) {
    lua_pushstring(L, name);
    lua_insert(L, -2);
    lua_call(L, 2, 1);
    if (lua_isnil(L, -1) && lua_getfield(L, 2, name) == LUA_TNIL)
        lua_pushboolean(L, true);
    lua_pushvalue(L, -1);
    lua_setfield(L, 2, name);
}

int vm_require(lua_State *L) {
    size_t length;
    const char *name = luaL_checklstring(L, 1, &length);
    if (is_inner(name))
        return luaL_error(L,
                          "module '%s' is not open to scripts: write local mp = require \"mp\", "
                          "which has all of it",
                          name);
    lua_settop(L, 1);
    luaL_getsubtable(L, LUA_REGISTRYINDEX, LUA_LOADED_TABLE);
    if (lua_getfield(L, 2, name) != LUA_TNIL)
        return 1;
    lua_settop(L, 2);
    if (!find(L, name, length)) {
        if (lua_isnil(L, lua_upvalueindex(1)))
            return not_found(L, name);
        lua_pushvalue(L, lua_upvalueindex(1));
        lua_pushvalue(L, 1);
        lua_call(L, 1, LUA_MULTRET);
        return lua_gettop(L) - 2;
    }
    lua_pushvalue(L, -1);
    lua_insert(L, 3); // the data, kept as the second result
    load_module(L, name);
    lua_pushvalue(L, 3);
    return 2;
}

// ---- the program's own half ---------------------------------------------------------------------

static int require_inner(lua_State *L) {
    const char *name = luaL_checkstring(L, 1);
    lua_settop(L, 1);
    luaL_getsubtable(L, LUA_REGISTRYINDEX, inner_loaded);
    if (lua_getfield(L, 2, name) != LUA_TNIL)
        return 1;
    lua_settop(L, 2);
    luaL_getsubtable(L, LUA_REGISTRYINDEX, inner_preload);
    if (lua_getfield(L, 3, name) != LUA_TNIL) {
        lua_pushliteral(L, ":preload:");
    } else {
        if (!is_inner(name))
            return luaL_error(L, "module '%s' is no part of mp", name);
        find_embedded(L, name);
        lua_getfield(L, LUA_REGISTRYINDEX, inner_globals);
        lua_setupvalue(L, -3, 1); // what it knows as _ENV
    }
    load_module(L, name);
    return 1;
}

void lua_vm_require_inner(lua_State *L, const char *name) {
    lua_pushcfunction(L, require_inner);
    lua_pushstring(L, name);
    lua_call(L, 1, 1);
}

static int set_preload(lua_State *L) {
    const char *name = lua_touserdata(L, 1);
    luaL_getsubtable(L, LUA_REGISTRYINDEX, is_inner(name) ? inner_preload : LUA_PRELOAD_TABLE);
    lua_pushvalue(L, 2);
    lua_setfield(L, -2, name);
    return 0;
}

bool lua_vm_preload(LuaVm *vm, const char *name, lua_CFunction open, Error *error) {
    if (!lua_checkstack(vm->L, 4))
        return error_fail(error, ERROR_MEMORY, "no memory for the module %s", name);
    lua_pushcfunction(vm->L, set_preload);
    lua_pushlightuserdata(vm->L, (void *)name);
    lua_pushcfunction(vm->L, open);
    return lua_vm_call(vm, 2, 0, error);
}

// Copies the fields of the table at `from` into the one on top of the stack.
static void copy_fields(lua_State *L, int from) {
    lua_pushnil(L);
    while (lua_next(L, from)) {
        lua_pushvalue(L, -2);
        lua_insert(L, -2);
        lua_rawset(L, -4);
    }
}

void vm_inner_open(lua_State *L) {
    static const char *const libraries[] = {"string", "table", "math", "coroutine"};
    int top = lua_gettop(L);
    lua_newtable(L);
    lua_pushglobaltable(L);
    lua_insert(L, top + 1); // the scripts' globals, then our own
    copy_fields(L, top + 1);
    for (size_t i = 0; i < sizeof libraries / sizeof *libraries; i++) {
        lua_getfield(L, top + 1, libraries[i]);
        lua_newtable(L);
        copy_fields(L, top + 3);
        lua_setfield(L, top + 2, libraries[i]);
        lua_settop(L, top + 2);
    }
    lua_pushcfunction(L, require_inner);
    lua_setfield(L, top + 2, "require");
    lua_setfield(L, LUA_REGISTRYINDEX, inner_globals);
    lua_settop(L, top);
}
