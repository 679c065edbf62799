// cpu/attention_rows.h: what attention does between its products, row by row of a block of scores.
//
// Compiled once per instruction level. A block has `rows` rows of `stride` numbers; row i uses the
// first seen + i * step of them (step 1: causal) and has the others, up to `width`, set to 0. The
// loops know nothing of views or threads, never allocate or fail. Any thread.
#pragma once

#include <stdint.h>

#include "base/isa.h"

typedef struct AttentionBlock {
    float *scores;
    int64_t rows, stride, width;
    int64_t seen, step;
} AttentionBlock;

typedef struct AttentionRows {
    // Scores become exp(score - largest of the row); inverse[i] is 1 / their sum, log_sum[i] the
    // logarithm of the sum of the exponentials of the scores themselves.
    void (*shares)(const AttentionBlock *block, float *inverse, float *log_sum);
    // Scores become the row's shares; d, the gradient of the shares, becomes that of the scores:
    // share * (d - delta[i]) * scale.
    void (*gradients)(const AttentionBlock *block, float *d, const float *log_sum,
                      const float *delta, float scale);
    void (*scale)(float *x, int64_t count, float factor);
    float (*dot)(const float *x, const float *y, int64_t count);
} AttentionRows;

extern const AttentionRows attention_rows_base;
#if defined(__x86_64__)
extern const AttentionRows attention_rows_avx2, attention_rows_avx512;
#endif
