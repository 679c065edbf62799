// cpu/simd/gemm_pack_pairs.c: copies panels of bf16 operands in the order in which the kernel
// reads, in words of two neighbours of the depth; an odd last one is paired with 0. Compiled only
// for the level that multiplies them.
#include "cpu/simd/gemm_pack.h"
#include "cpu/simd/gemm_transpose.h"
#include "cpu/simd/vector.h"

enum {
    PANELS_AT_ONCE =
        8,            // filled side by side, so that each row of the source is read in one stretch
    STEPS_AHEAD = 16, // of rows that are called for
    AHEAD = 256,      // numbers of a line that are called for
    LINES_AHEAD = 2,
    STRETCH = WORD_NUMBERS * LANES,
};

static const uint16_t *source_at(const GemmSource *source, int64_t line, int64_t step) {
    return (const uint16_t *)source->data + line * source->line_stride + step * source->step_stride;
}

// The first `count` bits, of 0 .. all.
ALWAYS_INLINE uint32_t mask_of(int64_t count) {
    return count >= 32 ? UINT32_MAX : count <= 0 ? 0 : (1u << count) - 1;
}

ALWAYS_INLINE __m256i load_lines(const uint16_t *from, int64_t count) {
    return count >= LANES ? _mm256_loadu_si256((const __m256i *)from)
                          : _mm256_maskz_loadu_epi16((__mmask16)mask_of(count), from);
}

// ---- lines side by side -------------------------------------------------------------------------

// Two rows of `count` numbers, or one and 0, number by number.
ALWAYS_INLINE Vector interleave(const uint16_t *first, const uint16_t *second, int64_t count) {
    static const uint16_t order[] = {0, 16, 1, 17, 2,  18, 3,  19, 4,  20, 5,  21, 6,  22, 7,  23,
                                     8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31};
    __m256i high = second ? load_lines(second, count) : _mm256_setzero_si256();
    __m512i both = _mm512_inserti64x4(_mm512_castsi256_si512(load_lines(first, count)), high, 1);
    return (Vector)_mm512_permutexvar_epi16(_mm512_loadu_si512(order), both);
}

ALWAYS_INLINE void store_lines(GemmWord *to, int64_t count, Vector words) {
    if (count >= LANES)
        vector_store(to, words);
    else
        _mm512_mask_storeu_ps(to, (__mmask16)mask_of(count), (__m512)words);
}

static void pack_rows(GemmWord *to, int width, const GemmSource *source, int64_t lines,
                      int64_t depth) {
    const int64_t sweep = (int64_t)PANELS_AT_ONCE * width;
    const int64_t panel = gemm_divide_up(depth, WORD_NUMBERS) * width;
    for (int64_t first = 0; first < lines; first += sweep, to += PANELS_AT_ONCE * panel) {
        int64_t here = gemm_smaller(lines - first, sweep);
        for (int64_t k = 0; k < depth; k += WORD_NUMBERS) {
            GemmWord *out = to + k / WORD_NUMBERS * width;
            // Rows are too short and too far apart for the processor to see where this leads.
            for (int ahead = 0; ahead < WORD_NUMBERS; ahead++)
                for (int64_t i = 0; i < here; i += LANES * 2)
                    __builtin_prefetch(source_at(source, first + i, k + STEPS_AHEAD + ahead));
            const uint16_t *row = source_at(source, first, k);
            const uint16_t *next = k + 1 < depth ? source_at(source, first, k + 1) : NULL;
            for (int64_t i = 0; i < here; i += width, out += panel)
                for (int64_t j = 0; j < width && i + j < here; j += LANES)
                    store_lines(out + j, width - j,
                                interleave(row + i + j, next ? next + i + j : NULL, here - i - j));
        }
    }
}

// ---- the depth side by side ---------------------------------------------------------------------

