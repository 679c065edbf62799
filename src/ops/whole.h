// ops/whole.h: linear layers and convolutions in int8: a weight in whole numbers a row, what it
// multiplies in steps that calibration has found (number/int8.h has the numbers).
//
// It is for evaluation: nothing is recorded. What is no parameter (a weight that was computed) is
// multiplied as it is.
#pragma once

#include "ops/engine.h"

static inline bool whole_is_asked(const OpAttr *attr) {
    return attr->has_compute && attr->compute == FORMAT_INT8;
}

// Puts the weight of the call in its place, and what it is scaled by in `attr`, which becomes the
// call's; while the engine calibrates, notes what is multiplied and leaves all as it is.
bool whole_factors(Engine *engine, KernelCall *call, Tensor *const *used, OpAttr *attr,
                   Error *error) MUST_CHECK;
