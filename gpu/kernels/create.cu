// What is made of nothing, and dropout: each thread makes what two blocks of random words give.
#include "gpu/kernels/formats.h"
#include "kernel/random.h"

enum { BLOCK = 256 };

// The eight random words of elements `index` to `index` + 7; index is a multiple of 8.
static __device__ __forceinline__ void draw_words(const DrawArguments &a, i64 index, u32 *word) {
    const u64 first = random_begin(&a.random) + (u64)index / 4;
#pragma unroll
    for (int half = 0; half < 2; half++) {
        const RandomBlock block = random_block(a.random.seed, first + half);
#pragma unroll
        for (int i = 0; i < 4; i++)
            word[4 * half + i] = block.word[i];
    }
}

static __device__ __forceinline__ void store_drawn(const DrawArguments &a, i64 index,
                                                   const float *value) {
    if (a.wide && index + EIGHT <= a.count) {
        store_eight(a.output, index, value);
        return;
    }
#pragma unroll
    for (int i = 0; i < EIGHT; i++)
        if (index + i < a.count)
            store_any(a.output.format, a.output.data, index + i, value[i]);
}

static __device__ __forceinline__ i64 first_of_thread() {
    return ((i64)blockIdx.x * BLOCK + threadIdx.x) * EIGHT;
}

GPU_DEFINE(fill) {
    i64 at = (i64)blockIdx.x * BLOCK * EIGHT + threadIdx.x;
#pragma unroll 1
    for (int i = 0; i < EIGHT && at < a.count; i++, at += BLOCK)
        fill_piece(a.bytes, a.output, at, a.pattern);
}

GPU_DEFINE(arange) {
    i64 at = (i64)blockIdx.x * BLOCK * EIGHT + threadIdx.x;
#pragma unroll 1
    for (int i = 0; i < EIGHT && at < a.count; i++, at += BLOCK) {
        const double value = a.first + (double)at * a.step;
        if (a.output.format == FORMAT_INT32) // past 2^24 fp32 cannot count
            ((i32 *)a.output.data)[at] = (i32)rint(value);
        else
            store_any(a.output.format, a.output.data, at, (float)value);
    }
}

GPU_DEFINE(uniform) {
    const i64 index = first_of_thread();
    u32 word[EIGHT];
    float value[EIGHT];
    draw_words(a, index, word);
#pragma unroll
    for (int i = 0; i < EIGHT; i++)
        value[i] = random_uniform_in(word[i], a.a, a.b, a.last);
    store_drawn(a, index, value);
}

GPU_DEFINE(normal) {
    const i64 index = first_of_thread();
    u32 word[EIGHT];
    float value[EIGHT];
    draw_words(a, index, word);
#pragma unroll
    for (int i = 0; i < EIGHT; i += 2)
        random_normal(word + i, (float)a.a, (float)a.b, value + i);
    store_drawn(a, index, value);
}

GPU_DEFINE(randint) {
    const i64 index = first_of_thread(), low = (i64)a.a;
    u32 word[EIGHT];
    draw_words(a, index, word);
    i32 *out = (i32 *)a.output.data + index;
    u32 value[EIGHT];
#pragma unroll
    for (int i = 0; i < EIGHT; i++)
        value[i] = (u32)random_whole(word[i], low, (u64)a.b);
    if (a.wide && index + EIGHT <= a.count) {
        store_wide(out, uint4{value[0], value[1], value[2], value[3]});
        store_wide(out + 4, uint4{value[4], value[5], value[6], value[7]});
        return;
    }
#pragma unroll
    for (int i = 0; i < EIGHT; i++)
        if (index + i < a.count)
            out[i] = (i32)value[i];
}

GPU_DEFINE(dropout) {
    const i64 index = first_of_thread();
    u32 word[EIGHT];
    float x[EIGHT];
    draw_words(a, index, word);
    if (a.wide && index + EIGHT <= a.count) {
        load_eight(a.input, index, x);
    } else {
#pragma unroll
        for (int i = 0; i < EIGHT; i++)
            x[i] = index + i < a.count ? load_one(a.input, index + i) : 0;
    }
#pragma unroll
    for (int i = 0; i < EIGHT; i++)
        x[i] = random_drops(word[i], (float)a.a) ? 0 : x[i] * (float)a.b;
    store_drawn(a, index, x);
}