// LANES words of LANES lines, of which `steps` words are there.
ALWAYS_INLINE void transpose_words(GemmWord *to, int width, int64_t lines,
                                   const GemmWord *const rows[LANES], int64_t at, int64_t steps) {
    for (int64_t k = 0; k < steps; k += 4) {
        Vector words[4];
        transpose_quads(words, rows, at + k);
        for (int64_t i = 0; i < 4 && k + i < steps; i++, to += width)
            store_lines(to, lines, words[i]);
    }
}

// Up to LANES lines of a panel; those that are missing at the edge repeat the last.
static void pack_lines(GemmWord *to, int width, int64_t stored, const GemmSource *source,
                       int64_t first, int64_t lines, int64_t depth) {
    const GemmWord *rows[LANES], *ends[LANES];
    GemmWord end[LANES][LANES];
    for (int i = 0; i < LANES; i++) {
        int64_t line = first + gemm_smaller(i, lines - 1);
        rows[i] = (const GemmWord *)source_at(source, line, 0);
        ends[i] = end[i];
    }
    int64_t k = 0, whole = depth - depth % STRETCH;
    const int64_t to_next = LANES * source->line_stride;
    for (; k < whole; k += STRETCH) {
        // So many lines are more streams than the processor follows by itself: at their end those
        // that follow are called for.
        int64_t ahead = k + AHEAD < depth ? k + AHEAD : k + AHEAD - depth + to_next;
        UNROLL for (int i = 0; i < LANES; i++)
            __builtin_prefetch((const uint16_t *)(const void *)rows[i] + ahead);
        UNROLL for (int64_t at = 0; at < LANES; at += 4) transpose_words(
            to + (k / WORD_NUMBERS + at) * width, width, stored, rows, k / WORD_NUMBERS + at, 4);
    }
    if (k == depth)
        return;
    for (int i = 0; i < LANES; i++)
        _mm512_storeu_si512(
            end[i], _mm512_maskz_loadu_epi16(mask_of(depth - k), rows[i] + k / WORD_NUMBERS));
    transpose_words(to + k / WORD_NUMBERS * width, width, stored, ends, 0,
                    gemm_divide_up(depth - k, WORD_NUMBERS));
}

static void pack_columns(GemmWord *to, int width, const GemmSource *source, int64_t lines,
                         int64_t depth) {
    const int64_t words = gemm_divide_up(depth, WORD_NUMBERS);
    for (int64_t panel = 0; panel < lines; panel += width, to += words * width)
        for (int64_t i = 0; i < width && panel + i < lines; i += LANES)
            pack_lines(to + i, width, width - i, source, panel + i, lines - panel - i, depth);
}

static void pack_any(GemmWord *to, int width, const GemmSource *source, int64_t lines,
                     int64_t depth) {
    for (int64_t panel = 0; panel < lines; panel += width)
        for (int64_t k = 0; k < depth; k += WORD_NUMBERS, to += width)
            for (int64_t i = 0; i < width && panel + i < lines; i++) {
                uint16_t pair[WORD_NUMBERS] = {*source_at(source, panel + i, k)};
                if (k + 1 < depth)
                    pair[1] = *source_at(source, panel + i, k + 1);
                memcpy(to + i, pair, sizeof pair);
            }
}

void ISA_NAME(gemm_pack)(GemmWord *to, int width, const GemmSource *source, int64_t lines,
                         int64_t depth) {
    if (source->line_stride == 1)
        pack_rows(to, width, source, lines, depth);
    else if (source->step_stride == 1)
        pack_columns(to, width, source, lines, depth);
    else
        pack_any(to, width, source, lines, depth);
}

void ISA_NAME(gemm_copy)(GemmWord *to, int64_t stride, const GemmSource *source, int64_t lines,
                         int64_t depth) {
    for (int64_t line = 0; line < lines; line++, to += stride) {
        const uint16_t *from = source_at(source, line, 0);
        const uint16_t *ahead = source_at(source, line + LINES_AHEAD, 0);
        for (int64_t k = 0; k < depth; k += STRETCH) {
            __builtin_prefetch(ahead + k);
            _mm512_storeu_si512(to + k / WORD_NUMBERS,
                                _mm512_maskz_loadu_epi16(mask_of(depth - k), from + k));
        }
    }
}
