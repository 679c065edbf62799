// ops/factors.h: what became of the numbers of factors of products in scaled formats, at the scales
// that were in force: how many vanished, became subnormal or were cut off at the largest element,
// and how the scales of blocks spread.
//
// Counted on the host, by reading what a factor was made of and what its elements are worth, which
// waits for the device: for who asks in a step now and then. An engine that is not asked does
// nothing. The memory is who asks'.
#pragma once

#include "kernel/attr.h"
#include "ops/engine.h"
#include "precision/recipe.h"

enum { FACTOR_SCALES = 256, FACTOR_LOWEST_SCALE = -128 };

typedef struct FactorCounts {
    int64_t count;                 // numbers, all there are
    int64_t flushed;               // that are not 0, but what they became is
    int64_t subnormal;             // whose element is one
    int64_t saturated;             // finite and beyond the largest element, which they became
    int64_t broken;                // not finite
    int64_t scales[FACTOR_SCALES]; // of blocks (or tensors), by exponent: 2^-128 ..; of 0 none
} FactorCounts;

struct FactorTable {
    int layers; // later ones are not counted
    FactorCounts (*counts)[FACTOR_ROLES];
    double seconds; // that counting took
};

// A factor as it is gone through, and what became of it, dense and fp32; x may be turned in place.
// `times`: what is apart of the worth, or 1; `delayed`: what x was multiplied by where that was
// known before, or 0.
void factors_count(float *x, const float *worth, const View *shape, const ScaleAttr *by,
                   float times, float delayed, FactorCounts *counts);
void factors_merge(FactorCounts *to, const FactorCounts *from);

// The exponents of the least, the middle and the largest scale; false: no block had one.
bool factors_scales(const FactorCounts *counts, int *least, int *middle, int *most);
