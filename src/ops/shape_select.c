// The shape rules of selection, arrangement and creation.
#include <inttypes.h>
#include <string.h>

#include "ops/shape_check.h"

// Errors count dimensions from 1, as scripts do.
static bool dimension_fits(int dim, const View *view, const char *name, Error *error) {
    if (dim >= 0 && dim < view->ndim)
        return true;
    return shape_fail(error, "dimension %d is wanted of %s, which has shape %s", dim + 1, name,
                      shape_text_of(view).text);
}

// Equal in all dimensions but one.
static bool same_but_for(int dim, const View *view, const char *name, const View *other,
                         const char *other_name, Error *error) {
    bool same = view->ndim == other->ndim;
    for (int i = 0; same && i < view->ndim; i++)
        same = i == dim || view->shape[i] == other->shape[i];
    if (same)
        return true;
    return shape_fail(error, "%s has shape %s, %s has %s: they may differ in dimension %d only",
                      name, shape_text_of(view).text, other_name, shape_text_of(other).text,
                      dim + 1);
}

bool shape_embedding(const KernelCall *call, View *output, Error *error) {
    const View *weight = &call->input[0], *index = &call->input[1];
    if (!shape_floating(call, 0, "weight", error) || !shape_integers(call, 1, "index", error) ||
        !shape_wants_dims(weight, 2, "weight", "[rows,features]", error))
        return false;
    if (index->ndim == VIEW_MAX_DIMS)
        return shape_fail(error, "index has shape %s, at most %d dimensions are wanted",
                          shape_text_of(index).text, VIEW_MAX_DIMS - 1);
    int64_t shape[VIEW_MAX_DIMS];
    memcpy(shape, index->shape, sizeof shape);
    shape[index->ndim] = weight->shape[1];
    return shape_output(&output[0], FORMAT_COUNT, index->ndim + 1, shape, error);
}

bool shape_embedding_backward(const KernelCall *call, View *output, Error *error) {
    const View *dy = &call->input[0], *index = &call->input[1];
    if (!shape_floating(call, 0, "gradient", error) || !shape_integers(call, 1, "index", error) ||
        !shape_wants_at_least(call->attr->index.count, 1, "rows", error))
        return false;
    if (dy->ndim != index->ndim + 1 ||
        memcmp(dy->shape, index->shape, (size_t)index->ndim * sizeof index->shape[0]) != 0)
        return shape_fail(error, "gradient has shape %s, index %s wants one more dimension",
                          shape_text_of(dy).text, shape_text_of(index).text);
    int64_t shape[2] = {call->attr->index.count, dy->shape[dy->ndim - 1]};
    return shape_output(&output[0], shape_kept(dy), 2, shape, error);
}

bool shape_gather(const KernelCall *call, View *output, Error *error) {
    const View *x = &call->input[0], *index = &call->input[1];
    int dim = call->attr->index.dim;
    return shape_numbers(call, 0, "input", error) && shape_integers(call, 1, "index", error) &&
           dimension_fits(dim, x, "input", error) &&
           same_but_for(dim, index, "index", x, "input", error) &&
           shape_output_like(&output[0], shape_promoted(call, 0, 1), index, error);
}

bool shape_gather_backward(const KernelCall *call, View *output, Error *error) {
    const View *dy = &call->input[0], *index = &call->input[1];
    const IndexAttr *attr = &call->attr->index;
    if (!shape_floating(call, 0, "gradient", error) || !shape_integers(call, 1, "index", error) ||
        !dimension_fits(attr->dim, dy, "gradient", error) ||
        !shape_wants_same(dy, "gradient", index, "index", error) ||
        !shape_wants_at_least(attr->count, 0, "size", error))
        return false;
    int64_t shape[VIEW_MAX_DIMS];
    memcpy(shape, dy->shape, sizeof shape);
    shape[attr->dim] = attr->count;
    return shape_output(&output[0], FORMAT_COUNT, dy->ndim, shape, error);
}

bool shape_cat(const KernelCall *call, View *output, Error *error) {
    int dim = call->attr->index.dim;
    if (call->input_count < 1 || call->input_count > OP_MAX_INPUTS)
        return shape_fail(error, "cat takes 1 to %d tensors at a time, not %d", OP_MAX_INPUTS,
                          call->input_count);
    const View *first = &call->input[0];
    if (!shape_numbers(call, 0, "the first tensor", error) ||
        !dimension_fits(dim, first, "the first tensor", error))
        return false;
    int64_t shape[VIEW_MAX_DIMS];
    memcpy(shape, first->shape, sizeof shape);
    for (int i = 1; i < call->input_count; i++) {
        const View *view = &call->input[i];
        if (!shape_numbers(call, i, "a tensor", error) ||
            !same_but_for(dim, view, "a tensor", first, "the first", error))
            return false;
        if (shape[dim] > INT64_MAX - view->shape[dim])
            return shape_fail(error, "the tensors are too long together");
        shape[dim] += view->shape[dim];
    }
    return shape_output(&output[0], shape_promoted(call, 0, call->input_count), first->ndim, shape,
                        error);
}

bool shape_pad(const KernelCall *call, View *output, Error *error) {
    const View *x = &call->input[0];
    const PadAttr *attr = &call->attr->pad;
    if (!shape_numbers(call, 0, "input", error))
        return false;
    Format format = shape_promoted(call, 0, 1);
    if (format != FORMAT_COUNT &&
        format_round(format, attr->value, OVERFLOW_SATURATES) != attr->value)
        return shape_fail(error, "%g is no number of %s, which input is", attr->value,
                          format_name(format));
    int64_t shape[VIEW_MAX_DIMS];
    for (int i = 0; i < x->ndim; i++) {
        if (!shape_wants_at_least(attr->before[i], 0, "padding before", error) ||
            !shape_wants_at_least(attr->after[i], 0, "padding after", error))
            return false;
        if (x->shape[i] > INT64_MAX - attr->before[i] - attr->after[i])
            return shape_fail(error, "dimension %d becomes too large", i + 1);
        shape[i] = attr->before[i] + x->shape[i] + attr->after[i];
    }
    return shape_output(&output[0], format, x->ndim, shape, error);
}

bool shape_cast(const KernelCall *call, View *output, Error *error) {
    if (!shape_has(call, 0))
        return shape_fail(error, "input is missing");
    const OpAttr *attr = call->attr;
    Format format = attr->has_out_format ? attr->out_format : call->input[0].format;
    return shape_output_like(&output[0], format, &call->input[0], error);
}

bool shape_dropout(const KernelCall *call, View *output, Error *error) {
    double probability = call->attr->dropout.probability;
    if (!(probability >= 0 && probability < 1))
        return shape_fail(error, "probability is %g, from 0 to less than 1 is wanted", probability);
    return shape_floating(call, 0, "input", error) &&
           shape_output_like(&output[0], FORMAT_COUNT, &call->input[0], error);
}

bool shape_create(const KernelCall *call, View *output, Error *error) {
    const CreateAttr *attr = &call->attr->create;
    Format format = call->attr->has_out_format ? call->attr->out_format : FORMAT_COUNT;
    if (call->op == OP_randint) {
        format = FORMAT_INT32;
        if (!(attr->a < attr->b && attr->a >= INT32_MIN && attr->b <= INT32_MAX))
            return shape_fail(error, "whole numbers from %g to below %g: there are none", attr->a,
                              attr->b);
    }
    if (call->op == OP_arange && attr->ndim != 1)
        return shape_fail(error, "arange makes one dimension, not %d", attr->ndim);
    return shape_output(&output[0], format, attr->ndim, attr->shape, error);
}
