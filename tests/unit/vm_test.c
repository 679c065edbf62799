// The machine that scripts run in: each fault of a script leads to one line, and nothing gets out.
#include <lauxlib.h>
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "lua/vm.h"
#include "tests/test.h"

static Error error;
static char printed[400];

static void collect(void *context, const char *text, size_t length) {
    (void)context;
    size_t used = strlen(printed);
    if (used + length + 2 < sizeof printed) {
        memcpy(printed + used, text, length);
        memcpy(printed + used + length, "\n", 2);
    }
}

static LuaVm *machine(LuaVmOptions options) {
    printed[0] = 0;
    error = (Error){0};
    options.print = collect;
    LuaVm *vm = lua_vm_new(&options, &error);
    CHECK_MESSAGE(vm, "%s", error.text);
    return vm;
}

static bool run_in(LuaVm *vm, const char *text) {
    error = (Error){0};
    return lua_vm_load_text(vm, "exp.lua", text, strlen(text), &error) &&
           lua_vm_call(vm, 0, 0, &error);
}

// Runs a text in a machine of its own: "" or the error.
static const char *run_with(LuaVmOptions options, const char *text) {
    LuaVm *vm = machine(options);
    if (!vm)
        return "no machine";
    bool done = run_in(vm, text);
    CHECK_INT(lua_gettop(lua_vm_state(vm)), 0);
    lua_vm_free(vm);
    return done ? "" : error.text;
}

static const char *run(const char *text) {
    return run_with((LuaVmOptions){0}, text);
}

// ---- errors ------------------------------------------------------------------------------------

static void errors_name_file_and_line(void) {
    CHECK_TEXT(run("\nx = = 1"), "exp.lua:2: unexpected symbol near '='");
    CHECK_INT(error.code, ERROR_FAILED);
    CHECK_TEXT(run("local t\n\nt.x = 1"), "exp.lua:3: attempt to index a nil value (local 't')");
    CHECK_TEXT(run("error 'boom'"), "exp.lua:1: boom");
    CHECK_TEXT(run("\nerror('boom', 0)"), "exp.lua:2: boom");
    CHECK_TEXT(run("#!/usr/bin/mpbench\nerror 'boom'"), "exp.lua:2: boom");
    CHECK_TEXT(run("\xef\xbb\xbf"
                   "error 'boom'"),
               "exp.lua:1: boom");
    CHECK_TEXT(run("coroutine.wrap(function() error 'inside' end)()"), "exp.lua:1: inside");
}

static void error_objects_are_made_visible(void) {
    CHECK_TEXT(run("error { code = 3 }"), "exp.lua:1: an error that is a table {code = 3}");
    CHECK_TEXT(run("error {}"), "exp.lua:1: an error that is a table {}");
    CHECK_TEXT(run("error()"), "exp.lua:1: an error that is no text but nil (a nil)");
    CHECK_TEXT(run("error(42)"), "exp.lua:1: an error that is no text but 42 (a number)");
    CHECK_TEXT(run("error(setmetatable({}, {__tostring = function() return 'mine' end}))"),
               "exp.lua:1: mine");
    CHECK_CONTAINS(run("error(setmetatable({}, {__tostring = function() return {} end}))"),
                   "'__tostring' must return a string");
    CHECK_TEXT(run("error '\\27[2J\\nx'"), "exp.lua:1: \\x1b[2J\\nx");
    char text[] = "local t = {} for i = 1, 100 do t['k'..i] = ('v'):rep(100) end error(t)";
    CHECK_CONTAINS(run(text), "an error that is a table {k");
}

static void deep_recursion_and_many_arguments_are_errors(void) {
    CHECK_CONTAINS(run("local function f() return 1 + f() end f()"), "exp.lua:1: stack overflow");
    CHECK_CONTAINS(run("local t = {} for i = 1, 1e6 do t[i] = i end print(table.unpack(t))"),
                   "too many results to unpack");
    CHECK_CONTAINS(run("string.rep('x', 10, ''):byte(1, -1) string.byte(('x'):rep(2e6), 1, -1)"),
                   "string slice too long");
    CHECK_CONTAINS(run("local s = ('('):rep(1e5) assert(load('return ' .. s))"), "overflow");
    CHECK_CONTAINS(run("local function f() coroutine.wrap(f)() end f()"), "overflow");
    CHECK_CONTAINS(run("local t = setmetatable({}, {}) getmetatable(t).__index = function(_, k) "
                       "return t[k] end return t.x"),
                   "overflow");
    CHECK_CONTAINS(run("xpcall(error, function() error() end) error 'after'"), "after");
    CHECK_CONTAINS(run("local function f() return pcall(f) end f() error 'after'"), "after");
    CHECK_CONTAINS(run("string.find(('a'):rep(3e5), ('a?'):rep(3e5))"), "too complex");
}

