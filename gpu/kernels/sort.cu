// Positions in the order of what an index says at them: a stable sort, digit by digit.
//
// Each pass counts the digits of every tile, adds up where each digit of each tile begins, and
// moves all entries there, those of one digit in the order that they had. Counts are whole numbers,
// so that atomics change no result.
#include "gpu/kernels/values.h"

enum {
    BLOCK = 256, // threads, and digits
    WARPS = BLOCK / 32,
    ROUNDS = SORT_TILE / BLOCK, // of a tile
    SCAN = 1024,                // threads
    SCANS = SCAN / 32,
    FOUR = 4
};
static_assert(BLOCK == (int)SORT_DIGITS, "a thread for each digit");

// What entry `at` is sorted by; what does not pass comes behind all rows.
static __device__ __forceinline__ u32 key_at(const SortArguments &a, i64 at) {
    if (a.key)
        return a.key[at];
    const i32 value = a.index[at];
    return value_passes(&a.values.check, value) ? (u32)value : (u32)a.values.check.bound;
}

static __device__ __forceinline__ u32 digit_of(const SortArguments &a, u32 key) {
    return key >> a.shift & (SORT_DIGITS - 1);
}

GPU_DEFINE(sort_count) {
    SHARED(u32, count, SORT_DIGITS);
    count[threadIdx.x] = 0;
    __syncthreads();
    i64 at = (i64)blockIdx.x * SORT_TILE + threadIdx.x;
#pragma unroll 1
    for (int i = 0; i < ROUNDS && at < a.count; i++, at += BLOCK) {
        if (!a.key)
            (void)value_holds(a.values, at, a.index[at]);
        atomicAdd(&count[digit_of(a, key_at(a, at))], 1u);
    }
    __syncthreads();
    a.starts[(i64)threadIdx.x * a.tiles + blockIdx.x] = count[threadIdx.x];
}

// The sum of what this lane and those below it have.
static __device__ __forceinline__ u32 sum_up_to(u32 value, u32 lane) {
#pragma unroll
    for (u32 step = 1; step < 32; step *= 2) {
        const u32 lower = __shfl_up_sync(0xFFFFFFFF, value, step);
        value += lane >= step ? lower : 0;
    }
    return value;
}

// One block makes of all counts the sums of those before them.
GPU_DEFINE(sort_scan) {
    SHARED(u32, of_warp, SCANS);
    const u32 lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const i64 total = (i64)a.tiles * SORT_DIGITS; // a multiple of four
    u32 before = 0;
#pragma unroll 1
    for (i64 begin = 0; begin < total; begin += SCAN * FOUR) {
        const i64 at = begin + threadIdx.x * FOUR;
        uint4 four = at < total ? load_wide(a.starts + at) : uint4{0, 0, 0, 0};
        const u32 own = four.x + four.y + four.z + four.w, sum = sum_up_to(own, lane);
        if (lane == 31)
            of_warp[warp] = sum;
        __syncthreads();
        const u32 warps = sum_up_to(of_warp[lane], lane); // every warp for itself
        const u32 lower = warp ? __shfl_sync(0xFFFFFFFF, warps, warp - 1) : 0;
        const u32 first = before + lower + sum - own;
        if (at < total)
            store_wide(a.starts + at, uint4{first, first + four.x, first + four.x + four.y,
                                            first + four.x + four.y + four.z});
        before += __shfl_sync(0xFFFFFFFF, warps, 31);
        __syncthreads();
    }
}

// The lanes that have the same digit; of those without one, any.
static __device__ __forceinline__ u32 lanes_alike(u32 digit, bool present) {
    u32 alike = __ballot_sync(0xFFFFFFFF, present);
#pragma unroll
    for (u32 bit = 1; bit < SORT_DIGITS; bit *= 2) {
        const u32 set = __ballot_sync(0xFFFFFFFF, (digit & bit) != 0);
        alike &= digit & bit ? set : ~set;
    }
    return alike;
}

GPU_DEFINE(sort_move) {
    SHARED(u32, next, SORT_DIGITS);          // where the tile's next entry of a digit goes
    SHARED(u32, place, WARPS * SORT_DIGITS); // of each warp's first; before that, how many
    const u32 lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    next[threadIdx.x] = a.starts[(i64)threadIdx.x * a.tiles + blockIdx.x];
    i64 at = (i64)blockIdx.x * SORT_TILE + threadIdx.x;
#pragma unroll 1
    for (int round = 0; round < ROUNDS; round++, at += BLOCK) {
#pragma unroll
        for (int i = 0; i < WARPS; i++)
            place[i * SORT_DIGITS + threadIdx.x] = 0;
        __syncthreads();
        const bool present = at < a.count;
        const u32 key = present ? key_at(a, at) : 0, digit = digit_of(a, key);
        const u32 alike = lanes_alike(digit, present), lower = alike & ((1u << lane) - 1);
        if (present && !lower)
            place[warp * SORT_DIGITS + digit] = (u32)__popc(alike);
        __syncthreads();
        u32 first = next[threadIdx.x];
#pragma unroll
        for (int i = 0; i < WARPS; i++) {
            const u32 count = place[i * SORT_DIGITS + threadIdx.x];
            place[i * SORT_DIGITS + threadIdx.x] = first;
            first += count;
        }
        next[threadIdx.x] = first;
        __syncthreads();
        if (present) {
            const u32 to = place[warp * SORT_DIGITS + digit] + (u32)__popc(lower);
            a.key_out[to] = key;
            a.position_out[to] = a.key ? a.position[at] : (u32)at;
        }
        __syncthreads();
    }
}

// Where the entries of each row begin and end among all sorted ones.
GPU_DEFINE(sort_bounds) {
    const i64 at = (i64)blockIdx.x * BLOCK + threadIdx.x;
    if (at >= a.count)
        return;
    const u32 key = a.key[at];
    if (key >= a.values.check.bound) // of no row
        return;
    if (at == 0 || a.key[at - 1] != key)
        a.bounds[key].first = (u32)at;
    if (at + 1 == a.count || a.key[at + 1] != key)
        a.bounds[key].end = (u32)at + 1;
}
