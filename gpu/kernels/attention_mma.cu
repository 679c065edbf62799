// Attention and its gradients by the card's units for tiles: scores are products of factors in
// their own format. Shares, and gradients of scores, are multiplied in TF32, whatever the factors:
// it has the digits of fp16 and the range of fp32, and every number of 16 bits. Scores are never in
// memory, shares stay in registers, every sum has its fixed order.
#include "gpu/kernels/attention.h"
#include "gpu/kernels/fragments.h"

// A block's four warps have sixteen rows each.
enum {
    THREADS = 128,
    WARP_ROWS = 16,
    ACROSS = SPAN / 8, // tiles of eight columns
    TIMES = 32         // of values in shared memory at once
};

// Of a warp's rows: those of a lane are lane / 4 and eight further, of every tile two columns each.
typedef float Sums[ACROSS][4];

static __device__ __forceinline__ int warp_row(void) {
    return (int)threadIdx.x / 32 * WARP_ROWS;
}
// The row and the column, in the block's tile, of a lane's number `e` of tile `j`.
static __device__ __forceinline__ int row_of(int e) {
    return warp_row() + (int)threadIdx.x % 32 / 4 + e / 2 * 8;
}
static __device__ __forceinline__ int column_of(int j, int e) {
    return 8 * j + (int)threadIdx.x % 4 * 2 + e % 2;
}

// ---- the two products ---------------------------------------------------------------------------

// Of the factors of scores in shared memory at a time.
template <class Number> struct Staged {
    enum {
        EACH = 16 / sizeof(typename Number::Stored), // of 16 bytes
        DEPTH = 4 * EACH,
        PITCH = DEPTH + EACH,
        SIZE = SPAN * PITCH
    };
    static_assert(2 * SIZE * sizeof(typename Number::Stored) <= SPAN * SPAN_PITCH * sizeof(u32),
                  "both lie where results do");
};

// A tile of left right', both [time][depth]. Before and afterwards the block has met.
template <class Number>
static __device__ __forceinline__ void tile_of_scores(const ProductSource &left, i64 row,
                                                      const ProductSource &right, i64 column,
                                                      u32 *memory, Sums sum) {
    typedef Staged<Number> Size;
    typename Number::Stored *stages = (typename Number::Stored *)memory;
    const Stage<Number, Size::PITCH, 1> x =
        stage_of<Number, Size::PITCH, 1, SIDE_LEFT>(true, stages);
    const Stage<Number, Size::PITCH, 1> y =
        stage_of<Number, Size::PITCH, 1, SIDE_RIGHT>(true, stages + Size::SIZE);
#pragma unroll
    for (int j = 0; j < ACROSS; j++)
#pragma unroll
        for (int e = 0; e < 4; e++)
            sum[j][e] = 0;
#pragma unroll 1
    for (i64 depth = 0; depth < left.depth_end; depth += Size::DEPTH) {
#pragma unroll 1
        for (int index = (int)threadIdx.x; index < SPAN * Size::DEPTH / EIGHT; index += THREADS) {
            const int outer = index / (Size::DEPTH / EIGHT);
            const int within = index % (Size::DEPTH / EIGHT) * EIGHT;
            const int to = outer * Size::PITCH + within;
            put_eight(bring_eight<Number>(left, row + outer, depth + within), x.memory + to);
            put_eight(bring_eight<Number>(right, column + outer, depth + within), y.memory + to);
        }
        __syncthreads();
#pragma unroll
        for (int k = 0; k < Size::DEPTH; k += Number::AT_ONCE) {
            u32 of_x[1][4], of_y[ACROSS / 2][4];
            fragments<1, SIDE_LEFT>(true, x, 0, warp_row(), k, of_x);
            fragments<ACROSS / 2, SIDE_RIGHT>(true, y, 0, 0, k, of_y);
#pragma unroll
            for (int j = 0; j < ACROSS; j++)
                multiply_tiles(Number(), sum[j], of_x[0], of_y[j / 2] + j % 2 * 2);
        }
        __syncthreads();
    }
}

static __device__ __forceinline__ float as_factor(float share) {
    return number_fp32_through_tf32(share);
}

