// Loops over one row of fp32: sums, softmax, layer norm.
#include "cpu/simd.h"
#include "cpu/simd/math.h"

enum { LANES = 32, REST = 16 };

// `#pragma omp simd` lets the compiler keep one partial sum a lane, which is also more accurate.
static float row_sum(const float *restrict x, int64_t count) {
    float sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int64_t i = 0; i < count; i++)
        sum += x[i];
    return sum;
}

static bool row_has_nan(const float *restrict x, int64_t count) {
    uint32_t above = 0; // magnitudes above that of infinity, as the sign of a difference
#pragma omp simd reduction(| : above)
    for (int64_t i = 0; i < count; i++)
        above |= 0x7F800000u - (number_bits_of_fp32(x[i]) & 0x7FFFFFFFu);
    return above >> 31;
}

// Written out by lanes, since a maximum that must respect NaN is no reduction to a compiler.
#define ROW_EXTREME(name, better, start)                                                \
    static float name(const float *restrict x, int64_t count) {                         \
        float result = start;                                                           \
        int64_t i = 0;                                                                  \
        if (count >= LANES) {                                                           \
            float lane[LANES];                                                          \
            for (int k = 0; k < LANES; k++)                                             \
                lane[k] = x[k];                                                         \
            for (i = LANES; i + LANES <= count; i += LANES)                             \
                for (int k = 0; k < LANES; k++)                                         \
                    lane[k] = x[i + k] better lane[k] ? x[i + k] : lane[k];             \
            for (int half = LANES / 2; half > 0; half /= 2)                             \
                for (int k = 0; k < half; k++)                                          \
                    lane[k] = lane[k + half] better lane[k] ? lane[k + half] : lane[k]; \
            result = lane[0];                                                           \
        }                                                                               \
        for (; i < count; i++)                                                          \
            result = x[i] better result ? x[i] : result;                                \
        return row_has_nan(x, count) ? NAN : result;                                    \
    }
ROW_EXTREME(row_largest, >, -INFINITY)
ROW_EXTREME(row_smallest, <, INFINITY)

static int64_t row_argmax(const float *restrict x, int64_t count) {
    enum { STRIDE = 256 }; // the maximum first, then the stride that holds it
    float largest = row_largest(x, count);
    bool nan = largest != largest;
    for (int64_t start = 0; start < count; start += STRIDE) {
        int64_t end = start + STRIDE < count ? start + STRIDE : count;
        int found = 0;
#pragma omp simd reduction(| : found)
        for (int64_t i = start; i < end; i++)
            found |= (x[i] == largest) | (x[i] != x[i]);
        for (int64_t i = start; found && i < end; i++)
            if (nan ? x[i] != x[i] : x[i] == largest)
                return i;
    }
    return 0;
}

// Not inlined, so that the short form keeps the vectors of the long one.
static __attribute__((noinline)) float
whole_exponentials(const float *restrict x, float *restrict y, int64_t count, float shift) {
    float sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int64_t i = 0; i < count; i++) {
        float value = math_exp(x[i] - shift);
        y[i] = value;
        sum += value;
    }
    return sum;
}

// The rest of a row, filled up with what adds nothing: rows of ten classes are all rest.
static float rest_exponentials(const float *restrict x, float *restrict y, int64_t count,
                               float shift) {
    float padded[REST], result[REST];
    for (int i = 0; i < REST; i++)
        padded[i] = i < count ? x[i] : -INFINITY;
    float sum = whole_exponentials(padded, result, REST, shift);
    for (int i = 0; y && i < count; i++)
        y[i] = result[i];
    return sum;
}

static float exponentials(const float *restrict x, float *restrict y, int64_t count, float shift) {
    int64_t whole = count - count % REST;
    float sum = whole > 0 ? whole_exponentials(x, y, whole, shift) : 0;
    return whole < count ? sum + rest_exponentials(x + whole, y + whole, count - whole, shift)
                         : sum;
}

static float sum_exponentials(const float *restrict x, int64_t count, float shift) {
    float sum = 0;
    int64_t whole = count - count % REST;
#pragma omp simd reduction(+ : sum)
    for (int64_t i = 0; i < whole; i++)
        sum += math_exp(x[i] - shift);
    if (whole < count)
        sum += rest_exponentials(x + whole, NULL, count - whole, shift);
    return sum;
}

static void scale_by(float *restrict x, int64_t count, float factor) {
    for (int64_t i = 0; i < count; i++)
        x[i] *= factor;
}

static void subtract(const float *restrict x, float *restrict y, int64_t count, float largest,
                     float log_sum) {
    for (int64_t i = 0; i < count; i++)
        y[i] = x[i] - largest - log_sum;
}

static void softmax_backward(const float *restrict dy, const float *restrict y, float *restrict dx,
                             int64_t count) {
    float product = 0;
#pragma omp simd reduction(+ : product)
    for (int64_t i = 0; i < count; i++)
        product += dy[i] * y[i];
    for (int64_t i = 0; i < count; i++)
        dx[i] = y[i] * (dy[i] - product);
}

static void log_softmax_backward(const float *restrict dy, const float *restrict y,
                                 float *restrict dx, int64_t count) {
    float sum = row_sum(dy, count);
    for (int64_t i = 0; i < count; i++)
        dx[i] = dy[i] - math_exp(y[i]) * sum;
}

