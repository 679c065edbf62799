// cpu/simd/gemm_elements_pack.c: finds the step of each block and packs whole numbers of it. See
// cpu/simd/gemm_elements.h.
#include <math.h>

#include "cpu/simd/gemm_elements.h"
#include "cpu/simd/gemm_transpose.h"

// Blocks whose largest number lies beyond these powers of two are left to others, so that no scaled
// sum overflows or vanishes which is not itself too large or too small.
enum { FARTHEST = 60 };

// A block of so many lines of one of the factors, a line in each lane.
typedef struct Strip {
    Bits pairs[MOST_STEPS / 2]; // two neighbours of the depth, the first in the lower half
    Words words[MOST_STEPS / WORD], less;
    Vector step;
    Words others; // lanes that held, in this block or one before, what cannot be packed so
} Strip;

// Binary digits of the most that an element is, in steps.
static int digits_of(Format format) {
    return ilogb(format_table[format].largest / format_table[format].smallest_subnormal);
}

ElementsShape ISA_NAME(gemm_elements_shape)(const Gemm *gemm) {
    ElementsShape shape = {.block = gemm->blocks.block, .words = gemm->blocks.block / WORD};
    shape.blocks = gemm_divide_up(gemm->depth, shape.block);
    for (int i = 0; i < 2 && gemm->blocks.scale == FORMAT_E8M0; i++)
        shape.digits[i] = digits_of(gemm->blocks.element[i]);
    // Rows are written in whole vectors, the last ones beyond their end.
    shape.a_tile = shape.blocks * (shape.words + 2) * TILE_ROWS + LANES;
    shape.b_panel = shape.blocks * (shape.words + 1) * PANEL;
    return shape;
}

// ---- reading ------------------------------------------------------------------------------------

static const uint16_t *source_at(const GemmSource *source, int64_t line, int64_t step) {
    return (const uint16_t *)source->data + line * source->line_stride + step * source->step_stride;
}

// Lines side by side; those that are missing are 0.
static void read_across(Strip *strip, const GemmSource *source, int64_t first, int lines,
                        int64_t step, int steps) {
    const uint16_t *from = source_at(source, first, step);
    for (int k = 0; k < steps; k += 2, from += 2 * source->step_stride) {
        Bits pair = (Bits)vector_load_some(from, FORMAT_BF16, 0, lines) >> 16;
        if (k + 1 < steps)
            pair |= (Bits)vector_load_some(from + source->step_stride, FORMAT_BF16, 0, lines);
        strip->pairs[k / 2] = pair;
    }
}

// The depth side by side; lines that are missing repeat the last. What lies past the end of a line
// is not read.
static void read_along(Strip *strip, const GemmSource *source, int64_t first, int lines,
                       int64_t step, int steps, int block) {
    const GemmWord *rows[LANES];
    uint16_t ends[LANES][MOST_STEPS];
    for (int i = 0; i < LANES; i++) {
        const uint16_t *from = source_at(source, first + (i < lines ? i : lines - 1), step);
        rows[i] = (const GemmWord *)from;
        if (steps == block)
            continue;
        memset(ends[i], 0, sizeof ends[i]);
        memcpy(ends[i], from, (size_t)steps * sizeof *from);
        rows[i] = (const GemmWord *)ends[i];
    }
    for (int k = 0; k < block / 2; k += 4)
        transpose_quads((Vector *)&strip->pairs[k], rows, k);
}

static void read_any(Strip *strip, const GemmSource *source, int64_t first, int lines, int64_t step,
                     int steps) {
    for (int k = 0; k < steps; k++)
        for (int i = 0; i < lines; i++)
            strip->pairs[k / 2][i] |= (uint32_t)*source_at(source, first + i, step + k)
                                      << 16 * (k % 2);
}

static void read_strip(Strip *strip, const GemmSource *source, int64_t first, int lines,
                       int64_t step, int steps, int block) {
    if (source->step_stride == 1 && source->line_stride != 1) {
        read_along(strip, source, first, lines, step, steps, block);
        return;
    }
    const bool is_any = source->line_stride != 1;
    for (int k = is_any ? 0 : steps / 2; k < block / 2; k++)
        strip->pairs[k] = (Bits){0};
    if (is_any)
        read_any(strip, source, first, lines, step, steps);
    else
        read_across(strip, source, first, lines, step, steps);
}

