// The shape rules of normalisation.
#include <inttypes.h>

#include "ops/shape_check.h"

// Channels are the last dimension.
static int64_t channels_of(const View *view) {
    return view->shape[view->ndim - 1];
}

// Inputs from `first` on are vectors with one number a channel.
static bool channel_vectors(const KernelCall *call, int first, int count, const char *const *names,
                            int64_t channels, Error *error) {
    for (int i = 0; i < count; i++)
        if (!shape_floating(call, first + i, names[i], error) ||
            !shape_wants_vector(&call->input[first + i], names[i], channels, "channel", error))
            return false;
    return true;
}

// Weight and bias of all norms may be absent, from `first` on.
static bool weight_and_bias_fit(const KernelCall *call, int first, int count, int64_t channels,
                                Error *error) {
    static const char *const names[] = {"weight", "bias"};
    for (int i = 0; i < count; i++)
        if (shape_has(call, first + i) &&
            !channel_vectors(call, first + i, 1, &names[i], channels, error))
            return false;
    return true;
}

static bool input_fits(const KernelCall *call, Error *error) {
    const View *x = &call->input[0];
    return shape_floating(call, 0, "input", error) && shape_wants_rows(x, "input", error) &&
           weight_and_bias_fit(call, 1, 2, channels_of(x), error);
}

static bool epsilon_fits(const KernelCall *call, Error *error) {
    // Written so that NaN does not pass.
    if (call->attr->norm.epsilon >= 0)
        return true;
    return shape_fail(error, "epsilon is %g, 0 or more is wanted", call->attr->norm.epsilon);
}

bool shape_batch_norm(const KernelCall *call, View *output, Error *error) {
    if (!input_fits(call, error) || !epsilon_fits(call, error))
        return false;
    const View *x = &call->input[0];
    if (x->ndim < 2 || view_count(x) == 0)
        return shape_fail(error,
                          "input has shape %s: batch norm wants [..,C] with at least one row",
                          shape_text_of(x).text);
    int64_t channels = channels_of(x);
    return shape_output_like(&output[0], FORMAT_COUNT, x, error) &&
           shape_output(&output[1], shape_kept(x), 1, &channels, error) &&
           shape_output(&output[2], shape_kept(x), 1, &channels, error);
}

bool shape_batch_norm_infer(const KernelCall *call, View *output, Error *error) {
    static const char *const names[] = {"running mean", "running variance"};
    return input_fits(call, error) &&
           channel_vectors(call, 3, 2, names, channels_of(&call->input[0]), error) &&
           epsilon_fits(call, error) &&
           shape_output_like(&output[0], FORMAT_COUNT, &call->input[0], error);
}

bool shape_batch_norm_track(const KernelCall *call, View *output, Error *error) {
    static const char *const names[] = {"running mean", "running variance", "mean", "inverse"};
    if (!shape_all_floating(call, 4, names, error) ||
        !shape_wants_dims(&call->input[0], 1, names[0], "[C]", error))
        return false;
    for (int i = 0; i < 2; i++)
        if (call->input[i].format != shape_kept(&call->input[i]))
            return shape_fail(error, "%s is %s, fp32 is wanted: running statistics are never low",
                              names[i], format_name(call->input[i].format));
    int64_t channels = call->input[0].shape[0];
    double momentum = call->attr->norm.momentum;
    if (!channel_vectors(call, 1, 3, names + 1, channels, error))
        return false;
    if (!(momentum >= 0 && momentum <= 1))
        return shape_fail(error, "momentum is %g, 0 to 1 is wanted", momentum);
    if (call->attr->norm.count < 1)
        return shape_fail(error, "count is %" PRId64 ", at least 1 is wanted",
                          call->attr->norm.count);
    return shape_output(&output[0], call->input[0].format, 1, &channels, error) &&
           shape_output(&output[1], call->input[1].format, 1, &channels, error);
}

bool shape_layer_norm(const KernelCall *call, View *output, Error *error) {
    if (!input_fits(call, error) || !epsilon_fits(call, error))
        return false;
    const View *x = &call->input[0];
    return shape_output_like(&output[0], FORMAT_COUNT, x, error) &&
           shape_output_rows(&output[1], shape_kept(x), x, error) &&
           shape_output_rows(&output[2], shape_kept(x), x, error);
}

static bool groups_fit(const View *x, int64_t groups, Error *error) {
    if (!shape_wants_at_least(groups, 1, "groups", error))
        return false;
    if (x->ndim < 2 || view_count(x) == 0)
        return shape_fail(error, "input has shape %s: group norm wants [N,..,C], none of them 0",
                          shape_text_of(x).text);
    if (channels_of(x) % groups == 0)
        return true;
    return shape_fail(error, "%" PRId64 " channels do not divide into %" PRId64 " groups",
                      channels_of(x), groups);
}

bool shape_group_norm(const KernelCall *call, View *output, Error *error) {
    const View *x = &call->input[0];
    int64_t groups = call->attr->norm.groups;
    if (!input_fits(call, error) || !epsilon_fits(call, error) || !groups_fit(x, groups, error))
        return false;
    int64_t statistics[2] = {x->shape[0], groups};
    return shape_output_like(&output[0], FORMAT_COUNT, x, error) &&
           shape_output(&output[1], shape_kept(x), 2, statistics, error) &&
           shape_output(&output[2], shape_kept(x), 2, statistics, error);
}

// What the statistics that a forward pass left look like.
static bool statistics_of(const KernelCall *call, View *statistics, Error *error) {
    const View *x = &call->input[1];
    int64_t channels = channels_of(x);
    if (call->op == OP_layer_norm_backward)
        return shape_output_rows(statistics, FORMAT_FP32, x, error);
    if (call->op == OP_batch_norm_backward)
        return shape_output(statistics, FORMAT_FP32, 1, &channels, error);
    if (!groups_fit(x, call->attr->norm.groups, error))
        return false;
    int64_t shape[2] = {x->shape[0], call->attr->norm.groups};
    return shape_output(statistics, FORMAT_FP32, 2, shape, error);
}

bool shape_norm_backward(const KernelCall *call, View *output, Error *error) {
    const View *dy = &call->input[0], *x = &call->input[1];
    if (!shape_floating(call, 0, "gradient", error) || !shape_floating(call, 1, "input", error) ||
        !shape_wants_rows(x, "input", error) ||
        !shape_wants_same(dy, "gradient", x, "input", error) ||
        !weight_and_bias_fit(call, 2, 1, channels_of(x), error) ||
        !shape_floating(call, 3, "mean", error) || !shape_floating(call, 4, "inverse", error))
        return false;
    View statistics = {0};
    if (!statistics_of(call, &statistics, error) ||
        !shape_wants_same(&call->input[3], "mean", &statistics, "the input's statistics", error) ||
        !shape_wants_same(&call->input[4], "inverse", &statistics, "the input's statistics", error))
        return false;
    int64_t channels = channels_of(x);
    return shape_output_like(&output[0], FORMAT_COUNT, x, error) &&
           shape_output(&output[1], shape_kept(x), 1, &channels, error) &&
           shape_output(&output[2], shape_kept(x), 1, &channels, error);
}
