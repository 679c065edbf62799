// Convolution where it is no product: groups of few channels, gradients of single channels, and
// what a product gets wrong.
#include "gpu/kernels/block.h"
#include "gpu/kernels/product.h"

enum { THREADS = 256 };

// One result, of a matrix of the array (a group).
struct Result {
    i64 row, column, matrix;
};

static __device__ __forceinline__ float conv_element(const Operand &factor, i64 at) {
    return product_rounded(factor.format, product_element(factor.data, factor.format, at));
}

static __device__ __forceinline__ float factor_element(const ProductFactor &factor, i64 matrix,
                                                       i64 at) {
    return conv_element(Operand{(void *)factor.data, factor.format, OPERAND_STRIDED, {}},
                        matrix * factor.batch[PRODUCT_BATCHES - 1] + at);
}

static __device__ __forceinline__ void store_result(const ProductArguments &a, Result result,
                                                    float sum) {
    const i64 at =
        result.matrix * a.c.batch[PRODUCT_BATCHES - 1] + result.row * a.c.row + result.column;
    const i64 bias = result.matrix * a.bias_step + result.column;
    store_one(Operand{a.c.data, a.c.format, OPERAND_STRIDED, {}}, at, product_result(a, sum, bias));
}

// ---- narrow groups ------------------------------------------------------------------------------

// The sum of a window, whose factor `a` has its pixels in the outer dimension.
static __device__ __forceinline__ float window_sum(const ConvArguments &a, Result result) {
    const ProductArguments &product = a.product;
    const ConvPixel pixel = conv_pixel(a.a, (u32)result.row);
    const i32 channels = (i32)a.a.channels.by, kernel_columns = (i32)a.a.kernel_columns.by;
    const i32 taps = (i32)(product.depth / channels);
    // Of a filter as it lies, and of one turned round.
    const bool turned = a.b.kind == FACTOR_FILTERS_BACK;
    const i64 tap_step = turned ? a.b.column : channels, channel_step = turned ? a.b.image : 1;
    i64 filter = result.column * (turned ? 1 : product.b.outer);
    float sum = 0;
    for (i32 tap = 0, tap_row = 0, tap_column = 0; tap < taps; tap++, filter += tap_step) {
        const i32 row = conv_tap(a.a, 0, pixel.at[0], tap_row);
        const i32 column = conv_tap(a.a, 1, pixel.at[1], tap_column);
        if (++tap_column == kernel_columns) {
            tap_column = 0;
            tap_row++;
        }
        if (row < 0 || column < 0)
            continue;
        const i64 at = pixel.image * a.a.image + row * a.a.row + column * a.a.column;
        for (i32 channel = 0; channel < channels; channel++)
            sum = fmaf(factor_element(product.a, result.matrix, at + channel),
                       factor_element(product.b, result.matrix, filter + channel * channel_step),
                       sum);
    }
    return sum;
}

// A thread has one result; neighbours have neighbouring channels.
GPU_DEFINE(conv_direct) {
    const ProductArguments &product = a.product;
    const i64 matrices = product.batch[PRODUCT_BATCHES - 1], all = matrices * product.columns;
    const i64 index = (i64)blockIdx.x * THREADS + threadIdx.x;
    if (index >= product.rows * all)
        return;
    const i64 channel = index % all;
    const Result result = {index / all, channel % product.columns, channel / product.columns};
    store_result(product, result, window_sum(a, result));
}

// ---- where windows meet the padding -------------------------------------------------------------

static __device__ __forceinline__ i64 place(const ProductFactor &factor, const ConvFactor &conv,
                                            i64 outer, i64 depth) {
    if (conv.kind == FACTOR_PLAIN)
        return outer * factor.outer + depth * factor.depth;
    return conv_place(conv, factor.along_depth, (u32)outer, (u32)depth);
}

// A product multiplies what lies in the padding as zeros. Where that gave NaN, since the other
// factor was not finite, the sum is made anew of what is there. The lanes of a warp do it together,
// and give it up once a lane's own sum is NaN: so will be that of all, and NaN is stored already.
// Of gradients that are NaN throughout, as where a step is skipped, nearly all results end there.
static __device__ __forceinline__ void repair_result(const ConvArguments &a, Result result) {
    enum { BETWEEN = 4 * WARP }; // of the depth, from one vote to the next
    const ProductArguments &product = a.product;
    const int lane = (int)threadIdx.x % WARP;
    float sum = 0;
    for (i64 begin = 0; begin < product.depth; begin += BETWEEN) {
        const i64 end = min(begin + BETWEEN, product.depth);
        for (i64 depth = begin + lane; depth < end; depth += WARP) {
            const i64 at_a = place(product.a, a.a, result.row, depth);
            const i64 at_b = place(product.b, a.b, result.column, depth);
            if (at_a >= 0 && at_b >= 0)
                sum = fmaf(factor_element(product.a, result.matrix, at_a),
                           factor_element(product.b, result.matrix, at_b), sum);
        }
        if (__any_sync(~0u, !(sum == sum)))
            return;
    }
    sum = warp_sum(sum);
    __syncwarp(); // another lane has read what is written now
    if (lane == 0)
        store_result(product, result, sum);
}

