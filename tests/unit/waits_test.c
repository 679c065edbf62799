// What a step asks of the host: nothing is told anew by value that changes from step to step, and
// nothing is read.
#include "optim/optimizer_private.h"
#include "optim/state.h"
#include "tests/training.h"

// ---- the control block --------------------------------------------------------------------------

static void draw(OpId op, RandomAttr random, float values[16]) {
    const int64_t shape[1] = {16};
    Tensor *drawn = tensor_new(device, FORMAT_FP32, 1, shape, MEMORY_ACTIVATIONS, &error);
    OpAttr attr = {.out_format = FORMAT_FP32, .has_out_format = true};
    KernelCall call = {.op = op, .output_count = 1, .attr = &attr};
    attr.create = (CreateAttr){.ndim = 1, .shape = {16}, .a = 0, .b = 1};
    attr.random = random;
    call.output[0] = drawn->view;
    DONE(device_run(device, &call, &error));
    DONE(tensor_read(drawn, values, &error));
    tensor_release(drawn);
}

static void random_numbers_are_counted_from_a_base_on_the_device(void) {
    float absolute[16], relative[16];
    const uint64_t base = 1000;
    Tensor *lies = tensor_new_bytes(device, sizeof base, MEMORY_WORKSPACE, &error);
    device_write(device, lies->view.data, &base, sizeof base);
    const OpId ops[] = {OP_uniform, OP_normal};
    for (size_t i = 0; i < 2; i++) {
        draw(ops[i], (RandomAttr){.seed = 7, .offset = 990}, absolute);
        draw(ops[i], (RandomAttr){7, (uint64_t)-10, lies->view.data}, relative);
        CHECK(memcmp(absolute, relative, sizeof absolute) == 0);
    }
    tensor_release(lies);
}

// A dropout before the end of a step, walked back after it, drops the same.
static void a_graph_that_outlives_its_step_keeps_its_random_numbers(void) {
    float ones[64];
    for (int i = 0; i < 64; i++)
        ones[i] = 1;
    Tensor *weight = parameter("w", 64, ones);
    OpAttr attr = {.dropout = {.probability = 0.5}};
    for (int step = 0; step < 3; step++) {
        tensor_drop_grad(weight);
        attr.dropout.stream = engine_random(engine, 64);
        Tensor *kept = op_one(engine, OP_dropout, weight, &attr, &error);
        Tensor *sum = op_one(engine, OP_sum, kept, NULL, &error);
        CHECK(engine_end_step(engine, NULL));
        tensor_release(op_random(engine, OP_uniform, 1, (int64_t[]){64}, 0, 1, &error));
        DONE(engine_backward(engine, sum, NULL, NULL, &error));
        const float *forward = values_of(kept), *back = values_of(weight->grad);
        CHECK(memcmp(forward, back, sizeof ones) == 0);
        tensor_release(kept);
        tensor_release(sum);
    }
    tensor_release(weight);
}

static void rates_that_change_reach_the_next_update(void) {
    Tensor *weight = parameter("w", 1, (float[]){10});
    Optimizer *optimizer = sgd(weight, 1);
    gradient_set(weight, (float[]){1});
    DONE(optimizer_step(optimizer, &error));
    CHECK_NEAR(value_of(weight, 0), 9, 0);
    DONE(optimizer_set_rate(optimizer, 2, &error));
    DONE(optimizer_step(optimizer, &error));
    CHECK_NEAR(value_of(weight, 0), 7, 0);
    DONE(optimizer_set_group_rate(optimizer, 0, 0.5, &error));
    DONE(optimizer_step(optimizer, &error));
    CHECK_NEAR(value_of(weight, 0), 6.5, 0);
    optimizer_free(optimizer);
    tensor_release(weight);
}

// ---- plans --------------------------------------------------------------------------------------

static void no_capture(Device *one) {
    (void)one;
}

// A device that captures steps is given equal memory for equal ones.
static const Backend *begin_capture(Backend *capturing) {
    const Backend *own = device->backend;
    *capturing = *own;
    capturing->end_step = no_capture;
    device->backend = capturing;
    return own;
}

