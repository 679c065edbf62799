// Softmax, its logarithm and their gradients, over rows.
#include "gpu/kernels/row_sum.h"

// Reads a row and finds its sum, leaving in `x` what the next walk starts from.
template <int chunks>
static __device__ __forceinline__ RowSum read_row(const RowWalk<chunks> &walk,
                                                  const RowArguments &a, RowValues<chunks> &x) {
    if (chunks == 0)
        return row_sum(walk, a.input[0]);
    RowSum sum = {-INFINITY, 0};
    walk.each([&](int number, const Part &at) {
        const float *value = x.load(walk, number, a.input[0], at, -INFINITY);
        sum.largest = largest_of_eight(value, sum.largest);
    });
    sum.largest = join_team(walk.team, sum.largest, Larger());
    walk.each([&](int number, const Part &at) {
        (void)at;
        sum.sum += sum_of_exponentials(x.value[number], sum.largest);
    });
    sum.sum = join_team(walk.team, sum.sum, Sum());
    return sum;
}

template <int chunks> static __device__ __forceinline__ void softmax_row(const RowArguments &a) {
    const RowWalk<chunks> walk(a);
    RowValues<chunks> x;
    const RowSum sum = read_row(walk, a, x);
    const float inverse = 1 / sum.sum;
    walk.each([&](int number, const Part &at) {
        float *value = x.again(walk, number, a.input[0], at, -INFINITY);
#pragma unroll
        for (int i = 0; i < EIGHT; i++)
            value[i] = expf(value[i] - sum.largest) * inverse;
        walk.store(a.output, at, value);
    });
}

template <int chunks>
static __device__ __forceinline__ void log_softmax_row(const RowArguments &a) {
    const RowWalk<chunks> walk(a);
    RowValues<chunks> x;
    const RowSum sum = read_row(walk, a, x);
    const float log_sum = logf(sum.sum);
    walk.each([&](int number, const Part &at) {
        float *value = x.again(walk, number, a.input[0], at, -INFINITY);
#pragma unroll
        for (int i = 0; i < EIGHT; i++)
            value[i] = value[i] - sum.largest - log_sum;
        walk.store(a.output, at, value);
    });
}

// dx = y (dy - sum of y dy), where y is the softmax; dx = dy - exp(y) sum of dy, where it is the
// logarithm.
template <int chunks, bool logarithm>
static __device__ __forceinline__ void backward_row(const RowArguments &a) {
    const RowWalk<chunks> walk(a);
    RowValues<chunks> dy, y;
    float sum = 0;
    walk.template each<1>([&](int number, const Part &at) {
        const float *gradient = dy.load(walk, number, a.input[0], at, 0);
        const float *value = y.load(walk, number, a.input[1], at, 0);
        float term[EIGHT];
#pragma unroll
        for (int i = 0; i < EIGHT; i++)
            term[i] = logarithm ? gradient[i] : gradient[i] * value[i];
        sum += sum_of_eight(term);
    });
    sum = join_team(walk.team, sum, Sum());
    walk.template each<1>([&](int number, const Part &at) {
        const float *gradient = dy.again(walk, number, a.input[0], at, 0);
        const float *value = y.again(walk, number, a.input[1], at, 0);
        float dx[EIGHT];
#pragma unroll
        for (int i = 0; i < EIGHT; i++)
            dx[i] = logarithm ? gradient[i] - expf(value[i]) * sum : value[i] * (gradient[i] - sum);
        walk.store(a.output, at, dx);
    });
}

GPU_DEFINE(softmax) {
    softmax_row<ROW_CHUNKS>(a);
}
GPU_DEFINE(softmax_long) {
    softmax_row<0>(a);
}
GPU_DEFINE(log_softmax) {
    log_softmax_row<ROW_CHUNKS>(a);
}
GPU_DEFINE(log_softmax_long) {
    log_softmax_row<0>(a);
}
GPU_DEFINE(softmax_backward) {
    backward_row<PAIR_CHUNKS, false>(a);
}
GPU_DEFINE(softmax_backward_long) {
    backward_row<0, false>(a);
}
GPU_DEFINE(log_softmax_backward) {
    backward_row<PAIR_CHUNKS, true>(a);
}
GPU_DEFINE(log_softmax_backward_long) {
    backward_row<0, true>(a);
}
