// Numbers in another format, and bytes in another order.
#include "gpu/kernels/formats.h"

enum { BLOCK = 256 }; // threads, and steps between what one of them moves

GPU_DEFINE(cast) {
    const i64 begin = (i64)blockIdx.x * BLOCK * EIGHT, index = begin + threadIdx.x * EIGHT;
    if (a.wide && index + EIGHT <= a.extent.count) {
        float x[EIGHT];
        load_eight(a.input, index, x);
        store_eight(a.output, index, x);
        return;
    }
    const int step = a.wide ? 1 : BLOCK;
    i64 at = a.wide ? index : begin + threadIdx.x;
#pragma unroll 1
    for (int i = 0; i < EIGHT && at < a.extent.count; i++, at += step) {
        const i64 from = a.input.kind == OPERAND_STRIDED ? strided(a.input, a.extent, at)
                         : a.input.kind == OPERAND_ONE   ? 0
                                                         : at;
        store_any(a.output.format, a.output.data, at, load_any(a.input.format, a.input.data, from));
    }
}

GPU_DEFINE(copy) {
    i64 at = (i64)blockIdx.x * BLOCK * EIGHT + threadIdx.x;
#pragma unroll 1
    for (int i = 0; i < EIGHT && at < a.extent.count; i++, at += BLOCK)
        move_piece(a.moving, a.output, at, a.input.data,
                   a.input.kind == OPERAND_STRIDED ? strided(a.input, a.extent, at)
                   : a.input.kind == OPERAND_ONE   ? 0
                                                   : at);
}

// ---- turned round -------------------------------------------------------------------------------

// A number's own bits, or those of its fp32.
static __device__ __forceinline__ u32 load_bits(const TransposeArguments &a, i64 at) {
    switch (a.keeps) {
    case 4: return ((const u32 *)a.input.data)[at];
    case 2: return ((const u16 *)a.input.data)[at];
    case 1: return ((const u8 *)a.input.data)[at];
    default: return __float_as_uint(load_any(a.input.format, a.input.data, at));
    }
}
static __device__ __forceinline__ void store_bits(const TransposeArguments &a, i64 at, u32 bits) {
    switch (a.keeps) {
    case 4: ((u32 *)a.output.data)[at] = bits; break;
    case 2: ((u16 *)a.output.data)[at] = (u16)bits; break;
    case 1: ((u8 *)a.output.data)[at] = (u8)bits; break;
    default: store_any(a.output.format, a.output.data, at, __uint_as_float(bits)); break;
    }
}

// What lies along one dimension is to lie along the last: by way of a tile in shared memory
// neighbours are read together, and written together.
GPU_DEFINE(transpose) {
    SHARED(u32, tile,
           CAST_TILE * (CAST_TILE + 1)); // a column more, so that columns fall on different banks
    const u32 x = threadIdx.x % CAST_TILE, y = threadIdx.x / CAST_TILE, last = a.extent.ndim - 1;
    i64 rest = blockIdx.x;
    const i64 first_last = rest % a.tiles_last * CAST_TILE;
    rest /= a.tiles_last;
    const i64 first_along = rest % a.tiles_along * CAST_TILE;
    rest /= a.tiles_along;
    i64 from = first_along + first_last * a.input.stride[last], to = first_last;
    i64 step = a.extent.size[last], step_along = 0;
#pragma unroll 1
    for (u32 d = last; d-- > 0;) {
        i64 place = first_along;
        if (d == a.along) {
            step_along = step;
        } else {
            place = rest % a.extent.size[d];
            rest /= a.extent.size[d];
            from += place * a.input.stride[d];
        }
        to += place * step;
        step *= a.extent.size[d];
    }
    const i64 along = a.extent.size[a.along] - first_along,
              lasts = a.extent.size[last] - first_last;
#pragma unroll 1
    for (u32 i = y; i < CAST_TILE && i < lasts; i += BLOCK / CAST_TILE)
        if (x < along)
            tile[i * (CAST_TILE + 1) + x] = load_bits(a, from + i * a.input.stride[last] + x);
    __syncthreads();
#pragma unroll 1
    for (u32 i = y; i < CAST_TILE && i < along; i += BLOCK / CAST_TILE)
        if (x < lasts)
            store_bits(a, to + i * step_along + x, tile[x * (CAST_TILE + 1) + i]);
}
