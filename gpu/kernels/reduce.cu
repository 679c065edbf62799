// Sums, means and extremes over any dimensions of an array of any strides.
//
// Where neighbours are reduced, a team has an output, and its threads walk along (`rows`); where
// neighbours stay, they are of neighbouring threads, and a block's rows of threads walk down
// (`columns`). What takes long is cut into parts, whose results are reduced in turn.
#include "gpu/kernels/columns.h"
#include "gpu/kernels/team.h"

struct SumRule {
    static __device__ __forceinline__ float first() { return 0; }
    __device__ __forceinline__ float operator()(float a, float b) const { return a + b; }
};
// A NaN stays: nothing is larger or smaller than it.
struct MaxRule {
    static __device__ __forceinline__ float first() { return -INFINITY; }
    __device__ __forceinline__ float operator()(float a, float b) const {
        return b > a || b != b ? b : a;
    }
};
struct MinRule {
    static __device__ __forceinline__ float first() { return INFINITY; }
    __device__ __forceinline__ float operator()(float a, float b) const {
        return b < a || b != b ? b : a;
    }
};

template <class Rule>
static __device__ __forceinline__ float join_eight(const float *value, Rule rule) {
    return rule(rule(rule(value[0], value[1]), rule(value[2], value[3])),
                rule(rule(value[4], value[5]), rule(value[6], value[7])));
}

static __device__ __forceinline__ float element(const ReduceArguments &a, i64 base, i64 index) {
    return load_one(a.input, base + strided(a.along, a.reduced, index));
}

// ---- along --------------------------------------------------------------------------------------

// What lies between two elements, one behind the other, cut where sixteen bytes are.
template <class Rule>
static __device__ __forceinline__ float walk_wide(const ReduceArguments &a, Team team, i64 begin,
                                                  i64 end, Rule rule) {
    float result = Rule::first();
    i64 at = begin / EIGHT * EIGHT + (i64)team.member * EIGHT;
#pragma unroll 2
    for (; at < end; at += (i64)team.size * EIGHT) {
        float value[EIGHT];
        if (at >= begin && at + EIGHT <= end) {
            load_eight(a.input, at, value);
        } else {
#pragma unroll
            for (int i = 0; i < EIGHT; i++)
                value[i] =
                    at + i >= begin && at + i < end ? load_float(a.input, at + i) : Rule::first();
        }
        result = rule(result, join_eight(value, rule));
    }
    return result;
}

template <class Rule>
static __device__ __forceinline__ void reduce_rows(const ReduceArguments &a, Rule rule) {
    const Team team = team_of(a.team);
    const i64 output = ((i64)blockIdx.x * blockDim.x + threadIdx.x) / team.size;
    const bool valid = output < a.kept.count;
    const i64 begin = (i64)blockIdx.y * a.part;
    const i64 end = valid ? min(begin + a.part, a.reduced.count) : begin;
    const i64 base = valid ? strided(a.input, a.kept, output) : 0;
    float result = Rule::first();
    if (a.wide)
        result = walk_wide(a, team, base + begin, base + end, rule);
    else
        for (i64 i = begin + team.member; i < end; i += team.size)
            result = rule(result, element(a, base, i));
    result = join_team(team, result, rule);
    if (valid && team.member == 0)
        store_float(a.output, blockIdx.y * a.kept.count + output, result / a.divisor);
}

// ---- down ---------------------------------------------------------------------------------------

// Of `width` neighbouring outputs a thread.
template <int width, class Rule>
static __device__ __forceinline__ void reduce_columns(const ReduceArguments &a, Rule rule) {
    const ColumnWalk<width> walk(a.team, a.kept.count, a.reduced.count, a.part);
    const i64 base = walk.valid ? strided(a.input, a.kept, walk.column) : 0;
    float result[width];
#pragma unroll
    for (int k = 0; k < width; k++)
        result[k] = Rule::first();
#pragma unroll 2
    for (i64 i = walk.begin + walk.row; i < walk.end; i += walk.down) {
        float value[EIGHT];
        if (width == EIGHT)
            load_eight(a.input, base + strided(a.along, a.reduced, i), value);
        else
            value[0] = element(a, base, i);
#pragma unroll
        for (int k = 0; k < width; k++)
            result[k] = rule(result[k], value[k]);
    }
    walk.join(result, rule);
    if (walk.valid && walk.row == 0)
#pragma unroll
        for (int k = 0; k < width; k++)
            store_float(a.output, blockIdx.y * a.kept.count + walk.column + k,
                        result[k] / a.divisor);
}

#define REDUCE(name, Rule)                    \
    GPU_DEFINE(name##_rows) {                 \
        reduce_rows(a, Rule());               \
    }                                         \
    GPU_DEFINE(name##_columns) {              \
        if (a.wide)                           \
            reduce_columns<EIGHT>(a, Rule()); \
        else                                  \
            reduce_columns<1>(a, Rule());     \
    }
REDUCE(sum, SumRule)
REDUCE(max, MaxRule)
REDUCE(min, MinRule)
