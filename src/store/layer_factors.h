// store/layer_factors.h: what became of the numbers that layers in scaled formats multiplied, at
// the scales that were in force: of a step now and then (run/run_factors.c), a row a layer and
// role.
//
// Files of before have no room for them; it is made when it is needed. Later segments supersede
// rows of earlier ones, as with points.
#pragma once

#include "store/store.h"

typedef struct LayerFactors {
    int64_t step;
    int layer;                  // of the record
    char role[12];              // "activation", "weight", "gradient"
    char precision[16];         // the layer's
    int64_t count;              // numbers, all there are
    int64_t flushed, subnormal; // that became 0, that are subnormal elements
    int64_t saturated, broken;  // beyond the largest element; not finite
    bool has_scales;            // of blocks or tensors, by exponent:
    int least, middle, most;
} LayerFactors;

// Within a transaction of the caller's.
bool store_add_factors(Store *store, int64_t run, int segment, const LayerFactors *factors,
                       Error *error) MUST_CHECK;
// Those of a window of steps, by step, layer and role. The array is freed with free().
bool store_read_factors(Store *store, int64_t run, int64_t from, int64_t to, LayerFactors **factors,
                        int *count, Error *error) MUST_CHECK;
// Those of the last step up to this one that has any.
bool store_read_factors_at(Store *store, int64_t run, int64_t step, LayerFactors **factors,
                           int *count, Error *error) MUST_CHECK;
