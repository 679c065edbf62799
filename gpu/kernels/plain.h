// gpu/kernels/plain.h: tiles of a product by plain arithmetic: what lies in shared memory, and what
// a thread of a block has of it.
#pragma once

#include "gpu/kernels/product.h"

// A block has a tile, each of its 128 threads eight rows by four columns of it. The rows come in
// two halves, so that neighbours read neighbours from shared memory.
enum {
    PLAIN_THREADS = 128,
    TILE = 64,       // rows and columns
    TILE_DEPTH = 16, // of the factors in shared memory at a time
    PITCH = TILE + 4,
    HALF = TILE / 2,
    STAGE = TILE_DEPTH * PITCH, // one factor's part of shared memory, as [depth][outer]
    OWN_ROWS = 8,
    OWN_COLUMNS = 4
};

// Which eight of a factor's tile a thread brings.
struct Place {
    int outer, depth;
};
static __device__ __forceinline__ Place place_of(const ProductFactor &factor) {
    const int thread = (int)threadIdx.x;
    if (factor.along_depth)
        return Place{thread % TILE, thread / TILE * EIGHT};
    return Place{thread % (TILE / EIGHT) * EIGHT, thread / (TILE / EIGHT)};
}

static __device__ __forceinline__ void put(const ProductFactor &factor, Place place,
                                           const float *value, float *stage) {
    float *to = stage + place.depth * PITCH + place.outer;
    if (factor.along_depth) {
#pragma unroll
        for (int i = 0; i < EIGHT; i++)
            to[i * PITCH] = value[i];
    } else {
        store_wide(to, bits_of_four(value));
        store_wide(to + 4, bits_of_four(value + 4));
    }
}

// The first of the rows and columns that a thread has.
static __device__ __forceinline__ int own_row(void) {
    return (int)threadIdx.x / 16 * 4;
}
static __device__ __forceinline__ int own_column(void) {
    return (int)threadIdx.x % 16 * 4;
}
// The i-th of its rows.
static __device__ __forceinline__ int row_of(int i) {
    return own_row() + i % 4 + i / 4 * HALF;
}

static __device__ __forceinline__ void multiply(const float *left, const float *right,
                                                float sum[OWN_ROWS][OWN_COLUMNS]) {
    const int row = own_row(), column = own_column();
#pragma unroll
    for (int k = 0; k < TILE_DEPTH; k++) {
        float x[OWN_ROWS], y[OWN_COLUMNS];
        four_of_bits(load_wide(left + k * PITCH + row), x);
        four_of_bits(load_wide(left + k * PITCH + HALF + row), x + 4);
        four_of_bits(load_wide(right + k * PITCH + column), y);
#pragma unroll
        for (int i = 0; i < OWN_ROWS; i++)
#pragma unroll
            for (int j = 0; j < OWN_COLUMNS; j++)
                sum[i][j] = fmaf(x[i], y[j], sum[i][j]);
    }
}

// The sums as they are, [row][column], by PITCH.
static __device__ __forceinline__ void put_sums(const float sum[OWN_ROWS][OWN_COLUMNS],
                                                float *sums) {
#pragma unroll
    for (int i = 0; i < OWN_ROWS; i++)
        store_wide(sums + row_of(i) * PITCH + own_column(), bits_of_four(sum[i]));
}
