// cpu/simd.h: the loops of the CPU kernels, compiled once per instruction level.
//
// Each file under simd/ exports one of the tables below for each level; the device holds the set of
// the best level that the processor has. The loops know nothing of devices, views or threads: they
// get pointers and counts, read fp32 (or the format named) and never allocate or fail. Any thread.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/isa.h"
#include "kernel/kernel.h"
#include "kernel/multi.h"
#include "number/convert.h"
#include "number/scaled.h"

// Point-wise functions over dense fp32; [] is the operation. The output of `binary` may be one of
// its inputs; of all others, inputs and outputs lie apart.
typedef struct CpuPointwise {
    void (*unary[OP_COUNT])(const float *x, float *y, int64_t count, float a, float b);
    // `saved` is what the derivative is written in: x or y.
    void (*unary_backward[OP_COUNT])(const float *dy, const float *saved, float *dx, int64_t count,
                                     float a, float b);
    void (*binary[OP_COUNT])(const float *x, const float *y, float *out, int64_t count);
    void (*compare[OP_COUNT])(const float *x, const float *y, uint8_t *out, int64_t count);
    float (*loss[OP_COUNT])(const float *x, const float *t, int64_t count); // the sum
    void (*loss_backward[OP_COUNT])(const float *x, const float *t, float *dx, int64_t count,
                                    float factor);
    void (*select)(const float *condition, const float *x, const float *y, float *out,
                   int64_t count);
} CpuPointwise;

// Rows of numbers, one row a call.
typedef struct CpuRows {
    float (*sum)(const float *x, int64_t count);
    float (*largest)(const float *x, int64_t count);  // NaN if there is one
    float (*smallest)(const float *x, int64_t count); // the same
    int64_t (*argmax)(const float *x, int64_t count);
    // y = exp(x - shift); returns the sum of y.
    float (*exponentials)(const float *x, float *y, int64_t count, float shift);
    float (*sum_exponentials)(const float *x, int64_t count, float shift);
    void (*scale_by)(float *x, int64_t count, float factor);
    // y = x - largest - log_sum, one after the other.
    void (*subtract)(const float *x, float *y, int64_t count, float largest, float log_sum);
    void (*softmax_backward)(const float *dy, const float *y, float *dx, int64_t count);
    void (*log_softmax_backward)(const float *dy, const float *y, float *dx, int64_t count);
    // dx = factor * exp(x - largest - log_sum)
    void (*cross_entropy_backward)(const float *x, float *dx, int64_t count, float largest,
                                   float log_sum, float factor);
    // Of many short rows that follow each other: the largest, and the logarithm of the sum of
    // exp(x - largest); and the same gradient.
    void (*short_log_sums)(const float *x, float *largest, float *log_sum, int64_t rows,
                           int64_t width);
    void (*short_cross_entropy_backward)(const float *x, float *dx, int64_t rows, int64_t width,
                                         const float *largest, const float *log_sum, float factor);
    // Mean and 1/deviation of a row.
    void (*moments)(const float *x, int64_t count, float epsilon, float *mean, float *inverse);
    // y = (x - mean) * inverse * weight + bias; weight and bias may be NULL.
    void (*normalise)(const float *x, float *y, int64_t count, float mean, float inverse,
                      const float *weight, const float *bias);
    // dx of one row, and dweight += dy * normalised x, dbias += dy; NULL where not wanted.
    void (*norm_backward)(const float *dy, const float *x, const float *weight, float *dx,
                          int64_t count, float mean, float inverse, float *dweight, float *dbias);
} CpuRows;

