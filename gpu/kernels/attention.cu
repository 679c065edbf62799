// Attention and its gradients by tiles, in fp32: scores are made where they are needed and never
// kept, so that memory grows with the length and not with its square. Every sum has its fixed
// order.
#include "gpu/kernels/block.h"
#include "gpu/kernels/plain.h"

enum { TURNED = TILE * PITCH }; // a tile of shares as a factor, [depth][row]

// Where a block works: a tile of rows (of queries, or of keys), some columns of the result, a head.
struct Work {
    i64 row, column;
    i64 batch, head, number; // number: of the head, over all batches
};

static __device__ __forceinline__ Work work_of(const AttentionArguments &a, i64 rows) {
    const u32 tiles = (u32)((rows + TILE - 1) / TILE), number = blockIdx.x / tiles;
    return Work{(i64)(blockIdx.x % tiles) * TILE, (i64)blockIdx.y * TILE,
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

// ---- the two products ---------------------------------------------------------------------------

static __device__ __forceinline__ void put_rounded(const ProductFactor &factor, Place place,
                                                   float *value, float *stage) {
#pragma unroll
    for (int i = 0; i < EIGHT; i++)
        value[i] = product_rounded(factor.format, value[i]);
    put(factor, place, value, stage);
}

// A tile of left right', both [time][depth], of `depth` terms. Afterwards the block has met.
static __device__ __forceinline__ void tile_of_scores(const ProductSource &left, i64 row,
                                                      const ProductSource &right, i64 column,
                                                      float *stages,
                                                      float sum[OWN_ROWS][OWN_COLUMNS]) {
    const Place place = place_of(left.factor);
    float next_left[EIGHT], next_right[EIGHT];
#pragma unroll
    for (int i = 0; i < OWN_ROWS; i++)
#pragma unroll
        for (int j = 0; j < OWN_COLUMNS; j++)
            sum[i][j] = 0;
#pragma unroll 1
    for (i64 depth = 0; depth < left.depth_end; depth += TILE_DEPTH) {
        product_load(left, product_run(left, row + place.outer, depth + place.depth), next_left);
        product_load(right, product_run(right, column + place.outer, depth + place.depth),
                     next_right);
        put_rounded(left.factor, place, next_left, stages);
        put_rounded(right.factor, place, next_right, stages + STAGE);
        __syncthreads();
        multiply(stages, stages + STAGE, sum);
        __syncthreads();
    }
}

// Which of a row's terms count, where those beyond the diagonal are not even multiplied: what they
// would be multiplied by may be infinite.
enum Seen { SEEN_ALL, SEEN_UP_TO_ROW, SEEN_FROM_ROW };

template <Seen seen>
static __device__ __forceinline__ void multiply_seen(const float *left, const float *right,
                                                     int depth, float sum[OWN_ROWS][OWN_COLUMNS]) {
    if constexpr (seen == SEEN_ALL) {
        multiply(left, right, sum);
    } else {
#pragma unroll 1
        for (int k = 0; k < TILE_DEPTH; k++) {
            float x[OWN_ROWS], y[OWN_COLUMNS];
            four_of_bits(load_wide(left + k * PITCH + own_row()), x);
            four_of_bits(load_wide(left + k * PITCH + HALF + own_row()), x + 4);
            four_of_bits(load_wide(right + k * PITCH + own_column()), y);
#pragma unroll
            for (int i = 0; i < OWN_ROWS; i++) {
                const bool counts =
                    seen == SEEN_UP_TO_ROW ? depth + k <= row_of(i) : row_of(i) <= depth + k;
#pragma unroll
                for (int j = 0; j < OWN_COLUMNS; j++)
                    sum[i][j] = counts ? fmaf(x[i], y[j], sum[i][j]) : sum[i][j];
            }
        }
    }
}

// sum += shares values, of a tile of shares [depth][row] and of values, turned, from time `first`
// and column `column` on. Shares were written before the block last met or are about to be; on the
// diagonal the tile's rows and the values' times begin at the same number.
template <Seen seen>
static __device__ __forceinline__ void add_values(const float *shares, const ProductSource &values,
                                                  i64 first, i64 column, float *stage,
                                                  float sum[OWN_ROWS][OWN_COLUMNS]) {
    const Place place = place_of(values.factor);
    float next[EIGHT];
#pragma unroll 1
    for (int depth = 0; depth < TILE && first + depth < values.depth_end; depth += TILE_DEPTH) {
        product_load(values, product_run(values, column + place.outer, first + depth + place.depth),
                     next);
        put_rounded(values.factor, place, next, stage);
        __syncthreads();
        multiply_seen<seen>(shares + depth * PITCH, stage, depth, sum);
        __syncthreads();
    }
}

// `format`: TF32 where they are rounded to it.
static __device__ __forceinline__ void
put_turned(u32 format, const float share[OWN_ROWS][OWN_COLUMNS], float *shares) {
#pragma unroll
    for (int j = 0; j < OWN_COLUMNS; j++)
#pragma unroll
        for (int half = 0; half < 2; half++) {
            float four[4];
#pragma unroll
            for (int i = 0; i < 4; i++)
                four[i] = product_rounded(format, share[4 * half + i][j]);
            store_wide(shares + (own_column() + j) * PITCH + half * HALF + own_row(),
                       bits_of_four(four));
        }
}

// A tile of the result [batch][time][head][depth] of `times`.
static __device__ __forceinline__ void write_result(const AttentionArguments &a, int which,
                                                    i64 times, const Work &work,
                                                    const float sum[OWN_ROWS][OWN_COLUMNS],
                                                    float *memory) {
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
    put_sums(sum, memory);
    __syncthreads();
    product_write(to, tile, memory, PITCH, 0, TILE, TILE);
    __syncthreads();
}

// ---- forward ------------------------------------------------------------------------------------

// Over the 16 lanes that have the same rows.
template <class Join> static __device__ __forceinline__ float join_row(float value, Join join) {
#pragma unroll
    for (int step = 8; step > 0; step /= 2)
        value = join(value, __shfl_xor_sync(~0u, value, step));
    return value;
}
struct Larger {
    __device__ __forceinline__ float operator()(float x, float y) const { return fmaxf(x, y); }
};
struct Added {
    __device__ __forceinline__ float operator()(float x, float y) const { return x + y; }
};

// Scores become shares of a sum that grows tile by tile, in units of the largest score so far.
static __device__ __forceinline__ void share_scores(const AttentionArguments &a, i64 query, i64 key,
                                                    float *score, float &largest, float &sum,
                                                    float *result) {
    float top = largest, added = 0;
#pragma unroll
    for (int j = 0; j < OWN_COLUMNS; j++) {
        const i64 at = key + own_column() + j;
        const bool seen = at < a.keys && (!a.causal || at <= query);
        score[j] = seen ? score[j] * a.scale : -INFINITY;
        top = fmaxf(top, score[j]);
    }
    top = join_row(top, Larger());
    const float base = top == -INFINITY ? 0 : top; // nothing yet
    const float keep = expf(largest - base);
#pragma unroll
    for (int j = 0; j < OWN_COLUMNS; j++) {
        score[j] = expf(score[j] - base);
        added += score[j];
        result[j] *= keep;
    }
    sum = sum * keep + join_row(added, Added());
    largest = top;
}

GPU_DEFINE(attention) {
    SHARED(float, stages, 2 * STAGE);
    SHARED(float, shares, TURNED);
    const Work work = work_of(a, a.queries);
    const ProductFactor values = turned(a.v);
    const ProductSource q = {a.q, nullptr, first_of(a.q, work), a.queries, a.depth};
    const ProductSource k = {a.k, nullptr, first_of(a.k, work), a.keys, a.depth};
    const ProductSource v = {values, nullptr, first_of(a.v, work), a.depth, a.keys};
    float result[OWN_ROWS][OWN_COLUMNS] = {}, largest[OWN_ROWS], sum[OWN_ROWS] = {};
#pragma unroll
    for (int i = 0; i < OWN_ROWS; i++)
        largest[i] = -INFINITY;
    const i64 end = a.causal ? min(work.row + TILE, a.keys) : a.keys;
#pragma unroll 1
    for (i64 key = 0; key < end; key += TILE) {
        float score[OWN_ROWS][OWN_COLUMNS];
        tile_of_scores(q, work.row, k, key, stages, score);
#pragma unroll
        for (int i = 0; i < OWN_ROWS; i++)
            share_scores(a, work.row + row_of(i), key, score[i], largest[i], sum[i], result[i]);
        put_turned(a.shares, score, shares);
        if (a.causal && key == work.row)
            add_values<SEEN_UP_TO_ROW>(shares, v, key, work.column, stages, result);
        else
            add_values<SEEN_ALL>(shares, v, key, work.column, stages, result);
    }
#pragma unroll
    for (int i = 0; i < OWN_ROWS; i++) {
#pragma unroll
        for (int j = 0; j < OWN_COLUMNS; j++)
            result[i][j] /= sum[i];
        const i64 query = work.row + row_of(i);
        if (a.sums && own_column() == 0 && work.column == 0 && query < a.queries) {
            *sum_of(a, work, 0, query) = largest[i];
            *sum_of(a, work, 1, query) = logf(sum[i]);
        }
    }
    write_result(a, 0, a.queries, work, result, shares);
}

// ---- backward -----------------------------------------------------------------------------------

// A warp has a row of dy and y.
GPU_DEFINE(attention_delta) {
    const int lane = (int)threadIdx.x % WARP;
    const i64 row = (i64)blockIdx.x * (GPU_THREADS_attention_delta / WARP) + threadIdx.x / WARP;
    if (row >= a.batches * a.heads * a.queries)
        return;
    const i64 query = row % a.queries, number = row / a.queries;
    const Work work = {query, 0, number / a.heads, number % a.heads, number};
    const i64 dy = first_of(a.dy, work) + query * a.dy.outer;
    const i64 y = first_of(a.y, work) + query * a.y.outer;
    float sum = 0;
    for (i64 d = lane; d < a.depth; d += WARP)
        sum = fmaf(product_element(a.dy.data, a.dy.format, dy + d * a.dy.depth),
                   product_element(a.y.data, a.y.format, y + d * a.y.depth), sum);
    sum = warp_sum(sum);
    if (lane == 0)
        a.delta[row] = sum;
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

GPU_DEFINE(attention_queries) {
    SHARED(float, stages, 2 * STAGE);
    SHARED(float, shares, TURNED);
    const Work work = work_of(a, a.queries);
    const ProductFactor keys = turned(a.k);
    const ProductSource q = {a.q, nullptr, first_of(a.q, work), a.queries, a.depth};
    const ProductSource k = {a.k, nullptr, first_of(a.k, work), a.keys, a.depth};
    const ProductSource v = {a.v, nullptr, first_of(a.v, work), a.keys, a.depth};
    const ProductSource dy = {a.dy, nullptr, first_of(a.dy, work), a.queries, a.depth};
    const ProductSource to = {keys, nullptr, first_of(a.k, work), a.depth, a.keys};
    float dq[OWN_ROWS][OWN_COLUMNS] = {};
    const i64 end = a.causal ? min(work.row + TILE, a.keys) : a.keys;
#pragma unroll 1
    for (i64 key = 0; key < end; key += TILE) {
        float score[OWN_ROWS][OWN_COLUMNS], gradient[OWN_ROWS][OWN_COLUMNS];
        tile_of_scores(q, work.row, k, key, stages, score);
        tile_of_scores(dy, work.row, v, key, stages, gradient);
#pragma unroll
        for (int i = 0; i < OWN_ROWS; i++) {
            const i64 query = work.row + row_of(i);
            const QueryFacts facts = facts_of(a, work, query);
#pragma unroll
            for (int j = 0; j < OWN_COLUMNS; j++)
                differentiate(a, is_seen(a, query, key + own_column() + j), facts, score[i][j],
                              gradient[i][j]);
        }
        put_turned(a.shares, gradient, shares);
        if (a.causal && key == work.row)
            add_values<SEEN_UP_TO_ROW>(shares, to, key, work.column, stages, dq);
        else
            add_values<SEEN_ALL>(shares, to, key, work.column, stages, dq);
    }
    write_result(a, 0, a.queries, work, dq, shares);
}

GPU_DEFINE(attention_keys) {
    SHARED(float, stages, 2 * STAGE);
    SHARED(float, shares, TURNED);
    const Work work = work_of(a, a.keys);
    const ProductFactor queries = turned(a.q), gradients = turned(a.dy);
    const ProductSource q = {a.q, nullptr, first_of(a.q, work), a.queries, a.depth};
    const ProductSource k = {a.k, nullptr, first_of(a.k, work), a.keys, a.depth};
    const ProductSource v = {a.v, nullptr, first_of(a.v, work), a.keys, a.depth};
    const ProductSource dy = {a.dy, nullptr, first_of(a.dy, work), a.queries, a.depth};
    const ProductSource to_k = {queries, nullptr, first_of(a.q, work), a.depth, a.queries};
    const ProductSource to_v = {gradients, nullptr, first_of(a.dy, work), a.depth, a.queries};
    float dk[OWN_ROWS][OWN_COLUMNS] = {}, dv[OWN_ROWS][OWN_COLUMNS] = {};
#pragma unroll 1
    for (i64 query = a.causal ? work.row : 0; query < a.queries; query += TILE) {
        float score[OWN_ROWS][OWN_COLUMNS], gradient[OWN_ROWS][OWN_COLUMNS];
        tile_of_scores(k, work.row, q, query, stages, score);
        tile_of_scores(v, work.row, dy, query, stages, gradient);
#pragma unroll
        for (int j = 0; j < OWN_COLUMNS; j++) {
            const i64 at = query + own_column() + j;
            const QueryFacts facts = facts_of(a, work, at);
#pragma unroll
            for (int i = 0; i < OWN_ROWS; i++)
                differentiate(a, is_seen(a, at, work.row + row_of(i)), facts, score[i][j],
                              gradient[i][j]);
        }
        const bool diagonal = a.causal && query == work.row;
        put_turned(a.shares, score, shares);
        if (diagonal)
            add_values<SEEN_FROM_ROW>(shares, to_v, query, work.column, stages, dv);
        else
            add_values<SEEN_ALL>(shares, to_v, query, work.column, stages, dv);
        put_turned(a.shares, gradient, shares);
        if (diagonal)
            add_values<SEEN_FROM_ROW>(shares, to_k, query, work.column, stages, dk);
        else
            add_values<SEEN_ALL>(shares, to_k, query, work.column, stages, dk);
    }
    write_result(a, 1, a.keys, work, dk, shares);
    write_result(a, 2, a.keys, work, dv, shares);
}
