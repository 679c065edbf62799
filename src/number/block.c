#include "number/block.h"

#include <assert.h>
#include <math.h>

#include "number/scaled.h"

static float largest_of(const double *numbers, int count, bool finite_only) {
    float largest = 0;
    for (int i = 0; i < count; i++)
        if (!finite_only || isfinite((float)numbers[i]))
            largest = number_larger_magnitude(largest, (float)numbers[i]);
    return largest;
}

// A scale that is rounded itself may leave a block's largest a unit or two of fp32 above the
// largest element: that is rounding, no lack of range.
static bool is_beyond(float wanted, float largest) {
    return fabsf(wanted) > largest * (1 + 0x1p-22F);
}

static BlockNumber describe(double asked, NumberElement element, NumberScale scale) {
    const float wanted = (float)asked * scale.to_elements;
    const float rounded = number_round_to_element(wanted, element, false, 0);
    BlockNumber number = {.asked = asked,
                          .scale = (double)scale.to_numbers,
                          .element = (double)rounded,
                          .worth = (double)(rounded * scale.to_numbers),
                          .is_flushed = asked != 0 && rounded == 0,
                          .is_saturated = isfinite(asked) && is_beyond(wanted, element.largest) &&
                                          fabsf(rounded) == element.largest};
    if (isfinite(asked) && isfinite(number.worth))
        number.error = number.worth - asked;
    return number;
}

void block_describe(Format format, const double *numbers, int count, bool up,
                    BlockDescription *description) {
    assert(format_is_scaled(format) && count > 0 && count <= BLOCK_MOST_NUMBERS);
    const FormatInfo *info = &format_table[format];
    const NumberElement element = number_element(info->element);
    const int block = info->block ? info->block : count;
    const float tensor = info->scale == FORMAT_E4M3
                             ? number_scale_of_tensor(largest_of(numbers, count, true), element)
                             : 1;
    double squares = 0;
    *description = (BlockDescription){.format = format, .tensor = (double)tensor, .count = count};
    for (int first = 0; first < count; first += block) {
        const int own = count - first < block ? count - first : block;
        const NumberScale scale = number_scale_of_block(
            info->scale, largest_of(numbers + first, own, info->block > 0), element, up, tensor);
        for (int i = first; i < first + own; i++) {
            BlockNumber *number = &description->number[i];
            *number = describe(numbers[i], element, scale);
            description->flushed += number->is_flushed;
            description->saturated += number->is_saturated;
            squares += number->error * number->error;
        }
    }
    description->root_mean_square = sqrt(squares / count);
}
