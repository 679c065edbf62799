// Group norm: statistics of groups of channels within one image; an image is one piece of work.
#include <math.h>
#include <string.h>

#include "cpu/columns.h"
#include "cpu/cpu.h"
#include "cpu/kernels.h"

typedef struct GroupNorm {
    const CpuColumns *table;
    const KernelCall *call;
    const Device *device;
    Columns image; // one image: rows are its places, and nothing is folded
    int64_t images, groups, per_group;
    const float *weight, *bias;
    char *workspace; // a worker's sums, its rows of numbers, its dweight and dbias
    size_t per_worker;
} GroupNorm;

enum { OWN_ROWS = 5, SHARED_ROWS = 2 };

typedef struct GroupBuffers {
    ColumnSums sums;
    float *mean, *inverse, *factor, *offset, *slope;
    double *dweight, *dbias;
} GroupBuffers;

static size_t row_bytes(const GroupNorm *norm) {
    return cpu_line((size_t)norm->image.channels * sizeof(float));
}

static GroupBuffers buffers_of(const GroupNorm *norm, int worker) {
    char *own = norm->workspace + norm->per_worker * (size_t)worker;
    GroupBuffers buffers = {.sums = columns_sums(&norm->image, own, 0)};
    own += columns_bytes(&norm->image, 1);
    float **rows[OWN_ROWS] = {&buffers.mean, &buffers.inverse, &buffers.factor, &buffers.offset,
                              &buffers.slope};
    for (int i = 0; i < OWN_ROWS; i++, own += row_bytes(norm))
        *rows[i] = (float *)(void *)own;
    buffers.dweight = (double *)(void *)own;
    buffers.dbias = buffers.dweight + norm->image.channels;
    return buffers;
}

static float *load_row(const GroupNorm *norm, const View *view, float value, float *out) {
    if (view && view->data)
        cpu_load(norm->device, view->format, view->data, out, norm->image.channels);
    else
        for (int64_t i = 0; i < norm->image.channels; i++)
            out[i] = value;
    return out;
}

static bool group_open(GroupNorm *norm, Device *device, const KernelCall *call, const View *x,
                       const View *mean, const View *weight, const View *bias, Error *error) {
    int64_t channels = x->shape[x->ndim - 1], images = x->shape[0];
    int64_t places = images * channels > 0 ? view_count(x) / (images * channels) : 0;
    *norm = (GroupNorm){.table = cpu_simd(device)->columns,
                        .call = call,
                        .device = device,
                        .image = {places, channels, 1, channels, places},
                        .images = images,
                        .groups = mean->shape[1]};
    norm->per_group = channels / norm->groups;
    norm->per_worker = columns_bytes(&norm->image, 1) + OWN_ROWS * row_bytes(norm) +
                       cpu_line(2 * (size_t)channels * sizeof(double));
    size_t shared = norm->per_worker * (size_t)device->threads;
    norm->workspace = device_workspace(device, shared + SHARED_ROWS * row_bytes(norm) + 64, error);
    if (!norm->workspace)
        return false;
    float *rows = (float *)(void *)(norm->workspace + shared);
    norm->weight = load_row(norm, weight, 1, rows);
    norm->bias = load_row(norm, bias, 0, rows + row_bytes(norm) / sizeof(float));
    return true;
}

static double cost_of(const GroupNorm *norm, double passes) {
    return (double)(norm->images * norm->image.rows * norm->image.channels) * CPU_STREAM * passes;
}

// From sums of distances from `shift` a channel: the mean and the variance of one group.
static void group_moments(const GroupNorm *norm, const ColumnSums *sums, const float *shift,
                          int64_t first, double *mean_out, double *variance_out) {
    double mean = 0, variance = 0, places = (double)norm->image.rows;
    double share = 1 / (double)norm->per_group;
    for (int64_t i = first; i < first + norm->per_group; i++)
        mean += ((double)shift[i] + sums->first[i] / places) * share;
    for (int64_t i = first; i < first + norm->per_group; i++) {
        double away = sums->first[i] / places, own = (double)shift[i] + away - mean;
        variance += (sums->second[i] / places - away * away + own * own) * share;
    }
    *mean_out = mean;
    *variance_out = variance < 0 ? 0 : variance;
}

