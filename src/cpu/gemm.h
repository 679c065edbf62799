// cpu/gemm.h: the matrix product of the CPU backend.
//
//     C[M,N] = activation(alpha * A[M,K] x B[K,N] (+ C) + bias[N])
//
// over fp32, bf16 and fp16 in any mixture and any strides, summed in fp32, rounded once to the
// format of C. Where `pairs` allows it, a product of two bf16 operands takes the processor's own
// instruction for pairs of them: numbers and sums below fp32's normal ones are 0 there, and the two
// products of a pair may be summed before they meet the rest. Where `splits_a` allows it and B is
// bf16, numbers of an A in fp32 may be taken for two of bf16, with 16 of their digits. Operands of
// which `blocks` says what they are made of, which is believed, may be multiplied as whole numbers
// of 8 bits.
//
// The caller owns all memory, the workspace included; nothing here allocates, keeps state or fails:
// a wrong format or a negative size is a programmer's error and asserted. Any thread may call it;
// up to `threads` OpenMP threads work, and only where the product is worth waking them. How the sum
// is ordered depends on the shape, never on the threads: the same input gives the same bits for the
// same `pairs`, `splits_a` and `blocks`.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "number/format.h"
#include "number/scaled.h"
#include "number/sums.h"

typedef enum GemmActivation {
    GEMM_ACTIVATION_NONE,
    GEMM_ACTIVATION_RELU,
    GEMM_ACTIVATION_TANH,
    GEMM_ACTIVATION_SIGMOID,
    GEMM_ACTIVATION_COUNT
} GemmActivation;

// How many products one call makes: two nested counts, so that attention can walk over samples and
// heads in place. Each operand says how far apart two neighbours lie in each.
enum { GEMM_BATCH_DIMS = 2 };

// The largest of so many numbers is, in the end, the largest magnitude in C before it was rounded
// to the format of C: its bits in fp32, which rise with it. Those of NaN lie above those of
// infinity.
enum { GEMM_LANES = 16 };

// Strides count elements. B transposed, as in the weights [out, in] of a linear layer, is the same
// memory with row_stride 1 and column_stride `in`.
typedef struct GemmOperand {
    const void *data;
    Format format; // fp32, bf16 or fp16
    int64_t row_stride, column_stride;
    int64_t batch_stride[GEMM_BATCH_DIMS]; // 0: the same matrix for all
} GemmOperand;

// Rows of the result are contiguous. It must not overlap what is read.
typedef struct GemmResult {
    void *data;
    Format format; // fp32, bf16 or fp16
    int64_t row_stride;
    int64_t batch_stride[GEMM_BATCH_DIMS];
} GemmResult;

typedef struct Gemm {
    int64_t rows, columns, depth;   // M, N, K; any may be 0
    int64_t batch[GEMM_BATCH_DIMS]; // 1, 1 for a single product
    GemmOperand a, b;
    GemmResult c;
    float alpha;
    bool accumulate;  // add to what C holds
    const void *bias; // one number a column, or NULL
    Format bias_format;
    GemmActivation activation;
    NumberBlocks blocks; // what the numbers of both operands are worth, where that is known
    bool pairs;          // see above; a processor without the instruction does not mind
    bool splits_a;       // 16 digits of an A in fp32 are enough, where B is bf16
    uint32_t *largest;   // GEMM_LANES numbers that begin at 0 and are raised; NULL: nobody asks
    int threads;         // at most so many; 1 never enters OpenMP
    Summing sums;        // products.h's affair: here sums are fp32's
} Gemm;

// Bytes of workspace that gemm_run needs for this product: depends on everything but the pointers.
size_t gemm_workspace_size(const Gemm *gemm);

// `workspace` has that size and any alignment; it may be NULL where the size is 0. Its content
// means nothing between calls.
void gemm_run(const Gemm *gemm, void *workspace);
