// checkpoint/quantised.h: weights as a model that only computes needs them: in a format of fewer
// bits, with the scales that go with it.
//
// What has two dimensions or more is in that format, vectors (biases, norms, running statistics) in
// fp32. Pure; any thread.
#pragma once

#include "number/format.h"

// Bytes of a tensor of that shape, scales included.
int64_t quantised_bytes(Format format, int ndim, const int64_t *shape);
