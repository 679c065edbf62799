// cpu/simd/gemm_kernel.c: the inner loops of the matrix product: register tiles and what becomes of
// their sums.
#include <assert.h>

#include "cpu/gemm_kernels.h"
#include "cpu/simd/gemm_activation.h"
#include "cpu/simd/gemm_pack.h"
#include "cpu/simd/gemm_vector.h"

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

// Where the tile reads, and the row of the panel at which it begins.
typedef struct Tile {
    const float *a;
    int64_t a_row, a_step, first_row;
} Tile;

// The sums' way out when nothing but fp32 additions and RELU lie on it.
ALWAYS_INLINE void finish_in_registers(const GemmPanel *panel, const Tile *tile, const int rows,
                                       const int vectors, Vector sums[TILE_ROWS][TILE_VECTORS],
                                       const float *bias) {
    float *c = (float *)panel->c + tile->first_row * panel->c_row;
    Vector alpha = vector_all(panel->alpha);
    bool add_old = panel->accumulate || !panel->first;
    bool relu = panel->last && panel->activation == GEMM_ACTIVATION_RELU;
    UNROLL for (int i = 0; i < rows; i++, c += panel->c_row) {
        UNROLL for (int j = 0; j < vectors; j++) {
            Vector value = alpha * sums[i][j];
            if (add_old)
                value += vector_load(c + j * LANES);
            if (bias)
                value += vector_load(bias + j * LANES);
            if (relu)
                value = vector_at_least(value, (Vector){0});
            vector_store(c + j * LANES, value);
        }
    }
}

// Columns that the panel has of the vector that begins at `column`: LANES, or fewer at the edge.
ALWAYS_INLINE int columns_at(const GemmPanel *panel, int column) {
    int left = panel->columns - column;
    return left < LANES ? left : LANES;
}

ALWAYS_INLINE Vector load_columns(const void *from, Format format, int64_t at, int count) {
    if (count == LANES)
        return vector_load_as(from, format, at);
    Vector value = {0};
    float numbers[LANES];
    memcpy(numbers, &value, sizeof numbers);
    for (int i = 0; i < count; i++)
        numbers[i] = number_load(from, format, at + i);
    memcpy(&value, numbers, sizeof numbers);
    return value;
}

ALWAYS_INLINE void store_columns(void *to, Format format, int64_t at, int count, Vector value) {
    if (count == LANES) {
        vector_store_as(to, format, at, value);
        return;
    }
    float numbers[LANES]; // holds LANES of any of the formats
    vector_store_as(numbers, format, 0, value);
    size_t size = format == FORMAT_FP32 ? sizeof(float) : sizeof(uint16_t);
    memcpy((char *)to + (size_t)at * size, numbers, (size_t)count * size);
}

// Every other way out: edges, narrow formats, partial sums, activations. `sums` are in memory.
ALWAYS_INLINE void finish_format(const GemmPanel *panel, int64_t first_row, int rows,
                                 const float (*sums)[PANEL_COLUMNS], const float *bias,
                                 const Format format, const bool full) {
    const Vector alpha = vector_all(panel->alpha);
    const bool c_holds_sums = !panel->partial;
    const bool add_partial = panel->partial && !panel->first;
    const bool to_partial = panel->partial && !panel->last;
    const bool add_c = !to_partial && (panel->accumulate || (c_holds_sums && !panel->first));
    const GemmActivation activation = panel->last ? panel->activation : GEMM_ACTIVATION_NONE;
    for (int i = 0; i < rows; i++) {
        int64_t at_c = (first_row + i) * panel->c_row;
        int64_t at_partial = (first_row + i) * panel->partial_row;
        for (int j = 0; j < panel->columns; j += LANES) {
            int count = full ? LANES : columns_at(panel, j);
            Vector value = alpha * vector_load(&sums[i][j]);
            if (add_partial)
                value += load_columns(panel->partial, FORMAT_FP32, at_partial + j, count);
            if (to_partial) {
                store_columns(panel->partial, FORMAT_FP32, at_partial + j, count, value);
                continue;
            }
            if (add_c)
                value += load_columns(panel->c, format, at_c + j, count);
            if (bias)
                value += vector_load(bias + j);
            if (activation)
                value = activate(value, activation);
            store_columns(panel->c, format, at_c + j, count, value);
        }
    }
}

static void finish_in_memory(const GemmPanel *panel, int64_t first_row, int rows,
                             const float (*sums)[PANEL_COLUMNS], const float *bias) {
    bool full = panel->columns % LANES == 0;
    if (!full)
        finish_format(panel, first_row, rows, sums, bias, panel->c_format, false);
    else if (panel->c_format == FORMAT_FP32)
        finish_format(panel, first_row, rows, sums, bias, FORMAT_FP32, true);
    else if (panel->c_format == FORMAT_BF16)
        finish_format(panel, first_row, rows, sums, bias, FORMAT_BF16, true);
    else
        finish_format(panel, first_row, rows, sums, bias, FORMAT_FP16, true);
}

