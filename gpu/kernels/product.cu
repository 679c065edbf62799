// Matrix products by plain arithmetic: exact products of any formats, summed in fp32 in the order
// of the depth.
#include "gpu/kernels/block.h"
#include "gpu/kernels/plain.h"

static_assert(TILE * PITCH <= 4 * STAGE, "the sums lie where the factors were");

// `conv_a` and `conv_b` are NULL where the factors lie as matrices.
static __device__ __forceinline__ void run(const ProductArguments &a, const ConvFactor *conv_a,
                                           const ConvFactor *conv_b) {
    SHARED(float, memory, 4 * STAGE);
    float *left = memory, *right = memory + 2 * STAGE;
    const ProductTile tile = product_tile(a, TILE, TILE);
    const ProductSource source_a = {a.a, conv_a, tile.a, a.rows, tile.depth_end};
    const ProductSource source_b = {a.b, conv_b, tile.b, a.columns, tile.depth_end};
    const Place place_a = place_of(a.a), place_b = place_of(a.b);
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
            multiply(left + stage * STAGE, right + stage * STAGE, sum);
        if (next < tile.depth_end) {
            stage ^= 1;
            put(a.a, place_a, next_a, left + stage * STAGE);
            put(a.b, place_b, next_b, right + stage * STAGE);
        }
        __syncthreads();
    }
    put_sums(sum, memory);
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
              product_result(a, sum, bias + column));
}
