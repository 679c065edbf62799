// The shape rules of operations along one dimension.
#include <inttypes.h>
#include <string.h>

#include "ops/shape_check.h"

// Errors count dimensions from 1, as scripts do.
static bool has_dimension(const View *x, int dim, const char *name, Error *error) {
    return (dim >= 0 && dim < x->ndim) ||
           shape_fail(error, "dimension %d is wanted of %s, which has shape %s", dim + 1, name,
                      shape_text_of(x).text);
}

bool shape_cumsum(const KernelCall *call, View *output, Error *error) {
    return shape_floating(call, 0, "input", error) &&
           has_dimension(&call->input[0], call->attr->line.dim, "input", error) &&
           shape_output_like(&output[0], FORMAT_COUNT, &call->input[0], error);
}

bool shape_prod(const KernelCall *call, View *output, Error *error) {
    const View *x = &call->input[0];
    int dim = call->attr->line.dim;
    if (!shape_floating(call, 0, "input", error) || !has_dimension(x, dim, "input", error))
        return false;
    int64_t shape[VIEW_MAX_DIMS] = {0};
    for (int i = 0; i < x->ndim; i++)
        if (i != dim)
            shape[i - (i > dim)] = x->shape[i];
    return shape_output(&output[0], FORMAT_COUNT, x->ndim - 1, shape, error);
}

bool shape_prod_backward(const KernelCall *call, View *output, Error *error) {
    static const char *const names[] = {"gradient", "input"};
    View product;
    KernelCall forward = *call;
    forward.input[0] = call->input[1];
    return shape_all_floating(call, 2, names, error) && shape_prod(&forward, &product, error) &&
           shape_wants_same(&call->input[0], names[0], &product, "product", error) &&
           shape_output_like(&output[0], FORMAT_COUNT, &call->input[1], error);
}

// ---- drawn anew ---------------------------------------------------------------------------------

// Their products are computed with.
static const int64_t most_elements = INT64_C(1) << 30;

// Padding by what there is: a reflection leaves the edge out, and no element is repeated twice.
static bool padding_fits(const ResampleAttr *attr, Error *error) {
    int64_t after = attr->count - attr->size - attr->before;
    int64_t larger = attr->before > after ? attr->before : after;
    int64_t most = attr->rule == RESAMPLE_CIRCULAR ? attr->size : attr->size - 1;
    if (attr->before < 0 || after < 0)
        return shape_fail(error, "padding of %" PRId64 " and %" PRId64 ", at least 0 is wanted",
                          attr->before, after);
    if (attr->rule != RESAMPLE_REPLICATE && larger > most)
        return shape_fail(error,
                          "padding of %" PRId64 " around %" PRId64 " elements, at most %" PRId64
                          " can be taken from them",
                          larger, attr->size, most);
    return true;
}

static bool resample_fits(const ResampleAttr *attr, Error *error) {
    if (!shape_wants_at_least(attr->count, 1, "size", error))
        return false;
    if (attr->size < 1)
        return shape_fail(error, "dimension %d is empty: there is nothing to draw from",
                          attr->dim + 1);
    if (attr->size > most_elements || attr->count > most_elements)
        return shape_fail(error, "dimension %d becomes too large", attr->dim + 1);
    return attr->rule > RESAMPLE_CIRCULAR || padding_fits(attr, error);
}

static bool resample_output(const View *x, int dim, int64_t count, View *output, Error *error) {
    int64_t shape[VIEW_MAX_DIMS];
    memcpy(shape, x->shape, sizeof shape);
    shape[dim] = count;
    return shape_output(output, FORMAT_COUNT, x->ndim, shape, error);
}

bool shape_resample(const KernelCall *call, View *output, Error *error) {
    const View *x = &call->input[0];
    const ResampleAttr *attr = &call->attr->resample;
    if (!shape_floating(call, 0, "input", error) || !has_dimension(x, attr->dim, "input", error))
        return false;
    if (x->shape[attr->dim] != attr->size)
        return shape_fail(error, "input has shape %s, dimension %d of %" PRId64 " is wanted",
                          shape_text_of(x).text, attr->dim + 1, attr->size);
    return resample_fits(attr, error) && resample_output(x, attr->dim, attr->count, output, error);
}

bool shape_resample_backward(const KernelCall *call, View *output, Error *error) {
    const View *dy = &call->input[0];
    const ResampleAttr *attr = &call->attr->resample;
    if (!shape_floating(call, 0, "gradient", error) ||
        !has_dimension(dy, attr->dim, "gradient", error))
        return false;
    if (dy->shape[attr->dim] != attr->count)
        return shape_fail(error, "gradient has shape %s, dimension %d of %" PRId64 " is wanted",
                          shape_text_of(dy).text, attr->dim + 1, attr->count);
    return resample_fits(attr, error) && resample_output(dy, attr->dim, attr->size, output, error);
}
