// gpu/products.h: matrix products, for the operations that are made of them.
//
// Who wants one fills a ProductArguments (gpu/kernels/arguments.h) but for what these functions
// find out: how its factors lie, and in how many parts it is summed. They use the device's
// workspace.
#pragma once

#include "gpu/kernels/arguments.h"
#include "kernel/kernel.h"

enum { PRODUCT_MOST_SCRATCH = 32 << 20 }; // bytes that the parts of a sum may take

// What a call multiplies a factor in that is kept in a format: fp32 in TF32, where it says so.
Format product_format(const KernelCall *call, Format kept);

// A factor whose outer dimension and depth have these strides, in elements.
ProductFactor product_factor(const void *data, Format format, int64_t outer, int64_t depth);

// So many elements further on.
static inline void *product_moved(const void *data, uint32_t format, int64_t by) {
    return (char *)(uintptr_t)data + by * (int64_t)format_table[format].bytes;
}

// Whether eight neighbours of a factor come by 16 bytes in all of so many matrices.
bool product_comes_wide(const int64_t *batch, const ProductFactor *factor);

// By the library where it serves (gpu/blas_products.h), else by kernels of our own.
bool product_run(Device *device, const ProductArguments *product, Error *error) MUST_CHECK;
// By our own, in one part, without the workspace.
bool product_run_own(Device *device, const ProductArguments *product, Error *error) MUST_CHECK;
// The same of a product of which a factor is the windows of an image.
bool product_run_conv(Device *device, const ConvArguments *conv, Error *error) MUST_CHECK;

// Sums partial sums, [parts][columns] in fp32, to a row of fp32.
bool product_join_rows(Device *device, float *partial, int64_t parts, int64_t columns, float *row,
                       Error *error) MUST_CHECK;