static void a_traceback_is_kept_on_request(void) {
    LuaVm *vm = machine((LuaVmOptions){.traceback = true});
    CHECK(!run_in(vm, "local function inner() error 'boom' end\nlocal function outer() inner() end "
                      "outer()"));
    CHECK_TEXT(error.text, "exp.lua:1: boom");
    CHECK_CONTAINS(lua_vm_traceback(vm), "'inner'");
    CHECK(run_in(vm, "return 1"));
    CHECK_TEXT(lua_vm_traceback(vm), "");
    lua_vm_free(vm);
}

// ---- the sandbox -------------------------------------------------------------------------------

static void what_is_withheld_names_trust(void) {
    static const char *const names[] = {
        "io.open('x')",    "os.execute('ls')",  "os.remove('x')",
        "debug.sethook()", "package.loadlib()", "dofile('x')",
        "loadfile('x')",   "require 'io'",      "require 'package'"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        const char *text = run(names[i]);
        CHECK_CONTAINS(text, "exp.lua:1: ");
        CHECK_CONTAINS(text, "--trust");
    }
    CHECK_TEXT(run("assert(os.time() > 0 and os.clock() >= 0 and #os.date() > 0)"), "");
    CHECK_TEXT(run("assert(not rawget(_G, 'io') and not string.dump)"), "");
}

static void unknown_globals_name_the_nearest(void) {
    CHECK_TEXT(run("pritn(1)"), "exp.lua:1: 'pritn' is not defined; did you mean 'print'?");
    CHECK_TEXT(run("tabel.insert({}, 1)"),
               "exp.lua:1: 'tabel' is not defined; did you mean 'table'?");
    CHECK_TEXT(run("return qqqqqqq"), "exp.lua:1: 'qqqqqqq' is not defined");
    CHECK_CONTAINS(run("return mp.nn"), "require \"mp\"");
    CHECK_CONTAINS(run("unpack {}"), "table.unpack");
    CHECK_TEXT(run("a = nil; b = a; a = 1; a = nil; c = a; assert(a == nil)"), "");
}

static void bytecode_is_refused(void) {
    CHECK_TEXT(run("\x1bLua"),
               "exp.lua: this is compiled Lua (bytecode), which is refused: give its source");
    CHECK_CONTAINS(run("assert(load('\\27Lua'))"), "bytecode");
    CHECK_CONTAINS(run("assert(load('\\27Lua', 'x', 'b'))"), "bytecode");
    CHECK_CONTAINS(run("local n = 0 assert(load(function() n = n + 1 return n == 1 and '\\27Lua' "
                       "or nil end, 'x', 'bt'))"),
                   "binary chunk");
    CHECK_TEXT(run("local e = {} assert(load('x = 1', 'c', 't', e))() assert(e.x == 1)"), "");
    CHECK_TEXT(run("assert(load('return ...'))(1)"), "");
}

static void metatables_cannot_be_tampered_with(void) {
    CHECK_CONTAINS(run("setmetatable({}, {__gc = function() end})"), "__gc");
    CHECK_TEXT(run("local m = {} setmetatable({}, m) m.__gc = function() error 'ran' end "
                   "collectgarbage() collectgarbage()"),
               "");
    CHECK_TEXT(run("assert(getmetatable('') == false and getmetatable(_G) == false)"), "");
    CHECK_CONTAINS(run("setmetatable(_G, {})"), "protected");
    CHECK_CONTAINS(run("setmetatable(os, nil)"), "protected");
    CHECK_CONTAINS(run("setmetatable({})"), "nil or table");
    CHECK_CONTAINS(run("setmetatable(1, {})"), "table expected");
    CHECK_TEXT(run("local t = setmetatable({}, {__index = {x = 1}}) assert(t.x == 1)"), "");
    CHECK_CONTAINS(run("collectgarbage 'stop'"), "not open to scripts");
    CHECK_TEXT(run("assert(collectgarbage 'count' > 0) collectgarbage()"), "");
}

