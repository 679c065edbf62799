// What a view has of numbers that are not finite, and its largest magnitude. Where all is well a
// block leaves one number behind; what is not finite is counted by the warp that comes upon it.
#include "gpu/kernels/operands.h"
#include "gpu/kernels/team.h"

enum { MAGNITUDE = 0x7FFFFFFF, INFINITE = 0x7F800000 };

struct Look {
    u32 largest, nans, infs;
    u64 first; // of those, counted from the last that a number could have; 0: none

    __device__ __forceinline__ void take(float value, i64 at) {
        const u32 magnitude = __float_as_uint(value) & MAGNITUDE;
        largest = max(largest, magnitude);
        if (magnitude < INFINITE)
            return;
        nans += magnitude > INFINITE;
        infs += magnitude == INFINITE;
        first = max(first, ~(u64)at);
    }
};

GPU_DEFINE(look) {
    SHARED(u32, most, 1);
    const i64 stride = (i64)gridDim.x * blockDim.x, member = (i64)blockIdx.x * blockDim.x;
    const i64 whole = a.wide ? a.extent.count / EIGHT * EIGHT : 0;
    Look look = {0, 0, 0, 0};
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
    // All warps count in the same words: of a tensor that is NaN throughout each thread would stand
    // in line for them. A warp sees one number in 4096 of a large tensor, which 32 bits count.
    if (__any_sync(~0u, look.first > 0)) {
        const u32 nans = __reduce_add_sync(~0u, look.nans);
        const u32 infs = __reduce_add_sync(~0u, look.infs);
        const u64 first = join_lanes(WARP, look.first, Larger());
        if (threadIdx.x % WARP == 0) {
            atomicAdd((unsigned long long *)&a.found->nans, (unsigned long long)nans);
            atomicAdd((unsigned long long *)&a.found->infs, (unsigned long long)infs);
            atomicMax((unsigned long long *)&a.found->first, (unsigned long long)first);
        }
    }
    __syncthreads();
    // Of magnitudes the patterns are in the order of the numbers, a NaN's above all.
    if (threadIdx.x == 0 && *most > 0)
        atomicMax((u32 *)&a.found->largest, *most);
}