// ---- packing ------------------------------------------------------------------------------------

ALWAYS_INLINE bool any(Words mask) {
#if defined(__AVX512F__)
    return _mm512_test_epi32_mask((__m512i)mask, (__m512i)mask) != 0;
#else
    return !_mm256_testz_si256((__m256i)mask, (__m256i)mask);
#endif
}

ALWAYS_INLINE Vector first_of(Bits pair) {
    return (Vector)(pair << 16);
}

ALWAYS_INLINE Vector second_of(Bits pair) {
    return (Vector)(pair & 0xffff0000u);
}

// The larger of each half.
ALWAYS_INLINE Bits larger_halves(Bits a, Bits b) {
#if defined(__AVX512BW__)
    return (Bits)_mm512_max_epu16((__m512i)a, (__m512i)b);
#else
    return (Bits)_mm256_max_epu16((__m256i)a, (__m256i)b);
#endif
}

ALWAYS_INLINE Bits largest_of(const Strip *strip, const int pairs) {
    Bits largest = {0};
    UNROLL for (int k = 0; k < pairs; k++) largest =
        larger_halves(largest, strip->pairs[k] & 0x7fff7fffu);
    const Bits first = largest << 16, second = largest & 0xffff0000u;
    return (Bits)vector_select((Words)(first > second), (Vector)first, (Vector)second);
}

// Where scales have digits of their own, the largest number is 12, 6 or 3 steps, or 8 and fewer by
// halves: those of which all numbers are whole ones. A step is as short as a scale is, and bf16
// holds it.
static Vector find_step(Strip *strip, Vector largest, int pairs) {
    static const float most[] = {12, 8};
    const Vector large = vector_all(0x1.8p23f);
    Vector found = {0};
    Words none = (Words)(largest > 0);
    for (int i = 0; i < 2 && any(none); i++) {
        const Vector step = largest / vector_all(most[i]), steps = vector_all(most[i]) / largest;
        Words whole = none & (Words)(((Bits)step & 0xffffu) == 0);
        for (int k = 0; k < pairs; k++) {
            const Vector x = first_of(strip->pairs[k]), y = second_of(strip->pairs[k]);
            whole &= (Words)(((x * steps + large) - large) * step == x) &
                     (Words)(((y * steps + large) - large) * step == y);
        }
        found = vector_select(whole, step, found);
        none &= ~whole;
    }
    strip->others |= none;
    return found;
}

// Whole numbers are the last bits of what is added to a number so large that nothing smaller fits.
// Four are put together by adding them, 128 too large so that none is below 0.
ALWAYS_INLINE Words word_of(const Bits pair[2], Vector steps) {
    const Vector large = vector_all(0x1.8p23f + 128);
    const uint32_t more = 0x4B400000u;
    const Bits a = (Bits)(first_of(pair[0]) * steps + large);
    const Bits b = (Bits)(second_of(pair[0]) * steps + large);
    const Bits c = (Bits)(first_of(pair[1]) * steps + large);
    const Bits d = (Bits)(second_of(pair[1]) * steps + large);
    const Bits all = (a + (b << 8)) + ((c << 16) + (d << 24));
    return (Words)(all - (more + (more << 8) + (more << 16) + (more << 24)));
}

