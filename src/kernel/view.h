// kernel/view.h: an array as a kernel sees it: where it lies, what it holds, how it is laid out.
//
// A view owns nothing. Strides count elements and are 0 along a broadcast dimension. A dense view
// is row-major without gaps. Images are N,H,W,C.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/kernel_inline.h"
#include "number/format.h"

enum { VIEW_MAX_DIMS = 8 };

typedef struct View {
    void *data; // the first element; device memory
    Format format;
    int ndim; // 0: a single number
    int64_t shape[VIEW_MAX_DIMS];
    int64_t stride[VIEW_MAX_DIMS];
} View;

// Whether elements of this shape can be counted and their bytes too, whatever the format. An empty
// dimension counts as one element, since the strides of the others are made of the product. No view
// has any other shape: what comes from outside is held against this first.
static inline bool view_shape_fits(int ndim, const int64_t *shape) {
    int64_t count = 1;
    for (int i = 0; i < ndim; i++)
        if (shape[i] < 0 || __builtin_mul_overflow(count, shape[i] ? shape[i] : 1, &count))
            return false;
    return count <= INT64_MAX / 8;
}

// The number of elements; 1 for ndim 0.
KERNEL_INLINE int64_t view_count(const View *view) {
    int64_t count = 1;
    for (int i = 0; i < view->ndim; i++)
        count *= view->shape[i];
    return count;
}

KERNEL_INLINE bool view_is_dense(const View *view) {
    int64_t expected = 1;
    for (int i = view->ndim - 1; i >= 0; i--) {
        if (view->shape[i] != 1 && view->stride[i] != expected)
            return false;
        expected *= view->shape[i];
    }
    return true;
}

// A dense view of the given shape over `data`.
static inline View view_dense(void *data, Format format, int ndim, const int64_t *shape) {
    View view = {.data = data, .format = format, .ndim = ndim};
    int64_t stride = 1;
    for (int i = ndim - 1; i >= 0; i--) {
        view.shape[i] = shape[i];
        view.stride[i] = stride;
        stride *= shape[i];
    }
    return view;
}
