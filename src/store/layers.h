// store/layers.h: what is counted of every layer: statistics and the histogram of the exponents of
// its true gradients, by step and coarser, as for series.
#pragma once

#include "store/series.h"

enum { LAYER_BINS = 128, LAYER_LOWEST_EXPONENT = -64 }; // 2^-64 .. 2^63

typedef struct LayerSample { // one layer over `width` steps from `step` on
    int64_t step, width;
#define COUNT(name) int64_t name;
#define SUM(name)   double name;
#include "number/statistics.def"
    double update_ratio; // |change of weights| / |weights|; NaN: not measured
    double seconds;      // a step, spent in the layer; NaN: not measured
    // Of what steps those two are where others were asked for that have none (layer_sample_lend);
    // 0: they are of its own, or not known.
    int64_t measured_from, measured_to;
    char precision[8];         // its gradients were rounded to: "fp16"
    uint32_t bins[LAYER_BINS]; // scaled down alike when a count would not fit
    bool bins_are_scaled;
} LayerSample;

// In memory, steps in order; `layer` (0 .. 4095) indexes the record's layers. The first 256 steps
// are rows, later ones while about 10 come in a second; else there are the sums over 8, 64, ...
// steps. series_flush writes them too. A resume inside a sum whose parts were not rows begins it
// anew.
bool layers_add(SeriesWriter *writer, int layer, const LayerSample *sample,
                Error *error) MUST_CHECK;
// The samples of a layer over a window, as store_read_series.
bool store_read_layer(Store *store, int64_t run, int layer, int64_t from, int64_t to, int most,
                      LayerSample **samples, int *count, Error *error) MUST_CHECK;
// As store_next_step.
bool store_next_layer_step(Store *store, int64_t run, int layer, int64_t from, int64_t *step,
                           Error *error) MUST_CHECK;
// All layers of a run at one step: the sample that covers it, one a layer, in their order; width 0
// where there is none. `samples` has room for `count`.
bool store_read_layers_at(Store *store, int64_t run, int64_t step, LayerSample *samples, int count,
                          Error *error) MUST_CHECK;
// What was measured of other steps only, where a sample lacks it: lends its update_ratio and
// seconds.
void layer_sample_lend(LayerSample *to, const LayerSample *from);
// Of all samples, the steps that such readings are of. False: all are of their own.
bool layer_samples_measured(const LayerSample *samples, int count, int64_t *from, int64_t *to);
// Adds b, which follows a, to a. Counts and bins add up (bins are halved alike where they would not
// fit), update_ratio and seconds are means over the steps that have one, the precision is b's.
void layer_sample_merge(LayerSample *a, const LayerSample *b);
