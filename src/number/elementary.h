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

// cos and sin of `rest` of a quarter turn, -1/2 <= rest <= 1/2, and `quarter` quarters before it.
ELEMENTARY_INLINE void math_of_quarter(float rest, uint32_t quarter, float *cosine, float *sine) {
    float t = rest * rest;
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

// cos and sin of `turns` whole turns, 0 <= turns < 1: the quarter is taken off exactly.
ELEMENTARY_INLINE void math_cos_sin(float turns, float *cosine, float *sine) {
    float shifted = 4.0f * turns + MATH_ROUNDER;
    uint32_t quarter = number_bits_of_fp32(shifted);
    float rest = 4.0f * turns - (shifted - MATH_ROUNDER);
    math_of_quarter(rest, quarter, cosine, sine);
}

// 32 digits of 2 / pi in base 2, from digit 32 (number - 1) + 1 behind the point on.
ELEMENTARY_INLINE uint64_t math_two_over_pi(uint32_t number) {
    static const uint32_t digits[9] = {0,           0xA2F9836Eu, 0x4E441529u,
                                       0xFC2757D1u, 0xF534DDC0u, 0xDB629599u,
                                       0x3C439041u, 0xFE5163ABu, 0};
    return digits[number];
}

// How many quarter turns a finite magnitude of 1/2 or more is: those left over of whole turns, in
// units of 2^-62. A product of its 24 bits with 96 of 2 / pi: those before them are whole turns,
// those behind do not count (no fp32 is nearer to a quarter than about 2^-29).
ELEMENTARY_INLINE uint64_t math_quarters(uint32_t bits) {
    uint64_t significand = (bits & 0x7FFFFF) | 0x800000;
    uint32_t exponent = bits >> 23, least = 120;
    uint32_t place =
        (exponent < least ? least : exponent) - least; // of the first digit that counts
    uint32_t word = place >> 5;
    uint64_t shift = place & 31;
    uint64_t a = math_two_over_pi(word), b = math_two_over_pi(word + 1);
    uint64_t c = math_two_over_pi(word + 2), d = math_two_over_pi(word + 3);
    uint64_t low = significand * (((c << 32 | d) << shift) >> 32);
    uint64_t middle = significand * (((b << 32 | c) << shift) >> 32) + (low >> 32);
    uint64_t high = significand * (((a << 32 | b) << shift) >> 32) + (middle >> 32);
    return high << 32 | (middle & 0xFFFFFFFFu);
}

// cos and sin of any number, however large. Nothing branches, so that loops become vectors.
ELEMENTARY_INLINE void math_cos_sin_of(float x, float *cosine, float *sine) {
    uint32_t bits = number_bits_of_fp32(x), magnitude = bits & 0x7FFFFFFF;
    float size = number_fp32_of_bits(magnitude);
    uint64_t turned = math_quarters(magnitude);
    uint64_t quarter = (turned + ((uint64_t)1 << 61)) >> 62;
    int64_t over = (int64_t)(turned - (quarter << 62));
    uint32_t is_small = 0u - (uint32_t)(size < 0.75f); // less than half a quarter
    // In two parts: few processors convert 64 bits.
    float above = (float)(int32_t)(over >> 32) * 0x1p-30f;
    float rest = above + (float)(int32_t)((uint32_t)over >> 8) * 0x1p-54f;
    rest = size < 0.75f ? size * 0.6366197724f : rest;
    math_of_quarter(rest, (uint32_t)quarter & ~is_small, cosine, sine);
    float signed_sine = number_fp32_of_bits(number_bits_of_fp32(*sine) ^ (bits & 0x80000000));
    float lost = x - x; // NaN of what is not finite
    *sine = size < 0x1p-12f ? x : signed_sine + lost;
    *cosine = *cosine + lost;
}

ELEMENTARY_INLINE float math_sin(float x) {
    float cosine, sine;
    math_cos_sin_of(x, &cosine, &sine);
    return sine;
}

ELEMENTARY_INLINE float math_cos(float x) {
    float cosine, sine;
    math_cos_sin_of(x, &cosine, &sine);
    return cosine;
}
