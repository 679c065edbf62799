// Layer normalisation of rows that fit into a team's registers. What is longer goes as the sets of
// group normalisation do (norm_sets.cu).
#include "gpu/kernels/rows.h"

// What weight or bias have for a part of a row.
template <class Walk>
static __device__ __forceinline__ void load_weights(const NormRowArguments &a, const Walk &walk,
                                                    const Operand &from, const Part &at,
                                                    float missing, float *value) {
    const i64 column = at.first - walk.begin;
    if (from.kind == OPERAND_WIDE && a.divides) {
        load_eight(from, column, value);
        return;
    }
#pragma unroll
    for (int i = 0; i < EIGHT; i++)
        value[i] = from.kind != OPERAND_ABSENT && walk.has(at.first + i)
                       ? load_float(from, column + i)
                       : missing;
}

GPU_DEFINE(layer_norm) {
    const RowWalk<ROW_CHUNKS> walk(a.rows);
    RowValues<ROW_CHUNKS> x;
    const float share = 1 / (float)a.rows.length;
    float sum = 0, squares = 0;
    walk.each([&](int number, const Part &at) {
        sum += sum_of_eight(x.load(walk, number, a.rows.input[0], at, 0));
    });
    const float mean = join_team(walk.team, sum, Sum()) * share;
    walk.each([&](int number, const Part &at) {
        float *value = x.value[number], square[EIGHT];
#pragma unroll
        for (int i = 0; i < EIGHT; i++) {
            value[i] -= mean;
            square[i] = at.whole || walk.has(at.first + i) ? value[i] * value[i] : 0;
        }
        squares += sum_of_eight(square);
    });
    const float variance = join_team(walk.team, squares, Sum()) * share;
    const float inverse = 1 / sqrtf(variance + a.epsilon);
    walk.each([&](int number, const Part &at) {
        float *value = x.value[number], weight[EIGHT], bias[EIGHT];
        load_weights(a, walk, a.weight, at, 1, weight);
        load_weights(a, walk, a.bias, at, 0, bias);
#pragma unroll
        for (int i = 0; i < EIGHT; i++)
            value[i] = value[i] * inverse * weight[i] + bias[i];
        walk.store(a.rows.output, at, value);
    });
    if (walk.valid && walk.team.member == 0) {
        store_float(a.mean, walk.row, mean);
        store_float(a.inverse, walk.row, inverse);
    }
}

// ---- the gradient -------------------------------------------------------------------------------

// What weights and biases get of a thread's columns, of all rows that its team has seen.
struct ColumnSums {
    float products[PAIR_CHUNKS][EIGHT], gradients[PAIR_CHUNKS][EIGHT];
};

// With n = (x - mean) / deviation and g = dy * weight:
//     dx = (g - mean(g) - n * mean(g * n)) / deviation.
static __device__ __forceinline__ void gradient_of_row(const NormRowArguments &a,
                                                       const RowWalk<PAIR_CHUNKS> &walk,
                                                       ColumnSums &of_columns) {
    RowValues<PAIR_CHUNKS> g, n;
    const float mean = walk.valid ? load_float(a.mean, walk.row) : 0;
    const float inverse = walk.valid ? load_float(a.inverse, walk.row) : 0;
    float sum = 0, products = 0;
    walk.each([&](int number, const Part &at) {
        float *gradient = g.load(walk, number, a.rows.input[0], at, 0);
        float weight[EIGHT], own[EIGHT], product[EIGHT];
        load_weights(a, walk, a.weight, at, 1, weight);
#pragma unroll
        for (int i = 0; i < EIGHT; i++) {
            own[i] = gradient[i];
            gradient[i] *= weight[i];
        }
        float *normal = n.load(walk, number, a.rows.input[1], at, 0);
#pragma unroll
        for (int i = 0; i < EIGHT; i++) {
            normal[i] = (normal[i] - mean) * inverse;
            of_columns.products[number][i] += own[i] * normal[i];
            of_columns.gradients[number][i] += own[i];
            product[i] = at.whole || walk.has(at.first + i) ? gradient[i] * normal[i] : 0;
        }
        sum += sum_of_eight(gradient);
        products += sum_of_eight(product);
    });
    const float share = 1 / (float)a.rows.length;
    sum = join_team(walk.team, sum, Sum()) * share;
    products = join_team(walk.team, products, Sum()) * share;
    walk.each([&](int number, const Part &at) {
        float *gradient = g.value[number];
        const float *normal = n.value[number];
#pragma unroll
        for (int i = 0; i < EIGHT; i++)
            gradient[i] = (gradient[i] - sum - normal[i] * products) * inverse;
        walk.store(a.rows.output, at, gradient);
    });
}

enum { SUMS_BLOCK = 256, THREAD_COLUMNS = PAIR_CHUNKS * EIGHT };

// Adds up what the teams of a block have of the same columns, and keeps it as the block's part.
static __device__ __forceinline__ void keep_columns(Team team, float *part, i64 columns,
                                                    const float (&own)[PAIR_CHUNKS][EIGHT]) {
    SHARED(float, between, SUMS_BLOCK *THREAD_COLUMNS);
    const u32 teams = blockDim.x / team.size;
    if (teams > 1) {
        __syncthreads(); // the last call's have been read
#pragma unroll
        for (int k = 0; k < THREAD_COLUMNS; k++)
            between[k * SUMS_BLOCK + threadIdx.x] = own[k / EIGHT][k % EIGHT];
        __syncthreads();
    }
    if (threadIdx.x >= team.size)
        return;
#pragma unroll
    for (int k = 0; k < THREAD_COLUMNS; k++) {
        float sum = own[k / EIGHT][k % EIGHT];
        for (u32 i = 1; i < teams; i++)
            sum += between[k * SUMS_BLOCK + i * team.size + threadIdx.x];
        const i64 column = ((i64)(k / EIGHT) * team.size + threadIdx.x) * EIGHT + k % EIGHT;
        if (column < columns)
            part[column] = sum;
    }
}

// Many rows one after the other, and on the way what weights and biases get: of rows that parts of
// eight divide, so that a thread has the same columns of each.
GPU_DEFINE(layer_norm_backward) {
    ColumnSums sums;
#pragma unroll
    for (int k = 0; k < THREAD_COLUMNS; k++)
        sums.products[k / EIGHT][k % EIGHT] = sums.gradients[k / EIGHT][k % EIGHT] = 0;
    const Team team = team_of(a.rows.team);
    const i64 begin = blockIdx.x * a.part, end = min(begin + a.part, a.rows.rows);
    const u32 teams = blockDim.x / team.size;
    for (i64 row = begin; row < end; row += teams) {
        const i64 own = row + threadIdx.x / team.size;
        gradient_of_row(a, RowWalk<PAIR_CHUNKS>(a.rows, own, end), sums);
    }
    float *const part = a.partial + blockIdx.x * a.rows.length;
    keep_columns(team, part, a.rows.length, sums.products);
    keep_columns(team, part + gridDim.x * a.rows.length, a.rows.length, sums.gradients);
}
