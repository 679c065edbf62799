// number/scaled.h: numbers that share a scale: how the scale of a block or a tensor is chosen, and
// how a number is rounded to the elements that stand for it.
//
// Everything is one number at a time, in fp32, the same steps on host and card, so that devices
// agree to the bit; loops over it become vectors. Subnormal scales are not used: in a thread that
// flushes denormals they would be 0, and the inverse of some is infinite. Any thread.
// number/block.h has a whole block for people to look at.
#pragma once

#include <stdbool.h>

#include "number/format.h"
#include "number/inline.h"

// What the elements are made of; number_element makes it of the table of formats, on the host.
typedef struct NumberElement {
    int mantissa_bits;
    int lowest_exponent;  // of a normal number
    int largest_exponent; // of any
    float largest;
} NumberElement;

static inline NumberElement number_element(Format format) {
    const FormatInfo *info = &format_table[format];
    NumberElement element = {.mantissa_bits = info->mantissa_bits,
                             .lowest_exponent = 1 - info->bias,
                             .largest_exponent = ilogb(info->largest),
                             .largest = (float)info->largest};
    return element;
}

// The element nearest to `value`, the even one of two; beyond the largest that; NaN and infinity
// stay, which whoever keeps them in an element's bits could not. `at_random`: one of the two
// neighbours instead, which is up where `chance`, of [0, 1), is not below what is missing to the
// upper one: the value itself, on average.
KERNEL_INLINE __attribute__((always_inline)) float
number_round_to_element(float value, NumberElement to, bool at_random, float chance) {
    const uint32_t bits = number_bits_of_fp32(value), magnitude = bits & NUMBER_MAGNITUDE_;
    const int32_t lowest = (127 + to.lowest_exponent) << 23, own = (int32_t)magnitude & 0x7F800000;
    const uint32_t binade = (uint32_t)(own > lowest ? own : lowest);
    const float size = number_fp32_of_bits(magnitude);
    float rounded;
    if (at_random) { // one step of the elements in this binade, and its inverse: powers of two
        const uint32_t step = binade - ((uint32_t)to.mantissa_bits << 23);
        float steps = size * number_fp32_of_bits(0x7F000000 - step);
        steps = steps < 0x1p22f ? steps : 0x1p22f; // of infinity and NaN
        rounded = (float)(int32_t)(steps + chance) * number_fp32_of_bits(step);
    } else { // the sum has no room for parts of a step: the adder rounds to whole ones. Where
             // `large` runs over, `size` is beyond the largest element, and is capped
        const float large = number_fp32_of_bits(binade + ((uint32_t)(23 - to.mantissa_bits) << 23));
        rounded = (size + large) - large;
    }
    const float kept = rounded < to.largest ? rounded : to.largest;
    const uint32_t result =
        number_select_(magnitude, NUMBER_INFINITY_, number_bits_of_fp32(kept), magnitude);
    return number_fp32_of_bits(result | (bits & 0x80000000));
}

// The larger of two magnitudes, of which NaN is the largest and then infinity.
KERNEL_INLINE float number_larger_magnitude(float a, float b) {
    const uint32_t x = number_bits_of_fp32(a) & NUMBER_MAGNITUDE_;
    const uint32_t y = number_bits_of_fp32(b) & NUMBER_MAGNITUDE_;
    return number_fp32_of_bits(number_select_(x, y, y, x));
}

// Of two factors of a product: each number is what an element is worth, and so many along the depth
// share a scale, from the first on. In bf16, which holds that exactly.
typedef struct NumberBlocks {
    int block; // 0: nothing is known
    Format element[2], scale;
} NumberBlocks;

// What numbers are multiplied by to become elements, and elements to become numbers.
typedef struct NumberScale {
    float to_elements, to_numbers;
} NumberScale;

enum { NUMBER_MOST_TOGETHER = 128 }; // numbers of a line that share a scale
enum { NUMBER_SCALE_LOWEST = -126, NUMBER_SCALE_HIGHEST = 127 };

