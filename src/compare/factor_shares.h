// compare/factor_shares.h: what became of the numbers that a layer in a scaled format multiplied,
// in shares and words, from the counts of the history (store/layer_factors.h). Pure.
#pragma once

#include "store/layer_factors.h"

typedef struct FactorShares { // of one role of a layer
    bool is_known;
    const LayerFactors *of; // borrowed
    double flushed, subnormal, saturated, broken;
    // What is not what it was: flushed, not finite, or cut off. Where scales are rounded to the
    // nearest, as nvfp4's are, the largest of a block is cut off by as little, and that is no loss.
    double lost;
} FactorShares;

FactorShares factor_shares(const LayerFactors *factors);
// Of the role of this layer that loses most; of a step's list.
FactorShares factor_shares_worst(const LayerFactors *list, int count, int layer);
// A sentence on a role: "gradients: 1.2 % flushed, 0 saturated, scales 2^-29 to 2^-16, most about
// 2^-17".
enum { FACTOR_WORDS_SIZE = 160 };
void factor_words(const LayerFactors *factors, char text[FACTOR_WORDS_SIZE]);
// The last step that they tell of: after that others would have been counted, were the layer still
// in that format.
int64_t factors_hold_until(const LayerFactors *factors);
