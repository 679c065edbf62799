// Loops down the columns of a matrix: sums over rows, and batch norm.
//
// Rows are read in their order, four at a time, into one fp32 sum a column that stays in the
// nearest cache; after BLOCK_ROWS rows these go into the sums in double.
#include <string.h>

#include "cpu/simd.h"
#include "cpu/simd/load.h"
#include "cpu/simd/vector.h"

enum { BLOCK_ROWS = 64 };

ALWAYS_INLINE Vector load_floats(const float *from, int64_t at, int count) {
    return vector_load_some(from, FORMAT_FP32, at, count);
}

ALWAYS_INLINE void store_floats(float *to, int64_t at, int count, Vector value) {
    vector_store_some(to, FORMAT_FP32, at, count, value);
}

static void flush(float *restrict scratch, double *restrict sum, int64_t width) {
    for (int64_t i = 0; i < width; i++) {
        sum[i] += (double)scratch[i];
        scratch[i] = 0;
    }
}

// ---- sum ----------------------------------------------------------------------------------------

ALWAYS_INLINE void sum_four(Format format, const void *a, const void *b, const void *c,
                            const void *d, float *scratch, int64_t at, int count) {
    const Vector first =
        vector_load_some(a, format, at, count) + vector_load_some(b, format, at, count);
    const Vector second =
        vector_load_some(c, format, at, count) + vector_load_some(d, format, at, count);
    store_floats(scratch, at, count, load_floats(scratch, at, count) + (first + second));
}

ALWAYS_INLINE void sum_one(Format format, const void *a, float *scratch, int64_t at, int count) {
    store_floats(scratch, at, count,
                 load_floats(scratch, at, count) + vector_load_some(a, format, at, count));
}

ALWAYS_INLINE void sum_block(Format format, const void *x, int64_t rows, int64_t stride,
                             int64_t width, float *scratch) {
    int64_t row = 0;
    for (; row + 4 <= rows; row += 4) {
        const void *a = load_offset(format, x, row * stride);
        const void *b = load_offset(format, a, stride), *c = load_offset(format, b, stride);
        const void *d = load_offset(format, c, stride);
        EACH_VECTOR(width, sum_four, format, a, b, c, d, scratch);
    }
    for (; row < rows; row++)
        EACH_VECTOR(width, sum_one, format, load_offset(format, x, row * stride), scratch);
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

ALWAYS_INLINE void moments_two(Format format, const void *a, const void *b, const float *shift,
                               float *sums, float *squares, int64_t at, int count) {
    const Vector from = load_floats(shift, at, count);
    const Vector first = vector_load_some(a, format, at, count) - from;
    const Vector second = vector_load_some(b, format, at, count) - from;
    const Vector square = vector_multiply_add(second, second, load_floats(squares, at, count));
    store_floats(sums, at, count, load_floats(sums, at, count) + (first + second));
    store_floats(squares, at, count, vector_multiply_add(first, first, square));
}

ALWAYS_INLINE void moments_one(Format format, const void *a, const float *shift, float *sums,
                               float *squares, int64_t at, int count) {
    const Vector away = vector_load_some(a, format, at, count) - load_floats(shift, at, count);
    store_floats(sums, at, count, load_floats(sums, at, count) + away);
    store_floats(squares, at, count,
                 vector_multiply_add(away, away, load_floats(squares, at, count)));
}

ALWAYS_INLINE void moments_block(Format format, const void *x, int64_t rows, int64_t width,
                                 const float *shift, float *scratch) {
    float *squares = scratch + width;
    int64_t row = 0;
    for (; row + 2 <= rows; row += 2) {
        const void *a = load_offset(format, x, row * width), *b = load_offset(format, a, width);
        EACH_VECTOR(width, moments_two, format, a, b, shift, scratch, squares);
    }
    for (; row < rows; row++)
        EACH_VECTOR(width, moments_one, format, load_offset(format, x, row * width), shift, scratch,
                    squares);
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

ALWAYS_INLINE void apply_some(Format format, const void *x, Format y_format, void *y,
                              const float *mean, const float *factor, const float *offset,
                              int64_t at, int count) {
    const Vector away = vector_load_some(x, format, at, count) - load_floats(mean, at, count);
    vector_store_some(
        y, y_format, at, count,
        vector_multiply_add(away, load_floats(factor, at, count), load_floats(offset, at, count)));
}

ALWAYS_INLINE void apply_rows(Format format, const void *x, Format y_format, void *y, int64_t rows,
                              int64_t width, const float *mean, const float *factor,
                              const float *offset) {
    for (int64_t row = 0; row < rows; row++)
        EACH_VECTOR(width, apply_some, format, load_offset(format, x, row * width), y_format,
                    store_offset(y_format, y, row * width), mean, factor, offset);
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

ALWAYS_INLINE void norm_sums_some(Format dy_format, const void *dy, Format x_format, const void *x,
                                  const float *mean, float *sums, float *products, int64_t at,
                                  int count) {
    const Vector gradient = vector_load_some(dy, dy_format, at, count);
    const Vector away = vector_load_some(x, x_format, at, count) - load_floats(mean, at, count);
    store_floats(sums, at, count, load_floats(sums, at, count) + gradient);
    store_floats(products, at, count,
                 vector_multiply_add(gradient, away, load_floats(products, at, count)));
}

ALWAYS_INLINE void norm_sums_block(Format dy_format, const void *dy, Format x_format, const void *x,
                                   int64_t rows, int64_t width, const float *mean, float *scratch) {
    for (int64_t row = 0; row < rows; row++)
        EACH_VECTOR(width, norm_sums_some, dy_format, load_offset(dy_format, dy, row * width),
                    x_format, load_offset(x_format, x, row * width), mean, scratch,
                    scratch + width);
}

ALWAYS_INLINE void norm_dx_some(Format dy_format, const void *dy, Format x_format, const void *x,
                                void *dx, const float *mean, const float *factor,
                                const float *offset, const float *slope, int64_t at, int count) {
    const Vector away = vector_load_some(x, x_format, at, count) - load_floats(mean, at, count);
    const Vector common =
        vector_multiply_add(away, load_floats(slope, at, count), load_floats(offset, at, count));
    vector_store_some(dx, x_format, at, count,
                      vector_multiply_add(load_floats(factor, at, count),
                                          vector_load_some(dy, dy_format, at, count), -common));
}

ALWAYS_INLINE void norm_dx_rows(Format dy_format, const void *dy, Format x_format, const void *x,
                                void *dx, int64_t rows, int64_t width, const float *mean,
                                const float *factor, const float *offset, const float *slope) {
    for (int64_t row = 0; row < rows; row++)
        EACH_VECTOR(width, norm_dx_some, dy_format, load_offset(dy_format, dy, row * width),
                    x_format, load_offset(x_format, x, row * width),
                    store_offset(x_format, dx, row * width), mean, factor, offset, slope);
}

#define BACKWARD(name, format_x)                                                               \
    MATH_INLINE void sums_##name(Format format, const void *dy, const void *x, int64_t rows,   \
                                 int64_t width, const float *mean, float *scratch) {           \
        norm_sums_block(format, dy, format_x, x, rows, width, mean, scratch);                  \
    }                                                                                          \
    MATH_INLINE void dx_##name(Format format, const void *dy, const void *x, void *dx,         \
                               int64_t rows, int64_t width, const float *mean,                 \
                               const float *factor, const float *offset, const float *slope) { \
        norm_dx_rows(format, dy, format_x, x, dx, rows, width, mean, factor, offset, slope);   \
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
