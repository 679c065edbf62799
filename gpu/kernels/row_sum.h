// gpu/kernels/row_sum.h: the sum of a row's exponentials, in one walk.
#pragma once

#include "gpu/kernels/rows.h"

// The largest of a row, and the sum of the exponentials of the differences from it. A row with a
// NaN, or of nothing but -inf, has no sum.
struct RowSum {
    float largest, sum;
};

static __device__ __forceinline__ float largest_of_eight(const float *value, float largest) {
#pragma unroll
    for (int i = 0; i < EIGHT; i++)
        largest = fmaxf(largest, value[i]);
    return largest;
}

static __device__ __forceinline__ float sum_of_exponentials(const float *value, float largest) {
    float term[EIGHT];
#pragma unroll
    for (int i = 0; i < EIGHT; i++)
        term[i] = expf(value[i] - largest);
    return sum_of_eight(term);
}

// From what differences are taken: where all so far is -inf, that would give no number.
static __device__ __forceinline__ float difference_base(float largest) {
    return largest == -INFINITY ? 0 : largest;
}

struct JoinRowSums {
    __device__ __forceinline__ RowSum operator()(const RowSum &a, const RowSum &b) const {
        const float largest = fmaxf(a.largest, b.largest), base = difference_base(largest);
        return RowSum{largest, a.sum * expf(a.largest - base) + b.sum * expf(b.largest - base)};
    }
};

// Sums what a team reads of a row: what was summed before a larger number came is scaled.
template <int chunks>
static __device__ __forceinline__ RowSum row_sum(const RowWalk<chunks> &walk, const Operand &x) {
    RowSum sum = {-INFINITY, 0};
    walk.each([&](int number, const Part &at) {
        float value[EIGHT];
        (void)number;
        walk.load(x, at, -INFINITY, value);
        const float largest = largest_of_eight(value, sum.largest);
        const float base = difference_base(largest);
        if (largest != sum.largest)
            sum.sum *= expf(sum.largest - base);
        sum.sum += sum_of_exponentials(value, base);
        sum.largest = largest;
    });
    sum = join_team(walk.team, sum, JoinRowSums());
    if (sum.largest == -INFINITY)
        sum.sum = NAN;
    return sum;
}
