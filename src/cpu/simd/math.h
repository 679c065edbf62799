// cpu/simd/math.h: elementary functions in fp32, for loops that the compiler turns into vectors.
//
// Polynomials fitted for this purpose (minimax over the reduced range), a few units of the last
// place from the truth, without branches or tables. Infinities, zeros and NaN come out right;
// denormal results may be flushed to zero. The logarithm, and others that a card computes too, lie
// in number/elementary.h. For the files of this folder only; any thread.
#pragma once

#include <math.h>
#include <stdint.h>

#include "number/elementary.h"

#define MATH_INLINE static inline __attribute__((always_inline, unused))

// e^x over 2^whole.
MATH_INLINE float math_exp_of_rest(float x, float whole) {
    float r = math_fma(whole, -0x1.62e4p-1f, x);
    r = math_fma(whole, -0x1.7f7d1cp-20f, r);
    float p = 0.001392621414f;
    p = math_fma(p, r, 0.008363203511f);
    p = math_fma(p, r, 0.04166655443f);
    p = math_fma(p, r, 0.1666657684f);
    p = math_fma(p, r, 0.5f);
    return math_fma(p * r, r, r) + 1.0f;
}

MATH_INLINE float math_exp(float x) {
    float bounded = x < -104.0f ? -104.0f : x;
    bounded = bounded > 89.0f ? 89.0f : bounded;
    float shifted = math_fma(bounded, 0x1.715476p+0f, MATH_ROUNDER);
    float p = math_exp_of_rest(bounded, shifted - MATH_ROUNDER);
    // Two powers of two, since 2^128 is past what one can be.
    int32_t power = (int32_t)(number_bits_of_fp32(shifted) - number_bits_of_fp32(MATH_ROUNDER));
    int32_t half = power >> 1;
    float result = p * number_fp32_of_bits((uint32_t)(half + 127) << 23) *
                   number_fp32_of_bits((uint32_t)(power - half + 127) << 23);
    return x != x ? x : result;
}

// The same numbers where |x| < 87 or x is NaN.
MATH_INLINE float math_exp_of_moderate(float x) {
    float shifted = math_fma(x, 0x1.715476p+0f, MATH_ROUNDER);
    uint32_t power = number_bits_of_fp32(shifted) - number_bits_of_fp32(MATH_ROUNDER) + 127;
    return math_exp_of_rest(x, shifted - MATH_ROUNDER) * number_fp32_of_bits(power << 23);
}

MATH_INLINE float math_log1p(float x) {
    float sum = 1.0f + x;
    float lost = x - (sum - 1.0f);
    float corrected = math_log(sum) + lost / sum;
    return sum > 0x1p25f || sum == 0.0f ? math_log(sum) : corrected;
}

MATH_INLINE float math_tanh(float x) {
    float magnitude = fabsf(x), t = x * x;
    float p = 0.002269501684f;
    p = math_fma(p, t, -0.008323187058f);
    p = math_fma(p, t, 0.02176250291f);
    p = math_fma(p, t, -0.05395846163f);
    p = math_fma(p, t, 0.1333330015f);
    p = math_fma(p, t, -0.3333333315f);
    float small = math_fma(p * t, x, x);
    float large = copysignf(1.0f - 2.0f / (math_exp(2.0f * magnitude) + 1.0f), x);
    return magnitude < 0.625f ? small : large;
}

MATH_INLINE float math_erf(float x) {
    float magnitude = fabsf(x), t = x * x;
    float p = -9.667044571e-6f;
    p = math_fma(p, t, 0.0001126595903f);
    p = math_fma(p, t, -0.0008484080406f);
    p = math_fma(p, t, 0.005221031808f);
    p = math_fma(p, t, -0.02686543073f);
    p = math_fma(p, t, 0.112837825f);
    p = math_fma(p, t, -0.3761263847f);
    p = math_fma(p, t, 1.128379167f);
    float small = p * x;
    // Beyond 4, 1 - erfc rounds to 1; the polynomial is the negative logarithm of erfc.
    float m = magnitude > 4.0f ? 4.0f : magnitude;
    float q = 4.453896388e-8f;
    q = math_fma(q, m, -2.594339321e-6f);
    q = math_fma(q, m, 5.493616927e-5f);
    q = math_fma(q, m, -0.000643316471f);
    q = math_fma(q, m, 0.004910779965f);
    q = math_fma(q, m, -0.02673623389f);
    q = math_fma(q, m, 0.110499571f);
    q = math_fma(q, m, 0.6314834945f);
    q = math_fma(q, m, 1.130388423f);
    q = math_fma(q, m, -0.0003495821141f);
    float large = copysignf(1.0f - math_exp_of_moderate(-q), x);
    return x != x ? x : magnitude < 0.9375f ? small : large;
}
