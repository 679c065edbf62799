// Steps of a card are captured behind its contract: what is asked for by words of kernel/kernel.h
// is there, whoever asks between, on every card of a process. Over the card that MPBENCH_GPU names,
// else over the emulated one.
#include "tests/unit/gpu_fixture.h"

static Error error;

enum { COUNT = 96 };

typedef struct Training { // of one number, COUNT times: y = x + one, x = y + one
    Device *device;
    float *x, *y, *one;
} Training;

static float *numbers_on(Device *device, float value) {
    float numbers[COUNT];
    for (int i = 0; i < COUNT; i++)
        numbers[i] = value;
    return on_device(device, numbers, sizeof numbers);
}

// No step of it was made before: not even by another test, in memory that this one has now.
static Training begin(Device *device) {
    allocator_trim(device->allocator);
    Training training = {device, numbers_on(device, 0), numbers_on(device, 0),
                         numbers_on(device, 1)};
    device_end_step(device);
    return training;
}

static void end(Training *training) {
    Allocator *allocator = training->device->allocator;
    allocator_give(allocator, training->x);
    allocator_give(allocator, training->y);
    allocator_give(allocator, training->one);
    CHECK_MESSAGE(device_check(training->device, &error), "%s", error.text);
}

static void add(const Training *training, float *from, float *to) {
    const int64_t shape[1] = {COUNT};
    const OpAttr attr = {.out_format = FORMAT_FP32};
    const KernelCall call = {
        .op = OP_add,
        .input_count = 2,
        .input = {view_dense(from, FORMAT_FP32, 1, shape),
                  view_dense(training->one, FORMAT_FP32, 1, shape)},
        .output_count = 1,
        .output = {view_dense(to, FORMAT_FP32, 1, shape)},
        .attr = &attr,
    };
    CHECK_MESSAGE(device_run(training->device, &call, &error), "%s", error.text);
}

static float read_last(const Training *training, const float *memory) {
    float numbers[COUNT];
    device_read(training->device, numbers, memory, sizeof numbers);
    return numbers[COUNT - 1];
}

// Whether it was captured.
static bool step(const Training *training) {
    uint64_t captured = training->device->captured;
    add(training, training->x, training->y);
    add(training, training->y, training->x);
    device_end_step(training->device);
    return training->device->captured > captured;
}

static void steps_that_repeat_are_captured_and_right(void) {
    Training one = begin(gpu);
    for (int i = 1; i <= 8; i++) {
        CHECK_INT(step(&one), i > 2);
        CHECK_NEAR(read_last(&one, one.x), 2 * i, 0);
    }
    end(&one);
}

static void number_that_is_asked_for_within_a_step_is_there(void) {
    Training one = begin(gpu);
    for (int i = 0; i < 4; i++)
        step(&one);
    for (int i = 4; i < 8; i++) {
        uint64_t captured = gpu->captured;
        add(&one, one.x, one.y);
        CHECK_NEAR(read_last(&one, one.y), 2 * i + 1, 0);
        add(&one, one.y, one.x);
        device_end_step(gpu);
        CHECK_INT(gpu->captured - captured, 0);
    }
    CHECK(step(&one)); // as before
    CHECK_NEAR(read_last(&one, one.x), 18, 0);
    end(&one);
}

static void memory_that_is_given_back_is_in_no_graph(void) {
    Training one = begin(gpu);
    for (int i = 0; i < 4; i++)
        step(&one);
    allocator_give(gpu->allocator, numbers_on(gpu, 5));
    allocator_trim(gpu->allocator);
    for (int i = 1; i <= 4; i++) // the first sent something too
        CHECK_INT(step(&one), i > 3);
    CHECK_NEAR(read_last(&one, one.x), 16, 0);
    end(&one);
}

static void what_is_written_between_calls_is_read_by_those_that_follow(void) {
    Training one = begin(gpu);
    float numbers[COUNT];
    uint64_t captured = gpu->captured;
    for (int i = 0; i < 8; i++) {
        add(&one, one.x, one.y);
        for (int k = 0; k < COUNT; k++)
            numbers[k] = (float)(100 * i);
        device_write(gpu, one.x, numbers, sizeof numbers);
        memset(numbers, 0, sizeof numbers);
        add(&one, one.x, one.y);
        device_end_step(gpu);
        CHECK_NEAR(read_last(&one, one.y), 100 * i + 1, 0);
    }
    CHECK_INT(gpu->captured - captured, 6);
    end(&one);
}

// Two of one card, and where there is another one of that.
static void each_device_of_a_process_captures_its_own_steps(void) {
    Device *others[2] = {NULL};
    CHECK_MESSAGE(device_open("gpu", 1, &others[0], &error), "%s", error.text);
    if (!device_open("gpu:1", 1, &others[1], &error))
        others[1] = NULL;
    Training all[3] = {begin(gpu)};
    int count = 1;
    for (int i = 0; i < 2; i++)
        if (others[i])
            all[count++] = begin(others[i]);
    others[0]->no_capture = true;
    for (int i = 1; i <= 6; i++)
        for (int k = 0; k < count; k++) {
            bool captured = step(&all[k]);
            CHECK_INT(captured, i > 2 && k != 1);
        }
    for (int k = 0; k < count; k++) {
        CHECK_NEAR(read_last(&all[k], all[k].x), 12, 0);
        end(&all[k]);
    }
    for (int i = 0; i < 2; i++)
        device_close(others[i]);
}

int main(void) {
    int status;
    (void)setenv("MPBENCH_EMULATOR", "cards=2", 0);
    if (!gpu_test_begin(&status))
        return status;
    RUN_TEST(steps_that_repeat_are_captured_and_right);
    RUN_TEST(number_that_is_asked_for_within_a_step_is_there);
    RUN_TEST(memory_that_is_given_back_is_in_no_graph);
    RUN_TEST(what_is_written_between_calls_is_read_by_those_that_follow);
    RUN_TEST(each_device_of_a_process_captures_its_own_steps);
    return gpu_test_end();
}
