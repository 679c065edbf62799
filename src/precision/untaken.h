// precision/untaken.h: layers that are set to a format in which they do not compute, and why not: a
// norm whose kind is kept in fp32, an operation that takes no scaled format.
//
// It is known once their operations were computed (policy_note_computed). Pure.
#pragma once

#include "precision/policy.h"

enum { UNTAKEN_WHY_SIZE = 80 };

typedef struct Untaken {
    int count;       // layers that do not take it
    int others;      // that do, or of which it is not known
    int layer;       // the first that does not; 0: none
    Format computed; // what that computes in
    char why[UNTAKEN_WHY_SIZE];
} Untaken;

// Of the layers that are in `precision` because such a pattern set them or what they lie in. Layers
// that hold others are not counted: it is those that it is set for.
Untaken untaken_find(const Policy *policy, const char *pattern, LayerPrecision precision);
