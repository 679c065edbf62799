// The losses of kernel/pointwise.def: of each block's elements the sum, which is summed in turn.
#include "gpu/kernels/functions.h"
#include "gpu/kernels/operands.h"
#include "gpu/kernels/team.h"

template <class Function>
static __device__ __forceinline__ void sum_losses(const LossArguments &a, Function function) {
    const i64 step = (i64)gridDim.x * blockDim.x * EIGHT;
    i64 at = ((i64)blockIdx.x * blockDim.x + threadIdx.x) * EIGHT;
    float sum = 0;
    for (; at < a.extent.count; at += step) {
        float x[EIGHT], t[EIGHT];
        if (a.wide && at + EIGHT <= a.extent.count) {
            load_eight(a.input[0], at, x);
            load_eight(a.input[1], at, t);
            float part = 0;
#pragma unroll
            for (int i = 0; i < EIGHT; i++)
                part += function(x[i], t[i]);
            sum += part;
            continue;
        }
#pragma unroll 1
        for (i64 i = at; i < at + EIGHT && i < a.extent.count; i++)
            sum += function(load_element(a.input[0], a.extent, i),
                            load_element(a.input[1], a.extent, i));
    }
    sum = join_team(team_of(blockDim.x), sum, Sum());
    if (threadIdx.x == 0)
        a.sums[blockIdx.x] = sum;
}

#define LOSS(name, class_, forward, ...)                                      \
    struct Loss_##name {                                                      \
        __device__ __forceinline__ float operator()(float x, float t) const { \
            return (float)(forward);                                          \
        }                                                                     \
    };                                                                        \
    GPU_DEFINE(name) {                                                        \
        sum_losses(a, Loss_##name());                                         \
    }
#include "kernel/pointwise.def"
