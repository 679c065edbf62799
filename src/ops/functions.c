#include "ops/functions.h"

#include <math.h>

#include "ops/shape.h"
#include "ops/views.h"

Tensor *op_arange(Engine *engine, int64_t count, Error *error) {
    if (count < 0 || count > INT32_MAX) {
        error_fail(error, ERROR_USAGE, "arange: n is %lld: from 0 to %d is possible",
                   (long long)count, INT32_MAX);
        return NULL;
    }
    OpAttr attr = {.out_format = FORMAT_INT32, .has_out_format = true};
    attr.create.ndim = 1;
    attr.create.shape[0] = count;
    attr.create.b = 1;
    Tensor *numbers;
    return op_apply(engine, OP_arange, NULL, 0, &attr, &numbers, error) ? numbers : NULL;
}

// ---- point-wise ---------------------------------------------------------------------------------

Tensor *op_negative(Engine *engine, Tensor *x, Error *error) {
    if (format_is_floating(x->view.format))
        return op_one(engine, OP_neg, x, NULL, error);
    Tensor *zero = op_fill(engine, x->view.format, 0, NULL, 0, error);
    Tensor *negative = zero ? op_two(engine, OP_sub, zero, x, NULL, error) : NULL;
    tensor_release(zero);
    return negative;
}

// The format of a whole number beside a tensor of `other`: the narrowest that holds both.
static Format whole_beside(Format other, double value) {
    const Format formats[] = {other, FORMAT_INT32};
    for (int i = 0; i < 2; i++)
        if (format_round(formats[i], value, OVERFLOW_SATURATES) == value)
            return formats[i];
    return FORMAT_FP32;
}

Tensor *op_number_beside(Engine *engine, OpId op, double value, bool is_whole, const Tensor *other,
                         Error *error) {
    Format met = other->view.format;
    bool compares = shape_rules[op] == shape_compare, is_floating = format_is_floating(met);
    double rounded = format_round(is_floating ? met : FORMAT_FP32, value, OVERFLOW_TO_SPECIAL);
    if (compares && isfinite(rounded))
        value = rounded;
    Format format = met == FORMAT_FP64 ? FORMAT_FP64 : FORMAT_FP32;
    if (!is_floating && (is_whole || compares))
        format = whole_beside(met, value);
    Tensor *number = op_fill(engine, format, 0, NULL, value, error);
    if (number)
        number->is_number = true;
    return number;
}

Tensor *op_dropout(Engine *engine, Tensor *x, double probability, bool training, Error *error) {
    if (!(probability >= 0 && probability < 1)) {
        error_fail(error, ERROR_USAGE, "dropout: p is %g: from 0 to below 1 is possible",
                   probability);
        return NULL;
    }
    if (!training || probability == 0)
        return tensor_hold(x);
    OpAttr attr = {.has_out_format = false};
    attr.dropout.probability = probability;
    attr.dropout.stream = engine_random(engine, tensor_count(x));
    return op_one(engine, OP_dropout, x, &attr, error);
}

// ---- rows, and what joins them ------------------------------------------------------------------

Tensor *op_along(Engine *engine, OpId op, Tensor *x, int dim, Error *error) {
    int last = x->view.ndim - 1;
    if (dim == last)
        return op_one(engine, op, x, NULL, error);
    Tensor *moved = op_transpose(engine, x, dim, last, error);
    Tensor *y = moved ? op_one(engine, op, moved, NULL, error) : NULL;
    Tensor *back = y ? op_transpose(engine, y, dim, last, error) : NULL;
    tensor_release(moved);
    tensor_release(y);
    return back;
}

Tensor *op_cat(Engine *engine, Tensor *const *parts, int64_t count, int dim, Error *error) {
    OpAttr attr = {.has_out_format = false};
    attr.index.dim = dim;
    Tensor *joined = tensor_hold(parts[0]);
    for (int64_t next = 1; joined && next < count;) {
        Tensor *inputs[OP_MAX_INPUTS] = {joined}, *output = NULL;
        int taken = 1;
        while (taken < OP_MAX_INPUTS && next < count)
            inputs[taken++] = parts[next++];
        bool done = op_apply(engine, OP_cat, inputs, taken, &attr, &output, error);
        tensor_release(joined);
        joined = done ? output : NULL;
    }
    return joined;
}

// ---- batch norm ---------------------------------------------------------------------------------

