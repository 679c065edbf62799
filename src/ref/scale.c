// Factors of products in scaled formats. Here alone the reference computes in fp32: elements are
// defined by its steps (number/scaled.h), so that every device gives the same.
#include "kernel/scale.h"
#include "kernel/random.h"
#include "number/scaled.h"
#include "ref/access.h"
#include "ref/kernels.h"

typedef struct Factor {
    const View *x, *y;
    const ScaleAttr *by;
    const RandomAttr *stream;
    ScaleLines lines;
    NumberElement element;
    float tensor; // of all, where blocks have scales in it
} Factor;

// Number `step` of a line, turned where that is asked for: the rest of a line that fills no turn
// stays as it is.
static float number_at(const Factor *factor, int64_t line, int64_t step) {
    const ScaleLines *lines = &factor->lines;
    const int64_t first = step - step % NUMBER_HADAMARD;
    if (!factor->by->hadamard || first + NUMBER_HADAMARD > lines->depth)
        return (float)ref_get(factor->x, scale_index(lines, line, step));
    float turned[NUMBER_HADAMARD];
    for (int i = 0; i < NUMBER_HADAMARD; i++)
        turned[i] = (float)ref_get(factor->x, scale_index(lines, line, first + i));
    number_hadamard(turned, 1);
    return turned[step - first];
}

// The largest magnitude of some steps of some lines; of those that are finite, or NaN and infinity
// too.
static float largest_of(const Factor *factor, int64_t line, int64_t lines, int64_t step,
                        int64_t steps, bool finite) {
    float largest = 0;
    for (int64_t i = line; i < line + lines; i++)
        for (int64_t k = step; k < step + steps; k++) {
            float number = number_at(factor, i, k);
            if (!finite || isfinite(number))
                largest = number_larger_magnitude(largest, number);
        }
    return largest;
}

static void round_block(const Factor *factor, int64_t line, int64_t lines, int64_t step,
                        int64_t steps, NumberScale scale) {
    for (int64_t i = line; i < line + lines; i++)
        for (int64_t k = step; k < step + steps; k++) {
            int64_t index = scale_index(&factor->lines, i, k);
            float chance = 0;
            if (factor->by->at_random) {
                RandomBlock block = random_block(
                    factor->stream->seed, random_begin(factor->stream) + (uint64_t)index / 4);
                chance = random_uniform(block.word[index % 4]);
            }
            float element = number_round_to_element(number_at(factor, i, k) * scale.to_elements,
                                                    factor->element, factor->by->at_random, chance);
            ref_put(factor->y, index, (double)(element * scale.to_numbers));
        }
}

// That of a block of one line, where its largest becomes 6 or 4.
static NumberScale better_scale(const Factor *factor, int64_t line, int64_t step, int64_t steps,
                                float largest) {
    float x[NUMBER_MOST_TOGETHER];
    for (int64_t i = 0; i < steps; i++)
        x[i] = number_at(factor, line, step + i);
    return number_better_scale(x, steps, largest, factor->element, factor->tensor);
}

REF_KERNEL(scale_factor) {
    const ScaleAttr *by = &call->attr->factor.by;
    Factor factor = {.x = &call->input[0],
                     .y = &call->output[0],
                     .by = by,
                     .stream = &call->attr->factor.stream,
                     .lines = scale_lines(&call->input[0], by),
                     .element = number_element(by->element)};
    const int64_t lines = factor.lines.outer * factor.lines.inner, depth = factor.lines.depth;
    if (by->block == 0) {
        float largest = largest_of(&factor, 0, lines, 0, depth, false);
        NumberScale scale = number_scale_of_largest(largest, factor.element);
        if (by->delayed) {
            scale = number_scale_of_factor(by->delayed[SCALE_NOW]);
            if (by->notes)
                by->delayed[SCALE_LARGEST] =
                    number_larger_magnitude(by->delayed[SCALE_LARGEST], largest);
        }
        round_block(&factor, 0, lines, 0, depth, scale);
        return true;
    }
    if (by->scale == FORMAT_E4M3)
        factor.tensor =
            number_scale_of_tensor(largest_of(&factor, 0, lines, 0, depth, true), factor.element);
    for (int64_t group = 0; group < scale_groups(&factor.lines) && lines > 0; group++) {
        int64_t line, more = scale_group(&factor.lines, group, &line);
        for (int64_t step = 0, steps; step < depth; step += steps) {
            steps = depth - step < by->block ? depth - step : by->block;
            float largest = largest_of(&factor, line, more, step, steps, true);
            NumberScale scale = by->best ? better_scale(&factor, line, step, steps, largest)
                                         : number_scale_of_block(by->scale, largest, factor.element,
                                                                 by->up, factor.tensor);
            round_block(&factor, line, more, step, steps, scale);
        }
    }
    return true;
}

// Of numbers as wide as they come: a row is brought to fp32 and back.
REF_KERNEL(scale_history) {
    const View *x = &call->input[0], *y = &call->output[0];
    const HistoryAttr *history = &call->attr->history;
    const int64_t rows = x->shape[0], width = x->shape[1];
    float *row = device_workspace(device, (size_t)width * sizeof *row, error);
    for (int64_t i = 0; i < rows && row; i++) {
        for (int64_t k = 0; k < width; k++)
            row[k] = (float)ref_get(x, i * width + k);
        number_scale_history(row, 1, row, width - SCALE_HISTORY,
                             history->largest[i % history->roles], history->is_recent);
        for (int64_t k = 0; k < width; k++)
            ref_put(y, i * width + k, (double)row[k]);
    }
    return row != NULL;
}
