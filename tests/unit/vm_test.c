// The machine that scripts run in: each fault of a script leads to one line, and nothing gets out.
#include <lauxlib.h>

#include "tests/unit/vm_fixture.h"

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
    // What was in use then, though it is let go of by the time that it is told.
    CHECK_CONTAINS(run_with(small, "local s = ('x'):rep(3 << 20) local t = s .. s"),
                   "reached: 3 MiB in use and 6.0 MiB more wanted");
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
    return test_end();
}