// To the format that the norm's state is kept in, where that is not fp32.
static bool round_statistic(Engine *engine, Tensor **value, Error *error) {
    const Format own = (*value)->view.format;
    const Format kept =
        policy_state_format(engine->policy, engine->layer, engine->autocast, OP_batch_norm);
    if (kept == FORMAT_FP32 || kept == own)
        return true;
    Tensor *low = op_cast(engine, *value, kept, error);
    Tensor *rounded = low ? op_cast(engine, low, own, error) : NULL;
    tensor_release(low);
    if (!rounded)
        return false;
    tensor_release(*value);
    *value = rounded;
    return true;
}

static bool move_statistics(Engine *engine, Tensor *const running[2], Tensor *mean, Tensor *inverse,
                            const OpAttr *attr, Tensor *owner, Error *error) {
    static const char *const names[] = {"running_mean", "running_variance"};
    Tensor *const inputs[] = {running[0], running[1], mean, inverse};
    Tensor *outputs[2];
    const uint32_t mark = lookout_mark(engine);
    bool previous = tape_set_enabled(engine->tape, false);
    bool done = op_apply(engine, OP_batch_norm_track, inputs, 4, attr, outputs, error);
    const bool is_tracked = done;
    for (int i = 0; i < 2 && done; i++)
        done = round_statistic(engine, &outputs[i], error);
    tape_set_enabled(engine->tape, previous);
    for (int i = 0; i < 2 && is_tracked; i++) {
        if (done && engine->lookout.is_on)
            lookout_buffer(engine, outputs[i], names[i], mark);
        done = done && engine_change_buffer(engine, running[i], outputs[i], owner, error);
        tensor_release(outputs[i]);
    }
    return done;
}

Tensor *op_batch_norm(Engine *engine, Tensor *const inputs[5], const OpAttr *attr, bool training,
                      Error *error) {
    Tensor *outputs[OP_MAX_OUTPUTS];
    if (!training && (!inputs[3] || !inputs[4])) {
        error_fail(error, ERROR_USAGE, "batch_norm: evaluation needs running statistics");
        return NULL;
    }
    if (!training)
        return op_apply(engine, OP_batch_norm_infer, inputs, 5, attr, outputs, error) ? outputs[0]
                                                                                      : NULL;
    if (!op_apply(engine, OP_batch_norm, inputs, 3, attr, outputs, error))
        return NULL;
    const View *x = &inputs[0]->view;
    OpAttr counted = *attr;
    counted.norm.count = view_count(x) / (x->shape[x->ndim - 1] ? x->shape[x->ndim - 1] : 1);
    bool done =
        !inputs[3] || !inputs[4] ||
        move_statistics(engine, &inputs[3], outputs[1], outputs[2], &counted, inputs[1], error);
    tensor_release(outputs[1]);
    tensor_release(outputs[2]);
    if (done)
        return outputs[0];
    tensor_release(outputs[0]);
    return NULL;
}

// ---- products -----------------------------------------------------------------------------------

// The size along one side whose windows the input's are.
static int64_t size_before_windows(const ConvAttr *attr, int side, int64_t windows, int64_t kernel,
                                   int64_t extra) {
    int64_t stride = attr->stride[side], dilation = attr->dilation[side];
    const int64_t sizes[] = {stride, dilation, attr->padding[side], kernel, windows};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        if (sizes[i] < 0 || sizes[i] > INT32_MAX) // which the operation refuses
            return 0;
    return (windows - 1) * stride - 2 * attr->padding[side] + dilation * (kernel - 1) + 1 + extra;
}

Tensor *op_conv_transpose2d(Engine *engine, Tensor *const inputs[3], const OpAttr *attr,
                            const int64_t extra[2], Error *error) {
    static const char *const sides[] = {"height", "width"};
    const View *x = &inputs[0]->view, *weight = &inputs[1]->view;
    OpAttr sized = *attr;
    for (int i = 0; i < 2 && x->ndim == 4 && weight->ndim == 4; i++) {
        if (extra[i] < 0 || (extra[i] > 0 && extra[i] >= attr->conv.stride[i])) {
            error_fail(error, ERROR_USAGE,
                       "conv_transpose2d: output_padding %s is %lld: from 0 to below the stride is "
                       "possible",
                       sides[i], (long long)extra[i]);
            return NULL;
        }
        sized.conv.input[i] =
            size_before_windows(&attr->conv, i, x->shape[1 + i], weight->shape[1 + i], extra[i]);
    }
    return op_three(engine, OP_conv_transpose2d, inputs[0], inputs[1], inputs[2], &sized, error);
}

double op_attention_scale(const Tensor *q) {
    return 1 / sqrt(q->view.ndim == 4 ? (double)q->view.shape[3] : 1);
}
