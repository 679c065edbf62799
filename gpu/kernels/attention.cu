// Attention and its gradients by tiles of plain arithmetic, in fp32: scores are made where they are
// needed and never kept, so that memory grows with the length and not with its square. Every sum
// has its fixed order.
#include "gpu/kernels/attention.h"
#include "gpu/kernels/block.h"
#include "gpu/kernels/plain.h"

enum { TURNED = TILE * PITCH }; // a tile of shares as a factor, [depth][row]
static_assert((int)TILE == (int)SPAN && (int)PITCH == (int)SPAN_PITCH,
              "a tile is what a block has");

// ---- the two products ---------------------------------------------------------------------------

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
        put(left.factor, place, next_left, stages);
        put(right.factor, place, next_right, stages + STAGE);
        __syncthreads();
        multiply(stages, stages + STAGE, sum);
        __syncthreads();
    }
}

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
                const bool is_added = counts(seen, row_of(i), depth + k);
#pragma unroll
                for (int j = 0; j < OWN_COLUMNS; j++)
                    sum[i][j] = is_added ? fmaf(x[i], y[j], sum[i][j]) : sum[i][j];
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
        put(values.factor, place, next, stage);
        __syncthreads();
        multiply_seen<seen>(shares + depth * PITCH, stage, depth, sum);
        __syncthreads();
    }
}

static __device__ __forceinline__ void put_turned(const float share[OWN_ROWS][OWN_COLUMNS],
                                                  float *shares) {
#pragma unroll
    for (int j = 0; j < OWN_COLUMNS; j++)
#pragma unroll
        for (int half = 0; half < 2; half++) {
            const float four[4] = {share[4 * half][j], share[4 * half + 1][j],
                                   share[4 * half + 2][j], share[4 * half + 3][j]};
            store_wide(shares + (own_column() + j) * PITCH + half * HALF + own_row(),
                       bits_of_four(four));
        }
}

static __device__ __forceinline__ void put_result(const AttentionArguments &a, int which, i64 times,
                                                  const Work &work,
                                                  const float sum[OWN_ROWS][OWN_COLUMNS],
                                                  float *memory) {
    put_sums(sum, memory);
    write_result(a, which, times, work, memory);
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
                                                    float *score, RowSum &row, float *result) {
    float top = row.largest, added = 0, keep;
#pragma unroll
    for (int j = 0; j < OWN_COLUMNS; j++) {
        score[j] = score_of(a, score[j], query, key + own_column() + j);
        top = fmaxf(top, score[j]);
    }
    const float base = rebase(row, join_row(top, Larger()), keep);
#pragma unroll
    for (int j = 0; j < OWN_COLUMNS; j++) {
        score[j] = expf(score[j] - base);
        added += score[j];
        result[j] *= keep;
    }
    row.sum += join_row(added, Added());
}

GPU_DEFINE(attention) {
    SHARED(float, stages, 2 * STAGE);
    SHARED(float, shares, TURNED);
    const Work work = work_of(a, a.queries);
    const ProductFactor values = turned(a.v);
    const ProductSource q = {a.q, nullptr, first_of(a.q, work), a.queries, a.depth};
    const ProductSource k = {a.k, nullptr, first_of(a.k, work), a.keys, a.depth};
    const ProductSource v = {values, nullptr, first_of(a.v, work), a.depth, a.keys};
    float result[OWN_ROWS][OWN_COLUMNS] = {};
    RowSum sum[OWN_ROWS];
#pragma unroll
    for (int i = 0; i < OWN_ROWS; i++)
        sum[i] = RowSum{-INFINITY, 0};
    const i64 end = a.causal ? min(work.row + TILE, a.keys) : a.keys;
#pragma unroll 1
    for (i64 key = 0; key < end; key += TILE) {
        float score[OWN_ROWS][OWN_COLUMNS];
        tile_of_scores(q, work.row, k, key, stages, score);
#pragma unroll
        for (int i = 0; i < OWN_ROWS; i++)
            share_scores(a, work.row + row_of(i), key, score[i], sum[i], result[i]);
        put_turned(score, shares);
        if (a.causal && key == work.row)
            add_values<SEEN_UP_TO_ROW>(shares, v, key, work.column, stages, result);
        else
            add_values<SEEN_ALL>(shares, v, key, work.column, stages, result);
    }
#pragma unroll
    for (int i = 0; i < OWN_ROWS; i++) {
#pragma unroll
        for (int j = 0; j < OWN_COLUMNS; j++)
            result[i][j] /= sum[i].sum;
        if (own_column() == 0)
            write_sums(a, work, work.row + row_of(i), sum[i]);
    }
    put_result(a, 0, a.queries, work, result, shares);
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
        put_turned(gradient, shares);
        if (a.causal && key == work.row)
            add_values<SEEN_UP_TO_ROW>(shares, to, key, work.column, stages, dq);
        else
            add_values<SEEN_ALL>(shares, to, key, work.column, stages, dq);
    }
    put_result(a, 0, a.queries, work, dq, shares);
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
        put_turned(score, shares);
        if (diagonal)
            add_values<SEEN_FROM_ROW>(shares, to_v, query, work.column, stages, dv);
        else
            add_values<SEEN_ALL>(shares, to_v, query, work.column, stages, dv);
        put_turned(gradient, shares);
        if (diagonal)
            add_values<SEEN_FROM_ROW>(shares, to_k, query, work.column, stages, dk);
        else
            add_values<SEEN_ALL>(shares, to_k, query, work.column, stages, dk);
    }
    put_result(a, 1, a.keys, work, dk, shares);
    put_result(a, 2, a.keys, work, dv, shares);
}
