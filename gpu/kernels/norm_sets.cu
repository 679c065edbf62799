// Normalisation of sets that a block walks over: the groups of channels of an image, and rows that
// are too long for registers. What is walked over again comes out of the card's cache, mostly.
#include "gpu/kernels/operands.h"
#include "gpu/kernels/team.h"

// The block's set: `rows_of_set` rows of `group` channels.
struct SetWalk {
    i64 base, channel; // of its first element
    i64 count;

    __device__ __forceinline__ explicit SetWalk(const NormArguments &a) {
        const i64 set = blockIdx.x;
        channel = set % a.groups * a.group;
        base = set / a.groups * a.rows_of_set * a.channels + channel;
        count = a.rows_of_set * a.group;
    }

    // Calls with where each of the thread's elements lies in the array, with its channel, and with
    // how many are side by side there: `width`.
    template <int width, class Function>
    __device__ __forceinline__ void each_by(const NormArguments &a, Function function) const {
        for (i64 i = (i64)threadIdx.x * width; i < count; i += (i64)blockDim.x * width) {
            const i64 row = quotient(i, a.group);
            const i64 own = i - row * a.group;
            function(base + row * a.channels + own, channel + own);
        }
    }
};

template <int width>
static __device__ __forceinline__ void load(const Operand &from, i64 at, float *value) {
    if (width == EIGHT)
        load_eight(from, at, value);
    else
        value[0] = load_float(from, at);
}

template <int width>
static __device__ __forceinline__ void load_vector(const Operand &from, i64 channel, float missing,
                                                   float *value) {
#pragma unroll
    for (int k = 0; k < width; k++)
        value[k] = from.kind == OPERAND_ABSENT ? missing : load_float(from, channel + k);
}

template <int width>
static __device__ __forceinline__ void store(const Operand &to, i64 at, const float *value) {
    if (width == EIGHT)
        store_eight(to, at, value);
    else
        store_float(to, at, value[0]);
}

template <int width> static __device__ __forceinline__ void normalise_set(const NormArguments &a) {
    const SetWalk walk(a);
    const Team block = team_of(blockDim.x);
    const float share = 1 / (float)walk.count;
    float sum = 0, squares = 0;
    walk.each_by<width>(a, [&](i64 at, i64) {
        float x[width];
        load<width>(a.x, at, x);
#pragma unroll
        for (int k = 0; k < width; k++)
            sum += x[k];
    });
    const float mean = join_team(block, sum, Sum()) * share;
    walk.each_by<width>(a, [&](i64 at, i64) {
        float x[width];
        load<width>(a.x, at, x);
#pragma unroll
        for (int k = 0; k < width; k++)
            squares += (x[k] - mean) * (x[k] - mean);
    });
    const float variance = join_team(block, squares, Sum()) * share;
    const float inverse = 1 / sqrtf(variance + a.epsilon);
    walk.each_by<width>(a, [&](i64 at, i64 channel) {
        float x[width], weight[width], bias[width];
        load<width>(a.x, at, x);
        load_vector<width>(a.weight, channel, 1, weight);
        load_vector<width>(a.bias, channel, 0, bias);
#pragma unroll
        for (int k = 0; k < width; k++)
            x[k] = (x[k] - mean) * inverse * weight[k] + bias[k];
        store<width>(a.output, at, x);
    });
    if (threadIdx.x == 0) {
        store_float(a.mean, blockIdx.x, mean);
        store_float(a.inverse, blockIdx.x, inverse);
    }
}

// See layer_norm_backward.
template <int width>
static __device__ __forceinline__ void gradient_of_set(const NormArguments &a) {
    const SetWalk walk(a);
    const Team block = team_of(blockDim.x);
    const float share = 1 / (float)walk.count;
    const float mean = load_float(a.mean, blockIdx.x), inverse = load_float(a.inverse, blockIdx.x);
    float sum = 0, products = 0;
    walk.each_by<width>(a, [&](i64 at, i64 channel) {
        float x[width], dy[width], weight[width];
        load<width>(a.x, at, x);
        load<width>(a.dy, at, dy);
        load_vector<width>(a.weight, channel, 1, weight);
#pragma unroll
        for (int k = 0; k < width; k++) {
            const float g = dy[k] * weight[k];
            sum += g;
            products += g * ((x[k] - mean) * inverse);
        }
    });
    sum = join_team(block, sum, Sum()) * share;
    products = join_team(block, products, Sum()) * share;
    walk.each_by<width>(a, [&](i64 at, i64 channel) {
        float x[width], dy[width], weight[width];
        load<width>(a.x, at, x);
        load<width>(a.dy, at, dy);
        load_vector<width>(a.weight, channel, 1, weight);
#pragma unroll
        for (int k = 0; k < width; k++)
            dy[k] = (dy[k] * weight[k] - sum - (x[k] - mean) * inverse * products) * inverse;
        store<width>(a.output, at, dy);
    });
}

GPU_DEFINE(group_norm) {
    if (a.wide)
        normalise_set<EIGHT>(a);
    else
        normalise_set<1>(a);
}
GPU_DEFINE(group_norm_backward) {
    if (a.wide)
        gradient_of_set<EIGHT>(a);
    else
        gradient_of_set<1>(a);
}
