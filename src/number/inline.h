// number/inline.h: one number at a time, for loops that the compiler turns into vectors.
//
// Every function is branch-light integer code, written so that gcc and clang vectorise a loop over
// it at every level; kernels call them from their own simd/ files, any thread. Results are those of
// number/format.h bit for bit (of a NaN only that it is one), also in a thread that flushes
// denormals: fp32 subnormals are only ever handled as integers, or added to a number so large that
// they vanish by rounding anyway. The rounding mode of the thread must be the default.
//
// AVX512-BF16 has an instruction for fp32 to bf16; it loses subnormals and is not used. The fp16
// instructions (F16C) are right, and number_fp16_block_to_fp32 uses them where they exist.
#pragma once

#include <math.h>
#include <stdint.h>
#include <string.h>
#if defined(__F16C__)
#include <immintrin.h>
#endif

#include "base/kernel_inline.h"

KERNEL_INLINE uint32_t number_bits_of_fp32(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

KERNEL_INLINE float number_fp32_of_bits(uint32_t bits) {
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

// a < b ? yes : no, by masks: of a conditional expression gcc makes a branch when one side is the
// result of floating-point work, and then no vectors. The two compared are below 2^31 and compared
// as signed numbers, since few processors compare vectors of unsigned ones.
KERNEL_INLINE uint32_t number_select_(uint32_t a, uint32_t b, uint32_t yes, uint32_t no) {
    uint32_t mask = 0u - (uint32_t)((int32_t)a < (int32_t)b);
    return (yes & mask) | (no & ~mask);
}

enum { NUMBER_MAGNITUDE_ = 0x7FFFFFFF, NUMBER_INFINITY_ = 0x7F800000 };

// ---- the upper bits of fp32: bf16 and tf32 ------------------------------------------------------

KERNEL_INLINE float number_bf16_to_fp32(uint16_t bits) {
    return number_fp32_of_bits((uint32_t)bits << 16);
}

KERNEL_INLINE uint16_t number_fp32_to_bf16(float value) {
    uint32_t bits = number_bits_of_fp32(value);
    uint32_t rounded = bits + 0x7FFF + ((bits >> 16) & 1), quiet_nan = bits | 0x400000;
    return (
        uint16_t)(number_select_(NUMBER_INFINITY_, bits & NUMBER_MAGNITUDE_, quiet_nan, rounded) >>
                  16);
}

KERNEL_INLINE float number_fp32_through_bf16(float value) {
    return number_bf16_to_fp32(number_fp32_to_bf16(value));
}

KERNEL_INLINE float number_fp32_through_tf32(float value) {
    uint32_t bits = number_bits_of_fp32(value), magnitude = bits & NUMBER_MAGNITUDE_;
    uint32_t rounded = (bits + 0xFFF + ((bits >> 13) & 1)) & ~UINT32_C(0x1FFF);
    rounded = number_select_(NUMBER_INFINITY_, magnitude, bits | 0x400000, rounded);
    return number_fp32_of_bits(number_select_(magnitude, 0x800000, bits ^ magnitude, rounded));
}

// ---- fewer exponent bits: from fp16 down --------------------------------------------------------

// What a small format is made of. The constants fold away where these are inlined.
typedef struct NumberSmall {
    int exponent_bits, mantissa_bits;
    uint32_t overflow_from; // the first fp32 magnitude that rounds beyond the largest finite value
    uint32_t overflow;      // the pattern it gets
    uint32_t nan;
    uint32_t special_from; // the first pattern that is no number; beyond all where each is one
} NumberSmall;

// Functions, since a device does not see the constants of the host.
#define NUMBER_SMALL_(name, ...)                       \
    KERNEL_INLINE NumberSmall number_##name##_(void) { \
        const NumberSmall small = {__VA_ARGS__};       \
        return small;                                  \
    }
NUMBER_SMALL_(fp16, 5, 10, 0x477FF000, 0x7C00, 0x7E00, 0x7C00)
NUMBER_SMALL_(e4m3_saturating, 4, 3, 0x43E80001, 0x7E, 0x7F, 0x7F)
NUMBER_SMALL_(e4m3_special, 4, 3, 0x43E80001, 0x7F, 0x7F, 0x7F)
NUMBER_SMALL_(e5m2_saturating, 5, 2, 0x47700000, 0x7B, 0x7E, 0x7C)
NUMBER_SMALL_(e5m2_special, 5, 2, 0x47700000, 0x7C, 0x7E, 0x7C)
NUMBER_SMALL_(e3m2, 3, 2, 0x41F00000, 0x1F, 0x1F, 0x20)
NUMBER_SMALL_(e2m3, 2, 3, 0x40F80000, 0x1F, 0x1F, 0x20)
NUMBER_SMALL_(e2m1, 2, 1, 0x40E00000, 0x07, 0x07, 0x08)
#undef NUMBER_SMALL_

KERNEL_INLINE __attribute__((always_inline)) uint32_t number_encode_small_(float value,
                                                                           NumberSmall to) {
    const int shift = 23 - to.mantissa_bits;
    const int bias = (1 << (to.exponent_bits - 1)) - 1;
    const uint32_t smallest_normal = (uint32_t)(128 - bias) << 23;
    uint32_t bits = number_bits_of_fp32(value), magnitude = bits & NUMBER_MAGNITUDE_;
    uint32_t odd = (magnitude >> shift) & 1;
    uint32_t half = (UINT32_C(1) << (shift - 1)) - 1;
    uint32_t normal = (magnitude - ((uint32_t)(127 - bias) << 23) + half + odd) >> shift;
    // Added to a power of two whose last bit is worth one step of the subnormals, a number is
    // rounded to those steps by the adder.
    const uint32_t power = smallest_normal + ((uint32_t)shift << 23);
    float sum = number_fp32_of_bits(magnitude) + number_fp32_of_bits(power);
    uint32_t subnormal = number_bits_of_fp32(sum) - power;
    uint32_t result = number_select_(magnitude, smallest_normal, subnormal, normal);
    result = number_select_(magnitude, to.overflow_from, result, to.overflow);
    result = number_select_(NUMBER_INFINITY_, magnitude, to.nan, result);
    return result |
           (bits & ~(uint32_t)NUMBER_MAGNITUDE_) >> (31 - to.exponent_bits - to.mantissa_bits);
}

KERNEL_INLINE __attribute__((always_inline)) float number_decode_small_(uint32_t pattern,
                                                                        NumberSmall from) {
    const int width = from.exponent_bits + from.mantissa_bits;
    const int bias = (1 << (from.exponent_bits - 1)) - 1;
    const uint32_t smallest_normal = (uint32_t)(128 - bias) << 23;
    uint32_t magnitude = pattern & ((UINT32_C(1) << width) - 1);
    uint32_t sign = (pattern >> width) << 31;
    uint32_t shifted = magnitude << (23 - from.mantissa_bits);
    uint32_t normal = shifted + ((uint32_t)(127 - bias) << 23);
    // With the 1 that subnormals lack put in and taken away again, the subtraction normalises.
    float difference =
        number_fp32_of_bits(shifted + smallest_normal) - number_fp32_of_bits(smallest_normal);
    uint32_t subnormal = number_bits_of_fp32(difference);
    uint32_t result =
        number_select_(magnitude, UINT32_C(1) << from.mantissa_bits, subnormal, normal);
    result = number_select_(magnitude, from.special_from, result, shifted | NUMBER_INFINITY_);
    return number_fp32_of_bits(result | sign);
}

KERNEL_INLINE float number_fp16_to_fp32(uint16_t bits) {
    return number_decode_small_(bits, number_fp16_());
}
KERNEL_INLINE uint16_t number_fp32_to_fp16(float value) {
    return (uint16_t)number_encode_small_(value, number_fp16_());
}
KERNEL_INLINE float number_e4m3_to_fp32(uint8_t bits) {
    return number_decode_small_(bits, number_e4m3_saturating_());
}
KERNEL_INLINE float number_e5m2_to_fp32(uint8_t bits) {
    return number_decode_small_(bits, number_e5m2_saturating_());
}
// FP8 in its two modes; number/format.h explains them.
KERNEL_INLINE uint8_t number_fp32_to_e4m3_saturating(float value) {
    return (uint8_t)number_encode_small_(value, number_e4m3_saturating_());
}
KERNEL_INLINE uint8_t number_fp32_to_e4m3_special(float value) {
    return (uint8_t)number_encode_small_(value, number_e4m3_special_());
}
KERNEL_INLINE uint8_t number_fp32_to_e5m2_saturating(float value) {
    return (uint8_t)number_encode_small_(value, number_e5m2_saturating_());
}
KERNEL_INLINE uint8_t number_fp32_to_e5m2_special(float value) {
    return (uint8_t)number_encode_small_(value, number_e5m2_special_());
}

// Elements of blocks, which have neither infinity nor NaN: both are the largest.
KERNEL_INLINE float number_e3m2_to_fp32(uint8_t bits) {
    return number_decode_small_(bits, number_e3m2_());
}
KERNEL_INLINE float number_e2m3_to_fp32(uint8_t bits) {
    return number_decode_small_(bits, number_e2m3_());
}
KERNEL_INLINE float number_e2m1_to_fp32(uint8_t bits) {
    return number_decode_small_(bits, number_e2m1_());
}
KERNEL_INLINE uint8_t number_fp32_to_e3m2(float value) {
    return (uint8_t)number_encode_small_(value, number_e3m2_());
}
KERNEL_INLINE uint8_t number_fp32_to_e2m3(float value) {
    return (uint8_t)number_encode_small_(value, number_e2m3_());
}
KERNEL_INLINE uint8_t number_fp32_to_e2m1(float value) {
    return (uint8_t)number_encode_small_(value, number_e2m1_());
}

// Powers of two, by their exponents; see number/format.h.
KERNEL_INLINE float number_e8m0_to_fp32(uint8_t bits) {
    uint32_t power = number_select_(0, bits, (uint32_t)bits << 23, 0x400000); // 2^-127 is subnormal
    return number_fp32_of_bits(number_select_(bits, 0xFF, power, 0x7FC00000));
}
KERNEL_INLINE uint8_t number_fp32_to_e8m0_(float value, uint32_t overflow) {
    uint32_t bits = number_bits_of_fp32(value), magnitude = bits & NUMBER_MAGNITUDE_;
    // Half a binade and more goes up; below 2^-126 there is 2^-127 alone.
    uint32_t result = (magnitude + 0x400000) >> 23;
    result = number_select_(magnitude, 0x600000, 0, result);
    result = number_select_(result, 0xFF, result, overflow);
    uint32_t negative = number_select_(0, magnitude, 0xFF, 0);
    result = (bits >> 31) ? negative : result;
    return (uint8_t)number_select_(NUMBER_INFINITY_, magnitude, 0xFF, result);
}
KERNEL_INLINE uint8_t number_fp32_to_e8m0_saturating(float value) {
    return number_fp32_to_e8m0_(value, 0xFE);
}
KERNEL_INLINE uint8_t number_fp32_to_e8m0_special(float value) {
    return number_fp32_to_e8m0_(value, 0xFF);
}

// ---- integers -----------------------------------------------------------------------------------

KERNEL_INLINE int8_t number_fp32_to_int8(float value) {
    float clamped = value < -127.0f ? -127.0f : value > 127.0f ? 127.0f : value;
    clamped = value == value ? clamped : 0.0f;
    return (int8_t)(int32_t)rintf(clamped);
}

KERNEL_INLINE uint8_t number_fp32_to_uint8(float value) {
    float clamped = value < 0.0f ? 0.0f : value > 255.0f ? 255.0f : value;
    clamped = value == value ? clamped : 0.0f;
    return (uint8_t)(int32_t)rintf(clamped);
}

KERNEL_INLINE int32_t number_fp32_to_int32(float value) {
    if (value >= 0x1p31f)
        return INT32_MAX;
    if (value < -0x1p31f)
        return INT32_MIN;
    return value == value ? (int32_t)rintf(value) : 0;
}

// ---- fp64 ---------------------------------------------------------------------------------------

// The processor's own conversion, but for what it would lose in a thread that flushes denormals.
KERNEL_INLINE double number_fp32_to_fp64(float value) {
    uint32_t bits = number_bits_of_fp32(value), magnitude = bits & NUMBER_MAGNITUDE_;
    uint32_t steps = number_select_(magnitude, 0x800000, magnitude, 0);
    double subnormal = (double)(int32_t)steps * 0x1p-149;
    double normal = (double)number_fp32_of_bits(magnitude ^ steps); // one of the two is 0
    return copysign(subnormal + normal, bits >> 31 ? -1.0 : 1.0);
}

KERNEL_INLINE float number_fp64_to_fp32(double value) {
    double magnitude = fabs(value);
    if (!(magnitude < 0x1p-126))
        return (float)value;
    // Steps of the subnormals: the sum is rounded to whole ones, the even one of two.
    double steps = magnitude * 0x1p149 + 0x1p52 - 0x1p52;
    uint32_t sign = signbit(value) ? UINT32_C(0x80000000) : 0;
    return number_fp32_of_bits((uint32_t)steps | sign);
}

// ---- sixteen fp16 at once -----------------------------------------------------------------------

enum { NUMBER_BLOCK = 16 };

static inline void number_fp16_block_to_fp32(const uint16_t *__restrict source,
                                             float *__restrict target) {
#if defined(__AVX512F__)
    _mm512_storeu_ps(target, _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)source)));
#elif defined(__F16C__)
    for (int i = 0; i < NUMBER_BLOCK; i += 8)
        _mm256_storeu_ps(target + i,
                         _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(source + i))));
#else
    for (int i = 0; i < NUMBER_BLOCK; i++)
        target[i] = number_fp16_to_fp32(source[i]);
#endif
}

static inline void number_fp32_block_to_fp16(const float *__restrict source,
                                             uint16_t *__restrict target) {
#if defined(__AVX512F__)
    _mm256_storeu_si256((__m256i *)target,
                        _mm512_cvtps_ph(_mm512_loadu_ps(source), _MM_FROUND_TO_NEAREST_INT));
#elif defined(__F16C__)
    for (int i = 0; i < NUMBER_BLOCK; i += 8)
        _mm_storeu_si128((__m128i *)(target + i),
                         _mm256_cvtps_ph(_mm256_loadu_ps(source + i), _MM_FROUND_TO_NEAREST_INT));
#else
    for (int i = 0; i < NUMBER_BLOCK; i++)
        target[i] = number_fp32_to_fp16(source[i]);
#endif
}
