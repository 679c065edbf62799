// cpu/simd/gemm_elements.h: how elements that share scales are packed to be multiplied as whole
// numbers, between the two files that do either. Private to these.
//
// In a block of the depth a line's numbers are whole numbers of one step: e2m1 has 12 of them on
// either side of 0, e2m3 60. What a step is worth is seen from the numbers themselves. Of each
// block its whole numbers are packed, four to a word, and the step. The instruction takes B's for
// unsigned: they are packed OFFSET too large, and with A what that adds to each sum is packed, to
// begin with what takes it off.
#pragma once

#include "cpu/gemm_way.h"
#include "cpu/simd/vector.h"

// Sums of a block in registers, and where there are 32 of these those of all in fp32, too.
#if defined(__AVX512F__)
enum { TILE_ROWS = 7 };
#else
enum { TILE_ROWS = 4 };
#endif
enum {
    TILE_VECTORS = 2,
    PANEL = TILE_VECTORS * LANES, // columns
    STRIP = 2 * TILE_ROWS,        // rows of A that are packed together
    WORD = 4,                     // numbers
    MOST_STEPS = 32,              // of a block
    OFFSET = GEMM_MOST_WHOLE + 1,
};

// How a product is packed: [block][word, then step, of A then what is less][line], tile after tile
// of A's rows, panel after panel of B's columns.
typedef struct ElementsShape {
    int block, words; // steps and words of a block
    int64_t blocks;   // of the depth
    int digits[2];    // of the whole numbers of A and B, or 0: where 12 or 8 steps are the most
    int64_t a_tile, b_panel; // words that a tile of rows and a panel of columns take
} ElementsShape;

ElementsShape ISA_NAME(gemm_elements_shape)(const Gemm *gemm);

// STRIP rows of A from `row` on, as two tiles; a panel of columns of B from `column` on. False:
// they hold what is to be computed by others.
bool ISA_NAME(gemm_elements_pack_a)(const ElementsShape *shape, const Gemm *gemm, int64_t row,
                                    GemmWord *to);
bool ISA_NAME(gemm_elements_pack_b)(const ElementsShape *shape, const Gemm *gemm, int64_t column,
                                    GemmWord *panel);

// Four products of each lane, and four more; B's numbers are unsigned. Without VNNI sums of four
// products fit into 16 bits, as they are of whole numbers below 128 and up to GEMM_MOST_WHOLE.
ALWAYS_INLINE Words words_add(Words sums, const Words b[2], Words a, Words a_next) {
#if defined(__AVX512VNNI__)
    const __m512i some = _mm512_dpbusd_epi32((__m512i)sums, (__m512i)b[0], (__m512i)a);
    return (Words)_mm512_dpbusd_epi32(some, (__m512i)b[1], (__m512i)a_next);
#elif defined(__AVX512BW__)
    const __m512i some = _mm512_maddubs_epi16((__m512i)b[0], (__m512i)a);
    const __m512i more = _mm512_maddubs_epi16((__m512i)b[1], (__m512i)a_next);
    const __m512i both = _mm512_add_epi16(some, more);
    return sums + (Words)_mm512_madd_epi16(both, _mm512_set1_epi16(1));
#elif defined(__AVXVNNI__)
    const __m256i some = _mm256_dpbusd_avx_epi32((__m256i)sums, (__m256i)b[0], (__m256i)a);
    return (Words)_mm256_dpbusd_avx_epi32(some, (__m256i)b[1], (__m256i)a_next);
#else
    const __m256i some = _mm256_maddubs_epi16((__m256i)b[0], (__m256i)a);
    const __m256i more = _mm256_maddubs_epi16((__m256i)b[1], (__m256i)a_next);
    const __m256i both = _mm256_add_epi16(some, more);
    return sums + (Words)_mm256_madd_epi16(both, _mm256_set1_epi16(1));
#endif
}
