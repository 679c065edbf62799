// The first results of a library against our own.
#include "gpu/kernels/block.h"
#include "gpu/kernels/formats.h"

enum { THREADS = 256, WARPS = THREADS / WARP };

// Sums in another order may pass the largest number of a format on one side alone, but only where
// they come to about as much as that.
static __device__ __forceinline__ bool proof_is_near_infinity(u32 format, float finite) {
    const float largest = format == FORMAT_FP16   ? 65504.0f
                          : format == FORMAT_BF16 ? 3.3895314e38f
                                                  : 3.4028235e38f;
    return fabsf(finite) >= 0.98f * largest;
}

// Of two that are not both finite.
static __device__ __forceinline__ bool proof_is_unlike(u32 format, float got, float expected) {
    if (got != got || expected != expected)
        return got == got || expected == expected;
    if ((got < 0) != (expected < 0))
        return true;
    return (fabsf(got) < INFINITY && !proof_is_near_infinity(format, got)) ||
           (fabsf(expected) < INFINITY && !proof_is_near_infinity(format, expected));
}

// One block: it is asked seldom, and its sums are in a fixed order. Squares of fp32 need the range
// of double.
GPU_DEFINE(proof) {
    SHARED(double, between, WARPS * 3);
    double sum[3] = {0, 0, 0};
    i64 column = threadIdx.x, skipped = 0; // skipped: what lies between rows of the result
    for (i64 i = threadIdx.x; i < a.rows * a.columns; i += THREADS, column += THREADS) {
        for (; column >= a.columns; column -= a.columns) // a division of 64 bits spills registers
            skipped += a.row - a.columns;
        const float got = load_any(a.format, a.result, i + skipped);
        const float expected = load_any(a.format, a.expected, i);
        if (fabsf(expected) < INFINITY && fabsf(got) < INFINITY) {
            const double difference = (double)got - expected;
            sum[0] += difference * difference;
            sum[1] += (double)expected * expected;
        } else if (proof_is_unlike(a.format, got, expected)) {
            sum[2] += 1;
        }
    }
    block_sums<WARPS>(sum, between);
    if (threadIdx.x == 0)
        *a.distance = ProofDistance{sum[0], sum[1], sum[2]};
}
