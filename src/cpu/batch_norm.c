// Batch norm: statistics of each channel over all other dimensions.
#include <math.h>
#include <string.h>

#include "cpu/columns.h"
#include "cpu/cpu.h"
#include "cpu/kernels.h"

// Numbers that every worker reads, one a column.
typedef struct BatchNorm {
    const CpuColumns *table;
    Columns columns;
    View x, dy, out;
    float *mean, *inverse, *factor, *offset, *slope;
    void *sums;
    int workers;
    double cost;
} BatchNorm;

enum { SHARED_ROWS = 5 };

static bool batch_open(BatchNorm *norm, Device *device, const View *x, double passes,
                       Error *error) {
    int64_t channels = x->shape[x->ndim - 1];
    *norm = (BatchNorm){.table = cpu_simd(device)->columns,
                        .columns = columns_of(channels ? view_count(x) / channels : 0, channels),
                        .x = *x,
                        .cost = (double)view_count(x) * CPU_STREAM * passes};
    norm->workers = cpu_workers(device, norm->cost);
    size_t row = cpu_line((size_t)norm->columns.width * sizeof(float));
    char *memory = device_workspace(
        device, SHARED_ROWS * row + columns_bytes(&norm->columns, norm->workers) + 64, error);
    if (!memory)
        return false;
    float **rows[SHARED_ROWS] = {&norm->mean, &norm->inverse, &norm->factor, &norm->offset,
                                 &norm->slope};
    for (int i = 0; i < SHARED_ROWS; i++)
        *rows[i] = (float *)(void *)(memory + (size_t)i * row);
    norm->sums = memory + SHARED_ROWS * row;
    columns_clear(&norm->columns, norm->sums, norm->workers);
    return true;
}

static void batch_run(const Device *device, BatchNorm *norm, CpuTask task) {
    cpu_parallel(device, norm->columns.folded, 1, norm->cost, task, norm);
}

static void load_channels(const Device *device, const BatchNorm *norm, const View *view,
                          float value, float *out) {
    int64_t channels = norm->columns.channels;
    if (view->data)
        cpu_load(device, view->format, view->data, out, channels);
    else
        for (int64_t i = 0; i < channels; i++)
            out[i] = value;
}

// ---- forward ------------------------------------------------------------------------------------

static void moments_task(void *context, int64_t begin, int64_t end, int thread) {
    const BatchNorm *norm = context;
    ColumnSums sums = columns_sums(&norm->columns, norm->sums, thread);
    int64_t width = norm->columns.width;
    norm->table->moments(norm->x.format, cpu_at(&norm->x, begin * width), end - begin, width,
                         norm->mean, sums.scratch, sums.first, sums.second);
}

static void apply_task(void *context, int64_t begin, int64_t end, int thread) {
    (void)thread;
    const BatchNorm *norm = context;
    int64_t width = norm->columns.width;
    norm->table->apply(norm->x.format, cpu_at(&norm->x, begin * width), norm->out.format,
                       cpu_at_mutable(&norm->out, begin * width), end - begin, width, norm->mean,
                       norm->factor, norm->offset);
}

// y = (x - mean) * factor + offset, once mean, inverse and the rest are known.
static void apply(const Device *device, BatchNorm *norm, const KernelCall *call) {
    const Columns *columns = &norm->columns;
    load_channels(device, norm, &call->input[1], 1, norm->factor);
    load_channels(device, norm, &call->input[2], 0, norm->offset);
    for (int64_t i = 0; i < columns->channels; i++)
        norm->factor[i] *= norm->inverse[i];
    columns_repeat(columns, norm->mean);
    columns_repeat(columns, norm->factor);
    columns_repeat(columns, norm->offset);
    norm->out = call->output[0];
    batch_run(device, norm, apply_task);
}

KERNEL_SIGNATURE(cpu, batch_norm) {
    BatchNorm norm;
    if (!batch_open(&norm, device, &call->input[0], 2, error))
        return false;
    const Columns *columns = &norm.columns;
    if (columns->rows == 0)
        return true;
    // Sums are of distances from the first row, so that little cancels in the variance.
    cpu_load(device, norm.x.format, norm.x.data, norm.mean, columns->channels);
    columns_repeat(columns, norm.mean);
    batch_run(device, &norm, moments_task);
    columns_total(columns, norm.sums, norm.workers);
    ColumnSums sums = columns_sums(columns, norm.sums, 0);
    for (int64_t i = 0; i < columns->channels; i++) {
        double away = sums.first[i] / (double)columns->rows;
        double variance = sums.second[i] / (double)columns->rows - away * away;
        variance = variance < 0 ? 0 : variance; // NaN, also of two infinities, stays
        norm.mean[i] = (float)((double)norm.mean[i] + away);
        norm.inverse[i] = (float)(1 / sqrt(variance + call->attr->norm.epsilon));
    }
    size_t bytes = (size_t)columns->channels * sizeof(float);
    memcpy(call->output[1].data, norm.mean, bytes);
    memcpy(call->output[2].data, norm.inverse, bytes);
    apply(device, &norm, call);
    return true;
}

