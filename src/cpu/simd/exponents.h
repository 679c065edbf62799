// cpu/simd/exponents.h: how often each exponent occurs, exactly.
//
// They come as bytes that lie in the nearest cache. With AVX-512 they are counted as one-hot words
// of 64 bits that carry-save adders add up, so that a count costs no more than a few steps for
// sixteen numbers. With AVX2 those that nearly all share are counted by comparisons, 32 at once, if
// they are few enough for that to pay; elsewhere, and else, in tables.
#pragma once

#include <stdint.h>
#include <string.h>
#if defined(__AVX2__)
#include <immintrin.h>
#endif

enum { EXPONENTS = 256, EXPONENTS_AT_ONCE = 16 << 10 };

// Adds to counts[e] how often e occurs among them, at most EXPONENTS_AT_ONCE. None may be above
// `largest`: it would not be counted. That of 0 means nothing afterwards.
static inline void exponents_count(const uint8_t *exponent, int64_t count, uint8_t largest,
                                   uint32_t *counts);

// ---- anywhere -----------------------------------------------------------------------------------

static inline void exponents_count_plainly(const uint8_t *exponent, int64_t count,
                                           uint32_t *counts) {
    enum { FEW = 256 }; // that do not repay clearing the tables
    if (count < FEW) {
        for (int64_t i = 0; i < count; i++)
            counts[exponent[i]]++;
        return;
    }
    uint32_t table[4][EXPONENTS]; // neighbours are often equal, and must not wait for each other
    memset(table, 0, sizeof table);
    int64_t i = 0;
    for (; i + 4 <= count; i += 4)
        for (int k = 0; k < 4; k++)
            table[k][exponent[i + k]]++;
    for (; i < count; i++)
        table[0][exponent[i]]++;
    for (int e = 0; e < EXPONENTS; e++)
        counts[e] += table[0][e] + table[1][e] + table[2][e] + table[3][e];
}

#if defined(__AVX512BW__)
// ---- with AVX-512 -------------------------------------------------------------------------------

// Sixty-four bits of each of 8 lanes: bit b of `ones` says whether the count of b is odd there.
typedef struct Planes {
    __m512i ones, twos, fours, eights;
} Planes;

// carry : sum = a + b + c, bit by bit.
static inline void add_three(__m512i *carry, __m512i *sum, __m512i a, __m512i b) {
    __m512i c = *sum;
    *carry = _mm512_ternarylogic_epi64(a, b, c, 0xE8);
    *sum = _mm512_ternarylogic_epi64(a, b, c, 0x96);
}

static inline __m512i one_hot(__m128i bins) {
    // A bin past 63 shifts the one out: such elements are counted apart.
    return _mm512_sllv_epi64(_mm512_set1_epi64(1), _mm512_cvtepu8_epi64(bins));
}

// Adds sixty-four bins to the planes below sixteen; returns the carry into the eights.
static inline void add_half(Planes *planes, __m512i bins, __m512i *into_eights) {
    __m512i two_a, two_b, four_a, four_b;
    __m128i a = _mm512_castsi512_si128(bins), b = _mm512_extracti32x4_epi32(bins, 1);
    __m128i c = _mm512_extracti32x4_epi32(bins, 2), d = _mm512_extracti32x4_epi32(bins, 3);
    add_three(&two_a, &planes->ones, one_hot(a), one_hot(_mm_unpackhi_epi64(a, a)));
    add_three(&two_b, &planes->ones, one_hot(b), one_hot(_mm_unpackhi_epi64(b, b)));
    add_three(&four_a, &planes->twos, two_a, two_b);
    add_three(&two_a, &planes->ones, one_hot(c), one_hot(_mm_unpackhi_epi64(c, c)));
    add_three(&two_b, &planes->ones, one_hot(d), one_hot(_mm_unpackhi_epi64(d, d)));
    add_three(&four_b, &planes->twos, two_a, two_b);
    add_three(into_eights, &planes->fours, four_a, four_b);
}

