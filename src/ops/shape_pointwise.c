// The shape rules of point-wise operations, losses over elements and reductions.
#include "ops/shape_check.h"

// Functions of whole numbers give fp32.
static Format full_of_whole(const KernelCall *call, int count) {
    return shape_promoted(call, 0, count) == FORMAT_COUNT ? FORMAT_COUNT : FORMAT_FP32;
}

bool shape_unary(const KernelCall *call, View *output, Error *error) {
    return shape_numbers(call, 0, "input", error) &&
           shape_output_like(&output[0], full_of_whole(call, 1), &call->input[0], error);
}

bool shape_unary_backward(const KernelCall *call, View *output, Error *error) {
    static const char *const names[] = {"gradient", "input"};
    return shape_all_floating(call, 2, names, error) &&
           shape_wants_same(&call->input[0], names[0], &call->input[1], names[1], error) &&
           shape_output_like(&output[0], FORMAT_COUNT, &call->input[1], error);
}

static const char *const both_operands[] = {"the first operand", "the second operand"};

static bool both_there(const KernelCall *call, int first, Error *error) {
    return shape_numbers(call, first, both_operands[0], error) &&
           shape_numbers(call, first + 1, both_operands[1], error);
}

bool shape_binary(const KernelCall *call, View *output, Error *error) {
    if (!both_there(call, 0, error))
        return false;
    Format format = call->op == OP_div ? full_of_whole(call, 2) : shape_promoted(call, 0, 2);
    return shape_output_broadcast(&output[0], format, call, error);
}

bool shape_compare(const KernelCall *call, View *output, Error *error) {
    return both_there(call, 0, error) &&
           shape_output_broadcast(&output[0], FORMAT_UINT8, call, error);
}

bool shape_where(const KernelCall *call, View *output, Error *error) {
    return shape_mask(call, 0, "condition", error) && both_there(call, 1, error) &&
           shape_output_broadcast(&output[0], shape_promoted(call, 1, 2), call, error);
}

bool shape_loss(const KernelCall *call, View *output, Error *error) {
    static const char *const names[] = {"input", "target"};
    if (!shape_all_floating(call, 2, names, error) ||
        !shape_wants_same(&call->input[1], names[1], &call->input[0], names[0], error))
        return false;
    if (view_count(&call->input[0]) == 0)
        return shape_fail(error, "input has shape %s: the mean over nothing has no value",
                          shape_text_of(&call->input[0]).text);
    return shape_output_number(&output[0], FORMAT_COUNT, error);
}

bool shape_loss_backward(const KernelCall *call, View *output, Error *error) {
    static const char *const names[] = {"gradient", "input", "target"};
    if (!shape_all_floating(call, 3, names, error) ||
        !shape_wants_same(&call->input[2], names[2], &call->input[1], names[1], error))
        return false;
    if (view_count(&call->input[0]) != 1)
        return shape_fail(error, "gradient has shape %s, a single number is wanted",
                          shape_text_of(&call->input[0]).text);
    return shape_output_like(&output[0], FORMAT_COUNT, &call->input[1], error);
}

bool shape_reduce(const KernelCall *call, View *output, Error *error) {
    const View *x = &call->input[0];
    const ReduceAttr *attr = &call->attr->reduce;
    if (!shape_numbers(call, 0, "input", error))
        return false;
    const uint32_t all = (UINT32_C(1) << x->ndim) - 1;
    if (attr->dims & ~all)
        return shape_fail(error, "input has shape %s, which lacks a dimension that is reduced",
                          shape_text_of(x).text);
    uint32_t reduced = attr->dims ? attr->dims : all;
    int64_t shape[VIEW_MAX_DIMS];
    int ndim = 0;
    bool empty = false;
    for (int i = 0; i < x->ndim; i++) {
        bool gone = reduced >> i & 1;
        empty |= gone && x->shape[i] == 0;
        if (!gone)
            shape[ndim++] = x->shape[i];
        else if (attr->keep)
            shape[ndim++] = 1;
    }
    if (empty && call->op != OP_sum)
        return shape_fail(error, "input has shape %s: the %s over nothing has no value",
                          shape_text_of(x).text, op_table[call->op].name);
    return shape_output(&output[0], full_of_whole(call, 1), ndim, shape, error);
}
