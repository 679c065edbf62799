// Loops down the columns of a matrix: sums over rows, and batch norm.
//
// Rows are read in their order, four at a time, into one fp32 sum a column that stays in the
// nearest cache; after BLOCK_ROWS rows these go into the sums in double.
#include <string.h>

#include "cpu/simd.h"
#include "cpu/simd/load.h"

enum { BLOCK_ROWS = 64 };

static void flush(float *restrict scratch, double *restrict sum, int64_t width) {
    for (int64_t i = 0; i < width; i++) {
        sum[i] += (double)scratch[i];
        scratch[i] = 0;
    }
}

// ---- sum ----------------------------------------------------------------------------------------

MATH_INLINE void sum_block(Format format, const void *restrict x, int64_t rows, int64_t stride,
                           int64_t width, float *restrict scratch) {
    int64_t row = 0;
    for (; row + 4 <= rows; row += 4) {
        const void *a = load_offset(format, x, row * stride);
        const void *b = load_offset(format, a, stride), *c = load_offset(format, b, stride);
        const void *d = load_offset(format, c, stride);
#pragma omp simd
        for (int64_t i = 0; i < width; i++)
            scratch[i] += (load_element(format, a, i) + load_element(format, b, i)) +
                          (load_element(format, c, i) + load_element(format, d, i));
    }
    for (; row < rows; row++) {
        const void *a = load_offset(format, x, row * stride);
#pragma omp simd
        for (int64_t i = 0; i < width; i++)
            scratch[i] += load_element(format, a, i);
    }
}

static void columns_sum(Format format, const void *x, int64_t rows, int64_t stride, int64_t width,
                        float *scratch, double *sum) {
    memset(scratch, 0, (size_t)width * sizeof *scratch);
    for (int64_t row = 0; row < rows; row += BLOCK_ROWS) {
        int64_t count = rows - row < BLOCK_ROWS ? rows - row : BLOCK_ROWS;
        const void *block = load_offset(format, x, row * stride);
        FORMAT_SPLIT(format, sum_block, block, count, stride, width, scratch);
        flush(scratch, sum, width);
    }
}

// ---- batch norm, forward ------------------------------------------------------------------------

MATH_INLINE void moments_block(Format format, const void *restrict x, int64_t rows, int64_t width,
                               const float *restrict shift, float *restrict scratch) {
    float *restrict squares = scratch + width;
    int64_t row = 0;
    for (; row + 2 <= rows; row += 2) {
        const void *a = load_offset(format, x, row * width), *b = load_offset(format, a, width);
#pragma omp simd
        for (int64_t i = 0; i < width; i++) {
            float first = load_element(format, a, i) - shift[i];
            float second = load_element(format, b, i) - shift[i];
            scratch[i] += first + second;
            squares[i] = math_fma(first, first, math_fma(second, second, squares[i]));
        }
    }
    for (; row < rows; row++) {
        const void *a = load_offset(format, x, row * width);
#pragma omp simd
        for (int64_t i = 0; i < width; i++) {
            float away = load_element(format, a, i) - shift[i];
            scratch[i] += away;
            squares[i] = math_fma(away, away, squares[i]);
        }
    }
}

static void columns_moments(Format format, const void *x, int64_t rows, int64_t width,
                            const float *shift, float *scratch, double *sum, double *squares) {
    memset(scratch, 0, 2 * (size_t)width * sizeof *scratch);
    for (int64_t row = 0; row < rows; row += BLOCK_ROWS) {
        int64_t count = rows - row < BLOCK_ROWS ? rows - row : BLOCK_ROWS;
        const void *block = load_offset(format, x, row * width);
        FORMAT_SPLIT(format, moments_block, block, count, width, shift, scratch);
        flush(scratch, sum, width);
        flush(scratch + width, squares, width);
    }
}

MATH_INLINE void apply_rows(Format format, const void *restrict x, Format y_format,
                            void *restrict y, int64_t rows, int64_t width,
                            const float *restrict mean, const float *restrict factor,
                            const float *restrict offset) {
    for (int64_t row = 0; row < rows; row++) {
        const void *from = load_offset(format, x, row * width);
        void *to = store_offset(y_format, y, row * width);
#pragma omp simd
        for (int64_t i = 0; i < width; i++)
            store_element(y_format, to, i,
                          math_fma(load_element(format, from, i) - mean[i], factor[i], offset[i]));
    }
}

