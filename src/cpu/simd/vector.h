// cpu/simd/vector.h: one vector of fp32 at the ISA level being compiled, and how the three storage
// formats are read into it and written from it: in a loop that is left to the compiler fp16 would
// be taken apart by its bits. For the files of this folder only.
#pragma once

#include <stdint.h>
#include <string.h>

#if defined(__x86_64__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

#include "cpu/gemm_kernels.h"
#include "number/format.h"
#include "number/inline.h"

#define ALWAYS_INLINE static inline __attribute__((always_inline))
#if defined(__clang__)
#define UNROLL _Pragma("unroll")
#else
#define UNROLL _Pragma("GCC unroll 32")
#endif

#if defined(__AVX512F__)
enum { LANES = 16 };
#elif defined(__AVX2__)
enum { LANES = 8 };
#else
enum { LANES = 4 };
#endif

_Static_assert((int)LANES <= (int)GEMM_LANES, "a product is raised lane by lane");

typedef float Vector __attribute__((vector_size(LANES * 4)));
typedef int32_t Words __attribute__((vector_size(LANES * 4)));
typedef uint32_t Bits __attribute__((vector_size(LANES * 4)));
typedef uint16_t Halves __attribute__((vector_size(LANES * 2)));
typedef float LooseVector __attribute__((vector_size(LANES * 4), aligned(2), may_alias));
typedef uint16_t LooseHalves __attribute__((vector_size(LANES * 2), aligned(2), may_alias));

ALWAYS_INLINE Vector vector_load(const GemmWord *from) {
    return *(const LooseVector *)from;
}

ALWAYS_INLINE void vector_store(GemmWord *to, Vector value) {
    *(LooseVector *)to = value;
}

ALWAYS_INLINE Vector vector_all(float value) {
    return value - (Vector){0};
}

// a * b + c; rounded once where the level has the instruction.
ALWAYS_INLINE Vector vector_multiply_add(Vector a, Vector b, Vector c) {
#if defined(__AVX512F__)
    return (Vector)_mm512_fmadd_ps((__m512)a, (__m512)b, (__m512)c);
#elif defined(__AVX2__)
    return (Vector)_mm256_fmadd_ps((__m256)a, (__m256)b, (__m256)c);
#elif defined(__aarch64__)
    return (Vector)vfmaq_f32((float32x4_t)c, (float32x4_t)a, (float32x4_t)b);
#else
    return a * b + c;
#endif
}

// ---- words of the depth (GemmWord) --------------------------------------------------------------

#if defined(__AVX512BF16__)
enum { WORD_NUMBERS = 2 };
#else
enum { WORD_NUMBERS = 1 };
#endif

ALWAYS_INLINE Vector word_to_all(const GemmWord *word) {
#if defined(__AVX512BF16__)
    return (Vector)_mm512_set1_ps(*word);
#else
    return vector_all(*word);
#endif
}

// Each word of `a` times that of `b`, added up in fp32.
ALWAYS_INLINE Vector words_multiply_add(Vector a, Vector b, Vector sum) {
#if defined(__AVX512BF16__)
    return (Vector)_mm512_dpbf16_ps((__m512)sum, (__m512bh)a, (__m512bh)b);
#else
    return vector_multiply_add(a, b, sum);
#endif
}

ALWAYS_INLINE Vector vector_select(Words mask, Vector yes, Vector no) {
    return (Vector)((mask & (Words)yes) | (~mask & (Words)no));
}

// NaN stays NaN.
ALWAYS_INLINE Vector vector_at_least(Vector value, Vector floor) {
#if defined(__AVX512F__)
    return (Vector)_mm512_max_ps((__m512)floor, (__m512)value);
#elif defined(__AVX2__)
    return (Vector)_mm256_max_ps((__m256)floor, (__m256)value);
#else
    return vector_select((Words)(value < floor), floor, value);
#endif
}

