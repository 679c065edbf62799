// What a view has of numbers that are not finite, and its largest magnitude. Where all is well a
// block leaves one number behind; what is not finite is counted by whoever comes upon it.
#include "gpu/kernels/block.h"
#include "gpu/kernels/operands.h"

enum { MAGNITUDE = 0x7FFFFFFF, INFINITE = 0x7F800000 };

struct Look {
    u32 largest, nans, infs;
    i64 first; // of those; -1: none

    __device__ __forceinline__ void take(float value, i64 at) {
        const u32 magnitude = __float_as_uint(value) & MAGNITUDE;
        largest = max(largest, magnitude);
        if (magnitude < INFINITE)
            return;
        nans += magnitude > INFINITE;
        infs += magnitude == INFINITE;
        first = first < 0 || at < first ? at : first;
    }
};

GPU_DEFINE(look) {
    SHARED(u32, most, 1);
    const i64 stride = (i64)gridDim.x * blockDim.x, member = (i64)blockIdx.x * blockDim.x;
    const i64 whole = a.wide ? a.extent.count / EIGHT * EIGHT : 0;
    Look look = {0, 0, 0, -1};
    if (threadIdx.x == 0)
        *most = 0;
    __syncthreads();
#pragma unroll 1
    for (i64 at = (member + threadIdx.x) * EIGHT; at < whole; at += stride * EIGHT) {
        float value[EIGHT];
        load_eight(a.input, at, value);
#pragma unroll
        for (int i = 0; i < EIGHT; i++)
            look.take(value[i], at + i);
    }
#pragma unroll 1
    for (i64 at = whole + member + threadIdx.x; at < a.extent.count; at += stride)
        look.take(load_element(a.input, a.extent, at), at);
    const u32 largest = __reduce_max_sync(~0u, look.largest);
    if (threadIdx.x % WARP == 0)
        atomicMax(most, largest);
    if (look.first >= 0) {
        atomicAdd((unsigned long long *)&a.found->nans, (unsigned long long)look.nans);
        atomicAdd((unsigned long long *)&a.found->infs, (unsigned long long)look.infs);
        atomicMax((unsigned long long *)&a.found->first, ~(unsigned long long)look.first);
    }
    __syncthreads();
    // Of magnitudes the patterns are in the order of the numbers, a NaN's above all.
    if (threadIdx.x == 0 && *most > 0)
        atomicMax((u32 *)&a.found->largest, *most);
}