static void trust_opens_the_library(void) {
    LuaVmOptions trusted = {.trust = true};
    CHECK_TEXT(run_with(trusted, "assert(io.open and os.getenv and debug.getinfo and dofile)"), "");
    CHECK_TEXT(run_with(trusted, "setmetatable({}, {__gc = function() end}) collectgarbage 'stop'"),
               "");
    CHECK_TEXT(run_with(trusted, "assert(load(string.dump(function() return 1 end)))()"), "");
    CHECK_TEXT(run_with(trusted, "assert(require 'io' == io)"), "");
    CHECK_CONTAINS(run_with(trusted, "require 'not_there'"), "not_there");
}

static void pairs_stand_a_table_that_grows_meanwhile(void) {
    LuaVmOptions trusted = {.trust = true}; // who alone has __gc
    CHECK_TEXT(run_with(trusted,
                        "collectgarbage 'generational' "
                        "for i = 1, 2000 do local t = { a = 1, b = 2 } local function grow() "
                        "for k = 1, 200 do t['x' .. k .. '_' .. i] = 1 end end "
                        "for _ = 1, 3 do setmetatable({}, { __gc = grow }) end "
                        "pcall(function() for key in pairs(t) do assert(t[key]) end end) end"),
               "");
}

static void guarded_functions_keep_their_meaning(void) {
    CHECK_TEXT(run("local ok, a, b = pcall(function(...) return ... end, 1, nil) "
                   "assert(ok and a == 1 and b == nil) "
                   "assert(select('#', pcall(function() return nil, nil end)) == 3) "
                   "local bad, why = pcall(error, 'x') assert(bad == false and why == 'x')"),
               "");
    CHECK_TEXT(run("local ok, a, b = xpcall(function(...) return ... end, print, 1, 2) "
                   "assert(ok and a == 1 and b == 2) "
                   "local no, m, n = xpcall(error, function(e) return e .. '!', 9 end, 'x') "
                   "assert(no == false and m == 'x!' and n == nil)"),
               "");
    CHECK_TEXT(run("local co = coroutine.create(function() "
                   "local ok, v = pcall(function() return coroutine.yield(1) + 1 end) "
                   "local ok2, w = xpcall(function() coroutine.yield(2) error 'e' end, "
                   "function(e) return 'h' end) return ok, v, ok2, w end) "
                   "local _, a = coroutine.resume(co) local _, b = coroutine.resume(co, 41) "
                   "local _, ok, v, ok2, w = coroutine.resume(co) "
                   "assert(a == 1 and b == 2 and ok and v == 42 and not ok2 and w == 'h') "
                   "assert(coroutine.close(co) and coroutine.status(co) == 'dead')"),
               "");
    CHECK_CONTAINS(run("pcall()"), "bad argument #1");
    CHECK_CONTAINS(run("xpcall(print)"), "bad argument #2");
    CHECK_CONTAINS(run("coroutine.resume(1)"), "coroutine expected");
}

static void print_reaches_the_log(void) {
    CHECK_TEXT(run("print('a', 1, nil, true) print() warn('w', 'x')"), "");
    CHECK_TEXT(printed, "a\t1\tnil\ttrue\n\nwarning: wx\n");
}

static void random_numbers_repeat(void) {
    const char *text = "local t = {} for i = 1, 20 do t[i] = math.random(1000) end "
                       "print(table.concat(t, ' '), math.random(), math.random(0))";
    char first[sizeof printed];
    CHECK_TEXT(run(text), "");
    strcpy(first, printed);
    CHECK_TEXT(run(text), "");
    CHECK_TEXT(printed, first);
    LuaVm *vm = machine((LuaVmOptions){0});
    lua_vm_seed(vm, 7);
    CHECK(run_in(vm, text) && strcmp(printed, first) != 0);
    uint64_t state[4];
    lua_vm_random_state(vm, state);
    printed[0] = 0;
    CHECK(run_in(vm, text));
    strcpy(first, printed);
    lua_vm_set_random_state(vm, state);
    printed[0] = 0;
    CHECK(run_in(vm, text));
    CHECK_TEXT(printed, first);
    lua_vm_free(vm);
    CHECK_TEXT(run("for i = 1, 1000 do local x = math.random() assert(x >= 0 and x < 1) "
                   "local n = math.random(-3, 3) assert(n >= -3 and n <= 3) end "
                   "math.random(math.mininteger, math.maxinteger) "
                   "math.randomseed(5) local a = math.random(1e9) math.randomseed(5.0) "
                   "assert(a == math.random(1e9)) math.randomseed(0.5) math.randomseed() "
                   "math.randomseed(1, 2) assert(math.random(5, 5) == 5)"),
               "");
    CHECK_CONTAINS(run("math.random(2, 1)"), "interval is empty");
    CHECK_CONTAINS(run("math.random(1, 2, 3)"), "not 3");
    CHECK_CONTAINS(run("math.random(1.5)"), "no integer representation");
}

