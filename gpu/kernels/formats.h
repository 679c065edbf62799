// gpu/kernels/formats.h: one number of any format that a tensor or a file can have.
//
// For what moves or makes numbers of every format; the three that operations compute in have faster
// routes (operands.h). By way of fp32, as on the host (number/inline.h): whole numbers of more
// digits than it has are copied, never converted, where they are to stay what they are.
#pragma once

#include "gpu/kernels/operands.h"
#include "number/inline.h"

static __device__ __forceinline__ float load_any(u32 format, const void *from, i64 at) {
    switch (format) {
    case FORMAT_FP64: return number_fp64_to_fp32(((const double *)from)[at]);
    case FORMAT_FP32: return ((const float *)from)[at];
    case FORMAT_BF16: return fp32_of_bf16(((const u16 *)from)[at]);
    case FORMAT_FP16: return fp32_of_fp16(((const u16 *)from)[at]);
    case FORMAT_E4M3: return number_e4m3_to_fp32(((const u8 *)from)[at]);
    case FORMAT_E5M2: return number_e5m2_to_fp32(((const u8 *)from)[at]);
    case FORMAT_E3M2: return number_e3m2_to_fp32(((const u8 *)from)[at]);
    case FORMAT_E2M3: return number_e2m3_to_fp32(((const u8 *)from)[at]);
    case FORMAT_E2M1: return number_e2m1_to_fp32(((const u8 *)from)[at]);
    case FORMAT_E8M0: return number_e8m0_to_fp32(((const u8 *)from)[at]);
    case FORMAT_INT8: return (float)((const int8_t *)from)[at];
    case FORMAT_INT32: return (float)((const i32 *)from)[at];
    default: return (float)((const u8 *)from)[at];
    }
}

static __device__ __forceinline__ void store_any(u32 format, void *to, i64 at, float value) {
    switch (format) {
    case FORMAT_FP64: ((double *)to)[at] = number_fp32_to_fp64(value); break;
    case FORMAT_FP32: ((float *)to)[at] = value; break;
    case FORMAT_BF16: ((u16 *)to)[at] = bf16_of_fp32(value); break;
    case FORMAT_FP16: ((u16 *)to)[at] = fp16_of_fp32(value); break;
    case FORMAT_E4M3: ((u8 *)to)[at] = number_fp32_to_e4m3_saturating(value); break;
    case FORMAT_E5M2: ((u8 *)to)[at] = number_fp32_to_e5m2_saturating(value); break;
    case FORMAT_E3M2: ((u8 *)to)[at] = number_fp32_to_e3m2(value); break;
    case FORMAT_E2M3: ((u8 *)to)[at] = number_fp32_to_e2m3(value); break;
    case FORMAT_E2M1: ((u8 *)to)[at] = number_fp32_to_e2m1(value); break;
    case FORMAT_E8M0: ((u8 *)to)[at] = number_fp32_to_e8m0_saturating(value); break;
    case FORMAT_INT8: ((int8_t *)to)[at] = number_fp32_to_int8(value); break;
    case FORMAT_INT32: ((i32 *)to)[at] = number_fp32_to_int32(value); break;
    default: ((u8 *)to)[at] = number_fp32_to_uint8(value); break;
    }
}

// ---- moving -------------------------------------------------------------------------------------

// Moves piece `from_at` of one array to `to_at` of another: as many bytes as a piece has, as they
// are, or one number from format to format.
static __device__ __forceinline__ void move_piece(const Moving &moving, void *to, i64 to_at,
                                                  const void *from, i64 from_at) {
    switch (moving.bytes) {
    case 16: store_wide((uint4 *)to + to_at, load_wide((const uint4 *)from + from_at)); break;
    case 8: ((u64 *)to)[to_at] = ((const u64 *)from)[from_at]; break;
    case 4: ((u32 *)to)[to_at] = ((const u32 *)from)[from_at]; break;
    case 2: ((u16 *)to)[to_at] = ((const u16 *)from)[from_at]; break;
    case 1: ((u8 *)to)[to_at] = ((const u8 *)from)[from_at]; break;
    default:
        if (moving.from == FORMAT_INT32 && moving.to == FORMAT_INT32) // fp32 has not all its digits
            ((u32 *)to)[to_at] = ((const u32 *)from)[from_at];
        else
            store_any(moving.to, to, to_at, load_any(moving.from, from, from_at));
    }
}

// The same bytes into piece `to_at`; a pattern of 16 repeats whatever number it is made of.
static __device__ __forceinline__ void fill_piece(u32 bytes, void *to, i64 to_at,
                                                  const Pattern &pattern) {
    const u32 *word = pattern.word;
    switch (bytes) {
    case 16: store_wide((uint4 *)to + to_at, uint4{word[0], word[1], word[2], word[3]}); break;
    case 8: ((u64 *)to)[to_at] = word[0] | (u64)word[1] << 32; break;
    case 4: ((u32 *)to)[to_at] = word[0]; break;
    case 2: ((u16 *)to)[to_at] = (u16)word[0]; break;
    default: ((u8 *)to)[to_at] = (u8)word[0]; break;
    }
}
