// Along one dimension: running sums, products, and a dimension drawn anew.
//
// An array is [outer, size, inner] around the dimension. What runs along it is kept in double, one
// number a column, and memory is read in the order in which it lies wherever `inner` is wide.
#include <string.h>

#include "cpu/cpu.h"
#include "cpu/kernels.h"
#include "kernel/resample.h"

typedef struct Lines {
    const Device *device;
    const KernelCall *call;
    int64_t outer, size, inner;
    float *before; // of prod_backward: the product of what came before each element
} Lines;

static Lines lines_of(const Device *device, const KernelCall *call, const View *x, int dim) {
    Lines lines = {.device = device, .call = call, .outer = 1, .size = x->shape[dim], .inner = 1};
    for (int i = 0; i < dim; i++)
        lines.outer *= x->shape[i];
    for (int i = dim + 1; i < x->ndim; i++)
        lines.inner *= x->shape[i];
    return lines;
}

// Columns side by side of one outer index, at most so many that a running number each has its
// place, and as many places along the dimension as lie behind each other and fit in a block too.
// Columns are counted over all outer indices.
typedef struct Strip {
    int64_t column, width, places;
    int64_t first; // the element with which it begins
} Strip;

static Strip strip_at(const Lines *lines, int64_t column, int64_t end) {
    if (column >= end)
        return (Strip){.column = column};
    int64_t inner = lines->inner, within = column % inner;
    Strip strip = {.column = column, .places = 1};
    strip.width = cpu_smaller(cpu_smaller(CPU_BLOCK, inner - within), end - column);
    strip.first = column / inner * lines->size * inner + within;
    if (strip.width == inner)
        strip.places = CPU_BLOCK / inner;
    return strip;
}

#define EACH_STRIP(lines, strip, begin, end)                         \
    for (Strip strip = strip_at(lines, begin, end); strip.width > 0; \
         strip = strip_at(lines, strip.column + strip.width, end))

static void load(const Lines *lines, const View *x, int64_t at, float *values, int64_t count) {
    cpu_load(lines->device, x->format, cpu_at(x, at), values, count);
}

static void store(const Lines *lines, const View *y, int64_t at, const float *values,
                  int64_t count) {
    cpu_store(lines->device, y->format, values, cpu_at_mutable(y, at), count);
}

static void run(const Lines *lines, CpuTask task, double each) {
    int64_t columns = lines->outer * lines->inner;
    double cost = (double)(columns * lines->size) * each;
    cpu_parallel(lines->device, columns, 1, cost, task, (void *)(uintptr_t)lines);
}

// ---- running sums and products ------------------------------------------------------------------

static void cumsum_task(void *context, int64_t begin, int64_t end, int thread) {
    (void)thread;
    const Lines *lines = context;
    const View *x = &lines->call->input[0], *y = &lines->call->output[0];
    const bool backwards = lines->call->attr->line.backwards;
    _Alignas(64) float values[CPU_BLOCK];
    double sum[CPU_BLOCK];
    EACH_STRIP(lines, strip, begin, end) {
        for (int64_t k = 0; k < strip.width; k++)
            sum[k] = 0;
        for (int64_t i = 0, places; i < lines->size; i += places) {
            places = cpu_smaller(strip.places, lines->size - i);
            const int64_t place = backwards ? lines->size - i - places : i;
            const int64_t at = strip.first + place * lines->inner, count = places * strip.width;
            load(lines, x, at, values, count);
            for (int64_t p = 0; p < places; p++) {
                float *row = values + (backwards ? places - 1 - p : p) * strip.width;
                for (int64_t k = 0; k < strip.width; k++) {
                    sum[k] += (double)row[k];
                    row[k] = (float)sum[k];
                }
            }
            store(lines, y, at, values, count);
        }
    }
}

KERNEL_SIGNATURE(cpu, cumsum) {
    (void)error;
    const Lines lines = lines_of(device, call, &call->input[0], call->attr->line.dim);
    run(&lines, cumsum_task, 2 * CPU_STREAM);
    return true;
}

static void prod_task(void *context, int64_t begin, int64_t end, int thread) {
    (void)thread;
    const Lines *lines = context;
    const View *x = &lines->call->input[0], *y = &lines->call->output[0];
    _Alignas(64) float values[CPU_BLOCK];
    double product[CPU_BLOCK];
    EACH_STRIP(lines, strip, begin, end) {
        for (int64_t k = 0; k < strip.width; k++)
            product[k] = 1;
        for (int64_t i = 0, places; i < lines->size; i += places) {
            places = cpu_smaller(strip.places, lines->size - i);
            load(lines, x, strip.first + i * lines->inner, values, places * strip.width);
            for (int64_t p = 0; p < places; p++)
                for (int64_t k = 0; k < strip.width; k++)
                    product[k] *= (double)values[p * strip.width + k];
        }
        for (int64_t k = 0; k < strip.width; k++)
            values[k] = (float)product[k];
        store(lines, y, strip.column, values, strip.width);
    }
}

KERNEL_SIGNATURE(cpu, prod) {
    (void)error;
    const Lines lines = lines_of(device, call, &call->input[0], call->attr->line.dim);
    run(&lines, prod_task, CPU_STREAM);
    return true;
}

