// A device that replays accepts work and does none, and what was made meanwhile is not read.
#include "checkpoint/replay.h"
#include "ops/engine.h"
#include "ops/views.h"
#include "optim/optimizer.h"
#include "tests/device.h"
#include "tests/test.h"

static void work_is_accepted_and_its_results_are_refused_afterwards(void) {
    Error error = {0};
    Device *device;
    Preset preset;
    char why[8];
    const int64_t shape[] = {2, 3};
    double value = -1;
    CHECK(device_open(test_device_or("cpu"), 1, &device, &error));
    CHECK(preset_resolve("fp32", NULL, &preset, why, sizeof why, &error));
    Engine *engine = engine_new(device, &preset, 1, &error);
    Tensor *real = op_fill(engine, FORMAT_FP32, 0, NULL, 5, &error);
    device_note_step(device);
    CHECK(device_begin_replay(device, &error));
    Tensor *hollow = op_fill(engine, FORMAT_FP32, 2, shape, 7, &error);
    Tensor *sum = op_two(engine, OP_add, hollow, real, NULL, &error);
    CHECK_MESSAGE(hollow && sum, "%s", error.text);
    CHECK(tensor_item(real, &value, &error) && value == 0); // nothing is read
    device_end_replay(device);
    CHECK(tensor_item(real, &value, &error) && value == 5);
    CHECK(!op_two(engine, OP_add, real, hollow, NULL, &error));
    CHECK_CONTAINS(error.text, "[2, 3] fp32");
    CHECK_CONTAINS(error.text, "run:model");
    float numbers[6];
    CHECK(!tensor_read(sum, numbers, &error));
    Tensor *after = op_two(engine, OP_mul, real, real, NULL, &error);
    CHECK(after && tensor_item(after, &value, &error) && value == 25);
    tensor_release(after);
    tensor_release(sum);
    tensor_release(hollow);
    tensor_release(real);
    engine_free(engine);
    device_close(device);
}

// A checkpoint takes what is late; what the script makes before, a replay computes again.
static void memory_knows_when_it_was_made_or_written(void) {
    Error error = {0};
    Device *device;
    CHECK(device_open(test_device_or("cpu"), 1, &device, &error));
    Tensor *early = tensor_new(device, FORMAT_FP32, 0, NULL, MEMORY_WEIGHTS, &error);
    Tensor *kept = tensor_new(device, FORMAT_FP32, 0, NULL, MEMORY_WEIGHTS, &error);
    CHECK(early && kept && !device_is_late(device));
    device_note_step(device);
    CHECK(device_is_late(device));
    Tensor *late = tensor_new(device, FORMAT_FP32, 0, NULL, MEMORY_WEIGHTS, &error);
    CHECK(late && tensor_copy_into(early, late, &error));
    CHECK_INT(kept->storage->marks, 0);
    CHECK_INT(late->storage->marks, MARK_LATE);
    CHECK_INT(early->storage->marks, MARK_LATE);
    CHECK(device_begin_replay(device, &error) && device_is_idle(device));
    CHECK(tensor_copy_into(early, late, &error));
    CHECK(tensor_check_readable(early, &error)); // the replay itself goes by
    device_end_replay(device);
    device_end_replay(device); // there is none: nothing happens
    CHECK_INT(early->storage->marks, MARK_LATE | MARK_HOLLOW);
    CHECK(!tensor_check_readable(early, &error) && tensor_check_readable(late, &error));
    tensor_written(late);
    CHECK_INT(late->storage->marks, MARK_LATE);
    tensor_release(early);
    tensor_release(kept);
    tensor_release(late);
    device_close(device);
}

// One that must be made dense first would have contents afterwards: zeros, or anything.
static void a_gradient_from_a_replay_is_applied_by_nobody(void) {
    Error error = {0};
    Device *device;
    Preset preset;
    char why[8];
    const int64_t shape[] = {3, 2}, turned[] = {2, 3};
    CHECK(device_open(test_device_or("cpu"), 1, &device, &error));
    CHECK(preset_resolve("fp32", NULL, &preset, why, sizeof why, &error));
    Engine *engine = engine_new(device, &preset, 1, &error);
    Tensor *weight = op_fill(engine, FORMAT_FP32, 2, turned, 1, &error);
    CHECK(parameter_attach(weight, "fc.weight", 0, false, &error));
    OptimizerOptions options = optimizer_defaults(OPTIMIZER_SGD);
    OptimizerGroup group = {&weight, 1, 1, 0};
    Optimizer *optimizer = optimizer_new(engine, &options, &group, 1, &error);
    CHECK_MESSAGE(optimizer, "%s", error.text);
    device_note_step(device);
    CHECK(device_begin_replay(device, &error));
    Tensor *hollow = op_fill(engine, FORMAT_FP32, 2, shape, 7, &error);
    device_end_replay(device);
    weight->grad = op_transpose(engine, hollow, 0, 1, &error);
    CHECK(weight->grad && !optimizer_step(optimizer, &error));
    CHECK_CONTAINS(error.text, "run:model");
    double value = 0;
    Tensor *sum = op_one(engine, OP_sum, weight, NULL, &error);
    CHECK(sum && tensor_item(sum, &value, &error) && value == 6);
    tensor_release(sum);
    optimizer_free(optimizer);
    tensor_release(hollow);
    tensor_release(weight);
    engine_free(engine);
    device_close(device);
}

int main(void) {
    RUN_TEST(a_gradient_from_a_replay_is_applied_by_nobody);
    RUN_TEST(memory_knows_when_it_was_made_or_written);
    RUN_TEST(work_is_accepted_and_its_results_are_refused_afterwards);
    return test_end();
}
