// Pooling, channels-last: a thread has eight channels of one pixel, or one where they do not lie
// wide.
//
// Gradients are gathered, not scattered: each pixel of the input looks at the windows that cover
// it, in order, so that it is written once and rounded once.
#include "gpu/kernels/operands.h"

enum { BLOCK = 256 };

// A pixel of a thread's own, and where its channels begin.
struct Pixel {
    i64 sample, channel;
    int row, column;
};

// Of an image that has `rows` and `columns`.
static __device__ __forceinline__ Pixel pixel_of_thread(const PoolArguments &a, u32 rows,
                                                        u32 columns) {
    const u32 width = a.wide ? EIGHT : 1, groups = (u32)a.channels / width;
    u32 rest = blockIdx.x * BLOCK + threadIdx.x;
    Pixel pixel;
    pixel.channel = rest % groups * width;
    rest /= groups;
    pixel.column = (int)(rest % columns);
    rest /= columns;
    pixel.row = (int)(rest % rows);
    pixel.sample = rest / rows;
    return pixel;
}

// Where an image of this size has a pixel's channels.
static __device__ __forceinline__ i64 channels_at(const PoolArguments &a, const Pixel &pixel,
                                                  int rows, int columns, int row, int column) {
    return ((pixel.sample * rows + row) * columns + column) * a.channels + pixel.channel;
}

template <int width>
static __device__ __forceinline__ void load_channels(const Operand &from, i64 at, float *value) {
    if (width == EIGHT)
        load_eight(from, at, value);
    else
        value[0] = load_one(from, at);
}

template <int width>
static __device__ __forceinline__ void store_channels(const Operand &to, i64 at,
                                                      const float *value) {
    if (width == EIGHT)
        store_eight(to, at, value);
    else
        store_one(to, at, value[0]);
}

template <int width> static __device__ __forceinline__ void load_where(const u8 *from, u32 *where) {
    const u64 eight = width == EIGHT ? *(const u64 *)from : *from;
#pragma unroll
    for (int i = 0; i < width; i++)
        where[i] = (u32)(eight >> 8 * i) & 0xFF;
}

template <int width> static __device__ __forceinline__ void store_where(u8 *to, const u32 *where) {
    u64 eight = 0;
#pragma unroll
    for (int i = 0; i < width; i++)
        eight |= (u64)where[i] << 8 * i;
    if (width == EIGHT)
        *(u64 *)to = eight;
    else
        *to = (u8)eight;
}

// ---- forward ------------------------------------------------------------------------------------

template <int width, bool largest>
static __device__ __forceinline__ void pool(const PoolArguments &a, const Pixel &pixel) {
    const int top = pixel.row * a.stride[0] - a.padding[0];
    const int left = pixel.column * a.stride[1] - a.padding[1];
    const int bottom = min(a.kernel[0], a.height - top), right = min(a.kernel[1], a.width - left);
    const int above = max(0, -top), before = max(0, -left);
    const bool empty = above >= bottom || before >= right; // nothing but padding
    float result[width], x[width];
    u32 where[width];
#pragma unroll
    for (int i = 0; i < width; i++) {
        result[i] = largest ? -INFINITY : 0;
        where[i] = empty ? 0 : above * a.kernel[1] + before;
    }
#pragma unroll 1
    for (int h = above; h < bottom; h++)
#pragma unroll 1
        for (int w = before; w < right; w++) {
            load_channels<width>(a.input,
                                 channels_at(a, pixel, a.height, a.width, top + h, left + w), x);
#pragma unroll
            for (int i = 0; i < width; i++) {
                if (!largest) {
                    result[i] += x[i];
                } else if (x[i] > result[i] || (isnan(x[i]) && !isnan(result[i]))) {
                    result[i] = x[i];
                    where[i] = h * a.kernel[1] + w;
                }
            }
        }
#pragma unroll
    for (int i = 0; i < width; i++)
        result[i] *= a.share;
    const i64 at = channels_at(a, pixel, a.out_height, a.out_width, pixel.row, pixel.column);
    store_channels<width>(a.output, at, result);
    if (largest && a.where)
        store_where<width>(a.where + at, where);
}

// ---- backward -----------------------------------------------------------------------------------

// The windows that cover a place of one dimension.
struct Windows {
    int first, last;
};

static __device__ __forceinline__ Windows covering(int place, int kernel, int stride, int padding,
                                                   int windows) {
    const u32 reach = (u32)(place + padding), size = (u32)kernel, step = (u32)stride;
    Windows found;
    found.first = reach < size ? 0 : (int)((reach - size) / step + 1);
    found.last = max(min((int)(reach / step), windows - 1), found.first - 1);
    return found;
}

template <int width, bool largest>
static __device__ __forceinline__ void pool_backward(const PoolArguments &a, const Pixel &pixel) {
    const Windows down = covering(pixel.row, a.kernel[0], a.stride[0], a.padding[0], a.out_height);
    const Windows along =
        covering(pixel.column, a.kernel[1], a.stride[1], a.padding[1], a.out_width);
    float sum[width], dy[width];
    u32 where[width];
#pragma unroll
    for (int i = 0; i < width; i++)
        sum[i] = 0;
    // One loop of two: a loop within another keeps too much of both at hand.
    const int windows = (along.last - along.first + 1) * (down.last - down.first + 1);
    int h = down.first, w = along.first;
#pragma unroll 1
    for (int k = 0; k < windows; k++) {
        const i64 at = channels_at(a, pixel, a.out_height, a.out_width, h, w);
        const int own = (pixel.row + a.padding[0] - h * a.stride[0]) * a.kernel[1] + pixel.column +
                        a.padding[1] - w * a.stride[1];
        load_channels<width>(a.input, at, dy);
        if (largest)
            load_where<width>(a.where + at, where);
#pragma unroll
        for (int i = 0; i < width; i++)
            sum[i] += !largest || where[i] == (u32)own ? dy[i] : 0;
        const bool last = w == along.last;
        w = last ? along.first : w + 1;
        h += last;
    }
#pragma unroll
    for (int i = 0; i < width; i++)
        sum[i] *= a.share;
    store_channels<width>(a.output,
                          channels_at(a, pixel, a.height, a.width, pixel.row, pixel.column), sum);
}

// ---- kernels ------------------------------------------------------------------------------------

#define POOL(name, function, largest, rows, columns)               \
    GPU_DEFINE(name) {                                             \
        if ((i64)blockIdx.x * BLOCK + threadIdx.x >= (i64)a.count) \
            return;                                                \
        const Pixel pixel = pixel_of_thread(a, a.rows, a.columns); \
        if (a.wide)                                                \
            function<EIGHT, largest>(a, pixel);                    \
        else                                                       \
            function<1, largest>(a, pixel);                        \
    }
POOL(max_pool2d, pool, true, out_height, out_width)
POOL(max_pool2d_backward, pool_backward, true, height, width)
POOL(avg_pool2d, pool, false, out_height, out_width)
POOL(avg_pool2d_backward, pool_backward, false, height, width)
