// gpu/reduce.h: reductions, for kernels that are done in two launches.
#pragma once

#include "gpu/launch.h"

// Writes the sum of numbers on the device, divided, into an output of one element.
bool gpu_sum_numbers(Device *device, const float *numbers, int64_t count, double divisor,
                     const View *output, Error *error) MUST_CHECK;
// The same down the columns of [rows, columns], into an output of `columns` elements.
bool gpu_sum_columns(Device *device, const float *numbers, int64_t rows, int64_t columns,
                     const View *output, Error *error) MUST_CHECK;

// How blocks of 256 threads walk down `rows` (gpu/kernels/columns.h), of `across` threads' columns:
// into how many parts the rows are cut, each worth at least so many rows a thread, for so many
// blocks.
typedef struct GpuColumns {
    GpuGrid grid;
    uint32_t team; // threads of a row of them
    int64_t parts, part;
} GpuColumns;
GpuColumns gpu_columns(int64_t rows, int64_t across, int64_t rows_of_thread, int64_t blocks);

// The smallest power of two that is not less than `count`, up to `most`, itself one.
uint32_t gpu_power_of_two(int64_t count, uint32_t most);
