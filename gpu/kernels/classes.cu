// What compares rows of logits with classes: cross entropy, its gradient, accuracy.
#include "gpu/kernels/row_sum.h"
#include "gpu/kernels/values.h"

enum { LEFT_OUT = -1 };

static __device__ __forceinline__ i32 load_class(const Operand &classes, i64 row) {
    return classes.format == FORMAT_INT32 ? ((const i32 *)classes.data)[row]
                                          : ((const u8 *)classes.data)[row];
}

// The class of the team's row, or LEFT_OUT where there is none to read by.
template <class Walk>
static __device__ __forceinline__ i32 class_of(const ClassArguments &a, const Walk &walk) {
    if (!walk.valid)
        return LEFT_OUT;
    const i32 wanted = load_class(a.classes, walk.row);
    if (walk.team.member > 0)
        return value_passes(&a.values.check, wanted) ? wanted : LEFT_OUT;
    return value_holds(a.values, walk.row, wanted) ? wanted : LEFT_OUT;
}

// Keeps what the rows of a block give, and how many of them take part. `given` is what the first of
// a team gives, and 0 of the others.
static __device__ __forceinline__ void keep_of_block(const ClassArguments &a, float given,
                                                     bool takes_part) {
    const Team block = team_of(blockDim.x);
    given = join_team(block, given, Sum());
    const u32 kept = join_team(block, takes_part ? 1u : 0u, Sum());
    if (threadIdx.x == 0) {
        a.given[blockIdx.x] = given;
        a.kept[blockIdx.x] = kept;
    }
}

GPU_DEFINE(cross_entropy) {
    const RowWalk<0> walk(a.rows);
    const i32 wanted = class_of(a, walk);
    const RowSum sum = row_sum(walk, a.rows.input[0]);
    const bool speaks = walk.valid && walk.team.member == 0;
    const bool takes_part = speaks && wanted != LEFT_OUT;
    const float log_sum = logf(sum.sum);
    if (speaks && a.sums) {
        a.sums[walk.row] = sum.largest;
        a.sums[a.rows.rows + walk.row] = log_sum;
    }
    float loss = 0;
    if (takes_part)
        loss = log_sum + (sum.largest - load_float(a.rows.input[0], walk.begin + wanted));
    keep_of_block(a, loss, takes_part);
}

// A row is right if none before its class is as large, and none behind it is larger. A NaN in the
// row makes it wrong.
GPU_DEFINE(accuracy) {
    const RowWalk<0> walk(a.rows);
    const i32 wanted = class_of(a, walk);
    const bool takes_part = wanted != LEFT_OUT;
    const i64 own = walk.begin + wanted;
    const float value = takes_part ? load_float(a.rows.input[0], own) : 0;
    u32 winners = 0;
    walk.each([&](int number, const Part &at) {
        float other[EIGHT];
        (void)number;
        walk.load(a.rows.input[0], at, -INFINITY, other);
#pragma unroll
        for (int i = 0; i < EIGHT; i++)
            if (walk.has(at.first + i))
                winners += !(at.first + i < own ? other[i] < value : other[i] <= value);
    });
    winners = join_team(walk.team, winners, Sum());
    const bool counts = takes_part && walk.team.member == 0;
    keep_of_block(a, counts && winners == 0 ? 1 : 0, counts);
}

// The mean over the rows that take part, of what their blocks kept.
GPU_DEFINE(class_mean) {
    const Team block = team_of(blockDim.x);
    float given = 0, kept = 0;
    for (i64 i = threadIdx.x; i < a.count; i += blockDim.x) {
        given += a.given[i];
        kept += (float)a.kept[i];
    }
    given = join_team(block, given, Sum());
    kept = join_team(block, kept, Sum());
    if (threadIdx.x == 0)
        store_float(a.output, 0, kept > 0 ? given / kept : NAN);
}

// ---- the gradient -------------------------------------------------------------------------------

// How many of a block's rows take part. Says of the others what is wrong with them.
GPU_DEFINE(class_count) {
    const i64 begin = (i64)blockIdx.x * CLASSES_OF_BLOCK;
    const i64 end = min(begin + CLASSES_OF_BLOCK, a.rows.rows);
    u32 kept = 0;
    for (i64 row = begin + threadIdx.x; row < end; row += blockDim.x) {
        const i32 wanted = load_class(a.classes, row);
        kept += value_holds(a.values, row, wanted) && wanted != LEFT_OUT;
    }
    kept = join_team(team_of(blockDim.x), kept, Sum());
    if (threadIdx.x == 0)
        a.kept[blockIdx.x] = kept;
}

// What the loss's gradient is to each row that takes part.
static __device__ __forceinline__ float share_of_row(const EntropyBackwardArguments &a) {
    float kept = 0;
    for (u32 i = 0; i < a.counts; i++)
        kept += (float)a.kept[i];
    return kept > 0 ? load_float(a.gradient, 0) / kept : 0;
}

struct RowFacts {
    float largest, log_sum;
    i32 wanted;
};

static __device__ __forceinline__ RowFacts facts_of(const EntropyBackwardArguments &a, i64 row) {
    return RowFacts{load_float(a.sums, row), load_float(a.sums, a.rows + row),
                    load_class(a.classes, row)};
}

static __device__ __forceinline__ float gradient_of(float logit, const RowFacts &row, i64 column,
                                                    float share) {
    const float probability = expf(logit - row.largest - row.log_sum);
    return row.wanted == LEFT_OUT ? 0 : share * (probability - (column == row.wanted ? 1 : 0));
}

// Each element by itself, wherever its row ends.
GPU_DEFINE(cross_entropy_backward) {
    const float share = share_of_row(a);
    const i64 count = a.rows * a.length, step = (i64)blockDim.x * EIGHT;
    const i64 begin = (i64)blockIdx.x * ENTROPY_STEPS * step + (i64)threadIdx.x * EIGHT;
    for (int k = 0; k < ENTROPY_STEPS; k++) {
        const i64 first = begin + k * step;
        if (first >= count)
            return;
        const bool whole = a.wide && first + EIGHT <= count;
        float value[EIGHT];
        if (whole)
            load_eight(a.logits, first, value);
        i64 row = quotient(first, a.length);
        i64 column = first - row * a.length;
        RowFacts facts = facts_of(a, row);
#pragma unroll
        for (int i = 0; i < EIGHT; i++) {
            if (!whole && first + i >= count)
                break;
            if (column == a.length) {
                facts = facts_of(a, ++row);
                column = 0;
            }
            const float logit = whole ? value[i] : load_float(a.logits, first + i);
            value[i] = gradient_of(logit, facts, column++, share);
            if (!whole)
                store_float(a.output, first + i, value[i]);
        }
        if (whole)
            store_eight(a.output, first, value);
    }
}
