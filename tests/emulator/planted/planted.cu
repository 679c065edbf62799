// Kernels that keep the rules and kernels that break one each: what tests of the emulator run.
#include "gpu/kernels/card.h"
#include "tests/emulator/planted/planted.h"

#define PLANTED_DEFINE(name) extern "C" __global__ void planted_##name(const PlantedArguments &a)

static __device__ __forceinline__ i64 own_element(void) {
    return (i64)blockIdx.x * blockDim.x + threadIdx.x;
}

// ---- right ones ---------------------------------------------------------------------------------

PLANTED_DEFINE(fill) {
    if (own_element() < a.count)
        a.y[own_element()] = a.value;
}

PLANTED_DEFINE(add_one) {
    if (own_element() < a.count)
        a.y[own_element()] = a.x[own_element()] + 1;
}

static __device__ __forceinline__ float sum_of_block(float value) {
    SHARED(float, part, 32);
    const u32 lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    for (int step = 16; step; step /= 2)
        value += __shfl_xor_sync(~0u, value, step);
    if (lane == 0)
        part[warp] = value;
    __syncthreads();
    value = 0;
    for (u32 i = 0; i < blockDim.x / 32; i++)
        value += part[i];
    return value;
}

PLANTED_DEFINE(sum_blocks) {
    const float sum = sum_of_block(own_element() < a.count ? a.x[own_element()] : 0);
    if (threadIdx.x == 0)
        a.y[blockIdx.x] = sum;
}

PLANTED_DEFINE(sum_large) {
    const float sum = sum_of_block(a.x[own_element()]);
    if (threadIdx.x == 0)
        a.y[blockIdx.x] = sum;
}

PLANTED_DEFINE(warp_words) {
    const u32 lane = threadIdx.x % 32;
    const float value = (float)threadIdx.x;
    float *to = a.y + 64 * (i64)threadIdx.x;
    to[0] = __shfl_sync(~0u, value, 5);
    to[1] = __shfl_sync(~0u, value, 3, 8);
    to[2] = __shfl_xor_sync(~0u, value, 1);
    to[3] = __shfl_up_sync(~0u, value, 2);
    to[4] = __shfl_down_sync(~0u, value, 2);
    to[5] = __shfl_down_sync(~0u, value, 2, 8);
    to[6] = (float)__popc(__ballot_sync(~0u, lane < 7));
    to[7] = (float)__any_sync(~0u, lane == 31);
    to[8] = (float)__all_sync(~0u, lane < 31);
    to[9] = (float)__reduce_add_sync(~0u, lane);
    to[10] = (float)__reduce_min_sync(~0u, (int)lane - 4);
    to[11] = (float)__reduce_max_sync(~0u, lane);
    to[12] = (float)__reduce_or_sync(~0u, lane);
    to[13] = (float)__reduce_and_sync(~0u, lane | 32);
    to[14] = (float)__shfl_sync(~0u, (double)lane + 0.5, 9);
    // Two groups that meet apart from each other.
    const u32 half = lane < 16 ? 0x0000FFFF : 0xFFFF0000;
    to[15] = (float)__reduce_add_sync(half, 1u);
    if (lane < 4)
        to[16] = (float)__reduce_add_sync(0xFu, lane);
    __syncwarp();
}

PLANTED_DEFINE(tiles) {
    SHARED(u16, left, 16 * 24);
    SHARED(u16, right, 16 * 24);
    const int lane = (int)threadIdx.x;
    for (int i = lane; i < 256; i += 32) {
        left[i / 16 * 24 + i % 16] = bf16_of_fp32(a.x[i]);
        right[i / 16 * 24 + i % 16] = bf16_of_fp32(a.x[256 + i]);
    }
    __syncthreads();
    u32 x[4], y[4];
    float sum[4] = {};
    load_tiles(left + lane % 16 * 24 + lane / 16 * 8, x);
    load_tiles_turned(right + lane % 16 * 24, y);
    multiply_tiles_bf16(sum, x, y);
    for (int i = 0; i < 4; i++)
        a.y[(lane / 4 + i / 2 * 8) * 8 + lane % 4 * 2 + i % 2] = sum[i];
}

PLANTED_DEFINE(shared_places) {
    SHARED(u8, bytes, 3);
    SHARED(u16, halves, 5);
    SHARED(double, doubles, 7);
    SHARED_DYNAMIC(u32, words);
    const void *const begins[] = {bytes, halves, doubles, words};
    if (threadIdx.x < 4)
        a.y[threadIdx.x] = (float)((uintptr_t)begins[threadIdx.x] % 32);
}