// Columns of a matrix [rows, width], rows `stride` elements apart, in a storage format of the three
// that kernels read. Results are added to sums in double.
typedef struct CpuColumns {
    void (*sum)(Format format, const void *x, int64_t rows, int64_t stride, int64_t width,
                float *scratch, double *sum);
    // Sums of x - shift and of its square.
    void (*moments)(Format format, const void *x, int64_t rows, int64_t width, const float *shift,
                    float *scratch, double *sum, double *squares);
    // Sums of dy and of dy * (x - mean) * inverse.
    void (*norm_sums)(Format dy_format, const void *dy, Format x_format, const void *x,
                      int64_t rows, int64_t width, const float *mean, const float *inverse,
                      float *scratch, double *sum_dy, double *sum_dy_x);
    // y = (x - mean) * factor + offset, one of each a column.
    void (*apply)(Format x_format, const void *x, Format y_format, void *y, int64_t rows,
                  int64_t width, const float *mean, const float *factor, const float *offset);
    // dx = factor * dy - offset - (x - mean) * slope
    void (*norm_dx)(Format dy_format, const void *dy, Format x_format, const void *x,
                    Format dx_format, void *dx, int64_t rows, int64_t width, const float *mean,
                    const float *factor, const float *offset, const float *slope);
} CpuColumns;

// One row of output pixels (forward) or input pixels (backward) of an image; channels-last.
typedef struct CpuPoolRow {
    Format format;        // of input and output alike
    const void *image;    // forward: x of this sample; backward: dy of this sample
    const uint8_t *where; // backward of the largest: of this sample; NULL for an average
    void *out;            // the row
    uint8_t *out_where;
    int64_t row; // its number
    int64_t height, width, out_height, out_width, channels;
    const PoolAttr *pool;
    float *scratch; // one number a channel
} CpuPoolRow;

typedef struct CpuPool {
    void (*max)(const CpuPoolRow *row);
    void (*average)(const CpuPoolRow *row);
    void (*backward)(const CpuPoolRow *row);
} CpuPool;

typedef struct CpuRandom {
    // Element i of these belongs to word i % 4 of block position + i / 4; any count.
    void (*words)(uint64_t seed, uint64_t position, uint32_t *words, int64_t count);
    void (*dropout)(const float *x, float *y, const uint32_t *words, int64_t count,
                    float probability, float factor);
    // None is more than `last`.
    void (*uniform)(const uint32_t *words, float *y, int64_t count, double low, double range,
                    float last);
    void (*normal)(const uint32_t *words, float *y, int64_t count, float mean, float deviation);
} CpuRandom;

// What the scan adds to, and what it multiplies by.
typedef struct CpuScan {
    Format round_to;
    float inverse;
    GradStats *stats;
    uint32_t found_inf;
    uint64_t not_finite;               // elements
    double stored_sum, stored_squares; // of finite values as they are stored
    float stored_largest;
} CpuScan;

// The constants of one update, worked out from rule, step and flags.
typedef struct CpuUpdate {
    float rate; // the schedule's rate times the group's factor
    float decay, momentum, beta1, beta2, epsilon;
    float rest1, rest2; // 1 - beta
    float step1, step2; // 1 / (1 - beta^t), or 1 without bias correction
    float clip;
    bool nesterov;
    bool first;  // no update was done before: the momentum is the gradient
    float ratio; // LAMB: trust ratio
} CpuUpdate;

typedef struct CpuMulti {
    void (*sgd)(float *p, const float *g, float *m, int64_t count, const CpuUpdate *update);
    void (*adam)(float *p, const float *g, float *m, float *v, int64_t count,
                 const CpuUpdate *update);
    void (*adamw)(float *p, const float *g, float *m, float *v, int64_t count,
                  const CpuUpdate *update);
    // LAMB in two passes: moments and the squares of p and of its direction; then the step.
    void (*lamb_moments)(const float *p, const float *g, float *m, float *v, int64_t count,
                         const CpuUpdate *update, double *p_squares, double *u_squares);
    void (*lamb_step)(float *p, const float *m, const float *v, int64_t count,
                      const CpuUpdate *update);
    void (*clip_value)(float *x, int64_t count, float limit);
    void (*multiply)(float *x, int64_t count, float factor);
    void (*average)(float *average, const float *parameter, int64_t count, float decay, float rest);
    // fp32 to bf16, up or down with the probabilities that make it right on average.
    void (*stochastic_bf16)(const float *x, const uint32_t *words, uint16_t *y, int64_t count);
} CpuMulti;