// Multiplies one tile. `rows` and `vectors` are constants where this is inlined.
ALWAYS_INLINE void multiply_tile(const GemmPanel *panel, const Tile *tile, const int rows,
                                 const int vectors, const float *bias, bool in_registers) {
    Vector sums[TILE_ROWS][TILE_VECTORS];
    UNROLL for (int i = 0; i < rows; i++) {
        UNROLL for (int j = 0; j < vectors; j++) sums[i][j] = (Vector){0};
    }
    // The sums end in memory that is far away as often as not: it is called for in time.
    const int64_t c_size = panel->c_format == FORMAT_FP32 ? 4 : 2;
    const char *c = (const char *)panel->c + tile->first_row * panel->c_row * c_size;
    UNROLL for (int i = 0; i < rows; i++) {
        __builtin_prefetch(c + i * panel->c_row * c_size, 1);
        __builtin_prefetch(c + i * panel->c_row * c_size + (vectors * LANES - 1) * c_size, 1);
    }
    const float *b = panel->b;
    const int64_t b_step = panel->b_step, a_row = tile->a_row, a_step = tile->a_step;
    // Five rows from each of three pointers are reached without further registers.
    const float *a[3] = {tile->a, tile->a + 5 * a_row, tile->a + 10 * a_row};
    for (int64_t k = panel->depth; k > 0; k--) {
        Vector line[TILE_VECTORS];
        UNROLL for (int j = 0; j < vectors; j++) line[j] = vector_load(b + j * LANES);
        UNROLL for (int i = 0; i < rows; i++) {
            Vector number = vector_all(a[i / 5][i % 5 * a_row]);
            UNROLL for (int j = 0; j < vectors; j++) sums[i][j] =
                vector_multiply_add(number, line[j], sums[i][j]);
        }
        a[0] += a_step;
        a[1] += a_step;
        a[2] += a_step;
        b += b_step;
    }
    if (in_registers) {
        finish_in_registers(panel, tile, rows, vectors, sums, bias);
        return;
    }
    float spilled[TILE_ROWS][PANEL_COLUMNS];
    UNROLL for (int i = 0; i < rows; i++) {
        UNROLL for (int j = 0; j < vectors; j++) vector_store(&spilled[i][j * LANES], sums[i][j]);
    }
    finish_in_memory(panel, tile->first_row, rows, (const float(*)[PANEL_COLUMNS])spilled, bias);
}

typedef void (*TileFunction)(const GemmPanel *panel, const Tile *tile, const float *bias,
                             bool in_registers);

#define TILE(rows, vectors)                                                       \
    static void tile_##rows##x##vectors(const GemmPanel *panel, const Tile *tile, \
                                        const float *bias, bool in_registers) {   \
        multiply_tile(panel, tile, rows, vectors, bias, in_registers);            \
    }
#define TILES(rows) TILE(rows, 1) TILE(rows, 2)
#define TILE_NAMES(rows) \
    { tile_##rows##x1, tile_##rows##x2 }

TILES(1)
TILES(2)
TILES(3)
TILES(4) TILES(5)
#if defined(__AVX2__) || defined(__aarch64__)
    TILES(6)
#endif
#if defined(__AVX512F__) || defined(__aarch64__)
        TILES(7) TILES(8)
#endif
#if defined(__AVX512F__)
            TILES(9) TILES(10) TILES(11) TILES(12) TILES(13) TILES(14)
#endif

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

static void multiply_panel(const GemmPanel *panel) {
    assert(panel->columns > 0 && panel->columns <= PANEL_COLUMNS);
    int vectors = (panel->columns + LANES - 1) / LANES;
    float bias[PANEL_COLUMNS];
    bool has_bias = panel->bias && panel->last;
    if (has_bias)
        for (int j = 0; j < panel->columns; j += LANES)
            vector_store(bias + j,
                         load_columns(panel->bias, panel->bias_format, j, columns_at(panel, j)));
    bool in_registers = panel->c_format == FORMAT_FP32 && panel->columns == vectors * LANES &&
                        (!panel->last || panel->activation <= GEMM_ACTIVATION_RELU);
    for (int64_t row = 0, rows; row < panel->rows; row += rows) {
        rows = gemm_next_rows(panel->rows - row, TILE_ROWS);
        Tile tile = {panel->a + row * panel->a_row, panel->a_row, panel->a_step, row};
        if (panel->a_packed)
            tile = (Tile){panel->a + row * panel->depth, 1, rows, row};
        tile_functions[rows - 1][vectors - 1](panel, &tile, has_bias ? bias : NULL, in_registers);
    }
}

const GemmKernels ISA_NAME(gemm_kernels) = {
    .tile_rows = TILE_ROWS,
    .panel_columns = PANEL_COLUMNS,
    .vector_columns = LANES,
    .multiply = multiply_panel,
    .pack = ISA_NAME(gemm_pack),
    .copy = ISA_NAME(gemm_copy),
};
