// cpu/simd/gemm_transpose.h: words of LANES rows to columns, four steps at a time. For the packing
// of operands whose depth is contiguous; for the files of this folder only.
#pragma once

#include "cpu/simd/vector.h"

#if defined(__AVX512F__)
#define LANES_OF_(a, b, c, d)                                                                   \
    a, b, c, d, a + 4, b + 4, c + 4, d + 4, a + 8, b + 8, c + 8, d + 8, a + 12, b + 12, c + 12, \
        d + 12
#elif defined(__AVX2__)
#define LANES_OF_(a, b, c, d) a, b, c, d, a + 4, b + 4, c + 4, d + 4
#else
#define LANES_OF_(a, b, c, d) a, b, c, d
#endif
// Within each quarter of 128 bits: numbers of `x` count from 0, those of `y` from LANES.
#define SHUFFLE(x, y, a, b, c, d) __builtin_shufflevector(x, y, LANES_OF_(a, b, c, d))

#if defined(__AVX2__)
ALWAYS_INLINE __m128 four_words(const GemmWord *from) {
    return _mm_castsi128_ps(_mm_loadu_si128((const void *)from));
}
#endif

// Four numbers of every fourth row, side by side.
ALWAYS_INLINE Vector gather_quads(const GemmWord *const rows[LANES], int first, int64_t at) {
#if defined(__AVX512F__)
    __m512 value = _mm512_castps128_ps512(four_words(rows[first] + at));
    value = _mm512_insertf32x4(value, four_words(rows[first + 4] + at), 1);
    value = _mm512_insertf32x4(value, four_words(rows[first + 8] + at), 2);
    return (Vector)_mm512_insertf32x4(value, four_words(rows[first + 12] + at), 3);
#elif defined(__AVX2__)
    __m256 value = _mm256_castps128_ps256(four_words(rows[first] + at));
    return (Vector)_mm256_insertf128_ps(value, four_words(rows[first + 4] + at), 1);
#else
    return vector_load(rows[first] + at);
#endif
}

// Words at .. at + 3 of LANES rows: one vector each.
ALWAYS_INLINE void transpose_quads(Vector steps[4], const GemmWord *const rows[LANES], int64_t at) {
    Vector r0 = gather_quads(rows, 0, at), r1 = gather_quads(rows, 1, at);
    Vector r2 = gather_quads(rows, 2, at), r3 = gather_quads(rows, 3, at);
    Vector low01 = SHUFFLE(r0, r1, 0, LANES, 1, LANES + 1);
    Vector high01 = SHUFFLE(r0, r1, 2, LANES + 2, 3, LANES + 3);
    Vector low23 = SHUFFLE(r2, r3, 0, LANES, 1, LANES + 1);
    Vector high23 = SHUFFLE(r2, r3, 2, LANES + 2, 3, LANES + 3);
    steps[0] = SHUFFLE(low01, low23, 0, 1, LANES, LANES + 1);
    steps[1] = SHUFFLE(low01, low23, 2, 3, LANES + 2, LANES + 3);
    steps[2] = SHUFFLE(high01, high23, 0, 1, LANES, LANES + 1);
    steps[3] = SHUFFLE(high01, high23, 2, 3, LANES + 2, LANES + 3);
}
