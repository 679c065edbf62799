// Point-wise work between whole numbers: in 64 bits, of which int32 and uint8 keep the last.
#include "gpu/kernels/operands.h"

typedef i64 real; // the expressions of pointwise.def compute in it

enum { BLOCK = 256 }; // threads, and steps between the elements of one

static __device__ __forceinline__ i64 load_whole(const Operand &from, const Extent &extent,
                                                 i64 index) {
    const i64 at = from.kind == OPERAND_ONE       ? 0
                   : from.kind == OPERAND_STRIDED ? strided(from, extent, index)
                                                  : index;
    return from.format == FORMAT_INT32 ? ((const i32 *)from.data)[at] : ((const u8 *)from.data)[at];
}

static __device__ __forceinline__ void store_whole(const Operand &to, i64 at, i64 value) {
    if (to.format == FORMAT_INT32)
        ((i32 *)to.data)[at] = (i32)(u32)value;
    else
        ((u8 *)to.data)[at] = (u8)value;
}

template <int inputs, class Function>
static __device__ __forceinline__ void run(const PointwiseArguments &a, Function function) {
    i64 at = (i64)blockIdx.x * BLOCK * EIGHT + threadIdx.x;
#pragma unroll 1
    for (int i = 0; i < EIGHT && at < a.extent.count; i++, at += BLOCK) {
        const i64 x = load_whole(a.input[0], a.extent, at);
        const i64 y = load_whole(a.input[1], a.extent, at);
        const i64 z = inputs > 2 ? load_whole(a.input[2], a.extent, at) : 0;
        store_whole(a.output, at, function(x, y, z));
    }
}

// The head of a function's call.
#define CALL(x, y, z) __device__ __forceinline__ i64 operator()(i64 x, i64 y, i64 z) const

// A whole number is never NaN, of which the expressions think.
#ifndef __CUDACC__
#pragma GCC diagnostic ignored "-Wtautological-compare"
#endif
#define BINARY(name, class_, forward, text) \
    struct Whole_##name {                   \
        CALL(x, y, ) { return (forward); }  \
    };                                      \
    GPU_DEFINE(whole_##name) {              \
        run<2>(a, Whole_##name());          \
    }
#define COMPARE(name, forward, text) BINARY(name, , (forward) ? 1 : 0, text)
#include "kernel/pointwise.def"

struct Choice {
    CALL(condition, x, y) { return condition != 0 ? x : y; }
};
GPU_DEFINE(whole_where) {
    run<3>(a, Choice());
}