static void step_with(Tensor *weight, Optimizer *optimizer, Scaler *scaler) {
    optimizer_zero_grad(optimizer);
    backward(scaler, weight, (float[]){1, 2});
    DONE(scaler_unscale(scaler, optimizer->gradients, &error));
    Tensor *norm = optimizer_clip_norm(engine, &weight, 1, 1, &error);
    CHECK_MESSAGE(norm, "%s", error.text);
    tensor_release(norm);
    DONE(optimizer_step_scaled(optimizer, scaler, &error));
    DONE(scaler_update(scaler, 0, &error));
    CHECK(engine_end_step(engine, NULL));
}

static void plans_stay_as_they_are_in_steady_steps(void) {
    Backend capturing;
    const Backend *own = begin_capture(&capturing);
    Tensor *weight = parameter("w", 2, (float[]){1, 2});
    Optimizer *optimizer = sgd(weight, 0.1);
    Scaler *scaler = scaler_named("dynamic");
    for (int i = 0; i < 3; i++)
        step_with(weight, optimizer, scaler);
    uint64_t scan = optimizer->gradients->plan.table.version,
             update = optimizer->plan.table.version;
    uint64_t clip = engine->clip.table.version;
    DONE(optimizer_set_rate(optimizer, 0.01, &error)); // is no part of a plan
    for (int i = 0; i < 3; i++)
        step_with(weight, optimizer, scaler);
    CHECK_INT(optimizer->gradients->plan.table.version, scan);
    CHECK_INT(optimizer->plan.table.version, update);
    CHECK_INT(engine->clip.table.version, clip);
    Tensor *elsewhere = constant(0, 2, (float[]){5, 6});
    tensor_adopt(weight, elsewhere);
    step_with(weight, optimizer, scaler);
    CHECK(optimizer->plan.table.version > update);
    device->backend = own;
    tensor_release(elsewhere);
    optimizer_free(optimizer);
    scaler_free(scaler);
    tensor_release(weight);
}

// ---- scales -------------------------------------------------------------------------------------

static void a_scale_that_stands_is_known_without_a_wait(void) {
    Tensor *weights[2] = {parameter("a", 1, (float[]){1}), parameter("b", 1, (float[]){2})};
    Scaler *fixed = scaler_named("1024"), *one = scaler_named("1");
    Scaler *moves = scaler_of(dynamic_rule(1, 2, 0.5, 2000, 1));
    uint64_t waits = device->waits;
    CHECK_NEAR(scaler_get(fixed), 1024, 0);
    DONE(scaler_set(fixed, 64, &error));
    CHECK_NEAR(scaler_get(fixed), 64, 0);
    for (int i = 0; i < 2; i++)
        backward(one, weights[i], (float[]){5});
    DONE(optimizer_clip_value(engine, weights, 2, 1, &error)); // scaled by 1 they are true
    CHECK_INT(device->waits, waits);
    for (int i = 0; i < 2; i++) {
        tensor_drop_grad(weights[i]);
        backward(moves, weights[i], (float[]){5});
    }
    DONE(optimizer_clip_value(engine, weights, 2, 1, &error));
    CHECK_INT(device->waits, waits + 1); // once for both
    scaler_free(moves);
    scaler_free(one);
    scaler_free(fixed);
    tensor_release(weights[0]);
    tensor_release(weights[1]);
}

// ---- what a skipped step takes back -------------------------------------------------------------

// One step that doubles a running statistic, with this gradient; what that is then.
static float step_moving(Tensor *weight, Optimizer *optimizer, Tensor *running, float gradient) {
    Tensor *next = op_two(engine, OP_add, running, running, NULL, &error);
    DONE(engine_change_buffer(engine, running, next, weight, &error));
    tensor_release(next);
    gradient_set(weight, (float[]){gradient});
    DONE(optimizer_step(optimizer, &error));
    CHECK(engine_end_step(engine, NULL));
    return value_of(running, 0);
}

