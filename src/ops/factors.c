#include "ops/factors.h"

#include <math.h>

#include "kernel/scale.h"
#include "number/scaled.h"

typedef struct Factor {
    const float *x, *worth;
    const ScaleAttr *by;
    ScaleLines lines;
    NumberElement element;
    float normal; // the least element that is
    float tensor; // the scale of all, where blocks have theirs in it
    float times;
} Factor;

typedef struct Block {
    int64_t line, lines, step, steps;
} Block;

// Sixteen by sixteen along each line; what is left of it stays.
static void turn(float *x, const ScaleLines *lines) {
    for (int64_t line = 0; line < lines->outer * lines->inner; line++)
        for (int64_t step = 0; step + NUMBER_HADAMARD <= lines->depth; step += NUMBER_HADAMARD)
            number_hadamard(x + scale_index(lines, line, step), lines->inner);
}

static float largest_of(const Factor *factor, const Block *block, bool finite) {
    float largest = 0;
    for (int64_t line = block->line; line < block->line + block->lines; line++) {
        const float *x = factor->x + scale_index(&factor->lines, line, block->step);
        for (int64_t step = 0; step < block->steps; step++, x += factor->lines.inner)
            if (!finite || isfinite(*x))
                largest = number_larger_magnitude(largest, *x);
    }
    return largest;
}

static NumberScale scale_of(const Factor *factor, const Block *block) {
    const ScaleAttr *by = factor->by;
    const float largest = largest_of(factor, block, true);
    float x[NUMBER_MOST_TOGETHER];
    if (!by->best)
        return number_scale_of_block(by->scale, largest, factor->element, by->up, factor->tensor);
    for (int64_t i = 0; i < block->steps; i++)
        x[i] = factor->x[scale_index(&factor->lines, block->line, block->step + i)];
    return number_better_scale(x, block->steps, largest, factor->element, factor->tensor);
}

static void count_block(const Factor *factor, const Block *block, NumberScale scale,
                        FactorCounts *counts) {
    const float normal = factor->normal * scale.to_numbers;
    counts->count += block->lines * block->steps;
    for (int64_t line = block->line; line < block->line + block->lines; line++) {
        int64_t i = scale_index(&factor->lines, line, block->step);
        for (int64_t step = 0; step < block->steps; step++, i += factor->lines.inner) {
            const float x = factor->x[i], worth = fabsf(factor->worth[i] * factor->times);
            const bool is_finite = isfinite(x);
            counts->broken += !is_finite;
            counts->flushed += is_finite && x != 0 && worth == 0;
            counts->subnormal += worth > 0 && worth < normal;
            counts->saturated +=
                is_finite && fabsf(x) * scale.to_elements > factor->element.largest;
        }
    }
    if (!(scale.to_numbers > 0) || !isfinite(scale.to_numbers))
        return;
    const int bin = ilogbf(scale.to_numbers) - FACTOR_LOWEST_SCALE;
    counts->scales[bin < 0 ? 0 : bin < FACTOR_SCALES ? bin : FACTOR_SCALES - 1]++;
}

void factors_count(float *x, const float *worth, const View *shape, const ScaleAttr *by,
                   float times, float delayed, FactorCounts *counts) {
    Factor factor = {.x = x,
                     .worth = worth,
                     .by = by,
                     .lines = scale_lines(shape, by),
                     .element = number_element(by->element),
                     .normal = (float)format_table[by->element].smallest_normal,
                     .tensor = 1,
                     .times = times};
    const ScaleLines *lines = &factor.lines;
    const Block all = {0, lines->outer * lines->inner, 0, lines->depth};
    if (by->hadamard)
        turn(x, lines);
    if (by->block == 0) {
        count_block(&factor, &all,
                    delayed > 0
                        ? number_scale_of_factor(delayed)
                        : number_scale_of_largest(largest_of(&factor, &all, false), factor.element),
                    counts);
        return;
    }
    if (by->scale == FORMAT_E4M3)
        factor.tensor = number_scale_of_tensor(largest_of(&factor, &all, true), factor.element);
    for (int64_t group = 0; group < scale_groups(lines) && all.lines > 0; group++) {
        Block block;
        block.lines = scale_group(lines, group, &block.line);
        for (block.step = 0; block.step < lines->depth; block.step += block.steps) {
            const int64_t left = lines->depth - block.step;
            block.steps = left < by->block ? left : by->block;
            count_block(&factor, &block, scale_of(&factor, &block), counts);
        }
    }
}

void factors_merge(FactorCounts *to, const FactorCounts *from) {
    to->count += from->count;
    to->flushed += from->flushed;
    to->subnormal += from->subnormal;
    to->saturated += from->saturated;
    to->broken += from->broken;
    for (int i = 0; i < FACTOR_SCALES; i++)
        to->scales[i] += from->scales[i];
}

bool factors_scales(const FactorCounts *counts, int *least, int *middle, int *most) {
    int64_t all = 0, below = 0;
    for (int i = 0; i < FACTOR_SCALES; i++)
        all += counts->scales[i];
    if (all == 0)
        return false;
    for (int i = FACTOR_SCALES - 1; i >= 0; i--)
        if (counts->scales[i] > 0)
            *least = i + FACTOR_LOWEST_SCALE;
    for (int i = 0; i < FACTOR_SCALES; i++) {
        if (counts->scales[i] > 0)
            *most = i + FACTOR_LOWEST_SCALE;
        if (2 * below < all)
            *middle = i + FACTOR_LOWEST_SCALE;
        below += counts->scales[i];
    }
    return true;
}