// ---- memory ------------------------------------------------------------------------------------

static void the_memory_limit_holds(void) {
    LuaVmOptions small = {.memory_limit = 8 << 20};
    static const char *const greedy[] = {
        "local s = ('x'):rep(1 << 33)",
        "local s = ('x'):rep(1 << 30)",
        "local t = {} for i = 1, 1e9 do t[i] = i end",
        "local t = {} for i = 1, 1e9 do t[i] = {i} end",
        "local s = 'x' while true do s = s .. s end",
        "local t = {} for i = 1, 30 do t[i] = ('x'):rep(1 << 19) end return table.concat(t)",
        "coroutine.wrap(function() local t = {} while true do t[#t + 1] = {} end end)()",
        "string.gsub(('x'):rep(1 << 20), '.', ('y'):rep(1000))",
    };
    for (size_t i = 0; i < sizeof greedy / sizeof greedy[0]; i++) {
        CHECK_CONTAINS(run_with(small, greedy[i]), "script memory limit (8 MiB) reached: ");
        CHECK_INT(error.code, ERROR_MEMORY);
        CHECK_CONTAINS(error.text, "exp.lua:1: ");
    }
    LuaVm *vm = machine(small);
    CHECK(!run_in(vm, "local t = {} for i = 1, 1e9 do t[i] = i end"));
    CHECK(run_in(vm, "local ok, e = pcall(string.rep, 'x', 1 << 30) assert(not ok) "
                     "assert(e == 'not enough memory')"));
    size_t used, limit;
    lua_vm_memory(vm, &used, &limit);
    CHECK(used > 0 && used < limit);
    CHECK_INT(limit, 8 << 20);
    lua_vm_free(vm);
    CHECK_CONTAINS(run("local s = ('x'):rep(math.maxinteger)"), "exp.lua:1: ");
}

static const char *const everything =
    "local t = {} for i = 1, 50 do t[i] = ('x'):rep(i) end table.sort(t) "
    "local ok, e = pcall(error, {1}) local s = table.concat(t) "
    "coroutine.wrap(function() xpcall(error, function(m) return m .. s end, 'x') end)() "
    "load('return ' .. 1)() print(#s, math.random(3)) "
    "local _ = tostring(os.time()) .. string.format('%5.2f %s', 1, s)";

static void every_failing_allocation_fails_cleanly(void) {
    bool passed = false;
    uint64_t limit = 1, failures = 0;
    for (; limit < 100000 && !passed; limit++) {
        LuaVmOptions options = {.allocations = limit, .traceback = limit % 2, .print = collect};
        error = (Error){0};
        printed[0] = 0;
        LuaVm *vm = lua_vm_new(&options, &error);
        passed = vm && run_in(vm, everything);
        if (!passed) {
            failures++;
            CHECK(error.code != ERROR_NONE && error.text[0] && !strchr(error.text, '\n'));
        }
        lua_vm_free(vm);
    }
    CHECK(passed);
    CHECK(failures > 100);
}

// ---- interrupts --------------------------------------------------------------------------------

static void *interrupt_soon(void *vm) {
    nanosleep(&(struct timespec){0, 30000000}, NULL);
    lua_vm_interrupt(vm, "stopped by a command");
    return NULL;
}

static bool is_interrupted(LuaVmOptions options, const char *text) {
    LuaVm *vm = machine(options);
    pthread_t thread;
    double start = clock_seconds();
    pthread_create(&thread, NULL, interrupt_soon, vm);
    bool done = run_in(vm, text);
    double took = clock_seconds() - start;
    pthread_join(thread, NULL);
    CHECK_MESSAGE(!done && error.code == ERROR_STOPPED && took < 20 * test_patience(),
                  "%s: %s after %g s", text, done ? "done" : error.text, took);
    CHECK_MESSAGE(strstr(error.text, "stopped by a command"), "%s: %s", text, error.text);
    lua_vm_clear_interrupt(vm);
    CHECK(run_in(vm, "local n = 0 for i = 1, 1e5 do n = n + 1 end"));
    lua_vm_free(vm);
    return !done;
}

