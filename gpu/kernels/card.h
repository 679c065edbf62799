// gpu/kernels/card.h: what kernels are written in: a card's own words, or the emulator's.
//
// Only .cu files include it. The few things that a card does by an instruction of its own stand
// here for nvcc, and under the same names in the header that GPU_EMULATED names for g++. Rules for
// kernels:
//   - a kernel begins with GPU_DEFINE(name); its threads are those of kernels.def;
//   - shared memory through SHARED and SHARED_DYNAMIC, so that the emulator poisons it;
//   - threads of a warp that meet are named: no operation without its mask;
//   - fmaf where a product and a sum are to be rounded once; no compiler contracts others;
//   - comparisons so that NaN fails; no plain store of one word by several threads;
//   - sums in a fixed order: no atomic addition of floating numbers.
#pragma once

#include "gpu/kernels/arguments.h"

enum GpuThreads {
#define GPU_KERNEL(file, name, arguments, threads) GPU_THREADS_##name = threads,
#include "gpu/kernels/kernels.def"
};
#define GPU_KERNEL(file, name, arguments, threads) typedef arguments GpuArguments_##name;
#include "gpu/kernels/kernels.def"

// The head of a kernel, whose arguments are `a`. One that needs more registers than nvcc likes to
// give says so: then its blocks may have a multiprocessor each to themselves.
#define GPU_DEFINE(name)       GPU_DEFINE_BOUND(name, GPU_THREADS_##name)
#define GPU_DEFINE_LARGE(name) GPU_DEFINE_BOUND(name, GPU_THREADS_##name, 1)
#define GPU_DEFINE_BOUND(name, ...)                           \
    extern "C" __global__ void __launch_bounds__(__VA_ARGS__) \
        gpu_kernel_##name(const __grid_constant__ GpuArguments_##name a)

// Every shared array begins at a multiple of this, whatever its type: wide accesses and tiles need
// it, and a card gives no more than it was asked for.
enum { SHARED_ALIGNMENT = WIDE_BYTES };

#ifdef GPU_EMULATED
#include GPU_EMULATED
#else

// An address out of a table is taken to be global memory: else its accesses are slower ones.
#define GLOBAL(pointer) __builtin_assume(__isGlobal(pointer))
#define SHARED(type, name, count)          \
    __shared__ __align__(SHARED_ALIGNMENT) \
    type name[count]
#define SHARED_DYNAMIC(type, name)                \
    extern __shared__ uint4 gpu_dynamic_shared[]; \
    type *name = (type *)gpu_dynamic_shared

static __device__ __forceinline__ float fp32_of_fp16(u16 bits) {
    float value;
    asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(bits));
    return value;
}
static __device__ __forceinline__ u16 fp16_of_fp32(float value) {
    u16 bits;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(value));
    return bits;
}
static __device__ __forceinline__ u16 bf16_of_fp32(float value) {
    u16 bits;
    asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(bits) : "f"(value));
    return bits;
}

// 16 bytes at once, from and to a multiple of 16.
static __device__ __forceinline__ uint4 load_wide(const void *from) {
    return *(const uint4 *)from;
}
static __device__ __forceinline__ void store_wide(void *to, uint4 value) {
    *(uint4 *)to = value;
}

// What a whole warp does at once with tiles of eight rows of 16 bytes. A lane holds 4 bytes of
// each: of row lane / 4 the word lane % 4, which is two neighbours of 16 bits or one of 32.
//
// sum += a b: of a four tiles, a column of them first; of b, turned, two; of sum, which is fp32 by
// 8 columns, two: of each two neighbours from column lane % 4 * 2 on.
#define GPU_MULTIPLY_TILES(format, shape, type)                                                 \
    static __device__ __forceinline__ void multiply_tiles_##format(float *sum, const u32 *left, \
                                                                   const u32 *right) {          \
        asm("mma.sync.aligned." shape ".row.col.f32." #type "." #type ".f32 "                   \
            "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"                   \
            : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])                            \
            : "r"(left[0]), "r"(left[1]), "r"(left[2]), "r"(left[3]), "r"(right[0]),            \
              "r"(right[1]));                                                                   \
    }
GPU_MULTIPLY_TILES(bf16, "m16n8k16", bf16)
GPU_MULTIPLY_TILES(fp16, "m16n8k16", f16)
GPU_MULTIPLY_TILES(tf32, "m16n8k8", tf32) // of fp32 whose last 13 bits are 0

// Four tiles of shared memory. Lane i says where row i % 8 of tile i / 8 begins, a multiple of 16
// bytes; `turned`, a row is a column of the tile.
#define GPU_LOAD_TILES(name, how)                                                              \
    static __device__ __forceinline__ void name(const void *row, u32 *part) {                  \
        asm volatile("ldmatrix.sync.aligned.m8n8.x4" how ".shared.b16 {%0, %1, %2, %3}, [%4];" \
                     : "=r"(part[0]), "=r"(part[1]), "=r"(part[2]), "=r"(part[3])              \
                     : "r"((u32)__cvta_generic_to_shared(row))                                 \
                     : "memory");                                                              \
    }
GPU_LOAD_TILES(load_tiles, "")
GPU_LOAD_TILES(load_tiles_turned, ".trans")
#endif

static __device__ __forceinline__ float fp32_of_bf16(u16 bits) {
    return __uint_as_float((u32)bits << 16);
}