// Magnitudes as bits, the larger of each two: they rise with the number, infinity and NaN last.
ALWAYS_INLINE Bits bits_raised(Bits largest, Vector value) {
    const Bits magnitude = (Bits)value & 0x7fffffffu;
#if defined(__AVX512F__)
    return (Bits)_mm512_max_epu32((__m512i)largest, (__m512i)magnitude);
#elif defined(__AVX2__)
    return (Bits)_mm256_max_epu32((__m256i)largest, (__m256i)magnitude);
#else
    return (Bits)vector_select((Words)(magnitude > largest), (Vector)magnitude, (Vector)largest);
#endif
}

// All bits of the first `count` lanes.
ALWAYS_INLINE Words first_lanes(int count) {
    Words place;
    for (int i = 0; i < LANES; i++)
        place[i] = i;
    return (Words)(place < count);
}

// ---- the three formats --------------------------------------------------------------------------

ALWAYS_INLINE float number_load(const void *from, Format format, int64_t at) {
    if (format == FORMAT_FP32)
        return ((const float *)from)[at];
    uint16_t bits = ((const uint16_t *)from)[at];
    if (format == FORMAT_BF16)
        return number_bf16_to_fp32(bits);
#if defined(__F16C__)
    return _cvtsh_ss(bits);
#else
    return number_fp16_to_fp32(bits);
#endif
}

// gcc widens and narrows halves in twice the steps that there are instructions for.
ALWAYS_INLINE Bits bits_of_halves(const uint16_t *from) {
#if defined(__AVX512F__)
    return (Bits)_mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i *)from));
#elif defined(__AVX2__)
    return (Bits)_mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i *)from));
#else
    return __builtin_convertvector(*(const LooseHalves *)from, Bits);
#endif
}

// Of numbers that fit.
ALWAYS_INLINE void halves_of_bits(uint16_t *to, Bits bits) {
#if defined(__AVX512F__)
    _mm256_storeu_si256((__m256i *)to, _mm512_cvtepi32_epi16((__m512i)bits));
#elif defined(__AVX2__)
    const __m256i words = (__m256i)bits;
    _mm_storeu_si128((__m128i *)to, _mm_packus_epi32(_mm256_castsi256_si128(words),
                                                     _mm256_extracti128_si256(words, 1)));
#else
    *(LooseHalves *)to = __builtin_convertvector(bits, Halves);
#endif
}

ALWAYS_INLINE Vector vector_of_bf16(const uint16_t *from) {
    return (Vector)(bits_of_halves(from) << 16);
}

ALWAYS_INLINE Vector vector_of_fp16(const uint16_t *from) {
#if defined(__AVX512F__)
    return (Vector)_mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)from));
#elif defined(__AVX2__)
    return (Vector)_mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)from));
#elif defined(__aarch64__)
    return (Vector)vcvt_f32_f16(vreinterpret_f16_u16(vld1_u16(from)));
#else
    Vector value;
    for (int i = 0; i < LANES; i++)
        value[i] = number_fp16_to_fp32(from[i]);
    return value;
#endif
}