#define LOOP "while true do end "

static void no_script_swallows_an_interrupt(void) {
    static const char *const stubborn[] = {
        LOOP,
        "while true do pcall(function() " LOOP " end) end",
        "while true do xpcall(function() " LOOP " end, function() " LOOP " end) end",
        "while true do xpcall(function() " LOOP " end, pcall) end",
        "while true do xpcall(error, function() " LOOP " end) end",
        "local co = coroutine.create(function() " LOOP " end) coroutine.resume(co) " LOOP,
        "while true do coroutine.resume(coroutine.create(function() " LOOP " end)) end",
        "while true do pcall(coroutine.wrap(function() " LOOP " end)) end",
        "while true do pcall(coroutine.wrap(function() while true do coroutine.yield(pcall("
        "function() " LOOP " end)) end end)) end",
        "local t = setmetatable({}, {__index = function() " LOOP " end}) "
        "while true do pcall(function() return t.x end) end",
        "local t = setmetatable({}, {__eq = function() " LOOP " end, __lt = function() " LOOP
        " end}) while true do pcall(function() return t < t end) end",
        "while true do pcall(table.sort, {3, 2, 1}, function() " LOOP " end) end",
        "while true do pcall(string.gsub, 'abc', '.', function() " LOOP " end) end",
        "while true do load(function() " LOOP " end) end",
        "while true do pcall(load, function() " LOOP " end) end",
        "while true do pcall(tostring, setmetatable({}, {__tostring = function() " LOOP
        " end})) end",
        "local function f() local x <close> = setmetatable({}, {__close = function() f() "
        "end}) " LOOP " end f()",
        "local f f = function() local x <close> = setmetatable({}, {__close = function() "
        "pcall(f) f() end}) " LOOP " end while true do pcall(f) end",
        "while true do local co = coroutine.create(function() local x <close> = setmetatable({}, "
        "{__close = function() " LOOP " end}) coroutine.yield() end) coroutine.resume(co) "
        "coroutine.close(co) end",
        "coroutine.wrap(function() local x <close> = setmetatable({}, {__close = function() " LOOP
        " end}) " LOOP " end)()",
        "local co = coroutine.create(function() local x <close> = setmetatable({}, {__close = "
        "function() " LOOP " end}) " LOOP " end) coroutine.resume(co) coroutine.close(co)",
        "coroutine.wrap(function() local x <close> = setmetatable({}, {__close = function() " LOOP
        " end}) error 'dead' end)()",
        "local s = ('a'):rep(3e5) while true do s:gsub('a', 'b') end",
        "local s = ('a'):rep(3e5) coroutine.wrap(function() while true do s:gsub('a', 'b') end "
        "end)()",
        "while true do pcall(pcall, pcall, function() " LOOP " end) end",
        "for _ in coroutine.wrap(function() while true do pcall("
        "function() " LOOP " end) coroutine.yield(1) end end) do end",
        "local function f() pcall(f) pcall(f) end f()",
        "goto top ::top:: pcall(error) goto top",
        "while true do for k in next, {1, 2, 3} do pcall(error, k) end end",
        "while true do pcall(require, 'not_there') end",
    };
    for (size_t i = 0; i < sizeof stubborn / sizeof stubborn[0]; i++) {
        is_interrupted((LuaVmOptions){0}, stubborn[i]);
        is_interrupted((LuaVmOptions){.trust = true}, stubborn[i]);
    }
}

static void an_interrupt_says_where_it_ended_the_script(void) {
    LuaVm *vm = machine((LuaVmOptions){0});
    lua_vm_interrupt(vm, NULL);
    CHECK(!run_in(vm, "local n = 0\nwhile true do\nn = n + 1 end"));
    CHECK_CONTAINS(error.text, "exp.lua:");
    CHECK_CONTAINS(error.text, ": interrupted");
    CHECK_TEXT(lua_vm_interrupted(vm), "interrupted");
    lua_vm_free(vm);
}

