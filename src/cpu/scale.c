// Factors of products in scaled formats: what their elements are worth, read where they lie and
// written once. Along the depth a block is in the first-level cache while its largest is looked for
// and it is rounded; across it rows are read in long stretches, the second time from a cache that
// is near.
#include <string.h>

#include "cpu/cpu.h"
#include "cpu/kernels.h"
#include "kernel/scale.h"

enum {
    WIDTH = CPU_SCALE_COLUMNS, // lines of a tile that is rounded where it lies
    COPIED_WIDTH = 128,        // of one that is copied before
    MOST_BLOCK = 128,          // steps that share a scale, and the most lines that do
};
_Static_assert((int)WIDTH <= (int)CPU_BLOCK, "a row's words and numbers fit into buffers");
_Static_assert(WIDTH % MOST_BLOCK == 0 && COPIED_WIDTH % MOST_BLOCK == 0, "lines stay together");
static const double element_cost = 0.6; // nanoseconds

typedef struct Factor {
    const Device *device;
    const CpuScale *loops;
    const ScaleAttr *by;
    const RandomAttr *stream;
    Operand x;
    Result y;
    ScaleLines lines;
    CpuScaleRule rule;
    NumberScale scale;               // of all
    Format read, written;            // by the loops: bf16 where that lies dense, unturned; or fp32
    bool measures, rounds;           // looks for the largest alone; or it rounds, or does both
    float largest[CPU_MOST_THREADS]; // that of each thread
} Factor;

// The words for elements from `first` on; NULL where nothing is left to chance.
static const uint32_t *words_at(const Factor *factor, int64_t first, int64_t count,
                                uint32_t words[CPU_BLOCK + 4]) {
    if (!factor->by->at_random)
        return NULL;
    const int64_t skipped = first % 4;
    cpu_simd(factor->device)
        ->random->words(factor->stream->seed, random_begin(factor->stream) + (uint64_t)(first / 4),
                        words, count + skipped);
    return words + skipped;
}

static void keep_largest(Factor *factor, int thread, float largest) {
    factor->largest[thread] = number_larger_magnitude(factor->largest[thread], largest);
}

// Numbers as the loops read them, where they lie or in `buffer`: CPU_BLOCK at most.
static const void *numbers_at(const Factor *factor, int64_t first, int64_t count, float *buffer) {
    if (factor->read == FORMAT_BF16)
        return factor->x.data + first * factor->x.bytes;
    return operand_read(&factor->x, first, count, buffer);
}

// Where the loops put what elements are worth: to its place, or to `buffer` where that has a format
// which they do not write.
static void *begin_writing(const Factor *factor, int64_t first, float *buffer) {
    return factor->written == factor->y.format ? factor->y.data + first * factor->y.bytes
                                               : (void *)buffer;
}
static void end_writing(const Factor *factor, int64_t first, int64_t count, const float *buffer) {
    if (factor->written != factor->y.format)
        factor->y.from_fp32(buffer, factor->y.data + first * factor->y.bytes, (size_t)count);
}

static CpuScaleRows rows_of(Format format, const void *numbers, int64_t rows, int64_t width,
                            int64_t stride) {
    return (CpuScaleRows){
        .numbers = numbers, .format = format, .rows = rows, .width = width, .stride = stride};
}

static CpuRounding rounding_by(const Factor *factor, const float *to_elements,
                               const float *to_numbers, const uint32_t *words) {
    return (CpuRounding){.element = factor->rule.element,
                         .to = factor->written,
                         .to_elements = to_elements,
                         .to_numbers = to_numbers,
                         .words = words};
}

// Blocks behind each other, of which the first number is `at`.
static void round_rows(const Factor *factor, const CpuScaleRows *rows, int64_t at,
                       const float *to_elements, const float *to_numbers) {
    float rounded[CPU_BLOCK];
    uint32_t words[CPU_BLOCK + 4];
    const int64_t count = rows->rows * rows->width;
    const CpuRounding by =
        rounding_by(factor, to_elements, to_numbers, words_at(factor, at, count, words));
    factor->loops->round_rows(&by, rows, begin_writing(factor, at, rounded));
    end_writing(factor, at, count, rounded);
}

