// cpu/gemm_tiles.h: the matrix product on tile registers (AMX-BF16). Private to cpu/gemm.c and its
// tests; gemm.c cuts products among threads and batches and asks for one part at a time.
//
// A bf16 operand is used as it is, but its subnormals count as 0: the hardware has no others. An
// fp16 number is exactly the sum of two bf16 numbers, so an fp16 operand is split while it is
// packed and costs twice the products; sums are fp32. What the split makes of infinity and NaN is
// computed again with the vector kernels.
#pragma once

#include "cpu/gemm_kernels.h"

typedef struct GemmTiles {
    // Rows and columns that are computed together, and again together. Parts are cut between them,
    // so that the same numbers are computed again however many threads there are.
    int64_t block;
    // Whether the formats allow it and the size makes it worth it.
    bool (*suits)(const Gemm *gemm);
    // For the first product of the batch, on the calling thread.
    size_t (*workspace_size)(const GemmKernels *plain, const Gemm *gemm);
    void (*multiply)(const GemmKernels *plain, const Gemm *gemm, void *workspace);
} GemmTiles;

extern const GemmTiles gemm_tiles;