static LuaVm *signalled;
static void on_alarm(int number) {
    (void)number;
    lua_vm_interrupt(signalled, "signal");
}

static void a_signal_handler_can_interrupt(void) {
    signalled = machine((LuaVmOptions){0});
    signal(SIGALRM, on_alarm);
    alarm(1);
    CHECK(!run_in(signalled, LOOP));
    CHECK_INT(error.code, ERROR_STOPPED);
    signal(SIGALRM, SIG_DFL);
    lua_vm_free(signalled);
}

static int check_in_c(lua_State *L) {
    lua_vm_enter_engine(L);
    lua_vm_interrupt(lua_vm_of(L), "from the engine");
    lua_vm_leave_engine(L);
    lua_vm_check(L);
    return 0;
}

static void c_functions_raise_an_interrupt_by_checking(void) {
    LuaVm *vm = machine((LuaVmOptions){0});
    CHECK(lua_vm_preload(vm, "probe", check_in_c, &error));
    CHECK(!run_in(vm, "pcall(require, 'probe') error 'not reached'"));
    CHECK_TEXT(error.text, "exp.lua:1: from the engine");
    lua_vm_free(vm);
}

// ---- the watchdog ------------------------------------------------------------------------------

#define ENDLESS "string.find(('a'):rep(60), ('.-'):rep(60) .. 'b') "

// Runs a script in a child; gives its exit status and what it wrote on standard error.
static int run_in_child(LuaVmOptions options, bool interrupt, const char *text, char *out,
                        size_t size) {
    int ends[2];
    out[0] = 0;
    if (pipe(ends) != 0)
        return -1;
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        dup2(ends[1], STDERR_FILENO);
        close(ends[0]);
        LuaVm *vm = machine(options);
        if (interrupt)
            lua_vm_interrupt(vm, "stop");
        _exit(run_in(vm, text) ? 0 : 77);
    }
    close(ends[1]);
    size_t length = 0;
    ssize_t got;
    while (length + 1 < size && (got = read(ends[0], out + length, size - 1 - length)) > 0)
        length += (size_t)got;
    out[length] = 0;
    close(ends[0]);
    int status = 0;
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void a_pattern_that_never_returns_is_ended(void) {
    char out[512];
    LuaVmOptions options = {.answer_seconds = 0.4, .stuck_seconds = -1};
    CHECK_INT(run_in_child(options, true, ENDLESS, out, sizeof out), 1);
    CHECK_CONTAINS(out, "mpbench: the script has not ended within 0.4 s (stop)");
    options = (LuaVmOptions){.answer_seconds = -1, .stuck_seconds = 0.4};
    CHECK_INT(run_in_child(options, false, ENDLESS, out, sizeof out), 1);
    CHECK_CONTAINS(out, "has not returned for 0.4 s");
    CHECK_INT(run_in_child(options, false, "pcall(function() " ENDLESS "end)", out, sizeof out), 1);
}

static int work_long(lua_State *L) {
    lua_vm_enter_engine(L);
    nanosleep(&(struct timespec){0, 900000000}, NULL);
    lua_vm_leave_engine(L);
    return 0;
}

static int wait_long(lua_State *L) {
    lua_vm_begin_patience(lua_vm_of(L));
    nanosleep(&(struct timespec){0, 900000000}, NULL);
    lua_vm_end_patience(lua_vm_of(L));
    return 0;
}

static void mark_stuck(void *context, const char *why) {
    (void)why;
    *(volatile int *)context = 1;
}

static void work_of_the_engine_and_of_lua_is_not_stuck(void) {
    int stuck = 0;
    LuaVm *vm = machine((LuaVmOptions){
        .stuck_seconds = 0.3, .answer_seconds = 0.3, .on_stuck = mark_stuck, .context = &stuck});
    CHECK(lua_vm_preload(vm, "work", work_long, &error));
    CHECK(lua_vm_preload(vm, "wait", wait_long, &error));
    CHECK(run_in(vm, "require 'work' local t = os.clock() while os.clock() - t < 0.7 do end"));
    CHECK(run_in(vm, "require 'wait'"));
    nanosleep(&(struct timespec){0, 500000000}, NULL); // idle: nothing runs
    lua_vm_free(vm);
    CHECK_INT(stuck, 0);
}