// sum += shares values, of eight times one by one, where what is not seen must not be multiplied:
// it is not finite. `share` are those of the tile of shares that begins at time `first` of the
// block's, `values` its rows.
template <Seen seen>
static __device__ __forceinline__ void add_one_by_one(const float share[4], int first,
                                                      const u32 *values, Sums sum) {
    const int lane = (int)threadIdx.x % 32;
#pragma unroll 1
    for (int i = 0; i < 8; i++) {
        float factor[2];
#pragma unroll
        for (int half = 0; half < 2; half++) {
            const float own = i % 2 ? share[2 * half + 1] : share[2 * half];
            factor[half] = as_factor(__shfl_sync(~0u, own, (lane & ~3) + i / 2));
        }
#pragma unroll
        for (int j = 0; j < ACROSS; j++)
#pragma unroll
            for (int e = 0; e < 4; e++) {
                const float value = __uint_as_float(values[i * SPAN_PITCH + column_of(j, e)]);
                if (counts(seen, row_of(e), first + i))
                    sum[j][e] = fmaf(factor[e / 2], value, sum[j][e]);
            }
    }
}

// Eight neighbours of a factor as fp32.
template <class Number>
static __device__ __forceinline__ Eight<NumberTf32> bring_wide(const ProductSource &source,
                                                               i64 outer, i64 depth) {
    if constexpr (sizeof(typename Number::Stored) == 4) {
        return bring_eight<NumberTf32>(source, outer, depth);
    } else {
        const Eight<Number> narrow = bring_eight<Number>(source, outer, depth);
        u16 part[EIGHT];
        float value[EIGHT];
        part_wide(narrow.bits[0], part);
#pragma unroll
        for (int i = 0; i < EIGHT; i++)
            value[i] = number_wide(Number(), part[i]);
        return Eight<NumberTf32>{{bits_of_four(value), bits_of_four(value + 4)}};
    }
}

// As they are multiplied: the largest numbers of fp32 are infinite in TF32.
static __device__ __forceinline__ bool is_finite(const Eight<NumberTf32> &eight) {
    bool finite = true;
#pragma unroll
    for (int i = 0; i < 2; i++) {
        float value[4];
        four_of_bits(eight.bits[i], value);
#pragma unroll
        for (int k = 0; k < 4; k++)
            finite = finite && fabsf(number_fp32_through_tf32(value[k])) < INFINITY;
    }
    return finite;
}

// sum += shares values, of values, turned, from time `first` and column `column` on. Before and
// afterwards the block has met. On the diagonal the tile's rows and the values' times begin at the
// same number.
template <class Number, Seen seen>
static __device__ __forceinline__ void add_values(const Sums share, const ProductSource &values,
                                                  i64 first, i64 column, u32 *memory, Sums sum) {
    const Stage<NumberTf32, 1, SPAN_PITCH, true> stage =
        stage_of<NumberTf32, 1, SPAN_PITCH, SIDE_RIGHT, true>(false, memory);
#pragma unroll
    for (int from = 0; from < SPAN; from += TIMES) {
        if (first + from >= values.depth_end)
            continue;
        bool finite = true;
#pragma unroll 1
        for (int index = (int)threadIdx.x; index < TIMES * SPAN / EIGHT; index += THREADS) {
            const int outer = index % (SPAN / EIGHT) * EIGHT, time = index / (SPAN / EIGHT);
            const Eight<NumberTf32> next =
                bring_wide<Number>(values, column + outer, first + from + time);
            if (seen != SEEN_ALL)
                finite = finite && is_finite(next);
            put_eight(next, memory + time * SPAN_PITCH + outer);
        }
        bool one_by_one = false;
        if constexpr (seen == SEEN_ALL)
            __syncthreads();
        else
            one_by_one = __syncthreads_or(!finite);
#pragma unroll
        for (int time = 0; time < TIMES; time += 8) {
            const float *own = share[(from + time) / 8];
            if (one_by_one) {
                add_one_by_one<seen>(own, from + time, memory + time * SPAN_PITCH, sum);
                continue;
            }
            // As a lane has sums it would have the left factor, but for the order of the columns:
            // the even ones are taken for the first tile of the depth, the odd ones for the second.
            const u32 of_x[4] = {
                __float_as_uint(as_factor(own[0])), __float_as_uint(as_factor(own[2])),
                __float_as_uint(as_factor(own[1])), __float_as_uint(as_factor(own[3]))};
            u32 of_y[ACROSS / 2][4];
            fragments<ACROSS / 2, SIDE_RIGHT>(false, stage, 0, 0, time, of_y);
#pragma unroll
            for (int j = 0; j < ACROSS; j++)
                multiply_tiles(NumberTf32(), sum[j], of_x, of_y[j / 2] + j % 2 * 2);
        }
        __syncthreads();
    }
}

