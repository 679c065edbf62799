// cpu/simd/gemm_pack.h: the packing of one ISA level; see GemmKernels. Private to this folder.
#pragma once

#include "cpu/gemm_kernels.h"

void ISA_NAME(gemm_pack)(float *to, int width, const GemmSource *source, int lines, int64_t depth);