PLANTED_DEFINE(block_words) {
    float *to = a.y + 3 * (i64)threadIdx.x;
    to[0] = (float)__syncthreads_count(threadIdx.x % 3 == 0);
    to[1] = (float)__syncthreads_or(threadIdx.x == 77);
    to[2] = (float)__syncthreads_and(threadIdx.x != 77);
}

PLANTED_DEFINE(atomics) {
    u32 *to = (u32 *)a.y;
    atomicAdd(&to[0], 1);
    atomicMax(&to[1], threadIdx.x);
    atomicMin((int *)&to[2], -(int)threadIdx.x);
    atomicOr(&to[3], 1u << threadIdx.x % 32);
    atomicExch(&to[4], 7);
    atomicCAS(&to[5], 0, 9);
    atomicAdd((unsigned long long *)&to[6], 1ull << 32);
}

PLANTED_DEFINE(dynamic_shared) {
    SHARED_DYNAMIC(float, row);
    row[threadIdx.x] = a.x[own_element()];
    __syncthreads();
    a.y[own_element()] = row[blockDim.x - 1 - threadIdx.x];
}

PLANTED_DEFINE(exchange_in_warp) {
    SHARED(float, row, 64);
    row[threadIdx.x] = a.x[own_element()];
    __syncwarp();
    a.y[own_element()] = row[threadIdx.x ^ 1];
    __syncwarp();
    row[threadIdx.x] = 0;
}

// ---- wrong ones ---------------------------------------------------------------------------------

PLANTED_DEFINE(no_barrier) {
    SHARED(float, row, 256);
    row[threadIdx.x] = a.x[own_element()];
    a.y[own_element()] = row[(threadIdx.x + 1) % blockDim.x];
}

PLANTED_DEFINE(divergent_barrier) {
    if (threadIdx.x < 32)
        __syncthreads();
    a.y[threadIdx.x] = 1;
}

PLANTED_DEFINE(different_barriers) {
    if (threadIdx.x < 32)
        __syncthreads();
    else
        __syncthreads();
    a.y[threadIdx.x] = 1;
}

PLANTED_DEFINE(unset_shared) {
    SHARED(float, sum, 1);
    if (threadIdx.x == 0)
        sum[0] += 1;
    __syncthreads();
    a.y[threadIdx.x] = sum[0];
}

PLANTED_DEFINE(large_shared) {
    SHARED(float, row, 12289);
    row[threadIdx.x] = 1;
    a.y[threadIdx.x] = row[threadIdx.x];
}

PLANTED_DEFINE(not_in_own_mask) {
    a.y[threadIdx.x] = __shfl_sync(0x0000FFFFu, a.value, 0);
}

PLANTED_DEFINE(reads_absent_lane) {
    if (threadIdx.x < 16)
        a.y[threadIdx.x] = __shfl_xor_sync(0x0000FFFFu, a.value, 16);
}

PLANTED_DEFINE(waits_for_absent) {
    if (threadIdx.x < 16)
        a.y[threadIdx.x] = __shfl_sync(~0u, a.value, 0);
}

PLANTED_DEFINE(different_meetings) {
    if (threadIdx.x < 16)
        a.y[threadIdx.x] = __shfl_sync(~0u, a.value, 0);
    else
        a.y[threadIdx.x] = __shfl_sync(~0u, a.value, 1);
}

PLANTED_DEFINE(misaligned_load) {
    a.y[threadIdx.x] = __uint_as_float(load_wide(a.x + 1).x);
}

PLANTED_DEFINE(misaligned_store) {
    store_wide(a.y + 4 * threadIdx.x + 2, uint4{1, 2, 3, 4});
}

PLANTED_DEFINE(misaligned_tile) {
    SHARED(u16, tile, 32 * 16);
    u32 part[4];
    load_tiles(tile + threadIdx.x * 8 + 1, part);
    a.y[threadIdx.x] = (float)part[0];
}

PLANTED_DEFINE(writes_past_end) {
    if (threadIdx.x == 0)
        a.y[a.count] = a.value;
}

PLANTED_DEFINE(writes_far) {
    if (threadIdx.x == 3)
        *(float *)(uintptr_t)a.count = a.value;
}

PLANTED_DEFINE(writes_hidden) {
    float *hidden = *(float *const *)a.x;
    GLOBAL(hidden);
    if (threadIdx.x == 0)
        hidden[a.count] = a.value;
}

PLANTED_DEFINE(no_syncwarp) {
    SHARED(float, row, 64);
    row[threadIdx.x] = a.x[own_element()];
    __shfl_xor_sync(~0u, threadIdx.x, 1);
    a.y[own_element()] = row[threadIdx.x ^ 1];
}

PLANTED_DEFINE(plain_flag) {
    a.y[0] = a.value;
}
