// gpu/sort.h: the positions of an index, by what it says there.
//
// What adds up by index (a gradient of rows) then finds the terms of each sum one behind the other,
// in the order of their positions: the same sum each time, without atomics.
#pragma once

#include "gpu/kernels/arguments.h"
#include "kernel/kernel.h"

// Of device memory, all within the workspace.
typedef struct GpuSorted {
    const u32 *key, *position;
    const SortBounds *bounds; // [the check's bound]
} GpuSorted;

// What the workspace must have for `count` entries of `rows`; a multiple of 16.
size_t gpu_sort_bytes(int64_t count, int64_t rows);

// Sorts by the values that pass, and tells those that do not. Both counts are less than 2^32.
bool gpu_sort(Device *device, const View *index, ValueArguments values, void *workspace,
              GpuSorted *sorted, Error *error) MUST_CHECK;
