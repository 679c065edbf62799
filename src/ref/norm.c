// Normalisation. Each kernel says which elements share a mean (a channel, a row, a group of
// channels of one image) and which share a weight; the arithmetic is the same for all.
#include <math.h>

#include "ref/access.h"
#include "ref/kernels.h"

// How an array [outer, inner] falls into sets that are normalised together.
typedef enum NormKind { NORM_BATCH, NORM_LAYER, NORM_GROUP } NormKind;

typedef struct NormShape {
    NormKind kind;
    int64_t count, channels; // elements; size of the last dimension
    int64_t sets;            // how many means there are
    int64_t image, group;    // group norm: elements of an image, channels of a group
} NormShape;

static NormShape norm_shape(NormKind kind, const View *x, const View *mean) {
    NormShape shape = {.kind = kind,
                       .count = view_count(x),
                       .channels = ref_row_length(x),
                       .sets = view_count(mean)};
    if (kind == NORM_GROUP) {
        shape.image = x->shape[0] ? shape.count / x->shape[0] : 1;
        shape.group = shape.channels / mean->shape[1];
    }
    return shape;
}

static int64_t set_of(const NormShape *shape, int64_t index) {
    int64_t channel = index % shape->channels;
    switch (shape->kind) {
    case NORM_BATCH: return channel;
    case NORM_LAYER: return index / shape->channels;
    case NORM_GROUP: break;
    }
    int64_t groups = shape->channels / shape->group;
    return index / shape->image * groups + channel / shape->group;
}

static double weight_of(const View *weight, int64_t channel) {
    return ref_is_present(weight) ? ref_get(weight, channel) : 1;
}

static double bias_of(const View *bias, int64_t channel) {
    return ref_is_present(bias) ? ref_get(bias, channel) : 0;
}

static bool norm_forward(NormKind kind, Device *device, const KernelCall *call, Error *error) {
    const View *x = &call->input[0], *weight = &call->input[1], *bias = &call->input[2];
    const View *y = &call->output[0], *mean_out = &call->output[1], *inverse_out = &call->output[2];
    NormShape shape = norm_shape(kind, x, mean_out);
    double *mean = ref_scratch(device, 2 * shape.sets, 0, error);
    if (!mean)
        return false;
    double *inverse = mean + shape.sets, share = (double)shape.sets / (double)shape.count;
    for (int64_t i = 0; i < shape.count; i++)
        mean[set_of(&shape, i)] += ref_get(x, i) * share;
    for (int64_t i = 0; i < shape.count; i++) {
        double away = ref_get(x, i) - mean[set_of(&shape, i)];
        inverse[set_of(&shape, i)] += away * away * share; // the variance, until the next loop
    }
    for (int64_t set = 0; set < shape.sets; set++) {
        inverse[set] = 1 / sqrt(inverse[set] + call->attr->norm.epsilon);
        ref_put(mean_out, set, mean[set]);
        ref_put(inverse_out, set, inverse[set]);
    }
    for (int64_t i = 0; i < shape.count; i++) {
        int64_t set = set_of(&shape, i), channel = i % shape.channels;
        double normal = (ref_get(x, i) - mean[set]) * inverse[set];
        ref_put(y, i, normal * weight_of(weight, channel) + bias_of(bias, channel));
    }
    return true;
}

