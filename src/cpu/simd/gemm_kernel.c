// cpu/simd/gemm_kernel.c: the inner loops of the matrix product: register tiles and what becomes of
// their sums.
#include <assert.h>

#include "cpu/gemm_kernels.h"
#include "cpu/simd/gemm_activation.h"
#include "cpu/simd/gemm_pack.h"
#include "cpu/simd/vector.h"

// A register tile is TILE_ROWS x TILE_VECTORS sums. Both FMA units are busy when a tile has at
// least eight of them (their latency is four cycles), and the loads keep pace when rows and vectors
// are balanced: 14 + 2 loads for 28 multiplications with 32 registers, 6 + 2 for 12 with 16.
#if defined(__AVX512F__)
enum { TILE_ROWS = 14 };
#elif defined(__AVX2__)
enum { TILE_ROWS = 6 };
#elif defined(__aarch64__)
enum { TILE_ROWS = 8 };
#else
enum { TILE_ROWS = 5 };
#endif
enum { TILE_VECTORS = 2, PANEL_COLUMNS = TILE_VECTORS * LANES };
// So many tiles of A meet a panel of B before the next one comes. A panel that fits into the
// first-level cache stays there meanwhile, and the tiles come from the second; a larger one streams
// by from the second-level cache, for a tile that stays.
#if defined(__AVX512F__)
enum { TILES_NEAR = 1 };
#else
enum { TILES_NEAR = 16 };
#endif
// In one sweep, in which transposed rows are read in pieces so much longer.
enum { TILES_PACKED = TILES_NEAR > 8 ? TILES_NEAR : 8 };
// Panels that stream come faster when they are called for in time.
enum { STEPS_AHEAD = 16 };
// So many steps of the depth are written out one after the other, and the usual strides are
// constants there. A small tile multiplies so briefly that counting and moving pointers at each
// step would hold it up; a large one has time for that.
#if !defined(__AVX2__) || defined(__AVX512F__)
enum { STEPS_TOGETHER = 1 };
#define UNROLL_STEPS
#elif defined(__clang__)
enum { STEPS_TOGETHER = 4 };
#define UNROLL_STEPS _Pragma("unroll STEPS_TOGETHER")
#else
enum { STEPS_TOGETHER = 4 };
#define UNROLL_STEPS _Pragma("GCC unroll STEPS_TOGETHER")
#endif

// Where a tile reads, and its place in the block.
typedef struct Tile {
    const GemmWord *a, *b;
    int64_t a_row, a_step, row, column;
    int columns; // 1 .. PANEL_COLUMNS
} Tile;

// Whether sums become numbers of this format by an instruction, so that they need not leave their
// registers before.
ALWAYS_INLINE bool rounds_at_once(Format format) {
    if (format == FORMAT_BF16)
        return WORD_NUMBERS == 2;
#if defined(__F16C__) || defined(__aarch64__)
    return true;
#else
    return format == FORMAT_FP32;
#endif
}

// C is added where the caller asks for it, or where earlier blocks of the depth left their sums.
ALWAYS_INLINE bool adds_to_c(const GemmBlock *block) {
    return block->accumulate || (!block->first && !block->partial);
}

// What was found on the way out of some rows is kept.
ALWAYS_INLINE void raise_largest(const GemmBlock *block, Bits found) {
    for (int i = 0; i < LANES; i++)
        block->largest[i] = found[i] > block->largest[i] ? found[i] : block->largest[i];
}

ALWAYS_INLINE bool looks_for_largest(const GemmBlock *block) {
    return block->largest && block->last;
}

// The sums' way out when nothing but additions and RELU lie on it, to whole vectors of C. `sums`
// then hold what was written, before it was rounded.
ALWAYS_INLINE void finish_in_registers(const GemmBlock *block, const Tile *tile, const int rows,
                                       const int vectors, Vector sums[TILE_ROWS][TILE_VECTORS],
                                       const float *bias, const Format format) {
    int64_t at_c = tile->row * block->c_row + tile->column;
    const float *partial = block->first ? NULL : block->partial;
    if (partial)
        partial += tile->row * block->partial_row + tile->column;
    Vector alpha = vector_all(block->alpha);
    bool add_old = adds_to_c(block);
    bool relu = block->last && block->activation == GEMM_ACTIVATION_RELU;
    UNROLL for (int i = 0; i < rows; i++, at_c += block->c_row) {
        UNROLL for (int j = 0; j < vectors; j++) {
            Vector value = alpha * sums[i][j];
            if (partial)
                value += vector_load(partial + i * block->partial_row + j * LANES);
            if (add_old)
                value += vector_load_as(block->c, format, at_c + j * LANES);
            if (bias)
                value += vector_load(bias + j * LANES);
            if (relu)
                value = vector_at_least(value, (Vector){0});
            vector_store_as(block->c, format, at_c + j * LANES, value);
            sums[i][j] = value;
        }
    }
}

