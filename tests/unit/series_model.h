// What a series should hold, kept the simplest way: a value a step, and buckets by counting.
#pragma once

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "store/series.h"

typedef struct Model {
    int64_t steps;
    double *values;
    bool *has;
} Model;

static inline Model model_new(int64_t steps) {
    return (Model){steps, calloc((size_t)steps, sizeof(double)),
                   calloc((size_t)steps, sizeof(bool))};
}

static inline void model_free(Model *model) {
    free(model->values);
    free(model->has);
}

static inline void model_resume(Model *model, int64_t from) {
    for (int64_t i = from > 0 ? from + 1 : 0; i < model->steps; i++)
        model->has[i] = false;
}

static inline SeriesPoint model_bucket(const Model *model, int64_t step, int64_t width) {
    SeriesPoint bucket = {.step = step, .width = width};
    double sum = 0;
    bucket.first = bucket.last = bucket.min = bucket.max = bucket.mean = (double)NAN;
    for (int64_t i = step; i < step + width && i < model->steps; i++) {
        if (!model->has[i])
            continue;
        double value = model->values[i];
        bucket.nans += isnan(value) != 0;
        bucket.infs += isinf(value) && value > 0;
        bucket.minus_infs += isinf(value) && value < 0;
        if (!isfinite(value))
            continue;
        if (bucket.count++ == 0)
            bucket.first = bucket.min = bucket.max = value;
        bucket.last = value;
        bucket.min = fmin(bucket.min, value);
        bucket.max = fmax(bucket.max, value);
        sum += value;
    }
    if (bucket.count > 0)
        bucket.mean = sum / (double)bucket.count;
    return bucket;
}

static inline bool same(double a, double b) {
    return (isnan(a) && isnan(b)) || memcmp(&a, &b, sizeof a) == 0;
}

static inline bool same_bucket(const SeriesPoint *a, const SeriesPoint *b) {
    return a->count == b->count && a->nans == b->nans && a->infs == b->infs &&
           a->minus_infs == b->minus_infs && same(a->first, b->first) && same(a->last, b->last) &&
           same(a->min, b->min) && same(a->max, b->max) &&
           (isnan(a->mean) ? isnan(b->mean)
                           : fabs(a->mean - b->mean) <= 1e-12 * (1 + fabs(b->mean)));
}