static void round_by_one(const Factor *factor, const void *x, int64_t at, int64_t count,
                         const NumberScale *scale) {
    const CpuScaleRows row = rows_of(factor->read, x, 1, count, count);
    round_rows(factor, &row, at, &scale->to_elements, &scale->to_numbers);
}

// ---- one scale for all --------------------------------------------------------------------------

// The largest alone: of blocks, or where NaN counts too.
static void largest_task(void *context, int64_t begin, int64_t end, int thread) {
    Factor *factor = context;
    _Alignas(64) float buffer[CPU_BLOCK];
    CPU_EACH_BLOCK(at, size, begin, end) {
        const void *x = numbers_at(factor, at, size, buffer);
        keep_largest(factor, thread,
                     factor->loops->largest(factor->read, x, size, factor->by->block > 0));
    }
}

static void all_task(void *context, int64_t begin, int64_t end, int thread) {
    Factor *factor = context;
    _Alignas(64) float buffer[CPU_BLOCK];
    CPU_EACH_BLOCK(at, size, begin, end) {
        const void *x = numbers_at(factor, at, size, buffer);
        if (factor->measures)
            keep_largest(factor, thread, factor->loops->largest(factor->read, x, size, false));
        round_by_one(factor, x, at, size, &factor->scale);
    }
}

// ---- blocks along neighbours --------------------------------------------------------------------

// So many whole blocks behind each other, CPU_BLOCK numbers at most; a line's last may be smaller.
static void round_stretch(Factor *factor, int64_t at, int64_t blocks, int64_t block, int thread) {
    const CpuScale *loops = factor->loops;
    const int64_t count = blocks * block;
    _Alignas(64) float buffer[CPU_BLOCK];
    float largest[CPU_BLOCK], to_elements[CPU_BLOCK], to_numbers[CPU_BLOCK];
    const void *x = numbers_at(factor, at, count, buffer);
    if (factor->by->hadamard) { // of a last block what fills no turn stays as it is
        if (x != buffer)
            memcpy(buffer, x, (size_t)count * sizeof *buffer);
        loops->turn(buffer, count / NUMBER_HADAMARD);
        x = buffer;
    }
    if (!factor->rounds) {
        keep_largest(factor, thread, loops->largest(factor->read, x, count, true));
        return;
    }
    const CpuScaleRows rows = rows_of(factor->read, x, blocks, block, block);
    loops->largest_of_rows(&rows, largest);
    loops->scales(&factor->rule, largest, blocks, to_elements, to_numbers);
    if (factor->by->best)
        loops->better_rows(&factor->rule, &rows, largest, to_elements, to_numbers);
    round_rows(factor, &rows, at, to_elements, to_numbers);
}

// How many blocks are rounded at once.
static int64_t together(int64_t block) {
    return CPU_BLOCK / block;
}

// Items are numbers: lines are whole blocks, and all of them are one long line.
static void along_task(void *context, int64_t begin, int64_t end, int thread) {
    Factor *factor = context;
    const int64_t block = factor->lines.block;
    for (int64_t at = begin, blocks; at < end; at += blocks * block) {
        blocks = cpu_smaller(together(block), (end - at) / block);
        round_stretch(factor, at, blocks, block, thread);
    }
}

// Items are lines that end with a part of a block, or of a turn.
static void lines_task(void *context, int64_t begin, int64_t end, int thread) {
    Factor *factor = context;
    const int64_t block = factor->lines.block, depth = factor->lines.depth;
    for (int64_t line = begin; line < end; line++) {
        int64_t step = 0;
        for (int64_t blocks; depth - step >= block; step += blocks * block) {
            blocks = cpu_smaller(together(block), (depth - step) / block);
            round_stretch(factor, line * depth + step, blocks, block, thread);
        }
        if (step < depth)
            round_stretch(factor, line * depth + step, 1, depth - step, thread);
    }
}

