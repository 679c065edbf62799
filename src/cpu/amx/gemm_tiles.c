// cpu/amx/gemm_tiles.c: the matrix product on tile registers. See cpu/gemm_way.h.
#include "cpu/gemm_way.h"

#include "cpu/amx/tile.h"
#include "number/inline.h"

enum {
    STEP = 32,          // of the depth: one tile multiplication
    BLOCK = 32,         // rows and columns of C at a time: two by two tiles
    MAX_PARTS = 2,      // bf16 numbers that make one number
    STRETCH = 8 * STEP, // of the depth that is converted to fp32 before it is packed
    // Packed columns that stay in the second-level cache while the rows pass.
    B_BLOCK_BYTES = 640 << 10,
};
// Smaller products are faster on vectors; splitting costs more than using.
static const int64_t LEAST_SIDE = 32, LEAST_WORK_BF16 = 1 << 19, LEAST_WORK_FP16 = 1 << 21;

// One step of one block of an operand: for each part its two tiles, of 512 numbers in 16 rows.
typedef uint32_t PackedTile[TILE_ROWS][TILE_ROWS]; // pairs of bf16
typedef PackedTile PackedStep[2];                  // times the parts

typedef struct Operand {
    GemmSource source; // lines are rows of A or columns of B
    int parts;
} Operand;

typedef struct Workspace {
    float *staging;               // a stretch in fp32
    float (*sums)[BLOCK];         // of one block of C
    PackedTile *a, *b;            // packed: one block of rows, several blocks of columns
    bool *special;                // which blocks of columns hold infinity or NaN
    void *vectors;                // for the vector kernels
    int64_t steps, column_blocks; // of the depth; packed at once
    size_t bytes;
} Workspace;

static int parts_of(Format format) {
    return format == FORMAT_FP16 ? 2 : 1;
}

static bool suits(const Gemm *gemm) {
    if (gemm->a.format == FORMAT_FP32 || gemm->b.format == FORMAT_FP32)
        return false;
    bool split = gemm->a.format == FORMAT_FP16 || gemm->b.format == FORMAT_FP16;
    double work = (double)gemm->rows * (double)gemm->columns * (double)gemm->depth;
    return gemm->rows >= LEAST_SIDE && gemm->columns >= LEAST_SIDE && gemm->depth >= LEAST_SIDE &&
           work >= (double)(split ? LEAST_WORK_FP16 : LEAST_WORK_BF16);
}

static Gemm block_of(const Gemm *gemm, int64_t row, int64_t column) {
    return gemm_block_of(gemm, row, column, BLOCK, BLOCK);
}

// With a NULL base only the sizes are meant.
static Workspace lay_out(const GemmKernels *kernels, const Gemm *gemm, char *base) {
    Workspace space = {.steps = gemm_divide_up(gemm->depth, STEP)};
    size_t a_block = (size_t)space.steps * sizeof(PackedStep) * (size_t)parts_of(gemm->a.format);
    size_t b_block = (size_t)space.steps * sizeof(PackedStep) * (size_t)parts_of(gemm->b.format);
    space.column_blocks = gemm_smaller(gemm_divide_up(gemm->columns, BLOCK),
                                       1 + B_BLOCK_BYTES / (int64_t)(b_block ? b_block : 1));
    size_t slack = (size_t)kernels->vector_columns * sizeof(float);
    Gemm block = block_of(gemm, 0, 0);
    space.staging = gemm_carve(base, &space.bytes, STRETCH * BLOCK * sizeof(float) + slack);
    space.sums = gemm_carve(base, &space.bytes, BLOCK * BLOCK * sizeof(float));
    space.a = gemm_carve(base, &space.bytes, a_block);
    space.b = gemm_carve(base, &space.bytes, b_block * (size_t)space.column_blocks);
    space.special = gemm_carve(base, &space.bytes, (size_t)space.column_blocks * sizeof(bool));
    space.vectors = gemm_carve(base, &space.bytes,
                               gemm_workspace_size_by(&(GemmWays){.plain = kernels}, &block));
    return space;
}

static size_t workspace_size(const GemmKernels *kernels, const Gemm *gemm) {
    return lay_out(kernels, gemm, NULL).bytes + GEMM_CACHE_LINE;
}

// ---- packing ------------------------------------------------------------------------------------

// The upper half of an fp32 number is a bf16 number. Of an fp16 number it has all but the last
// three digits, and those are the rest, exactly.
static inline uint32_t rest_of(float value) {
    return number_bits_of_fp32(value -
                               number_fp32_of_bits(number_bits_of_fp32(value) & 0xFFFF0000u));
}

