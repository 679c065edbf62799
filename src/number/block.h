// number/block.h: numbers as a scaled format has them, taken apart for people to look at: the scale
// of their block, the element of each, and what it is worth.
//
// It computes and prints nothing and allocates nothing; any thread. Products get theirs by the same
// steps (number/scaled.h).
#pragma once

#include "number/format.h"

enum { BLOCK_MOST_NUMBERS = 128 };

typedef struct BlockNumber {
    double asked;
    double scale;   // of its block, that of the tensor within
    double element; // times scale is
    double worth;
    double error; // worth - asked; 0 where either is not finite
    bool is_flushed, is_saturated;
} BlockNumber;

typedef struct BlockDescription {
    Format format;
    double tensor; // the scale of all, where blocks have theirs in it; else 1
    int count, flushed, saturated;
    double root_mean_square; // of the errors
    BlockNumber number[BLOCK_MOST_NUMBERS];
} BlockDescription;

// The numbers as neighbours along the depth of a product; `count` up to BLOCK_MOST_NUMBERS. `up`:
// the rule of scales in powers of two.
void block_describe(Format format, const double *numbers, int count, bool up,
                    BlockDescription *description);