// Items are lines, of which several share scales.
static void squares_task(void *context, int64_t begin, int64_t end, int thread) {
    Factor *factor = context;
    (void)thread;
    const CpuScale *loops = factor->loops;
    const ScaleLines *lines = &factor->lines;
    _Alignas(64) float buffer[MOST_BLOCK];
    for (int64_t line = begin, more; line < end; line += more) {
        more = cpu_smaller(end - line, lines->lines);
        for (int64_t step = 0, steps; step < lines->depth; step += steps) {
            steps = cpu_smaller(lines->depth - step, lines->block);
            float largest = 0;
            for (int64_t i = line; i < line + more; i++) {
                const void *x = numbers_at(factor, i * lines->depth + step, steps, buffer);
                const float own = loops->largest(factor->read, x, steps, true);
                largest = own > largest ? own : largest;
            }
            NumberScale scale;
            loops->scales(&factor->rule, &largest, 1, &scale.to_elements, &scale.to_numbers);
            for (int64_t i = line; i < line + more; i++) {
                const int64_t at = i * lines->depth + step;
                const void *x = numbers_at(factor, at, steps, buffer);
                round_by_one(factor, x, at, steps, &scale);
            }
        }
    }
}

// ---- blocks across: neighbours are lines --------------------------------------------------------

// A block of so many lines, from number `first` of the array on. Rows are where they lie; turned,
// not dense or of a format that the loops do not read they are copied.
typedef struct Tile {
    int64_t first;
    CpuScaleRows rows;
    _Alignas(64) float copied[MOST_BLOCK * COPIED_WIDTH];
    _Alignas(64) float largest[WIDTH], to_elements[WIDTH], to_numbers[WIDTH];
} Tile;

static void read_stretch(const Factor *factor, int64_t first, int64_t count, float *to) {
    CPU_EACH_BLOCK(at, size, 0, count) {
        const float *x = operand_read(&factor->x, first + at, size, to + at);
        if (x != to + at)
            memcpy(to + at, x, (size_t)size * sizeof *x);
    }
}

static bool is_copied(const Factor *factor) {
    return factor->by->hadamard || !factor->x.dense || factor->x.format != factor->read;
}

static void read_tile(const Factor *factor, Tile *tile, int64_t steps, int64_t width) {
    const int64_t inner = factor->lines.inner;
    const char *lies = factor->x.data + tile->first * factor->x.bytes;
    const bool copies = is_copied(factor);
    tile->rows = copies ? rows_of(FORMAT_FP32, tile->copied, steps, width, width)
                        : rows_of(factor->read, lies, steps, width, inner);
    if (copies && width == inner)
        read_stretch(factor, tile->first, steps * width, tile->copied);
    else if (copies)
        for (int64_t k = 0; k < steps; k++)
            read_stretch(factor, tile->first + k * inner, width, tile->copied + k * width);
    for (int64_t k = 0; factor->by->hadamard && k + NUMBER_HADAMARD <= steps; k += NUMBER_HADAMARD)
        factor->loops->turn_columns(tile->copied + k * width, width);
}

// Of lines that share scales the largest of all is that of each.
static void share_largest(const Factor *factor, Tile *tile) {
    for (int64_t i = 0, more; factor->lines.lines > 1 && i < tile->rows.width; i += more) {
        more = cpu_smaller(tile->rows.width - i, factor->lines.lines);
        const float largest = factor->loops->largest(FORMAT_FP32, tile->largest + i, more, true);
        for (int64_t j = i; j < i + more; j++)
            tile->largest[j] = largest;
    }
}

