// Pooling over images [N,H,W,C].
#include <math.h>

#include "ref/access.h"
#include "ref/kernels.h"

// One place of an output's window in the input; `inside` is false in the padding.
typedef struct PoolTap {
    int64_t h, w;
    bool inside;
} PoolTap;

static PoolTap pool_tap(const PoolAttr *attr, int64_t row, int64_t column, int64_t position,
                        const View *input) {
    PoolTap tap = {
        .h = row * attr->stride[0] - attr->padding[0] + position / attr->kernel[1],
        .w = column * attr->stride[1] - attr->padding[1] + position % attr->kernel[1],
    };
    tap.inside = tap.h >= 0 && tap.h < input->shape[1] && tap.w >= 0 && tap.w < input->shape[2];
    return tap;
}

REF_KERNEL(max_pool2d) {
    const PoolAttr *attr = &call->attr->pool;
    const View *x = &call->input[0], *y = &call->output[0], *where = &call->output[1];
    int64_t window = attr->kernel[0] * attr->kernel[1];
    for (int64_t i = 0; i < view_count(y); i++) {
        int64_t c = i % y->shape[3], column = i / y->shape[3] % y->shape[2];
        int64_t row = i / y->shape[3] / y->shape[2] % y->shape[1];
        int64_t n = i / y->shape[3] / y->shape[2] / y->shape[1];
        double best = -(double)INFINITY;
        int64_t best_position = -1;
        for (int64_t position = 0; position < window; position++) {
            PoolTap tap = pool_tap(attr, row, column, position, x);
            if (!tap.inside)
                continue;
            double value = ref_load(x, ref_offset4(x, n, tap.h, tap.w, c));
            if (best_position < 0 || value > best || (isnan(value) && !isnan(best))) {
                best = value;
                best_position = position;
            }
        }
        ref_put(y, i, best);
        if (ref_is_present(where))
            ref_put(where, i, (double)(best_position < 0 ? 0 : best_position));
    }
    return true;
}

// Adds `share` of each output's gradient to the places of its window: to the one that `where`
// names, or to all where there is no such array.
static bool pool_backward(Device *device, const KernelCall *call, const View *where, double share,
                          Error *error) {
    const PoolAttr *attr = &call->attr->pool;
    const View *dy = &call->input[0], *dx = &call->output[0];
    int64_t window = attr->kernel[0] * attr->kernel[1];
    double *sums = ref_scratch(device, view_count(dx), 0, error);
    if (!sums)
        return false;
    for (int64_t i = 0; i < view_count(dy); i++) {
        int64_t c = i % dy->shape[3], column = i / dy->shape[3] % dy->shape[2];
        int64_t row = i / dy->shape[3] / dy->shape[2] % dy->shape[1];
        int64_t n = i / dy->shape[3] / dy->shape[2] / dy->shape[1];
        for (int64_t position = 0; position < window; position++) {
            PoolTap tap = pool_tap(attr, row, column, position, dx);
            if (tap.inside && (!where || position == (int64_t)ref_get(where, i)))
                sums[((n * dx->shape[1] + tap.h) * dx->shape[2] + tap.w) * dx->shape[3] + c] +=
                    ref_get(dy, i) * share;
        }
    }
    for (int64_t i = 0; i < view_count(dx); i++)
        ref_put(dx, i, sums[i]);
    return true;
}

REF_KERNEL(max_pool2d_backward) {
    return pool_backward(device, call, &call->input[1], 1, error);
}

REF_KERNEL(avg_pool2d) {
    const PoolAttr *attr = &call->attr->pool;
    const View *x = &call->input[0], *y = &call->output[0];
    int64_t window = attr->kernel[0] * attr->kernel[1];
    for (int64_t i = 0; i < view_count(y); i++) {
        int64_t c = i % y->shape[3], column = i / y->shape[3] % y->shape[2];
        int64_t row = i / y->shape[3] / y->shape[2] % y->shape[1];
        int64_t n = i / y->shape[3] / y->shape[2] / y->shape[1];
        double sum = 0;
        for (int64_t position = 0; position < window; position++) {
            PoolTap tap = pool_tap(attr, row, column, position, x);
            if (tap.inside)
                sum += ref_load(x, ref_offset4(x, n, tap.h, tap.w, c));
        }
        ref_put(y, i, sum / (double)window);
    }
    return true;
}

REF_KERNEL(avg_pool2d_backward) {
    const PoolAttr *attr = &call->attr->pool;
    double share = 1 / (double)(attr->kernel[0] * attr->kernel[1]);
    return pool_backward(device, call, NULL, share, error);
}
