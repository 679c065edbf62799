// cpu/simd/gemm_activation.h: the activations that a matrix product can end with, on vectors.
// Within two units in the last place; NaN stays NaN. For the files of this folder only.
#pragma once

#include "cpu/gemm.h"
#include "cpu/simd/vector.h"

// e^value, from 2^-126 to 2^126. The polynomial interpolates (e^r - 1 - r) / r^2 at Chebyshev's
// points of |r| <= ln(2)/2; its error is 1e-8 of the result.
ALWAYS_INLINE Vector vector_exp(Vector value) {
    value = vector_select((Words)(value > 87.0f), vector_all(87.0f), value);
    value = vector_select((Words)(value < -87.0f), vector_all(-87.0f), value);
    // The last bit of 1.5 * 2^23 is worth one: adding it rounds to a whole number.
    const Vector whole = vector_all(0x1.8p23f);
    Vector shifted = vector_multiply_add(value, vector_all(1.44269504f), whole);
    Vector power = shifted - whole;
    // ln 2 in two parts, the first short enough for exact products.
    Vector rest = vector_multiply_add(power, vector_all(-0x1.62e4p-1f), value);
    rest = vector_multiply_add(power, vector_all(-0x1.7f7d1cp-20f), rest);
    Vector sum = vector_all(0.001392618180676722f);
    sum = vector_multiply_add(sum, rest, vector_all(0.008363177629993005f));
    sum = vector_multiply_add(sum, rest, vector_all(0.04166655462791885f));
    sum = vector_multiply_add(sum, rest, vector_all(0.16666576998243018f));
    sum = vector_multiply_add(sum, rest, vector_all(0.5f));
    sum = vector_multiply_add(sum, rest * rest, rest) + 1.0f;
    Words exponent = ((Words)shifted - (Words)whole + 127) << 23;
    return sum * (Vector)exponent;
}

ALWAYS_INLINE Vector vector_sigmoid(Vector value) {
    return 1.0f / (1.0f + vector_exp(-value));
}

ALWAYS_INLINE Vector vector_tanh(Vector value) {
    Words sign = (Words)value & INT32_MIN;
    Vector magnitude = (Vector)((Words)value & INT32_MAX);
    Vector small = vector_exp(-2.0f * magnitude);
    Vector large_result = (Vector)((Words)((1.0f - small) / (1.0f + small)) | sign);
    // Near 0 the difference above loses its digits; tanh(x)/x as a polynomial of x^2 does not.
    Vector square = value * value;
    Vector sum = vector_all(0.0022927449333731836f);
    sum = vector_multiply_add(sum, square, vector_all(-0.008343945656841063f));
    sum = vector_multiply_add(sum, square, vector_all(0.021768918714323755f));
    sum = vector_multiply_add(sum, square, vector_all(-0.053959259590127734f));
    sum = vector_multiply_add(sum, square, vector_all(0.13333303557030274f));
    sum = vector_multiply_add(sum, square, vector_all(-0.3333333317214348f));
    Vector small_result = vector_multiply_add(value * square, sum, value);
    return vector_select((Words)(magnitude < 0.625f), small_result, large_result);
}

ALWAYS_INLINE Vector activate(Vector value, GemmActivation activation) {
    switch (activation) {
    case GEMM_ACTIVATION_RELU: return vector_at_least(value, (Vector){0});
    case GEMM_ACTIVATION_TANH: return vector_tanh(value);
    case GEMM_ACTIVATION_SIGMOID: return vector_sigmoid(value);
    default: return value;
    }
}
