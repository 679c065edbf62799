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

// With n = (x - mean) / deviation and g = dy * weight:
//     dx = (g - mean(g) - n * mean(g * n)) / deviation.
GPU_DEFINE(layer_norm_backward) {
    const RowWalk<PAIR_CHUNKS> walk(a.rows);
    RowValues<PAIR_CHUNKS> g, n;
    const float mean = walk.valid ? load_float(a.mean, walk.row) : 0;
    const float inverse = walk.valid ? load_float(a.inverse, walk.row) : 0;
    const float share = 1 / (float)a.rows.length;
    float sum = 0, products = 0;
    walk.each([&](int number, const Part &at) {
        float *gradient = g.load(walk, number, a.rows.input[0], at, 0);
        float *normal = n.load(walk, number, a.rows.input[1], at, 0);
        float weight[EIGHT], product[EIGHT];
        load_weights(a, walk, a.weight, at, 1, weight);
#pragma unroll
        for (int i = 0; i < EIGHT; i++) {
            gradient[i] *= weight[i];
            normal[i] = (normal[i] - mean) * inverse;
            product[i] = at.whole || walk.has(at.first + i) ? gradient[i] * normal[i] : 0;
        }
        sum += sum_of_eight(gradient);
        products += sum_of_eight(product);
    });
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
