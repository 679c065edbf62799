// gpu/blas_products.h: products by cuBLASLt, where it is there and multiplies as we would.
//
// What it is asked is kept by sizes, layouts, formats and alignments, with the algorithm that its
// heuristics named first: the same in every process, since the workspace is of one size, so that
// the bits stay the same. Sums are in fp32 throughout and rounded once. The first products of each
// kind are held against our own kernels, for which the host waits, once; a kind that gives anything
// else is not asked again. From the thread that drives the device.
#pragma once

#include "gpu/kernels/arguments.h"
#include "kernel/kernel.h"

typedef struct BlasProducts BlasProducts;

// For the card that the thread has entered. NULL where the library is missing or does not start;
// then our own kernels do all.
BlasProducts *blas_products_open(void);
void blas_products_close(BlasProducts *products); // NULL is fine

typedef enum BlasAnswer {
    BLAS_DONE,
    BLAS_DECLINED, // nothing was done, or nothing that counts: multiply otherwise
    BLAS_FAILED    // `error` says why
} BlasAnswer;

BlasAnswer blas_product_run(Device *device, const ProductArguments *product, Error *error);
