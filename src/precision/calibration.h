// precision/calibration.h: what numbers there were, so that those to come fit into the steps of
// int8.
//
// Magnitudes are counted in bins as wide as a power of two, which is doubled where a number does
// not fit: the counts do not depend on the order. One thread; the owner frees it.
#pragma once

#include <stdbool.h>
#include <stdint.h>

typedef struct Calibration Calibration;

Calibration *calibration_new(void); // NULL: no memory
void calibration_free(Calibration *calibration);
// False where one is not finite.
bool calibration_add(Calibration *calibration, const float *values, int64_t count);
// What a step is to be worth: by the largest of all, or by the percentile of them beyond which
// clipping loses less than wider steps would: that of the least mean square error.
float calibration_step(const Calibration *calibration, bool by_largest);
