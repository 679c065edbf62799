// The shape rules of pooling.
#include <inttypes.h>

#include "ops/shape_check.h"

// The output's height and width for an input of `size`; padding stays below the kernel, so that no
// window lies in the padding alone.
static bool pool_windows(const PoolAttr *attr, const int64_t size[2], int64_t count[2],
                         Error *error) {
    static const char *const names[2] = {"height", "width"};
    for (int i = 0; i < 2; i++) {
        Window window = {size[i], attr->kernel[i], attr->stride[i], attr->padding[i], 1, names[i]};
        if (!shape_windows(&window, &count[i], error))
            return false;
        if (attr->padding[i] >= attr->kernel[i])
            return shape_fail(
                error, "padding %s is %" PRId64 ", less than the kernel's %" PRId64 " is wanted",
                names[i], attr->padding[i], attr->kernel[i]);
    }
    return true;
}

// Where in its window a maximum lay is kept in a byte.
static bool places_fit(const PoolAttr *attr, Error *error) {
    const int64_t places = 256;
    if (attr->kernel[0] * attr->kernel[1] <= places)
        return true;
    return shape_fail(error,
                      "a window of %" PRId64 " by %" PRId64 " is too large, %" PRId64
                      " places are the most",
                      attr->kernel[0], attr->kernel[1], places);
}

static bool pool_forward(const KernelCall *call, int64_t shape[4], Error *error) {
    const View *x = &call->input[0];
    if (!shape_floating(call, 0, "input", error) ||
        !shape_wants_dims(x, 4, "input", "[N,H,W,C]", error))
        return false;
    shape[0] = x->shape[0];
    shape[3] = x->shape[3];
    return pool_windows(&call->attr->pool, &x->shape[1], &shape[1], error);
}

static bool pool_backward(const KernelCall *call, View *output, Error *error) {
    const View *dy = &call->input[0];
    const PoolAttr *attr = &call->attr->pool;
    int64_t windows[2];
    if (!shape_floating(call, 0, "gradient", error) ||
        !shape_wants_dims(dy, 4, "gradient", "[N,H,W,C]", error) ||
        !pool_windows(attr, attr->input, windows, error))
        return false;
    if (dy->shape[1] != windows[0] || dy->shape[2] != windows[1])
        return shape_fail(
            error, "gradient has shape %s, the output was %" PRId64 " high and %" PRId64 " wide",
            shape_text_of(dy).text, windows[0], windows[1]);
    int64_t shape[4] = {dy->shape[0], attr->input[0], attr->input[1], dy->shape[3]};
    return shape_output(&output[0], FORMAT_COUNT, 4, shape, error);
}

bool shape_max_pool2d(const KernelCall *call, View *output, Error *error) {
    int64_t shape[4];
    return pool_forward(call, shape, error) && places_fit(&call->attr->pool, error) &&
           shape_output(&output[0], FORMAT_COUNT, 4, shape, error) &&
           shape_output(&output[1], FORMAT_UINT8, 4, shape, error);
}

bool shape_max_pool2d_backward(const KernelCall *call, View *output, Error *error) {
    return shape_mask(call, 1, "where", error) &&
           shape_wants_same(&call->input[1], "where", &call->input[0], "gradient", error) &&
           pool_backward(call, output, error) && places_fit(&call->attr->pool, error);
}

bool shape_avg_pool2d(const KernelCall *call, View *output, Error *error) {
    int64_t shape[4];
    return pool_forward(call, shape, error) &&
           shape_output(&output[0], FORMAT_COUNT, 4, shape, error);
}

bool shape_avg_pool2d_backward(const KernelCall *call, View *output, Error *error) {
    return pool_backward(call, output, error);
}
