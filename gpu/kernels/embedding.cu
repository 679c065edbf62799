// Rows by index, and the gradient of the rows: of each the sum of what came back for it, taken in
// the order of the index.
#include "gpu/kernels/formats.h"
#include "gpu/kernels/values.h"

enum {
    BLOCK = 256, // threads, and steps between what one of them moves
    LONG = 512,  // threads for a row that the index names often
    LONGS = LONG / 32,
    COLUMNS = WARP * EIGHT // most that a warp adds up at a time
};

GPU_DEFINE(embedding) {
    i64 at = (i64)blockIdx.x * BLOCK * EIGHT + threadIdx.x;
#pragma unroll 1
    for (int i = 0; i < EIGHT && at < a.count; i++, at += BLOCK) {
        const i64 position = a.count <= 0xFFFFFFFF ? (u32)at / (u32)a.depth : at / a.depth;
        const i32 row = a.index[position];
        if (value_holds(a.values, position, row))
            move_piece(a.moving, a.output, at, a.weight, row * a.depth + at - position * a.depth);
    }
}

// Adds up columns `column` to `column` + 7 of the gradients at sorted entries `at` to `end` - 1.
static __device__ __forceinline__ void sum_eight(const EmbeddingSumArguments &a, u32 at, u32 end,
                                                 i64 column, float *sum) {
#pragma unroll
    for (int i = 0; i < EIGHT; i++)
        sum[i] = 0;
#pragma unroll 4
    for (; at < end; at++) {
        float x[EIGHT];
        load_eight(a.input, (i64)a.position[at] * a.depth + column, x);
#pragma unroll
        for (int i = 0; i < EIGHT; i++)
            sum[i] += x[i];
    }
}

// The same of one column.
static __device__ __forceinline__ float sum_one(const EmbeddingSumArguments &a, u32 at, u32 end,
                                                i64 column) {
    float sum = 0;
#pragma unroll 4
    for (; at < end; at++)
        sum += load_one(a.input, (i64)a.position[at] * a.depth + column);
    return sum;
}

// A warp for each row, but for those that another kernel shares out.
GPU_DEFINE(embedding_rows) {
    const u32 lane = threadIdx.x % 32;
    const i64 row = (i64)blockIdx.x * (BLOCK / 32) + threadIdx.x / 32;
    if (row >= a.rows)
        return;
    const SortBounds bounds = a.bounds[row];
    if (bounds.end - bounds.first >= EMBEDDING_OFTEN)
        return;
    if (!a.wide) {
        for (i64 column = lane; column < a.depth; column += 32)
            store_one(a.output, row * a.depth + column,
                      sum_one(a, bounds.first, bounds.end, column));
        return;
    }
    for (i64 column = lane * EIGHT; column < a.depth; column += COLUMNS) {
        float sum[EIGHT];
        sum_eight(a, bounds.first, bounds.end, column, sum);
        store_eight(a.output, row * a.depth + column, sum);
    }
}

// A row that the index names often has an entry at a multiple of EMBEDDING_OFTEN: the block of the
// first of these sees to it, some columns a block. Each warp adds up its share of the entries.
GPU_DEFINE(embedding_often) {
    SHARED(float, share, LONGS *COLUMNS);
    const u32 lane = threadIdx.x % 32, warp = threadIdx.x / 32,
              entry = blockIdx.x * EMBEDDING_OFTEN;
    const u32 row = a.key[entry];
    if (row >= a.rows) // of no row
        return;
    const SortBounds bounds = a.bounds[row];
    const u32 count = bounds.end - bounds.first;
    if (count < EMBEDDING_OFTEN || entry - bounds.first >= EMBEDDING_OFTEN)
        return;
    const u32 each = (count + LONGS - 1) / LONGS;
    const u32 begin = min(bounds.first + warp * each, bounds.end);
    const u32 end = min(begin + each, bounds.end);
    const u32 columns = a.wide ? COLUMNS : 32;
    const i64 first = (i64)blockIdx.y * columns;
    if (a.wide && first + lane * EIGHT < a.depth) {
        float sum[EIGHT];
        sum_eight(a, begin, end, first + lane * EIGHT, sum);
#pragma unroll
        for (int i = 0; i < EIGHT; i++)
            share[warp * COLUMNS + lane * EIGHT + i] = sum[i];
    } else if (!a.wide && first + lane < a.depth) {
        share[warp * COLUMNS + lane] = sum_one(a, begin, end, first + lane);
    }
    __syncthreads();
    if (threadIdx.x >= columns || first + threadIdx.x >= a.depth)
        return;
    float sum = share[threadIdx.x];
#pragma unroll
    for (int i = 1; i < LONGS; i++)
        sum += share[i * COLUMNS + threadIdx.x];
    store_one(a.output, row * a.depth + first + threadIdx.x, sum);
}