// With n = (x - mean) / deviation and g = dy * weight:
//     dx = (g - mean(g) - n * mean(g * n)) / deviation, means over a set.
static bool norm_backward(NormKind kind, Device *device, const KernelCall *call, Error *error) {
    const View *dy = &call->input[0], *x = &call->input[1], *weight = &call->input[2];
    const View *mean = &call->input[3], *inverse = &call->input[4];
    const View *dx = &call->output[0], *dweight = &call->output[1], *dbias = &call->output[2];
    NormShape shape = norm_shape(kind, x, mean);
    double *mean_g = ref_scratch(device, 2 * (shape.sets + shape.channels), 0, error);
    if (!mean_g)
        return false;
    double *mean_gn = mean_g + shape.sets;
    double *sum_dy = mean_gn + shape.sets, *sum_dyn = sum_dy + shape.channels;
    double share = (double)shape.sets / (double)shape.count;
    for (int64_t i = 0; i < shape.count; i++) {
        int64_t set = set_of(&shape, i), channel = i % shape.channels;
        double normal = (ref_get(x, i) - ref_get(mean, set)) * ref_get(inverse, set);
        double dy_i = ref_get(dy, i), g = dy_i * weight_of(weight, channel);
        mean_g[set] += g * share;
        mean_gn[set] += g * normal * share;
        sum_dy[channel] += dy_i;
        sum_dyn[channel] += dy_i * normal;
    }
    for (int64_t i = 0; i < shape.count; i++) {
        int64_t set = set_of(&shape, i), channel = i % shape.channels;
        double deviation_inverse = ref_get(inverse, set);
        double normal = (ref_get(x, i) - ref_get(mean, set)) * deviation_inverse;
        double g = ref_get(dy, i) * weight_of(weight, channel);
        ref_put(dx, i, (g - mean_g[set] - normal * mean_gn[set]) * deviation_inverse);
    }
    for (int64_t channel = 0; channel < shape.channels; channel++) {
        if (ref_is_present(dweight))
            ref_put(dweight, channel, sum_dyn[channel]);
        if (ref_is_present(dbias))
            ref_put(dbias, channel, sum_dy[channel]);
    }
    return true;
}

REF_KERNEL(batch_norm) {
    return norm_forward(NORM_BATCH, device, call, error);
}
REF_KERNEL(layer_norm) {
    return norm_forward(NORM_LAYER, device, call, error);
}
REF_KERNEL(group_norm) {
    return norm_forward(NORM_GROUP, device, call, error);
}
REF_KERNEL(batch_norm_backward) {
    return norm_backward(NORM_BATCH, device, call, error);
}
REF_KERNEL(layer_norm_backward) {
    return norm_backward(NORM_LAYER, device, call, error);
}
REF_KERNEL(group_norm_backward) {
    return norm_backward(NORM_GROUP, device, call, error);
}

REF_KERNEL(batch_norm_infer) {
    const View *x = &call->input[0], *weight = &call->input[1], *bias = &call->input[2];
    const View *mean = &call->input[3], *variance = &call->input[4], *y = &call->output[0];
    int64_t channels = ref_row_length(x);
    for (int64_t i = 0; i < view_count(x); i++) {
        int64_t channel = i % channels;
        double inverse = 1 / sqrt(ref_get(variance, channel) + call->attr->norm.epsilon);
        double normal = (ref_get(x, i) - ref_get(mean, channel)) * inverse;
        ref_put(y, i, normal * weight_of(weight, channel) + bias_of(bias, channel));
    }
    return true;
}

REF_KERNEL(batch_norm_track) {
    const NormAttr *attr = &call->attr->norm;
    const View *old_mean = &call->input[0], *old_variance = &call->input[1];
    const View *mean = &call->input[2], *inverse = &call->input[3];
    double new_share = attr->momentum, old_share = 1 - new_share;
    // What is tracked estimates the variance of all data from a sample: n - 1 below the line.
    double unbiased = attr->count > 1 ? (double)attr->count / (double)(attr->count - 1) : 1;
    for (int64_t channel = 0; channel < view_count(mean); channel++) {
        double inverse_value = ref_get(inverse, channel);
        double variance = 1 / (inverse_value * inverse_value) - attr->epsilon;
        variance = variance < 0 ? 0 : variance * unbiased; // below 0: the fp32 rounding of inverse
        ref_put(&call->output[0], channel,
                old_share * ref_get(old_mean, channel) + new_share * ref_get(mean, channel));
        ref_put(&call->output[1], channel,
                old_share * ref_get(old_variance, channel) + new_share * variance);
    }
    return true;
}
