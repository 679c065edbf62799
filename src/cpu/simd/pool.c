// Pooling, channels-last: one row of pixels a call, all channels of a pixel together.
//
// The gradients are gathered, not scattered: each input pixel looks at the windows that cover it,
// so that it is written once and rounded once, and rows can be done in any order.
#include <string.h>

#include "cpu/simd.h"
#include "cpu/simd/load.h"
#include "cpu/simd/vector.h"

// Channels whose gradients are taken at once, where their marks say so: numbers are moved as they
// are, in halves or words.
enum { BLOCK = 16 };
typedef uint8_t Marks __attribute__((vector_size(BLOCK), aligned(1), may_alias));
typedef int8_t SignedMarks __attribute__((vector_size(BLOCK), aligned(1), may_alias));
typedef int16_t BlockHalves __attribute__((vector_size(BLOCK * 2), aligned(2), may_alias));
typedef int32_t BlockWords __attribute__((vector_size(BLOCK * 4), aligned(4), may_alias));

// The windows first .. last - 1 that cover place `at` of one dimension.
typedef struct Span {
    int64_t first, last;
} Span;

static Span covering(int64_t at, int64_t kernel, int64_t stride, int64_t padding, int64_t windows) {
    int64_t reach = at + padding;
    int64_t first = reach < kernel ? 0 : (reach - kernel) / stride + 1;
    int64_t last = reach / stride + 1;
    return (Span){first, last < windows ? last : windows};
}

// The places of a window that lie inside the image, as offsets from its first.
static Span inside(int64_t window, int64_t kernel, int64_t stride, int64_t padding, int64_t size) {
    int64_t start = window * stride - padding;
    int64_t last = size - start < kernel ? size - start : kernel;
    return (Span){start < 0 ? -start : 0, last};
}

// ---- the largest --------------------------------------------------------------------------------

// Positions in windows, of as many channels as a vector has.
typedef uint8_t Places __attribute__((vector_size(LANES)));

ALWAYS_INLINE void places_store(uint8_t *where, int64_t at, int count, Words positions) {
    const Places places = __builtin_convertvector(positions, Places);
    memcpy(where + at, &places, (size_t)count);
}

ALWAYS_INLINE Words places_load(const uint8_t *where, int64_t at, int count) {
    Places places = {0};
    memcpy(&places, where + at, (size_t)count);
    return __builtin_convertvector(places, Words);
}

ALWAYS_INLINE void max_first(Format format, const void *x, float *best, int64_t at, int count) {
    vector_store_some(best, FORMAT_FP32, at, count, vector_load_some(x, format, at, count));
}

ALWAYS_INLINE Vector larger_of(Vector a, Vector b, int position, Words *where) {
    const Words takes = (b > a) | ((b != b) & (a == a));
    *where = (takes & ((Words){0} + position)) | (~takes & *where);
    return vector_select(takes, b, a);
}

// Some channels of a whole window of two by two, the commonest, without going through memory.
ALWAYS_INLINE void max_four_of(Format format, const void *x, const void *right, const void *below,
                               const void *below_right, void *y, uint8_t *where, int64_t at,
                               int count) {
    Words position = {0};
    Vector best = vector_load_some(x, format, at, count);
    best = larger_of(best, vector_load_some(right, format, at, count), 1, &position);
    best = larger_of(best, vector_load_some(below, format, at, count), 2, &position);
    best = larger_of(best, vector_load_some(below_right, format, at, count), 3, &position);
    vector_store_some(y, format, at, count, best);
    places_store(where, at, count, position);
}

ALWAYS_INLINE void max_next(Format format, const void *x, float *best, uint8_t *where, int position,
                            int64_t at, int count) {
    Words positions = places_load(where, at, count);
    const Vector before = vector_load_some(best, FORMAT_FP32, at, count);
    const Vector value = vector_load_some(x, format, at, count);
    const Vector larger = larger_of(before, value, position, &positions);
    vector_store_some(best, FORMAT_FP32, at, count, larger);
    places_store(where, at, count, positions);
}

ALWAYS_INLINE void max_four(Format format, const void *x, const void *below, void *y,
                            uint8_t *where, int64_t channels) {
    const void *right = load_offset(format, x, channels);
    const void *below_right = load_offset(format, below, channels);
    EACH_VECTOR(channels, max_four_of, format, x, right, below, below_right, y, where);
}

