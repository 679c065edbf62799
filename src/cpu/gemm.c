// cpu/gemm.c: cuts a matrix product into panels and shares them out among threads.
#include "cpu/gemm.h"

#include <assert.h>
#include <omp.h>

#include "cpu/gemm_kernels.h"
#include "cpu/gemm_way.h"

enum {
    // Panels of B come from beyond the first-level cache, where a block of so many bytes stays
    // while the rows of A pass.
    B_BLOCK_BYTES = 896 << 10,
    // An operand of so many bytes is read where it lies.
    DIRECT_BYTES = 32 << 10,
    PAGE = 4096,
    SHALLOW = 128, // steps of the depth
};
// Waking a second thread costs about as much as this many multiplications on a fast core.
static const double WORK_PER_THREAD = 3e5;

// How one product is cut. The same for gemm_run and gemm_workspace_size.
typedef struct Plan {
    const GemmWays *ways;
    const GemmKernels *kernels;
    int threads;
    int64_t row_parts, column_parts;              // of each product of the batch
    int64_t rows, columns;                        // of one part, at most
    int64_t depth_block, row_block, column_block; // at most; the first in words
    bool a_direct, b_direct;
    int64_t a_stride;   // of rows of A that are copied as they are; 0: A is packed in tiles
    const GemmWay *way; // NULL: vectors
    size_t a_bytes, b_bytes, partial_bytes; // workspace of a thread on vectors
    size_t bytes;                           // and in all
} Plan;

static size_t whole_lines(int64_t words) {
    return gemm_whole_lines((size_t)words * sizeof(GemmWord));
}

// So many rows, so many words apart, would fall on the same few lines of the first-level cache.
static bool is_crowded(int64_t stride) {
    return stride * (int64_t)sizeof(GemmWord) % 2048 == 0;
}

static bool is_small(const GemmOperand *operand, int64_t rows, int64_t columns) {
    int64_t number = gemm_bytes(operand->format);
    int64_t row = operand->row_stride * number, column = operand->column_stride * number;
    return rows * columns * number <= DIRECT_BYTES && row < PAGE && column < PAGE && row > -PAGE &&
           column > -PAGE;
}

// Whether A lies transposed, and so few panels of B meet its tiles, of lines so few that they stay
// in the first-level cache, that packing it does not pay.
static bool is_shallow(const GemmKernels *kernels, const Gemm *gemm) {
    return gemm->a.row_stride == 1 && !is_crowded(gemm->a.column_stride) &&
           gemm->depth <= SHALLOW && gemm->columns <= 2 * (int64_t)kernels->panel_columns;
}

// Whether A is whole words as it lies, that can be read there.
static bool can_read_a(const GemmKernels *kernels, const Gemm *gemm) {
    const GemmOperand *a = &gemm->a;
    const int word = kernels->word_numbers;
    if (a->format != kernels->format || gemm->depth % word || a->row_stride % word)
        return false;
    if (a->column_stride != 1)
        return word == 1 && (is_small(a, gemm->rows, gemm->depth) || is_shallow(kernels, gemm));
    return is_small(a, gemm->rows, gemm->depth) || !is_crowded(a->row_stride / word);
}

// A panel of B that meets one tile of rows does not repay its packing.
static bool can_read_b(const GemmKernels *kernels, const Gemm *gemm, int64_t rows) {
    return kernels->word_numbers == 1 && gemm->b.format == kernels->format &&
           gemm->b.column_stride == 1 &&
           (rows <= kernels->tile_rows || is_small(&gemm->b, gemm->depth, gemm->columns));
}

// Each part packs what it needs for itself, so that no thread waits for another. Takes the cut
// that leaves the longest part shortest: multiplications and copies, in units of about a cycle.
static void choose_parts(Plan *plan, const Gemm *gemm) {
    int64_t tall = plan->way ? plan->way->block_rows : 1;
    int64_t wide = plan->way ? plan->way->block_columns : plan->kernels->panel_columns;
    double best = 0;
    for (int64_t row_parts = 1; row_parts <= plan->threads; row_parts++) {
        if (plan->threads % row_parts)
            continue;
        int64_t rows = gemm_divide_up(gemm_divide_up(gemm->rows, tall), row_parts) * tall;
        int64_t columns =
            gemm_divide_up(gemm_divide_up(gemm->columns, wide), plan->threads / row_parts) * wide;
        double cost = (double)rows * (double)columns / 32 + 0.3 * (double)(rows + columns);
        if (row_parts > 1 && cost >= best)
            continue;
        best = cost;
        plan->row_parts = row_parts;
        plan->column_parts = plan->threads / row_parts;
        plan->rows = gemm_smaller(rows, gemm->rows);
        plan->columns = gemm_smaller(columns, gemm->columns);
    }
}

