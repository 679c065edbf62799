// Along one dimension: running sums, products, and a dimension drawn anew.
//
// A line that lies by itself belongs to a warp, which takes 32 neighbours at once; of lines side by
// side each thread has one, so that neighbours belong to neighbours.
#include "gpu/kernels/operands.h"
#include "kernel/resample.h"

enum { BLOCK = 256 };

struct Line {
    i64 number, first; // the element with which it begins
    u32 lane;
};

// Of this thread; false where there is none.
static __device__ __forceinline__ bool line_of_thread(const LineArguments &a, Line *line) {
    const i64 thread = (i64)blockIdx.x * BLOCK + threadIdx.x;
    line->number = a.team == 1 ? thread : thread / WARP;
    line->lane = a.team == 1 ? 0 : threadIdx.x % WARP;
    if (line->number >= a.lines)
        return false;
    i64 outer = line->number;
    const i64 within = part_off(&outer, a.inner, a.lines);
    line->first = outer * a.size * a.inner + within;
    return true;
}

// ---- running sums -------------------------------------------------------------------------------

GPU_DEFINE(cumsum) {
    Line line;
    if (!line_of_thread(a, &line))
        return; // with its whole warp, where one has a line
    float sum = 0;
#pragma unroll 1
    for (i64 i = 0; i < a.size; i += a.team) {
        const i64 place = i + line.lane;
        const bool has = place < a.size;
        const i64 at = line.first + (a.backwards ? a.size - 1 - place : place) * a.inner;
        float value = has ? load_one(a.input, at) : 0;
        if (a.team > 1) {
#pragma unroll
            for (u32 step = 1; step < WARP; step *= 2) {
                const float lower = __shfl_up_sync(0xFFFFFFFF, value, step);
                value = line.lane >= step ? value + lower : value;
            }
        }
        value += sum;
        if (has)
            store_one(a.output, at, value);
        sum = a.team > 1 ? __shfl_sync(0xFFFFFFFF, value, WARP - 1) : value;
    }
}

// ---- products -----------------------------------------------------------------------------------

GPU_DEFINE(prod) {
    Line line;
    if (!line_of_thread(a, &line))
        return;
    float product = 1;
#pragma unroll 1
    for (i64 i = line.lane; i < a.size; i += a.team)
        product *= load_one(a.input, line.first + i * a.inner);
    if (a.team > 1) {
#pragma unroll
        for (u32 step = 1; step < WARP; step *= 2)
            product *= __shfl_xor_sync(0xFFFFFFFF, product, (int)step);
    }
    if (line.lane == 0)
        store_one(a.output, line.number, product);
}

// The product of what came before goes down with the line, that of what comes behind comes back.
GPU_DEFINE(prod_backward) {
    Line line;
    if (!line_of_thread(a, &line))
        return;
    float product = 1;
#pragma unroll 1
    for (i64 i = 0; i < a.size; i++) {
        const i64 at = line.first + i * a.inner;
        a.before[at] = product;
        product *= load_one(a.input, at);
    }
    const float gradient = load_one(a.gradient, line.number);
    product = 1;
#pragma unroll 1
    for (i64 i = a.size; i-- > 0;) {
        const i64 at = line.first + i * a.inner;
        const float others = a.before[at] * product;
        product *= load_one(a.input, at);
        store_one(a.output, at, gradient * others);
    }
}

// ---- a dimension drawn anew ---------------------------------------------------------------------

struct Drawn {
    i64 outer, place, inner;
};

// Element `at` of an array whose dimension has `size`.
static __device__ __forceinline__ Drawn drawn_at(const ResampleArguments &a, i64 at, i64 size) {
    Drawn drawn;
    drawn.outer = at;
    drawn.inner = part_off(&drawn.outer, a.inner, a.count);
    drawn.place = part_off(&drawn.outer, size, a.count);
    return drawn;
}

static __device__ __forceinline__ float share_of(i64 part, i64 whole) {
    return (float)part / (float)whole;
}

GPU_DEFINE(resample) {
    const i64 at = (i64)blockIdx.x * BLOCK + threadIdx.x;
    if (at >= a.count)
        return;
    const Drawn own = drawn_at(a, at, a.attr.count);
    const ResampleTaps taps = resample_taps(&a.attr, own.place);
    const i64 first = (own.outer * a.attr.size + taps.first) * a.inner + own.inner;
    float sum = load_one(a.input, first);
    if (taps.count > 1) {
        i64 part = 1, whole = 1;
        (void)resample_share(&taps, taps.first, &part, &whole);
        sum *= share_of(part, whole);
#pragma unroll 1
        for (i64 k = 1; k < taps.count; k++) {
            (void)resample_share(&taps, taps.first + k, &part, &whole);
            sum += share_of(part, whole) * load_one(a.input, first + k * a.inner);
        }
    }
    store_one(a.output, at, sum);
}

GPU_DEFINE(resample_backward) {
    const i64 at = (i64)blockIdx.x * BLOCK + threadIdx.x;
    if (at >= a.count)
        return;
    const Drawn own = drawn_at(a, at, a.attr.size);
    const i64 base = own.outer * a.attr.count;
    float sum = 0;
#pragma unroll 1
    for (int number = 0; number < RESAMPLE_RANGES; number++) {
        const ResampleRange range = resample_reach(&a.attr, own.place, number);
#pragma unroll 1
        for (i64 from = range.first; from < range.end; from++) {
            const ResampleTaps taps = resample_taps(&a.attr, from);
            i64 part, whole;
            if (resample_share(&taps, own.place, &part, &whole))
                sum +=
                    share_of(part, whole) * load_one(a.input, (base + from) * a.inner + own.inner);
        }
    }
    store_one(a.output, at, sum);
}
