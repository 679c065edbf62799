// cpu/kernels.h: the names of this backend's kernels, one an operation of kernel/ops.def.
#pragma once

#include "kernel/kernel.h"

#define OP(name, ...) KERNEL_SIGNATURE(cpu, name);
#include "kernel/ops.def"

extern const MultiKernels cpu_multi_kernels;