// Results that lie a warp apart, of which those before `left` are there. All are asked for before
// one is looked at: a conversion between two of them would wait for the first.
template <int count>
static __device__ __forceinline__ void load_results(const Operand &from, i64 at, i64 left,
                                                    float (&value)[count]) {
    if (from.format == FORMAT_FP32) {
#pragma unroll
        for (int i = 0; i < count; i++)
            value[i] = i * WARP < left ? ((const float *)from.data)[at + i * WARP] : 0;
        return;
    }
    u16 bits[count];
#pragma unroll
    for (int i = 0; i < count; i++)
        bits[i] = i * WARP < left ? ((const u16 *)from.data)[at + i * WARP] : (u16)0;
#pragma unroll
    for (int i = 0; i < count; i++)
        value[i] = from.format == FORMAT_BF16 ? fp32_of_bf16(bits[i]) : fp32_of_fp16(bits[i]);
}

// Of a row the columns that belong to the block.
static __device__ __forceinline__ void repair_row(const ConvArguments &a, i64 matrix, i64 row) {
    enum { AHEAD = REPAIR_COLUMNS / WARP }; // numbers that a lane has on their way
    const ProductArguments &product = a.product;
    const int lane = (int)threadIdx.x % WARP;
    const Operand results = {product.c.data, product.c.format, OPERAND_STRIDED, {}};
    const i64 first = matrix * product.c.batch[PRODUCT_BATCHES - 1] + row * product.c.row + lane;
    for (i64 columns = (i64)blockIdx.y * REPAIR_COLUMNS; columns < product.columns;
         columns += (i64)gridDim.y * REPAIR_COLUMNS) {
        float value[AHEAD];
        load_results(results, first + columns, product.columns - columns - lane, value);
        __syncwarp(); // all have read what one of them may write
#pragma unroll
        for (int i = 0; i < AHEAD; i++) {
            const u32 spoiled = __ballot_sync(~0u, !(value[i] == value[i]));
            for (u32 left = spoiled; left; left &= left - 1)
                repair_result(a, {row, columns + i * WARP + __ffs((int)left) - 1, matrix});
        }
    }
}

// A warp has a row or a few of results, as far apart as there are warps, one a lane at most: it
// looks at those whose windows meet the padding.
GPU_DEFINE_LARGE(conv_repair) {
    enum { WARPS = THREADS / WARP };
    const ProductArguments &product = a.product;
    const i64 warps = (i64)gridDim.x * WARPS;
    const i64 first = (i64)blockIdx.x * WARPS + threadIdx.x / WARP;
    const i64 mine = first + threadIdx.x % WARP * warps, row = mine % product.rows;
    const bool is_there = mine < product.rows * product.batch[PRODUCT_BATCHES - 1];
    const bool touches =
        is_there && (a.a.kind == FACTOR_PLAIN || conv_touches(a.a, conv_pixel(a.a, (u32)row)));
    for (u32 left = __ballot_sync(~0u, touches); left; left &= left - 1) {
        const i64 index = first + (__ffs((int)left) - 1) * warps;
        repair_row(a, index / product.rows, index % product.rows);
    }
}

// ---- sums over pixels ---------------------------------------------------------------------------

// A block has 32 filters, one tap and one part of the pixels; its warps take the pixels in turn.
GPU_DEFINE(conv_columns) {
    enum { WARPS = THREADS / WARP };
    SHARED(float, sums, THREADS);
    const int lane = (int)threadIdx.x % WARP, warp = (int)threadIdx.x / WARP;
    const u32 across = (u32)((a.filters + WARP - 1) / WARP); // blocks of one tap
    const u32 tap = blockIdx.x / across, part = blockIdx.y;
    const i64 filter = (i64)(blockIdx.x % across) * WARP + lane;
    const i64 begin = part * a.part, end = min(begin + a.part, a.pixels);
    const i32 kernel_columns = a.image.data ? (i32)a.windows.kernel_columns.by : 1;
    const i32 tap_row = (i32)tap / kernel_columns;
    const i32 tap_column = (i32)tap % kernel_columns;
    const i64 channel = filter / max(a.filters / max(a.channels, (i64)1), (i64)1);
    float sum = 0;
    for (i64 pixel = begin + warp; pixel < end && filter < a.filters; pixel += WARPS) {
        const float gradient = conv_element(a.gradient, pixel * a.filters + filter);
        if (!a.image.data) {
            sum += gradient;
            continue;
        }
        const ConvPixel at = conv_pixel(a.windows, (u32)pixel);
        const i32 row = conv_tap(a.windows, 0, at.at[0], tap_row);
        const i32 column = conv_tap(a.windows, 1, at.at[1], tap_column);
        if (row >= 0 && column >= 0)
            sum = fmaf(gradient,
                       conv_element(a.image, at.image * a.windows.image + row * a.windows.row +
                                                 column * a.windows.column + channel),
                       sum);
    }
    sums[threadIdx.x] = sum;
    __syncthreads();
    if (warp != 0 || filter >= a.filters)
        return;
    for (int i = 1; i < WARPS; i++)
        sum += sums[i * WARP + lane];
    a.sums[(part * a.filters + filter) * a.taps + tap] = sum;
}