// Fewer instructions than the hook counts, in more time than the watchdog gives.
static void few_and_long_instructions_are_not_stuck(void) {
    int stuck = 0;
    LuaVm *vm = machine((LuaVmOptions){
        .stuck_seconds = test_patience(), .on_stuck = mark_stuck, .context = &stuck});
    CHECK(run_in(vm, "local s, t = ('a'):rep(1e6), os.clock() "
                     "while os.clock() - t < 2.5 do s:gsub('a', 'b') end"));
    CHECK(run_in(vm, "local s, t = ('a'):rep(1e6), os.clock() coroutine.wrap(function() "
                     "while os.clock() - t < 2.5 do s:gsub('a', 'b') end end)()"));
    lua_vm_free(vm);
    CHECK_INT(stuck, 0);
}

// An engine call that goes on when the script is to end never comes back to it.
static void end_left(void *context) {
    (void)context;
    nanosleep(&(struct timespec){0, 300000000}, NULL); // the call ends meanwhile
    _exit(44);
}

static bool want_stop(void *context) {
    (void)context;
    return true;
}

static int work_on(lua_State *L) {
    lua_vm_enter_engine(L);
    nanosleep(&(struct timespec){1, 900000000}, NULL);
    lua_vm_leave_engine(L);
    _exit(45);
}

static void an_operation_that_goes_on_is_left(void) {
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        LuaVm *vm = machine((LuaVmOptions){.stop_wanted = want_stop, .on_left = end_left});
        bool there = lua_vm_preload(vm, "work", work_on, &error);
        _exit(there && run_in(vm, "require 'work'") ? 0 : 77);
    }
    int status = 0;
    waitpid(child, &status, 0);
    CHECK_INT(WEXITSTATUS(status), 44);
}

static double long_steps(void *context) {
    (void)context;
    return 30;
}

// Longer than a script that makes no steps would get.
static int work_on_in_calls(lua_State *L) {
    for (int i = 0; i < 6; i++) {
        lua_vm_enter_engine(L);
        nanosleep(&(struct timespec){0, 250000000}, NULL);
        lua_vm_leave_engine(L);
        lua_vm_check(L);
    }
    return 0;
}

static void the_end_of_a_long_step_is_waited_for(void) {
    LuaVm *vm = machine((LuaVmOptions){.stop_wanted = want_stop});
    CHECK(lua_vm_preload(vm, "work", work_on_in_calls, &error));
    CHECK(!run_in(vm, "require 'work'"));
    CHECK_CONTAINS(error.text, "the run was asked to stop");
    lua_vm_free(vm);
    vm = machine((LuaVmOptions){.stop_wanted = want_stop, .step_seconds = long_steps});
    CHECK(lua_vm_preload(vm, "work", work_on_in_calls, &error));
    CHECK(run_in(vm, "require 'work'"));
    lua_vm_free(vm);
}

int main(void) {
    RUN_TEST(errors_name_file_and_line);
    RUN_TEST(error_objects_are_made_visible);
    RUN_TEST(deep_recursion_and_many_arguments_are_errors);
    RUN_TEST(a_traceback_is_kept_on_request);
    RUN_TEST(what_is_withheld_names_trust);
    RUN_TEST(unknown_globals_name_the_nearest);
    RUN_TEST(bytecode_is_refused);
    RUN_TEST(metatables_cannot_be_tampered_with);
    RUN_TEST(trust_opens_the_library);
    RUN_TEST(pairs_stand_a_table_that_grows_meanwhile);
    RUN_TEST(guarded_functions_keep_their_meaning);
    RUN_TEST(print_reaches_the_log);
    RUN_TEST(random_numbers_repeat);
    RUN_TEST(the_memory_limit_holds);
    RUN_TEST(every_failing_allocation_fails_cleanly);
    RUN_TEST(no_script_swallows_an_interrupt);
    RUN_TEST(an_interrupt_says_where_it_ended_the_script);
    RUN_TEST(a_signal_handler_can_interrupt);
    RUN_TEST(c_functions_raise_an_interrupt_by_checking);
    RUN_TEST(a_pattern_that_never_returns_is_ended);
    RUN_TEST(work_of_the_engine_and_of_lua_is_not_stuck);
    RUN_TEST(few_and_long_instructions_are_not_stuck);
    RUN_TEST(an_operation_that_goes_on_is_left);
    RUN_TEST(the_end_of_a_long_step_is_waited_for);
    return test_end();
}
