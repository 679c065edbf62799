// cpu/simd/gemm_elements.c: the matrix product of numbers that are elements of few bits with shared
// scales. See cpu/gemm_way.h.
//
// In a block of the depth a line's numbers are whole numbers of one step: e2m1 has 12 of them on
// either side of 0, e2m3 60. What a step is worth is seen from the numbers themselves. Of each
// block its whole numbers are packed, four to a word, and the step. The instruction takes B's for
// unsigned: they are packed OFFSET too large, and with A what that adds to each sum is packed, to
// begin with what takes it off.
#include <assert.h>
#include <math.h>

#include "cpu/gemm_way.h"
#include "cpu/simd/gemm_transpose.h"
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
    LEAST_SIDE = 16,
    OFFSET = GEMM_MOST_WHOLE + 1,
    // Packed: columns that stay in the second-level cache while the rows pass, and those rows.
    B_BYTES = 768 << 10,
    A_BYTES = 256 << 10,
    // Blocks whose largest number lies beyond these powers of two are left to others, so that no
    // scaled sum overflows or vanishes which is not itself too large or too small.
    FARTHEST = 60,
};

// ---- what is packed -----------------------------------------------------------------------------

// A block of so many lines of one of the factors, a line in each lane.
typedef struct Strip {
    Bits pairs[MOST_STEPS / 2]; // two neighbours of the depth, the first in the lower half
    Words words[MOST_STEPS / WORD], less;
    Vector step;
    Words others; // lanes that held, in this block or one before, what cannot be packed so
} Strip;

// How a product is packed.
typedef struct Shape {
    int block, words; // steps and words of a block
    int64_t blocks;   // of the depth
    int digits[2];    // of the whole numbers of A and B, or 0: where 6, 4 or 3 is the largest
    int64_t a_tile, b_panel; // words that a tile of rows and a panel of columns take
} Shape;

// Binary digits of the most that an element is, in steps.
static int digits_of(Format format) {
    return ilogb(format_table[format].largest / format_table[format].smallest_subnormal);
}

static Shape shape_of(const Gemm *gemm) {
    Shape shape = {.block = gemm->blocks.block, .words = gemm->blocks.block / WORD};
    shape.blocks = gemm_divide_up(gemm->depth, shape.block);
    for (int i = 0; i < 2 && gemm->blocks.scale == FORMAT_E8M0; i++)
        shape.digits[i] = digits_of(gemm->blocks.element[i]);
    // Rows are written in whole vectors, the last ones beyond their end.
    shape.a_tile = shape.blocks * (shape.words + 2) * TILE_ROWS + LANES;
    shape.b_panel = shape.blocks * (shape.words + 1) * PANEL;
    return shape;
}

static bool suits(const Gemm *gemm) {
    if (!gemm_blocks_are_whole(&gemm->blocks))
        return false;
    assert(gemm->a.format == FORMAT_BF16 && gemm->b.format == FORMAT_BF16);
    return gemm->rows >= LEAST_SIDE && gemm->columns >= LEAST_SIDE && gemm->depth >= LEAST_SIDE;
}

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

