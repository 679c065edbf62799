// ops/gather.h: gradients of several walks back added up: the tape's `gather`.
//
// Each is rounded to the format of its parameter's layer first, as frameworks do by storing it
// there, and added in fp32: the sum does not overflow where its parts do not. What the rounding did
// is counted in the parameter's record.
#pragma once

#include "ops/engine.h"

bool engine_gather(void *context, Tensor *leaf, Tensor **sum, bool is_rounded, Tensor *gradient,
                   Error *error) MUST_CHECK;
