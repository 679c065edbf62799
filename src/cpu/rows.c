// Kernels that go row by row over the last dimension.
#include <math.h>
#include <string.h>

#include "cpu/kernels.h"
#include "cpu/row_buffers.h"

// Two inputs and an output.
enum { ROW_BUFFERS = 3 };

typedef struct Rows {
    const Device *device;
    const KernelCall *call;
    const CpuRows *table;
    int64_t count, width;
    RowBuffers buffers;
    float *largest, *log_sum; // cross entropy: one a row, what the gradient is made of
    float factor;
} Rows;

static const double exponential_cost = 1.0;

static void keep_in(Rows *rows, void *memory) {
    rows->largest = memory;
    rows->log_sum = rows->largest + rows->count;
}

static bool rows_open(Rows *rows, Device *device, const KernelCall *call, const View *shaped,
                      Error *error) {
    int64_t width = shaped->shape[shaped->ndim - 1];
    *rows = (Rows){.device = device,
                   .call = call,
                   .table = cpu_simd(device)->rows,
                   .count = width > 0 ? view_count(shaped) / width : 0,
                   .width = width,
                   .buffers = {.device = device, .width = width, .padded = cpu_padded(width)}};
    RowBuffers *buffers = &rows->buffers;
    buffers->per_thread = ROW_BUFFERS * (size_t)buffers->padded * sizeof(float);
    size_t shared = (size_t)device->threads * buffers->per_thread;
    buffers->memory =
        device_workspace(device, shared + (size_t)(2 * rows->count + 16) * sizeof(float), error);
    if (!buffers->memory)
        return false;
    keep_in(rows, buffers->memory + shared);
    return true;
}

static void rows_run(Rows *rows, double cost, CpuTask task) {
    cpu_parallel(rows->device, rows->count, 1, (double)(rows->count * rows->width) * cost, task,
                 rows);
}

// ---- softmax ------------------------------------------------------------------------------------

static void softmax_task(void *context, int64_t begin, int64_t end, int thread) {
    const Rows *rows = context;
    for (int64_t row = begin; row < end; row++) {
        const float *x = row_in(&rows->buffers, &rows->call->input[0], row, thread, 0);
        float *y = row_out(&rows->buffers, &rows->call->output[0], row, thread, ROW_BUFFERS - 1);
        float largest = rows->table->largest(x, rows->width);
        float sum = rows->table->exponentials(x, y, rows->width, largest);
        rows->table->scale_by(y, rows->width, 1 / sum);
        row_end(&rows->buffers, &rows->call->output[0], row, y);
    }
}

static void log_softmax_task(void *context, int64_t begin, int64_t end, int thread) {
    const Rows *rows = context;
    for (int64_t row = begin; row < end; row++) {
        const float *x = row_in(&rows->buffers, &rows->call->input[0], row, thread, 0);
        float *y = row_out(&rows->buffers, &rows->call->output[0], row, thread, ROW_BUFFERS - 1);
        float largest = rows->table->largest(x, rows->width);
        float sum = rows->table->sum_exponentials(x, rows->width, largest);
        rows->table->subtract(x, y, rows->width, largest, logf(sum));
        row_end(&rows->buffers, &rows->call->output[0], row, y);
    }
}

static void softmax_backward_task(void *context, int64_t begin, int64_t end, int thread) {
    const Rows *rows = context;
    void (*function)(const float *, const float *, float *, int64_t) =
        rows->call->op == OP_softmax_backward ? rows->table->softmax_backward
                                              : rows->table->log_softmax_backward;
    for (int64_t row = begin; row < end; row++) {
        const float *dy = row_in(&rows->buffers, &rows->call->input[0], row, thread, 0);
        const float *y = row_in(&rows->buffers, &rows->call->input[1], row, thread, 1);
        float *dx = row_out(&rows->buffers, &rows->call->output[0], row, thread, ROW_BUFFERS - 1);
        function(dy, y, dx, rows->width);
        row_end(&rows->buffers, &rows->call->output[0], row, dx);
    }
}

#define ROW_KERNEL(name, task)                                       \
    KERNEL_SIGNATURE(cpu, name) {                                    \
        Rows rows;                                                   \
        if (!rows_open(&rows, device, call, &call->input[0], error)) \
            return false;                                            \
        rows_run(&rows, exponential_cost, task);                     \
        return true;                                                 \
    }
