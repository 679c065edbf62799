// gpu/rows.h: how rows are shared out among threads (gpu/kernels/rows.h).
#pragma once

#include "gpu/launch.h"

// The rows of a call: inputs `first` and after it, at most `count` of them, and output 0.
typedef struct GpuRows {
    RowArguments arguments;
    GpuGrid grid;
    bool is_long; // its team's registers do not hold a row
} GpuRows;

// `chunks`: parts of eight that the kernel's threads hold at most; 0: they hold nothing.
GpuRows gpu_rows(const KernelCall *call, int inputs, int chunks);
