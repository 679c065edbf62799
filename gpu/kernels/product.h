// gpu/kernels/product.h: what the kernels of matrix products share: where their blocks work, how
// factors are read, what becomes of a sum.
#pragma once

#include "gpu/kernels/conv.h"
#include "gpu/kernels/operands.h"
#include "number/inline.h"

// What one block computes: a tile of one matrix, over one part of the depth.
struct ProductTile {
    i64 row, column;      // the first
    i64 depth, depth_end; // of the part
    i64 matrix;
    u32 part;
    i64 a, b, c; // where the matrix begins in each
    i64 bias;
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
    tile.bias = index % (u32)a.batch[PRODUCT_BATCHES - 1] * a.bias_step;
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

static __device__ __forceinline__ u32 product_kept(u32 format) {
    return format == FORMAT_TF32 ? (u32)FORMAT_FP32 : format;
}

// As it is multiplied.
static __device__ __forceinline__ float product_rounded(u32 format, float value) {
    return format == FORMAT_TF32 ? number_fp32_through_tf32(value) : value;
}

static __device__ __forceinline__ float product_element(const void *data, u32 format, i64 at) {
    return load_float(Operand{(void *)data, product_kept(format), OPERAND_STRIDED, {}}, at);
}

// A factor in the eyes of one block: where its matrix begins, and how far it goes. `conv` is NULL
// where it lies as a matrix.
struct ProductSource {
    const ProductFactor &factor;
    const ConvFactor *conv;
    i64 first;
    i64 outer_end, depth_end;
};

// Eight neighbours of a factor from (outer, depth) on: those that are there are the first `count`.
struct ProductRun {
    i64 outer, depth;
    int count;
};

static __device__ __forceinline__ ProductRun product_run(const ProductSource &source, i64 outer,
                                                         i64 depth) {
    const i64 left = source.factor.along_depth
                         ? (outer < source.outer_end ? source.depth_end - depth : 0)
                         : (depth < source.depth_end ? source.outer_end - outer : 0);
    return ProductRun{outer, depth, (int)max(min(left, (i64)EIGHT), (i64)0)};
}

// Where the i-th of a run lies; less than 0: nowhere, and it is 0.
static __device__ __forceinline__ i64 product_place(const ProductSource &source,
                                                    const ProductRun &run, int i) {
    const i64 outer = run.outer + (source.factor.along_depth ? 0 : i);
    const i64 depth = run.depth + (source.factor.along_depth ? i : 0);
    if (!source.conv)
        return source.first + outer * source.factor.outer + depth * source.factor.depth;
    const i64 at = conv_place(*source.conv, source.factor.along_depth, (u32)outer, (u32)depth);
    return at < 0 ? at : source.first + at;
}

// As fp32, not yet rounded: that waits until they are there.
static __device__ __forceinline__ void product_load(const ProductSource &source,
                                                    const ProductRun &run, float *value) {
    const ProductFactor &factor = source.factor;
    const bool wide = factor.wide && run.count == EIGHT;
    const i64 first = product_place(source, run, 0); // also where it is not asked: fewer registers
    if (wide && first >= 0) {
        load_eight(Operand{(void *)factor.data, product_kept(factor.format), OPERAND_WIDE, {}},
                   first, value);
        return;
    }
#pragma unroll
    for (int i = 0; i < EIGHT; i++) {
        const i64 at = wide || i >= run.count ? -1 : product_place(source, run, i);
        value[i] = at < 0 ? 0 : product_element(factor.data, factor.format, at);
    }
}

// The patterns of a factor of 16 bits.
static __device__ __forceinline__ uint4 product_load_bits(const ProductSource &source,
                                                          const ProductRun &run) {
    const u16 *data = (const u16 *)source.factor.data;
    const bool wide = source.factor.wide && run.count == EIGHT;
    const i64 first = wide ? product_place(source, run, 0) : 0;
    if (wide && first >= 0)
        return load_wide(data + first);
    u16 part[EIGHT];
#pragma unroll
    for (int i = 0; i < EIGHT; i++) {
        const i64 at = wide || i >= run.count ? -1 : product_place(source, run, i);
        part[i] = at < 0 ? 0 : data[at];
    }
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

// Of a whole sum; `bias` is the number of its bias.
static __device__ __forceinline__ float product_result(const ProductArguments &a, float sum,
                                                       i64 bias) {
    if (a.bias)
        sum += product_element(a.bias, a.bias_format, bias);
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
                sum[i] = product_result(a, sum[i], tile.bias + column + i);
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
