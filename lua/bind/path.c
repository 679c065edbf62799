// Which files a script may have read: one rule for all that takes a path.
//
// A file lies beside the experiment or below its folder, once every link is followed; or somebody
// typed its path, or that of a folder above it, with --set. A path that was typed is one from where
// the program was started, any other one from the experiment's folder. A trusted script may name
// any file.
#define _XOPEN_SOURCE 700 // realpath
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "lua/bind/bind.h"

enum { LONGEST_PATH = 4096 };

// The value of --set that names the path or a folder above it; NULL: none does.
static const char *typed_above(const Session *session, const char *path) {
    const RunOptions *options = session->run->options;
    for (int i = 0; i < options->setting_count; i++) {
        const char *value = options->settings[i].value;
        if (value[0] && script_lies_below(value, path))
            return value;
    }
    return NULL;
}

// Where the path leads once links are followed; of one that is not there, where the part of it does
// that is. The caller frees it; NULL: nowhere.
static char *follow(const char *path) {
    char part[LONGEST_PATH];
    memcpy(part, path, strlen(path) + 1);
    for (;;) {
        char *real = realpath(part[0] ? part : ".", NULL);
        char *slash = strrchr(part, '/');
        const char *name = slash ? slash + 1 : part;
        if (real || errno == EACCES || !part[0] || strcmp(name, "..") == 0)
            return real;
        if (slash == part && !part[1])
            return NULL;
        slash = slash == part ? slash + 1 : slash ? slash : part;
        *slash = 0;
    }
}

static bool leads_below(const char *folder, const char *path) {
    char *real_folder = realpath(folder[0] ? folder : ".", NULL), *real = follow(path);
    bool is_below = real_folder && real && script_lies_below(real_folder, real);
    free(real_folder);
    free(real);
    return is_below;
}

// What was typed and is not there is told to be that.
static void require_typed(lua_State *L, const char *function, const char *typed) {
    char *real = realpath(typed, NULL);
    int problem = errno;
    bool is_there = real != NULL;
    free(real);
    if (!is_there)
        bind_error(L,
                   "%s: %.200s: %s; what --set names counts from where the program was started: "
                   "check the path",
                   function, typed, error_cause(problem));
}

const char *bind_path(lua_State *L, const char *function, const char *path) {
    const Session *session = session_of(L);
    size_t count;
    const Script *scripts = lua_vm_scripts(session->vm, &count);
    const char *slash = count > 0 ? strrchr(scripts[0].name, '/') : NULL;
    const char *typed = typed_above(session, path), *found = path;
    lua_pushlstring(L, count > 0 ? scripts[0].name : "",
                    slash ? (size_t)(slash - scripts[0].name) + 1 : 0);
    const char *folder = lua_tostring(L, -1);
    if (!typed && path[0] != '/')
        found = lua_pushfstring(L, "%s%s", folder, path);
    if (strlen(found) >= LONGEST_PATH)
        bind_error(L, "%s: %.80s..: the path is too long", function, path);
    if (!session->trust && typed)
        require_typed(L, function, typed);
    if (!session->trust && !leads_below(typed ? typed : folder, found))
        bind_error(L,
                   "%s: %.200s: a script reads files that lie beside it, or whose path or folder "
                   "was given with --set",
                   function, path);
    return found;
}
