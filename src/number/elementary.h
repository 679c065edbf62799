// number/elementary.h: the elementary functions that host and card must agree on to the bit.
//
// A polynomial of fused steps gives one result wherever it is computed, which no library's function
// promises: random numbers are made of these (kernel/random.h). Minimax over the reduced range, a
// few units of the last place from the truth, without branches or tables, so that the compiler
// turns loops over them into vectors. A processor without fused steps (x86-64 before its third
// level) rounds each twice and agrees with none but its like. Any thread.
#pragma once

#include <math.h>
#include <stdbool.h>
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
ELEMENTARY_INLINE uint32_t math_two_over_pi(uint32_t number) {
    uint32_t digits = 0;
    digits = number == 1 ? 0xA2F9836Eu : digits;
    digits = number == 2 ? 0x4E441529u : digits;
    digits = number == 3 ? 0xFC2757D1u : digits;
    digits = number == 4 ? 0xF534DDC0u : digits;
    digits = number == 5 ? 0xDB629599u : digits;
    digits = number == 6 ? 0x3C439041u : digits;
    digits = number == 7 ? 0xFE5163ABu : digits;
    return digits;
}

// How many quarter turns a finite magnitude of 1/2 or more is: those left over of whole turns, in
// units of 2^-62. A product of its 24 bits with 96 of 2 / pi: those before them are whole turns,
// those behind do not count (no fp32 is nearer to a quarter than about 2^-29).
ELEMENTARY_INLINE uint64_t math_quarters(uint32_t bits) {
    uint32_t significand = (bits & 0x7FFFFF) | 0x800000;
    uint32_t place = (bits >> 23) - 120; // of the first digit that counts; 32 is the point's
    uint32_t word = place >> 5, shift = place & 31;
    uint32_t part[4], digits[3];
    for (uint32_t i = 0; i < 4; i++)
        part[i] = math_two_over_pi(word + i);
    for (uint32_t i = 0; i < 3; i++)
        digits[i] = (uint32_t)((((uint64_t)part[i] << 32 | part[i + 1]) << shift) >> 32);
    uint64_t low = (uint64_t)significand * digits[2];
    uint64_t middle = (uint64_t)significand * digits[1] + (low >> 32);
    uint64_t high = (uint64_t)significand * digits[0] + (middle >> 32);
    return high << 32 | (middle & 0xFFFFFFFFu);
}

// cos and sin of any number, however large.
ELEMENTARY_INLINE void math_cos_sin_of(float x, float *cosine, float *sine) {
    uint32_t bits = number_bits_of_fp32(x), magnitude = bits & 0x7FFFFFFF;
    float size = number_fp32_of_bits(magnitude);
    uint64_t turned = math_quarters(magnitude);
    uint32_t quarter = (uint32_t)((turned + ((uint64_t)1 << 61)) >> 62);
    int64_t over = (int64_t)(turned - ((uint64_t)quarter << 62));
    bool is_small = size < 0.75f; // less than half a quarter
    float rest = is_small ? size * 0.6366197724f : (float)over * 0x1p-62f;
    math_of_quarter(rest, is_small ? 0 : quarter, cosine, sine);
    uint32_t turned_sine = number_bits_of_fp32(*sine) ^ (bits & 0x80000000);
    *sine = size < 0x1p-12f ? x : number_fp32_of_bits(turned_sine);
    bool is_finite = magnitude < 0x7F800000;
    *sine = is_finite ? *sine : x - x;
    *cosine = is_finite ? *cosine : x - x;
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