// The largest magnitude of numbers is that of their bits without the sign; NaN is above infinity.
typedef struct CpuScanTable {
    void (*scan)(float *gradient, int64_t count, CpuScan *scan);
    uint16_t (*largest_of_16)(const uint16_t *bits, int64_t count);
    uint32_t (*largest_of_32)(const uint32_t *bits, int64_t count);
} CpuScanTable;

// A block of attention scores: `rows` rows of `stride` numbers. Row i uses the first seen + i *
// step of them (step 1: causal) and has the others, up to `width`, set to 0.
typedef struct CpuScores {
    float *scores;
    int64_t rows, stride, width;
    int64_t seen, step;
} CpuScores;

// What attention does between its products.
typedef struct CpuAttention {
    // Scores become exp(score - largest[i]), where that is the row's; inverse[i] is 1 / their sum,
    // log_sum[i] the logarithm of their sum.
    void (*shares)(const CpuScores *block, float *inverse, float *largest, float *log_sum);
    // Scores become the row's shares; d, the gradient of the shares, becomes that of the scores:
    // share * (d - delta[i]) * scale.
    void (*gradients)(const CpuScores *block, float *d, const float *largest, const float *log_sum,
                      const float *delta, float scale);
    // Of numbers in fp32, bf16 or fp16.
    float (*dot)(Format first, const void *x, Format second, const void *y, int64_t count);
    bool (*is_finite)(Format format, const void *x, int64_t count);
} CpuAttention;

// How scales are chosen: number/scaled.h.
typedef struct CpuScaleRule {
    NumberElement element;
    Format scale; // what scales of blocks are kept in
    bool up;
    bool apart;   // the scale of all is no part of what elements are worth
    float tensor; // that scale, by which scales of blocks fit
} CpuScaleRule;

// Rows of numbers, in bf16 or fp32, each of which begins `stride` numbers behind the one before. A
// row is a block that shares a scale, or a column is.
typedef struct CpuScaleRows {
    const void *numbers;
    Format format;
    int64_t rows, width, stride;
} CpuScaleRows;

enum { CPU_SCALE_COLUMNS = 512 }; // the most that rows have where columns are blocks

// How numbers are rounded to elements. What these are worth is written in fp32, or in bf16 where
// that holds it exactly: nothing rounds again.
typedef struct CpuRounding {
    NumberElement element;
    Format to;
    const float *to_elements, *to_numbers; // of each block
    const uint32_t
        *words; // chance, a word a number; NULL: to nearest. Of columns a single row then
} CpuRounding;

// What is written overlaps nothing that is read.
typedef struct CpuScale {
    // The largest magnitude of those that are `finite`; else a NaN is the largest, then infinity.
    float (*largest)(Format format, const void *numbers, int64_t count, bool finite);
    // The largest finite magnitude of each row; of each column.
    void (*largest_of_rows)(const CpuScaleRows *rows, float *largest);
    void (*largest_of_columns)(const CpuScaleRows *rows, float *largest);
    // The scales of blocks with these largest numbers.
    void (*scales)(const CpuScaleRule *rule, const float *largest, int64_t count,
                   float *to_elements, float *to_numbers);
    // In place of those that bring the largest to 6 those that bring it to 4, where it misses less.
    void (*better_rows)(const CpuScaleRule *rule, const CpuScaleRows *rows, const float *largest,
                        float *to_elements, float *to_numbers);
    void (*better_columns)(const CpuScaleRule *rule, const CpuScaleRows *rows, const float *largest,
                           float *to_elements, float *to_numbers);
    // y: without gaps; where columns are blocks, rows that are y_stride numbers apart.
    void (*round_rows)(const CpuRounding *by, const CpuScaleRows *rows, void *y);
    void (*round_columns)(const CpuRounding *by, const CpuScaleRows *rows, void *y,
                          int64_t y_stride);
    // number_hadamard of so many sixteens behind each other; of sixteen rows.
    void (*turn)(float *x, int64_t sixteens);
    void (*turn_columns)(float *x, int64_t width);
} CpuScale;