static const GemmKernels *choose_kernels(const GemmWays *ways, Format a, Format b, bool pairs) {
    bool both = a == FORMAT_BF16 && b == FORMAT_BF16;
    return ways->pairs && pairs && both ? ways->pairs : ways->plain;
}

static const GemmWay *choose_way(const GemmWays *ways, const Gemm *gemm) {
    if (ways->tiles && ways->tiles->suits(gemm))
        return ways->tiles;
    return ways->elements && ways->elements->suits(gemm) ? ways->elements : NULL;
}

// Many products are shared out whole, few are cut.
static void share_out(Plan *plan, const Gemm *gemm) {
    const int64_t products = gemm->batch[0] * gemm->batch[1];
    const double work = (double)gemm->rows * (double)gemm->columns *
                        (double)(gemm->depth > 8 ? gemm->depth : 8) * (double)products;
    const double useful = work / WORK_PER_THREAD;
    plan->threads = useful >= gemm->threads ? gemm->threads : useful < 1 ? 1 : (int)useful;
    const bool whole = products % plan->threads == 0 || products >= 4 * (int64_t)plan->threads;
    if (plan->threads > 1 && !whole)
        choose_parts(plan, gemm);
}

static void block_a(Plan *plan, const Gemm *gemm, int64_t depth) {
    const GemmKernels *kernels = plan->kernels;
    plan->a_direct = can_read_a(kernels, gemm);
    plan->row_block = plan->rows;
    if (plan->a_direct)
        return;
    if (gemm->a.column_stride == 1) {
        const int64_t vector = GEMM_CACHE_LINE / (int64_t)sizeof(GemmWord);
        plan->a_stride = gemm_divide_up(depth, vector) * vector;
        plan->a_stride += is_crowded(plan->a_stride) ? vector : 0;
    }
    plan->row_block =
        gemm_smaller(plan->rows, (int64_t)kernels->tiles_together * kernels->tile_rows);
    plan->a_bytes = whole_lines(plan->row_block * (plan->a_stride ? plan->a_stride : depth) +
                                kernels->vector_columns);
}

static void block_b(Plan *plan, const Gemm *gemm, int64_t depth) {
    const GemmKernels *kernels = plan->kernels;
    const int64_t slack = kernels->vector_columns, panel = kernels->panel_columns;
    plan->b_direct = can_read_b(kernels, gemm, plan->rows);
    plan->column_block = plan->columns;
    if (!plan->b_direct) {
        int64_t panels = gemm_divide_up(plan->columns, panel);
        const int64_t blocks =
            gemm_divide_up(panels * panel * depth * (int64_t)sizeof(GemmWord), B_BLOCK_BYTES);
        if (blocks > 1)
            panels = gemm_divide_up(panels, blocks);
        plan->column_block = panels * panel;
        plan->b_bytes = whole_lines(plan->column_block * depth + slack);
    } else if (gemm->columns % slack) {
        plan->b_bytes = whole_lines(panel * depth + slack); // the last columns
    }
}

// How a thread on vectors cuts its part, and what it packs.
static void cut_blocks(Plan *plan, const Gemm *gemm) {
    const int64_t words = gemm_words(plan->kernels, gemm->depth);
    // Sums that C cannot hold between blocks of the depth cost more than a tile that lies farther.
    const int64_t longer = gemm->c.format == FORMAT_FP32 ? 1 : 2;
    const int64_t blocks = gemm_divide_up(words, longer * plan->kernels->depth_block);
    plan->depth_block = blocks > 1 ? gemm_divide_up(words, blocks) : words;
    const int64_t depth = plan->depth_block ? plan->depth_block : 1;
    block_a(plan, gemm, depth);
    block_b(plan, gemm, depth);
    if (blocks > 1 && gemm->c.format != FORMAT_FP32)
        plan->partial_bytes = whole_lines(plan->rows * plan->column_block);
    plan->bytes = plan->a_bytes + plan->b_bytes + plan->partial_bytes;
}

