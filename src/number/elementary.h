// number/elementary.h: the elementary functions that host and card must agree on to the bit.
//
// A polynomial of fused steps gives one result wherever it is computed, which no library's function
// promises: random numbers are made of these (kernel/random.h). Minimax over the reduced range, a
// few units of the last place from the truth, without branches or tables, so that the compiler
// turns loops over them into vectors. A processor without fused steps (x86-64 before its third
// level) rounds each twice and agrees with none but its like. Any thread.
#pragma once

#include <math.h>
#include <stdint.h>

#include "number/inline.h"

#define ELEMENTARY_INLINE KERNEL_INLINE __attribute__((always_inline, unused))

// Fused where the processor does it in one step, else two roundings. Cards do it in one, and C++ is
// what kernels are written in.
ELEMENTARY_INLINE float math_fma(float a, float b, float c) {
#if defined(__FMA__) || defined(__ARM_FEATURE_FMA)
    return __builtin_fmaf(a, b, c);
#elif defined(__cplusplus)
    return fmaf(a, b, c);
#else
    return a * b + c;
#endif
}

// Added to a small number, it leaves the nearest whole one in the low bits.
#define MATH_ROUNDER 0x1.8p23f

// The logarithm of a positive finite number, given as significand bits and exponent.
ELEMENTARY_INLINE float math_log(float x) {
    const uint32_t root_half = 0x3F3504F3; // sqrt(1/2)
    uint32_t bits = number_bits_of_fp32(x) - root_half;
    float exponent = (float)((int32_t)bits >> 23);
    float f = number_fp32_of_bits((bits & 0x7FFFFF) + root_half) - 1.0f;
    float p = 0.06971611471f;
    p = math_fma(p, f, -0.1147973385f);
    p = math_fma(p, f, 0.1168541992f);
    p = math_fma(p, f, -0.1242568733f);
    p = math_fma(p, f, 0.1424905765f);
    p = math_fma(p, f, -0.1666780232f);
    p = math_fma(p, f, 0.2000071575f);
    p = math_fma(p, f, -0.2499999696f);
    p = math_fma(p, f, 0.3333333118f);
    float square = f * f;
    float tail = math_fma(exponent, 0x1.7f7d1cp-20f, p * f * square);
    tail = math_fma(-0.5f, square, tail);
    float result = math_fma(exponent, 0x1.62e4p-1f, f + tail);
    result = x == 0.0f ? -INFINITY : result;
    result = x > 0x1.fffffep127f ? x : result;
    return x < 0.0f || x != x ? NAN : result;
}

// cos and sin of `turns` whole turns, 0 <= turns < 1: the quarter is taken off exactly.
ELEMENTARY_INLINE void math_cos_sin(float turns, float *cosine, float *sine) {
    float shifted = 4.0f * turns + MATH_ROUNDER;
    uint32_t quarter = number_bits_of_fp32(shifted);
    float rest = 4.0f * turns - (shifted - MATH_ROUNDER), t = rest * rest;
    float s = 0.0001582063036f;
    s = math_fma(s, t, -0.004681266257f);
    s = math_fma(s, t, 0.07969258273f);
    s = math_fma(s, t, -0.6459640961f);
    s = math_fma(s, t, 1.570796327f) * rest;
    float c = 0.0009036280664f;
    c = math_fma(c, t, -0.0208600695f);
    c = math_fma(c, t, 0.2536692037f);
    c = math_fma(c, t, -1.233700541f);
    c = math_fma(c, t, 1.0f);
    uint32_t swap = 0u - (quarter & 1);
    uint32_t sine_bits = number_bits_of_fp32(s), cosine_bits = number_bits_of_fp32(c);
    uint32_t new_sine = (cosine_bits & swap) | (sine_bits & ~swap);
    uint32_t new_cosine = (sine_bits & swap) | (cosine_bits & ~swap);
    *sine = number_fp32_of_bits(new_sine ^ ((quarter & 2) << 30));
    *cosine = number_fp32_of_bits(new_cosine ^ (((quarter + 1) & 2) << 30));
}
