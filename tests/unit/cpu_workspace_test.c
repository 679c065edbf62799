// tests/unit/cpu_workspace_test.c: what kernels of the CPU device take beside their arrays.
#include "tests/unit/cpu_fixture.h"

typedef struct Workspace {
    const char *what;
    OpId op;
    int64_t images, size, channels, filters, kernel, stride;
} Workspace;

// In fp16, by two threads. Whole copies in fp32 would take 6 MiB and more in each case.
enum { MOST = 21 << 18 };
static const Workspace convolutions[] = {
    {"images by slices", OP_conv2d, 64, 32, 32, 32, 3, 1},
    {"gradients of images by slices", OP_conv2d_backward_input, 64, 32, 32, 32, 3, 1},
    {"both by slices", OP_conv2d_backward_weight, 64, 32, 32, 32, 3, 1},
    {"weights where the slices' copies come later", OP_conv2d_backward_input, 32, 16, 128, 256, 4,
     2},
    {"long windows", OP_conv2d, 32, 8, 256, 512, 4, 2},
    {"sums of images beside long windows", OP_conv2d_backward_input, 32, 8, 256, 512, 4, 2},
};

static View zeros(Format format, int64_t a, int64_t b, int64_t c, int64_t d) {
    const View shape = view_dense(NULL, format, 4, (int64_t[]){a, b, c, d});
    const size_t bytes = (size_t)view_count(&shape) * format_table[format].bytes;
    void *data = allocator_take(device->allocator, bytes, MEMORY_DATA, NULL);
    memset(data, 0, bytes);
    return view_dense(data, format, 4, shape.shape);
}

static size_t workspace_of(const KernelCall *call) {
    allocator_drop_workspace(device->allocator);
    allocator_forget_peaks(device->allocator);
    run(*call);
    return allocator_use(device->allocator).peak[MEMORY_WORKSPACE];
}

static void convolutions_of_low_formats_take_little(void) {
    for (size_t i = 0; i < sizeof convolutions / sizeof *convolutions; i++) {
        const Workspace *of = &convolutions[i];
        const int64_t out = of->size / of->stride;
        const OpAttr attr = {.conv = {.stride = {of->stride, of->stride},
                                      .padding = {1, 1},
                                      .dilation = {1, 1},
                                      .groups = 1,
                                      .input = {of->size, of->size},
                                      .kernel = {of->kernel, of->kernel}}};
        const bool weights = of->op == OP_conv2d_backward_weight;
        const View x = zeros(FORMAT_FP16, of->images, of->size, of->size, of->channels),
                   y = zeros(FORMAT_FP16, of->images, out, out, of->filters),
                   w = zeros(weights ? FORMAT_FP32 : FORMAT_FP16, of->filters, of->kernel,
                             of->kernel, of->channels);
        KernelCall call = {.op = of->op, .input = {x, w}, .output = {y}, .attr = &attr};
        if (of->op == OP_conv2d_backward_input)
            call.input[0] = y, call.output[0] = x;
        if (weights)
            call.input[1] = y, call.output[0] = w;
        const size_t used = workspace_of(&call);
        CHECK_MESSAGE(used <= MOST, "%s: %zu bytes", of->what, used);
        give(x.data), give(y.data), give(w.data);
    }
}

static void sums_of_many_columns_take_little(void) {
    enum { ROWS = 8, COLUMNS = 98304 + 5 };
    float *x = numbers((int64_t)ROWS * COLUMNS), *y = numbers(COLUMNS);
    draw(x, (int64_t)ROWS * COLUMNS, 7);
    const OpAttr attr = {.reduce = {.dims = 1}};
    const KernelCall call = {.op = OP_sum,
                             .input = {matrix(x, FORMAT_FP32, ROWS, COLUMNS)},
                             .output = {vector(y, FORMAT_FP32, COLUMNS)},
                             .attr = &attr};
    const size_t used = workspace_of(&call);
    CHECK_MESSAGE(used <= 1 << 19, "%zu bytes", used);
    for (int64_t i = 0; i < COLUMNS; i++) {
        double sum = 0;
        for (int64_t row = 0; row < ROWS; row++)
            sum += (double)x[row * COLUMNS + i];
        CHECK_NEAR(y[i], sum, 1e-5);
    }
    give(x), give(y);
}

int main(void) {
    if (!cpu_test_begin())
        return 1;
    RUN_TEST(convolutions_of_low_formats_take_little);
    RUN_TEST(sums_of_many_columns_take_little);
    return cpu_test_end();
}