// Together, or row by row where chance or a format that the loops do not write asks for it.
static void write_tile(const Factor *factor, const Tile *tile) {
    const int64_t inner = factor->lines.inner, steps = tile->rows.rows, width = tile->rows.width;
    const bool is_apart = factor->by->at_random || factor->written != factor->y.format;
    const int64_t row_bytes = tile->rows.stride * (int64_t)format_table[tile->rows.format].bytes;
    CpuScaleRows some = tile->rows;
    uint32_t words[CPU_BLOCK + 4];
    float rounded[WIDTH];
    some.rows = is_apart ? 1 : steps;
    for (int64_t k = 0; k < steps; k += some.rows) {
        const int64_t at = tile->first + k * inner;
        const CpuRounding by = rounding_by(factor, tile->to_elements, tile->to_numbers,
                                           words_at(factor, at, width, words));
        some.numbers = (const char *)tile->rows.numbers + k * row_bytes;
        factor->loops->round_columns(&by, &some, begin_writing(factor, at, rounded), inner);
        end_writing(factor, at, width, rounded);
    }
}

static void round_tile(const Factor *factor, Tile *tile) {
    const CpuScale *loops = factor->loops;
    loops->largest_of_columns(&tile->rows, tile->largest);
    share_largest(factor, tile);
    loops->scales(&factor->rule, tile->largest, tile->rows.width, tile->to_elements,
                  tile->to_numbers);
    if (factor->by->best)
        loops->better_columns(&factor->rule, &tile->rows, tile->largest, tile->to_elements,
                              tile->to_numbers);
    write_tile(factor, tile);
}

static int64_t width_of_tiles(const Factor *factor) {
    return is_copied(factor) ? COPIED_WIDTH : WIDTH;
}
static int64_t tiles_across(const Factor *factor) {
    const int64_t width = width_of_tiles(factor);
    return (factor->lines.inner + width - 1) / width;
}
static int64_t blocks_along(const ScaleLines *lines) {
    return (lines->depth + lines->block - 1) / lines->block;
}

// Items are tiles: a block deep, and as many lines wide as a tile has or there are.
static void across_task(void *context, int64_t begin, int64_t end, int thread) {
    Factor *factor = context;
    const ScaleLines *lines = &factor->lines;
    const int64_t tiles = tiles_across(factor), blocks = blocks_along(lines);
    const int64_t most = width_of_tiles(factor);
    Tile tile;
    for (int64_t item = begin; item < end; item++) {
        const int64_t line = item % tiles * most, step = item / tiles % blocks * lines->block;
        const int64_t width = cpu_smaller(lines->inner - line, most);
        const int64_t steps = cpu_smaller(lines->depth - step, lines->block);
        tile.first = (item / tiles / blocks * lines->depth + step) * lines->inner + line;
        read_tile(factor, &tile, steps, width);
        if (factor->rounds)
            round_tile(factor, &tile);
        else // turned, and without gaps
            keep_largest(factor, thread,
                         factor->loops->largest(FORMAT_FP32, tile.copied, steps * width, true));
    }
}

// ---- the kernel ---------------------------------------------------------------------------------

static void run_blocks(Factor *factor, int64_t count, double nanoseconds) {
    const ScaleLines *lines = &factor->lines;
    if (lines->inner > 1)
        cpu_parallel(factor->device, lines->outer * blocks_along(lines) * tiles_across(factor), 1,
                     nanoseconds, across_task, factor);
    else if (lines->lines > 1)
        cpu_parallel(factor->device, lines->outer, lines->lines, nanoseconds, squares_task, factor);
    else if (lines->depth % lines->block == 0 &&
             !(factor->by->hadamard && lines->block % NUMBER_HADAMARD))
        cpu_parallel(factor->device, count, together(lines->block) * lines->block, nanoseconds,
                     along_task, factor);
    else
        cpu_parallel(factor->device, lines->outer, 1, nanoseconds, lines_task, factor);
}