// A power of two (e8m0) for a block whose largest magnitude is `largest`, finite: one that brings
// it into the elements' last binade, where it may be beyond the largest of them (`up` false, the
// standard's rule); or the smallest for which it is not (`up`).
KERNEL_INLINE NumberScale number_scale_of_power(float largest, NumberElement element, bool up) {
    const uint32_t bits = number_bits_of_fp32(largest) & NUMBER_MAGNITUDE_;
    const uint32_t beyond = number_bits_of_fp32(element.largest) & 0x7FFFFF;
    int exponent = (int)(bits >> 23) - 127 - element.largest_exponent;
    exponent += up && (bits & 0x7FFFFF) > beyond ? 1 : 0;
    exponent = exponent < NUMBER_SCALE_LOWEST ? NUMBER_SCALE_LOWEST : exponent;
    NumberScale scale = {number_fp32_of_bits((uint32_t)(127 - exponent) << 23),
                         number_fp32_of_bits((uint32_t)(127 + exponent) << 23)};
    return scale;
}

// The least that a scale may be, but for 0, and the most that numbers are multiplied by.
#define NUMBER_LEAST_SCALE 0x1p-126f
#define NUMBER_MOST_TIMES  0x1p126f

// What was given, as far as its inverse is a scale, and that.
KERNEL_INLINE NumberScale number_scale_of_factor(float to_elements) {
    const float times = to_elements < NUMBER_MOST_TIMES ? to_elements : NUMBER_MOST_TIMES;
    NumberScale scale = {times, 1 / times};
    return scale;
}

// An fp32 scale, for a tensor or a block: 1 where there is nothing to go by.
KERNEL_INLINE NumberScale number_scale_of_largest(float largest, NumberElement element) {
    NumberScale scale = {1, 1};
    if (largest > 0 && largest <= 0x1.fffffep127f)
        scale = number_scale_of_factor(element.largest / largest);
    return scale;
}

// Two scales: one of the tensor in fp32, by which the blocks' own fit into e4m3; and that of a
// block, which goes to 0, and its numbers with it, where it is too small for that.
KERNEL_INLINE float number_scale_of_tensor(float largest, NumberElement element) {
    const float scale = largest / (element.largest * 448);
    if (!(largest > 0 && largest <= 0x1.fffffep127f))
        return 1;
    return scale > NUMBER_LEAST_SCALE ? scale : NUMBER_LEAST_SCALE;
}
KERNEL_INLINE float number_scale_below_tensor(float largest, NumberElement element, float tensor) {
    const float wanted = largest / element.largest / tensor;
    return number_e4m3_to_fp32(number_fp32_to_e4m3_saturating(wanted));
}
KERNEL_INLINE NumberScale number_scale_in_tensor(float largest, NumberElement element,
                                                 float tensor) {
    const float to_numbers = number_scale_below_tensor(largest, element, tensor) * tensor;
    NumberScale scale = {0, 0};
    if (to_numbers >= NUMBER_LEAST_SCALE) {
        scale.to_numbers = to_numbers;
        scale.to_elements = 1 / to_numbers;
    }
    return scale;
}

// That of a block, whatever its scales are kept in. `tensor`: of number_scale_of_tensor.
KERNEL_INLINE NumberScale number_scale_of_block(Format kept_in, float largest,
                                                NumberElement element, bool up, float tensor) {
    if (kept_in == FORMAT_E8M0)
        return number_scale_of_power(largest, element, up);
    if (kept_in == FORMAT_E4M3)
        return number_scale_in_tensor(largest, element, tensor);
    return number_scale_of_largest(largest, element);
}

// The same elements, but with the scale of the tensor left out of what they are worth: that of the
// block alone, by which an element fits into bf16.
KERNEL_INLINE NumberScale number_scale_apart(float largest, NumberElement element, float tensor) {
    NumberScale scale = number_scale_in_tensor(largest, element, tensor);
    scale.to_numbers = number_scale_below_tensor(largest, element, tensor);
    return scale;
}

// ---- the better of two scales -------------------------------------------------------------------

// In e2m1 nothing lies between 4 and 6, so that of a block whose largest becomes 6 those just below
// it miss by up to a sixth; where it becomes 4 they miss by less, and the smallest by more. Misses
// are whole numbers, so that their sum is the same in whatever order; and they are compared as what
// scales of blocks make of them. A block with a scale that is 0 keeps the first.

// To what the largest number is scaled for the second.
KERNEL_INLINE NumberElement number_element_of_four(NumberElement element) {
    element.largest = 4;
    return element;
}

// By how much a number that is to become an element misses it, in 1/256, squared; 0 of NaN and
// infinity.
KERNEL_INLINE __attribute__((always_inline)) int32_t number_miss(float wanted,
                                                                 NumberElement element) {
    const float missed = wanted - number_round_to_element(wanted, element, false, 0);
    const float kept = missed < 8 && missed > -8 ? missed : 0;
    const int32_t parts = (int32_t)(kept * 256);
    return parts * parts;
}

