// Matrix products of two factors of 16 bits by the card's units for tiles, summed in fp32.
#include "gpu/kernels/product.h"
#include "gpu/kernels/tiles.h"

// A block has a tile of c, a warp a part of it: four by four tiles of 16 x 8.
enum {
    THREADS = 256,
    TILE = 128,      // rows and columns
    TILE_DEPTH = 32, // of the factors in shared memory at a time
    // A factor lies there as in memory, [outer][depth] or [depth][outer], in rows of a pitch by
    // which eight of them begin in different banks.
    PITCH_ALONG = TILE_DEPTH + 8,
    PITCH_ACROSS = TILE + 8,
    STAGE = TILE * PITCH_ALONG, // the larger of both
    WARP_ROWS = 64,
    WARP_COLUMNS = 32,
    PITCH_SUMS = TILE + 4,
    BROUGHT = TILE * TILE_DEPTH / EIGHT / THREADS // times eight elements, of a factor by a thread
};
static_assert(STAGE >= TILE_DEPTH * PITCH_ACROSS, "both orders fit");
static_assert(4 * STAGE * sizeof(u16) >= WARP_ROWS * PITCH_SUMS * sizeof(float),
              "half of the sums lie where the factors were");

// Where a factor's tile lies in shared memory, and what part of it this thread has.
struct Stage {
    u16 *memory;      // of two
    int outer, depth; // strides
    int lane;         // of what the lane loads as fragments
};

// Of sixteen by sixteen as four tiles of [outer][depth], the second lies eight further in the outer
// dimension, the third in depth (of a), or the other way round (of b).
static __device__ __forceinline__ Stage stage_of(const ProductFactor &factor, u16 *memory,
                                                 bool outer_first) {
    const int lane = (int)threadIdx.x % 32, within = lane % 8;
    const int second = lane / 8 % 2 * 8, third = lane / 16 * 8;
    const int o = (outer_first ? second : third) + (factor.along_depth ? within : 0);
    const int d = (outer_first ? third : second) + (factor.along_depth ? 0 : within);
    const int outer = factor.along_depth ? PITCH_ALONG : 1;
    const int depth = factor.along_depth ? 1 : PITCH_ACROSS;
    return Stage{memory, outer, depth, o * outer + d * depth};
}

// Which eight elements of a factor's tile a thread brings, the i-th time.
struct Place {
    int outer, depth;
};
static __device__ __forceinline__ Place place_of(const ProductFactor &factor, int i) {
    const int index = (int)threadIdx.x + i * THREADS;
    if (factor.along_depth)
        return Place{index / (TILE_DEPTH / EIGHT), index % (TILE_DEPTH / EIGHT) * EIGHT};
    return Place{index % (TILE / EIGHT) * EIGHT, index / (TILE / EIGHT)};
}

static __device__ __forceinline__ void bring(const ProductSource &source, i64 outer, i64 depth,
                                             uint4 *bits) {
#pragma unroll
    for (int i = 0; i < BROUGHT; i++) {
        const Place place = place_of(source.factor, i);
        bits[i] = product_load_bits(source,
                                    product_run(source, outer + place.outer, depth + place.depth));
    }
}

static __device__ __forceinline__ void put(const ProductFactor &factor, const Stage &stage,
                                           int which, const uint4 *bits) {
#pragma unroll
    for (int i = 0; i < BROUGHT; i++) {
        const Place place = place_of(factor, i);
        store_wide(stage.memory + which * STAGE + place.outer * stage.outer +
                       place.depth * stage.depth,
                   bits[i]);
    }
}

template <int count>
static __device__ __forceinline__ void fragments(const ProductFactor &factor, const Stage &stage,
                                                 int which, int outer, int depth,
                                                 u32 part[count][4]) {
    const u16 *from =
        stage.memory + which * STAGE + stage.lane + outer * stage.outer + depth * stage.depth;
    if (factor.along_depth) {
#pragma unroll
        for (int i = 0; i < count; i++)
            load_tiles(from + 16 * i * PITCH_ALONG, part[i]);
    } else {
#pragma unroll
        for (int i = 0; i < count; i++)
            load_tiles_turned(from + 16 * i, part[i]);
    }
}

