// cpu/amx/tile_pack.h: numbers of 16 bits into the order in which tiles are multiplied, from where
// they lie. For the files of this folder. Written in the compiler's own vectors where it can be, so
// that nearly the same source packs for emulated tiles on any processor.
//
// A piece is TILE_SIDE lines (rows of A, columns of B) of as many numbers of the depth, and becomes
// two tiles of 16 lines. Those of the left factor have a line in each row; those of the right one
// two neighbours of the depth in each, line by line.
#pragma once

#include <string.h>

#include "cpu/amx/tile.h"
#include "number/format.h"
#include "number/inline.h"

enum { TILE_SIDE = 32 };

typedef uint32_t PackedTile[TILE_ROWS][TILE_ROWS]; // words of two bf16 numbers
typedef uint16_t TilePiece[TILE_SIDE][TILE_SIDE];

// ---- vectors ------------------------------------------------------------------------------------

typedef uint16_t TileNumbers __attribute__((vector_size(64)));
typedef uint32_t TileWords __attribute__((vector_size(64)));
typedef uint64_t TileTwos __attribute__((vector_size(64))); // of words

// Four words of every fourth line, side by side.
static inline void tile_gather_(TileWords *to, const uint16_t *from, int64_t stride) {
#ifdef TILE_EMULATED
    uint32_t words[TILE_ROWS];
    for (int64_t i = 0; i < TILE_ROWS; i += 4)
        memcpy(words + i, from + i * stride, 4 * sizeof words[0]);
    memcpy(to, words, sizeof words);
#else
    __m512i words = _mm512_castsi128_si512(_mm_loadu_si128((const void *)from));
    words = _mm512_inserti32x4(words, _mm_loadu_si128((const void *)(from + 4 * stride)), 1);
    words = _mm512_inserti32x4(words, _mm_loadu_si128((const void *)(from + 8 * stride)), 2);
    words = _mm512_inserti32x4(words, _mm_loadu_si128((const void *)(from + 12 * stride)), 3);
    *to = (TileWords)words;
#endif
}

// Within each quarter of 128 bits: those of `y` count from 16, or of twos from 8.
#define TILE_MIX_(x, y, a, b, c, d)                                                            \
    __builtin_shufflevector(x, y, a, b, c, d, a + 4, b + 4, c + 4, d + 4, a + 8, b + 8, c + 8, \
                            d + 8, a + 12, b + 12, c + 12, d + 12)
#define TILE_MIX_TWOS_(x, y, a, b) \
    __builtin_shufflevector(x, y, a, b, a + 2, b + 2, a + 4, b + 4, a + 6, b + 6)

// The upper halves of 32 words.
#define TILE_UPPER_(x, y)                                                                        \
    __builtin_shufflevector(x, y, 1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31, 33, \
                            35, 37, 39, 41, 43, 45, 47, 49, 51, 53, 55, 57, 59, 61, 63)

// ---- pieces -------------------------------------------------------------------------------------

// Lines whose depth is contiguous, `stride` numbers apart, as the left factor.
static inline void tile_pack_lines(PackedTile to[2], const uint16_t *from, int64_t stride) {
    for (int line = 0; line < TILE_SIDE; line++)
        memcpy(to[line / TILE_ROWS][line % TILE_ROWS], from + line * stride, TILE_ROW_BYTES);
}

// Lines side by side, each step of the depth `stride` numbers behind the one before, as the right
// factor.
static inline void tile_pack_pairs(PackedTile to[2], const uint16_t *from, int64_t stride) {
    for (int pair = 0; pair < TILE_ROWS; pair++, from += 2 * stride) {
        TileNumbers even, odd, words[2];
        memcpy(&even, from, sizeof even);
        memcpy(&odd, from + stride, sizeof odd);
        words[0] = __builtin_shufflevector(even, odd, 0, 32, 1, 33, 2, 34, 3, 35, 4, 36, 5, 37, 6,
                                           38, 7, 39, 8, 40, 9, 41, 10, 42, 11, 43, 12, 44, 13, 45,
                                           14, 46, 15, 47);
        words[1] = __builtin_shufflevector(even, odd, 16, 48, 17, 49, 18, 50, 19, 51, 20, 52, 21,
                                           53, 22, 54, 23, 55, 24, 56, 25, 57, 26, 58, 27, 59, 28,
                                           60, 29, 61, 30, 62, 31, 63);
        memcpy(to[0][pair], &words[0], sizeof words[0]);
        memcpy(to[1][pair], &words[1], sizeof words[1]);
    }
}