// Adds the weight to the byte of each bit that is set in the plane. All four planes add up to at
// most 8 * (1 + 2 + 4 + 8), which fits.
static inline __m512i add_plane(__m512i bytes, __m512i plane, char weight) {
    uint64_t word[8];
    _mm512_storeu_si512(word, plane);
    for (int k = 0; k < 8; k++)
        bytes = _mm512_mask_add_epi8(bytes, (__mmask64)word[k], bytes, _mm512_set1_epi8(weight));
    return bytes;
}

// Adds the totals of 32 bins: `sixteens` counts by sixteen, in eight parts.
static inline void add_totals(uint32_t *counts, const __m512i sixteens[8], __m512i rest, int half) {
    __m512i sum = _mm512_setzero_si512();
    for (int k = 0; k < 8; k++) {
        __m256i part =
            half ? _mm512_extracti64x4_epi64(sixteens[k], 1) : _mm512_castsi512_si256(sixteens[k]);
        sum = _mm512_add_epi16(sum, _mm512_cvtepu8_epi16(part));
    }
    __m256i few = half ? _mm512_extracti64x4_epi64(rest, 1) : _mm512_castsi512_si256(rest);
    sum = _mm512_add_epi16(_mm512_slli_epi16(sum, 4), _mm512_cvtepu8_epi16(few));
    for (int k = 0; k < 2; k++) {
        uint32_t *to = counts + 32 * half + 16 * k;
        __m256i part = k ? _mm512_extracti64x4_epi64(sum, 1) : _mm512_castsi512_si256(sum);
        _mm512_storeu_si512(to,
                            _mm512_add_epi32(_mm512_loadu_si512(to), _mm512_cvtepu16_epi32(part)));
    }
}

// Counts those outside the 64 exponents from `base` on, zeros excepted.
static inline void count_outside(__m512i exponents, __m512i bins, uint32_t *counts) {
    __mmask64 outside = _mm512_cmpge_epu8_mask(bins, _mm512_set1_epi8(64)) &
                        _mm512_test_epi8_mask(exponents, exponents);
    if (!outside)
        return;
    uint8_t value[64];
    _mm512_storeu_si512(value, exponents);
    for (uint64_t rest = outside; rest; rest &= rest - 1)
        counts[value[__builtin_ctzll(rest)]]++;
}

static inline void exponents_count(const uint8_t *exponent, int64_t count, uint8_t largest,
                                   uint32_t *counts) {
    enum { STEP = 128, SHORT = 4 * STEP };
    if (count < SHORT) {
        exponents_count_plainly(exponent, count, counts);
        return;
    }
    const uint8_t base = largest > 63 ? (uint8_t)(largest - 63) : 1;
    const __m512i zero = _mm512_setzero_si512(), one = _mm512_set1_epi8(1);
    const __m512i bases = _mm512_set1_epi8((char)base);
    Planes planes = {zero, zero, zero, zero};
    __m512i sixteens[8]; // bytes: EXPONENTS_AT_ONCE / STEP counts at most, which fit
    for (int k = 0; k < 8; k++)
        sixteens[k] = zero;
    int64_t i = 0;
    for (; i + STEP <= count; i += STEP) {
        __m512i first = _mm512_loadu_si512(exponent + i);
        __m512i second = _mm512_loadu_si512(exponent + i + 64);
        __m512i first_bins = _mm512_sub_epi8(first, bases);
        __m512i second_bins = _mm512_sub_epi8(second, bases);
        count_outside(first, first_bins, counts);
        count_outside(second, second_bins, counts);
        __m512i eight_a, eight_b, sixteen;
        add_half(&planes, first_bins, &eight_a);
        add_half(&planes, second_bins, &eight_b);
        add_three(&sixteen, &planes.eights, eight_a, eight_b);
        uint64_t word[8];
        _mm512_storeu_si512(word, sixteen);
        for (int k = 0; k < 8; k++)
            sixteens[k] = _mm512_mask_add_epi8(sixteens[k], (__mmask64)word[k], sixteens[k], one);
    }
    exponents_count_plainly(exponent + i, count - i, counts);
    __m512i rest = add_plane(zero, planes.ones, 1);
    rest = add_plane(rest, planes.twos, 2);
    rest = add_plane(rest, planes.fours, 4);
    rest = add_plane(rest, planes.eights, 8);
    add_totals(counts + base, sixteens, rest, 0);
    add_totals(counts + base, sixteens, rest, 1);
}
#elif defined(__AVX2__)
// ---- with AVX2 ----------------------------------------------------------------------------------

