// The shape rules of products: matmul, linear, convolution, attention.
#include <inttypes.h>
#include <string.h>

#include "ops/shape_check.h"

bool shape_matmul(const KernelCall *call, View *output, Error *error) {
    static const char *const names[] = {"the first factor", "the second factor"};
    if (!shape_all_floating(call, 2, names, error))
        return false;
    const View *a = &call->input[0], *b = &call->input[1];
    if (a->ndim < 2 || b->ndim < 2)
        return shape_fail(error,
                          "matmul of %s and %s: both factors need two dimensions or more; reshape "
                          "a vector to a row or a column",
                          shape_text_of(a).text, shape_text_of(b).text);
    int64_t wanted = b->shape[b->ndim - 2], came = a->shape[a->ndim - 1];
    if (wanted != came)
        return shape_fail(error,
                          "matmul of %s and %s: the first has %" PRId64
                          " columns, the second %" PRId64 " rows",
                          shape_text_of(a).text, shape_text_of(b).text, came, wanted);
    bool same_batch = a->ndim == b->ndim &&
                      memcmp(a->shape, b->shape, (size_t)(a->ndim - 2) * sizeof a->shape[0]) == 0;
    if (b->ndim != 2 && !same_batch)
        return shape_fail(error,
                          "matmul of %s and %s: the leading dimensions must be equal, or the "
                          "second must have two dimensions",
                          shape_text_of(a).text, shape_text_of(b).text);
    int64_t shape[VIEW_MAX_DIMS];
    memcpy(shape, a->shape, sizeof shape);
    shape[a->ndim - 1] = b->shape[b->ndim - 1];
    return shape_output(&output[0], FORMAT_COUNT, a->ndim, shape, error);
}

static bool activation_known(Activation activation, Error *error) {
    if ((unsigned)activation < ACTIVATION_COUNT)
        return true;
    return shape_fail(error, "activation %d is not known", (int)activation);
}

// Elements of one sample, of which the first dimension counts.
static int64_t of_a_sample(const View *x) {
    int64_t count = 1;
    for (int i = 1; i < x->ndim; i++)
        count *= x->shape[i];
    return count;
}

static bool unlike_features(const View *x, int64_t wanted, Error *error) {
    const char *advice = x->ndim > 2 && of_a_sample(x) == wanted
                             ? ", as many as a sample has in all: flatten the input first"
                             : "";
    return shape_fail(error, "input has %" PRId64 " features, weight wants %" PRId64 "%s",
                      x->shape[x->ndim - 1], wanted, advice);
}

bool shape_linear(const KernelCall *call, View *output, Error *error) {
    static const char *const names[] = {"input", "weight"};
    if (!shape_all_floating(call, 2, names, error) ||
        !activation_known(call->attr->linear.activation, error))
        return false;
    const View *x = &call->input[0], *weight = &call->input[1];
    if (!shape_wants_dims(weight, 2, "weight", "[out,in]", error))
        return false;
    if (x->ndim < 1)
        return shape_fail(error, "input is a single number, weight wants %" PRId64 " features",
                          weight->shape[1]);
    if (x->shape[x->ndim - 1] != weight->shape[1])
        return unlike_features(x, weight->shape[1], error);
    if (shape_has(call, 2) &&
        (!shape_floating(call, 2, "bias", error) ||
         !shape_wants_vector(&call->input[2], "bias", weight->shape[0], "output feature", error)))
        return false;
    int64_t shape[VIEW_MAX_DIMS];
    memcpy(shape, x->shape, sizeof shape);
    shape[x->ndim - 1] = weight->shape[0];
    return shape_output(&output[0], FORMAT_COUNT, x->ndim, shape, error);
}

static const char *const side_names[2] = {"height", "width"};

static bool conv_windows(const ConvAttr *attr, const int64_t size[2], const int64_t kernel[2],
                         int64_t count[2], Error *error) {
    for (int i = 0; i < 2; i++) {
        Window window = {size[i],          kernel[i],         attr->stride[i],
                         attr->padding[i], attr->dilation[i], side_names[i]};
        if (!shape_windows(&window, &count[i], error))
            return false;
    }
    return true;
}

static bool groups_divide(int64_t channels, int64_t groups, const char *name, Error *error) {
    if (!shape_wants_at_least(groups, 1, "groups", error))
        return false;
    if (channels % groups == 0)
        return true;
    return shape_fail(error, "%" PRId64 " %s channels do not divide into %" PRId64 " groups",
                      channels, name, groups);
}

// The third input, which may be absent.
static bool bias_fits(const KernelCall *call, int64_t outputs, Error *error) {
    return !shape_has(call, 2) ||
           (shape_floating(call, 2, "bias", error) &&
            shape_wants_vector(&call->input[2], "bias", outputs, "output channel", error));
}