static void cross_entropy_backward(const float *restrict x, float *restrict dx, int64_t count,
                                   float largest, float log_sum, float factor) {
    for (int64_t i = 0; i < count; i++)
        dx[i] = factor * math_exp(x[i] - largest - log_sum);
}

// ---- layer norm ---------------------------------------------------------------------------------

static void moments(const float *restrict x, int64_t count, float epsilon, float *mean_out,
                    float *inverse_out) {
    float mean = row_sum(x, count) / (float)count, squares = 0;
#pragma omp simd reduction(+ : squares)
    for (int64_t i = 0; i < count; i++) {
        float away = x[i] - mean;
        squares += away * away;
    }
    *mean_out = mean;
    *inverse_out = 1.0f / sqrtf(squares / (float)count + epsilon);
}

static void normalise(const float *restrict x, float *restrict y, int64_t count, float mean,
                      float inverse, const float *restrict weight, const float *restrict bias) {
    if (weight && bias)
        for (int64_t i = 0; i < count; i++)
            y[i] = math_fma((x[i] - mean) * inverse, weight[i], bias[i]);
    else if (weight)
        for (int64_t i = 0; i < count; i++)
            y[i] = (x[i] - mean) * inverse * weight[i];
    else if (bias)
        for (int64_t i = 0; i < count; i++)
            y[i] = math_fma(x[i] - mean, inverse, bias[i]);
    else
        for (int64_t i = 0; i < count; i++)
            y[i] = (x[i] - mean) * inverse;
}

MATH_INLINE void norm_row(const float *restrict dy, const float *restrict x,
                          const float *restrict weight, float *restrict dx, int64_t count,
                          float mean, float inverse) {
    float sum = 0, product = 0;
#pragma omp simd reduction(+ : sum, product)
    for (int64_t i = 0; i < count; i++) {
        float gradient = weight ? dy[i] * weight[i] : dy[i];
        sum += gradient;
        product += gradient * ((x[i] - mean) * inverse);
    }
    sum /= (float)count;
    product /= (float)count;
    for (int64_t i = 0; i < count; i++) {
        float gradient = weight ? dy[i] * weight[i] : dy[i];
        float normal = (x[i] - mean) * inverse;
        dx[i] = inverse * (gradient - sum - normal * product);
    }
}

static void norm_backward(const float *restrict dy, const float *restrict x,
                          const float *restrict weight, float *restrict dx, int64_t count,
                          float mean, float inverse, float *restrict dweight,
                          float *restrict dbias) {
    if (weight)
        norm_row(dy, x, weight, dx, count, mean, inverse);
    else
        norm_row(dy, x, NULL, dx, count, mean, inverse);
    if (dweight)
        for (int64_t i = 0; i < count; i++)
            dweight[i] = math_fma(dy[i], (x[i] - mean) * inverse, dweight[i]);
    if (dbias)
        for (int64_t i = 0; i < count; i++)
            dbias[i] += dy[i];
}

// ---- rows too short for a vector: one a lane ----------------------------------------------------

static void short_log_sums(const float *restrict x, float *restrict largest_out,
                           float *restrict log_out, int64_t rows, int64_t width) {
    enum { GROUP = 16 };
    for (int64_t first = 0; first < rows; first += GROUP) {
        int64_t left = rows - first < GROUP ? rows - first : GROUP;
        int32_t start[GROUP]; // the last row stands in for those that are missing
        float largest[GROUP], sum[GROUP], result[GROUP];
        for (int i = 0; i < GROUP; i++) {
            start[i] = (int32_t)((first + (i < left ? i : left - 1)) * width);
            largest[i] = -INFINITY;
            sum[i] = 0;
        }
        for (int64_t k = 0; k < width; k++)
            for (int i = 0; i < GROUP; i++) {
                float value = x[start[i] + k];
                largest[i] = value > largest[i] ? value : largest[i];
            }
        for (int64_t k = 0; k < width; k++)
            for (int i = 0; i < GROUP; i++)
                sum[i] += math_exp(x[start[i] + k] - largest[i]); // NaN arrives here
        for (int i = 0; i < GROUP; i++)
            result[i] = math_log(sum[i]);
        for (int64_t i = 0; i < left; i++) {
            largest_out[first + i] = largest[i];
            log_out[first + i] = result[i];
        }
    }
}

static void short_cross_entropy_backward(const float *restrict x, float *restrict dx, int64_t rows,
                                         int64_t width, const float *restrict largest,
                                         const float *restrict log_sum, float factor) {
    for (int64_t row = 0; row < rows; row++)
        for (int64_t i = 0; i < width; i++)
            dx[row * width + i] = x[row * width + i] - largest[row] - log_sum[row];
    for (int64_t i = 0; i < rows * width; i++)
        dx[i] = factor * math_exp(dx[i]);
}

extern const CpuRows ISA_NAME(cpu_rows);
const CpuRows ISA_NAME(cpu_rows) = {
    .sum = row_sum,
    .largest = row_largest,
    .smallest = row_smallest,
    .argmax = row_argmax,
    .exponentials = exponentials,
    .sum_exponentials = sum_exponentials,
    .scale_by = scale_by,
    .subtract = subtract,
    .softmax_backward = softmax_backward,
    .log_softmax_backward = log_softmax_backward,
    .cross_entropy_backward = cross_entropy_backward,
    .short_log_sums = short_log_sums,
    .short_cross_entropy_backward = short_cross_entropy_backward,
    .moments = moments,
    .normalise = normalise,
    .norm_backward = norm_backward,
};