enum {
    GROUP = 8,             // exponents that one go over the bytes counts, in registers
    GROUPS = 4,            // more cost what tables do
    BYTES = 32,            // of a register
    STRETCH = 128 * BYTES, // whose counts, of each place in a register, a byte can hold
};

static inline __m256i load_bytes(const uint8_t *from) {
    return _mm256_loadu_si256((const __m256i *)from);
}

// The lowest exponent of so many groups from the largest one down.
static inline uint8_t lowest_of(uint8_t largest, int groups) {
    const int lowest = largest + 1 - groups * GROUP;
    return lowest > 1 ? (uint8_t)lowest : 1;
}

// A bit for each byte below the lowest that is not 0.
static inline uint32_t left_of(__m256i bytes, uint8_t lowest) {
    const __m256i bound = _mm256_set1_epi8((char)lowest);
    const __m256i inside = _mm256_cmpeq_epi8(_mm256_max_epu8(bytes, bound), bytes);
    const __m256i zero = _mm256_cmpeq_epi8(bytes, _mm256_setzero_si256());
    return ~(uint32_t)_mm256_movemask_epi8(_mm256_or_si256(inside, zero));
}

// How many groups leave hardly any byte to be counted by itself, as a quarter of them shows.
// 0: all would leave too many.
static inline int groups_that_pay(const uint8_t *exponent, int64_t count, uint8_t largest) {
    enum { LOOKED_AT = 4, HARDLY_ANY = 64 }; // one in so many
    for (int groups = 1; groups <= GROUPS; groups++) {
        int64_t left = 0;
        for (int64_t i = 0; i + BYTES <= count; i += LOOKED_AT * BYTES)
            left +=
                __builtin_popcount(left_of(load_bytes(exponent + i), lowest_of(largest, groups)));
        if (left * LOOKED_AT * HARDLY_ANY <= count)
            return groups;
    }
    return 0;
}

static inline void count_group(const uint8_t *exponent, int64_t count, uint8_t largest,
                               uint32_t *counts) {
    const __m256i zero = _mm256_setzero_si256();
    __m256i value[GROUP], found[GROUP];
    for (int k = 0; k < GROUP; k++) {
        value[k] = _mm256_set1_epi8((char)(largest - k));
        found[k] = zero;
    }
    for (int64_t i = 0; i < count; i += BYTES) {
        const __m256i bytes = load_bytes(exponent + i);
        for (int k = 0; k < GROUP; k++) // all bits of a byte that equals: minus one
            found[k] = _mm256_sub_epi8(found[k], _mm256_cmpeq_epi8(bytes, value[k]));
    }
    for (int k = 0; k < GROUP && k <= largest; k++) {
        uint64_t sum[4];
        _mm256_storeu_si256((__m256i *)sum, _mm256_sad_epu8(found[k], zero));
        counts[largest - k] += (uint32_t)(sum[0] + sum[1] + sum[2] + sum[3]);
    }
}

static inline void exponents_count(const uint8_t *exponent, int64_t count, uint8_t largest,
                                   uint32_t *counts) {
    const int groups = groups_that_pay(exponent, count, largest);
    const int64_t whole = groups > 0 ? count - count % BYTES : 0;
    const uint8_t lowest = lowest_of(largest, groups);
    for (int64_t start = 0, size; start < whole; start += size) {
        size = whole - start < STRETCH ? whole - start : STRETCH;
        const uint8_t *from = exponent + start;
        for (int top = largest; top >= lowest; top -= GROUP)
            count_group(from, size, (uint8_t)top, counts);
        for (int64_t i = 0; i < size; i += BYTES)
            for (uint32_t left = left_of(load_bytes(from + i), lowest); left; left &= left - 1)
                counts[from[i + __builtin_ctz(left)]]++;
    }
    exponents_count_plainly(exponent + whole, count - whole, counts);
}
#else
static inline void exponents_count(const uint8_t *exponent, int64_t count, uint8_t largest,
                                   uint32_t *counts) {
    (void)largest;
    exponents_count_plainly(exponent, count, counts);
}
#endif