ALWAYS_INLINE void store_times(Format format, const float *values, void *y, float factor,
                               int64_t at, int count) {
    vector_store_some(y, format, at, count,
                      vector_all(factor) * vector_load_some(values, FORMAT_FP32, at, count));
}

ALWAYS_INLINE void store_row(Format format, const float *values, void *y, int64_t channels,
                             float factor) {
    EACH_VECTOR(channels, store_times, format, values, y, factor);
}

MATH_INLINE void max_row(Format format, const CpuPoolRow *row) {
    const PoolAttr *pool = row->pool;
    int64_t channels = row->channels, kernel_width = pool->kernel[1];
    Span down = inside(row->row, pool->kernel[0], pool->stride[0], pool->padding[0], row->height);
    int64_t top = row->row * pool->stride[0] - pool->padding[0];
    bool four = pool->kernel[0] == 2 && kernel_width == 2 && down.first == 0 && down.last == 2;
    for (int64_t column = 0; column < row->out_width; column++) {
        int64_t left = column * pool->stride[1] - pool->padding[1];
        Span along = inside(column, kernel_width, pool->stride[1], pool->padding[1], row->width);
        void *y = store_offset(format, row->out, column * channels);
        uint8_t *where = row->out_where + column * channels;
        const void *corner = load_offset(format, row->image, (top * row->width + left) * channels);
        if (four && along.first == 0 && along.last == 2) {
            max_four(format, corner, load_offset(format, corner, row->width * channels), y, where,
                     channels);
            continue;
        }
        bool first = true;
        for (int64_t h = down.first; h < down.last; h++)
            for (int64_t w = along.first; w < along.last; w++, first = false) {
                const void *x = load_offset(format, corner, (h * row->width + w) * channels);
                const int position = (int)(h * kernel_width + w);
                if (first) {
                    EACH_VECTOR(channels, max_first, format, x, row->scratch);
                    memset(where, position, (size_t)channels);
                } else {
                    EACH_VECTOR(channels, max_next, format, x, row->scratch, where, position);
                }
            }
        for (int64_t c = 0; first && c < channels; c++) { // nothing but padding
            row->scratch[c] = -INFINITY;
            where[c] = 0;
        }
        store_row(format, row->scratch, y, channels, 1);
    }
}

static void max_run(const CpuPoolRow *row) {
    FORMAT_SPLIT(row->format, max_row, row);
}

// Values are taken as they are: what is 0 in one format is so in all.
#define TAKE_BLOCK(Type, mask, dy, dx) *(Type *)(dx) = *(const Type *)(dy) & (Type)(mask)

MATH_INLINE void take_gradient(Format format, const void *restrict dy,
                               const uint8_t *restrict where, void *restrict dx, int64_t channels,
                               uint8_t position) {
    int64_t c = 0;
    for (; c + BLOCK <= channels; c += BLOCK) {
        SignedMarks takes = (SignedMarks)(*(const Marks *)(where + c) == position);
        const void *from = load_offset(format, dy, c);
        void *to = store_offset(format, dx, c);
        if (format == FORMAT_FP32)
            TAKE_BLOCK(BlockWords, __builtin_convertvector(takes, BlockWords), from, to);
        else
            TAKE_BLOCK(BlockHalves, __builtin_convertvector(takes, BlockHalves), from, to);
    }
    for (; c < channels; c++)
        store_element(format, dx, c, where[c] == position ? load_element(format, dy, c) : 0.0f);
}

ALWAYS_INLINE void add_taken(Format format, const void *dy, const uint8_t *where, float *sum,
                             int position, int64_t at, int count) {
    const Words takes = places_load(where, at, count) == position;
    const Vector gradient = vector_load_some(dy, format, at, count);
    vector_store_some(sum, FORMAT_FP32, at, count,
                      vector_load_some(sum, FORMAT_FP32, at, count) +
                          vector_select(takes, gradient, (Vector){0}));
}

ALWAYS_INLINE void add_some(Format format, const void *x, float *sum, int64_t at, int count) {
    vector_store_some(sum, FORMAT_FP32, at, count,
                      vector_load_some(sum, FORMAT_FP32, at, count) +
                          vector_load_some(x, format, at, count));
}

static void clear(float *restrict sum, int64_t channels) {
    for (int64_t c = 0; c < channels; c++)
        sum[c] = 0;
}

