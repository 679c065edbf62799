// A script that is to end ends: interrupts that nothing swallows, and the watchdog of what is
// stuck.
#include <lauxlib.h>
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "tests/unit/vm_fixture.h"

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
