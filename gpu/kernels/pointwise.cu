// Everything that goes element by element, whatever formats and strides: one kernel a function of
// kernel/pointwise.def.
#include "gpu/kernels/functions.h"
#include "gpu/kernels/operands.h"

enum { BLOCK = 256 }; // threads, and steps between the elements of one, where they do not lie wide

// Runs a function of `inputs` numbers over the extent. Of each function there is a struct whose
// call is the function, so that one body serves all.
template <int inputs, class Function>
static __device__ __forceinline__ void run(const PointwiseArguments &a, Function function) {
    const i64 begin = (i64)blockIdx.x * BLOCK * EIGHT, index = begin + threadIdx.x * EIGHT;
    if (a.wide && index + EIGHT <= a.extent.count) {
        float x[EIGHT], y[EIGHT], z[EIGHT];
        load_eight(a.input[0], index, x);
        if (inputs > 1)
            load_eight(a.input[1], index, y);
        if (inputs > 2)
            load_eight(a.input[2], index, z);
#pragma unroll
        for (int i = 0; i < EIGHT; i++)
            x[i] = function(x[i], inputs > 1 ? y[i] : 0, inputs > 2 ? z[i] : 0, a.a, a.b);
        store_eight(a.output, index, x);
        return;
    }
    const int step = a.wide ? 1 : BLOCK;
    i64 at = a.wide ? index : begin + threadIdx.x;
#pragma unroll 1
    for (int i = 0; i < EIGHT && at < a.extent.count; i++, at += step) {
        const float x = load_element(a.input[0], a.extent, at);
        const float y = inputs > 1 ? load_element(a.input[1], a.extent, at) : 0;
        const float z = inputs > 2 ? load_element(a.input[2], a.extent, at) : 0;
        store_one(a.output, at, function(x, y, z, a.a, a.b));
    }
}

// The head of a function's call.
#define CALL(x, y, z, a, b) \
    __device__ __forceinline__ float operator()(float x, float y, float z, float a, float b) const

#define UNARY(name, class_, saved, forward, gradient, ...) \
    struct Forward_##name {                                \
        CALL(x, , , a, b) {                                \
            (void)a, (void)b;                              \
            return (float)(forward);                       \
        }                                                  \
    };                                                     \
    struct Backward_##name {                               \
        CALL(dy, x, , a, b) {                              \
            const float y = x;                             \
            (void)y, (void)a, (void)b;                     \
            return (float)(gradient);                      \
        }                                                  \
    };                                                     \
    GPU_DEFINE(name) {                                     \
        run<1>(a, Forward_##name());                       \
    }                                                      \
    GPU_DEFINE(name##_backward) {                          \
        run<2>(a, Backward_##name());                      \
    }
#define TWO(name, result)                            \
    struct Of_##name {                               \
        CALL(x, y, , , ) { return (float)(result); } \
    };                                               \
    GPU_DEFINE(name) {                               \
        run<2>(a, Of_##name());                      \
    }
#define BINARY(name, class_, forward, text) TWO(name, forward)
#define COMPARE(name, forward, text)        TWO(name, (forward) ? 1 : 0)
// Of the mean over `count` elements each has an equal share of the gradient.
#define LOSS(name, class_, forward, gradient, ...) \
    struct Backward_##name {                       \
        CALL(dloss, x, t, count, ) {               \
            const float dy = dloss / count;        \
            return (float)(gradient);              \
        }                                          \
    };                                             \
    GPU_DEFINE(name##_backward) {                  \
        run<3>(a, Backward_##name());              \
    }
#include "kernel/pointwise.def"

struct Choice {
    CALL(condition, x, y, , ) { return condition != 0 ? x : y; }
};
GPU_DEFINE(where) {
    run<3>(a, Choice());
}