// dx of one row of input pixels where each lies in one window at most.
MATH_INLINE void backward_apart(Format format, const CpuPoolRow *row) {
    const PoolAttr *pool = row->pool;
    int64_t channels = row->channels, wide = pool->kernel[1], window = row->row / pool->kernel[0];
    bool covered = window < row->out_height;
    int64_t columns = covered ? row->out_width * wide : 0;
    int64_t first = row->row % pool->kernel[0] * wide; // position of the row in its window
    int64_t at = window * row->out_width * channels;
    for (int64_t column = 0; column < columns; column += wide, at += channels)
        for (int64_t w = 0; w < wide; w++)
            take_gradient(format, load_offset(format, row->image, at), row->where + at,
                          store_offset(format, row->out, (column + w) * channels), channels,
                          (uint8_t)(first + w));
    for (int64_t c = columns * channels; c < row->width * channels; c++)
        store_element(format, row->out, c, 0);
}

static bool is_apart(const PoolAttr *pool) {
    return pool->stride[0] == pool->kernel[0] && pool->stride[1] == pool->kernel[1] &&
           pool->padding[0] == 0 && pool->padding[1] == 0;
}

// dx of one row of input pixels; without `where`, of an average.
MATH_INLINE void backward_row(Format format, const CpuPoolRow *row) {
    const PoolAttr *pool = row->pool;
    int64_t channels = row->channels, width = row->out_width;
    Span down =
        covering(row->row, pool->kernel[0], pool->stride[0], pool->padding[0], row->out_height);
    float share = row->where ? 1.0f : 1.0f / (float)(pool->kernel[0] * pool->kernel[1]);
    for (int64_t column = 0; column < row->width; column++) {
        Span along = covering(column, pool->kernel[1], pool->stride[1], pool->padding[1], width);
        void *dx = store_offset(format, row->out, column * channels);
        bool single = down.last - down.first == 1 && along.last - along.first == 1;
        clear(row->scratch, single && row->where ? 0 : channels);
        for (int64_t h = down.first; h < down.last; h++)
            for (int64_t w = along.first; w < along.last; w++) {
                int64_t at = (h * width + w) * channels;
                const void *dy = load_offset(format, row->image, at);
                int64_t position =
                    (row->row + pool->padding[0] - h * pool->stride[0]) * pool->kernel[1] +
                    (column + pool->padding[1] - w * pool->stride[1]);
                if (!row->where)
                    EACH_VECTOR(channels, add_some, format, dy, row->scratch);
                else if (single)
                    take_gradient(format, dy, row->where + at, dx, channels, (uint8_t)position);
                else
                    EACH_VECTOR(channels, add_taken, format, dy, row->where + at, row->scratch,
                                (int)position);
            }
        if (!single || !row->where)
            store_row(format, row->scratch, dx, channels, share);
    }
}

static void backward_run(const CpuPoolRow *row) {
    if (row->where && is_apart(row->pool))
        FORMAT_SPLIT(row->format, backward_apart, row);
    else
        FORMAT_SPLIT(row->format, backward_row, row);
}

// ---- the average --------------------------------------------------------------------------------

MATH_INLINE void average_row(Format format, const CpuPoolRow *row) {
    const PoolAttr *pool = row->pool;
    int64_t channels = row->channels;
    float share = 1.0f / (float)(pool->kernel[0] * pool->kernel[1]);
    Span down = inside(row->row, pool->kernel[0], pool->stride[0], pool->padding[0], row->height);
    int64_t top = row->row * pool->stride[0] - pool->padding[0];
    for (int64_t column = 0; column < row->out_width; column++) {
        int64_t left = column * pool->stride[1] - pool->padding[1];
        Span along = inside(column, pool->kernel[1], pool->stride[1], pool->padding[1], row->width);
        clear(row->scratch, channels);
        for (int64_t h = down.first; h < down.last; h++)
            for (int64_t w = along.first; w < along.last; w++) {
                int64_t at = ((top + h) * row->width + left + w) * channels;
                EACH_VECTOR(channels, add_some, format, load_offset(format, row->image, at),
                            row->scratch);
            }
        store_row(format, row->scratch, store_offset(format, row->out, column * channels), channels,
                  share);
    }
}

static void average_run(const CpuPoolRow *row) {
    FORMAT_SPLIT(row->format, average_row, row);
}

extern const CpuPool ISA_NAME(cpu_pool);
const CpuPool ISA_NAME(cpu_pool) = {
    .max = max_run,
    .average = average_run,
    .backward = backward_run,
};