// Columns that the tile has of the vector that begins at `column`: LANES, or fewer at the edge.
ALWAYS_INLINE int columns_at(const Tile *tile, int column) {
    int left = tile->columns - column;
    return left < LANES ? left : LANES;
}

// Every other way out: edges, formats without an instruction, other activations than RELU. `sums`
// are in memory.
ALWAYS_INLINE void finish_format(const GemmBlock *block, const Tile *tile, int rows,
                                 const float *sums, int64_t sums_row, const float *bias,
                                 const Format format, const bool full) {
    const Vector alpha = vector_all(block->alpha);
    const bool add_partial = block->partial && !block->first, add_c = adds_to_c(block);
    const GemmActivation activation = block->last ? block->activation : GEMM_ACTIVATION_NONE;
    Bits found = {0};
    for (int i = 0; i < rows; i++) {
        int64_t at_c = (tile->row + i) * block->c_row + tile->column;
        int64_t at_partial = (tile->row + i) * block->partial_row + tile->column;
        for (int j = 0; j < tile->columns; j += LANES) {
            int count = full ? LANES : columns_at(tile, j);
            Vector value = alpha * vector_load(sums + i * sums_row + j);
            if (add_partial)
                value += vector_load_some(block->partial, FORMAT_FP32, at_partial + j, count);
            if (add_c)
                value += vector_load_some(block->c, format, at_c + j, count);
            if (bias)
                value += vector_load(bias + j);
            if (activation)
                value = activate(value, activation);
            const Words mine = first_lanes(count);
            found = bits_raised(found, full ? value : (Vector)(mine & (Words)value));
            vector_store_some(block->c, format, at_c + j, count, value);
        }
    }
    if (looks_for_largest(block))
        raise_largest(block, found);
}

static void finish_in_memory(const GemmBlock *block, const Tile *tile, int rows, const float *sums,
                             int64_t sums_row, const float *bias) {
    bool full = tile->columns % LANES == 0;
    if (!full)
        finish_format(block, tile, rows, sums, sums_row, bias, block->c_format, false);
    else if (block->c_format == FORMAT_FP32)
        finish_format(block, tile, rows, sums, sums_row, bias, FORMAT_FP32, true);
    else if (block->c_format == FORMAT_BF16)
        finish_format(block, tile, rows, sums, sums_row, bias, FORMAT_BF16, true);
    else
        finish_format(block, tile, rows, sums, sums_row, bias, FORMAT_FP16, true);
}

typedef struct Steps {
    const GemmWord *a[3], *b;
    int64_t a_row, ahead; // of b, what is called for
} Steps;

ALWAYS_INLINE void multiply_step(const Steps *at, const int rows, const int vectors,
                                 Vector sums[TILE_ROWS][TILE_VECTORS]) {
    Vector line[TILE_VECTORS];
    UNROLL for (int j = 0; j < vectors; j++) line[j] = vector_load(at->b + j * LANES);
    if (TILES_NEAR == 1) {
        UNROLL for (int j = 0; j < vectors; j++) __builtin_prefetch(at->b + at->ahead + j * LANES);
    }
    UNROLL for (int i = 0; i < rows; i++) {
        Vector word = word_to_all(at->a[i / 5] + i % 5 * at->a_row);
        UNROLL for (int j = 0; j < vectors; j++) sums[i][j] =
            words_multiply_add(word, line[j], sums[i][j]);
    }
}

// The beginning of a stretch. Five rows from each of three pointers are reached without further
// registers.
ALWAYS_INLINE void begin(Steps *at, const Tile *tile, int64_t a, int64_t b) {
    at->a[0] = tile->a + a;
    at->a[1] = tile->a + a + 5 * tile->a_row;
    at->a[2] = tile->a + a + 10 * tile->a_row;
    at->b = tile->b + b;
}

