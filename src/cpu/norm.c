// Layer norm, row by row.
#include <math.h>
#include <string.h>

#include "cpu/columns.h"
#include "cpu/kernels.h"
#include "cpu/row_buffers.h"

// ---- layer norm ---------------------------------------------------------------------------------

// dweight and dbias gather in fp32 over this many rows, then in double.
enum { FLUSH_ROWS = 64, LAYER_BUFFERS = 3 };

typedef struct LayerNorm {
    const Device *device;
    const KernelCall *call;
    const CpuRows *table;
    int64_t rows, width;
    const float *weight, *bias;
    RowBuffers buffers; // behind a thread's: its sums
} LayerNorm;

// Bytes a thread takes: buffers for rows, two fp32 sums, two sums in double.
static size_t layer_bytes(int64_t padded) {
    return cpu_line((size_t)padded * ((LAYER_BUFFERS + 2) * sizeof(float) + 2 * sizeof(double)));
}

static double *layer_sums(const LayerNorm *norm, int thread) {
    return (double *)(void *)row_buffer(&norm->buffers, thread, LAYER_BUFFERS + 2);
}

// Parameters as fp32, behind what the threads have; NULL stays NULL.
static const float *parameter(const Device *device, const View *view, float *buffer,
                              int64_t width) {
    if (!view->data || view->format == FORMAT_FP32)
        return view->data;
    cpu_load(device, view->format, view->data, buffer, width);
    return buffer;
}

static bool layer_open(LayerNorm *norm, Device *device, const KernelCall *call, const View *x,
                       const View *weight, const View *bias, Error *error) {
    int64_t width = x->shape[x->ndim - 1];
    *norm = (LayerNorm){.device = device,
                        .call = call,
                        .table = cpu_simd(device)->rows,
                        .rows = width > 0 ? view_count(x) / width : 0,
                        .width = width,
                        .buffers = {.device = device, .width = width, .padded = cpu_padded(width)}};
    RowBuffers *buffers = &norm->buffers;
    buffers->per_thread = layer_bytes(buffers->padded);
    size_t shared = (size_t)device->threads * buffers->per_thread;
    buffers->memory =
        device_workspace(device, shared + 2 * (size_t)buffers->padded * sizeof(float) + 64, error);
    if (!buffers->memory)
        return false;
    float *parameters = (float *)(void *)(buffers->memory + shared);
    norm->weight = parameter(device, weight, parameters, width);
    if (bias)
        norm->bias = parameter(device, bias, parameters + buffers->padded, width);
    return true;
}

static void layer_task(void *context, int64_t begin, int64_t end, int thread) {
    const LayerNorm *norm = context;
    const KernelCall *call = norm->call;
    float *mean = call->output[1].data, *inverse = call->output[2].data;
    float epsilon = (float)call->attr->norm.epsilon;
    for (int64_t row = begin; row < end; row++) {
        const float *x = row_in(&norm->buffers, &call->input[0], row, thread, 0);
        float *y = row_out(&norm->buffers, &call->output[0], row, thread, LAYER_BUFFERS - 1);
        norm->table->moments(x, norm->width, epsilon, &mean[row], &inverse[row]);
        norm->table->normalise(x, y, norm->width, mean[row], inverse[row], norm->weight,
                               norm->bias);
        row_end(&norm->buffers, &call->output[0], row, y);
    }
}

KERNEL_SIGNATURE(cpu, layer_norm) {
    LayerNorm norm;
    if (!layer_open(&norm, device, call, &call->input[0], &call->input[1], &call->input[2], error))
        return false;
    cpu_parallel(device, norm.rows, 1, (double)(norm.rows * norm.width) * CPU_STREAM * 2,
                 layer_task, &norm);
    return true;
}

static void layer_flush(const LayerNorm *norm, int thread) {
    double *sums = layer_sums(norm, thread);
    float *partial = row_buffer(&norm->buffers, thread, LAYER_BUFFERS);
    for (int64_t i = 0; i < 2 * norm->buffers.padded; i++)
        sums[i] += (double)partial[i];
    memset(partial, 0, 2 * (size_t)norm->buffers.padded * sizeof *partial);
}

static void layer_backward_task(void *context, int64_t begin, int64_t end, int thread) {
    const LayerNorm *norm = context;
    const KernelCall *call = norm->call;
    const float *mean = call->input[3].data, *inverse = call->input[4].data;
    float *dweight = row_buffer(&norm->buffers, thread, LAYER_BUFFERS),
          *dbias = dweight + norm->buffers.padded;
    bool wanted_weight = call->output[1].data, wanted_bias = call->output[2].data;
    for (int64_t row = begin; row < end; row++) {
        const float *dy = row_in(&norm->buffers, &call->input[0], row, thread, 0);
        const float *x = row_in(&norm->buffers, &call->input[1], row, thread, 1);
        float *dx = row_out(&norm->buffers, &call->output[0], row, thread, LAYER_BUFFERS - 1);
        norm->table->norm_backward(dy, x, norm->weight, dx, norm->width, mean[row], inverse[row],
                                   wanted_weight ? dweight : NULL, wanted_bias ? dbias : NULL);
        row_end(&norm->buffers, &call->output[0], row, dx);
        if ((row - begin) % FLUSH_ROWS == FLUSH_ROWS - 1 || row == end - 1)
            layer_flush(norm, thread);
    }
}

KERNEL_SIGNATURE(cpu, layer_norm_backward) {
    LayerNorm norm;
    if (!layer_open(&norm, device, call, &call->input[1], &call->input[2], NULL, error))
        return false;
    double cost = (double)(norm.rows * norm.width) * CPU_STREAM * 3;
    int workers = cpu_workers(device, cost);
    for (int thread = 0; thread < workers; thread++)
        memset(row_buffer(&norm.buffers, thread, LAYER_BUFFERS), 0,
               2 * (size_t)norm.buffers.padded * (sizeof(float) + sizeof(double)));
    cpu_parallel(device, norm.rows, 1, cost, layer_backward_task, &norm);
    double *total = layer_sums(&norm, 0);
    for (int thread = 1; thread < workers; thread++) {
        const double *sums = layer_sums(&norm, thread);
        for (int64_t i = 0; i < 2 * norm.buffers.padded; i++)
            total[i] += sums[i];
    }
    for (int which = 0; which < 2; which++)
        if (call->output[1 + which].data)
            columns_store(device, &call->output[1 + which], total + which * norm.buffers.padded,
                          norm.width);
    return true;
}
