// What factors in scaled formats are worth by definition: the nearest of all that the patterns of
// an element stand for, times its scale; nothing here looks at number/scaled.h or a kernel.
#include <math.h>

#include "tests/conformance/truth.h"

// What the patterns of an element without its sign stand for, from 0 to the largest; decoded once.
typedef struct Magnitudes {
    double value[1 << 7];
    int count;
} Magnitudes;

static const Magnitudes *magnitudes_of(Format element) {
    static Magnitudes of[FORMAT_COUNT];
    Magnitudes *all = &of[element];
    while (all->count == 0 || all->value[all->count - 1] < format_table[element].largest) {
        all->value[all->count] = format_decode(element, (uint32_t)all->count);
        all->count++;
    }
    return all;
}

// The number that an element's patterns have nearest to a magnitude, by looking at all of them; of
// two as near that of the even pattern.
static double nearest_element(Format element, double magnitude) {
    const Magnitudes *all = magnitudes_of(element);
    int best = 0;
    for (int pattern = 1; pattern < all->count; pattern++) {
        double before = fabs(magnitude - all->value[best]);
        double now = fabs(magnitude - all->value[pattern]);
        if (now < before || (now == before && pattern % 2 == 0))
            best = pattern;
    }
    return all->value[best];
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

static double e4m3_scale(double wanted_largest, double largest_here, double of_tensor) {
    double wanted = (double)(float)((double)(float)(largest_here / wanted_largest) / of_tensor);
    return nearest_element(FORMAT_E4M3, wanted);
}

// By how much x misses an element, in whole parts of 256, squared.
static double missed_by(const ScaleAttr *by, double x, double to_elements) {
    double wanted = (double)(float)(fabs(x) * to_elements);
    double parts = trunc(256 * (wanted - nearest_element(by->element, wanted)));
    return isfinite(x) && wanted < 14 ? parts * parts : 0;
}

// Scales of e4m3 by which the largest becomes `largest`, and of them that by which 4 is made of it
// where `count` numbers, `stride` apart, miss by less then.
static Scales better_scales(const ScaleAttr *by, const CaseInput *x, int64_t first, int64_t count,
                            int64_t stride, double largest_here, double largest_of_all) {
    double of_tensor = largest_of_all > 0 ? (double)(float)(largest_of_all / (6 * 448)) : 1;
    double scale[2] = {e4m3_scale(6, largest_here, of_tensor),
                       e4m3_scale(4, largest_here, of_tensor)};
    double missed[2] = {0, 0};
    Scales scales[2];
    for (int s = 0; s < 2; s++) {
        scales[s].to_numbers = (double)(float)(scale[s] * of_tensor);
        scales[s].to_elements =
            scales[s].to_numbers > 0 ? (double)(float)(1 / scales[s].to_numbers) : 0;
        for (int64_t k = 0; k < count; k++)
            missed[s] +=
                missed_by(by, (double)truth_element(x, first + k * stride), scales[s].to_elements);
        missed[s] = (double)(float)((double)(float)missed[s] * (scale[s] * scale[s]));
    }
    return scales[scale[0] > 0 && missed[1] < missed[0]];
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
    Scales scales = {1, 1};
    int64_t known = -1; // the block that they are of, by its first element
    for (int64_t i = 0; i < count; i++) {
        int64_t step = i / size[2] % size[1],
                line = i / (size[1] * size[2]) * size[2] + i % size[2];
        double largest = by->block ? 0 : has_special ? (double)INFINITY : largest_of_all;
        // Lines share scales within what lies behind the depth, or before it where nothing does.
        int64_t side = size[2] > 1 ? size[2] : size[0], place = line % side;
        int64_t first_line = by->block ? line - place % by->lines : 0;
        int64_t end_line = first_line + by->lines, end_side = line - place + side;
        int64_t first_step = by->block ? step - step % by->block : 0;
        int64_t block = first_line * size[1] + first_step;
        for (int64_t l = first_line; block != known && by->block && l < end_line && l < end_side;
             l++)
            for (int64_t k = first_step; k < first_step + by->block && k < size[1]; k++) {
                int64_t at = (l / size[2] * size[1] + k) * size[2] + l % size[2];
                double x = fabs((double)truth_element(&test->input[0], at));
                largest = isfinite(x) && x > largest ? x : largest;
            }
        if (block != known && by->best)
            scales =
                better_scales(by, &test->input[0],
                              (line / size[2] * size[1] + first_step) * size[2] + line % size[2],
                              first_step + by->block < size[1] ? by->block : size[1] - first_step,
                              size[2], largest, largest_of_all);
        else if (block != known)
            scales = scales_for(by, largest, largest_of_all);
        known = block;
        value[i] = worth_of(by, (double)truth_element(&test->input[0], i), scales);
    }
    return true;
}
