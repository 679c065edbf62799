// data/transform.h: images changed on their way into a batch: cut out anew, turned round, brought
// to a mean and a deviation, made noisy.
//
// What becomes of a sample is a function of (seed, epoch, the sample's number), whichever batch it
// lies in and whichever thread prepares that: a run that is resumed, or loads with other threads,
// sees the same. Any thread.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "data/dataset.h"

enum { TRANSFORM_CHANNELS = 16 };

typedef struct Transform {
    double flip;   // probability of being turned round from left to right
    int64_t crop;  // so many zeros are thought around, and a part of the old size is cut out of it
    double noise;  // deviation of what is added to every element
    bool has_mean; // each channel less its mean, over its deviation
    int channels;
    float mean[TRANSFORM_CHANNELS], deviation[TRANSFORM_CHANNELS];
} Transform;

// Whether it does anything to samples of this field, and can; `error` is filled where it cannot.
bool transform_fits(const Transform *transform, const Field *field, Error *error) MUST_CHECK;
static inline bool transform_moves(const Transform *transform) {
    return transform->flip > 0 || transform->crop > 0;
}
static inline bool transform_changes(const Transform *transform) {
    return transform_moves(transform) || transform->noise > 0 || transform->has_mean;
}

// One sample in fp32, in place; `scratch` holds as many numbers where transform_moves.
void transform_sample(const Transform *transform, const Field *field, uint64_t seed, uint64_t epoch,
                      int64_t sample, float *x, float *scratch);
