// Factors of products in scaled formats: what their elements are worth, read where they lie and
// written once. A block is in the first-level cache while its largest is looked for and it is
// rounded.
#include <string.h>

#include "cpu/cpu.h"
#include "cpu/kernels.h"
#include "kernel/scale.h"

enum { WIDTH = 128, MOST_BLOCK = 128 }; // lines together; steps that share a scale
static const double element_cost = 1.5; // nanoseconds

typedef struct Factor {
    const Device *device;
    const CpuScale *loops;
    const ScaleAttr *by;
    const RandomAttr *stream;
    Operand x;
    Result y;
    ScaleLines lines;
    NumberElement element;
    NumberScale scale;               // of all
    float tensor;                    // by which scales of blocks fit
    bool measures;                   // looks for the largest alone: that of each
    float largest[CPU_MOST_THREADS]; // thread
} Factor;

// The words for elements from `first` on; NULL where nothing is left to chance.
static const uint32_t *words_at(const Factor *factor, int64_t first, int64_t count,
                                uint32_t words[CPU_BLOCK + 4]) {
    if (!factor->by->at_random || factor->measures)
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

// ---- one scale for all --------------------------------------------------------------------------

static void measure_task(void *context, int64_t begin, int64_t end, int thread) {
    Factor *factor = context;
    _Alignas(64) float buffer[CPU_BLOCK];
    CPU_EACH_BLOCK(at, size, begin, end)
    keep_largest(factor, thread,
                 factor->loops->largest_of_all(operand_read(&factor->x, at, size, buffer), size));
}

static void round_task(void *context, int64_t begin, int64_t end, int thread) {
    (void)thread;
    Factor *factor = context;
    _Alignas(64) float buffer[CPU_BLOCK];
    uint32_t words[CPU_BLOCK + 4];
    CPU_EACH_BLOCK(at, size, begin, end) {
        const float *x = operand_read(&factor->x, at, size, buffer);
        float *y = result_begin(&factor->y, at, buffer);
        if (y != x)
            memcpy(y, x, (size_t)size * sizeof *y);
        factor->loops->round(y, size, factor->element, factor->scale,
                             words_at(factor, at, size, words));
        result_end(&factor->y, at, size, y);
    }
}

// ---- blocks along neighbours --------------------------------------------------------------------

// Some steps of one line, turned where that is asked for: in `buffer`.
static void read_steps(const Factor *factor, int64_t first, int64_t count, float *buffer) {
    const float *x = operand_read(&factor->x, first, count, buffer);
    if (x != buffer)
        memcpy(buffer, x, (size_t)count * sizeof *buffer);
    for (int64_t i = 0; factor->by->hadamard && i + NUMBER_HADAMARD <= count; i += NUMBER_HADAMARD)
        number_hadamard(buffer + i, 1);
}

static void along_task(void *context, int64_t begin, int64_t end, int thread) {
    Factor *factor = context;
    const CpuScale *loops = factor->loops;
    const ScaleLines *lines = &factor->lines;
    _Alignas(64) float buffer[MOST_BLOCK];
    uint32_t words[CPU_BLOCK + 4];
    for (int64_t line = begin, more; line < end; line += more) {
        more = cpu_smaller(end - line, lines->lines);
        for (int64_t step = 0, steps; step < lines->depth; step += steps) {
            steps = cpu_smaller(lines->depth - step, lines->block);
            float largest = 0;
            for (int64_t i = line; i < line + more; i++) {
                read_steps(factor, i * lines->depth + step, steps, buffer);
                float own = loops->largest(buffer, steps);
                largest = own > largest ? own : largest;
            }
            keep_largest(factor, thread, largest);
            const NumberScale scale = number_scale_of_block(
                factor->by->scale, largest, factor->element, factor->by->up, factor->tensor);
            for (int64_t i = line; i < line + more && !factor->measures; i++) {
                const int64_t at = i * lines->depth + step;
                if (more > 1)
                    read_steps(factor, at, steps, buffer);
                loops->round(buffer, steps, factor->element, scale,
                             words_at(factor, at, steps, words));
                float *y = result_begin(&factor->y, at, buffer);
                if (y != buffer)
                    memcpy(y, buffer, (size_t)steps * sizeof *y);
                result_end(&factor->y, at, steps, buffer);
            }
        }
    }
}

// ---- blocks across: neighbours are lines --------------------------------------------------------

typedef struct Tile {
    _Alignas(64) float x[MOST_BLOCK][WIDTH];
    _Alignas(64) float largest[WIDTH], to_elements[WIDTH], to_numbers[WIDTH];
} Tile;

static void read_tile(const Factor *factor, Tile *tile, int64_t first, int64_t steps,
                      int64_t width) {
    const int64_t inner = factor->lines.inner;
    for (int64_t k = 0; k < steps; k++) {
        const float *x = operand_read(&factor->x, first + k * inner, width, tile->x[k]);
        if (x != tile->x[k])
            memcpy(tile->x[k], x, (size_t)width * sizeof *x);
    }
    for (int64_t k = 0; factor->by->hadamard && k + NUMBER_HADAMARD <= steps; k += NUMBER_HADAMARD)
        for (int64_t i = 0; i < width; i++)
            number_hadamard(&tile->x[k][i], WIDTH);
}

static void choose_scales(Factor *factor, Tile *tile, int64_t steps, int64_t width, int thread) {
    memset(tile->largest, 0, sizeof tile->largest);
    for (int64_t k = 0; k < steps; k++)
        factor->loops->largest_each(tile->largest, tile->x[k], width);
    for (int64_t i = 0, more; i < width; i += more) {
        more = cpu_smaller(width - i, factor->lines.lines);
        const float largest = factor->loops->largest(tile->largest + i, more);
        keep_largest(factor, thread, largest);
        const NumberScale scale = number_scale_of_block(factor->by->scale, largest, factor->element,
                                                        factor->by->up, factor->tensor);
        for (int64_t j = i; j < i + more; j++) {
            tile->to_elements[j] = scale.to_elements;
            tile->to_numbers[j] = scale.to_numbers;
        }
    }
}

// Items are as many lines as a tile has, of each row of lines as many as it takes.
static void across_task(void *context, int64_t begin, int64_t end, int thread) {
    Factor *factor = context;
    const ScaleLines *lines = &factor->lines;
    const int64_t tiles = (lines->inner + WIDTH - 1) / WIDTH;
    Tile tile;
    uint32_t words[CPU_BLOCK + 4];
    for (int64_t item = begin; item < end; item++) {
        const int64_t line = item % tiles * WIDTH, width = cpu_smaller(lines->inner - line, WIDTH);
        for (int64_t step = 0, steps; step < lines->depth; step += steps) {
            steps = cpu_smaller(lines->depth - step, lines->block);
            const int64_t first = (item / tiles * lines->depth + step) * lines->inner + line;
            read_tile(factor, &tile, first, steps, width);
            choose_scales(factor, &tile, steps, width, thread);
            for (int64_t k = 0; k < steps && !factor->measures; k++) {
                const int64_t at = first + k * lines->inner;
                factor->loops->round_each(tile.x[k], width, factor->element, tile.to_elements,
                                          tile.to_numbers, words_at(factor, at, width, words));
                float *y = result_begin(&factor->y, at, tile.x[k]);
                if (y != tile.x[k])
                    memcpy(y, tile.x[k], (size_t)width * sizeof *y);
                result_end(&factor->y, at, width, tile.x[k]);
            }
        }
    }
}

// ---- the kernel ---------------------------------------------------------------------------------

static float run(Factor *factor, bool measures) {
    const ScaleLines *lines = &factor->lines;
    const int64_t count = lines->outer * lines->depth * lines->inner;
    const double nanoseconds = (double)count * element_cost;
    factor->measures = measures;
    memset(factor->largest, 0, sizeof factor->largest);
    if (count == 0)
        return 0;
    if (lines->block == 0)
        cpu_parallel(factor->device, count, CPU_BLOCK, nanoseconds,
                     measures ? measure_task : round_task, factor);
    else if (lines->inner == 1)
        cpu_parallel(factor->device, lines->outer, lines->lines, nanoseconds, along_task, factor);
    else
        cpu_parallel(factor->device, lines->outer * ((lines->inner + WIDTH - 1) / WIDTH), 1,
                     nanoseconds, across_task, factor);
    return factor->loops->largest_of_all(factor->largest, CPU_MOST_THREADS);
}

bool cpu_scale_factor(Device *device, const KernelCall *call, Error *error) {
    (void)error;
    const View *x = &call->input[0];
    const ScaleAttr *by = &call->attr->factor.by;
    Factor factor = {.device = device,
                     .loops = cpu_simd(device)->scale,
                     .by = by,
                     .stream = &call->attr->factor.stream,
                     .x = operand_of(device, x, x->ndim, x->shape),
                     .y = result_of(device, &call->output[0]),
                     .lines = scale_lines(x, by),
                     .element = number_element(by->element),
                     .tensor = 1};
    if (by->block == 0 && by->delayed) {
        factor.scale = number_scale_of_factor(by->delayed[SCALE_NOW]);
        if (by->notes)
            by->delayed[SCALE_LARGEST] =
                number_larger_magnitude(by->delayed[SCALE_LARGEST], run(&factor, true));
    } else if (by->block == 0) {
        factor.scale = number_scale_of_largest(run(&factor, true), factor.element);
    } else if (by->scale == FORMAT_E4M3) {
        factor.tensor = number_scale_of_tensor(run(&factor, true), factor.element);
    }
    run(&factor, false);
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
