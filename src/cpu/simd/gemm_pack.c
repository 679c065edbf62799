// cpu/simd/gemm_pack.c: copies panels of A and B to fp32 in the order in which the kernel reads.
#include "cpu/simd/gemm_pack.h"

#include "cpu/simd/gemm_vector.h"

// Lines lie side by side in memory: each step copies one short row. A vector that reaches beyond
// the lines reads what follows in memory and writes what the next step overwrites; the last step
// goes number by number, where nothing need follow.
ALWAYS_INLINE void pack_rows(float *to, int width, const GemmSource *source, const Format format,
                             int lines, int64_t depth) {
    int64_t safe = source->step_stride >= lines + LANES - 1 ? depth - 1 : 0;
    int whole = lines / LANES * LANES;
    for (int64_t k = 0; k < depth; k++, to += width) {
        int64_t at = k * source->step_stride;
        int i = 0;
        for (; i < whole; i += LANES)
            vector_store(to + i, vector_load_as(source->data, format, at + i));
        if (i < lines && k < safe) {
            vector_store(to + i, vector_load_as(source->data, format, at + i));
            continue;
        }
        for (; i < lines; i++)
            to[i] = number_load(source->data, format, at + i);
        for (; i < width; i++)
            to[i] = 0;
    }
}

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

// Four numbers of every fourth row, side by side.
ALWAYS_INLINE Vector gather_quads(const float *const rows[LANES], int first, int64_t at) {
#if defined(__AVX512F__)
    __m512 value = _mm512_castps128_ps512(_mm_loadu_ps(rows[first] + at));
    value = _mm512_insertf32x4(value, _mm_loadu_ps(rows[first + 4] + at), 1);
    value = _mm512_insertf32x4(value, _mm_loadu_ps(rows[first + 8] + at), 2);
    return (Vector)_mm512_insertf32x4(value, _mm_loadu_ps(rows[first + 12] + at), 3);
#elif defined(__AVX2__)
    __m256 value = _mm256_castps128_ps256(_mm_loadu_ps(rows[first] + at));
    return (Vector)_mm256_insertf128_ps(value, _mm_loadu_ps(rows[first + 4] + at), 1);
#else
    return vector_load(rows[first] + at);
#endif
}

// LANES steps of LANES rows, transposed. Steps are written in order, as pack_rows explains.
ALWAYS_INLINE void transpose_block(float *to, int width, const float *const rows[LANES],
                                   int64_t at) {
    UNROLL for (int k = 0; k < LANES; k += 4) {
        Vector r0 = gather_quads(rows, 0, at + k), r1 = gather_quads(rows, 1, at + k);
        Vector r2 = gather_quads(rows, 2, at + k), r3 = gather_quads(rows, 3, at + k);
        Vector low01 = SHUFFLE(r0, r1, 0, LANES, 1, LANES + 1);
        Vector high01 = SHUFFLE(r0, r1, 2, LANES + 2, 3, LANES + 3);
        Vector low23 = SHUFFLE(r2, r3, 0, LANES, 1, LANES + 1);
        Vector high23 = SHUFFLE(r2, r3, 2, LANES + 2, 3, LANES + 3);
        vector_store(to + k * width, SHUFFLE(low01, low23, 0, 1, LANES, LANES + 1));
        vector_store(to + (k + 1) * width, SHUFFLE(low01, low23, 2, 3, LANES + 2, LANES + 3));
        vector_store(to + (k + 2) * width, SHUFFLE(high01, high23, 0, 1, LANES, LANES + 1));
        vector_store(to + (k + 3) * width, SHUFFLE(high01, high23, 2, 3, LANES + 2, LANES + 3));
    }
}

// The depth is contiguous in memory: blocks of LANES lines are transposed. Lines that are missing
// at the edge repeat the last one: what their copies overwrite in the next step is written later,
// by that step or, as the lines go downwards, by the lines before.
ALWAYS_INLINE void pack_columns(float *to, int width, const GemmSource *source, const Format format,
                                int lines, int64_t depth) {
    for (int first = (lines - 1) / LANES * LANES; first >= 0; first -= LANES) {
        int64_t offset[LANES];
        const float *rows[LANES];
        float converted[LANES][LANES];
        for (int i = 0; i < LANES; i++) {
            int line = first + i < lines ? first + i : lines - 1;
            offset[i] = line * source->line_stride;
            rows[i] =
                format == FORMAT_FP32 ? (const float *)source->data + offset[i] : converted[i];
        }
        int64_t k = 0;
        for (; k + LANES <= depth; k += LANES) {
            if (format != FORMAT_FP32)
                UNROLL for (int i = 0; i < LANES; i++)
                    vector_store(converted[i], vector_load_as(source->data, format, offset[i] + k));
            transpose_block(to + k * width + first, width, rows, format == FORMAT_FP32 ? k : 0);
        }
        for (; k < depth; k++)
            for (int i = 0; i < LANES && first + i < width; i++)
                to[k * width + first + i] = number_load(source->data, format, offset[i] + k);
    }
}

ALWAYS_INLINE void pack_any(float *to, int width, const GemmSource *source, const Format format,
                            int lines, int64_t depth) {
    for (int64_t k = 0; k < depth; k++, to += width)
        for (int i = 0; i < width; i++)
            to[i] = i < lines ? number_load(source->data, format,
                                            i * source->line_stride + k * source->step_stride)
                              : 0;
}

ALWAYS_INLINE void pack_format(float *to, int width, const GemmSource *source, const Format format,
                               int lines, int64_t depth) {
    if (source->line_stride == 1)
        pack_rows(to, width, source, format, lines, depth);
    else if (source->step_stride == 1)
        pack_columns(to, width, source, format, lines, depth);
    else
        pack_any(to, width, source, format, lines, depth);
}

void ISA_NAME(gemm_pack)(float *to, int width, const GemmSource *source, int lines, int64_t depth) {
    if (source->format == FORMAT_FP32)
        pack_format(to, width, source, FORMAT_FP32, lines, depth);
    else if (source->format == FORMAT_BF16)
        pack_format(to, width, source, FORMAT_BF16, lines, depth);
    else
        pack_format(to, width, source, FORMAT_FP16, lines, depth);
}
