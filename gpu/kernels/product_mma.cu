// Matrix products by the card's units for tiles, summed in fp32: of two factors of 16 bits, or of
// any in TF32.
#include "gpu/kernels/fragments.h"

// A block has a tile of c, a warp a part of it: four by four tiles of 16 x 8.
enum {
    THREADS = 256,
    TILE = 128, // rows and columns
    WARP_ROWS = 64,
    WARP_COLUMNS = 32,
    PITCH_SUMS = TILE + 4
};

// Of the factors in shared memory at a time.
template <class Number> struct Staged {
    enum {
        EACH = 16 / sizeof(typename Number::Stored), // of 16 bytes
        DEPTH = 4 * EACH,
        PITCH_ALONG = DEPTH + EACH,
        PITCH_ACROSS = TILE + 8,
        SIZE = TILE * PITCH_ALONG,               // the larger of both
        BROUGHT = TILE * DEPTH / EIGHT / THREADS // times eight elements, of a factor by a thread
    };
    static_assert(SIZE >= DEPTH * PITCH_ACROSS, "both orders fit");
    static_assert(4 * SIZE * sizeof(typename Number::Stored) >=
                      WARP_ROWS * PITCH_SUMS * sizeof(float),
                  "half of the sums lie where the factors were");
};

// Which eight elements of a factor's tile a thread brings, the i-th time.
struct Place {
    int outer, depth;
};
template <class Number>
static __device__ __forceinline__ Place place_of(const ProductFactor &factor, int i) {
    const int index = (int)threadIdx.x + i * THREADS, across = Staged<Number>::DEPTH / EIGHT;
    if (factor.along_depth)
        return Place{index / across, index % across * EIGHT};
    return Place{index % (TILE / EIGHT) * EIGHT, index / (TILE / EIGHT)};
}

template <class Number>
using FactorStage = Stage<Number, Staged<Number>::PITCH_ALONG, Staged<Number>::PITCH_ACROSS>;

template <class Number>
static __device__ __forceinline__ void bring(const ProductSource &source, i64 outer, i64 depth,
                                             Eight<Number> *eight) {
#pragma unroll
    for (int i = 0; i < Staged<Number>::BROUGHT; i++) {
        const Place place = place_of<Number>(source.factor, i);
        eight[i] = bring_eight<Number>(source, outer + place.outer, depth + place.depth);
    }
}

template <class Number>
static __device__ __forceinline__ void put(const ProductFactor &factor,
                                           const FactorStage<Number> &stage, int which,
                                           const Eight<Number> *eight) {
#pragma unroll
    for (int i = 0; i < Staged<Number>::BROUGHT; i++) {
        const Place place = place_of<Number>(factor, i);
        put_eight(eight[i], stage.memory + which * Staged<Number>::SIZE +
                                place.outer * stage.outer + place.depth * stage.depth);
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
    enum {
        AT_ONCE = Number::AT_ONCE,
        SIZE = Staged<Number>::SIZE,
        DEPTH = Staged<Number>::DEPTH,
        ALONG = Staged<Number>::PITCH_ALONG,
        ACROSS = Staged<Number>::PITCH_ACROSS
    };
    SHARED(typename Number::Stored, memory, 4 * SIZE);
    const ProductTile tile = product_tile(a, TILE, TILE);
    const ProductSource source_a = {a.a, conv_a, tile.a, a.rows, tile.depth_end};
    const ProductSource source_b = {a.b, conv_b, tile.b, a.columns, tile.depth_end};
    const FactorStage<Number> left =
        stage_of<Number, ALONG, ACROSS, SIDE_LEFT>(a.a.along_depth, memory);
    const FactorStage<Number> right =
        stage_of<Number, ALONG, ACROSS, SIDE_RIGHT>(a.b.along_depth, memory + 2 * SIZE);
    const int warp = (int)threadIdx.x / 32, half = warp / 4;
    const int row = half * WARP_ROWS, column = warp % 4 * WARP_COLUMNS;
    float sum[4][4][4] = {};
    int which = 0;
    Eight<Number> next_a[Staged<Number>::BROUGHT], next_b[Staged<Number>::BROUGHT];
    // The next tile of the factors is on its way while this one is multiplied.
    for (i64 depth = tile.depth - DEPTH; depth < tile.depth_end; depth += DEPTH) {
        const i64 next = depth + DEPTH;
        if (next < tile.depth_end) {
            bring(source_a, tile.row, next, next_a);
            bring(source_b, tile.column, next, next_b);
        }
#pragma unroll
        for (int k = 0; k < DEPTH && depth >= tile.depth; k += AT_ONCE) {
            u32 x[4][4], y[2][4];
            fragments<4, SIDE_LEFT>(a.a.along_depth, left, which * SIZE, row, k, x);
            fragments<2, SIDE_RIGHT>(a.b.along_depth, right, which * SIZE, column, k, y);
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
GPU_DEFINE(product_tf32) {
    run<NumberTf32>(a, nullptr, nullptr);
}
GPU_DEFINE(product_conv_bf16) {
    run_conv<NumberBf16>(a);
}
GPU_DEFINE(product_conv_fp16) {
    run_conv<NumberFp16>(a);
}
GPU_DEFINE_LARGE(product_conv_tf32) {
    run_conv<NumberTf32>(a);
}