// Where scales are powers of two, so are steps: what the largest number's leading digit is worth,
// so many digits down. The scale may have been larger, and all numbers are then whole ones of more.
ALWAYS_INLINE void pack_strip(Strip *strip, const int block, int digits, bool is_a) {
    const Bits largest = largest_of(strip, block / 2);
    const Words is_zero = (Words)(largest == 0);
    const uint32_t least = (127 - FARTHEST) << 23, most = (127 + FARTHEST) << 23;
    strip->others |= ~is_zero & (Words)((largest < least) | (largest >= most));
    Vector step, steps;
    if (digits > 0) {
        const Bits power = (largest & 0x7f800000u) - ((uint32_t)digits << 23);
        step = (Vector)power;
        steps = (Vector)((254u << 23) - power);
    } else {
        step = find_step(strip, (Vector)largest, block / 2);
        steps = 1 / step;
    }
    strip->step = vector_select(is_zero, (Vector){0}, step);
    steps = vector_select(is_zero, (Vector){0}, steps);
    UNROLL for (int k = 0; k < block / WORD; k++) {
        const Bits word = (Bits)word_of(&strip->pairs[2 * k], steps);
        // word_of's 128 comes off A's numbers, of B's OFFSET stays.
        strip->words[k] = (Words)(is_a ? word ^ 0x80808080u : word - 0x40404040u);
    }
    if (!is_a)
        return;
    Words sum = {0};
    const Words ones[2] = {(Words){0} + 0x01010101, (Words){0} + 0x01010101};
    UNROLL for (int k = 0; k < block / WORD; k += 2) sum =
        words_add(sum, ones, strip->words[k], strip->words[k + 1]);
    strip->less = sum * -OFFSET;
}

static void pack_block(Strip *strip, const ElementsShape *shape, bool is_a) {
    if (shape->block == MOST_STEPS)
        pack_strip(strip, MOST_STEPS, shape->digits[is_a ? 0 : 1], is_a);
    else
        pack_strip(strip, MOST_STEPS / 2, shape->digits[is_a ? 0 : 1], is_a);
}

ALWAYS_INLINE Vector lanes_behind(Vector x) {
#if defined(__AVX512F__)
    return (Vector)_mm512_alignr_epi32((__m512i)x, (__m512i)x, TILE_ROWS);
#else
    return (Vector)_mm256_permute2x128_si256((__m256i)x, (__m256i)x, 1);
#endif
}

ALWAYS_INLINE void store_rows(GemmWord *to, int64_t tile, Vector rows) {
    vector_store(to, rows);
    vector_store(to + tile, lanes_behind(rows));
}

bool ISA_NAME(gemm_elements_pack_a)(const ElementsShape *shape, const Gemm *gemm, int64_t row,
                                    GemmWord *to) {
    const GemmSource source = {gemm->a.data, FORMAT_BF16, gemm->a.row_stride,
                               gemm->a.column_stride};
    const int rows = (int)gemm_smaller(gemm->rows - row, STRIP);
    Strip strip = {.others = {0}};
    for (int64_t step = 0; step < gemm->depth; step += shape->block) {
        const int steps = (int)gemm_smaller(gemm->depth - step, shape->block);
        read_strip(&strip, &source, row, rows, step, steps, shape->block);
        pack_block(&strip, shape, true);
        for (int i = 0; i < shape->words; i++, to += TILE_ROWS)
            store_rows(to, shape->a_tile, (Vector)strip.words[i]);
        store_rows(to, shape->a_tile, strip.step);
        store_rows(to + TILE_ROWS, shape->a_tile, (Vector)strip.less);
        to += 2 * TILE_ROWS;
    }
    return !any(strip.others);
}

bool ISA_NAME(gemm_elements_pack_b)(const ElementsShape *shape, const Gemm *gemm, int64_t column,
                                    GemmWord *panel) {
    const GemmSource source = {gemm->b.data, FORMAT_BF16, gemm->b.column_stride,
                               gemm->b.row_stride};
    Words others = {0};
    for (int part = 0; part < PANEL; part += LANES) {
        const int columns = (int)gemm_smaller(gemm->columns - column - part, LANES);
        GemmWord *to = panel + part;
        Strip strip = {.others = {0}};
        for (int64_t step = 0; step < gemm->depth; step += shape->block) {
            const int steps = (int)gemm_smaller(gemm->depth - step, shape->block);
            if (columns > 0) {
                read_strip(&strip, &source, column + part, columns, step, steps, shape->block);
                pack_block(&strip, shape, false);
            }
            for (int i = 0; i < shape->words; i++, to += PANEL)
                vector_store(to, (Vector)strip.words[i]);
            vector_store(to, strip.step);
            to += PANEL;
        }
        others |= strip.others;
    }
    return !any(others);
}