static __device__ __forceinline__ void put_result(const AttentionArguments &a, int which, i64 times,
                                                  const Work &work, const Sums sum, u32 *memory) {
    float *to = (float *)memory;
#pragma unroll
    for (int j = 0; j < ACROSS; j++)
#pragma unroll
        for (int e = 0; e < 4; e++)
            to[row_of(e) * SPAN_PITCH + column_of(j, e)] = sum[j][e];
    write_result(a, which, times, work, to);
}

// ---- forward ------------------------------------------------------------------------------------

// Scores become shares of a sum that grows tile by tile, in units of the largest score so far: of
// one of a lane's two rows, which four lanes have together.
static __device__ __forceinline__ void share_scores(const AttentionArguments &a, i64 query, i64 key,
                                                    int half, Sums score, RowSum &row,
                                                    Sums result) {
    float top = row.largest, added = 0, keep;
#pragma unroll
    for (int j = 0; j < ACROSS; j++)
#pragma unroll
        for (int e = 2 * half; e < 2 * half + 2; e++) {
            score[j][e] = score_of(a, score[j][e], query, key + column_of(j, e));
            top = fmaxf(top, score[j][e]);
        }
#pragma unroll
    for (int step = 2; step > 0; step /= 2)
        top = fmaxf(top, __shfl_xor_sync(~0u, top, step));
    const float base = rebase(row, top, keep);
#pragma unroll
    for (int j = 0; j < ACROSS; j++)
#pragma unroll
        for (int e = 2 * half; e < 2 * half + 2; e++) {
            score[j][e] = expf(score[j][e] - base);
            added += score[j][e];
            result[j][e] *= keep;
        }
#pragma unroll
    for (int step = 2; step > 0; step /= 2)
        added += __shfl_xor_sync(~0u, added, step);
    row.sum += added;
}

template <class Number>
static __device__ __forceinline__ void forward(const AttentionArguments &a) {
    SHARED(u32, memory, SPAN * SPAN_PITCH);
    const Work work = work_of(a, a.queries);
    const ProductFactor values = turned(a.v);
    const ProductSource q = {a.q, nullptr, first_of(a.q, work), a.queries, a.depth};
    const ProductSource k = {a.k, nullptr, first_of(a.k, work), a.keys, a.depth};
    const ProductSource v = {values, nullptr, first_of(a.v, work), a.depth, a.keys};
    Sums result = {};
    RowSum sum[2] = {{-INFINITY, 0}, {-INFINITY, 0}};
    const i64 end = a.causal ? min(work.row + SPAN, a.keys) : a.keys;
#pragma unroll 1
    for (i64 key = 0; key < end; key += SPAN) {
        Sums score;
        tile_of_scores<Number>(q, work.row, k, key, memory, score);
#pragma unroll
        for (int half = 0; half < 2; half++)
            share_scores(a, work.row + row_of(2 * half), key, half, score, sum[half], result);
        if (a.causal && key == work.row)
            add_values<Number, SEEN_UP_TO_ROW>(score, v, key, work.column, memory, result);
        else
            add_values<Number, SEEN_ALL>(score, v, key, work.column, memory, result);
    }
#pragma unroll
    for (int half = 0; half < 2; half++) {
#pragma unroll
        for (int j = 0; j < ACROSS; j++) {
            result[j][2 * half] /= sum[half].sum;
            result[j][2 * half + 1] /= sum[half].sum;
        }
        if (threadIdx.x % 4 == 0)
            write_sums(a, work, work.row + row_of(2 * half), sum[half]);
    }
    put_result(a, 0, a.queries, work, result, memory);
}

// ---- backward -----------------------------------------------------------------------------------

template <class Number>
static __device__ __forceinline__ void queries(const AttentionArguments &a) {
    SHARED(u32, memory, SPAN * SPAN_PITCH);
    const Work work = work_of(a, a.queries);
    const ProductFactor keys = turned(a.k);
    const ProductSource q = {a.q, nullptr, first_of(a.q, work), a.queries, a.depth};
    const ProductSource k = {a.k, nullptr, first_of(a.k, work), a.keys, a.depth};
    const ProductSource v = {a.v, nullptr, first_of(a.v, work), a.keys, a.depth};
    const ProductSource dy = {a.dy, nullptr, first_of(a.dy, work), a.queries, a.depth};
    const ProductSource to = {keys, nullptr, first_of(a.k, work), a.depth, a.keys};
    Sums dq = {};
    const i64 end = a.causal ? min(work.row + SPAN, a.keys) : a.keys;
#pragma unroll 1
    for (i64 key = 0; key < end; key += SPAN) {
        Sums score, gradient;
        tile_of_scores<Number>(q, work.row, k, key, memory, score);
        tile_of_scores<Number>(dy, work.row, v, key, memory, gradient);
#pragma unroll
        for (int half = 0; half < 2; half++) {
            const i64 query = work.row + row_of(2 * half);
            const QueryFacts facts = facts_of(a, work, query);
#pragma unroll
            for (int j = 0; j < ACROSS; j++)
#pragma unroll
                for (int e = 2 * half; e < 2 * half + 2; e++)
                    differentiate(a, is_seen(a, query, key + column_of(j, e)), facts, score[j][e],
                                  gradient[j][e]);
        }
        if (a.causal && key == work.row)
            add_values<Number, SEEN_UP_TO_ROW>(gradient, to, key, work.column, memory, dq);
        else
            add_values<Number, SEEN_ALL>(gradient, to, key, work.column, memory, dq);
    }
    put_result(a, 0, a.queries, work, dq, memory);
}

