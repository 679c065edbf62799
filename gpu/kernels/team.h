// gpu/kernels/team.h: what threads find together, however many share a piece of work: sums, largest
// numbers, all that joins two values into one.
//
// A team is the threads that work on one thing: a power of two of lanes side by side in a warp, or
// a whole block of a power of two of warps. All threads of the block call together. Each gets the
// result, the same to the bit, if joining a with b gives the bits of joining b with a; the order is
// fixed by the team's size alone.
#pragma once

#include "gpu/kernels/block.h"

enum { MOST_WARPS = 32 };

struct Team {
    u32 size, member; // how many; which of them this thread is
};

static __device__ __forceinline__ Team team_of(u32 size) {
    return Team{size, threadIdx.x & (size - 1)};
}

struct Sum {
    __device__ __forceinline__ float operator()(float a, float b) const { return a + b; }
    __device__ __forceinline__ u32 operator()(u32 a, u32 b) const { return a + b; }
};
struct Larger { // a NaN loses
    __device__ __forceinline__ float operator()(float a, float b) const { return fmaxf(a, b); }
    __device__ __forceinline__ u64 operator()(u64 a, u64 b) const { return a > b ? a : b; }
};

// The value of the lane whose number differs by the bit `step`.
template <class Value>
static __device__ __forceinline__ Value value_across(const Value &value, u32 step) {
    static_assert(sizeof(Value) % sizeof(u32) == 0, "lanes exchange words");
    u32 word[sizeof(Value) / sizeof(u32)];
    memcpy(word, &value, sizeof word);
#pragma unroll
    for (u32 i = 0; i < sizeof word / sizeof *word; i++)
        word[i] = __shfl_xor_sync(0xFFFFFFFF, word[i], (int)step);
    Value other;
    memcpy(&other, word, sizeof word);
    return other;
}

// Of `lanes` side by side.
template <class Value, class Join>
static __device__ __forceinline__ Value join_lanes(u32 lanes, Value value, Join join) {
    for (u32 step = 1; step < lanes; step *= 2)
        value = join(value, value_across(value, step));
    return value;
}

template <class Value, class Join>
static __device__ __forceinline__ Value join_team(Team team, Value value, Join join) {
    if (team.size <= WARP)
        return join_lanes(team.size, value, join);
    SHARED(Value, of_warp, MOST_WARPS);
    const u32 warps = team.size / WARP;
    value = join_lanes(WARP, value, join);
    __syncthreads(); // the last call's values have been read
    if (threadIdx.x % WARP == 0)
        of_warp[threadIdx.x / WARP] = value;
    __syncthreads();
    return join_lanes(warps, of_warp[threadIdx.x & (warps - 1)], join);
}