static void prod_backward_task(void *context, int64_t begin, int64_t end, int thread) {
    (void)thread;
    const Lines *lines = context;
    const View *dy = &lines->call->input[0], *x = &lines->call->input[1];
    const View *dx = &lines->call->output[0];
    _Alignas(64) float values[CPU_BLOCK], gradient[CPU_BLOCK];
    double product[CPU_BLOCK];
    EACH_STRIP(lines, strip, begin, end) {
        for (int64_t k = 0; k < strip.width; k++)
            product[k] = 1;
        for (int64_t i = 0; i < lines->size; i++) {
            int64_t at = strip.first + i * lines->inner;
            load(lines, x, at, values, strip.width);
            for (int64_t k = 0; k < strip.width; k++) {
                lines->before[at + k] = (float)product[k];
                product[k] *= (double)values[k];
            }
        }
        load(lines, dy, strip.column, gradient, strip.width);
        for (int64_t k = 0; k < strip.width; k++)
            product[k] = 1;
        for (int64_t i = lines->size - 1; i >= 0; i--) {
            int64_t at = strip.first + i * lines->inner;
            float *before = lines->before + at;
            load(lines, x, at, values, strip.width);
            for (int64_t k = 0; k < strip.width; k++) {
                before[k] = (float)((double)gradient[k] * ((double)before[k] * product[k]));
                product[k] *= (double)values[k];
            }
            if (dx->format != FORMAT_FP32)
                store(lines, dx, at, before, strip.width);
        }
    }
}

KERNEL_SIGNATURE(cpu, prod_backward) {
    const View *x = &call->input[1], *dx = &call->output[0];
    Lines lines = lines_of(device, call, x, call->attr->line.dim);
    size_t bytes = (size_t)(view_count(x) + 1) * sizeof *lines.before;
    lines.before = dx->format == FORMAT_FP32 ? dx->data : device_workspace(device, bytes, error);
    if (!lines.before)
        return false;
    run(&lines, prod_backward_task, 4 * CPU_STREAM);
    return true;
}

// ---- a dimension drawn anew ---------------------------------------------------------------------

// Rows of the result, each `inner` numbers: element i % count of outer index i / count.
static void resample_task(void *context, int64_t begin, int64_t end, int thread) {
    (void)thread;
    const Lines *lines = context;
    const View *x = &lines->call->input[0], *y = &lines->call->output[0];
    const ResampleAttr *attr = &lines->call->attr->resample;
    const int64_t inner = lines->inner, bytes = (int64_t)format_table[y->format].bytes;
    _Alignas(64) float values[CPU_BLOCK], sum[CPU_BLOCK];
    for (int64_t row = begin; row < end; row++) {
        const ResampleTaps taps = resample_taps(attr, row % attr->count);
        const int64_t first = (row / attr->count * attr->size + taps.first) * inner;
        if (taps.count == 1 && x->format == y->format) {
            memcpy(cpu_at_mutable(y, row * inner), cpu_at(x, first), (size_t)(inner * bytes));
            continue;
        }
        CPU_EACH_BLOCK(at, size, 0, inner) {
            for (int64_t k = 0; k < taps.count; k++) {
                int64_t part = 1, whole = 1;
                (void)resample_share(&taps, taps.first + k, &part, &whole);
                const float share = (float)part / (float)whole;
                load(lines, x, first + k * inner + at, values, size);
                for (int64_t i = 0; i < size; i++)
                    sum[i] = (k ? sum[i] : 0) + share * values[i];
            }
            store(lines, y, row * inner + at, taps.count > 1 ? sum : values, size);
        }
    }
}

static bool resample(Device *device, const KernelCall *call) {
    const View *y = &call->output[0];
    const Lines lines = lines_of(device, call, &call->input[0], call->attr->resample.dim);
    cpu_parallel(device, lines.outer * call->attr->resample.count, 1,
                 (double)view_count(y) * 2 * CPU_STREAM, resample_task, (void *)(uintptr_t)&lines);
    return true;
}

KERNEL_SIGNATURE(cpu, resample) {
    (void)error;
    return resample(device, call);
}
KERNEL_SIGNATURE(cpu, interpolate) {
    (void)error;
    return resample(device, call);
}

// Rows of the input's gradient, each from all rows of the result that it had a share of, in order.
static void resample_backward_task(void *context, int64_t begin, int64_t end, int thread) {
    (void)thread;
    const Lines *lines = context;
    const View *dy = &lines->call->input[0], *dx = &lines->call->output[0];
    const ResampleAttr *attr = &lines->call->attr->resample;
    const int64_t inner = lines->inner;
    _Alignas(64) float values[CPU_BLOCK], sum[CPU_BLOCK];
    for (int64_t row = begin; row < end; row++) {
        const int64_t place = row % attr->size, base = row / attr->size * attr->count;
        CPU_EACH_BLOCK(at, size, 0, inner) {
            memset(sum, 0, sizeof sum);
            for (int number = 0; number < RESAMPLE_RANGES; number++) {
                const ResampleRange range = resample_reach(attr, place, number);
                for (int64_t from = range.first; from < range.end; from++) {
                    const ResampleTaps taps = resample_taps(attr, from);
                    int64_t part, whole;
                    if (!resample_share(&taps, place, &part, &whole))
                        continue;
                    const float share = (float)part / (float)whole;
                    load(lines, dy, (base + from) * inner + at, values, size);
                    for (int64_t i = 0; i < size; i++)
                        sum[i] += share * values[i];
                }
            }
            store(lines, dx, row * inner + at, sum, size);
        }
    }
}

KERNEL_SIGNATURE(cpu, resample_backward) {
    (void)error;
    const View *dy = &call->input[0];
    const Lines lines = lines_of(device, call, dy, call->attr->resample.dim);
    cpu_parallel(device, lines.outer * call->attr->resample.size, 1,
                 (double)view_count(dy) * 3 * CPU_STREAM, resample_backward_task,
                 (void *)(uintptr_t)&lines);
    return true;
}
