// What scripts hold outside Lua counts: tensors, scalers and other objects against the script's
// memory, tensors, graphs and data sets against the device's.
#include <sys/resource.h>
#include <unistd.h>

#include "kernel/allocator.h"
#include "lua/experiment.h"
#include "tests/folder.h"
#include "tests/test.h"

enum { SCRIPT_MEMORY = 16 << 20, DEVICE_MEMORY = 48 << 20 };

static char path[TEST_FOLDER_SIZE + 16];
static double printed;

static void on_print(void *context, const char *text, size_t length) {
    (void)context, (void)length;
    printed = atof(text);
}

// Runs a body with little memory; "" or the error.
static const char *run_body(const char *body) {
    static Error error;
    error = (Error){0};
    printed = 0;
    FILE *file = fopen(path, "w");
    if (!file)
        return "no file";
    fprintf(file,
            "local mp = require 'mp' local w, t, n = mp.ones(1):requires_grad(true), {}, 0\n"
            "return mp.experiment { name = 'held', run = function(run)\n%s\nend }",
            body);
    fclose(file);
    RunOptions options = {.device = "cpu", .threads = 1, .seed = 7};
    Run *run = run_new(&options, &error);
    if (!run)
        return "no run";
    allocator_set_limit(run->device->allocator, DEVICE_MEMORY);
    LuaRunOptions lua = {.memory_limit = SCRIPT_MEMORY, .print = on_print};
    bool done = lua_run_experiment(run, path, &lua, &error);
    run_free(run);
    return done ? "" : error.text;
}

static void objects_count_against_the_memory_of_the_script(void) {
    static const char *const makes[] = {"mp.zeros(1)", "w:detach()", "mp.scaler()",
                                        "mp.scaler(function() return 1 end)",
                                        "mp.optim.SGD({ w }, { lr = 1 })"};
    for (size_t i = 0; i < sizeof makes / sizeof *makes; i++) {
        char body[256];
        snprintf(body, sizeof body, "while true do t[#t + 1] = %s end", makes[i]);
        CHECK_CONTAINS(run_body(body), "script memory limit (16 MiB) reached");
        snprintf(body, sizeof body,
                 "while n < 2^15 and pcall(function() t[#t + 1] = %s end) do n = n + 1 end t = nil "
                 "print(n)",
                 makes[i]);
        CHECK_TEXT(run_body(body), "");
        CHECK_MESSAGE(printed > 100 && printed < 30000, "%s: %g were made", makes[i], printed);
    }
}

static void what_is_let_go_of_counts_no_more(void) {
    CHECK_TEXT(run_body("for i = 1, 40000 do t[i % 100] = mp.zeros(1) end"), "");
    CHECK_TEXT(run_body("for i = 1, 6000 do t[i % 10] = mp.scaler() end"), "");
    CHECK_TEXT(run_body("for i = 1, 300 do t[i % 2] = mp.data.tensors { x = mp.zeros(65536, 1), "
                        "batch = 1 } end"),
               "");
}

static void graphs_and_data_count_against_the_memory_of_the_device(void) {
    struct rusage before, after;
    getrusage(RUSAGE_SELF, &before);
    CHECK_CONTAINS(run_body("local y = w while true do y = y + 1 end"), "out of memory");
    CHECK_CONTAINS(run_body("local y = w while true do y = y:reshape(1, 1):reshape(1) end"),
                   "out of memory");
    CHECK_CONTAINS(run_body("local x = mp.zeros(65536, 8) while true do t[#t + 1] = "
                            "mp.data.tensors { x = x, batch = 1 } end"),
                   "out of memory");
    getrusage(RUSAGE_SELF, &after);
    CHECK((after.ru_maxrss - before.ru_maxrss) / 1024 < 3 * (DEVICE_MEMORY >> 20));
}

// What a captured step holds between two of its turns is there for who asks for the last of memory.
static double tensors_beside(const char *call, const char *behind) {
    char body[1024];
    snprintf(body, sizeof body,
             "local x, net = mp.randn(512, 64), run:model(mp.nn.Linear(64, 256))\n"
             "local opt, scaler = mp.optim.SGD(net:parameters(), { lr = 1 }), run:scaler()\n"
             "local function step(x)\n"
             "  opt:zero_grad() scaler:scale(net(x):relu():mean()):backward()\n"
             "  scaler:unscale(opt) scaler:step(opt) scaler:update()\n"
             "end\n"
             "local function call() %s end\n"
             "for i = 1, 6 do call() end\n"
             "%s collectgarbage()\n"
             "while pcall(function() t[#t + 1] = mp.zeros(1 << 16) end) do n = n + 1 end\n"
             "print(n) t = nil pcall(scaler.update, scaler) collectgarbage()\n"
             "for i = 1, 6 do call() end",
             call, behind);
    CHECK_TEXT(run_body(body), "");
    return printed;
}

static void captured_steps_let_go_of_memory_that_runs_out(void) {
    const double called = tensors_beside("step(x)", "");
    CHECK(called > 10);
    CHECK_INT(tensors_beside("run:step(step, x)", ""), called);
}

// In the midst of what cannot be taken back, and so without an end of the turn.
static void captured_steps_let_go_of_memory_after_an_error_that_is_caught(void) {
    static const char fails[] = "scaler:scale(net(x):mean()):backward() scaler:unscale(opt)\n"
                                "assert(not pcall(call)) opt:zero_grad()";
    const double called = tensors_beside("step(x)", fails);
    CHECK(called > 10);
    CHECK_INT(tensors_beside("run:step(step, x)", fails), called);
}

int main(void) {
    char folder[TEST_FOLDER_SIZE];
    if (!test_folder_make(folder, sizeof folder))
        return 1;
    snprintf(path, sizeof path, "%s/held.lua", folder);
    RUN_TEST(objects_count_against_the_memory_of_the_script);
    RUN_TEST(what_is_let_go_of_counts_no_more);
    RUN_TEST(graphs_and_data_count_against_the_memory_of_the_device);
    RUN_TEST(captured_steps_let_go_of_memory_that_runs_out);
    RUN_TEST(captured_steps_let_go_of_memory_after_an_error_that_is_caught);
    test_folder_remove(folder);
    return test_end();
}
