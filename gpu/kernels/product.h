// gpu/kernels/product.h: what the kernels of matrix products share: where their blocks work, how
// factors are read, what becomes of a sum.
#pragma once

#include "gpu/kernels/operands.h"

// What one block computes: a tile of one matrix, over one part of the depth.
struct ProductTile {
    i64 row, column;      // the first
    i64 depth, depth_end; // of the part
    i64 matrix;
    u32 part;
    i64 a, b, c; // where the matrix begins in each
};

// Tiles of a matrix lie one behind the other, rows first, then its parts, then the next matrix.
static __device__ __forceinline__ ProductTile product_tile(const ProductArguments &a, int rows,
                                                           int columns) {
    const u32 down = (u32)((a.rows + rows - 1) / rows);
    const u32 across = (u32)((a.columns + columns - 1) / columns);
    u32 index = blockIdx.x;
    ProductTile tile;
    tile.row = (i64)(index % down) * rows;
    index /= down;
    tile.column = (i64)(index % across) * columns;
    index /= across;
    tile.part = index % a.parts;
    index /= a.parts;
    tile.matrix = index;
    tile.depth = tile.part * a.part;
    tile.depth_end = min(tile.depth + a.part, a.depth);
    tile.a = tile.b = tile.c = 0;
#pragma unroll
    for (int i = PRODUCT_BATCHES - 1; i >= 0; i--) {
        const i64 at = index % (u32)a.batch[i];
        index /= (u32)a.batch[i];
        tile.a += at * a.a.batch[i];
        tile.b += at * a.b.batch[i];
        tile.c += at * a.c.batch[i];
    }
    return tile;
}

// ---- factors ------------------------------------------------------------------------------------

// Eight neighbours of a factor: those that are there, the first of them.
struct ProductRun {
    i64 at, step;
    int count;
};

static __device__ __forceinline__ ProductRun product_run(const ProductFactor &factor, i64 first,
                                                         i64 outer, i64 outer_end, i64 depth,
                                                         i64 depth_end) {
    const bool along = factor.along_depth;
    const i64 left = along ? (outer < outer_end ? depth_end - depth : 0)
                           : (depth < depth_end ? outer_end - outer : 0);
    return ProductRun{first + outer * factor.outer + depth * factor.depth,
                      along ? factor.depth : factor.outer, (int)max(min(left, (i64)EIGHT), (i64)0)};
}

static __device__ __forceinline__ float product_element(const void *data, u32 format, i64 at) {
    return load_one(Operand{(void *)data, format, OPERAND_STRIDED, {}}, at);
}

// As fp32; what is not there is 0.
static __device__ __forceinline__ void product_load(const ProductFactor &factor, ProductRun run,
                                                    float *value) {
    if (factor.wide && run.count == EIGHT) {
        load_eight(Operand{(void *)factor.data, factor.format, OPERAND_WIDE, {}}, run.at, value);
        return;
    }
#pragma unroll
    for (int i = 0; i < EIGHT; i++)
        value[i] =
            i < run.count ? product_element(factor.data, factor.format, run.at + i * run.step) : 0;
}

// The patterns of a factor of 16 bits.
static __device__ __forceinline__ uint4 product_load_bits(const ProductFactor &factor,
                                                          ProductRun run) {
    const u16 *data = (const u16 *)factor.data;
    if (factor.wide && run.count == EIGHT)
        return load_wide(data + run.at);
    u16 part[EIGHT];
#pragma unroll
    for (int i = 0; i < EIGHT; i++)
        part[i] = i < run.count ? data[run.at + i * run.step] : 0;
    return join_wide(part);
}

// ---- sums ---------------------------------------------------------------------------------------

static __device__ __forceinline__ float product_activate(u32 activation, float x) {
    switch (activation) {
    case ACTIVATION_RELU: return x < 0 ? 0 : x;
    case ACTIVATION_TANH: return tanhf(x);
    case ACTIVATION_SIGMOID: return 1 / (1 + expf(-x));
    default: return x;
    }
}

// Of a whole sum, which belongs at `at` of c.
static __device__ __forceinline__ float product_result(const ProductArguments &a, float sum, i64 at,
                                                       i64 column) {
    if (a.accumulate)
        sum += product_element(a.c.data, a.c.format, at);
    if (a.bias)
        sum += product_element(a.bias, a.bias_format, column);
    return product_activate(a.activation, sum);
}

// Eight sums of a row, of which `count` are there, to c or to the partial sums.
static __device__ __forceinline__ void product_store(const ProductArguments &a,
                                                     const ProductTile &tile, i64 row, i64 column,
                                                     int count, float *sum) {
    const bool whole = a.parts == 1;
    const Operand to = {
        whole ? a.c.data : a.partial, whole ? a.c.format : (u32)FORMAT_FP32, OPERAND_STRIDED, {}};
    const i64 matrix = (tile.matrix * a.parts + tile.part) * a.rows * a.columns;
    const i64 at = whole ? tile.c + row * a.c.row + column : matrix + row * a.columns + column;
    if (whole)
#pragma unroll
        for (int i = 0; i < EIGHT; i++)
            if (i < count)
                sum[i] = product_result(a, sum[i], at + i, column + i);
    if (count == EIGHT && (whole ? a.c.wide : a.columns % 4 == 0)) {
        store_eight(to, at, sum);
        return;
    }
#pragma unroll
    for (int i = 0; i < EIGHT; i++)
        if (i < count)
            store_one(to, at + i, sum[i]);
}

// Sums that lie in shared memory: of `rows` by `columns` of the tile, from its row `first` on.
static __device__ __forceinline__ void product_write(const ProductArguments &a,
                                                     const ProductTile &tile, const float *sums,
                                                     int pitch, int first, int rows, int columns) {
    const int runs = columns / EIGHT;
#pragma unroll 1
    for (int i = (int)threadIdx.x; i < rows * runs; i += (int)blockDim.x) {
        const float *from = sums + i / runs * pitch + i % runs * EIGHT;
        const i64 row = tile.row + first + i / runs, column = tile.column + i % runs * EIGHT;
        if (row >= a.rows || column >= a.columns)
            continue;
        float sum[EIGHT];
        four_of_bits(load_wide(from), sum);
        four_of_bits(load_wide(from + 4), sum + 4);
        product_store(a, tile, row, column, (int)min(a.columns - column, (i64)EIGHT), sum);
    }
}
