// cpu/simd/gemm_pack.c: copies panels of A and B to fp32 in the order in which the kernel reads.
#include "cpu/simd/gemm_pack.h"

#include "cpu/simd/gemm_vector.h"

// Panels that are filled side by side, so that each row of the source is read in one stretch.
enum { PANELS_AT_ONCE = 8, ROWS_AHEAD = 8 };

static const void *source_at(const GemmSource *source, int64_t line, int64_t step) {
    int64_t at = line * source->line_stride + step * source->step_stride;
    return (const char *)source->data + at * gemm_bytes(source->format);
}

// `lines` neighbours in memory. A vector that reaches beyond them reads what follows there, where
// `beyond` allows, and writes what is written later.
ALWAYS_INLINE void pack_row(float *to, const void *from, const Format format, int lines, int width,
                            bool beyond) {
    int i = 0;
    for (; i + LANES <= lines; i += LANES)
        vector_store(to + i, vector_load_as(from, format, i));
    if (i < lines && beyond) {
        vector_store(to + i, vector_load_as(from, format, i));
        return;
    }
    for (; i < lines; i++)
        to[i] = number_load(from, format, i);
    for (; i < width && i % LANES; i++)
        to[i] = 0;
}

// Lines lie side by side in memory: each step copies a row, a piece to each panel. The last step
// reads no further than its lines, as nothing need follow them.
ALWAYS_INLINE void pack_rows(float *to, int width, const GemmSource *source, const Format format,
                             int64_t lines, int64_t depth) {
    const int64_t sweep = (int64_t)PANELS_AT_ONCE * width;
    for (int64_t first = 0; first < lines; first += sweep) {
        int64_t here = lines - first < sweep ? lines - first : sweep;
        for (int64_t k = 0; k < depth; k++) {
            bool follows = k + 1 < depth && source->step_stride >= lines + LANES - 1;
            float *out = to + first * depth + k * width;
            // Rows are too short and too far apart for the processor to see where this leads.
            const char *ahead = source_at(source, first, k + ROWS_AHEAD);
            for (int64_t i = 0; i < here * gemm_bytes(format); i += 64)
                __builtin_prefetch(ahead + i);
            for (int64_t i = 0; i < here; i += width, out += width * depth) {
                const void *from = source_at(source, first + i, k);
                int left = (int)(here - i < width ? here - i : width);
                if (left == 2 * LANES) { // what a panel of B mostly is
                    vector_store(out, vector_load_as(from, format, 0));
                    vector_store(out + LANES, vector_load_as(from, format, LANES));
                } else {
                    pack_row(out, from, format, left, width, follows);
                }
            }
        }
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

// One step of LANES lines, or two where each number is a pair of bf16.
ALWAYS_INLINE void store_step(float *to, int width, Vector value, const bool pairs) {
    if (!pairs) {
        vector_store(to, value);
        return;
    }
    vector_store(to, (Vector)((Bits)value << 16));
    vector_store(to + width, (Vector)((Bits)value & 0xFFFF0000));
}

// LANES numbers of LANES rows, transposed. Steps are written in order, as pack_columns explains.
ALWAYS_INLINE void transpose_block(float *to, int width, const float *const rows[LANES], int64_t at,
                                   const bool pairs) {
    const int step = pairs ? 2 * width : width;
    UNROLL for (int k = 0; k < LANES; k += 4, to += 4 * step) {
        Vector r0 = gather_quads(rows, 0, at + k), r1 = gather_quads(rows, 1, at + k);
        Vector r2 = gather_quads(rows, 2, at + k), r3 = gather_quads(rows, 3, at + k);
        Vector low01 = SHUFFLE(r0, r1, 0, LANES, 1, LANES + 1);
        Vector high01 = SHUFFLE(r0, r1, 2, LANES + 2, 3, LANES + 3);
        Vector low23 = SHUFFLE(r2, r3, 0, LANES, 1, LANES + 1);
        Vector high23 = SHUFFLE(r2, r3, 2, LANES + 2, 3, LANES + 3);
        store_step(to, width, SHUFFLE(low01, low23, 0, 1, LANES, LANES + 1), pairs);
        store_step(to + step, width, SHUFFLE(low01, low23, 2, 3, LANES + 2, LANES + 3), pairs);
        store_step(to + 2 * step, width, SHUFFLE(high01, high23, 0, 1, LANES, LANES + 1), pairs);
        store_step(to + 3 * step, width, SHUFFLE(high01, high23, 2, 3, LANES + 2, LANES + 3),
                   pairs);
    }
}

// How far ahead of its transposition a line is called for.
enum { AHEAD = 128 };

// The depth is contiguous in memory: blocks of LANES lines are transposed. Lines that are missing
// at the edge repeat the last one: what their copies overwrite in the next step is written later,
// by that step or, as the lines go downwards, by the lines before.
ALWAYS_INLINE void pack_columns(float *to, int width, const GemmSource *source, const Format format,
                                const bool pairs, int lines, int64_t depth) {
    const bool converts = format != FORMAT_FP32 && !pairs;
    for (int first = (lines - 1) / LANES * LANES; first >= 0; first -= LANES) {
        int64_t offset[LANES];
        const float *rows[LANES];
        float converted[LANES][LANES];
        for (int i = 0; i < LANES; i++) {
            int line = first + i < lines ? first + i : lines - 1;
            offset[i] = line * source->line_stride;
            rows[i] = converts ? converted[i] : (const float *)source_at(source, line, 0);
        }
        // To the lines whose turn is next: those before, or the last of the next panel.
        const int64_t last = width + (width - 1) / LANES * LANES;
        const int64_t to_next = (first > 0 ? -LANES : last) * source->line_stride;
        const int64_t distance = AHEAD < depth ? AHEAD : depth;
        int64_t k = 0;
        const int64_t stretch = pairs ? 2 * LANES : LANES;
        for (; k + stretch <= depth; k += stretch) {
            // So many lines are more streams than the processor follows by itself.
            int64_t ahead = k + distance < depth ? k + distance : k + distance - depth + to_next;
            for (int i = 0; i < LANES; i++)
                __builtin_prefetch(source_at(source, 0, offset[i] + ahead));
            if (converts)
                UNROLL for (int i = 0; i < LANES; i++)
                    vector_store(converted[i], vector_load_as(source->data, format, offset[i] + k));
            int64_t at = converts ? 0 : pairs ? k / 2 : k;
            transpose_block(to + k * width + first, width, rows, at, pairs);
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
            to[i] = i < lines ? number_load(source_at(source, i, k), format, 0) : 0;
}

// Whether two neighbours of bf16 can be moved as one number of 32 bits, which halves the work.
ALWAYS_INLINE bool are_pairs(const GemmSource *source) {
    return source->format == FORMAT_BF16 && source->line_stride % 2 == 0 &&
           (uintptr_t)source->data % sizeof(float) == 0;
}

ALWAYS_INLINE void pack_format(float *to, int width, const GemmSource *source, const Format format,
                               int64_t lines, int64_t depth) {
    if (source->line_stride == 1) {
        pack_rows(to, width, source, format, lines, depth);
        return;
    }
    for (int64_t first = 0; first < lines; first += width) {
        GemmSource panel = *source;
        panel.data = source_at(source, first, 0);
        int left = (int)(lines - first < width ? lines - first : width);
        if (source->step_stride == 1 && are_pairs(&panel))
            pack_columns(to + first * depth, width, &panel, format, true, left, depth);
        else if (source->step_stride == 1)
            pack_columns(to + first * depth, width, &panel, format, false, left, depth);
        else
            pack_any(to + first * depth, width, &panel, format, left, depth);
    }
}

void ISA_NAME(gemm_pack)(float *to, int width, const GemmSource *source, int64_t lines,
                         int64_t depth) {
    if (source->format == FORMAT_FP32)
        pack_format(to, width, source, FORMAT_FP32, lines, depth);
    else if (source->format == FORMAT_BF16)
        pack_format(to, width, source, FORMAT_BF16, lines, depth);
    else
        pack_format(to, width, source, FORMAT_FP16, lines, depth);
}

ALWAYS_INLINE void copy_format(float *to, int64_t stride, const GemmSource *source,
                               const Format format, int64_t lines, int64_t depth) {
    for (int64_t line = 0; line < lines; line++, to += stride) {
        const void *from = source_at(source, line, 0);
        int64_t k = 0;
        for (; k + LANES <= depth; k += LANES)
            vector_store(to + k, vector_load_as(from, format, k));
        for (; k < depth; k++)
            to[k] = number_load(from, format, k);
    }
}

void ISA_NAME(gemm_copy)(float *to, int64_t stride, const GemmSource *source, int64_t lines,
                         int64_t depth) {
    if (source->format == FORMAT_FP32)
        copy_format(to, stride, source, FORMAT_FP32, lines, depth);
    else if (source->format == FORMAT_BF16)
        copy_format(to, stride, source, FORMAT_BF16, lines, depth);
    else
        copy_format(to, stride, source, FORMAT_FP16, lines, depth);
}