static Plan make_plan(const GemmWays *ways, const Gemm *gemm) {
    assert(gemm->rows >= 0 && gemm->columns >= 0 && gemm->depth >= 0);
    assert(gemm->batch[0] >= 0 && gemm->batch[1] >= 0);
    assert(format_trains(gemm->a.format) && format_trains(gemm->b.format));
    assert(format_trains(gemm->c.format));
    assert(!gemm->bias || format_trains(gemm->bias_format));

    Plan plan = {.ways = ways,
                 .kernels = choose_kernels(ways, gemm->a.format, gemm->b.format, gemm->pairs),
                 .threads = 1,
                 .row_parts = 1,
                 .column_parts = 1,
                 .rows = gemm->rows,
                 .columns = gemm->columns};
    plan.way = choose_way(ways, gemm);
    if (plan.way)
        plan.kernels = ways->plain;
    if (gemm->threads > 1)
        share_out(&plan, gemm);
    if (plan.way) {
        Gemm part = *gemm;
        part.rows = plan.rows;
        part.columns = plan.columns;
        plan.bytes = plan.way->workspace_size(plan.kernels, &part);
    } else {
        cut_blocks(&plan, gemm);
    }
    return plan;
}

static const void *element(const void *data, Format format, int64_t at) {
    return (const char *)data + at * gemm_bytes(format);
}

// The part of a product that one thread computes at a time.
typedef struct Part {
    const Gemm *gemm;
    const Plan *plan;
    const void *a, *b; // of this product of the batch
    void *c;
    int64_t first_row, first_column, rows, columns;
    GemmWord *packed_a, *packed_b;
    float *partial;
} Part;

// The rows of A of a block, `depth` numbers from `step` on: where they lie or, better, copied.
static void provide_a(const Part *part, GemmBlock *block, int64_t first_row, int64_t step,
                      int64_t depth) {
    const GemmOperand *a = &part->gemm->a;
    const Plan *plan = part->plan;
    const GemmKernels *kernels = plan->kernels;
    GemmSource source = {
        .format = a->format, .line_stride = a->row_stride, .step_stride = a->column_stride};
    source.data = element(part->a, a->format, first_row * a->row_stride + step * a->column_stride);
    block->a = part->packed_a;
    if (plan->a_direct) {
        block->a = (const GemmWord *)source.data;
        block->a_row = a->row_stride / kernels->word_numbers;
        block->a_step = a->column_stride; // 1 where a word is more than a number
        return;
    }
    if (plan->a_stride) {
        block->a_row = plan->a_stride;
        block->a_step = 1;
        kernels->copy(part->packed_a, plan->a_stride, &source, block->rows, depth);
        return;
    }
    block->a_packed = true;
    for (int64_t row = 0, rows; row < block->rows; row += rows) {
        int64_t left = block->rows - row, tile = gemm_next_rows(left, kernels->tile_rows);
        rows = tile; // the whole tiles at once, then the last two
        if (left >= 2 * kernels->tile_rows)
            rows = (left / kernels->tile_rows - 1) * kernels->tile_rows;
        GemmSource tiles = source;
        tiles.data = element(source.data, a->format, row * a->row_stride);
        kernels->pack(part->packed_a + row * block->depth, (int)tile, &tiles, rows, depth);
    }
}

// `columns` columns of B, of which the first is `column`.
static void pack_b(const Part *part, int64_t column, int64_t columns, int64_t step, int64_t depth) {
    const GemmOperand *b = &part->gemm->b;
    GemmSource source = {
        element(part->b, b->format, column * b->column_stride + step * b->row_stride), b->format,
        b->column_stride, b->row_stride};
    const GemmKernels *kernels = part->plan->kernels;
    kernels->pack(part->packed_b, kernels->panel_columns, &source, columns, depth);
}

