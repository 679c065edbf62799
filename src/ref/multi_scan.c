// The one pass over the gradients, clipping, and what follows from it: the scale, and taking
// running statistics back.
#include <math.h>
#include <string.h>

#include "ref/access.h"
#include "ref/kernels.h"

static int exponent_bin(double magnitude) {
    int exponent = ilogb(magnitude) - EXPONENT_LOWEST;
    return exponent < 0 ? 0 : exponent >= EXPONENT_BINS ? EXPONENT_BINS - 1 : exponent;
}

// Counts one gradient: as it came, scaled; what the rounding made of it; and its true value.
static void count_one(GradStats *stats, Format format, double scaled, double rounded,
                      double value) {
    stats->count++;
    stats->zeros += scaled == 0;
    stats->nans += isnan(scaled) != 0;
    stats->infs += isinf(scaled) != 0;
    if (!isfinite(scaled))
        return;
    stats->flushed += scaled != 0 && rounded == 0;
    stats->subnormal += rounded != 0 && fabs(rounded) < format_table[format].smallest_normal;
    stats->overflowed += isfinite(rounded) == 0;
    double magnitude = fabs(value);
    if (magnitude > 0)
        stats->exponents[exponent_bin(magnitude)]++;
    stats->sum += magnitude;
    stats->sum_squares += magnitude * magnitude;
    if (magnitude > (double)stats->largest)
        stats->largest = (float)magnitude;
}

static void scan_one(const ScanItem *item, float inverse, StepFlags *flags) {
    const View *gradient = &item->gradient;
    GradStats stats = {0};
    if (item->stats && item->adds)
        stats = *item->stats;
    for (int64_t i = 0; i < view_count(gradient); i++) {
        double scaled = ref_get(gradient, i);
        double rounded = format_round(item->round_to, scaled, OVERFLOW_TO_SPECIAL);
        // Of two fp32 numbers the product in double is exact, so this is the fp32 product.
        ref_put(gradient, i, rounded * (double)inverse);
        count_one(&stats, item->round_to, scaled, rounded, scaled * (double)inverse);
        if (!isfinite(rounded))
            flags->found_inf = 1;
        double magnitude = fabs(ref_get(gradient, i));
        if (!isfinite(magnitude))
            continue;
        flags->norm_squared += magnitude * magnitude;
        flags->sum += magnitude;
        flags->count++;
        if (magnitude > (double)flags->largest)
            flags->largest = (float)magnitude;
    }
    if (item->stats)
        *item->stats = stats;
}

bool ref_scan(Device *device, ScanPlan *plan, const ScaleState *scale, StepFlags *flags,
              Error *error) {
    (void)device;
    (void)error;
    float inverse = scale ? (float)(1.0 / (double)scale->scale) : 1;
    *flags = (StepFlags){.clip = 1};
    for (int k = 0; k < plan->count; k++)
        scan_one(&plan->items[k], inverse, flags);
    return true;
}

bool ref_clip_norm(Device *device, double limit, StepFlags *flags, Error *error) {
    (void)device;
    (void)error;
    double norm = flags->found_inf ? (double)INFINITY : sqrt(flags->norm_squared);
    flags->norm = (float)norm;
    flags->clip = norm > limit && isfinite(norm) ? (float)(limit / norm) : 1;
    return true;
}

bool ref_clip_value(Device *device, ScanPlan *plan, float limit, Error *error) {
    (void)device;
    (void)error;
    double high = (double)limit;
    for (int k = 0; k < plan->count; k++) {
        const View *gradient = &plan->items[k].gradient;
        for (int64_t i = 0; i < view_count(gradient); i++) {
            double value = ref_get(gradient, i);
            ref_put(gradient, i, value > high ? high : value < -high ? -high : value);
        }
    }
    return true;
}

bool ref_multiply(Device *device, ScanPlan *plan, const float *factor, Error *error) {
    (void)device;
    (void)error;
    for (int k = 0; k < plan->count; k++) {
        const View *gradient = &plan->items[k].gradient;
        for (int64_t i = 0; i < view_count(gradient); i++)
            ref_put(gradient, i, ref_get(gradient, i) * (double)*factor);
    }
    return true;
}

bool ref_scale_update(Device *device, const ScaleRule *rule, ScaleState *state,
                      const StepFlags *const *flags, int count, Error *error) {
    (void)device;
    (void)error;
    step_flags_move_scale(flags, count, rule, state);
    return true;
}

double ref_largest(Device *device, const View *view) {
    (void)device;
    double largest = 0;
    for (int64_t i = 0; i < view_count(view); i++) {
        const double value = fabs(ref_get(view, i));
        if (isnan(value))
            return value;
        largest = fmax(largest, value);
    }
    return largest;
}

bool ref_restore(Device *device, PairPlan *plan, const StepFlags *flags, Error *error) {
    (void)device;
    (void)error;
    if (!flags->found_inf)
        return true;
    for (int k = 0; k < plan->count; k++) {
        const View *target = &plan->items[k].target, *source = &plan->items[k].source;
        for (int64_t i = 0; i < view_count(target); i++)
            ref_put(target, i, ref_get(source, i));
    }
    return true;
}
