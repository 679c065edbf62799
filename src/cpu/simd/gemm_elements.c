// cpu/simd/gemm_elements.c: the matrix product of numbers that are elements of few bits with shared
// scales, from what gemm_elements_pack.c packs. See cpu/gemm_way.h.
#include <assert.h>

#include "cpu/simd/gemm_elements.h"

enum {
    LEAST_SIDE = 16,
    // Packed: columns that stay in the second-level cache while the rows pass, and those rows.
    B_BYTES = 768 << 10,
    A_BYTES = 256 << 10,
    // However deep they are: for each lot of panels the rows are packed anew.
    LEAST_PANELS = 8,
    // Of the depth, where C holds the sums meanwhile: a panel then stays in the first-level cache.
    DEPTH = 768,
};

static bool suits(const Gemm *gemm) {
    if (!gemm_blocks_are_whole(&gemm->blocks))
        return false;
    assert(gemm->a.format == FORMAT_BF16 && gemm->b.format == FORMAT_BF16);
    return gemm->rows >= LEAST_SIDE && gemm->columns >= LEAST_SIDE && gemm->depth >= LEAST_SIDE;
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

static int64_t fitting(int64_t lines, int together, int64_t words, int64_t bytes, int least) {
    const int64_t fit = bytes / (words * (int64_t)sizeof(GemmWord));
    return gemm_smaller(gemm_divide_up(lines, together), fit > least ? fit : least);
}

// With a NULL base only the sizes are meant.
static Workspace lay_out(const GemmKernels *plain, const Gemm *gemm, char *base) {
    const ElementsShape shape = ISA_NAME(gemm_elements_shape)(gemm);
    Workspace space = {.strips = fitting(gemm->rows, STRIP, 2 * shape.a_tile, A_BYTES, 1),
                       .panels =
                           fitting(gemm->columns, PANEL, shape.b_panel, B_BYTES, LEAST_PANELS)};
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

// So much of the depth is multiplied at a time.
static int64_t stretch_of(const Gemm *gemm) {
    if (gemm->c.format != FORMAT_FP32 || gemm->bias || gemm->activation != GEMM_ACTIVATION_NONE)
        return gemm->depth;
    const int64_t block = gemm->blocks.block;
    const int64_t each = gemm_divide_up(gemm->depth, gemm_divide_up(gemm->depth, DEPTH));
    return gemm_divide_up(each, block) * block;
}

static size_t workspace_size(const GemmKernels *plain, const Gemm *gemm) {
    Gemm part = *gemm;
    part.depth = gemm_smaller(gemm->depth, stretch_of(gemm));
    return lay_out(plain, &part, NULL).bytes + GEMM_CACHE_LINE;
}

// Up to STRIP rows and a panel of columns, packed.
static void multiply_strip(const GemmKernels *plain, const ElementsShape *shape,
                           const Workspace *space, const Gemm *gemm, int64_t row, int64_t column,
                           const GemmWord *a, const GemmWord *b) {
    const int64_t end = gemm_smaller(gemm->rows, row + STRIP);
    for (; row < end; row += TILE_ROWS, a += shape->a_tile) {
        const Gemm block =
            gemm_block_of(gemm, row, column, gemm_smaller(TILE_ROWS, end - row), PANEL);
        const GemmBlock ends = gemm_end_of(&block);
        gemm_call_for_result(&block);
        if (shape->block == MOST_STEPS)
            multiply_long(a, b, shape->blocks, space->sums);
        else
            multiply_short(a, b, shape->blocks, space->sums);
        plain->finish(&ends, space->sums, PANEL);
    }
}

static void multiply_packed(const GemmKernels *plain, const ElementsShape *shape,
                            const Workspace *space, const Gemm *gemm, int64_t row, int64_t rows,
                            int64_t column, int64_t columns) {
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

static void multiply_stretch(const GemmKernels *plain, const Gemm *gemm, void *workspace) {
    char *base = (char *)workspace + (0 - (uintptr_t)workspace) % GEMM_CACHE_LINE;
    const Workspace space = lay_out(plain, gemm, base);
    const ElementsShape shape = ISA_NAME(gemm_elements_shape)(gemm);
    const int64_t wide = space.panels * PANEL, tall = space.strips * STRIP;
    for (int64_t column = 0; column < gemm->columns; column += wide) {
        const int64_t columns = gemm_smaller(gemm->columns - column, wide);
        for (int64_t j = 0; j < columns; j += PANEL)
            space.b_holds[j / PANEL] = ISA_NAME(gemm_elements_pack_b)(
                &shape, gemm, column + j, space.b + j / PANEL * shape.b_panel);
        for (int64_t row = 0; row < gemm->rows; row += tall) {
            const int64_t rows = gemm_smaller(gemm->rows - row, tall);
            for (int64_t i = 0; i < rows; i += STRIP)
                space.a_holds[i / STRIP] = ISA_NAME(gemm_elements_pack_a)(
                    &shape, gemm, row + i, space.a + i / TILE_ROWS * shape.a_tile);
            multiply_packed(plain, &shape, &space, gemm, row, rows, column, columns);
        }
    }
}

static void multiply(const GemmWays *ways, const Gemm *gemm, void *workspace) {
    const int64_t stretch = stretch_of(gemm);
    for (int64_t first = 0; first < gemm->depth; first += stretch) {
        Gemm part = *gemm;
        part.depth = gemm_smaller(gemm->depth - first, stretch);
        part.a.data = (const uint16_t *)gemm->a.data + first * gemm->a.column_stride;
        part.b.data = (const uint16_t *)gemm->b.data + first * gemm->b.row_stride;
        part.accumulate = gemm->accumulate || first > 0;
        part.largest = first + part.depth == gemm->depth ? gemm->largest : NULL;
        multiply_stretch(ways->plain, &part, workspace);
    }
}

const GemmWay ISA_NAME(gemm_elements) = {
    .block_rows = STRIP,
    .block_columns = PANEL,
    .suits = suits,
    .workspace_size = workspace_size,
    .multiply = multiply,
};