// Some columns of the part, and a stretch of the depth, for all its rows.
static void multiply_columns(const Part *part, int64_t column, int64_t columns, int64_t step,
                             int64_t depth) {
    const Gemm *gemm = part->gemm;
    const Plan *plan = part->plan;
    const GemmKernels *kernels = plan->kernels;
    int64_t in_c = part->first_column + column, panel = kernels->panel_columns;
    int64_t in_place = plan->b_direct ? columns - columns % kernels->vector_columns : 0;
    if (in_place < columns)
        pack_b(part, in_c + in_place, columns - in_place, step, depth);
    GemmBlock block = {.depth = gemm_words(kernels, depth),
                       .alpha = gemm->alpha,
                       .partial_row = plan->column_block,
                       .first = step == 0,
                       .last = step + depth == gemm->depth,
                       .c_format = gemm->c.format,
                       .c_row = gemm->c.row_stride,
                       .accumulate = gemm->accumulate,
                       .bias_format = gemm->bias_format,
                       .activation = gemm->activation,
                       .largest = gemm->largest};
    for (int64_t row = 0; row < part->rows; row += plan->row_block) {
        block.rows = gemm_smaller(part->rows - row, plan->row_block);
        provide_a(part, &block, part->first_row + row, step, depth);
        for (int64_t j = 0; j < columns; j += block.columns) {
            bool direct = j < in_place;
            block.columns = direct ? in_place : columns - j;
            block.b = part->packed_b;
            block.b_step = panel;
            block.b_panel = panel * block.depth;
            if (direct) {
                block.b = (const GemmWord *)element(part->b, kernels->format,
                                                    in_c + step * gemm->b.row_stride);
                block.b_step = gemm->b.row_stride;
                block.b_panel = panel;
            }
            int64_t at_c = (part->first_row + row) * gemm->c.row_stride + in_c + j;
            block.c = (void *)(uintptr_t)element(part->c, gemm->c.format, at_c);
            block.partial = part->partial ? part->partial + row * plan->column_block + j : NULL;
            block.bias = gemm->bias ? element(gemm->bias, gemm->bias_format, in_c + j) : NULL;
            kernels->multiply(&block);
        }
    }
}

static void multiply_part(const Part *part) {
    int64_t all_steps = part->gemm->depth;
    int64_t block = part->plan->depth_block * part->plan->kernels->word_numbers;
    for (int64_t column = 0, columns; column < part->columns; column += columns) {
        columns = gemm_smaller(part->columns - column, part->plan->column_block);
        int64_t step = 0;
        do { // once even without any depth: the bias and the activation remain
            int64_t depth = gemm_smaller(all_steps - step, block);
            multiply_columns(part, column, columns, step, depth);
            step += depth;
        } while (step < all_steps);
    }
}

static void multiply_part_by_way(const Part *part, void *workspace) {
    Gemm gemm = *part->gemm;
    int64_t row = part->first_row, column = part->first_column;
    gemm.rows = part->rows;
    gemm.columns = part->columns;
    gemm.a.data = element(part->a, gemm.a.format, row * gemm.a.row_stride);
    gemm.b.data = element(part->b, gemm.b.format, column * gemm.b.column_stride);
    gemm.c.data =
        (void *)(uintptr_t)element(part->c, gemm.c.format, row * gemm.c.row_stride + column);
    if (gemm.bias)
        gemm.bias = element(gemm.bias, gemm.bias_format, column);
    part->plan->way->multiply(part->plan->ways, &gemm, workspace);
}

// Other threads raise the same.
static void raise_atomically(uint32_t *largest, const uint32_t own[GEMM_LANES]) {
    for (int i = 0; i < GEMM_LANES; i++) {
        uint32_t before = __atomic_load_n(&largest[i], __ATOMIC_RELAXED);
        while (own[i] > before && !__atomic_compare_exchange_n(&largest[i], &before, own[i], true,
                                                               __ATOMIC_RELAXED, __ATOMIC_RELAXED))
            continue;
    }
}