// Products in whole numbers (number/int8.h). The first factor is kept in numbers of a byte, so much
// too large that none is negative, or of two; rows of it are whole words, of 32 bits.
typedef struct CpuInt8 {
    int zero;                            // what 0 is kept as
    int64_t number_bytes, word, columns; // numbers of a word; columns of a panel
    void (*quantise)(const float *x, void *numbers, int64_t count, float inverse);
    // Columns of weights, `stride` apart, to a panel filled up with 0, and what `zero` adds to
    // their sums, to be added.
    void (*pack)(const int8_t *weight, int64_t stride, int64_t columns, int64_t depth, void *panel,
                 int32_t *offset);
    // sums[row * columns + column] of rows, `stride` numbers apart, by a panel.
    void (*multiply)(const void *numbers, int64_t stride, int64_t rows, const void *panel,
                     const int32_t *offset, int64_t depth, int32_t *sums);
    // One row by columns of weights where they lie.
    void (*dot)(const void *numbers, const int8_t *weight, int64_t stride, int64_t columns,
                int64_t depth, int32_t *sums);
    // y = sum * worth + bias, which may be NULL; `clips`: no less than 0.
    void (*finish)(const int32_t *sums, const float *worth, const float *bias, bool clips, float *y,
                   int64_t count);
} CpuInt8;

// Winograd's way of convolving with 3x3 or 2x2 taps: squares of outputs, of 2x2 or, for the
// gradient of 3x3 taps alone, of 4x4, see squares of pixels, side + kernel - 1 on a side. These are
// turned into parts, as many as pixels, and the taps too; products of the same parts are turned
// into outputs. By 16 channels, in fp32 whatever is read and written. Part i of a square lies
// i * part numbers behind the first.
enum { CPU_WINOGRAD_CHANNELS = 16 };

typedef enum CpuWinogradSize {
    CPU_WINOGRAD_2_OF_3,
    CPU_WINOGRAD_4_OF_3,
    CPU_WINOGRAD_2_OF_2,
    CPU_WINOGRAD_SIZES
} CpuWinogradSize;

typedef void CpuToParts(Format format, void *const *pixels, int64_t channels, float *to,
                        int64_t part);

typedef struct CpuWinograd {
    int side, kernel; // of a square of outputs, and of taps
    // Of the pixels that a square sees, row by row; of the gradient of its outputs; of taps. Those
    // that are NULL are 0.
    CpuToParts *image, *gradient, *weights; // 4 of 3 has no `weights`, 2 of 2 no `gradient`
    // `times` outputs, those that are not NULL, with the bias (NULL: none) and RELU where it
    // `clips`; and `times` the gradient of taps, `tap` numbers apart, with what is there where
    // `add`. Whether all sums were finite. 4 of 3 has no `outputs`, 2 of 2 no `taps`.
    bool (*outputs)(const float *from, int64_t part, float times, const float *bias, bool clips,
                    Format format, void *const *pixels, int64_t channels);
    bool (*taps)(const float *from, int64_t part, float times, bool add, float *to, int64_t tap,
                 int64_t channels);
} CpuWinograd;

typedef struct CpuSimd {
    const CpuPointwise *pointwise;
    const CpuRows *rows;
    const CpuColumns *columns;
    const CpuPool *pool;
    const CpuRandom *random;
    const CpuMulti *multi;
    const CpuScanTable *scan;
    const CpuAttention *attention;
    const CpuScale *scale;
    const ConvertTable *convert;
    const CpuInt8 *int8;
    const CpuWinograd *winograd; // of each size
} CpuSimd;