ROW_KERNEL(softmax, softmax_task)
ROW_KERNEL(log_softmax, log_softmax_task)
ROW_KERNEL(softmax_backward, softmax_backward_task)
ROW_KERNEL(log_softmax_backward, softmax_backward_task)

// ---- cross entropy ------------------------------------------------------------------------------

// Counts the rows that take part; an error where a class is not one.
static bool check_classes(const Rows *rows, const View *classes, int64_t *counted, Error *error) {
    const ValueCheck check = value_check(rows->call, FAULT_CLASS, rows->width);
    *counted = 0;
    for (int64_t row = 0; row < rows->count; row++) {
        int64_t class = cpu_index(classes, row);
        if (!value_passes(&check, class))
            return value_fail(&check, row, class, error);
        *counted += class >= 0;
    }
    return true;
}

// So many classes are fewer than a vector or two hold: several rows are one piece of work.
enum { SHORT_ROW = 32 };

// As many whole rows from `row` on as a block holds, as fp32.
static const float *short_rows_in(const Rows *rows, const View *view, int64_t row, int64_t end,
                                  int64_t *count, float buffer[CPU_BLOCK]) {
    *count = cpu_smaller(CPU_BLOCK / rows->width, end - row);
    const void *source = cpu_at(view, row * rows->width);
    if (view->format == FORMAT_FP32)
        return source;
    cpu_load(rows->device, view->format, source, buffer, *count * rows->width);
    return buffer;
}

static void cross_entropy_short_task(void *context, int64_t begin, int64_t end, int thread) {
    (void)thread;
    const Rows *rows = context;
    float buffer[CPU_BLOCK];
    for (int64_t row = begin, count; row < end; row += count) {
        const float *x = short_rows_in(rows, &rows->call->input[0], row, end, &count, buffer);
        rows->table->short_log_sums(x, rows->largest + row, rows->log_sum + row, count,
                                    rows->width);
    }
}

static void cross_entropy_task(void *context, int64_t begin, int64_t end, int thread) {
    const Rows *rows = context;
    for (int64_t row = begin; row < end; row++) {
        const float *x = row_in(&rows->buffers, &rows->call->input[0], row, thread, 0);
        float largest = rows->table->largest(x, rows->width);
        rows->largest[row] = largest;
        rows->log_sum[row] = logf(rows->table->sum_exponentials(x, rows->width, largest));
    }
}

KERNEL_SIGNATURE(cpu, cross_entropy) {
    const View *logits = &call->input[0], *classes = &call->input[1];
    Rows rows;
    int64_t counted;
    if (!rows_open(&rows, device, call, logits, error) ||
        !check_classes(&rows, classes, &counted, error))
        return false;
    if (call->output[1].data) // kept for the gradient
        keep_in(&rows, call->output[1].data);
    rows_run(&rows, exponential_cost,
             rows.width <= SHORT_ROW ? cross_entropy_short_task : cross_entropy_task);
    double loss = 0;
    for (int64_t row = 0; row < rows.count; row++) {
        int64_t class = cpu_index(classes, row);
        if (class < 0)
            continue;
        float chosen;
        cpu_load(device, logits->format, cpu_at(logits, row * rows.width + class), &chosen, 1);
        loss += (double)rows.log_sum[row] + ((double)rows.largest[row] - (double)chosen);
    }
    cpu_set_number(device, &call->output[0], counted ? (float)(loss / (double)counted) : NAN);
    return true;
}

// dlogits = factor (share - 1 for the class): of an infinite factor the share and the 1 are taken
// apart first, as there is no difference of infinities.
static float class_factor(const Rows *rows) {
    return isfinite(rows->factor) ? rows->factor : 1;
}

static void take_class(const Rows *rows, float *dx, int64_t class, float factor) {
    dx[class] -= factor;
    if (!isfinite(rows->factor))
        rows->table->scale_by(dx, rows->width, rows->factor);
}

static void cross_entropy_backward_short_task(void *context, int64_t begin, int64_t end,
                                              int thread) {
    (void)thread;
    const Rows *rows = context;
    const View *input = rows->call->input;
    Result result = result_of(rows->device, &rows->call->output[0]);
    float buffer[CPU_BLOCK], gradient[CPU_BLOCK];
    for (int64_t row = begin, count; row < end; row += count) {
        const float *x = short_rows_in(rows, &input[1], row, end, &count, buffer);
        float *dx = result_begin(&result, row * rows->width, gradient);
        float factor = class_factor(rows);
        rows->table->short_cross_entropy_backward(x, dx, count, rows->width, rows->largest + row,
                                                  rows->log_sum + row, factor);
        for (int64_t i = 0; i < count; i++) {
            int64_t class = cpu_index(&input[3], row + i);
            if (class < 0)
                memset(dx + i * rows->width, 0, (size_t)rows->width * sizeof *dx);
            else
                take_class(rows, dx + i * rows->width, class, factor);
        }
        result_end(&result, row * rows->width, count * rows->width, dx);
    }
}