// The top bit is set for infinity and NaN.
static inline uint32_t special_bit(float value) {
    return (number_bits_of_fp32(value) & 0x7F800000u) + 0x00800000u;
}

static inline uint32_t pair_of(uint32_t first, uint32_t second) {
    return first >> 16 | (second & 0xFFFF0000u);
}

// Tiles of A: rows as they are, two neighbours of the depth in each word.
static uint32_t pack_step_a(PackedTile *to, const float *from, int64_t rows, int parts) {
    uint32_t special = 0;
    for (int64_t i = 0; i < rows; i++, from += STEP) {
        uint32_t *first = to[i / TILE_ROWS][i % TILE_ROWS];
        for (int k = 0; k < STEP; k++)
            special |= special_bit(from[k]);
        for (int k = 0; k < STEP / 2; k++)
            first[k] =
                pair_of(number_bits_of_fp32(from[2 * k]), number_bits_of_fp32(from[2 * k + 1]));
        if (parts == 1)
            continue;
        uint32_t *rest = to[2 + i / TILE_ROWS][i % TILE_ROWS];
        for (int k = 0; k < STEP / 2; k++)
            rest[k] = pair_of(rest_of(from[2 * k]), rest_of(from[2 * k + 1]));
    }
    return special;
}

// Tiles of B: a row holds two steps of the depth, interleaved.
static uint32_t pack_step_b(PackedTile *to, const float *from, int parts) {
    uint32_t special = 0;
    for (int pair = 0; pair < STEP / 2; pair++, from += 2 * BLOCK)
        for (int tile = 0; tile < 2; tile++) {
            const float *even = from + tile * TILE_ROWS, *odd = even + BLOCK;
            uint32_t *first = to[tile][pair];
            for (int j = 0; j < TILE_ROWS; j++) {
                special |= special_bit(even[j]) | special_bit(odd[j]);
                first[j] = pair_of(number_bits_of_fp32(even[j]), number_bits_of_fp32(odd[j]));
            }
            if (parts == 1)
                continue;
            uint32_t *rest = to[2 + tile][pair];
            for (int j = 0; j < TILE_ROWS; j++)
                rest[j] = pair_of(rest_of(even[j]), rest_of(odd[j]));
        }
    return special;
}

static GemmSource source_from(const GemmOperand *operand, int64_t at, int64_t line_stride,
                              int64_t step_stride) {
    return (GemmSource){(const char *)operand->data + at * 2, operand->format, line_stride,
                        step_stride};
}

// Packs a block of rows of A; true when it holds infinity or NaN.
static bool pack_a(const GemmKernels *kernels, const Workspace *space, const Gemm *gemm,
                   int64_t row) {
    int64_t rows = gemm_smaller(gemm->rows - row, BLOCK);
    int parts = parts_of(gemm->a.format);
    uint32_t special = 0;
    PackedTile *to = space->a;
    if (rows < BLOCK)
        memset(to, 0, (size_t)(space->steps * parts) * sizeof(PackedStep));
    for (int64_t k = 0; k < gemm->depth; k += STRETCH) {
        // Lines and steps change places: each row's stretch comes out in pieces of one step.
        int64_t depth = gemm_smaller(gemm->depth - k, STRETCH);
        GemmSource source =
            source_from(&gemm->a, row * gemm->a.row_stride + k * gemm->a.column_stride,
                        gemm->a.column_stride, gemm->a.row_stride);
        kernels->pack(space->staging, STEP, &source, depth, rows);
        for (int64_t step = 0; step < depth; step += STEP, to += 2 * parts) {
            float *from = space->staging + step * rows;
            if (depth - step < STEP)
                for (int64_t i = 0; i < rows; i++)
                    memset(from + i * STEP + (depth - step), 0,
                           (size_t)(STEP - (depth - step)) * sizeof(float));
            special |= pack_step_a(to, from, rows, parts);
        }
    }
    return special >> 31;
}

