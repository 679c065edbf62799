// The first result of a library's plan against our own.
#include "gpu/kernels/block.h"
#include "gpu/kernels/formats.h"

enum { THREADS = 256, WARPS = THREADS / WARP };

// One block: it runs once a plan, and its sums are in a fixed order. What is not finite has no
// place in them, but must be on both sides.
GPU_DEFINE(dnn_compare) {
    SHARED(float, between, WARPS * 3);
    float sum[3] = {0, 0, 0};
    for (i64 at = threadIdx.x; at < a.count; at += THREADS) {
        const float expected = load_any(a.format, a.expected, at);
        const float difference = load_any(a.format, a.result, at) - expected;
        if (isfinite(difference)) {
            sum[0] = fmaf(difference, difference, sum[0]);
            sum[1] = fmaf(expected, expected, sum[1]);
        } else if (isfinite(expected) || isfinite(load_any(a.format, a.result, at))) {
            sum[2] += 1;
        }
    }
    block_sums<WARPS>(sum, between);
    if (threadIdx.x == 0)
        *a.difference = DnnDifference{sum[0], sum[1], sum[2]};
}