// `six` and `four`: the scales of the block below that of the tensor; then what was missed by.
KERNEL_INLINE bool number_four_is_better(float six, float four, int32_t missed_six,
                                         int32_t missed_four) {
    return six > 0 && (float)missed_four * (four * four) < (float)missed_six * (six * six);
}

// The scale of a block that lies together, whichever misses less.
KERNEL_INLINE NumberScale number_better_scale(const float *x, int64_t count, float largest,
                                              NumberElement element, float tensor) {
    const NumberElement to_four = number_element_of_four(element);
    const NumberScale six = number_scale_in_tensor(largest, element, tensor);
    const NumberScale four = number_scale_in_tensor(largest, to_four, tensor);
    int32_t missed_six = 0, missed_four = 0;
    for (int64_t i = 0; i < count; i++) {
        missed_six += number_miss(x[i] * six.to_elements, element);
        missed_four += number_miss(x[i] * four.to_elements, element);
    }
    return number_four_is_better(number_scale_below_tensor(largest, element, tensor),
                                 number_scale_below_tensor(largest, to_four, tensor), missed_six,
                                 missed_four)
               ? four
               : six;
}

// ---- by the steps before ------------------------------------------------------------------------

// What a row as kernel/attr.h has it says of the step that ended. `stride`: how far apart the
// numbers of `row` lie.
typedef struct NumberStep {
    float before, met; // the scale; the largest number
    bool is_kept;      // among those of the steps before,
    int64_t place;     // the oldest of which is here
} NumberStep;

KERNEL_INLINE NumberStep number_step(const float *row, int64_t stride, int64_t steps) {
    const float met = row[stride], at = row[2 * stride];
    return (NumberStep){row[0], met, met > 0 && met <= 0x1.fffffep127f,
                        at >= 0 && at < (float)steps ? (int64_t)at : 0};
}

// Number i of the steps looked back upon, from now on.
KERNEL_INLINE float number_met_then(const NumberStep *step, const float *row, int64_t stride,
                                    int64_t i) {
    return step->is_kept && i == step->place ? step->met : row[(3 + i) * stride];
}

// Of two of them, in any order: NaN is none, and loses.
KERNEL_INLINE float number_larger_met(float largest, float met) {
    return met > largest ? met : largest;
}

// What the row has before them: the scale brings the largest, where one was kept, to `wanted`.
KERNEL_INLINE void number_step_end(const NumberStep *step, float largest, float wanted,
                                   int64_t steps, float *next) {
    const float times = wanted / largest;
    next[0] = !step->is_kept ? step->before : times <= 0x1.fffffep127f ? times : 0x1.fffffep127f;
    next[1] = 0;
    next[2] = (float)(step->is_kept ? (step->place + 1) % steps : step->place);
}

// The whole row, from `row` to `next`, which may be one.
KERNEL_INLINE void number_scale_history(const float *row, int64_t stride, float *next,
                                        int64_t steps, float wanted, bool is_recent) {
    const NumberStep step = number_step(row, stride, steps);
    float largest = step.met;
    for (int64_t i = 0; i < steps; i++) {
        next[3 + i] = number_met_then(&step, row, stride, i);
        largest = is_recent ? largest : number_larger_met(largest, next[3 + i]);
    }
    number_step_end(&step, largest, wanted, steps, next);
}

// ---- turned before scaling ----------------------------------------------------------------------

// Sixteen numbers in a row, turned by a matrix of Hadamard's with signs of no pattern: a large one
// is spread over all. Two rows that are both turned have the product that they had.
enum { NUMBER_HADAMARD = 16, NUMBER_HADAMARD_SIGNS = 0x6A95 };

KERNEL_INLINE void number_hadamard(float *x, int64_t stride) {
    for (int i = 0; i < NUMBER_HADAMARD; i++)
        x[i * stride] = NUMBER_HADAMARD_SIGNS >> i & 1 ? -x[i * stride] : x[i * stride];
    for (int apart = 1; apart < NUMBER_HADAMARD; apart *= 2)
        for (int i = 0; i < NUMBER_HADAMARD; i++) {
            if (i & apart)
                continue;
            const float low = x[i * stride], high = x[(i + apart) * stride];
            x[i * stride] = low + high;
            x[(i + apart) * stride] = low - high;
        }
    for (int i = 0; i < NUMBER_HADAMARD; i++)
        x[i * stride] *= 0.25f;
}
