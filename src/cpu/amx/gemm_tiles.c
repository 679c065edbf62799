// cpu/amx/gemm_tiles.c: the matrix product on tile registers. See cpu/gemm_way.h.
#include "cpu/gemm_way.h"

#include "cpu/amx/tile_pack.h"

enum {
    STEP = TILE_SIDE,  // of the depth: one tile multiplication
    BLOCK = TILE_SIDE, // rows and columns of C at a time: two by two tiles
    MOST_PARTS = 2,    // bf16 numbers that make one number
    // Lines are more streams than the processor follows by itself: they are called for so many
    // steps ahead.
    AHEAD = 8,
};
// Packed rows and columns, where one block is not more, that stay in the second-level cache while
// they meet. On emulated tiles few, so that tests meet several groups.
#ifdef TILE_EMULATED
enum { A_GROUP_BYTES = 16 << 10, B_GROUP_BYTES = 40 << 10 };
#else
enum { A_GROUP_BYTES = 128 << 10, B_GROUP_BYTES = 1024 << 10 };
#endif
// Smaller products are faster on vectors; splitting costs more than using.
static const int64_t LEAST_SIDE = 32, LEAST_WORK_BF16 = 1 << 19, LEAST_WORK_FP16 = 1 << 21;

// Some blocks of lines (rows of A, columns of B) of an operand, packed: of each step of a block,
// and each part of its numbers, two tiles.
typedef struct Group {
    Format format; // of its numbers, where they lie
    int parts;
    int64_t blocks, block_tiles; // at most; and of each
    PackedTile *tiles;
    bool looks;    // whether infinity and NaN matter: a factor has parts, which they have not
    bool *special; // which blocks hold them
} Group;

typedef struct Workspace {
    float (*sums)[BLOCK]; // of one block of C
    Group a, b;
    void *vectors; // for the vector kernels, where groups look
    int64_t steps; // of the depth
    size_t bytes;
} Workspace;

static int parts_of(Format format) {
    return format == FORMAT_BF16 ? 1 : 2;
}

static bool suits(const Gemm *gemm) {
    const bool splits_a = gemm->splits_a && gemm->b.format == FORMAT_BF16;
    if ((gemm->a.format == FORMAT_FP32 && !splits_a) || gemm->b.format == FORMAT_FP32)
        return false;
    // An A in fp32 alone is split by two instructions, and its products would be fp32's on vectors.
    bool split = gemm->a.format == FORMAT_FP16 || gemm->b.format == FORMAT_FP16;
    double work = (double)gemm->rows * (double)gemm->columns * (double)gemm->depth;
    return gemm->rows >= LEAST_SIDE && gemm->columns >= LEAST_SIDE && gemm->depth >= LEAST_SIDE &&
           work >= (double)(split ? LEAST_WORK_FP16 : LEAST_WORK_BF16);
}

static Gemm block_of(const Gemm *gemm, int64_t row, int64_t column) {
    return gemm_block_of(gemm, row, column, BLOCK, BLOCK);
}

// As many blocks as fit, in groups that are alike. Of fewer lines no more memory is taken.
static Group lay_out_group(Workspace *space, char *base, Format format, int64_t lines,
                           int64_t most_bytes) {
    Group group = {.format = format, .parts = parts_of(format)};
    group.block_tiles = space->steps * group.parts * 2;
    const int64_t block_bytes = group.block_tiles * (int64_t)sizeof(PackedTile);
    const int64_t blocks = gemm_divide_up(lines, BLOCK);
    int64_t most = block_bytes ? most_bytes / block_bytes : blocks;
    most = most < 1 ? 1 : gemm_smaller(most, blocks);
    group.blocks = blocks ? gemm_divide_up(blocks, gemm_divide_up(blocks, most)) : 0;
    group.tiles = gemm_carve(base, &space->bytes, (size_t)(block_bytes * most));
    group.special = gemm_carve(base, &space->bytes, (size_t)most * sizeof(bool));
    return group;
}

// With a NULL base only the sizes are meant.
static Workspace lay_out(const GemmKernels *plain, const Gemm *gemm, char *base) {
    Workspace space = {.steps = gemm_divide_up(gemm->depth, STEP)};
    Gemm block = block_of(gemm, 0, 0);
    space.sums = gemm_carve(base, &space.bytes, BLOCK * BLOCK * sizeof(float));
    space.a = lay_out_group(&space, base, gemm->a.format, gemm->rows, A_GROUP_BYTES);
    space.b = lay_out_group(&space, base, gemm->b.format, gemm->columns, B_GROUP_BYTES);
    space.a.looks = space.b.looks = space.a.parts * space.b.parts > 1;
    if (space.a.looks)
        space.vectors = gemm_carve(base, &space.bytes,
                                   gemm_workspace_size_by(&(GemmWays){.plain = plain}, &block));
    return space;
}