bool shape_conv2d(const KernelCall *call, View *output, Error *error) {
    static const char *const names[] = {"input", "weight"};
    const ConvAttr *attr = &call->attr->conv;
    if (!shape_all_floating(call, 2, names, error) || !activation_known(attr->activation, error))
        return false;
    const View *x = &call->input[0], *weight = &call->input[1];
    if (!shape_wants_dims(x, 4, "input", "[N,H,W,C]", error) ||
        !shape_wants_dims(weight, 4, "weight", "[out,KH,KW,in/groups]", error) ||
        !groups_divide(x->shape[3], attr->groups, "input", error) ||
        !groups_divide(weight->shape[0], attr->groups, "output", error))
        return false;
    if (x->shape[3] / attr->groups != weight->shape[3])
        return shape_fail(error, "input has %" PRId64 " channels, weight wants %" PRId64,
                          x->shape[3], weight->shape[3] * attr->groups);
    if (!bias_fits(call, weight->shape[0], error))
        return false;
    int64_t shape[4] = {x->shape[0], 0, 0, weight->shape[0]};
    return conv_windows(attr, &x->shape[1], &weight->shape[1], &shape[1], error) &&
           shape_output(&output[0], FORMAT_COUNT, 4, shape, error);
}

// The gradient has the size that the convolution's output had.
static bool gradient_fits(const View *dy, const int64_t windows[2], Error *error) {
    for (int i = 0; i < 2; i++)
        if (dy->shape[1 + i] != windows[i])
            return shape_fail(error, "gradient has %s %" PRId64 ", the output had %" PRId64,
                              side_names[i], dy->shape[1 + i], windows[i]);
    return true;
}

// The output of size attr->input whose windows the first factor stands for.
static bool output_before_windows(const KernelCall *call, View *output, Error *error) {
    const ConvAttr *attr = &call->attr->conv;
    const View *dy = &call->input[0], *weight = &call->input[1];
    int64_t windows[2];
    if (!conv_windows(attr, attr->input, &weight->shape[1], windows, error) ||
        !gradient_fits(dy, windows, error))
        return false;
    if (weight->shape[3] > INT64_MAX / attr->groups)
        return shape_fail(error, "%" PRId64 " groups of %" PRId64 " channels are too many",
                          attr->groups, weight->shape[3]);
    int64_t shape[4] = {dy->shape[0], attr->input[0], attr->input[1],
                        weight->shape[3] * attr->groups};
    return shape_output(&output[0], FORMAT_COUNT, 4, shape, error);
}

bool shape_conv2d_backward_input(const KernelCall *call, View *output, Error *error) {
    static const char *const names[] = {"gradient", "weight"};
    const ConvAttr *attr = &call->attr->conv;
    if (!shape_all_floating(call, 2, names, error))
        return false;
    const View *dy = &call->input[0], *weight = &call->input[1];
    if (!shape_wants_dims(dy, 4, "gradient", "[N,H,W,C]", error) ||
        !shape_wants_dims(weight, 4, "weight", "[out,KH,KW,in/groups]", error) ||
        !groups_divide(weight->shape[0], attr->groups, "output", error))
        return false;
    if (dy->shape[3] != weight->shape[0])
        return shape_fail(error, "gradient has %" PRId64 " channels, weight makes %" PRId64,
                          dy->shape[3], weight->shape[0]);
    return output_before_windows(call, output, error);
}

bool shape_conv_transpose2d(const KernelCall *call, View *output, Error *error) {
    static const char *const names[] = {"input", "weight"};
    const View *x = &call->input[0], *weight = &call->input[1];
    if (!shape_all_floating(call, 2, names, error) ||
        !shape_wants_dims(x, 4, "input", "[N,H,W,C]", error) ||
        !shape_wants_dims(weight, 4, "weight", "[in,KH,KW,out/groups]", error) ||
        !groups_divide(weight->shape[0], call->attr->conv.groups, "input", error))
        return false;
    if (x->shape[3] != weight->shape[0])
        return shape_fail(error, "input has %" PRId64 " channels, weight wants %" PRId64,
                          x->shape[3], weight->shape[0]);
    return output_before_windows(call, output, error) && bias_fits(call, output->shape[3], error);
}

