// gpu/moving.h: in how large pieces numbers can be moved, or written, without looking at them.
#pragma once

#include "gpu/kernels/arguments.h"
#include "kernel/kernel.h"

// Moving from one format to another. Of one format pieces are as large as 16 bytes, where every
// address and every distance that gpu_moving_fits is then told of is a multiple of them.
Moving gpu_moving(Format from, Format to);
// Makes the pieces small enough for an address, and for a distance of so many numbers.
void gpu_moving_address(Moving *moving, const void *data);
void gpu_moving_distance(Moving *moving, int64_t numbers);
// How many pieces so many numbers are, after all of that.
int64_t gpu_moving_pieces(const Moving *moving, int64_t numbers);

// A number of a format as often as 16 bytes hold it.
Pattern gpu_pattern(Format format, double value);