// The same for two formats.
#define PAIR_SPLIT(first, second, function, ...)               \
    do {                                                       \
        if ((second) == FORMAT_BF16)                           \
            FORMAT_SPLIT(first, function##_bf16, __VA_ARGS__); \
        else if ((second) == FORMAT_FP16)                      \
            FORMAT_SPLIT(first, function##_fp16, __VA_ARGS__); \
        else                                                   \
            FORMAT_SPLIT(first, function##_fp32, __VA_ARGS__); \
    } while (0)

#define APPLY(name, format_y)                                                            \
    MATH_INLINE void apply_##name(Format format, const void *x, void *y, int64_t rows,   \
                                  int64_t width, const float *mean, const float *factor, \
                                  const float *offset) {                                 \
        apply_rows(format, x, format_y, y, rows, width, mean, factor, offset);           \
    }
APPLY(fp32, FORMAT_FP32)
APPLY(bf16, FORMAT_BF16)
APPLY(fp16, FORMAT_FP16)

static void columns_apply(Format x_format, const void *x, Format y_format, void *y, int64_t rows,
                          int64_t width, const float *mean, const float *factor,
                          const float *offset) {
    PAIR_SPLIT(x_format, y_format, apply, x, y, rows, width, mean, factor, offset);
}

// ---- batch norm, backward -----------------------------------------------------------------------

MATH_INLINE void norm_sums_block(Format dy_format, const void *restrict dy, Format x_format,
                                 const void *restrict x, int64_t rows, int64_t width,
                                 const float *restrict mean, float *restrict scratch) {
    float *restrict products = scratch + width;
    for (int64_t row = 0; row < rows; row++) {
        const void *gradients = load_offset(dy_format, dy, row * width);
        const void *values = load_offset(x_format, x, row * width);
#pragma omp simd
        for (int64_t i = 0; i < width; i++) {
            float gradient = load_element(dy_format, gradients, i);
            float away = load_element(x_format, values, i) - mean[i];
            scratch[i] += gradient;
            products[i] = math_fma(gradient, away, products[i]);
        }
    }
}

MATH_INLINE void norm_dx_rows(Format dy_format, const void *restrict dy, Format x_format,
                              const void *restrict x, Format dx_format, void *restrict dx,
                              int64_t rows, int64_t width, const float *restrict mean,
                              const float *restrict factor, const float *restrict offset,
                              const float *restrict slope) {
    for (int64_t row = 0; row < rows; row++) {
        const void *gradients = load_offset(dy_format, dy, row * width);
        const void *values = load_offset(x_format, x, row * width);
        void *to = store_offset(dx_format, dx, row * width);
#pragma omp simd
        for (int64_t i = 0; i < width; i++) {
            float away = load_element(x_format, values, i) - mean[i];
            float gradient = load_element(dy_format, gradients, i);
            float common = math_fma(away, slope[i], offset[i]);
            store_element(dx_format, to, i, math_fma(factor[i], gradient, -common));
        }
    }
}

#define BACKWARD(name, format_x)                                                               \
    MATH_INLINE void sums_##name(Format format, const void *dy, const void *x, int64_t rows,   \
                                 int64_t width, const float *mean, float *scratch) {           \
        norm_sums_block(format, dy, format_x, x, rows, width, mean, scratch);                  \
    }                                                                                          \
    MATH_INLINE void dx_##name(Format format, const void *dy, const void *x, void *dx,         \
                               int64_t rows, int64_t width, const float *mean,                 \
                               const float *factor, const float *offset, const float *slope) { \
        norm_dx_rows(format, dy, format_x, x, format_x, dx, rows, width, mean, factor, offset, \
                     slope);                                                                   \
    }
BACKWARD(fp32, FORMAT_FP32)
BACKWARD(bf16, FORMAT_BF16)
BACKWARD(fp16, FORMAT_FP16)

static void columns_norm_sums(Format dy_format, const void *dy, Format x_format, const void *x,
                              int64_t rows, int64_t width, const float *mean, const float *inverse,
                              float *scratch, double *sum_dy, double *sum_dy_x) {
    memset(scratch, 0, 2 * (size_t)width * sizeof *scratch);
    for (int64_t row = 0; row < rows; row += BLOCK_ROWS) {
        int64_t count = rows - row < BLOCK_ROWS ? rows - row : BLOCK_ROWS;
        const void *gradients = load_offset(dy_format, dy, row * width);
        const void *values = load_offset(x_format, x, row * width);
        PAIR_SPLIT(dy_format, x_format, sums, gradients, values, count, width, mean, scratch);
        flush(scratch, sum_dy, width);
        for (int64_t i = 0; i < width; i++)
            scratch[width + i] *= inverse[i];
        flush(scratch + width, sum_dy_x, width);
    }
}

// Three formats that differ: rare, so right and not fast.
static void norm_dx_mixed(Format dy_format, const void *dy, Format x_format, const void *x,
                          Format dx_format, void *dx, int64_t count, int64_t width,
                          const float *mean, const float *factor, const float *offset,
                          const float *slope) {
    for (int64_t i = 0; i < count; i++) {
        int64_t column = i % width;
        float common =
            math_fma(load_element(x_format, x, i) - mean[column], slope[column], offset[column]);
        float gradient = load_element(dy_format, dy, i);
        store_element(dx_format, dx, i, math_fma(factor[column], gradient, -common));
    }
}

static void columns_norm_dx(Format dy_format, const void *dy, Format x_format, const void *x,
                            Format dx_format, void *dx, int64_t rows, int64_t width,
                            const float *mean, const float *factor, const float *offset,
                            const float *slope) {
    if (dx_format == x_format) // what training meets
        PAIR_SPLIT(dy_format, x_format, dx, dy, x, dx, rows, width, mean, factor, offset, slope);
    else
        norm_dx_mixed(dy_format, dy, x_format, x, dx_format, dx, rows * width, width, mean, factor,
                      offset, slope);
}

extern const CpuColumns ISA_NAME(cpu_columns);
const CpuColumns ISA_NAME(cpu_columns) = {
    .sum = columns_sum,
    .moments = columns_moments,
    .norm_sums = columns_norm_sums,
    .apply = columns_apply,
    .norm_dx = columns_norm_dx,
};