// The parts of all products in order, dealt out evenly; thread `index` of `count` does its share.
static void multiply_share(const Gemm *asked, const Plan *plan, char *workspace, int index,
                           int count) {
    char *own = workspace + plan->bytes * (size_t)index;
    uint32_t largest[GEMM_LANES] = {0};
    const bool raises = asked->largest && count > 1;
    Gemm gemm = *asked;
    if (raises)
        gemm.largest = largest;
    Part part = {.gemm = &gemm, .plan = plan};
    part.packed_a = (GemmWord *)(void *)own;
    part.packed_b = (GemmWord *)(void *)(own + plan->a_bytes);
    if (plan->partial_bytes)
        part.partial = (float *)(void *)(own + plan->a_bytes + plan->b_bytes);
    int64_t cut = plan->row_parts * plan->column_parts;
    int64_t parts = gemm.batch[0] * gemm.batch[1] * cut;
    for (int64_t i = parts * index / count; i < parts * (index + 1) / count; i++) {
        int64_t product = i / cut;
        int64_t outer = product / gemm.batch[1], inner = product % gemm.batch[1];
        const GemmOperand *a = &gemm.a, *b = &gemm.b;
        const GemmResult *c = &gemm.c;
        part.a =
            element(a->data, a->format, outer * a->batch_stride[0] + inner * a->batch_stride[1]);
        part.b =
            element(b->data, b->format, outer * b->batch_stride[0] + inner * b->batch_stride[1]);
        part.c = (void *)(uintptr_t)element(
            c->data, c->format, outer * c->batch_stride[0] + inner * c->batch_stride[1]);
        part.first_row = i % cut / plan->column_parts * plan->rows;
        part.first_column = i % plan->column_parts * plan->columns;
        part.rows = gemm_smaller(gemm.rows - part.first_row, plan->rows);
        part.columns = gemm_smaller(gemm.columns - part.first_column, plan->columns);
        if (part.rows > 0 && part.columns > 0) {
            if (plan->way)
                multiply_part_by_way(&part, own);
            else
                multiply_part(&part);
        }
    }
    if (raises)
        raise_atomically(asked->largest, largest);
}

size_t gemm_workspace_size_by(const GemmWays *ways, const Gemm *gemm) {
    Plan plan = make_plan(ways, gemm);
    return plan.bytes ? plan.bytes * (size_t)plan.threads + GEMM_CACHE_LINE : 0; // to align it
}

void gemm_run_by(const GemmWays *ways, const Gemm *gemm, void *workspace) {
    Plan plan = make_plan(ways, gemm);
    char *aligned = (char *)workspace + (0 - (uintptr_t)workspace) % GEMM_CACHE_LINE;
    if (plan.threads == 1) {
        multiply_share(gemm, &plan, aligned, 0, 1);
        return;
    }
#pragma omp parallel num_threads(plan.threads)
    multiply_share(gemm, &plan, aligned, omp_get_thread_num(), omp_get_num_threads());
}

GemmWays gemm_ways_at(IsaLevel level) {
    GemmWays ways = {.plain = &gemm_kernels_base};
#if defined(__x86_64__)
    if (level >= ISA_AVX2) {
        ways.plain = &gemm_kernels_avx2;
        ways.elements = isa_has_vnni(ISA_AVX2) ? &gemm_elements_avxvnni : &gemm_elements_avx2;
    }
    if (level >= ISA_AVX512) {
        ways.plain = &gemm_kernels_avx512;
        ways.elements = isa_has_vnni(level) ? &gemm_elements_avx512vnni : &gemm_elements_avx512;
    }
    if (level >= ISA_BF16)
        ways.pairs = &gemm_kernels_avx512bf16;
#else
    (void)level;
#endif
    return ways;
}

GemmWays gemm_ways_here(void) {
    GemmWays ways = gemm_ways_at(isa_level());
#if defined(__x86_64__)
    ways.tiles = isa_has_amx() ? &gemm_tiles : NULL;
#endif
    return ways;
}

const GemmKernels *gemm_kernels_for(Format a, Format b, bool pairs) {
    const GemmWays ways = gemm_ways_here();
    return choose_kernels(&ways, a, b, pairs);
}

size_t gemm_workspace_size(const Gemm *gemm) {
    const GemmWays ways = gemm_ways_here();
    return gemm_workspace_size_by(&ways, gemm);
}

void gemm_run(const Gemm *gemm, void *workspace) {
    const GemmWays ways = gemm_ways_here();
    gemm_run_by(&ways, gemm, workspace);
}