// The sums of the upper or the lower half of the tile's rows, by the warps that have them.
static __device__ __forceinline__ void put_sums(const float sum[4][4][4], int column, float *sums) {
    const int lane = (int)threadIdx.x % 32;
#pragma unroll
    for (int i = 0; i < 4; i++)
#pragma unroll
        for (int j = 0; j < 4; j++)
#pragma unroll
            for (int e = 0; e < 4; e++)
                sums[(16 * i + e / 2 * 8 + lane / 4) * PITCH_SUMS + column + 8 * j + lane % 4 * 2 +
                     e % 2] = sum[i][j][e];
}

// `conv_a` and `conv_b` are NULL where the factors lie as matrices.
template <class Number>
static __device__ __forceinline__ void run(const ProductArguments &a, const ConvFactor *conv_a,
                                           const ConvFactor *conv_b) {
    SHARED(u16, memory, 4 * STAGE);
    const ProductTile tile = product_tile(a, TILE, TILE);
    const ProductSource source_a = {a.a, conv_a, tile.a, a.rows, tile.depth_end};
    const ProductSource source_b = {a.b, conv_b, tile.b, a.columns, tile.depth_end};
    const Stage left = stage_of(a.a, memory, true);
    const Stage right = stage_of(a.b, memory + 2 * STAGE, false);
    const int warp = (int)threadIdx.x / 32, half = warp / 4;
    const int row = half * WARP_ROWS, column = warp % 4 * WARP_COLUMNS;
    float sum[4][4][4] = {};
    uint4 next_a[BROUGHT], next_b[BROUGHT];
    int which = 0;
    // The next tile of the factors is on its way while this one is multiplied.
    for (i64 depth = tile.depth - TILE_DEPTH; depth < tile.depth_end; depth += TILE_DEPTH) {
        const i64 next = depth + TILE_DEPTH;
        if (next < tile.depth_end) {
            bring(source_a, tile.row, next, next_a);
            bring(source_b, tile.column, next, next_b);
        }
#pragma unroll
        for (int k = 0; k < TILE_DEPTH && depth >= tile.depth; k += 16) {
            u32 x[4][4], y[2][4];
            fragments<4>(a.a, left, which, row, k, x);
            fragments<2>(a.b, right, which, column, k, y);
#pragma unroll
            for (int i = 0; i < 4; i++)
#pragma unroll
                for (int j = 0; j < 4; j++)
                    multiply_tiles(Number(), sum[i][j], x[i], y[j / 2] + j % 2 * 2);
        }
        if (next < tile.depth_end) {
            which ^= 1;
            put(a.a, left, which, next_a);
            put(a.b, right, which, next_b);
        }
        __syncthreads();
    }
    float *sums = (float *)memory;
#pragma unroll 1
    for (int i = 0; i < 2; i++) {
        if (half == i)
            put_sums(sum, column, sums);
        __syncthreads();
        product_write(a, tile, sums, PITCH_SUMS, i * WARP_ROWS, WARP_ROWS, TILE);
        __syncthreads();
    }
}

template <class Number> static __device__ __forceinline__ void run_conv(const ConvArguments &a) {
    run<Number>(a.product, a.a.kind == FACTOR_PLAIN ? nullptr : &a.a,
                a.b.kind == FACTOR_PLAIN ? nullptr : &a.b);
}

GPU_DEFINE(product_bf16) {
    run<NumberBf16>(a, nullptr, nullptr);
}
GPU_DEFINE(product_fp16) {
    run<NumberFp16>(a, nullptr, nullptr);
}
GPU_DEFINE(product_conv_bf16) {
    run_conv<NumberBf16>(a);
}
GPU_DEFINE(product_conv_fp16) {
    run_conv<NumberFp16>(a);
}
