// Samples of layers, added up.
#include <math.h>
#include <string.h>

#include "store/series_private.h"

static int64_t add(int64_t a, int64_t b) {
    int64_t sum;
    return __builtin_add_overflow(a, b, &sum) ? INT64_MAX : sum;
}

// How many times the counts are smaller than they were, as a power of two: the number of elements
// that they stand for is known exactly.
static int scaled_by(const LayerSample *sample) {
    double counted = 0;
    for (int i = 0; i < LAYER_BINS; i++)
        counted += sample->bins[i];
    double there =
        (double)sample->count - (double)sample->zeros - (double)sample->nans - (double)sample->infs;
    if (!sample->bins_are_scaled || !(counted > 0) || !(there > counted))
        return 0;
    double power = round(log2(there / counted));
    return power < 31 ? (int)power : 31;
}

static void merge_bins(LayerSample *a, const LayerSample *b) {
    if (!a->bins_are_scaled && !b->bins_are_scaled) {
        uint64_t overflow = 0;
        for (int i = 0; i < LAYER_BINS; i++)
            overflow |= (uint64_t)a->bins[i] + b->bins[i];
        if (overflow <= UINT32_MAX) {
            for (int i = 0; i < LAYER_BINS; i++)
                a->bins[i] += b->bins[i];
            return;
        }
    }
    int a_power = scaled_by(a), b_power = scaled_by(b);
    int power = a_power > b_power ? a_power : b_power;
    uint64_t sums[LAYER_BINS], largest = 0;
    for (int i = 0; i < LAYER_BINS; i++) {
        sums[i] = ((uint64_t)a->bins[i] >> (power - a_power)) +
                  ((uint64_t)b->bins[i] >> (power - b_power));
        largest = sums[i] > largest ? sums[i] : largest;
    }
    int halvings = largest > UINT32_MAX ? 1 : 0;
    for (int i = 0; i < LAYER_BINS; i++)
        a->bins[i] = (uint32_t)(sums[i] >> halvings);
    a->bins_are_scaled = true;
}

// The mean of two readings of which either may be missing.
static double mean_of(double a, int64_t a_width, double b, int64_t b_width) {
    if (isnan(a))
        return b;
    if (isnan(b))
        return a;
    double part = (double)b_width / ((double)a_width + (double)b_width);
    return a * (1 - part) + b * part;
}

void layer_sample_merge(LayerSample *a, const LayerSample *b) {
    merge_bins(a, b); // while the numbers of elements are still each one's own
#define COUNT(name) a->name = add(a->name, b->name);
#define SUM(name)   a->name += b->name;
#define MOST(name)  a->name = fmax(a->name, b->name);
#include "number/statistics.def"
    a->update_ratio = mean_of(a->update_ratio, a->width, b->update_ratio, b->width);
    a->seconds = mean_of(a->seconds, a->width, b->seconds, b->width);
    memcpy(a->precision, b->precision, sizeof a->precision);
    int64_t end = add(b->step, b->width);
    if (end - a->step > a->width)
        a->width = end - a->step;
}

// ---- readings of other steps --------------------------------------------------------------------

// Both are measured together, so that one pair of steps says it of both.
void layer_sample_lend(LayerSample *to, const LayerSample *from) {
    const bool lends_ratio = isnan(to->update_ratio) && !isnan(from->update_ratio);
    const bool lends_time = isnan(to->seconds) && !isnan(from->seconds);
    if (!lends_ratio && !lends_time)
        return;
    to->update_ratio = lends_ratio ? from->update_ratio : to->update_ratio;
    to->seconds = lends_time ? from->seconds : to->seconds;
    const bool is_lent = from->measured_from > 0;
    to->measured_from = is_lent ? from->measured_from : from->step;
    to->measured_to = is_lent ? from->measured_to : from->step + from->width - 1;
}

bool layer_samples_measured(const LayerSample *samples, int count, int64_t *from, int64_t *to) {
    bool is_any = false;
    for (int i = 0; i < count; i++) {
        if (samples[i].measured_from == 0)
            continue;
        *from = !is_any || samples[i].measured_from < *from ? samples[i].measured_from : *from;
        *to = !is_any || samples[i].measured_to > *to ? samples[i].measured_to : *to;
        is_any = true;
    }
    return is_any;
}
