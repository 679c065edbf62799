// Matrix products by plain arithmetic: exact products of any formats, summed in fp32 in the order
// of the depth.
#include "gpu/kernels/product.h"

// A block has a tile of c, a thread eight rows by four columns of it, in two halves each, so that
// neighbours read neighbours from shared memory.
enum {
    TILE = 64,       // rows and columns
    TILE_DEPTH = 16, // of the factors in shared memory at a time
    PITCH = TILE + 4,
    HALF = TILE / 2,
    STAGE = TILE_DEPTH * PITCH, // one factor's part of shared memory, as [depth][outer]
    OWN_ROWS = 8,
    OWN_COLUMNS = 4
};
static_assert(TILE * PITCH <= 4 * STAGE, "the sums lie where the factors were");

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

static __device__ __forceinline__ void multiply(const float *left, const float *right, int row,
                                                int column, float sum[OWN_ROWS][OWN_COLUMNS]) {
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

static __device__ __forceinline__ void put_sums(const float sum[OWN_ROWS][OWN_COLUMNS], int row,
                                                int column, float *sums) {
#pragma unroll
    for (int i = 0; i < OWN_ROWS; i++)
        store_wide(sums + (row + i % 4 + i / 4 * HALF) * PITCH + column, bits_of_four(sum[i]));
}

// `conv_a` and `conv_b` are NULL where the factors lie as matrices.
static __device__ __forceinline__ void run(const ProductArguments &a, const ConvFactor *conv_a,
                                           const ConvFactor *conv_b) {
    SHARED(float, memory, 4 * STAGE);
    float *left = memory, *right = memory + 2 * STAGE;
    const ProductTile tile = product_tile(a, TILE, TILE);
    const ProductSource source_a = {a.a, conv_a, tile.a, a.rows, tile.depth_end};
    const ProductSource source_b = {a.b, conv_b, tile.b, a.columns, tile.depth_end};
    const Place place_a = place_of(a.a), place_b = place_of(a.b);
    const int row = (int)threadIdx.x / 16 * 4, column = (int)threadIdx.x % 16 * 4;
    float sum[OWN_ROWS][OWN_COLUMNS] = {}, next_a[EIGHT], next_b[EIGHT];
    int stage = 0;
    // The next tile of the factors is on its way while this one is multiplied.
    for (i64 depth = tile.depth - TILE_DEPTH; depth < tile.depth_end; depth += TILE_DEPTH) {
        const i64 next = depth + TILE_DEPTH;
        if (next < tile.depth_end) {
            product_load(source_a,
                         product_run(source_a, tile.row + place_a.outer, next + place_a.depth),
                         next_a);
            product_load(source_b,
                         product_run(source_b, tile.column + place_b.outer, next + place_b.depth),
                         next_b);
        }
        if (depth >= tile.depth)
            multiply(left + stage * STAGE, right + stage * STAGE, row, column, sum);
        if (next < tile.depth_end) {
            stage ^= 1;
            put(a.a, place_a, next_a, left + stage * STAGE);
            put(a.b, place_b, next_b, right + stage * STAGE);
        }
        __syncthreads();
    }
    put_sums(sum, row, column, memory);
    __syncthreads();
    product_write(a, tile, memory, PITCH, 0, TILE, TILE);
}

GPU_DEFINE(product) {
    run(a, nullptr, nullptr);
}
GPU_DEFINE(product_conv) {
    run(a.product, a.a.kind == FACTOR_PLAIN ? nullptr : &a.a,
        a.b.kind == FACTOR_PLAIN ? nullptr : &a.b);
}

// The parts of the sums, one behind the other, and what follows a sum.
GPU_DEFINE(product_join) {
    const i64 size = a.rows * a.columns,
              matrices = a.batch[0] * a.batch[1] * a.batch[2] * a.batch[3];
    const i64 index = (i64)blockIdx.x * GPU_THREADS_product_join + threadIdx.x;
    if (index >= size * matrices)
        return;
    i64 matrix = index / size, at = 0;
    const i64 bias = matrix % a.batch[PRODUCT_BATCHES - 1] * a.bias_step;
    const i64 within = index % size, row = within / a.columns, column = within % a.columns;
    const float *from = a.partial + matrix * a.parts * size + within;
    float sum = 0;
    for (u32 i = 0; i < a.parts; i++)
        sum += from[i * size];
#pragma unroll
    for (int i = PRODUCT_BATCHES - 1; i >= 0; i--) {
        at += matrix % a.batch[i] * a.c.batch[i];
        matrix /= a.batch[i];
    }
    at += row * a.c.row + column;
    store_one(Operand{a.c.data, a.c.format, OPERAND_STRIDED, {}}, at,
              product_result(a, sum, at, bias + column));
}