static size_t workspace_size(const GemmKernels *plain, const Gemm *gemm) {
    return lay_out(plain, gemm, NULL).bytes + GEMM_CACHE_LINE;
}

// ---- packing ------------------------------------------------------------------------------------

// Numbers of some lines and steps: rows of them, `stride` apart, each of a step of the depth where
// lines lie side by side, of a line otherwise.
typedef struct Piece {
    const void *numbers;
    int64_t stride;
    bool by_steps;
} Piece;

typedef union Filled {
    uint16_t halves[TILE_SIDE * TILE_SIDE];
    GemmWord words[TILE_SIDE * TILE_SIDE];
} Filled;

static void pack_piece(PackedTile to[2], const Piece *piece, bool left) {
    const uint16_t *from = piece->numbers;
    PackedTile pairs[2];
    if (!piece->by_steps && left) {
        tile_pack_lines(to, from, piece->stride);
    } else if (!piece->by_steps) {
        tile_turn(to[0], from, piece->stride);
        tile_turn(to[1], from + TILE_ROWS * piece->stride, piece->stride);
    } else if (!left) {
        tile_pack_pairs(to, from, piece->stride);
    } else {
        tile_pack_pairs(pairs, from, piece->stride);
        for (int i = 0; i < 2; i++)
            tile_turn(to[i], (const uint16_t *)(const void *)pairs[i], 2 * TILE_ROWS);
    }
}

// True when it holds infinity or NaN, where numbers have parts.
static bool pack_parts(PackedTile *to, const Piece *piece, const Group *group, bool left) {
    if (group->parts == 1) {
        pack_piece(to, piece, left);
        return false;
    }
    TilePiece split[MOST_PARTS];
    const bool special =
        tile_split(group->format, split[0], split[1], piece->numbers, piece->stride);
    for (int i = 0; i < MOST_PARTS; i++)
        pack_piece(to + 2 * i, &(Piece){split[i][0], TILE_SIDE, piece->by_steps}, left);
    return special;
}

// One that is not whole, or lies scattered: copied number by number, and filled up with 0.
static Piece fill_up(Filled *to, const GemmSource *source, int64_t line, int64_t step,
                     int64_t lines, int64_t steps) {
    memset(to, 0, (size_t)(TILE_SIDE * TILE_SIDE * gemm_bytes(source->format)));
    for (int64_t i = 0; i < lines; i++)
        for (int64_t k = 0; k < steps; k++) {
            const void *number = gemm_source_at(source, line + i, step + k);
            if (source->format == FORMAT_FP32)
                to->words[i * TILE_SIDE + k] = *(const GemmWord *)number;
            else
                to->halves[i * TILE_SIDE + k] = *(const uint16_t *)number;
        }
    return (Piece){to, TILE_SIDE, false};
}

static void call_for(const Piece *piece, Format format, int64_t ahead) {
    const int64_t bytes = gemm_bytes(format), row = TILE_SIDE * bytes;
    const char *numbers = (const char *)piece->numbers + ahead * bytes;
    for (int i = 0; i < TILE_SIDE; i++, numbers += piece->stride * bytes)
        for (int64_t at = 0; at < row; at += GEMM_CACHE_LINE)
            __builtin_prefetch(numbers + at);
}

// How far ahead of a whole piece lies what is packed after it, by some steps.
static int64_t next_but_some(const Piece *piece, int64_t step, int64_t steps) {
    if (piece->by_steps)
        return STEP * piece->stride;
    return step + AHEAD < steps ? AHEAD * STEP : BLOCK * piece->stride + (AHEAD - steps) * STEP;
}

static bool is_special_in(const uint16_t *numbers, int64_t count) {
    enum { INFINITE = 0x7F80, SIGN = 0x8000 };
    uint16_t largest = 0;
    for (int64_t i = 0; i < count; i++) {
        const uint16_t magnitude = (uint16_t)(numbers[i] & ~SIGN);
        largest = magnitude > largest ? magnitude : largest;
    }
    return largest >= INFINITE;
}

// Which blocks of numbers without parts hold infinity or NaN, beside a factor that has parts. That
// is rare: a loop of its own, as within packing it would hold up all others.
static void look_for_special(const Group *group, const GemmSource *source, int64_t lines,
                             int64_t depth) {
    if (!group->looks || group->parts > 1)
        return;
    const bool by_steps = source->line_stride == 1;
    const int64_t at_once = by_steps ? BLOCK : 1;
    const int64_t steps = by_steps || source->step_stride != 1 ? 1 : depth;
    for (int64_t line = 0; line < lines; line += at_once)
        for (int64_t k = 0; k < depth; k += steps) {
            const int64_t count = by_steps ? gemm_smaller(lines - line, BLOCK) : steps;
            if (is_special_in(gemm_source_at(source, line, k), count))
                group->special[line / BLOCK] = true;
        }
}