KERNEL_SIGNATURE(cpu, batch_norm_infer) {
    BatchNorm norm;
    if (!batch_open(&norm, device, &call->input[0], 1, error))
        return false;
    load_channels(device, &norm, &call->input[3], 0, norm.mean);
    load_channels(device, &norm, &call->input[4], 1, norm.inverse);
    for (int64_t i = 0; i < norm.columns.channels; i++)
        norm.inverse[i] = (float)(1 / sqrt((double)norm.inverse[i] + call->attr->norm.epsilon));
    apply(device, &norm, call);
    return true;
}

KERNEL_SIGNATURE(cpu, batch_norm_track) {
    (void)error;
    const NormAttr *attr = &call->attr->norm;
    double unbiased = attr->count > 1 ? (double)attr->count / (double)(attr->count - 1) : 1;
    int64_t channels = view_count(&call->input[0]);
    float value[4][CPU_BLOCK]; // becomes what is stored, of the first two
    CPU_EACH_BLOCK(at, size, 0, channels) {
        for (int k = 0; k < 4; k++)
            cpu_load(device, call->input[k].format, cpu_at(&call->input[k], at), value[k], size);
        for (int64_t i = 0; i < size; i++) {
            double inverse = (double)value[3][i];
            double variance = fmax(1 / (inverse * inverse) - attr->epsilon, 0) * unbiased;
            variance = isnan(inverse) ? NAN : variance;
            value[0][i] = (float)((1 - attr->momentum) * (double)value[0][i] +
                                  attr->momentum * (double)value[2][i]);
            value[1][i] =
                (float)((1 - attr->momentum) * (double)value[1][i] + attr->momentum * variance);
        }
        for (int k = 0; k < 2; k++)
            cpu_store(device, call->output[k].format, value[k],
                      cpu_at_mutable(&call->output[k], at), size);
    }
    return true;
}

// ---- backward -----------------------------------------------------------------------------------

static void sums_task(void *context, int64_t begin, int64_t end, int thread) {
    const BatchNorm *norm = context;
    ColumnSums sums = columns_sums(&norm->columns, norm->sums, thread);
    int64_t width = norm->columns.width;
    norm->table->norm_sums(norm->dy.format, cpu_at(&norm->dy, begin * width), norm->x.format,
                           cpu_at(&norm->x, begin * width), end - begin, width, norm->mean,
                           norm->inverse, sums.scratch, sums.first, sums.second);
}

static void dx_task(void *context, int64_t begin, int64_t end, int thread) {
    (void)thread;
    const BatchNorm *norm = context;
    int64_t width = norm->columns.width;
    norm->table->norm_dx(norm->dy.format, cpu_at(&norm->dy, begin * width), norm->x.format,
                         cpu_at(&norm->x, begin * width), norm->out.format,
                         cpu_at_mutable(&norm->out, begin * width), end - begin, width, norm->mean,
                         norm->factor, norm->offset, norm->slope);
}

KERNEL_SIGNATURE(cpu, batch_norm_backward) {
    BatchNorm norm;
    if (!batch_open(&norm, device, &call->input[1], 3, error))
        return false;
    const Columns *columns = &norm.columns;
    norm.dy = call->input[0];
    norm.out = call->output[0];
    load_channels(device, &norm, &call->input[3], 0, norm.mean);
    load_channels(device, &norm, &call->input[4], 1, norm.inverse);
    load_channels(device, &norm, &call->input[2], 1, norm.factor);
    columns_repeat(columns, norm.mean);
    columns_repeat(columns, norm.inverse);
    batch_run(device, &norm, sums_task);
    columns_total(columns, norm.sums, norm.workers);
    ColumnSums sums = columns_sums(columns, norm.sums, 0);
    for (int64_t i = 0; i < columns->channels; i++) {
        norm.factor[i] *= norm.inverse[i];
        double factor = (double)norm.factor[i] / (double)columns->rows;
        norm.offset[i] = (float)(factor * sums.first[i]);
        norm.slope[i] = (float)(factor * sums.second[i] * (double)norm.inverse[i]);
    }
    columns_repeat(columns, norm.factor);
    columns_repeat(columns, norm.offset);
    columns_repeat(columns, norm.slope);
    batch_run(device, &norm, dx_task);
    if (call->output[1].data)
        columns_store(device, &call->output[1], sums.second, columns->channels);
    if (call->output[2].data)
        columns_store(device, &call->output[2], sums.first, columns->channels);
    return true;
}
