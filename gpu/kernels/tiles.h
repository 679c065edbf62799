// gpu/kernels/tiles.h: the card's units for tiles of numbers, by the format of the numbers.
#pragma once

#include "gpu/kernels/card.h"
#include "number/inline.h"

// How a factor's numbers lie in tiles, and so many terms of a sum are added at once.
struct NumberBf16 {
    typedef u16 Stored;
    enum { AT_ONCE = 16 };
};
struct NumberFp16 {
    typedef u16 Stored;
    enum { AT_ONCE = 16 };
};
struct NumberTf32 { // fp32, rounded
    typedef u32 Stored;
    enum { AT_ONCE = 8 };
};

static __device__ __forceinline__ void multiply_tiles(NumberBf16, float *sum, const u32 *a,
                                                      const u32 *b) {
    multiply_tiles_bf16(sum, a, b);
}
static __device__ __forceinline__ void multiply_tiles(NumberFp16, float *sum, const u32 *a,
                                                      const u32 *b) {
    multiply_tiles_fp16(sum, a, b);
}
static __device__ __forceinline__ void multiply_tiles(NumberTf32, float *sum, const u32 *a,
                                                      const u32 *b) {
    multiply_tiles_tf32(sum, a, b);
}

// As fp32.
static __device__ __forceinline__ float number_wide(NumberBf16, u16 bits) {
    return fp32_of_bf16(bits);
}
static __device__ __forceinline__ float number_wide(NumberFp16, u16 bits) {
    return fp32_of_fp16(bits);
}
