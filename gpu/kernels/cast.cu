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
