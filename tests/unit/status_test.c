// Values that only kernels see, on a device that finds out after the call has returned: what it
// found is told in the words of one that says it at once, and nothing that it computed since is
// handed out.
#include "lua/experiment.h"
#include "ops/engine.h"
#include "tests/folder.h"
#include "tests/test.h"

// ---- a device that runs on its own --------------------------------------------------------------

static Backend late_backend;
static Kernel late_kernels[OP_COUNT];
static const Backend *real;
static DeviceStatus found, arrived; // in the device's memory; on this side of a wait

static void late_wait(void) {
    if (arrived.check.fault == FAULT_NONE)
        arrived = found;
}

static void late_read(Device *device, void *host, const void *source, size_t bytes) {
    real->read(device, host, source, bytes);
    late_wait();
}

static void late_synchronize(Device *device) {
    (void)device;
    late_wait();
}

static bool late_take_status(Device *device, DeviceStatus *status) {
    (void)device;
    *status = arrived;
    if (arrived.check.fault == FAULT_NONE)
        return false;
    arrived = found = (DeviceStatus){.check.fault = FAULT_NONE};
    return true;
}

static bool late_kernel(Device *device, const KernelCall *call, Error *error) {
    const View *index = &call->input[1];
    ValueCheck check =
        call->op == OP_gather      ? value_check(call, FAULT_ELEMENT, call->input[0].shape[0])
        : call->op == OP_embedding ? value_check(call, FAULT_ROW, call->input[0].shape[0])
                                   : value_check(call, FAULT_CLASS, call->input[0].shape[1]);
    for (int64_t i = 0; i < view_count(index); i++) {
        int64_t value = ((const int32_t *)index->data)[i];
        if (value_passes(&check, value))
            continue;
        if (found.check.fault == FAULT_NONE)
            found = (DeviceStatus){check, i, value};
        return true;
    }
    return real->kernels[call->op](device, call, error);
}

static void make_late(Device *device) {
    real = device->backend;
    late_backend = *real;
    memcpy(late_kernels, real->kernels, sizeof late_kernels);
    late_kernels[OP_gather] = late_kernels[OP_embedding] = late_kernel;
    late_kernels[OP_cross_entropy] = late_kernel;
    late_backend.kernels = late_kernels;
    late_backend.read = late_read;
    late_backend.synchronize = late_synchronize;
    late_backend.take_status = late_take_status;
    device->backend = &late_backend;
    found = arrived = (DeviceStatus){.check.fault = FAULT_NONE};
}

// ---- an engine on one of two devices ------------------------------------------------------------

static Device *device;
static Engine *engine;

static void begin(bool late) {
    Error error = {0};
    Preset preset;
    if (!device_open("ref", 1, &device, &error) ||
        !preset_resolve("fp32", device, &preset, NULL, 0, &error) ||
        !(engine = engine_new(device, &preset, 1, &error))) {
        printf("not ok begin: %s\n", error.text);
        exit(1);
    }
    if (late)
        make_late(device);
}

static void end(void) {
    engine_free(engine);
    device_close(device);
}

static Tensor *indices(int64_t count, const int32_t *values) {
    return tensor_from_host(device, FORMAT_INT32, 1, &count, values, MEMORY_DATA, NULL);
}

static Tensor *zeros(int64_t rows, int64_t columns) {
    return op_fill(engine, FORMAT_FP32, 2, (int64_t[]){rows, columns}, 0, NULL);
}

// What is said of an operation with these indices, at once or when its result is read.
static const char *said_of(OpId op, const int32_t index[2], bool *at_once) {
    static Error error;
    error = (Error){0};
    Tensor *x = op == OP_gather ? op_fill(engine, FORMAT_FP32, 1, (int64_t[]){3}, 0, NULL)
                                : zeros(op == OP_embedding ? 3 : 2, 3);
    Tensor *of = indices(2, index), *y = op_two(engine, op, x, of, NULL, &error);
    float values[6];
    *at_once = !y;
    if (y && tensor_read(y, values, &error))
        error.text[0] = 0;
    tensor_release(x);
    tensor_release(of);
    tensor_release(y);
    return error.text;
}