bool shape_conv2d_backward_weight(const KernelCall *call, View *output, Error *error) {
    static const char *const names[] = {"input", "gradient"};
    const ConvAttr *attr = &call->attr->conv;
    if (!shape_all_floating(call, 2, names, error))
        return false;
    const View *x = &call->input[0], *dy = &call->input[1];
    if (!shape_wants_dims(x, 4, "input", "[N,H,W,C]", error) ||
        !shape_wants_dims(dy, 4, "gradient", "[N,H,W,C]", error) ||
        !groups_divide(x->shape[3], attr->groups, "input", error) ||
        !groups_divide(dy->shape[3], attr->groups, "output", error))
        return false;
    if (dy->shape[0] != x->shape[0])
        return shape_fail(error, "gradient has %" PRId64 " images, input %" PRId64, dy->shape[0],
                          x->shape[0]);
    int64_t windows[2];
    if (!conv_windows(attr, &x->shape[1], attr->kernel, windows, error) ||
        !gradient_fits(dy, windows, error))
        return false;
    int64_t shape[4] = {dy->shape[3], attr->kernel[0], attr->kernel[1], x->shape[3] / attr->groups};
    return shape_output(&output[0], shape_kept(dy), 4, shape, error) &&
           shape_output(&output[1], shape_kept(dy), 1, shape, error);
}

static bool attention_fits(const View *q, const View *k, const View *v, bool causal, Error *error) {
    if (!shape_wants_dims(q, 4, "query", "[B,T,H,D]", error) ||
        !shape_wants_dims(k, 4, "key", "[B,T,H,D]", error) ||
        !shape_wants_same(v, "value", k, "key", error))
        return false;
    if (q->shape[0] != k->shape[0] || q->shape[2] != k->shape[2] || q->shape[3] != k->shape[3])
        return shape_fail(error,
                          "query has shape %s, key has %s: only the second size, the length, may "
                          "differ",
                          shape_text_of(q).text, shape_text_of(k).text);
    if (k->shape[1] < 1)
        return shape_fail(error, "key has shape %s: it is empty", shape_text_of(k).text);
    if (causal && q->shape[1] != k->shape[1])
        return shape_fail(error,
                          "causal attention wants as many keys as queries: %" PRId64
                          " queries, %" PRId64 " keys",
                          q->shape[1], k->shape[1]);
    return true;
}

bool shape_attention(const KernelCall *call, View *output, Error *error) {
    static const char *const names[] = {"query", "key", "value"};
    if (!shape_all_floating(call, 3, names, error))
        return false;
    const View *q = &call->input[0];
    if (!attention_fits(q, &call->input[1], &call->input[2], call->attr->attention.causal, error))
        return false;
    int64_t sums[4] = {2, q->shape[0], q->shape[2], q->shape[1]};
    return shape_output_like(&output[0], FORMAT_COUNT, q, error) &&
           shape_output(&output[1], shape_kept(q), 4, sums, error);
}

bool shape_attention_backward(const KernelCall *call, View *output, Error *error) {
    static const char *const names[] = {"gradient", "query", "key", "value", "output", "sums"};
    if (!shape_all_floating(call, 6, names, error))
        return false;
    const View *dy = &call->input[0], *q = &call->input[1], *sums = &call->input[5];
    if (!attention_fits(q, &call->input[2], &call->input[3], call->attr->attention.causal, error) ||
        !shape_wants_same(dy, names[0], q, names[1], error) ||
        !shape_wants_same(&call->input[4], names[4], q, names[1], error))
        return false;
    if (sums->ndim != 4 || sums->shape[0] != 2 || sums->shape[1] != q->shape[0] ||
        sums->shape[2] != q->shape[2] || sums->shape[3] != q->shape[1])
        return shape_fail(error, "sums have shape %s, query %s wants [2,B,H,T]",
                          shape_text_of(sums).text, shape_text_of(q).text);
    for (int i = 0; i < 3; i++)
        if (!shape_output_like(&output[i], FORMAT_COUNT, &call->input[1 + i], error))
            return false;
    return true;
}

bool shape_scale_factor(const KernelCall *call, View *output, Error *error) {
    const ScaleAttr *by = &call->attr->factor.by;
    if (!shape_floating(call, 0, "input", error))
        return false;
    const View *x = &call->input[0];
    if (by->first < 0 || by->dims < 1 || by->first + by->dims > x->ndim)
        return shape_fail(error, "dimensions %d to %d are the depth of a factor with %d", by->first,
                          by->first + by->dims - 1, x->ndim);
    return shape_output_like(&output[0], FORMAT_COUNT, x, error);
}

bool shape_scale_history(const KernelCall *call, View *output, Error *error) {
    const HistoryAttr *history = &call->attr->history;
    const View *x = &call->input[0];
    if (!shape_floating(call, 0, "input", error) ||
        !shape_wants_dims(x, 2, "input", "[rows,3+steps]", error))
        return false;
    if (x->format != FORMAT_FP32 && x->format != FORMAT_FP64)
        return shape_fail(error, "a history of scales is %s, fp32 is wanted",
                          format_name(x->format));
    if (x->shape[1] <= SCALE_HISTORY || history->roles < 1 || x->shape[0] % history->roles != 0)
        return shape_fail(error, "%" PRId64 " rows of %" PRId64 " are no history of %d roles",
                          x->shape[0], x->shape[1], history->roles);
    return shape_output_like(&output[0], FORMAT_COUNT, x, error);
}
