// Scripts come from files with care, and `require` stays in the experiment's folder.
#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/folder.h"
#include "tests/unit/vm_fixture.h"

static char folder[TEST_FOLDER_SIZE];

static const char *place(const char *name) {
    static char path[4][160];
    static int next;
    next = (next + 1) % 4;
    snprintf(path[next], sizeof path[next], "%s/%s", folder, name);
    return path[next];
}

static void put(const char *name, const char *text) {
    FILE *file = fopen(place(name), "w");
    if (file) {
        fputs(text, file);
        fclose(file);
    }
}

static const char *run_file(LuaVmOptions options, const char *name) {
    LuaVm *vm = machine(options);
    bool done = lua_vm_run_file(vm, place(name), 0, &error);
    CHECK_INT(lua_gettop(lua_vm_state(vm)), 0);
    lua_vm_free(vm);
    return done ? "" : error.text;
}

static void files_that_are_no_scripts_are_refused(void) {
    LuaVmOptions none = {0};
    CHECK_CONTAINS(run_file(none, "missing.lua"), "missing.lua: cannot open the script: No such");
    CHECK_INT(error.code, ERROR_USAGE);
    CHECK_CONTAINS(run_file(none, "."), "is a folder");
    mkfifo(place("fifo.lua"), 0600);
    CHECK_CONTAINS(run_file(none, "fifo.lua"), "fifo.lua: is not a regular file");
    put("secret.lua", "");
    chmod(place("secret.lua"), 0);
    if (geteuid() != 0)
        CHECK_CONTAINS(run_file(none, "secret.lua"), "Permission denied");
    put("huge.lua", "");
    CHECK(truncate(place("huge.lua"), SCRIPT_LARGEST + 1) == 0);
    CHECK_CONTAINS(run_file(none, "huge.lua"), "16 MiB");
    put("esc\x1b.lua", "x x");
    CHECK_CONTAINS(run_file(none, "esc\x1b.lua"), "esc\\x1b.lua:1: ");
    put("empty.lua", "");
    CHECK_TEXT(run_file(none, "empty.lua"), "");
}

static void require_reads_files_beside_the_experiment_only(void) {
    LuaVmOptions none = {0};
    mkdir(place("in"), 0700);
    mkdir(place("in/models"), 0700);
    mkdir(place("in/kit"), 0700);
    put("outside.lua", "return 'outside'");
    put("in/side.lua", "return {name = ..., path = select(2, ...)}");
    put("in/models/gan.lua", "loaded = (rawget(_G, 'loaded') or 0) + 1");
    put("in/kit/init.lua", "return 'kit'");
    put("in/bad.lua", "\nx x");
    CHECK(symlink("../outside.lua", place("in/link.lua")) == 0 || errno == EEXIST);
    put("in/good.lua", "local s, p = require 'side' assert(s.name == 'side' and s.path == p) "
                       "assert(p:match 'in/side.lua$' and require 'side' == s) "
                       "assert(require 'models.gan' == true and require 'models.gan' == true) "
                       "assert(loaded == 1 and require 'kit' == 'kit')");
    CHECK_TEXT(run_file(none, "in/good.lua"), "");
    static const struct {
        const char *name, *why;
    } refused[] = {
        {"..outside", "refused"},
        {"../outside", "refused"},
        {"/etc/passwd", "refused"},
        {"models..gan", "refused"},
        {"", "refused"},
        {"a\\0b", "refused"},
        {"link", "leads out of the experiment's folder"},
        {"absent", "not found"},
        {"bad", "bad.lua:2: syntax error"},
        {"mp.core", "not open to scripts"},
        {"mp.strict", "not open to scripts"},
        {"mp.../outside", "not open to scripts"},
    };
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
        char text[128];
        snprintf(text, sizeof text, "require '%s'", refused[i].name);
        put("in/try.lua", text);
        CHECK_CONTAINS(run_file(none, "in/try.lua"), refused[i].why);
    }
}

static int open_probe(lua_State *L) {
    lua_vm_require_inner(L, "mp.vm_probe");
    return 1;
}

// Runs a script whose `mp` is the program's own module vm_probe.
static const char *run_probe(const char *mp_folder, const char *name) {
    LuaVm *vm = machine((LuaVmOptions){.mp_folder = mp_folder});
    bool done =
        lua_vm_preload(vm, "mp", open_probe, &error) && lua_vm_run_file(vm, place(name), 0, &error);
    lua_vm_free(vm);
    return done ? "" : error.text;
}

static void the_folder_of_mp_overrides_what_is_embedded(void) {
    mkdir(place("mp"), 0700);
    put("mp/vm_probe.lua", "return 'overridden'");
    put("override.lua", "assert(require 'mp' == 'overridden')");
    CHECK_TEXT(run_probe(place("mp"), "override.lua"), "");
    CHECK_CONTAINS(run_probe("", "override.lua"), "does not exist");
}

static void globals_of_a_script_do_not_reach_the_programs_own_modules(void) {
    put("mp/vm_probe.lua", "local part = require 'mp.vm_part' return function() "
                           "for _ in pairs { a = 1, b = 2 } do end table.sort { 2, 1 } "
                           "return type(setmetatable({}, {})), ('x'):rep(2), part.secret end");
    put("mp/vm_part.lua", "return { secret = 7 }");
    put("takes.lua", "local seen, ok, open = 0, assert, require\n"
                     "for name, f in pairs(_G) do if type(f) == 'function' then "
                     "_G[name] = function(...) seen = seen + 1 return f(...) end end end\n"
                     "seen, table.sort = 0, false\n"
                     "local kind, text, secret = open 'mp'()\n"
                     "ok(seen == 0 and secret == 7 and kind == 'table' and text == 'xx')");
    CHECK_TEXT(run_probe(place("mp"), "takes.lua"), "");
}

static void scripts_are_kept_with_their_hashes(void) {
    put("part.lua", "abc = 1");
    put("whole.lua", "require 'part' return 1, 2");
    LuaVm *vm = machine((LuaVmOptions){0});
    CHECK(lua_vm_run_file(vm, place("whole.lua"), 2, &error));
    CHECK_INT(lua_tointeger(lua_vm_state(vm), -1), 2);
    lua_settop(lua_vm_state(vm), 0);
    CHECK(lua_vm_run_file(vm, place("whole.lua"), 0, &error));
    size_t count;
    const Script *scripts = lua_vm_scripts(vm, &count);
    CHECK_INT(count, 2);
    CHECK_TEXT(scripts[0].text, "require 'part' return 1, 2");
    CHECK_TEXT(scripts[1].name, place("part.lua"));
    CHECK_TEXT(scripts[1].hash, "61cfa85e2588a31b92d4738e77a79082db9422d7a10e2607dd2320a16b4c70b2");
    lua_vm_free(vm);
}

int main(void) {
    if (!test_folder_make(folder, sizeof folder))
        return 1;
    RUN_TEST(files_that_are_no_scripts_are_refused);
    RUN_TEST(require_reads_files_beside_the_experiment_only);
    RUN_TEST(the_folder_of_mp_overrides_what_is_embedded);
    RUN_TEST(globals_of_a_script_do_not_reach_the_programs_own_modules);
    RUN_TEST(scripts_are_kept_with_their_hashes);
    test_folder_remove(folder);
    return test_end();
}