// The largest number, where it measures; to the factors, where it rounds.
static float run(Factor *factor, bool measures, bool rounds) {
    const ScaleLines *lines = &factor->lines;
    const int64_t count = lines->outer * lines->depth * lines->inner;
    const double nanoseconds = (double)count * element_cost;
    factor->measures = measures;
    factor->rounds = rounds;
    memset(factor->largest, 0, sizeof factor->largest);
    if (count == 0)
        return 0;
    if (!rounds && !factor->by->hadamard)
        cpu_parallel(factor->device, count, CPU_BLOCK, nanoseconds, largest_task, factor);
    else if (lines->block == 0)
        cpu_parallel(factor->device, count, CPU_BLOCK, nanoseconds, all_task, factor);
    else
        run_blocks(factor, count, nanoseconds);
    return factor->loops->largest(FORMAT_FP32, factor->largest, CPU_MOST_THREADS, false);
}

// A factor of its own where it is apart.
static void part(const ScaleAttr *by, NumberScale *scale) {
    if (!by->apart)
        return;
    *by->apart = scale->to_numbers;
    scale->to_numbers = 1;
}

static void scale_all(Factor *factor) {
    const ScaleAttr *by = factor->by;
    if (!by->delayed) {
        factor->scale = number_scale_of_largest(run(factor, true, false), factor->rule.element);
        part(by, &factor->scale);
        run(factor, false, true);
        return;
    }
    factor->scale = number_scale_of_factor(by->delayed[SCALE_NOW]);
    part(by, &factor->scale);
    const float largest = run(factor, by->notes, true);
    if (by->notes)
        by->delayed[SCALE_LARGEST] = number_larger_magnitude(by->delayed[SCALE_LARGEST], largest);
}

static void scale_blocks(Factor *factor) {
    if (factor->by->scale == FORMAT_E4M3)
        factor->rule.tensor =
            number_scale_of_tensor(run(factor, true, false), factor->rule.element);
    if (factor->by->apart)
        *factor->by->apart = factor->rule.tensor;
    run(factor, false, true);
}

// A line that is shorter than a block is one.
static ScaleLines lines_of(const View *x, const ScaleAttr *by) {
    ScaleLines lines = scale_lines(x, by);
    if (lines.block > lines.depth && lines.depth > 0)
        lines.block = lines.depth;
    return lines;
}

bool cpu_scale_factor(Device *device, const KernelCall *call, Error *error) {
    (void)error;
    const View *x = &call->input[0];
    const ScaleAttr *by = &call->attr->factor.by;
    const NumberElement element = number_element(by->element);
    Factor factor = {
        .device = device,
        .loops = cpu_simd(device)->scale,
        .by = by,
        .stream = &call->attr->factor.stream,
        .x = operand_of(device, x, x->ndim, x->shape),
        .y = result_of(device, &call->output[0]),
        .read = FORMAT_FP32,
        .written = call->output[0].format == FORMAT_BF16 ? FORMAT_BF16 : FORMAT_FP32,
        .lines = lines_of(x, by),
        .rule =
            {.element = element, .scale = by->scale, .up = by->up, .apart = by->apart, .tensor = 1},
    };
    if (factor.x.format == FORMAT_BF16 && factor.x.dense && !by->hadamard)
        factor.read = FORMAT_BF16;
    if (by->block == 0)
        scale_all(&factor);
    else
        scale_blocks(&factor);
    return true;
}

// A row for each layer and role, which are few.
bool cpu_scale_history(Device *device, const KernelCall *call, Error *error) {
    (void)device, (void)error;
    const View *x = &call->input[0];
    const HistoryAttr *history = &call->attr->history;
    const float *from = x->data;
    float *to = call->output[0].data;
    const int64_t width = x->shape[1];
    for (int64_t i = 0; i < x->shape[0]; i++)
        number_scale_history(from + i * x->stride[0], x->stride[1], to + i * width,
                             width - SCALE_HISTORY, history->largest[i % history->roles],
                             history->is_recent);
    return true;
}
