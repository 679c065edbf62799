// What factors in scaled formats are worth by definition: the nearest of all that the patterns of
// an element stand for, times its scale; nothing here looks at number/scaled.h or a kernel.
#include <math.h>

#include "tests/conformance/truth.h"

// The number that an element's patterns have nearest to a magnitude, by looking at all of them; of
// two as near that of the even pattern.
static double nearest_element(Format element, double magnitude) {
    const double largest = format_table[element].largest;
    uint32_t best = 0;
    for (uint32_t pattern = 1; format_decode(element, pattern) <= largest; pattern++) {
        double before = fabs(magnitude - format_decode(element, best));
        double now = fabs(magnitude - format_decode(element, pattern));
        if (now < before || (now == before && pattern % 2 == 0))
            best = pattern;
        if (format_decode(element, pattern) == largest)
            break;
    }
    return format_decode(element, best);
}

static double power_for(const ScaleAttr *by, double largest_here) {
    const double largest = format_table[by->element].largest;
    int exponent = -126; // no lower one: it would be subnormal
    if (by->up)
        while (largest_here / exp2(exponent) > largest)
            exponent++;
    else
        while (largest_here > 0 && exponent < ilogb(largest_here) - ilogb(largest))
            exponent++;
    return exp2(exponent);
}

typedef struct Scales {
    double to_elements, to_numbers;
} Scales;

static Scales scales_for(const ScaleAttr *by, double largest_here, double largest_of_all) {
    const double largest = format_table[by->element].largest;
    if (by->scale == FORMAT_E8M0) {
        double power = power_for(by, largest_here);
        return (Scales){1 / power, power};
    }
    if (by->scale == FORMAT_E4M3) { // each step is fp32's
        double of_tensor =
            largest_of_all > 0 ? (double)(float)(largest_of_all / (largest * 448)) : 1;
        double wanted = (double)(float)((double)(float)(largest_here / largest) / of_tensor);
        double of_block = nearest_element(FORMAT_E4M3, wanted);
        double to_numbers = (double)(float)(of_block * of_tensor);
        return (Scales){to_numbers > 0 ? (double)(float)(1 / to_numbers) : 0, to_numbers};
    }
    if (!(largest_here > 0) || isinf(largest_here))
        return (Scales){1, 1};
    double to_elements = fmin((double)(float)(largest / largest_here), 0x1.fffffep127);
    return (Scales){to_elements, (double)(float)(1 / to_elements)};
}

static double worth_of(const ScaleAttr *by, double x, Scales scales) {
    if (isnan(x) || isinf(x))
        return scales.to_numbers > 0 ? x : (double)NAN;
    double wanted = (double)(float)(fabs(x) * scales.to_elements);
    double worth = (double)(float)(nearest_element(by->element, wanted) * scales.to_numbers);
    return copysign(worth, x);
}

// Of what is neither turned nor left to chance, and not so small that some device flushes it.
bool truth_scale_factor(const Case *test, double *value) {
    const ScaleAttr *by = &test->attr.factor.by;
    const View *shape = &test->input[0].view;
    int64_t size[3] = {1, 1, 1}; // before the depth, of it, behind it
    for (int i = 0; i < shape->ndim; i++)
        size[(i >= by->first) + (i >= by->first + by->dims)] *= shape->shape[i];
    const int64_t count = size[0] * size[1] * size[2];
    if (by->hadamard || by->at_random || count == 0)
        return false;
    double largest_of_all = 0;
    bool has_special = false;
    for (int64_t i = 0; i < count; i++) {
        double x = fabs((double)truth_element(&test->input[0], i));
        if (x > 0 && x < 0x1p-100)
            return false;
        has_special |= !isfinite(x);
        largest_of_all = isfinite(x) && x > largest_of_all ? x : largest_of_all;
    }
    for (int64_t i = 0; i < count; i++) {
        int64_t step = i / size[2] % size[1],
                line = i / (size[1] * size[2]) * size[2] + i % size[2];
        double largest = by->block ? 0 : has_special ? (double)INFINITY : largest_of_all;
        // Lines share scales within what lies behind the depth, or before it where nothing does.
        int64_t side = size[2] > 1 ? size[2] : size[0], place = line % side;
        int64_t first_line = line - place % by->lines;
        int64_t end_line = first_line + by->lines, end_side = line - place + side;
        int64_t first_step = by->block ? step - step % by->block : 0;
        for (int64_t l = first_line; by->block && l < end_line && l < end_side; l++)
            for (int64_t k = first_step; k < first_step + by->block && k < size[1]; k++) {
                int64_t at = (l / size[2] * size[1] + k) * size[2] + l % size[2];
                double x = fabs((double)truth_element(&test->input[0], at));
                largest = isfinite(x) && x > largest ? x : largest;
            }
        value[i] = worth_of(by, (double)truth_element(&test->input[0], i),
                            scales_for(by, largest, largest_of_all));
    }
    return true;
}