static void cross_entropy_backward_task(void *context, int64_t begin, int64_t end, int thread) {
    const Rows *rows = context;
    const View *input = rows->call->input;
    for (int64_t row = begin; row < end; row++) {
        float *dx = row_out(&rows->buffers, &rows->call->output[0], row, thread, ROW_BUFFERS - 1);
        int64_t class = cpu_index(&input[3], row);
        if (class < 0) {
            memset(dx, 0, (size_t)rows->width * sizeof *dx);
        } else {
            const float *x = row_in(&rows->buffers, &input[1], row, thread, 0);
            float factor = class_factor(rows);
            rows->table->cross_entropy_backward(x, dx, rows->width, rows->largest[row],
                                                rows->log_sum[row], factor);
            take_class(rows, dx, class, factor);
        }
        row_end(&rows->buffers, &rows->call->output[0], row, dx);
    }
}

KERNEL_SIGNATURE(cpu, cross_entropy_backward) {
    Rows rows;
    int64_t counted;
    if (!rows_open(&rows, device, call, &call->input[1], error) ||
        !check_classes(&rows, &call->input[3], &counted, error))
        return false;
    keep_in(&rows, call->input[2].data);
    rows.factor = counted ? cpu_number(device, &call->input[0]) / (float)counted : 0;
    rows_run(&rows, exponential_cost,
             rows.width <= SHORT_ROW ? cross_entropy_backward_short_task
                                     : cross_entropy_backward_task);
    return true;
}

// ---- choosing -----------------------------------------------------------------------------------

static void argmax_task(void *context, int64_t begin, int64_t end, int thread) {
    const Rows *rows = context;
    int32_t *out = rows->call->output[0].data;
    for (int64_t row = begin; row < end; row++) {
        const float *x = row_in(&rows->buffers, &rows->call->input[0], row, thread, 0);
        out[row] = (int32_t)rows->table->argmax(x, rows->width);
    }
}

ROW_KERNEL(argmax, argmax_task)

KERNEL_SIGNATURE(cpu, accuracy) {
    Rows rows;
    int64_t counted, right = 0;
    if (!rows_open(&rows, device, call, &call->input[0], error) ||
        !check_classes(&rows, &call->input[1], &counted, error))
        return false;
    for (int64_t row = 0; row < rows.count; row++) {
        int64_t class = cpu_index(&call->input[1], row);
        const float *x = row_in(&rows.buffers, &call->input[0], row, 0, 0);
        // A NaN is the largest of its row, and no answer.
        right += class >= 0 && rows.table->argmax(x, rows.width) == class && !isnan(x[class]);
    }
    cpu_set_number(device, &call->output[0],
                   counted ? (float)((double)right / (double)counted) : NAN);
    return true;
}

// NaN comes before everything, then the larger, of equals the first.
static bool comes_before(float a, float b) {
    return a > b || (a != a && b == b);
}

static void topk_task(void *context, int64_t begin, int64_t end, int thread) {
    const Rows *rows = context;
    const View *values = &rows->call->output[0];
    int32_t *indices = rows->call->output[1].data;
    int64_t count = values->shape[values->ndim - 1];
    float *best = row_buffer(&rows->buffers, thread, 1);
    for (int64_t row = begin; row < end; row++) {
        const float *x = row_in(&rows->buffers, &rows->call->input[0], row, thread, 0);
        int32_t *index = indices + row * count;
        int64_t used = 0;
        for (int64_t i = 0; i < rows->width; i++) {
            if (used == count && (count == 0 || !comes_before(x[i], best[count - 1])))
                continue;
            int64_t at = used < count ? used++ : count - 1;
            for (; at > 0 && comes_before(x[i], best[at - 1]); at--) {
                best[at] = best[at - 1];
                index[at] = index[at - 1];
            }
            best[at] = x[i];
            index[at] = (int32_t)i;
        }
        cpu_store(rows->device, values->format, best, cpu_at_mutable(values, row * count), count);
    }
}

ROW_KERNEL(topk, topk_task)
