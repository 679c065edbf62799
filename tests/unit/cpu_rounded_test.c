// Products of the CPU in tf32, at each level of instructions, to the bit.
#include <math.h>

#include "number/inline.h"
#include "tests/unit/cpu_fixture.h"

static const OpAttr tf32 = {.has_compute = true, .compute = FORMAT_TF32};

// What becomes of a factor: eleven digits, ties to even, in fp32's range.
static const struct {
    float given, kept;
} golden[] = {
    {1, 1},
    {1 + 0x1p-10f, 1 + 0x1p-10f},
    {1 + 0x1p-11f, 1},                       // half way, down to even
    {1 + 3 * 0x1p-11f, 1 + 0x1p-9f},         // half way, up to even
    {1 + 0x1p-11f + 0x1p-23f, 1 + 0x1p-10f}, // a little more than half
    {-1 - 3 * 0x1p-11f, -1 - 0x1p-9f},
    {65520, 65536},               // beyond fp16
    {0x1.ffcp127f, 0x1.ffcp127f}, // the largest
    {0x1.ffdp127f, 0x1.ffcp127f},
    {0x1.fffffep127f, INFINITY},
    {-INFINITY, -INFINITY},
    {0x1p-126f, 0x1p-126f},
    {0.1f, 0x1.998p-4f},
    {1 / 3.0f, 0x1.554p-2f},
};
enum { GOLDEN = sizeof golden / sizeof *golden };

static void single_factors_become_what_tf32_makes_of_them(void) {
    float *x = numbers(GOLDEN), *one = numbers(1), *y = numbers(GOLDEN);
    *one = 1;
    for (int side = 0; side < 2; side++) {
        for (int i = 0; i < GOLDEN; i++)
            x[i] = golden[i].given;
        const View many = matrix(x, FORMAT_FP32, side ? 1 : GOLDEN, side ? GOLDEN : 1);
        const View single = matrix(one, FORMAT_FP32, 1, 1);
        run((KernelCall){.op = OP_matmul,
                         .attr = &tf32,
                         .input = {side ? single : many, side ? many : single},
                         .output = {matrix(y, FORMAT_FP32, many.shape[0], many.shape[1])}});
        for (int i = 0; i < GOLDEN; i++)
            CHECK_MESSAGE(y[i] == golden[i].kept, "%a became %a, expected %a",
                          (double)golden[i].given, (double)y[i], (double)golden[i].kept);
        for (int i = 0; i < GOLDEN; i++)
            CHECK(x[i] == golden[i].given); // what is given stays as it is
    }
    x[0] = NAN;
    run((KernelCall){.op = OP_matmul,
                     .attr = &tf32,
                     .input = {matrix(x, FORMAT_FP32, 1, 1), matrix(one, FORMAT_FP32, 1, 1)},
                     .output = {matrix(y, FORMAT_FP32, 1, 1)}});
    CHECK(isnan(y[0]));
    give(x), give(one), give(y);
}

enum { ROWS = 37, DEPTH = 53, COLUMNS = 41, GAP = 3 };

// Numbers with a digit more than tf32 has, and with signs alone: whatever the order, sums of
// products of the two are exact.
static void fill(float *x, int64_t count, bool signs) {
    draw(x, count, signs ? 1 : 2);
    for (int64_t i = 0; i < count; i++)
        x[i] = signs ? copysignf(1, x[i]) : 1 + floorf(x[i] * 1024) * 0x1p-11f;
}

static double sum_of(const View *a, const View *b, int64_t row, int64_t column) {
    const float *x = a->data, *w = b->data;
    double sum = 0;
    for (int64_t k = 0; k < DEPTH; k++)
        sum += (double)number_fp32_through_tf32(x[row * a->stride[0] + k * a->stride[1]]) *
               (double)number_fp32_through_tf32(w[k * b->stride[0] + column * b->stride[1]]);
    return sum;
}

// As it lies, turned, with gaps, and with one row for all; on either side.
static void factors_are_rounded_however_they_lie(void) {
    static const int64_t strides[][2] = {{DEPTH, 1}, {1, ROWS},     {DEPTH + GAP, 1},
                                         {0, 1},     {2, 2 * ROWS}, {0, 0}};
    enum { MOST = 2 * COLUMNS * (DEPTH + GAP) };
    float *x = numbers(MOST), *w = numbers(MOST), *y = numbers(ROWS * COLUMNS);
    for (size_t i = 0; i < 2 * sizeof strides / sizeof *strides; i++) {
        const bool turned = i % 2;
        const int64_t *stride = strides[i / 2];
        View a = matrix(x, FORMAT_FP32, ROWS, DEPTH), b = matrix(w, FORMAT_FP32, DEPTH, COLUMNS);
        fill(x, MOST, turned), fill(w, MOST, !turned);
        if (turned) // the columns of the second lie as rows of the first would
            b.stride[0] = stride[1] == ROWS ? COLUMNS : stride[1], b.stride[1] = stride[0];
        else
            a.stride[0] = stride[0], a.stride[1] = stride[1];
        run((KernelCall){.op = OP_matmul,
                         .attr = &tf32,
                         .input = {a, b},
                         .output = {matrix(y, FORMAT_FP32, ROWS, COLUMNS)}});
        int64_t wrong = 0;
        for (int64_t k = 0; k < ROWS * COLUMNS; k++)
            wrong += (double)y[k] != sum_of(&a, &b, k / COLUMNS, k % COLUMNS);
        CHECK_MESSAGE(wrong == 0, "strides %d of factor %d: %d numbers are wrong", (int)(i / 2),
                      (int)turned, (int)wrong);
    }
    give(x), give(w), give(y);
}

// The bias of a convolution is no factor, so its gradient sums what it is given.
static void the_gradient_of_a_bias_is_not_rounded(void) {
    static const int64_t image[] = {1, 1, 1, 1}, taps[] = {1, 1, 1, 1}, one[] = {1};
    const OpAttr attr = {
        .has_compute = true,
        .compute = FORMAT_TF32,
        .conv = {
            .stride = {1, 1}, .dilation = {1, 1}, .groups = 1, .input = {1, 1}, .kernel = {1, 1}}};
    float *x = numbers(1), *dy = numbers(1), *dw = numbers(1), *dbias = numbers(1);
    *x = 1, *dy = 1 + 0x1p-12f;
    run((KernelCall){
        .op = OP_conv2d_backward_weight,
        .attr = &attr,
        .input = {view_dense(x, FORMAT_FP32, 4, image), view_dense(dy, FORMAT_FP32, 4, image)},
        .output = {view_dense(dw, FORMAT_FP32, 4, taps), view_dense(dbias, FORMAT_FP32, 1, one)}});
    CHECK(*dw == 1);
    CHECK(*dbias == 1 + 0x1p-12f);
    give(x), give(dy), give(dw), give(dbias);
}

int main(void) {
    if (!cpu_test_begin())
        return 1;
    while (cpu_next_level()) {
        AT_LEVEL(single_factors_become_what_tf32_makes_of_them);
        AT_LEVEL(factors_are_rounded_however_they_lie);
        AT_LEVEL(the_gradient_of_a_bias_is_not_rounded);
    }
    return cpu_test_end();
}