ALWAYS_INLINE void advance(Steps *at, int64_t a_step, int64_t b_step) {
    at->a[0] += a_step;
    at->a[1] += a_step;
    at->a[2] += a_step;
    at->b += b_step;
}

ALWAYS_INLINE void multiply_together(Steps *at, int64_t steps, const int rows, const int vectors,
                                     int64_t a_step, int64_t b_step,
                                     Vector sums[TILE_ROWS][TILE_VECTORS]) {
    UNROLL_STEPS for (; steps > 0; steps--) {
        multiply_step(at, rows, vectors, sums);
        advance(at, a_step, b_step);
    }
}

ALWAYS_INLINE void multiply_steps(Steps *at, int64_t steps, const int rows, const int vectors,
                                  int64_t a_step, int64_t b_step,
                                  Vector sums[TILE_ROWS][TILE_VECTORS]) {
    // Or in rows that happen to lie as far apart.
    const bool in_panels = STEPS_TOGETHER > 1 && b_step == PANEL_COLUMNS;
    if (in_panels && at->a_row == 1 && a_step == rows) {
        at->a_row = 1; // so that the compiler, too, knows
        multiply_together(at, steps, rows, vectors, rows, PANEL_COLUMNS, sums);
    } else if (in_panels && a_step == 1) {
        multiply_together(at, steps, rows, vectors, 1, PANEL_COLUMNS, sums);
    } else {
        multiply_together(at, steps, rows, vectors, a_step, b_step, sums);
    }
}

ALWAYS_INLINE void finish_spilled(const GemmBlock *block, const Tile *tile, const int rows,
                                  const int vectors, Vector sums[TILE_ROWS][TILE_VECTORS],
                                  const float *bias) {
    float spilled[TILE_ROWS][PANEL_COLUMNS];
    UNROLL for (int i = 0; i < rows; i++) {
        UNROLL for (int j = 0; j < vectors; j++) vector_store(&spilled[i][j * LANES], sums[i][j]);
    }
    finish_in_memory(block, tile, rows, spilled[0], PANEL_COLUMNS, bias);
}

ALWAYS_INLINE Bits largest_in_tile(const int rows, const int vectors,
                                   Vector sums[TILE_ROWS][TILE_VECTORS]) {
    Bits found = {0};
    UNROLL for (int i = 0; i < rows; i++) {
        UNROLL for (int j = 0; j < vectors; j++) found = bits_raised(found, sums[i][j]);
    }
    return found;
}

// Multiplies one tile. `rows` and `vectors` are constants where this is inlined.
ALWAYS_INLINE void multiply_tile(const GemmBlock *block, const Tile *tile, const int rows,
                                 const int vectors, const float *bias, bool in_registers) {
    Vector sums[TILE_ROWS][TILE_VECTORS];
    UNROLL for (int i = 0; i < rows; i++) {
        UNROLL for (int j = 0; j < vectors; j++) sums[i][j] = (Vector){0};
    }
    const GemmFurther *next = &block->further[0], *nexts = &block->further[1];
    Steps at = {.a_row = tile->a_row,
                .ahead = next->count > 0 ? next->b : STEPS_AHEAD * PANEL_COLUMNS};
    begin(&at, tile, 0, 0);
    // The sums end in memory that is far away as often as not. It is called for in time, a row with
    // each of the first steps, as many calls at once would hold up the loads of A and B. Where
    // earlier blocks of the depth left theirs elsewhere, it is those that are waited for.
    const bool gathers = block->partial && !block->first;
    const int64_t c_size = gathers ? (int64_t)sizeof(float) : gemm_bytes(block->c_format);
    const int64_t c_row = (gathers ? block->partial_row : block->c_row) * c_size;
    const char *c = gathers ? (const char *)block->partial : (const char *)block->c;
    c += tile->row * c_row + tile->column * c_size;
    int64_t k = block->depth, calls = k < rows ? k : rows;
    for (k -= calls; calls > 0; calls--, c += c_row) {
        __builtin_prefetch(c, 1);
        __builtin_prefetch(c + (vectors * LANES - 1) * c_size, 1);
        multiply_step(&at, rows, vectors, sums);
        advance(&at, tile->a_step, block->b_step);
    }
    for (int64_t i = 0; i <= nexts->count; i++)
        for (int64_t j = 0; j <= next->count; j++, k = block->depth) {
            if (i + j > 0)
                begin(&at, tile, i * nexts->a + j * next->a, i * nexts->b + j * next->b);
            multiply_steps(&at, k, rows, vectors, tile->a_step, block->b_step, sums);
        }
    if (in_registers && block->c_format == FORMAT_FP32) {
        finish_in_registers(block, tile, rows, vectors, sums, bias, FORMAT_FP32);
    } else if (in_registers && rounds_at_once(FORMAT_BF16) && block->c_format == FORMAT_BF16) {
        finish_in_registers(block, tile, rows, vectors, sums, bias, FORMAT_BF16);
    } else if (in_registers && rounds_at_once(FORMAT_FP16)) {
        finish_in_registers(block, tile, rows, vectors, sums, bias, FORMAT_FP16);
    } else {
        finish_spilled(block, tile, rows, vectors, sums, bias);
        return;
    }
    if (looks_for_largest(block))
        raise_largest(block, largest_in_tile(rows, vectors, sums));
}

