// cpu/gemm_way.h: ways to multiply that pack for themselves. Private to cpu/gemm.c, to gains.c, to
// who fills one, and their tests; gemm.c cuts products among threads and batches and asks for one
// part at a time.
//
// On tile registers (AMX-BF16) a bf16 operand is used as it is, but its subnormals count as 0: the
// hardware has no others. An fp16 number is exactly the sum of two bf16 numbers, so an fp16 operand
// is split while it is packed and costs twice the products. An A in fp32 is split likewise where
// `splits_a` allows it: two bf16 numbers hold 16 of its digits. Sums are fp32. Results below fp32's
// normal numbers may be 0, whatever `pairs` says.
//
// By elements: numbers of few bits that share a scale are whole numbers of a step, and are
// multiplied as those, in 8 bits. Sums over what shares scales are exact, those of all are fp32.
//
// What they cannot bear is left to the vector kernels, block by block: infinity and NaN, and of
// elements also numbers whose scaled sums might overflow or vanish on the way.
#pragma once

#include "cpu/gemm_kernels.h"

typedef struct GemmWay {
    // What is computed together, and again together. Parts are cut between such blocks, so that
    // the same numbers are computed again however many threads there are.
    int64_t block_rows, block_columns;
    // Whether the formats allow it and the size makes it worth it.
    bool (*suits)(const Gemm *gemm);
    // For the first product of the batch, on the calling thread.
    size_t (*workspace_size)(const GemmKernels *plain, const Gemm *gemm);
    // `ways`: the vector kernels that there are besides.
    void (*multiply)(const GemmWays *ways, const Gemm *gemm, void *workspace);
} GemmWay;

extern const GemmWay gemm_tiles;
#if defined(__x86_64__)
extern const GemmWay gemm_elements_avx2, gemm_elements_avx512;
extern const GemmWay gemm_elements_avxvnni, gemm_elements_avx512vnni;
#endif

// Whether numbers made so are whole ones of 8 bits: of a step that a block has, up to
// GEMM_MOST_WHOLE. Steps of scales with digits of their own are looked for as those of e2m1.
enum { GEMM_MOST_WHOLE = 63 };

static inline bool gemm_blocks_are_whole(const NumberBlocks *blocks) {
    const bool of_powers = blocks->scale == FORMAT_E8M0;
    if ((blocks->block != 32 && blocks->block != 16) ||
        (!of_powers && blocks->scale != FORMAT_E4M3))
        return false;
    for (int i = 0; i < 2; i++) {
        const FormatInfo *element = &format_table[blocks->element[i]];
        if (element->largest > GEMM_MOST_WHOLE * element->smallest_subnormal ||
            (!of_powers && blocks->element[i] != FORMAT_E2M1))
            return false;
    }
    return true;
}

// A block of C, or what is left of it at the edge, as a product of its own.
static inline Gemm gemm_block_of(const Gemm *gemm, int64_t row, int64_t column, int64_t rows,
                                 int64_t columns) {
    Gemm block = *gemm;
    block.rows = gemm_smaller(gemm->rows - row, rows);
    block.columns = gemm_smaller(gemm->columns - column, columns);
    block.batch[0] = block.batch[1] = 1;
    block.threads = 1;
    block.a.data =
        (const char *)gemm->a.data + row * gemm->a.row_stride * gemm_bytes(gemm->a.format);
    block.b.data =
        (const char *)gemm->b.data + column * gemm->b.column_stride * gemm_bytes(gemm->b.format);
    block.c.data =
        (char *)gemm->c.data + (row * gemm->c.row_stride + column) * gemm_bytes(gemm->c.format);
    if (gemm->bias)
        block.bias = (const char *)gemm->bias + column * gemm_bytes(gemm->bias_format);
    return block;
}

// What becomes of the sums of such a block, all its depth.
static inline GemmBlock gemm_end_of(const Gemm *block) {
    return (GemmBlock){.rows = block->rows,
                       .columns = block->columns,
                       .alpha = block->alpha,
                       .first = true,
                       .last = true,
                       .c = block->c.data,
                       .c_format = block->c.format,
                       .c_row = block->c.row_stride,
                       .accumulate = block->accumulate,
                       .bias = block->bias,
                       .bias_format = block->bias_format,
                       .activation = block->activation,
                       .largest = block->largest};
}

// C is far away as often as not: a block of it is called for before it is written.
static inline void gemm_call_for_result(const Gemm *block) {
    const int64_t row = block->c.row_stride * gemm_bytes(block->c.format);
    const int64_t last = (block->columns - 1) * gemm_bytes(block->c.format);
    const char *c = block->c.data;
    for (int64_t i = 0; i < block->rows; i++, c += row) {
        __builtin_prefetch(c, 1);
        __builtin_prefetch(c + last, 1);
    }
}

// The next piece of a workspace, in whole lines; with a NULL base only its size is meant.
static inline void *gemm_carve(char *base, size_t *used, size_t bytes) {
    void *piece = base ? base + *used : NULL;
    *used += gemm_whole_lines(bytes);
    return piece;
}
