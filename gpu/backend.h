// gpu/backend.h: the tables by which a card is a device, and the kernels they list.
#pragma once

#include "kernel/kernel.h"
#include "kernel/multi.h"

extern const Backend gpu_backend;
extern const MultiKernels gpu_multi;

#define OP(name, ...) KERNEL_SIGNATURE(gpu, name);
#include "kernel/ops.def"
