// Products with weights in int8: the same bits on every level of the processor and on the reference
// device, and what the numbers are by hand.
#include "base/isa.h"
#include "cpu/cpu.h"
#include "kernel/int8.h"
#include "precision/calibration.h"
#include "tests/test.h"

static Device *cpu, *ref;

static uint32_t drawn = 1;
static float draw(void) {
    drawn = drawn * 1664525u + 1013904223u;
    return (float)(int32_t)drawn * 0x1p-31f;
}

typedef struct Arrays {
    View x, weight, bias, y, wanted;
    OpAttr attr;
    float steps[64];
} Arrays;

static View array_new(Format format, int ndim, const int64_t *shape) {
    View view = view_dense(NULL, format, ndim, shape);
    size_t bytes = (size_t)view_count(&view) * format_table[format].bytes;
    view.data = calloc(1, bytes ? bytes : 1);
    return view;
}

static void fill(const View *view, float range) {
    for (int64_t i = 0; i < view_count(view); i++)
        if (view->format == FORMAT_INT8)
            ((int8_t *)view->data)[i] = (int8_t)(draw() * 127.0f);
        else
            format_store(view->format,
                         (char *)view->data + i * (int64_t)format_table[view->format].bytes,
                         (double)(draw() * range), OVERFLOW_SATURATES);
}

static void arrays_free(Arrays *arrays) {
    free(arrays->x.data);
    free(arrays->weight.data);
    free(arrays->bias.data);
    free(arrays->y.data);
    free(arrays->wanted.data);
}

static Arrays arrays_new(Format x_format, Format y_format, int ndim, const int64_t *x,
                         const int64_t *weight, const int64_t *y, bool has_bias) {
    Arrays arrays = {.x = array_new(x_format, ndim, x),
                     .weight = array_new(FORMAT_INT8, ndim, weight),
                     .bias = has_bias ? array_new(FORMAT_FP32, 1, weight) : (View){.data = NULL},
                     .y = array_new(y_format, ndim, y),
                     .wanted = array_new(y_format, ndim, y),
                     .attr = {.int8 = {.step = 0.011f}}};
    fill(&arrays.x, 2); // some are clipped
    fill(&arrays.weight, 1);
    if (has_bias)
        fill(&arrays.bias, 3);
    for (int i = 0; i < 64; i++)
        arrays.steps[i] = 0.001f * (float)(i + 1);
    return arrays;
}

static bool run_on(Device *device, OpId op, Arrays *arrays, const View *y) {
    Error error = {0};
    KernelCall call = {.op = op, .input_count = 3, .output_count = 1, .attr = &arrays->attr};
    call.input[0] = arrays->x;
    call.input[1] = arrays->weight;
    call.input[2] = arrays->bias;
    call.output[0] = *y;
    arrays->attr.int8.steps = arrays->steps;
    bool done = device_run(device, &call, &error);
    CHECK_MESSAGE(done, "%s", error.text);
    return done;
}

static void compare(OpId op, Arrays *arrays, const char *what) {
    const size_t bytes = (size_t)view_count(&arrays->y) * format_table[arrays->y.format].bytes;
    run_on(ref, op, arrays, &arrays->wanted);
    for (int level = 0; level <= (int)isa_level(); level++) {
        if (!cpu_set_level(cpu, (IsaLevel)level))
            continue;
        memset(arrays->y.data, 0x55, bytes);
        run_on(cpu, op, arrays, &arrays->y);
        CHECK_MESSAGE(memcmp(arrays->y.data, arrays->wanted.data, bytes) == 0,
                      "%s parts from the reference on level %s", what,
                      isa_level_name((IsaLevel)level));
    }
    cpu_set_level(cpu, isa_level());
    arrays_free(arrays);
}

static void linear_is_the_same_everywhere(void) {
    static const int64_t rows[] = {1, 2, 3, 4, 13, 61}, depths[] = {1, 3, 4, 63, 64, 129, 700},
                         columns[] = {1, 15, 33, 64};
    char what[80];
    for (size_t r = 0; r < 6; r++)
        for (size_t d = 0; d < 7; d++)
            for (size_t c = 0; c < 4; c++) {
                int64_t x[] = {rows[r], depths[d]}, w[] = {columns[c], depths[d]},
                        y[] = {rows[r], columns[c]};
                Arrays arrays = arrays_new(r % 2 ? FORMAT_BF16 : FORMAT_FP32,
                                           d % 2 ? FORMAT_FP32 : FORMAT_FP16, 2, x, w, y, c % 2);
                arrays.attr.linear.activation = d % 2 ? ACTIVATION_RELU : ACTIVATION_NONE;
                snprintf(what, sizeof what, "%lld x %lld x %lld", (long long)x[0], (long long)x[1],
                         (long long)y[1]);
                compare(OP_linear, &arrays, what);
            }
}