typedef void (*TileFunction)(const GemmBlock *block, const Tile *tile, const float *bias,
                             bool in_registers);

#define TILE(rows, vectors)                                                       \
    static void tile_##rows##x##vectors(const GemmBlock *block, const Tile *tile, \
                                        const float *bias, bool in_registers) {   \
        multiply_tile(block, tile, rows, vectors, bias, in_registers);            \
    }
#define TILES(rows) TILE(rows, 1) TILE(rows, 2)
#define TILE_NAMES(rows) \
    { tile_##rows##x1, tile_##rows##x2 }

// clang-format off
TILES(1) TILES(2) TILES(3) TILES(4) TILES(5)
#if defined(__AVX2__) || defined(__aarch64__)
TILES(6)
#endif
#if defined(__AVX512F__) || defined(__aarch64__)
TILES(7) TILES(8)
#endif
#if defined(__AVX512F__)
TILES(9) TILES(10) TILES(11) TILES(12) TILES(13) TILES(14)
#endif
    // clang-format on

    static const TileFunction tile_functions[TILE_ROWS][TILE_VECTORS] = {
        TILE_NAMES(1),  TILE_NAMES(2),  TILE_NAMES(3),  TILE_NAMES(4),  TILE_NAMES(5),
#if defined(__AVX2__) || defined(__aarch64__)
        TILE_NAMES(6),
#endif
#if defined(__AVX512F__) || defined(__aarch64__)
        TILE_NAMES(7),  TILE_NAMES(8),
#endif
#if defined(__AVX512F__)
        TILE_NAMES(9),  TILE_NAMES(10), TILE_NAMES(11), TILE_NAMES(12), TILE_NAMES(13),
        TILE_NAMES(14),
#endif
};

static void load_bias(float bias[PANEL_COLUMNS], const GemmBlock *block, const Tile *tile) {
    for (int j = 0; j < tile->columns; j += LANES)
        vector_store(bias + j, vector_load_some(block->bias, block->bias_format, tile->column + j,
                                                columns_at(tile, j)));
}

static int tile_columns(const GemmBlock *block, int64_t column) {
    int64_t left = block->columns - column;
    return (int)(left < PANEL_COLUMNS ? left : PANEL_COLUMNS);
}

// Where sums are gathered in fp32 beside C, all but the last block of the depth is a product that
// ends there.
static GemmBlock block_of_sums(const GemmBlock *block) {
    GemmBlock sums = *block;
    sums.c = block->partial;
    sums.c_format = FORMAT_FP32;
    sums.c_row = block->partial_row;
    sums.partial = NULL;
    sums.accumulate = false;
    return sums;
}

// The rows of C are written from left to right, those of some tiles together.
static void multiply_block(const GemmBlock *block) {
    if (block->partial && !block->last) {
        const GemmBlock sums = block_of_sums(block);
        multiply_block(&sums);
        return;
    }
    bool simple = rounds_at_once(block->c_format) &&
                  (!block->last || block->activation <= GEMM_ACTIVATION_RELU);
    bool has_bias = block->bias && block->last;
    Tile tile = {.a_row = block->a_row, .a_step = block->a_step};
    for (int64_t first = 0; first < block->rows && block->columns > 0; first = tile.row) {
        tile.b = block->b;
        for (tile.column = 0; tile.column < block->columns; tile.column += PANEL_COLUMNS) {
            float bias[PANEL_COLUMNS];
            tile.columns = tile_columns(block, tile.column);
            if (has_bias)
                load_bias(bias, block, &tile);
            int vectors = (tile.columns + LANES - 1) / LANES;
            tile.row = first;
            for (int i = 0; i < TILES_NEAR && tile.row < block->rows; i++) {
                const int64_t rows = gemm_next_rows(block->rows - tile.row, TILE_ROWS);
                tile.a = block->a + tile.row * block->a_row;
                if (block->a_packed) {
                    tile.a = block->a + tile.row * block->depth;
                    tile.a_row = 1;
                    tile.a_step = rows;
                }
                tile_functions[rows - 1][vectors - 1](block, &tile, has_bias ? bias : NULL,
                                                      simple && tile.columns == vectors * LANES);
                tile.row += rows;
            }
            tile.b += block->b_panel;
        }
    }
}

// Sums in memory, all the depth, of whole panels, when nothing but additions lies on their way out.
ALWAYS_INLINE void finish_panel(const GemmBlock *block, int64_t column, const float *sums,
                                int64_t sums_row, const float *bias, const Format format,
                                const bool adds) {
    const Vector alpha = vector_all(block->alpha);
    Vector beside[TILE_VECTORS];
    UNROLL for (int j = 0; j < TILE_VECTORS; j++) beside[j] =
        bias ? vector_load(bias + j * LANES) : (Vector){0};
    Bits found = {0};
    for (int64_t i = 0; i < block->rows; i++, sums += sums_row, column += block->c_row) {
        UNROLL for (int j = 0; j < TILE_VECTORS; j++) {
            Vector value = alpha * vector_load(sums + j * LANES);
            if (adds)
                value += vector_load_as(block->c, format, column + j * LANES);
            if (bias)
                value += beside[j];
            found = bits_raised(found, value);
            vector_store_as(block->c, format, column + j * LANES, value);
        }
    }
    if (block->largest)
        raise_largest(block, found);
}

static void finish_panel_fp32(const GemmBlock *block, int64_t column, const float *sums,
                              int64_t sums_row, const float *bias) {
    if (block->accumulate)
        finish_panel(block, column, sums, sums_row, bias, FORMAT_FP32, true);
    else
        finish_panel(block, column, sums, sums_row, bias, FORMAT_FP32, false);
}

static void finish_panel_bf16(const GemmBlock *block, int64_t column, const float *sums,
                              int64_t sums_row, const float *bias) {
    if (bias)
        finish_panel(block, column, sums, sums_row, bias, FORMAT_BF16, false);
    else
        finish_panel(block, column, sums, sums_row, NULL, FORMAT_BF16, false);
}

static void finish_block(const GemmBlock *block, const float *sums, int64_t sums_row) {
    assert(block->first && block->last && !block->partial);
    const bool simple = block->activation == GEMM_ACTIVATION_NONE;
    const bool of_bf16 = block->c_format == FORMAT_BF16 && !block->accumulate;
    Tile tile = {0};
    for (; tile.column < block->columns; tile.column += PANEL_COLUMNS, sums += PANEL_COLUMNS) {
        float space[PANEL_COLUMNS];
        const float *bias = block->bias ? space : NULL;
        tile.columns = tile_columns(block, tile.column);
        if (bias)
            load_bias(space, block, &tile);
        const bool usual = simple && tile.columns == PANEL_COLUMNS;
        if (usual && block->c_format == FORMAT_FP32)
            finish_panel_fp32(block, tile.column, sums, sums_row, bias);
        else if (usual && of_bf16)
            finish_panel_bf16(block, tile.column, sums, sums_row, bias);
        else
            finish_in_memory(block, &tile, (int)block->rows, sums, sums_row, bias);
    }
}

const GemmKernels ISA_NAME(gemm_kernels) = {
    .format = WORD_NUMBERS == 2 ? FORMAT_BF16 : FORMAT_FP32,
    .word_numbers = WORD_NUMBERS,
    .depth_block = WORD_NUMBERS == 2 ? 768 : 384,
    .tile_rows = TILE_ROWS,
    .tiles_together = TILES_PACKED,
    .panel_columns = PANEL_COLUMNS,
    .vector_columns = LANES,
    .multiply = multiply_block,
    .finish = finish_block,
    .pack = ISA_NAME(gemm_pack),
    .copy = ISA_NAME(gemm_copy),
};
