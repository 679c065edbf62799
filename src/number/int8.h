// number/int8.h: whole numbers of 8 bits as factors of products: symmetric, -127 .. 127, so many
// steps of a scale that goes with them; a scale a row of weights, one a tensor of activations.
//
// All of it is one rounding after the other in fp32, so that every device gives the same bits: sums
// are whole numbers, which no order changes. Pure; any thread; host and card.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "number/inline.h"

enum {
    INT8_LARGEST = 127,
    // Terms of one sum: more might not fit into 32 bits.
    INT8_MOST_DEPTH = 131072,
};

// What a step is worth where `largest` is the largest magnitude: for numbers that are all 0 any
// would do, and of the smallest the inverse must be finite.
KERNEL_INLINE float int8_step(float largest) {
    const float least = 0x1p-100f;
    float step = largest / (float)INT8_LARGEST;
    return largest > 0.0f ? step > least ? step : least : 1.0f;
}

// How many steps x is, by the step's inverse. NaN is 0.
KERNEL_INLINE int8_t int8_of(float x, float inverse) {
    float steps = x * inverse;
    return number_fp32_to_int8(steps);
}

// What a sum of products is worth. `worth` is the product of both steps.
KERNEL_INLINE float int8_worth(int32_t sum, float worth) {
    return (float)sum * worth;
}

// Rows of weights with a step each, of which `weights[rows][depth]` are taken. False: not all of
// them are finite.
bool int8_from_rows(const float *weights, int64_t rows, int64_t depth, int8_t *numbers,
                    float *steps);
