// measure/limits.h: what a device reaches at most, as far as its own kernels show: the rate of a
// large matrix product in a format, and that of a sum of two tensors too large for any cache.
//
// What parts of a training reach is held against these. They are measured by doing, on the device
// as it is now, in some tenths of a second each. Nothing else may use the device meanwhile; the
// thread that drives it calls.
#pragma once

#include "base/error.h"
#include "kernel/kernel.h"
#include "number/format.h"

// Multiplications a second, the best of several sizes; NaN: the device multiplies in no such
// format.
bool measure_product_limit(Device *device, Format format, double *rate, Error *error) MUST_CHECK;
// Bytes a second that are read and written.
bool measure_memory_limit(Device *device, double *rate, Error *error) MUST_CHECK;
