// A library of the card's that refuses what it did in captured steps before: our own kernels give
// the same, the step that is captured next is theirs, and it is said. Over the emulated card alone,
// whose libraries do so from the first graph on.
#include "tests/unit/gpu_fixture.h"

static Error error;

enum { BATCH = 2, TIME = 16, HEADS = 2, DEPTH = 16, SIDE = 8, TAPS = 3, CHANNELS = 8 };
enum { WIDTH = HEADS * DEPTH, ROWS = BATCH * TIME, LEFT = SIDE - TAPS + 1 };

// Of one step, whose operations stand for those that two libraries do.
typedef struct Operation {
    OpId op;
    OpAttr attr;
    int inputs, outputs;
    View view[5]; // inputs, then outputs
} Operation;

typedef struct Numbers {
    float at[2048];
    int count;
} Numbers;

static View operand(Format format, int ndim, const int64_t *shape) {
    View view = view_dense(NULL, format, ndim, shape);
    size_t count = (size_t)view_count(&view);
    uint16_t host[2048];
    for (size_t i = 0; i < 2048; i++) {
        float value = (float)(i * 37 % 23) / 16 - 0.7f;
        uint32_t bits;
        memcpy(&bits, &value, sizeof bits);
        host[i] = (uint16_t)(bits >> 16);
    }
    view.data = on_device(gpu, host, count * format_table[format].bytes);
    return view;
}

static bool step(const Operation *operations, int count) {
    for (int i = 0; i < count; i++) {
        const Operation *one = &operations[i];
        KernelCall call = {
            .op = one->op, .attr = &one->attr, .input_count = 3, .output_count = one->outputs};
        for (int k = 0; k < one->inputs; k++)
            call.input[k] = one->view[k];
        for (int k = 0; k < one->outputs; k++)
            call.output[k] = one->view[one->inputs + k];
        CHECK_MESSAGE(device_run(gpu, &call, &error), "%s", error.text);
    }
    return device_works(gpu, NULL);
}

static Numbers numbers_of(const View *view) {
    static char raw[2048 * sizeof(float)];
    Numbers numbers = {.count = (int)view_count(view)};
    size_t bytes = format_table[view->format].bytes;
    device_read(gpu, raw, view->data, (size_t)numbers.count * bytes);
    for (int i = 0; i < numbers.count; i++)
        numbers.at[i] = (float)format_load(view->format, raw + (size_t)i * bytes);
    return numbers;
}

static bool end_step(void) {
    uint64_t captured = gpu->captured;
    device_end_step(gpu);
    return gpu->captured > captured;
}

static void what_libraries_refuse_after_it_was_held_back_our_kernels_do(void) {
    const Format low = FORMAT_BF16;
    const int64_t rows[] = {ROWS, WIDTH}, square[] = {WIDTH, WIDTH};
    const int64_t heads[] = {BATCH, TIME, HEADS, DEPTH}, sums[] = {2, BATCH, HEADS, TIME};
    const int64_t image[] = {BATCH, SIDE, SIDE, CHANNELS}, left[] = {BATCH, LEFT, LEFT, CHANNELS};
    const int64_t filters[] = {CHANNELS, TAPS, TAPS, CHANNELS};
    const Operation operations[] = {
        {.op = OP_linear,
         .inputs = 2,
         .outputs = 1,
         .view = {operand(low, 2, rows), operand(low, 2, square), operand(low, 2, rows)}},
        {.op = OP_attention,
         .attr = {.attention = {.scale = 0.25}},
         .inputs = 3,
         .outputs = 2,
         .view = {operand(low, 4, heads), operand(low, 4, heads), operand(low, 4, heads),
                  operand(low, 4, heads), operand(FORMAT_FP32, 4, sums)}},
        {.op = OP_conv2d,
         .attr = {.conv = {.stride = {1, 1}, .dilation = {1, 1}, .groups = 1}},
         .inputs = 2,
         .outputs = 1,
         .view = {operand(low, 4, image), operand(low, 4, filters), operand(low, 4, left)}},
    };
    enum { COUNT = sizeof operations / sizeof *operations, MOST = 20 };
    int steps = 0;
    for (bool captured = false; !captured && steps < MOST; steps++) {
        step(operations, COUNT);
        captured = end_step();
    }
    CHECK(steps < MOST);
    CHECK_TEXT(gpu->remark, "");
    Numbers before[COUNT][2];
    for (int i = 0; i < COUNT; i++)
        for (int k = 0; k < operations[i].outputs; k++)
            before[i][k] = numbers_of(&operations[i].view[operations[i].inputs + k]);
    end_step(); // in which was nothing else
    step(operations, COUNT);
    CHECK_TEXT(gpu->remark, ""); // all of it is held back
    for (int i = 0; i < COUNT; i++)
        for (int k = 0; k < operations[i].outputs; k++) {
            Numbers now = numbers_of(&operations[i].view[operations[i].inputs + k]);
            for (int n = 0; n < now.count; n++)
                CHECK_MESSAGE(fabsf(now.at[n] - before[i][k].at[n]) <=
                                  0.02f * (1 + fabsf(before[i][k].at[n])),
                              "%s, output %d: %g, not %g", op_table[operations[i].op].name, k,
                              (double)now.at[n], (double)before[i][k].at[n]);
        }
    CHECK_CONTAINS(gpu->remark, "cuBLASLt refuses now what it did in the captured steps before");
    CHECK_INT(end_step(), 0);
    for (int i = 0; i < 4; i++) {
        step(operations, COUNT);
        CHECK_INT(end_step(), i > 1);
    }
    CHECK_MESSAGE(device_check(gpu, &error), "%s", error.text);
    for (int i = 0; i < COUNT; i++)
        for (int k = 0; k < operations[i].inputs + operations[i].outputs; k++)
            allocator_give(gpu->allocator, operations[i].view[k].data);
}

int main(void) {
    int status;
    (void)setenv("MPBENCH_EMULATOR", "products=fickle,dnn=fickle", 1);
    if (!gpu_test_begin(&status))
        return status;
    RUN_TEST(what_libraries_refuse_after_it_was_held_back_our_kernels_do);
    return gpu_test_end();
}