static void a_late_device_speaks_as_one_that_is_done(void) {
    static const struct {
        OpId op;
        int32_t index[2];
        const char *inside, *outside;
    } cases[] = {
        {OP_cross_entropy,
         {0, 7},
         "head: class 7 at row 2: the logits have 3 classes",
         "cross_entropy: class 7 at row 2: the logits have 3 classes"},
        {OP_cross_entropy,
         {-2, 9},
         "head: class -2 at row 1: the logits have 3 classes",
         "cross_entropy: class -2 at row 1: the logits have 3 classes"},
        {OP_embedding,
         {2, 3},
         "head: index 3 at position 2: the embedding has 3 rows",
         "embedding: index 3 at position 2: the embedding has 3 rows"},
        {OP_gather,
         {-1, 0},
         "head: index -1 at position 1: dimension 1 has 3 elements",
         "gather: index -1 at position 1: dimension 1 has 3 elements"},
        {OP_cross_entropy, {-1, 2}, "", ""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int late = 0; late < 2; late++)
            for (int inside = 0; inside < 2; inside++) {
                bool at_once;
                begin(late);
                int layer = policy_add_layer(engine->policy, "head", 0, NULL);
                engine->layer = inside ? layer : 0;
                const char *expected = inside ? cases[i].inside : cases[i].outside;
                CHECK_TEXT(said_of(cases[i].op, cases[i].index, &at_once), expected);
                CHECK_INT(at_once, expected[0] && !late);
                end();
            }
}

static void the_first_of_a_device_is_kept_and_holds(void) {
    const int32_t first[] = {5, 0}, second[] = {6, 0}, sound[] = {0, 0};
    bool at_once;
    Error error = {0};
    double value = 0;
    begin(true);
    CHECK_CONTAINS(said_of(OP_embedding, first, &at_once), "index 5 at position 1");
    CHECK_CONTAINS(said_of(OP_embedding, second, &at_once), "index 5 at position 1");
    CHECK_CONTAINS(said_of(OP_embedding, sound, &at_once), "index 5 at position 1");
    Tensor *one = op_fill(engine, FORMAT_FP32, 0, NULL, 1, NULL);
    CHECK(!tensor_item(one, &value, &error));
    CHECK_TEXT(error.text, "embedding: index 5 at position 1: the embedding has 3 rows");
    CHECK_INT(error.code, ERROR_FAILED);
    tensor_release(one);
    end();
}

static void nothing_is_told_before_it_has_arrived(void) {
    const int32_t wrong[] = {5, 0};
    Error error = {0};
    begin(true);
    Tensor *x = zeros(3, 3), *of = indices(2, wrong);
    Tensor *y = op_two(engine, OP_embedding, x, of, NULL, &error);
    CHECK(y != NULL);
    device_take_status(device);
    CHECK(device_check(device, &error));
    device_synchronize(device);
    CHECK(!device_check(device, &error));
    tensor_release(x);
    tensor_release(of);
    tensor_release(y);
    end();
}

static void without_an_engine_the_message_lacks_the_place(void) {
    const int32_t wrong[] = {5, 0};
    bool at_once;
    Error error = {0};
    begin(true);
    said_of(OP_embedding, wrong, &at_once);
    engine_free(engine);
    engine = NULL;
    CHECK(!device_check(device, &error));
    CHECK_TEXT(error.text, "index 5 at position 1: the embedding has 3 rows");
    end();
}

// ---- the run ------------------------------------------------------------------------------------

// The error that the script ends by, whose steps each take a class from `classes`.
static const char *error_of_run(const char *classes, const char *after) {
    static Error error;
    char folder[TEST_FOLDER_SIZE], path[TEST_FOLDER_SIZE + 16];
    if (!test_folder_make(folder, sizeof folder))
        return "no folder";
    snprintf(path, sizeof path, "%s/late.lua", folder);
    FILE *file = fopen(path, "w");
    error = (Error){0};
    if (!file)
        return "no file";
    fprintf(file,
            "local mp = require 'mp' local F = mp.fn\n"
            "return mp.experiment { name = 'late', run = function(run)\n"
            "local w = mp.zeros(1, 3):requires_grad(true)\n"
            "local opt = mp.optim.SGD({ w }, { lr = 1 })\n"
            "for _, class in ipairs { %s } do run:step(function()\n"
            "  F.cross_entropy(w, mp.tensor({ class }, 'int32')):backward()\n"
            "  opt:step() opt:zero_grad()\n"
            "end) end %s end }\n",
            classes, after);
    fclose(file);
    RunOptions options = {.device = "ref", .threads = 1, .seed = 7};
    Run *run = run_new(&options, &error);
    if (run) {
        make_late(run->device);
        LuaRunOptions lua = {.memory_limit = 64 << 20};
        bool done = lua_run_experiment(run, path, &lua, &error);
        CHECK_INT(run->status, done ? RUN_FINISHED : RUN_FAILED);
        if (done)
            error.text[0] = 0;
        run_free(run);
    }
    test_folder_remove(folder);
    return error.text;
}

static void a_run_ends_by_what_its_device_found(void) {
    const char *message = "cross_entropy: class 4 at row 1: the logits have 3 classes";
    CHECK_TEXT(error_of_run("0, 1, 2", ""), "");
    CHECK_CONTAINS(error_of_run("0, 4, 2", ""), message);
    CHECK_TEXT(error_of_run("0, 1, 4", ""), message); // nothing is read any more
    CHECK_TEXT(error_of_run("0, 1, 4", "error 'the loss is no number'"), message);
    CHECK_TEXT(error_of_run("0, 1, 4", "pcall(w.table, w)"), message);
}

int main(void) {
    RUN_TEST(a_late_device_speaks_as_one_that_is_done);
    RUN_TEST(the_first_of_a_device_is_kept_and_holds);
    RUN_TEST(nothing_is_told_before_it_has_arrived);
    RUN_TEST(without_an_engine_the_message_lacks_the_place);
    RUN_TEST(a_run_ends_by_what_its_device_found);
    return test_end();
}
