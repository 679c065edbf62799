// gpu/products.h: matrix products, for the operations that are made of them.
//
// Who wants one fills a ProductArguments (gpu/kernels/arguments.h) but for what these functions
// find out: how its factors lie, and in how many parts it is summed. Its scratch is part of the
// caller's workspace, of which one call of a kernel has one.
#pragma once

#include "gpu/kernels/arguments.h"
#include "kernel/kernel.h"

// A factor whose outer dimension and depth have these strides, in elements.
ProductFactor product_factor(const void *data, Format format, int64_t outer, int64_t depth);

// Bytes of scratch that the product runs with, a multiple of 64; few at most
// (PRODUCT_MOST_SCRATCH).
size_t product_scratch(const Device *device, const ProductArguments *product);
enum { PRODUCT_MOST_SCRATCH = 32 << 20 };

bool product_run(Device *device, const ProductArguments *product, void *scratch,
                 Error *error) MUST_CHECK;

// With a workspace of its own.
bool product_run_alone(Device *device, const ProductArguments *product, Error *error) MUST_CHECK;
