// gpu/kernels/block.h: what the threads of a warp and of a block find together, in a fixed order.
#pragma once

#include "gpu/kernels/card.h"

// The sum over a warp; every lane gets it.
template <class Value> static __device__ __forceinline__ Value warp_sum(Value value) {
#pragma unroll
    for (int step = WARP / 2; step > 0; step /= 2)
        value += __shfl_xor_sync(~0u, value, step);
    return value;
}

// Sums over a block of `warps` warps, each of a value that every thread has; every thread gets them
// all. `between` is shared memory that nothing else is kept in; whoever uses it again lets the
// block meet first.
template <int warps, int count, class Value>
static __device__ __forceinline__ void block_sums(Value (&value)[count],
                                                  Value (&between)[warps * count]) {
    const int warp = (int)threadIdx.x / WARP, lane = (int)threadIdx.x % WARP;
#pragma unroll
    for (int k = 0; k < count; k++) {
        value[k] = warp_sum(value[k]);
        if (lane == 0)
            between[warp * count + k] = value[k];
    }
    __syncthreads();
#pragma unroll
    for (int k = 0; k < count; k++) {
        value[k] = between[k];
#pragma unroll
        for (int i = 1; i < warps; i++)
            value[k] += between[i * count + k];
    }
}
