// cpu/simd/gemm_pack.h: the packing of one ISA level; see GemmKernels. Private to this folder.
#pragma once

#include "cpu/gemm_kernels.h"

void ISA_NAME(gemm_pack)(GemmWord *to, int width, const GemmSource *source, int64_t lines,
                         int64_t depth);
void ISA_NAME(gemm_copy)(GemmWord *to, int64_t stride, const GemmSource *source, int64_t lines,
                         int64_t depth);
