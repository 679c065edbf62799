// A card so full that the first result of a plan of cuDNN's cannot be held against our own: our own
// kernel's stays, and after two such calls the plan is not tried again. Over the emulated card
// alone, which has as little memory as it is told.
#include "tests/unit/gpu_fixture.h"

enum { SIDE = 8, TAPS = 3, CHANNELS = 8, LEFT = SIDE - TAPS + 1, MOST_BLOCKS = 64 };

static Error error;

static View operand(int64_t n, int64_t h, int64_t w, int64_t c) {
    const int64_t shape[] = {n, h, w, c};
    static float host[4096];
    View view = view_dense(NULL, FORMAT_FP32, 4, shape);
    for (int64_t i = 0; i < view_count(&view); i++)
        host[i] = (float)(i * 37 % 23) / 16 - 0.7f;
    view.data = on_device(gpu, host, (size_t)view_count(&view) * sizeof *host);
    return view;
}

// Takes all that is left, but for less than a convolution's result.
static int fill(void *blocks[]) {
    int count = 0;
    for (size_t bytes = 1 << 20; bytes >= 1 << 9; bytes /= 2)
        for (void *block; count < MOST_BLOCKS &&
                          (block = allocator_take(gpu->allocator, bytes, MEMORY_DATA, &error));)
            blocks[count++] = block;
    return count;
}

static void what_there_is_no_memory_to_try_is_not_tried_for_ever(void) {
    const OpAttr attr = {.conv = {.stride = {1, 1}, .dilation = {1, 1}, .groups = 1}};
    KernelCall call = {
        .op = OP_conv2d,
        .attr = &attr,
        .input_count = 3,
        .output_count = 1,
        .input = {operand(1, SIDE, SIDE, CHANNELS), operand(CHANNELS, TAPS, TAPS, CHANNELS)},
        .output = {operand(1, LEFT, LEFT, CHANNELS)}};
    void *blocks[MOST_BLOCKS];
    CHECK(device_workspace(gpu, 1 << 16, &error)); // as an operation before it left it
    void *small = allocator_take(gpu->allocator, 1, MEMORY_DATA, &error);
    const int count = fill(blocks);
    CHECK(count < MOST_BLOCKS);
    enum { CALLS = 4, TRIED = 2 };
    for (int i = 0; i < CALLS; i++) {
        // What is cached is given up for the trial alone.
        allocator_give(gpu->allocator, small);
        const size_t reserved = allocator_use(gpu->allocator).reserved;
        CHECK_MESSAGE(device_run(gpu, &call, &error), "%s", error.text);
        const bool tried = allocator_use(gpu->allocator).reserved < reserved;
        CHECK_MESSAGE(tried == (i < TRIED), "call %d was %stried", i, tried ? "" : "not ");
        small = allocator_take(gpu->allocator, 1, MEMORY_DATA, &error);
        CHECK(small);
    }
    float got, expected = 0, x[SIDE * SIDE * CHANNELS], w[CHANNELS * TAPS * TAPS * CHANNELS];
    device_read(gpu, x, call.input[0].data, sizeof x);
    device_read(gpu, w, call.input[1].data, sizeof w);
    device_read(gpu, &got, call.output[0].data, sizeof got);
    for (int tap = 0; tap < TAPS * TAPS; tap++)
        for (int c = 0; c < CHANNELS; c++)
            expected += x[(tap / TAPS * SIDE + tap % TAPS) * CHANNELS + c] * w[tap * CHANNELS + c];
    CHECK_MESSAGE(fabsf(got - expected) < 1e-4f, "%g, not %g", (double)got, (double)expected);
    for (int i = 0; i < count; i++)
        allocator_give(gpu->allocator, blocks[i]);
    allocator_give(gpu->allocator, small);
    allocator_give(gpu->allocator, call.input[0].data);
    allocator_give(gpu->allocator, call.input[1].data);
    allocator_give(gpu->allocator, call.output[0].data);
}

int main(void) {
    int status;
    (void)setenv("MPBENCH_EMULATOR", "dnn=right,memory=4M", 1);
    if (!gpu_test_begin(&status))
        return status;
    RUN_TEST(what_there_is_no_memory_to_try_is_not_tried_for_ever);
    return gpu_test_end();
}
