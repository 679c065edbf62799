// The shape rules of operations over rows: softmax, losses over classes, the largest of a row.
#include <inttypes.h>
#include <string.h>

#include "ops/shape_check.h"

bool shape_rowwise(const KernelCall *call, View *output, Error *error) {
    return shape_floating(call, 0, "input", error) &&
           shape_wants_rows(&call->input[0], "input", error) &&
           shape_output_like(&output[0], FORMAT_COUNT, &call->input[0], error);
}

bool shape_rowwise_backward(const KernelCall *call, View *output, Error *error) {
    static const char *const names[] = {"gradient", "output"};
    return shape_all_floating(call, 2, names, error) &&
           shape_wants_rows(&call->input[1], "output", error) &&
           shape_wants_same(&call->input[0], "gradient", &call->input[1], "output", error) &&
           shape_output_like(&output[0], FORMAT_COUNT, &call->input[1], error);
}

// `rows` has one number for each row of the logits.
static bool one_for_each_row(const View *rows, const char *name, const View *logits, Error *error) {
    if (rows->ndim == logits->ndim - 1 &&
        memcmp(rows->shape, logits->shape, (size_t)rows->ndim * sizeof rows->shape[0]) == 0)
        return true;
    return shape_fail(error, "%s have shape %s, logits %s want %s: one for each row", name,
                      shape_text_of(rows).text, shape_text_of(logits).text,
                      shape_text(logits->ndim - 1, logits->shape).text);
}

static bool logits_and_classes(const KernelCall *call, int logits, int classes, Error *error) {
    return shape_floating(call, logits, "logits", error) &&
           shape_integers(call, classes, "classes", error) &&
           shape_wants_rows(&call->input[logits], "logits", error) &&
           one_for_each_row(&call->input[classes], "classes", &call->input[logits], error);
}

// Of each row of the logits two numbers: [2,..].
static View two_for_each_row(const View *logits) {
    View sums = {.ndim = logits->ndim};
    sums.shape[0] = 2;
    memcpy(sums.shape + 1, logits->shape, (size_t)(logits->ndim - 1) * sizeof sums.shape[0]);
    return sums;
}

bool shape_cross_entropy(const KernelCall *call, View *output, Error *error) {
    if (shape_has(call, 0) && shape_has(call, 1) && call->input[0].format == FORMAT_INT32 &&
        format_is_floating(call->input[1].format))
        return shape_fail(error, "classes are given before logits: swap the two arguments");
    if (!logits_and_classes(call, 0, 1, error))
        return false;
    const View *logits = &call->input[0];
    View sums = two_for_each_row(logits);
    return shape_output_number(&output[0], FORMAT_COUNT, error) &&
           shape_output(&output[1], shape_kept(logits), sums.ndim, sums.shape, error);
}

bool shape_cross_entropy_backward(const KernelCall *call, View *output, Error *error) {
    if (!shape_floating(call, 0, "gradient", error) || !shape_floating(call, 2, "sums", error) ||
        !logits_and_classes(call, 1, 3, error))
        return false;
    const View *logits = &call->input[1];
    View sums = two_for_each_row(logits);
    if (!shape_wants_same(&call->input[2], "sums", &sums, "two for each row of the logits", error))
        return false;
    if (view_count(&call->input[0]) != 1)
        return shape_fail(error, "gradient has shape %s, a single number is wanted",
                          shape_text_of(&call->input[0]).text);
    return shape_output_like(&output[0], FORMAT_COUNT, &call->input[1], error);
}

bool shape_accuracy(const KernelCall *call, View *output, Error *error) {
    return logits_and_classes(call, 0, 1, error) &&
           shape_output_number(&output[0], FORMAT_FP32, error);
}

bool shape_argmax(const KernelCall *call, View *output, Error *error) {
    return shape_floating(call, 0, "input", error) &&
           shape_wants_rows(&call->input[0], "input", error) &&
           shape_output_rows(&output[0], FORMAT_INT32, &call->input[0], error);
}

bool shape_topk(const KernelCall *call, View *output, Error *error) {
    const View *x = &call->input[0];
    int64_t count = call->attr->index.count;
    if (!shape_floating(call, 0, "input", error) || !shape_wants_rows(x, "input", error) ||
        !shape_wants_at_least(count, 1, "count", error))
        return false;
    int64_t shape[VIEW_MAX_DIMS];
    memcpy(shape, x->shape, sizeof shape);
    if (count > shape[x->ndim - 1])
        return shape_fail(
            error, "the largest %" PRId64 " are wanted of rows that have %" PRId64 " elements",
            count, shape[x->ndim - 1]);
    shape[x->ndim - 1] = count;
    return shape_output(&output[0], FORMAT_COUNT, x->ndim, shape, error) &&
           shape_output(&output[1], FORMAT_INT32, x->ndim, shape, error);
}
