// cpu/products.h: what matmul, linear, attention and convolution share to call the matrix product
// of gemm.h. Private to this folder.
#pragma once

#include "cpu/cpu.h"
#include "cpu/gemm.h"

GemmActivation product_activation(Activation activation);

static inline int64_t product_larger(int64_t a, int64_t b) {
    return a > b ? a : b;
}

// What the sums of a product are to be multiplied by; finite where both numbers are.
static inline float product_times(const OpAttr *attr) {
    const double times = (attr->times[0] ? (double)*attr->times[0] : 1) *
                         (attr->times[1] ? (double)*attr->times[1] : 1);
    return times > 0x1.fffffep127 ? 0x1.fffffep127f : (float)times;
}

// The same, its sums as they are asked for.
bool product_run_summed(Device *device, const Gemm *gemm, Error *error);

// Runs one product (or batch of them) with the device's threads and workspace.
bool product_run(Device *device, Gemm *gemm, Error *error);
