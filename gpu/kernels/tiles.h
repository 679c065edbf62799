// gpu/kernels/tiles.h: the card's units for tiles of 16-bit numbers, by the format of the numbers.
#pragma once

#include "gpu/kernels/card.h"

struct NumberBf16 {};
struct NumberFp16 {};

static __device__ __forceinline__ void multiply_tiles(NumberBf16, float *sum, const u32 *a,
                                                      const u32 *b) {
    multiply_tiles_bf16(sum, a, b);
}
static __device__ __forceinline__ void multiply_tiles(NumberFp16, float *sum, const u32 *a,
                                                      const u32 *b) {
    multiply_tiles_fp16(sum, a, b);
}

// Two neighbours as a lane holds them.
static __device__ __forceinline__ u32 number_pair(NumberBf16, float first, float second) {
    return bf16_of_fp32(first) | (u32)bf16_of_fp32(second) << 16;
}
static __device__ __forceinline__ u32 number_pair(NumberFp16, float first, float second) {
    return fp16_of_fp32(first) | (u32)fp16_of_fp32(second) << 16;
}