static void convolutions_are_the_same_everywhere(void) {
    static const struct {
        int64_t size[2], channels, filters, kernel[2], groups;
        int64_t stride, padding, dilation;
    } cases[] = {
        {{7, 6}, 1, 5, {3, 3}, 1, 1, 0, 1},  {{7, 6}, 3, 8, {3, 3}, 1, 1, 1, 1},
        {{9, 8}, 4, 34, {3, 2}, 1, 2, 1, 1}, {{9, 9}, 6, 6, {3, 3}, 3, 1, 2, 2},
        {{5, 5}, 8, 8, {1, 1}, 1, 1, 0, 1},  {{5, 5}, 8, 8, {3, 3}, 8, 1, 1, 1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int64_t x[] = {2, cases[i].size[0], cases[i].size[1], cases[i].channels};
        int64_t w[] = {cases[i].filters, cases[i].kernel[0], cases[i].kernel[1],
                       cases[i].channels / cases[i].groups};
        int64_t y[] = {2, 0, 0, cases[i].filters};
        for (int d = 0; d < 2; d++)
            y[1 + d] = (x[1 + d] + 2 * cases[i].padding -
                        cases[i].dilation * (cases[i].kernel[d] - 1) - 1) /
                           cases[i].stride +
                       1;
        Arrays arrays = arrays_new(FORMAT_FP32, FORMAT_FP32, 4, x, w, y, i % 2);
        arrays.attr.conv = (ConvAttr){.stride = {cases[i].stride, cases[i].stride},
                                      .padding = {cases[i].padding, cases[i].padding},
                                      .dilation = {cases[i].dilation, cases[i].dilation},
                                      .groups = cases[i].groups,
                                      .activation = i % 2 ? ACTIVATION_NONE : ACTIVATION_RELU};
        char what[40];
        snprintf(what, sizeof what, "convolution %zu", i);
        compare(OP_conv2d, &arrays, what);
    }
}

// 1.27 in steps of 0.01 is 127; -2 is clipped; by weights 1 and -3 in steps of 0.5.
static void a_product_by_hand(void) {
    int64_t x[] = {1, 2}, w[] = {1, 2}, y[] = {1, 1};
    Arrays arrays = arrays_new(FORMAT_FP32, FORMAT_FP32, 2, x, w, y, true);
    memcpy(arrays.x.data, (const float[]){1.27f, -2.0f}, 8);
    memcpy(arrays.weight.data, (const int8_t[]){1, -3}, 2);
    memcpy(arrays.bias.data, (const float[]){10.0f}, 4);
    arrays.attr.int8.step = 0.01f;
    arrays.steps[0] = 0.5f;
    run_on(ref, OP_linear, &arrays, &arrays.y);
    CHECK_NEAR((double)*(float *)arrays.y.data, 10 + (127 + 3 * 127) * 0.005, 1e-5);
    arrays_free(&arrays);
}

// The largest sum that there may be, of either sign.
static void sums_fit(void) {
    int64_t x[] = {4, INT8_MOST_DEPTH}, w[] = {1, INT8_MOST_DEPTH}, y[] = {4, 1};
    Arrays arrays = arrays_new(FORMAT_FP32, FORMAT_FP32, 2, x, w, y, false);
    arrays.attr.int8.step = arrays.steps[0] = 1;
    for (int64_t i = 0; i < 4 * INT8_MOST_DEPTH; i++)
        ((float *)arrays.x.data)[i] = i < 2 * INT8_MOST_DEPTH ? 127 : -127;
    memset(arrays.weight.data, 127, INT8_MOST_DEPTH);
    run_on(cpu, OP_linear, &arrays, &arrays.y);
    const float *sums = arrays.y.data;
    CHECK((double)sums[0] == 127.0 * 127 * INT8_MOST_DEPTH);
    CHECK((double)sums[3] == -127.0 * 127 * INT8_MOST_DEPTH);
    compare(OP_linear, &arrays, "the deepest");
}

static void rows_have_steps_of_their_own(void) {
    const float weights[] = {1.27f, -0.64f, 0, 0, -254, 1};
    int8_t numbers[6];
    float steps[3];
    CHECK(int8_from_rows(weights, 3, 2, numbers, steps));
    CHECK(numbers[0] == 127 && numbers[1] == -64);
    CHECK(numbers[2] == 0 && numbers[3] == 0 && steps[1] == 1);
    CHECK(numbers[4] == -127 && numbers[5] == 0 && steps[2] == 2); // 0.5 is even at 0
    CHECK(!int8_from_rows((const float[]){1, INFINITY}, 1, 2, numbers, steps));
    CHECK(!int8_from_rows((const float[]){NAN, 1}, 1, 2, numbers, steps));
    CHECK(int8_from_rows((const float[]){0x1p-149f, 0}, 1, 2, numbers, steps) && numbers[0] == 0);
}

static void calibration_clips_what_is_rare(void) {
    enum { COUNT = 400000 }; // of a few, the one would lose more than wider steps for all do
    static float values[COUNT];
    Calibration *one = calibration_new(), *two = calibration_new();
    for (int i = 0; i < COUNT; i++)
        values[i] = draw();
    values[7] = 100; // alone
    CHECK(calibration_add(one, values, COUNT));
    CHECK_NEAR((double)calibration_step(one, true), 100.0 / 127, 1e-6);
    CHECK((double)calibration_step(one, false) < 1.2 / 127);
    CHECK((double)calibration_step(one, false) > 0.95 / 127);
    for (int i = COUNT; i > 0; i -= 1000) // in another order, and in parts
        CHECK(calibration_add(two, values + i - 1000, 1000));
    CHECK(calibration_step(one, false) == calibration_step(two, false));
    CHECK(!calibration_add(one, (const float[]){INFINITY}, 1));
    calibration_free(one);
    calibration_free(two);
    one = calibration_new();
    CHECK(calibration_add(one, (const float[]){0, 0}, 2) && calibration_step(one, false) == 1);
    calibration_free(one);
}

int main(void) {
    Error error = {0};
    if (!device_open("cpu", 2, &cpu, &error) || !device_open("ref", 1, &ref, &error)) {
        fprintf(stderr, "%s\n", error.text);
        return 1;
    }
    RUN_TEST(linear_is_the_same_everywhere);
    RUN_TEST(convolutions_are_the_same_everywhere);
    RUN_TEST(a_product_by_hand);
    RUN_TEST(sums_fit);
    RUN_TEST(rows_have_steps_of_their_own);
    RUN_TEST(calibration_clips_what_is_rare);
    device_close(cpu);
    device_close(ref);
    return test_end();
}
