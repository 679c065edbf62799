// ref/access.h: one element of a view at a time, as a double.
//
// What every kernel of the reference device reads and writes through. An *offset* counts elements
// from the view's first one, strides applied; an *index* is the row-major number of an element,
// whatever the strides. Storing is the one rounding of a kernel. FP8 saturates, as it does in
// training. Nothing here allocates or fails.
#pragma once

#include "kernel/kernel.h"
#include "kernel/view.h"
#include "number/format.h"
#include "number/inline.h"

static inline double ref_load(const View *view, int64_t offset) {
    const void *data = view->data;
    switch (view->format) {
    case FORMAT_FP64: return ((const double *)data)[offset];
    case FORMAT_FP32: return number_fp32_to_fp64(((const float *)data)[offset]);
    case FORMAT_TF32:
        return number_fp32_to_fp64(number_fp32_through_tf32(((const float *)data)[offset]));
    case FORMAT_BF16:
        return number_fp32_to_fp64(number_bf16_to_fp32(((const uint16_t *)data)[offset]));
    case FORMAT_FP16: return (double)number_fp16_to_fp32(((const uint16_t *)data)[offset]);
    case FORMAT_INT32: return ((const int32_t *)data)[offset];
    default: return format_decode(view->format, ((const uint8_t *)data)[offset]);
    }
}

static inline void ref_store(const View *view, int64_t offset, double value) {
    void *data = view->data;
    switch (view->format) {
    case FORMAT_FP64: ((double *)data)[offset] = value; break;
    case FORMAT_FP32: ((float *)data)[offset] = number_fp64_to_fp32(value); break;
    case FORMAT_TF32: // kept as fp32 with its low bits 0
        ((float *)data)[offset] = (float)format_round(FORMAT_TF32, value, OVERFLOW_SATURATES);
        break;
    default: {
        uint32_t bits = format_encode(view->format, value, OVERFLOW_SATURATES);
        size_t bytes = format_table[view->format].bytes;
        if (bytes == 4)
            ((uint32_t *)data)[offset] = bits;
        else if (bytes == 2)
            ((uint16_t *)data)[offset] = (uint16_t)bits;
        else
            ((uint8_t *)data)[offset] = (uint8_t)bits;
    }
    }
}

// Where element `index` of an array of `shape`'s shape lies in `view`, whose dimensions are aligned
// with the last ones of `shape` and which is broadcast where it has size 1. Where rows have no
// elements an index may be that of a row all the same.
static inline int64_t ref_offset_in(const View *view, const View *shape, int64_t index) {
    int64_t offset = 0;
    int missing = shape->ndim - view->ndim;
    for (int i = shape->ndim - 1; i >= missing && i >= 0; i--) {
        int64_t size = shape->shape[i] ? shape->shape[i] : 1;
        int64_t coordinate = index % size;
        index /= size;
        if (view->shape[i - missing] != 1)
            offset += coordinate * view->stride[i - missing];
    }
    return offset;
}

static inline int64_t ref_offset(const View *view, int64_t index) {
    return view_is_dense(view) ? index : ref_offset_in(view, view, index);
}

static inline double ref_get(const View *view, int64_t index) {
    return ref_load(view, ref_offset(view, index));
}

static inline void ref_put(const View *view, int64_t index, double value) {
    ref_store(view, ref_offset(view, index), value);
}

// Element (a, b, c, d) of a view with four dimensions.
static inline int64_t ref_offset4(const View *view, int64_t a, int64_t b, int64_t c, int64_t d) {
    const int64_t *stride = view->stride;
    return a * stride[0] + b * stride[1] + c * stride[2] + d * stride[3];
}

// A factor of a product as it is multiplied: fp32 is rounded where the call says so.
static inline View ref_factor(const KernelCall *call, int input) {
    View factor = call->input[input];
    if (call->attr->has_compute && factor.format == FORMAT_FP32)
        factor.format = call->attr->compute;
    return factor;
}
// The same of one that came up on the way.
static inline double ref_round_factor(const KernelCall *call, double value) {
    return call->attr->has_compute ? format_round(call->attr->compute, value, OVERFLOW_SATURATES)
                                   : value;
}

// The only element of a view with one.
static inline double ref_number(const View *view) {
    return ref_load(view, 0);
}

static inline bool ref_is_present(const View *view) {
    return view->data != NULL;
}

// Rows: everything but the last dimension. An array of no dimension is one row of one.
static inline int64_t ref_row_length(const View *view) {
    return view->ndim ? view->shape[view->ndim - 1] : 1;
}

static inline int64_t ref_row_count(const View *view) {
    int64_t count = 1;
    for (int i = 0; i + 1 < view->ndim; i++)
        count *= view->shape[i];
    return count;
}

// Scratch for `count` doubles, set to `value`; NULL when there is no memory.
static inline double *ref_scratch(Device *device, int64_t count, double value, Error *error) {
    size_t bytes = (size_t)(count > 0 ? count : 1) * sizeof(double); // of none: not NULL
    double *scratch = device_workspace(device, bytes, error);
    for (int64_t i = 0; scratch && i < count; i++)
        scratch[i] = value;
    return scratch;
}