// Packs a block of columns of B; true when it holds infinity or NaN.
static bool pack_b(const GemmKernels *kernels, const Workspace *space, const Gemm *gemm,
                   int64_t column, PackedTile *to) {
    int64_t columns = gemm_smaller(gemm->columns - column, BLOCK);
    int parts = parts_of(gemm->b.format);
    uint32_t special = 0;
    for (int64_t k = 0; k < gemm->depth; k += STRETCH) {
        int64_t depth = gemm_smaller(gemm->depth - k, STRETCH);
        GemmSource source =
            source_from(&gemm->b, column * gemm->b.column_stride + k * gemm->b.row_stride,
                        gemm->b.column_stride, gemm->b.row_stride);
        if (columns < BLOCK)
            memset(space->staging, 0, STRETCH * BLOCK * sizeof(float));
        kernels->pack(space->staging, BLOCK, &source, columns, depth);
        int64_t whole = gemm_divide_up(depth, STEP) * STEP;
        memset(space->staging + depth * BLOCK, 0,
               (size_t)((whole - depth) * BLOCK) * sizeof(float));
        for (int64_t step = 0; step < depth; step += STEP, to += 2 * parts)
            special |= pack_step_b(to, space->staging + step * BLOCK, parts);
    }
    return special >> 31;
}

// ---- multiplying --------------------------------------------------------------------------------

// One block of C: every part of A times every part of B, summed in four tiles.
static void multiply_block(Tiles *tiles, const Workspace *space, const PackedTile *a, int a_parts,
                           const PackedTile *b, int b_parts) {
    (void)tiles; // the real ones are not in memory
    tile_zero(tiles, 0);
    tile_zero(tiles, 1);
    tile_zero(tiles, 2);
    tile_zero(tiles, 3);
    for (int64_t step = 0; step < space->steps; step++, a += 2 * a_parts, b += 2 * b_parts)
        for (int i = 0; i < a_parts; i++) {
            tile_load(tiles, 4, a[2 * i], TILE_ROW_BYTES);
            tile_load(tiles, 5, a[2 * i + 1], TILE_ROW_BYTES);
            for (int j = 0; j < b_parts; j++) {
                tile_load(tiles, 6, b[2 * j], TILE_ROW_BYTES);
                tile_load(tiles, 7, b[2 * j + 1], TILE_ROW_BYTES);
                tile_multiply(tiles, 0, 4, 6);
                tile_multiply(tiles, 1, 4, 7);
                tile_multiply(tiles, 2, 5, 6);
                tile_multiply(tiles, 3, 5, 7);
            }
        }
    const size_t row_bytes = sizeof space->sums[0];
    tile_store(tiles, 0, space->sums[0], row_bytes);
    tile_store(tiles, 1, space->sums[0] + TILE_ROWS, row_bytes);
    tile_store(tiles, 2, space->sums[TILE_ROWS], row_bytes);
    tile_store(tiles, 3, space->sums[TILE_ROWS] + TILE_ROWS, row_bytes);
}

static void finish(const GemmKernels *kernels, const Workspace *space, const Gemm *block) {
    const GemmBlock end = gemm_end_of(block);
    kernels->finish(&end, space->sums[0], BLOCK);
}

static void multiply(const GemmKernels *kernels, const Gemm *gemm, void *workspace) {
    char *base = (char *)workspace + (0 - (uintptr_t)workspace) % GEMM_CACHE_LINE;
    Workspace space = lay_out(kernels, gemm, base);
    int a_parts = parts_of(gemm->a.format), b_parts = parts_of(gemm->b.format);
    bool split = a_parts * b_parts > 1;
    int64_t b_tiles = space.steps * 2 * b_parts, group = space.column_blocks * BLOCK;
    Tiles tiles;
    tiles_begin(&tiles);
    for (int64_t first = 0; first < gemm->columns; first += group) {
        int64_t columns = gemm_smaller(gemm->columns - first, group);
        for (int64_t j = 0; j < columns; j += BLOCK)
            space.special[j / BLOCK] =
                pack_b(kernels, &space, gemm, first + j, space.b + j / BLOCK * b_tiles);
        for (int64_t row = 0; row < gemm->rows; row += BLOCK) {
            bool special = pack_a(kernels, &space, gemm, row);
            for (int64_t j = 0; j < columns; j += BLOCK) {
                Gemm block = block_of(gemm, row, first + j);
                if (split && (special || space.special[j / BLOCK])) {
                    gemm_run_by(&(GemmWays){.plain = kernels}, &block, space.vectors);
                    continue;
                }
                multiply_block(&tiles, &space, (const PackedTile *)space.a, a_parts,
                               (const PackedTile *)space.b + j / BLOCK * b_tiles, b_parts);
                finish(kernels, &space, &block);
            }
        }
    }
    tiles_end(&tiles);
}

const GemmWay TILE_NAME(gemm_tiles) = {BLOCK, BLOCK, suits, workspace_size, multiply};
