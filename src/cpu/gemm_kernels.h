// cpu/gemm_kernels.h: what the matrix product needs from each ISA level. Private to cpu/gemm*.c, to
// the files of cpu/simd and to its tests and benches.
//
// A product is cut into blocks: some rows of A, some columns of B and a stretch of the depth. The
// columns of a block are walked in panels of `panel_columns`, the rows in tiles of `tile_rows`.
//
// What one instruction multiplies is a word of 32 bits along the depth: one number of fp32, or two
// neighbours of bf16. A and B are copied ("packed") to words in the order in which the kernel reads
// them, converted on the way where their format is another, or read in place where they are such
// words and lie well. So a whole operand is never converted, and a further format needs no more
// than a way to pack it.
#pragma once

#include "base/isa.h"
#include "cpu/gemm.h"

// The bits of one fp32 number, or of two of bf16, the first in the lower half. It may lie wherever
// a number of bf16 may.
typedef float GemmWord __attribute__((may_alias, aligned(2)));

// Further stretches of the depth: so many, each so many words of A and B behind the one before.
typedef struct GemmFurther {
    int64_t count, a, b;
} GemmFurther;

// Strides and the depth of a block count words.
typedef struct GemmBlock {
    int64_t rows, columns, depth;
    GemmFurther further[2]; // of `depth` steps; and of all those
    const GemmWord *a;      // tile after tile as packed; or a matrix, with the strides below
    bool a_packed;
    int64_t a_row, a_step;   // not packed: from row to row and along the depth
    const GemmWord *b;       // panel after panel as packed; or rows in place
    int64_t b_step, b_panel; // along the depth, and from panel to panel
    float alpha;
    // Sums so far, when the depth is cut and C cannot hold them; NULL otherwise. The first block
    // reads none, the last writes none, and C is that one's alone.
    float *partial;
    int64_t partial_row;
    bool first, last; // stretch of the depth
    void *c;
    Format c_format;
    int64_t c_row;
    bool accumulate;
    const void *bias; // of these columns, or NULL
    Format bias_format;
    GemmActivation activation;
    uint32_t *largest; // as Gemm's, of one thread alone
} GemmBlock;

// A matrix to pack, seen as lines (rows of A, columns of B) of `depth` numbers.
typedef struct GemmSource {
    const void *data;
    Format format;
    int64_t line_stride, step_stride;
} GemmSource;

typedef struct GemmKernels {
    Format format;      // of the numbers in a word
    int word_numbers;   // how many it holds
    int depth_block;    // so many words of a tile of A and a panel of B are near at a time
    int tile_rows;      // the most rows of one register tile
    int tiles_together; // of A, packed in one sweep
    int panel_columns;  // a multiple of vector_columns
    int vector_columns;
    void (*multiply)(const GemmBlock *block);
    // The second half of multiply, for sums[row * sums_row + column] of all the depth from
    // elsewhere, read in whole vectors: the block is the first and the last, without partial sums.
    void (*finish)(const GemmBlock *block, const float *sums, int64_t sums_row);
    // Packs `lines` lines into panels of `width` of them, each panel contiguous. With the depth in
    // words, of which the last is filled up with 0:
    //     to[(line / width * depth + step) * width + line % width] = source(line, step)
    // A last panel that is not full is filled up with anything to whole vectors, or to `width`; up
    // to `vector_columns` words after its end may be overwritten.
    void (*pack)(GemmWord *to, int width, const GemmSource *source, int64_t lines, int64_t depth);
    // to[line * stride + step] = source(line, step), where steps are neighbours in the source.
    void (*copy)(GemmWord *to, int64_t stride, const GemmSource *source, int64_t lines,
                 int64_t depth);
} GemmKernels;

extern const GemmKernels gemm_kernels_base;
#if defined(__x86_64__)
extern const GemmKernels gemm_kernels_avx2, gemm_kernels_avx512;
extern const GemmKernels gemm_kernels_avx512bf16; // words of two
#endif

// The ways of a product: the first of these that there is, and that suits it.
typedef struct GemmWays {
    const struct GemmWay *tiles, *elements; // cpu/gemm_way.h; or NULL
    const GemmKernels *pairs;               // of bf16, words of two; or NULL
    const GemmKernels *plain;               // of everything, in fp32
} GemmWays;

// Those of a level, or of the next lower level that has its own, without tiles.
GemmWays gemm_ways_at(IsaLevel level);
GemmWays gemm_ways_here(void); // all that this processor has

// What vectors multiply these two formats by here, `pairs` as of a product.
const GemmKernels *gemm_kernels_for(Format a, Format b, bool pairs);

// gemm_run and gemm_workspace_size by given ways.
size_t gemm_workspace_size_by(const GemmWays *ways, const Gemm *gemm);
void gemm_run_by(const GemmWays *ways, const Gemm *gemm, void *workspace);

enum { GEMM_CACHE_LINE = 64 };

static inline int64_t gemm_divide_up(int64_t a, int64_t b) {
    return (a + b - 1) / b;
}

static inline int64_t gemm_smaller(int64_t a, int64_t b) {
    return a < b ? a : b;
}

// Bytes of a number in one of the three formats.
static inline int64_t gemm_bytes(Format format) {
    return format == FORMAT_FP32 ? 4 : 2;
}

static inline const void *gemm_source_at(const GemmSource *source, int64_t line, int64_t step) {
    const int64_t at = line * source->line_stride + step * source->step_stride;
    return (const char *)source->data + at * gemm_bytes(source->format);
}

// Words that hold so many numbers of the depth.
static inline int64_t gemm_words(const GemmKernels *kernels, int64_t depth) {
    return gemm_divide_up(depth, kernels->word_numbers);
}

static inline size_t gemm_whole_lines(size_t bytes) {
    return (bytes + GEMM_CACHE_LINE - 1) / GEMM_CACHE_LINE * GEMM_CACHE_LINE;
}

// The rows that the next register tile takes of those that remain: the last two share evenly, as a
// tile of few rows waits for its own sums.
static inline int64_t gemm_next_rows(int64_t remaining, int tile_rows) {
    if (remaining <= tile_rows)
        return remaining;
    return remaining < 2 * tile_rows ? (remaining + 1) / 2 : tile_rows;
}
