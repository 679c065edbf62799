// gpu/kernels/operands.h: reading and writing operands of any format and any strides.
//
// What is computed is computed in fp32 and rounded once, where it is stored. Of what lies wide,
// eight neighbours belong to a thread, and come and go by 16 bytes; of all else, neighbours belong
// to neighbours.
#pragma once

#include "gpu/kernels/card.h"

static __device__ __forceinline__ float load_one(const Operand &from, i64 at) {
    switch (from.format) {
    case FORMAT_FP32: return ((const float *)from.data)[at];
    case FORMAT_BF16: return fp32_of_bf16(((const u16 *)from.data)[at]);
    case FORMAT_FP16: return fp32_of_fp16(((const u16 *)from.data)[at]);
    case FORMAT_INT32: return (float)((const i32 *)from.data)[at];
    default: return (float)((const u8 *)from.data)[at];
    }
}

static __device__ __forceinline__ void store_one(const Operand &to, i64 at, float value) {
    switch (to.format) {
    case FORMAT_FP32: ((float *)to.data)[at] = value; break;
    case FORMAT_BF16: ((u16 *)to.data)[at] = bf16_of_fp32(value); break;
    case FORMAT_FP16: ((u16 *)to.data)[at] = fp16_of_fp32(value); break;
    default: ((u8 *)to.data)[at] = (u8)value; break;
    }
}

// The same of what is sure to be floating: of so few formats that it may stand in unrolled loops.
static __device__ __forceinline__ float load_float(const Operand &from, i64 at) {
    if (from.format == FORMAT_FP32)
        return ((const float *)from.data)[at];
    const u16 bits = ((const u16 *)from.data)[at];
    return from.format == FORMAT_BF16 ? fp32_of_bf16(bits) : fp32_of_fp16(bits);
}

static __device__ __forceinline__ void store_float(const Operand &to, i64 at, float value) {
    if (to.format == FORMAT_FP32)
        ((float *)to.data)[at] = value;
    else
        ((u16 *)to.data)[at] = to.format == FORMAT_BF16 ? bf16_of_fp32(value) : fp16_of_fp32(value);
}

// A division of 64 bits takes several times as long as one of 32.
static __device__ __forceinline__ i64 quotient(i64 of, i64 by) {
    return (u64)(of | by) <= 0xFFFFFFFF ? (i64)((u32)of / (u32)by) : of / by;
}

// Takes the place along a dimension of `size` off an index, the last dimension first; `count` is
// more than any index.
static __device__ __forceinline__ i64 part_off(i64 *index, i64 size, i64 count) {
    const i64 whole = count <= 0xFFFFFFFF ? (i64)((u32)*index / (u32)size) : *index / size;
    const i64 rest = *index - whole * size;
    *index = whole;
    return rest;
}

// Where element `index` of the extent lies in an operand with strides.
static __device__ __forceinline__ i64 strided(const Operand &of, const Extent &extent, i64 index) {
    i64 at = 0;
    if (extent.count <= 0xFFFFFFFF) { // a division of 64 bits takes several times as long
        u32 rest = (u32)index;
        for (u32 i = extent.ndim; i-- > 0;) {
            u32 size = (u32)extent.size[i];
            at += (i64)(rest % size) * of.stride[i];
            rest /= size;
        }
        return at;
    }
    for (u32 i = extent.ndim; i-- > 0;) {
        at += index % extent.size[i] * of.stride[i];
        index /= extent.size[i];
    }
    return at;
}

static __device__ __forceinline__ float load_element(const Operand &from, const Extent &extent,
                                                     i64 index) {
    switch (from.kind) {
    case OPERAND_ONE: return load_one(from, 0);
    case OPERAND_STRIDED: return load_one(from, strided(from, extent, index));
    default: return load_one(from, index);
    }
}

// Eight 16-bit patterns of 16 bytes, and back.
static __device__ __forceinline__ void part_wide(uint4 wide, u16 *part) {
    const u32 word[4] = {wide.x, wide.y, wide.z, wide.w};
#pragma unroll
    for (int i = 0; i < 4; i++) {
        part[2 * i] = (u16)word[i];
        part[2 * i + 1] = (u16)(word[i] >> 16);
    }
}
static __device__ __forceinline__ uint4 join_wide(const u16 *part) {
    u32 word[4];
#pragma unroll
    for (int i = 0; i < 4; i++)
        word[i] = part[2 * i] | (u32)part[2 * i + 1] << 16;
    return uint4{word[0], word[1], word[2], word[3]};
}

static __device__ __forceinline__ uint4 bits_of_four(const float *value) {
    return uint4{__float_as_uint(value[0]), __float_as_uint(value[1]), __float_as_uint(value[2]),
                 __float_as_uint(value[3])};
}
static __device__ __forceinline__ void four_of_bits(uint4 bits, float *value) {
    value[0] = __uint_as_float(bits.x);
    value[1] = __uint_as_float(bits.y);
    value[2] = __uint_as_float(bits.z);
    value[3] = __uint_as_float(bits.w);
}

// Elements `index` to `index` + 7 of an operand that lies wide, or that is one for all, as fp32.
static __device__ __forceinline__ void load_eight(const Operand &from, i64 index, float *value) {
    if (from.kind == OPERAND_ONE) {
        const float one = load_one(from, 0);
#pragma unroll
        for (int i = 0; i < EIGHT; i++)
            value[i] = one;
    } else if (from.format == FORMAT_FP32) {
        const float *at = (const float *)from.data + index;
        four_of_bits(load_wide(at), value);
        four_of_bits(load_wide(at + 4), value + 4);
    } else {
        u16 part[EIGHT];
        part_wide(load_wide((const u16 *)from.data + index), part);
#pragma unroll
        for (int i = 0; i < EIGHT; i++)
            value[i] = from.format == FORMAT_BF16 ? fp32_of_bf16(part[i]) : fp32_of_fp16(part[i]);
    }
}

static __device__ __forceinline__ void store_eight(const Operand &to, i64 index,
                                                   const float *value) {
    if (to.format == FORMAT_FP32) {
        float *at = (float *)to.data + index;
        store_wide(at, bits_of_four(value));
        store_wide(at + 4, bits_of_four(value + 4));
        return;
    }
    u16 part[EIGHT];
#pragma unroll
    for (int i = 0; i < EIGHT; i++)
        part[i] = to.format == FORMAT_BF16 ? bf16_of_fp32(value[i]) : fp16_of_fp32(value[i]);
    store_wide((u16 *)to.data + index, join_wide(part));
}