// The first `lines` lines of the source; pieces follow each other as they do in memory.
static void pack(const Group *group, const GemmSource *source, int64_t lines, int64_t depth,
                 bool left) {
    const bool by_steps = source->line_stride == 1;
    const bool scattered = !by_steps && source->step_stride != 1;
    const int64_t stride = by_steps ? source->step_stride : source->line_stride;
    const int64_t blocks = gemm_divide_up(lines, BLOCK), steps = gemm_divide_up(depth, STEP);
    const int64_t outer = by_steps ? steps : blocks, inner = by_steps ? blocks : steps;
    memset(group->special, 0, (size_t)group->blocks * sizeof group->special[0]);
    for (int64_t i = 0; i < outer; i++)
        for (int64_t j = 0; j < inner; j++) {
            const int64_t block = by_steps ? j : i, step = by_steps ? i : j;
            const int64_t line = block * BLOCK, at = step * STEP;
            Filled filled;
            Piece piece = {gemm_source_at(source, line, at), stride, by_steps};
            if (scattered || line + BLOCK > lines || at + STEP > depth)
                piece = fill_up(&filled, source, line, at, gemm_smaller(lines - line, BLOCK),
                                gemm_smaller(depth - at, STEP));
            else
                call_for(&piece, source->format, next_but_some(&piece, step, steps));
            PackedTile *to = group->tiles + block * group->block_tiles + step * group->parts * 2;
            if (pack_parts(to, &piece, group, left))
                group->special[block] = true;
        }
}

// ---- multiplying --------------------------------------------------------------------------------

// One block of C: every part of A times every part of B, summed in four tiles.
static void multiply_block(Tiles *tiles, const Workspace *space, const PackedTile *a, int a_parts,
                           const PackedTile *b, int b_parts) {
    (void)tiles; // the real ones are not in memory
    tiles_see_memory();
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

// What is packed, of which the first is at (row, column) of C.
static void multiply_groups(const GemmWays *ways, Tiles *tiles, const Workspace *space,
                            const Gemm *gemm, int64_t row, int64_t column) {
    const Group *a = &space->a, *b = &space->b;
    const GemmKernels *ending = ways->pairs ? ways->pairs : ways->plain; // rounds at once
    const int64_t rows = gemm_smaller(gemm_divide_up(gemm->rows - row, BLOCK), a->blocks);
    const int64_t columns = gemm_smaller(gemm_divide_up(gemm->columns - column, BLOCK), b->blocks);
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < columns; j++) {
            Gemm block = block_of(gemm, row + i * BLOCK, column + j * BLOCK);
            if (a->special[i] || b->special[j]) {
                gemm_run_by(&(GemmWays){.plain = ways->plain}, &block, space->vectors);
                continue;
            }
            gemm_call_for_result(&block);
            multiply_block(tiles, space, (const PackedTile *)a->tiles + i * a->block_tiles,
                           a->parts, (const PackedTile *)b->tiles + j * b->block_tiles, b->parts);
            const GemmBlock end = gemm_end_of(&block);
            ending->finish(&end, space->sums[0], BLOCK);
        }
}

static GemmSource lines_from(const GemmSource *source, int64_t line) {
    GemmSource from = *source;
    from.data = gemm_source_at(source, line, 0);
    return from;
}

static void multiply(const GemmWays *ways, const Gemm *gemm, void *workspace) {
    char *base = (char *)workspace + (0 - (uintptr_t)workspace) % GEMM_CACHE_LINE;
    const Workspace space = lay_out(ways->plain, gemm, base);
    const GemmSource a = {gemm->a.data, gemm->a.format, gemm->a.row_stride, gemm->a.column_stride};
    const GemmSource b = {gemm->b.data, gemm->b.format, gemm->b.column_stride, gemm->b.row_stride};
    const int64_t rows_packed = space.a.blocks * BLOCK, columns_packed = space.b.blocks * BLOCK;
    Tiles tiles;
    tiles_begin(&tiles);
    for (int64_t column = 0; column < gemm->columns; column += columns_packed) {
        const GemmSource of_b = lines_from(&b, column);
        const int64_t columns = gemm_smaller(gemm->columns - column, columns_packed);
        pack(&space.b, &of_b, columns, gemm->depth, false);
        look_for_special(&space.b, &of_b, columns, gemm->depth);
        for (int64_t row = 0; row < gemm->rows; row += rows_packed) {
            const GemmSource of_a = lines_from(&a, row);
            const int64_t rows = gemm_smaller(gemm->rows - row, rows_packed);
            pack(&space.a, &of_a, rows, gemm->depth, true);
            look_for_special(&space.a, &of_a, rows, gemm->depth);
            multiply_groups(ways, &tiles, &space, gemm, row, column);
        }
    }
    tiles_end(&tiles);
}

const GemmWay TILE_NAME(gemm_tiles) = {BLOCK, BLOCK, suits, workspace_size, multiply};