// The processor's own instruction makes 0 of numbers below fp32's normal ones: it rounds sums of
// pairs and of tiles, which may have none, and nothing else is compiled for its level.
ALWAYS_INLINE void bf16_of_vector(uint16_t *to, Vector value) {
#if defined(__AVX512BF16__)
    *(LooseHalves *)to = (Halves)_mm512_cvtneps_pbh((__m512)value);
#else
    Bits bits = (Bits)value;
    Bits rounded = (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
    Bits quiet = bits >> 16 | 0x40;
    halves_of_bits(to, (Bits)vector_select(value != value, (Vector)quiet, (Vector)rounded));
#endif
}

ALWAYS_INLINE void fp16_of_vector(uint16_t *to, Vector value) {
#if defined(__AVX512F__)
    _mm256_storeu_si256((__m256i *)to, _mm512_cvtps_ph((__m512)value, _MM_FROUND_TO_NEAREST_INT));
#elif defined(__AVX2__)
    _mm_storeu_si128((__m128i *)to, _mm256_cvtps_ph((__m256)value, _MM_FROUND_TO_NEAREST_INT));
#elif defined(__aarch64__)
    vst1_u16(to, vreinterpret_u16_f16(vcvt_f16_f32((float32x4_t)value)));
#else
    for (int i = 0; i < LANES; i++)
        to[i] = number_fp32_to_fp16(value[i]);
#endif
}

// LANES numbers of any of the three formats, from element `at` on.
ALWAYS_INLINE Vector vector_load_as(const void *from, Format format, int64_t at) {
    if (format == FORMAT_FP32)
        return vector_load((const float *)from + at);
    const uint16_t *halves = (const uint16_t *)from + at;
    return format == FORMAT_BF16 ? vector_of_bf16(halves) : vector_of_fp16(halves);
}

ALWAYS_INLINE void vector_store_as(void *to, Format format, int64_t at, Vector value) {
    if (format == FORMAT_FP32)
        vector_store((float *)to + at, value);
    else if (format == FORMAT_BF16)
        bf16_of_vector((uint16_t *)to + at, value);
    else
        fp16_of_vector((uint16_t *)to + at, value);
}

// The same of `count` numbers only, at most LANES; the others are 0, and are left as they are.
ALWAYS_INLINE Vector vector_load_some(const void *from, Format format, int64_t at, int count) {
    if (count == LANES)
        return vector_load_as(from, format, at);
#if defined(__AVX512F__)
    const __mmask16 some = (__mmask16)((1u << count) - 1);
    if (format == FORMAT_FP32)
        return (Vector)_mm512_maskz_loadu_ps(some, (const float *)from + at);
    const __m256i halves = _mm256_maskz_loadu_epi16(some, (const uint16_t *)from + at);
    return format == FORMAT_BF16 ? (Vector)_mm512_slli_epi32(_mm512_cvtepu16_epi32(halves), 16)
                                 : (Vector)_mm512_cvtph_ps(halves);
#else
#if defined(__AVX2__)
    if (format == FORMAT_FP32)
        return (Vector)_mm256_maskload_ps((const float *)from + at, (__m256i)first_lanes(count));
#endif
    Vector value = {0};
    float numbers[LANES];
    memcpy(numbers, &value, sizeof numbers);
    for (int i = 0; i < count; i++)
        numbers[i] = number_load(from, format, at + i);
    memcpy(&value, numbers, sizeof numbers);
    return value;
#endif
}

ALWAYS_INLINE void vector_store_some(void *to, Format format, int64_t at, int count, Vector value) {
    if (count == LANES) {
        vector_store_as(to, format, at, value);
        return;
    }
#if defined(__AVX2__) && !defined(__AVX512F__)
    if (format == FORMAT_FP32) {
        _mm256_maskstore_ps((float *)to + at, (__m256i)first_lanes(count), (__m256)value);
        return;
    }
#endif
    float numbers[LANES]; // holds LANES of any of the formats
    vector_store_as(numbers, format, 0, value);
#if defined(__AVX512F__)
    const __mmask16 some = (__mmask16)((1u << count) - 1);
    if (format == FORMAT_FP32)
        _mm512_mask_storeu_ps((float *)to + at, some, (__m512)value);
    else
        _mm256_mask_storeu_epi16((uint16_t *)to + at, some,
                                 _mm256_loadu_si256((const __m256i *)(const void *)numbers));
#else
    memcpy((char *)to + at * gemm_bytes(format), numbers, (size_t)(count * gemm_bytes(format)));
#endif
}

// Calls function(.., at, count) of all numbers below `width`, LANES at a time, and then of what is
// left.
#define EACH_VECTOR(width, function, ...)                   \
    do {                                                    \
        int64_t at_ = 0;                                    \
        for (; at_ + LANES <= (width); at_ += LANES)        \
            function(__VA_ARGS__, at_, LANES);              \
        if (at_ < (width))                                  \
            function(__VA_ARGS__, at_, (int)((width)-at_)); \
    } while (0)