static void pack_block(Strip *strip, const Shape *shape, bool is_a) {
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

// STRIP rows of A, as two tiles; false: it holds what is to be computed by others.
static bool pack_a(const Shape *shape, const Gemm *gemm, int64_t row, GemmWord *to) {
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

// A panel of columns of B.
static bool pack_b(const Shape *shape, const Gemm *gemm, int64_t column, GemmWord *panel) {
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

// ---- multiplying --------------------------------------------------------------------------------

ALWAYS_INLINE Words whole_to_all(const GemmWord *word) {
    int32_t whole;
    memcpy(&whole, word, sizeof whole);
    return whole - (Words){0};
}

// A tile of rows and a panel of columns, all the depth. `words` is a constant where this is
// inlined.
ALWAYS_INLINE void multiply_tile(const GemmWord *a, const GemmWord *b, int64_t blocks,
                                 const int words, float *out) {
    Vector sums[TILE_ROWS][TILE_VECTORS];
    UNROLL for (int i = 0; i < TILE_ROWS; i++) {
        UNROLL for (int j = 0; j < TILE_VECTORS; j++) sums[i][j] = (Vector){0};
    }
    for (int64_t block = 0; block < blocks; block++) {
        Words whole[TILE_ROWS][TILE_VECTORS];
        const GemmWord *steps = a + words * TILE_ROWS, *less = steps + TILE_ROWS;
        UNROLL for (int i = 0; i < TILE_ROWS; i++) {
            UNROLL for (int j = 0; j < TILE_VECTORS; j++) whole[i][j] = whole_to_all(less + i);
        }
        UNROLL for (int k = 0; k < words; k += 2) {
            Words line[TILE_VECTORS][2];
            UNROLL for (int j = 0; j < TILE_VECTORS; j++) {
                line[j][0] = (Words)vector_load(b + k * PANEL + j * LANES);
                line[j][1] = (Words)vector_load(b + (k + 1) * PANEL + j * LANES);
            }
            UNROLL for (int i = 0; i < TILE_ROWS; i++) {
                const Words each = whole_to_all(a + k * TILE_ROWS + i);
                const Words next = whole_to_all(a + (k + 1) * TILE_ROWS + i);
                UNROLL for (int j = 0; j < TILE_VECTORS; j++) whole[i][j] =
                    words_add(whole[i][j], line[j], each, next);
            }
        }
        UNROLL for (int j = 0; j < TILE_VECTORS; j++) {
            const Vector step = vector_load(b + words * PANEL + j * LANES);
            UNROLL for (int i = 0; i < TILE_ROWS; i++) sums[i][j] =
                vector_multiply_add(__builtin_convertvector(whole[i][j], Vector) * step,
                                    vector_all(steps[i]), sums[i][j]);
        }
        a += (words + 2) * TILE_ROWS;
        b += (words + 1) * PANEL;
    }
    UNROLL for (int i = 0; i < TILE_ROWS; i++) {
        UNROLL for (int j = 0; j < TILE_VECTORS; j++)
            vector_store(out + i * PANEL + j * LANES, sums[i][j]);
    }
}

static void multiply_long(const GemmWord *a, const GemmWord *b, int64_t blocks, float *out) {
    multiply_tile(a, b, blocks, MOST_STEPS / WORD, out);
}

static void multiply_short(const GemmWord *a, const GemmWord *b, int64_t blocks, float *out) {
    multiply_tile(a, b, blocks, MOST_STEPS / 2 / WORD, out);
}

// ---- the whole ----------------------------------------------------------------------------------

typedef struct Workspace {
    GemmWord *a, *b;         // packed
    float *sums;             // of a tile and a panel
    bool *a_holds, *b_holds; // which strips and panels are packed: all but those others compute
    void *vectors;           // theirs
    int64_t strips, panels;  // packed at once
    size_t bytes;
} Workspace;

static Gemm block_of(const Gemm *gemm, int64_t row, int64_t column) {
    return gemm_block_of(gemm, row, column, STRIP, PANEL);
}

static int64_t fitting(int64_t lines, int together, int64_t words, int64_t bytes) {
    const int64_t fit = bytes / (words * (int64_t)sizeof(GemmWord));
    return gemm_smaller(gemm_divide_up(lines, together), fit > 1 ? fit : 1);
}

// With a NULL base only the sizes are meant.
static Workspace lay_out(const GemmKernels *plain, const Gemm *gemm, char *base) {
    const Shape shape = shape_of(gemm);
    Workspace space = {.strips = fitting(gemm->rows, STRIP, 2 * shape.a_tile, A_BYTES),
                       .panels = fitting(gemm->columns, PANEL, shape.b_panel, B_BYTES)};
    const Gemm block = block_of(gemm, 0, 0);
    const size_t words = sizeof(GemmWord);
    space.a = gemm_carve(base, &space.bytes, (size_t)(space.strips * 2 * shape.a_tile) * words);
    space.b = gemm_carve(base, &space.bytes, (size_t)(space.panels * shape.b_panel) * words);
    space.sums = gemm_carve(base, &space.bytes, TILE_ROWS * PANEL * sizeof(float));
    space.a_holds = gemm_carve(base, &space.bytes, (size_t)space.strips * sizeof(bool));
    space.b_holds = gemm_carve(base, &space.bytes, (size_t)space.panels * sizeof(bool));
    space.vectors =
        gemm_carve(base, &space.bytes, gemm_workspace_size_by(&(GemmWays){.plain = plain}, &block));
    return space;
}

static size_t workspace_size(const GemmKernels *plain, const Gemm *gemm) {
    return lay_out(plain, gemm, NULL).bytes + GEMM_CACHE_LINE;
}

// The sums end in memory that is far away as often as not.
static void call_for(const Gemm *block) {
    const int64_t row = block->c.row_stride * gemm_bytes(block->c.format);
    const int64_t last = (block->columns - 1) * gemm_bytes(block->c.format);
    const char *c = block->c.data;
    for (int64_t i = 0; i < block->rows; i++, c += row) {
        __builtin_prefetch(c, 1);
        __builtin_prefetch(c + last, 1);
    }
}

// Up to STRIP rows and a panel of columns, packed.
static void multiply_strip(const GemmKernels *plain, const Shape *shape, const Workspace *space,
                           const Gemm *gemm, int64_t row, int64_t column, const GemmWord *a,
                           const GemmWord *b) {
    const int64_t end = gemm_smaller(gemm->rows, row + STRIP);
    for (; row < end; row += TILE_ROWS, a += shape->a_tile) {
        const Gemm block =
            gemm_block_of(gemm, row, column, gemm_smaller(TILE_ROWS, end - row), PANEL);
        const GemmBlock ends = gemm_end_of(&block);
        call_for(&block);
        if (shape->block == MOST_STEPS)
            multiply_long(a, b, shape->blocks, space->sums);
        else
            multiply_short(a, b, shape->blocks, space->sums);
        plain->finish(&ends, space->sums, PANEL);
    }
}

static void multiply_packed(const GemmKernels *plain, const Shape *shape, const Workspace *space,
                            const Gemm *gemm, int64_t row, int64_t rows, int64_t column,
                            int64_t columns) {
    for (int64_t j = 0; j < columns; j += PANEL)
        for (int64_t i = 0; i < rows; i += STRIP) {
            if (space->a_holds[i / STRIP] && space->b_holds[j / PANEL]) {
                multiply_strip(plain, shape, space, gemm, row + i, column + j,
                               space->a + i / TILE_ROWS * shape->a_tile,
                               space->b + j / PANEL * shape->b_panel);
                continue;
            }
            Gemm block = block_of(gemm, row + i, column + j);
            block.blocks.block = 0;
            gemm_run_by(&(GemmWays){.plain = plain}, &block, space->vectors);
        }
}

static void multiply(const GemmKernels *plain, const Gemm *gemm, void *workspace) {
    char *base = (char *)workspace + (0 - (uintptr_t)workspace) % GEMM_CACHE_LINE;
    const Workspace space = lay_out(plain, gemm, base);
    const Shape shape = shape_of(gemm);
    const int64_t wide = space.panels * PANEL, tall = space.strips * STRIP;
    for (int64_t column = 0; column < gemm->columns; column += wide) {
        const int64_t columns = gemm_smaller(gemm->columns - column, wide);
        for (int64_t j = 0; j < columns; j += PANEL)
            space.b_holds[j / PANEL] =
                pack_b(&shape, gemm, column + j, space.b + j / PANEL * shape.b_panel);
        for (int64_t row = 0; row < gemm->rows; row += tall) {
            const int64_t rows = gemm_smaller(gemm->rows - row, tall);
            for (int64_t i = 0; i < rows; i += STRIP)
                space.a_holds[i / STRIP] =
                    pack_a(&shape, gemm, row + i, space.a + i / TILE_ROWS * shape.a_tile);
            multiply_packed(plain, &shape, &space, gemm, row, rows, column, columns);
        }
    }
}

const GemmWay ISA_NAME(gemm_elements) = {
    .block_rows = STRIP,
    .block_columns = PANEL,
    .suits = suits,
    .workspace_size = workspace_size,
    .multiply = multiply,
};
