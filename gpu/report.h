// gpu/report.h: what a step leaves, on its way to the host while the card goes on: the
// ReportKernels of kernel/kernel.h. Copies go to pinned memory behind the work; a mark is an event,
// and what kernels found wrong with values travels with each.
#pragma once

#include "gpu/gpu.h"

extern const ReportKernels gpu_report;

bool gpu_open_marks(Gpu *gpu, Error *error) MUST_CHECK;
void gpu_close_marks(Gpu *gpu);