template <class Number> static __device__ __forceinline__ void keys(const AttentionArguments &a) {
    SHARED(u32, memory, SPAN * SPAN_PITCH);
    const Work work = work_of(a, a.keys);
    const ProductFactor queries = turned(a.q), gradients = turned(a.dy);
    const ProductSource q = {a.q, nullptr, first_of(a.q, work), a.queries, a.depth};
    const ProductSource k = {a.k, nullptr, first_of(a.k, work), a.keys, a.depth};
    const ProductSource v = {a.v, nullptr, first_of(a.v, work), a.keys, a.depth};
    const ProductSource dy = {a.dy, nullptr, first_of(a.dy, work), a.queries, a.depth};
    const ProductSource to_k = {queries, nullptr, first_of(a.q, work), a.depth, a.queries};
    const ProductSource to_v = {gradients, nullptr, first_of(a.dy, work), a.depth, a.queries};
    SHARED(float, facts, 3 * SPAN); // of the queries of a tile: QueryFacts, member by member
    Sums dk = {}, dv = {};
#pragma unroll 1
    for (i64 query = a.causal ? work.row : 0; query < a.queries; query += SPAN) {
        Sums score, gradient;
        if (threadIdx.x < SPAN) { // read by all once they have met
            const QueryFacts own = facts_of(a, work, query + threadIdx.x);
            facts[threadIdx.x] = own.largest;
            facts[SPAN + threadIdx.x] = own.log_sum;
            facts[2 * SPAN + threadIdx.x] = own.delta;
        }
        tile_of_scores<Number>(k, work.row, q, query, memory, score);
        tile_of_scores<Number>(v, work.row, dy, query, memory, gradient);
#pragma unroll
        for (int j = 0; j < ACROSS; j++)
#pragma unroll
            for (int side = 0; side < 2; side++) {
                const int column = column_of(j, side);
                const i64 at = query + column;
                const QueryFacts own = {facts[column], facts[SPAN + column],
                                        facts[2 * SPAN + column]};
#pragma unroll
                for (int e = side; e < 4; e += 2)
                    differentiate(a, is_seen(a, at, work.row + row_of(e)), own, score[j][e],
                                  gradient[j][e]);
            }
        if (a.causal && query == work.row) {
            add_values<Number, SEEN_FROM_ROW>(score, to_v, query, work.column, memory, dv);
            add_values<Number, SEEN_FROM_ROW>(gradient, to_k, query, work.column, memory, dk);
        } else {
            add_values<Number, SEEN_ALL>(score, to_v, query, work.column, memory, dv);
            add_values<Number, SEEN_ALL>(gradient, to_k, query, work.column, memory, dk);
        }
    }
    put_result(a, 1, a.keys, work, dk, memory);
    put_result(a, 2, a.keys, work, dv, memory);
}

GPU_DEFINE(attention_bf16) {
    forward<NumberBf16>(a);
}
GPU_DEFINE(attention_fp16) {
    forward<NumberFp16>(a);
}
GPU_DEFINE(attention_tf32) {
    forward<NumberTf32>(a);
}
GPU_DEFINE(attention_queries_bf16) {
    queries<NumberBf16>(a);
}
GPU_DEFINE(attention_queries_fp16) {
    queries<NumberFp16>(a);
}
GPU_DEFINE(attention_queries_tf32) {
    queries<NumberTf32>(a);
}
GPU_DEFINE(attention_keys_bf16) {
    keys<NumberBf16>(a);
}
GPU_DEFINE(attention_keys_fp16) {
    keys<NumberFp16>(a);
}
GPU_DEFINE(attention_keys_tf32) {
    keys<NumberTf32>(a);
}