// 16 lines of 16 words, `stride` numbers apart, to 16 words of 16 lines.
static inline void tile_turn(PackedTile to, const uint16_t *from, int64_t stride) {
    for (int k = 0; k < TILE_ROWS; k += 4, from += 8) {
        TileWords line[4];
        for (int i = 0; i < 4; i++)
            tile_gather_(&line[i], from + i * stride, stride);
        const TileTwos low01 = (TileTwos)TILE_MIX_(line[0], line[1], 0, 16, 1, 17);
        const TileTwos high01 = (TileTwos)TILE_MIX_(line[0], line[1], 2, 18, 3, 19);
        const TileTwos low23 = (TileTwos)TILE_MIX_(line[2], line[3], 0, 16, 1, 17);
        const TileTwos high23 = (TileTwos)TILE_MIX_(line[2], line[3], 2, 18, 3, 19);
        const TileTwos turned0 = TILE_MIX_TWOS_(low01, low23, 0, 8);
        const TileTwos turned1 = TILE_MIX_TWOS_(low01, low23, 1, 9);
        const TileTwos turned2 = TILE_MIX_TWOS_(high01, high23, 0, 8);
        const TileTwos turned3 = TILE_MIX_TWOS_(high01, high23, 1, 9);
        memcpy(to[k], &turned0, sizeof turned0);
        memcpy(to[k + 1], &turned1, sizeof turned1);
        memcpy(to[k + 2], &turned2, sizeof turned2);
        memcpy(to[k + 3], &turned3, sizeof turned3);
    }
}

// ---- numbers in parts ---------------------------------------------------------------------------

// A row of 32 fp16 numbers. The upper half of an fp32 number is a bf16 number; of an fp16 number it
// has all but the last three digits, and those are the rest, exactly.
static inline bool tile_split_row_of_fp16_(uint16_t *high, uint16_t *rest, const uint16_t *from) {
#ifdef TILE_EMULATED
    bool special = false;
    for (int i = 0; i < TILE_SIDE; i++) {
        const float value = number_fp16_to_fp32(from[i]);
        const uint32_t upper = number_bits_of_fp32(value) & 0xFFFF0000u;
        special = special || (from[i] & 0x7C00) == 0x7C00;
        high[i] = (uint16_t)(upper >> 16);
        rest[i] = (uint16_t)(number_bits_of_fp32(value - number_fp32_of_bits(upper)) >> 16);
    }
    return special;
#else
    const __m512i numbers = _mm512_loadu_si512(from), most = _mm512_set1_epi16(0x7C00);
    const __m512i upper = _mm512_set1_epi32((int)0xFFFF0000u);
    __m512 rests[2];
    __m512i halves[2];
    for (int i = 0; i < 2; i++) {
        const __m512 value = _mm512_cvtph_ps(_mm256_loadu_si256((const void *)(from + 16 * i)));
        halves[i] = _mm512_and_si512(_mm512_castps_si512(value), upper);
        rests[i] = _mm512_sub_ps(value, _mm512_castsi512_ps(halves[i]));
    }
    const TileNumbers first = (TileNumbers)halves[0], second = (TileNumbers)halves[1];
    const TileNumbers first_rest = (TileNumbers)rests[0], second_rest = (TileNumbers)rests[1];
    _mm512_storeu_si512(high, (__m512i)TILE_UPPER_(first, second));
    _mm512_storeu_si512(rest, (__m512i)TILE_UPPER_(first_rest, second_rest));
    return _mm512_cmpeq_epi16_mask(_mm512_and_si512(numbers, most), most) != 0;
#endif
}

// A row of 32 fp32 numbers: the bf16 number nearest to each, and the one nearest to what is left.
static inline bool tile_split_row_of_fp32_(uint16_t *high, uint16_t *rest, const float *from) {
#ifdef TILE_EMULATED
    bool special = false;
    for (int i = 0; i < TILE_SIDE; i++) {
        high[i] = number_fp32_to_bf16(from[i]);
        rest[i] = number_fp32_to_bf16(from[i] - number_bf16_to_fp32(high[i]));
        special = special || (high[i] & 0x7F80) == 0x7F80;
    }
    return special;
#else
    const __m512 values[2] = {_mm512_loadu_ps(from), _mm512_loadu_ps(from + TILE_ROWS)};
    const TileNumbers nearest = (TileNumbers)_mm512_cvtne2ps_pbh(values[1], values[0]);
    const __m512i numbers = (__m512i)nearest, most = _mm512_set1_epi16(0x7F80);
    __m512 rests[2];
    for (int i = 0; i < 2; i++) {
        const __m256i half =
            i ? _mm512_extracti64x4_epi64(numbers, 1) : _mm512_castsi512_si256(numbers);
        const __m512i wide = _mm512_slli_epi32(_mm512_cvtepu16_epi32(half), 16);
        rests[i] = _mm512_sub_ps(values[i], _mm512_castsi512_ps(wide));
    }
    _mm512_storeu_si512(high, numbers);
    _mm512_storeu_si512(rest, (__m512i)_mm512_cvtne2ps_pbh(rests[1], rests[0]));
    return _mm512_cmpeq_epi16_mask(_mm512_and_si512(numbers, most), most) != 0;
#endif
}

// Rows of numbers of fp16 or fp32, `stride` numbers apart, each to two of bf16: those whose sum it
// is; of fp32, whose sum has 16 of its digits, or fewer below 2^-109, where the second is too small
// for a tile. True where one is infinity or NaN, or becomes it.
static inline bool tile_split(Format format, TilePiece high, TilePiece rest, const void *from,
                              int64_t stride) {
    bool special = false;
    for (int i = 0; i < TILE_SIDE; i++)
        special |=
            format == FORMAT_FP32
                ? tile_split_row_of_fp32_(high[i], rest[i], (const float *)from + i * stride)
                : tile_split_row_of_fp16_(high[i], rest[i], (const uint16_t *)from + i * stride);
    return special;
}