static void forward_task(void *context, int64_t begin, int64_t end, int thread) {
    const GroupNorm *norm = context;
    const View *x = &norm->call->input[0], *y = &norm->call->output[0];
    float *means = norm->call->output[1].data, *inverses = norm->call->output[2].data;
    GroupBuffers own = buffers_of(norm, thread);
    int64_t channels = norm->image.channels, size = norm->image.rows * channels;
    for (int64_t image = begin; image < end; image++) {
        const void *source = cpu_at(x, image * size);
        columns_clear(&norm->image, own.sums.scratch, 1);
        cpu_load(norm->device, x->format, source, own.mean, channels);
        norm->table->moments(x->format, source, norm->image.rows, channels, own.mean,
                             own.sums.scratch, own.sums.first, own.sums.second);
        for (int64_t group = 0; group < norm->groups; group++) {
            double mean, variance;
            int64_t first = group * norm->per_group;
            group_moments(norm, &own.sums, own.mean, first, &mean, &variance);
            float inverse = (float)(1 / sqrt(variance + norm->call->attr->norm.epsilon));
            means[image * norm->groups + group] = (float)mean;
            inverses[image * norm->groups + group] = inverse;
            for (int64_t i = first; i < first + norm->per_group; i++) {
                own.mean[i] = (float)mean;
                own.factor[i] = inverse * norm->weight[i];
            }
        }
        norm->table->apply(x->format, source, y->format, cpu_at_mutable(y, image * size),
                           norm->image.rows, channels, own.mean, own.factor, norm->bias);
    }
}

KERNEL_SIGNATURE(cpu, group_norm) {
    GroupNorm norm;
    if (!group_open(&norm, device, call, &call->input[0], &call->output[1], &call->input[1],
                    &call->input[2], error))
        return false;
    if (norm.image.rows > 0)
        cpu_parallel(device, norm.images, 1, cost_of(&norm, 2), forward_task, &norm);
    return true;
}

static void backward_task(void *context, int64_t begin, int64_t end, int thread) {
    const GroupNorm *norm = context;
    const View *dy = &norm->call->input[0], *x = &norm->call->input[1];
    const View *dx = &norm->call->output[0];
    const float *means = norm->call->input[3].data, *inverses = norm->call->input[4].data;
    GroupBuffers own = buffers_of(norm, thread);
    int64_t channels = norm->image.channels, size = norm->image.rows * channels;
    double share = 1 / (double)(norm->image.rows * norm->per_group);
    for (int64_t image = begin; image < end; image++) {
        for (int64_t i = 0; i < channels; i++) {
            int64_t set = image * norm->groups + i / norm->per_group;
            own.mean[i] = means[set];
            own.inverse[i] = inverses[set];
            own.factor[i] = inverses[set] * norm->weight[i];
        }
        const void *gradient = cpu_at(dy, image * size), *source = cpu_at(x, image * size);
        columns_clear(&norm->image, own.sums.scratch, 1);
        norm->table->norm_sums(dy->format, gradient, x->format, source, norm->image.rows, channels,
                               own.mean, own.inverse, own.sums.scratch, own.sums.first,
                               own.sums.second);
        for (int64_t first = 0; first < channels; first += norm->per_group) {
            double sum = 0, product = 0, inverse = (double)own.inverse[first];
            for (int64_t i = first; i < first + norm->per_group; i++) {
                sum += (double)norm->weight[i] * own.sums.first[i] * share;
                product += (double)norm->weight[i] * own.sums.second[i] * share;
                own.dbias[i] += own.sums.first[i];
                own.dweight[i] += own.sums.second[i];
            }
            for (int64_t i = first; i < first + norm->per_group; i++) {
                own.offset[i] = (float)(inverse * sum);
                own.slope[i] = (float)(inverse * inverse * product);
            }
        }
        norm->table->norm_dx(dy->format, gradient, x->format, source, dx->format,
                             cpu_at_mutable(dx, image * size), norm->image.rows, channels, own.mean,
                             own.factor, own.offset, own.slope);
    }
}

KERNEL_SIGNATURE(cpu, group_norm_backward) {
    GroupNorm norm;
    if (!group_open(&norm, device, call, &call->input[1], &call->input[3], &call->input[2], NULL,
                    error))
        return false;
    int64_t channels = norm.image.channels;
    double cost = cost_of(&norm, 3);
    int workers = cpu_workers(device, cost);
    for (int worker = 0; worker < workers; worker++)
        memset(buffers_of(&norm, worker).dweight, 0, 2 * (size_t)channels * sizeof(double));
    cpu_parallel(device, norm.images, 1, cost, backward_task, &norm);
    GroupBuffers total = buffers_of(&norm, 0);
    for (int worker = 1; worker < workers; worker++) {
        const double *own = buffers_of(&norm, worker).dweight;
        for (int64_t i = 0; i < 2 * channels; i++)
            total.dweight[i] += own[i];
    }
    if (call->output[1].data)
        columns_store(device, &call->output[1], total.dweight, channels);
    if (call->output[2].data)
        columns_store(device, &call->output[2], total.dbias, channels);
    return true;
}
