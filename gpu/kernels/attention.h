// gpu/kernels/attention.h: what the kernels of attention share, however they multiply: where their
// blocks work, what becomes of a score, how results go to memory.
#pragma once

#include "gpu/kernels/product.h"

// A block has so many rows, of queries or of keys, and as many columns of scores and of its result
// at a time.
enum { SPAN = 64, SPAN_PITCH = SPAN + 4 };

// ---- where --------------------------------------------------------------------------------------

// Where a block works: a tile of rows (of queries, or of keys), some columns of the result, a head.
struct Work {
    i64 row, column;
    i64 batch, head, number; // number: of the head, over all batches
};

static __device__ __forceinline__ Work work_of(const AttentionArguments &a, i64 rows) {
    const u32 tiles = (u32)((rows + SPAN - 1) / SPAN), number = blockIdx.x / tiles;
    return Work{(i64)(blockIdx.x % tiles) * SPAN, (i64)blockIdx.y * SPAN,
                (i64)(number / (u32)a.heads), (i64)(number % (u32)a.heads), (i64)number};
}

static __device__ __forceinline__ i64 first_of(const ProductFactor &factor, const Work &work) {
    return work.batch * factor.batch[2] + work.head * factor.batch[3];
}

// Of a query's row of scores the largest (0), or the logarithm of the sum (1).
static __device__ __forceinline__ float *sum_of(const AttentionArguments &a, const Work &work,
                                                int which, i64 query) {
    return a.sums + which * a.sums_stride[0] + work.batch * a.sums_stride[1] +
           work.head * a.sums_stride[2] + query * a.sums_stride[3];
}

// The factor with its depth as the outer dimension and its time as the depth.
static __device__ __forceinline__ ProductFactor turned(const ProductFactor &factor) {
    ProductFactor other = factor;
    other.along_depth = 0;
    other.outer = factor.depth;
    other.depth = factor.outer;
    return other;
}

// Which of a row's terms count, where those beyond the diagonal are not even multiplied: what they
// would be multiplied by may be infinite.
enum Seen { SEEN_ALL, SEEN_UP_TO_ROW, SEEN_FROM_ROW };

static __device__ __forceinline__ bool counts(Seen seen, int row, int term) {
    return seen == SEEN_ALL || (seen == SEEN_UP_TO_ROW ? term <= row : row <= term);
}

// ---- shares -------------------------------------------------------------------------------------

// Of a row so far: its largest score, and the sum of the exponentials of the differences from it.
struct RowSum {
    float largest, sum;
};

// A row's largest score so far becomes `largest`. Gives what its exponentials are taken from, and
// what all that was added up by then is to be multiplied by.
static __device__ __forceinline__ float rebase(RowSum &row, float largest, float &keep) {
    const float base = largest == -INFINITY ? 0 : largest; // nothing yet
    keep = expf(row.largest - base);
    row.largest = largest;
    row.sum *= keep;
    return base;
}

static __device__ __forceinline__ float score_of(const AttentionArguments &a, float product,
                                                 i64 query, i64 key) {
    const bool seen = key < a.keys && (!a.causal || key <= query);
    return seen ? product * a.scale : -INFINITY;
}

static __device__ __forceinline__ void write_sums(const AttentionArguments &a, const Work &work,
                                                  i64 query, RowSum row) {
    if (a.sums && work.column == 0 && query < a.queries) {
        *sum_of(a, work, 0, query) = row.largest;
        *sum_of(a, work, 1, query) = logf(row.sum);
    }
}

// What of a query its shares and their gradients are made with.
struct QueryFacts {
    float largest, log_sum, delta;
};
static __device__ __forceinline__ QueryFacts facts_of(const AttentionArguments &a, const Work &work,
                                                      i64 query) {
    if (query >= a.queries)
        return QueryFacts{0, 0, 0};
    return QueryFacts{*sum_of(a, work, 0, query), *sum_of(a, work, 1, query),
                      a.delta[work.number * a.queries + query]};
}

static __device__ __forceinline__ bool is_seen(const AttentionArguments &a, i64 query, i64 key) {
    return query < a.queries && key < a.keys && (!a.causal || key <= query);
}

// A score becomes its share, the gradient of the share that of the score.
static __device__ __forceinline__ void differentiate(const AttentionArguments &a, bool seen,
                                                     QueryFacts facts, float &score,
                                                     float &gradient) {
    const float share = expf(score * a.scale - facts.largest - facts.log_sum);
    score = seen ? share : 0;
    gradient = seen ? a.scale * share * (gradient - facts.delta) : 0;
}

// ---- results ------------------------------------------------------------------------------------

// A tile of the result [batch][time][head][depth] of `times`, which the block has put into shared
// memory, in rows of SPAN_PITCH.
static __device__ __forceinline__ void write_result(const AttentionArguments &a, int which,
                                                    i64 times, const Work &work,
                                                    const float *memory) {
    ProductArguments to = {};
    to.c.data = a.out[which];
    to.c.format = a.format[which];
    to.c.wide = a.wide[which];
    to.c.row = a.heads * a.depth;
    to.rows = times;
    to.columns = a.depth;
    to.parts = 1;
    ProductTile tile = {};
    tile.row = work.row;
    tile.column = work.column;
    tile.c = (work.batch * times * a.heads + work.head) * a.depth;
    __syncthreads();
    product_write(to, tile, memory, SPAN_PITCH, 0, SPAN, SPAN);
    __syncthreads();
}