static void a_skipped_step_leaves_all_as_it_was_and_reads_nothing(void) {
    Backend capturing;
    const Backend *own = begin_capture(&capturing);
    Tensor *weight = parameter("w", 1, (float[]){10});
    Tensor *running = constant(0, 1, (float[]){3});
    Optimizer *optimizer = sgd(weight, 1);
    WeightAverage *average = weight_average_new(engine, &weight, 1, 0.5, &error);
    const void *lies = running->view.data;
    // What comes first takes memory of the system, and of the device for its plan.
    step_moving(weight, optimizer, running, INFINITY);
    DONE(weight_average_update(average, optimizer_flags(optimizer), &error));
    for (int i = 0; i < 4; i++)
        step_moving(weight, optimizer, running, 1);
    uint64_t waits = device->waits, undo = engine->undo.table.version;
    CHECK_NEAR(step_moving(weight, optimizer, running, INFINITY), 48, 0);
    CHECK_INT(device->waits, waits + 1); // this test's own
    DONE(weight_average_update(average, optimizer_flags(optimizer), &error));
    CHECK_INT(device->waits, waits + 1);
    CHECK_NEAR(value_of(weight, 0), 6, 0);
    Tensor *of, *mean, *aside;
    CHECK(weight_average_at(average, 0, &of, &mean, &aside));
    CHECK_NEAR(value_of(mean, 0), 10, 0);
    CHECK_INT(optimizer_report(optimizer).skipped, 2);
    CHECK_NEAR(step_moving(weight, optimizer, running, 1), 96, 0);
    CHECK_NEAR(value_of(weight, 0), 5, 0);
    CHECK(running->view.data == lies); // a captured step finds it there again
    CHECK_INT(engine->undo.table.version, undo);
    device->backend = own;
    weight_average_free(average);
    optimizer_free(optimizer);
    tensor_release(running);
    tensor_release(weight);
}

// ---- what is a wait -----------------------------------------------------------------------------

// Of a device that runs on its own; any other has done its work by then.
static void giving_memory_back_to_the_system_is_a_wait(void) {
    void *memory = allocator_take(device->allocator, 1 << 20, MEMORY_WORKSPACE, &error);
    CHECK(memory != NULL);
    allocator_give(device->allocator, memory);
    uint64_t waits = device->waits;
    allocator_trim(device->allocator);
    CHECK((device->waits > waits) == (device->backend->report != NULL));
}

// Gives a device that runs on its own more to do than the host needs time to send.
static bool keep_busy(Tensor *memory) {
    enum { TIMES = 2000 };
    const OpAttr zero = {.create = {.a = 0}};
    const KernelCall fill = {
        .op = OP_fill, .output_count = 1, .output = {memory->view}, .attr = &zero};
    for (int i = 0; i < TIMES; i++)
        if (!device_run(device, &fill, &error))
            return false;
    return true;
}

static void sending_more_than_the_device_takes_on_is_a_wait(void) {
    enum { LITTLE = 1 << 10, MUCH = 64 << 20 };
    char *bytes = calloc(1, MUCH);
    Tensor *sent = tensor_new(device, FORMAT_FP32, 1, (int64_t[]){MUCH / 4}, MEMORY_DATA, &error);
    CHECK(bytes && sent);
    const bool runs_on_its_own = device->backend->report != NULL;
    uint64_t waits = device->waits;
    device_write(device, sent->view.data, bytes, LITTLE);
    CHECK_INT(device->waits, waits);
    device_write(device, sent->view.data, bytes, MUCH);
    if (runs_on_its_own && device->waits == waits) { // it was quicker than the host
        CHECK(keep_busy(sent));
        device_write(device, sent->view.data, bytes, MUCH);
    }
    CHECK((device->waits > waits) == runs_on_its_own);
    tensor_release(sent);
    free(bytes);
}

int main(void) {
#define TEST(name) \
    { #name, name }
    const TrainingTest tests[] = {
        TEST(random_numbers_are_counted_from_a_base_on_the_device),
        TEST(a_graph_that_outlives_its_step_keeps_its_random_numbers),
        TEST(rates_that_change_reach_the_next_update),
        TEST(plans_stay_as_they_are_in_steady_steps),
        TEST(a_scale_that_stands_is_known_without_a_wait),
        TEST(a_skipped_step_leaves_all_as_it_was_and_reads_nothing),
        TEST(giving_memory_back_to_the_system_is_a_wait),
        TEST(sending_more_than_the_device_takes_on_is_a_wait),
    };
    return training_run(tests, sizeof tests / sizeof *tests);
}
