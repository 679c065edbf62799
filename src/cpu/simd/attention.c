// Loops over the rows of a block of attention scores.
#include "cpu/simd.h"
#include "cpu/simd/load.h"
#include "cpu/simd/vector.h"

static int64_t seen_by(const CpuScores *block, int64_t row) {
    int64_t seen = block->seen + row * block->step;
    return seen < block->width ? seen : block->width;
}

static void clear_rest(float *row, int64_t seen, int64_t width) {
    for (int64_t j = seen; j < width; j++)
        row[j] = 0;
}

static float largest_of(const float *x, int64_t count) {
    enum { AT_ONCE = 32 };
    float lane[AT_ONCE];
    for (int k = 0; k < AT_ONCE; k++)
        lane[k] = -INFINITY;
    int64_t j = 0;
    for (; j + AT_ONCE <= count; j += AT_ONCE)
        for (int k = 0; k < AT_ONCE; k++)
            lane[k] = x[j + k] > lane[k] ? x[j + k] : lane[k];
    UNROLL for (int half = AT_ONCE / 2; half > 0; half /= 2) {
        for (int k = 0; k < half; k++)
            lane[k] = lane[half + k] > lane[k] ? lane[half + k] : lane[k];
    }
    float largest = lane[0];
    for (; j < count; j++)
        largest = x[j] > largest ? x[j] : largest;
    return largest; // NaN is passed over here, and comes back out of the exponentials
}

static void shares(const CpuScores *block, float *restrict inverse, float *largest_out,
                   float *restrict log_sum) {
    for (int64_t i = 0; i < block->rows; i++) {
        float *row = block->scores + i * block->stride;
        int64_t seen = seen_by(block, i);
        float largest = largest_of(row, seen), sum = 0;
#pragma omp simd reduction(+ : sum)
        for (int64_t j = 0; j < seen; j++) {
            float value = math_exp(row[j] - largest);
            row[j] = value;
            sum += value;
        }
        clear_rest(row, seen, block->width);
        largest_out[i] = largest;
        log_sum[i] = sum; // until all rows are done: logarithms go by vectors
    }
    for (int64_t i = 0; i < block->rows; i++) {
        inverse[i] = 1.0f / log_sum[i];
        log_sum[i] = math_log(log_sum[i]);
    }
}

static void gradients(const CpuScores *block, float *d, const float *largest, const float *log_sum,
                      const float *delta, float scale) {
    for (int64_t i = 0; i < block->rows; i++) {
        float *restrict row = block->scores + i * block->stride;
        float *restrict gradient = d + i * block->stride;
        float most = largest[i], shift = log_sum[i], mean = delta[i];
        int64_t seen = seen_by(block, i);
        for (int64_t j = 0; j < seen; j++) {
            float share = math_exp(row[j] - most - shift);
            row[j] = share;
            gradient[j] = share * (gradient[j] - mean) * scale;
        }
        clear_rest(row, seen, block->width);
        clear_rest(gradient, seen, block->width);
    }
}

// ---- rows of a format ---------------------------------------------------------------------------

// Halves meet again and again: one lane after the other would wait for the one before.
ALWAYS_INLINE float sum_of_lanes(Vector sum) {
    float lanes[LANES];
    vector_store(lanes, sum);
    UNROLL for (int half = LANES / 2; half > 0; half /= 2) {
        for (int i = 0; i < half; i++)
            lanes[i] += lanes[half + i];
    }
    return lanes[0];
}

ALWAYS_INLINE void add_products(Format first, const void *x, Format second, const void *y,
                                Vector *sum, int64_t at, int count) {
    *sum = vector_multiply_add(vector_load_some(x, first, at, count),
                               vector_load_some(y, second, at, count), *sum);
}

ALWAYS_INLINE void dot_of(Format second, Format first, const void *x, const void *y, int64_t count,
                          float *product) {
    Vector sum = {0};
    EACH_VECTOR(count, add_products, first, x, second, y, &sum);
    *product = sum_of_lanes(sum);
}

ALWAYS_INLINE void dot_with(Format first, const void *x, Format second, const void *y,
                            int64_t count, float *product) {
    FORMAT_SPLIT(second, dot_of, first, x, y, count, product);
}

static float dot(Format first, const void *x, Format second, const void *y, int64_t count) {
    float product;
    FORMAT_SPLIT(first, dot_with, x, second, y, count, &product);
    return product;
}

// 0 times what is not finite is NaN.
ALWAYS_INLINE void add_nothing(Format format, const void *x, Vector *sum, int64_t at, int count) {
    *sum += vector_load_some(x, format, at, count) * (Vector){0};
}

ALWAYS_INLINE void is_finite_in(Format format, const void *x, int64_t count, bool *finite) {
    Vector sum = {0};
    EACH_VECTOR(count, add_nothing, format, x, &sum);
    *finite = sum_of_lanes(sum) == 0;
}

static bool is_finite(Format format, const void *x, int64_t count) {
    bool finite;
    FORMAT_SPLIT(format, is_finite_in, x, count, &finite);
    return finite;
}

extern const CpuAttention ISA_NAME(cpu_attention);
const CpuAttention ISA_NAME(cpu_attention) = {
    .shares = shares,
    .gradients = gradients,
    .dot = dot,
    .is_finite = is_finite,
};
