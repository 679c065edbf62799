// gpu/relu.h: the maximum with 0 of sums that a library has made.
//
// Libraries have it behind their sums, but give 0 for NaN, and an overflow would end there without
// a word. Ours keeps it. It rounds nothing: behind sums that were rounded it is as if it were
// before.
//
// From the thread that drives the device.
#pragma once

#include "kernel/kernel.h"

// Of a dense array, in its turn.
bool gpu_relu_in_place(Device *device, const View *sums, Error *error) MUST_CHECK;
