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
    float *before;            // of prod_backward: the product of what came before each element
    const ResampleTaps *taps; // of a dimension that is drawn anew: of each element of the result
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

static void fill(double *numbers, int64_t count, double value) {
    for (int64_t k = 0; k < count; k++)
        numbers[k] = value;
}

// Sums of a few places of a strip, one row of `width` behind the other, on top of those before.
static void add_up(float *values, int64_t places, int64_t width, bool backwards, double *sum) {
    if (width == 1) { // in a register
        double one = sum[0];
        for (int64_t p = 0; p < places; p++) {
            float *value = values + (backwards ? places - 1 - p : p);
            one += (double)*value;
            *value = (float)one;
        }
        sum[0] = one;
        return;
    }
    for (int64_t p = 0; p < places; p++) {
        float *row = values + (backwards ? places - 1 - p : p) * width;
        for (int64_t k = 0; k < width; k++) {
            sum[k] += (double)row[k];
            row[k] = (float)sum[k];
        }
    }
}

static void multiply_up(const float *values, int64_t places, int64_t width, double *product) {
    if (width == 1) {
        double one = product[0];
        for (int64_t p = 0; p < places; p++)
            one *= (double)values[p];
        product[0] = one;
        return;
    }
    for (int64_t p = 0; p < places; p++)
        for (int64_t k = 0; k < width; k++)
            product[k] *= (double)values[p * width + k];
}

static void cumsum_task(void *context, int64_t begin, int64_t end, int thread) {
    (void)thread;
    const Lines *lines = context;
    const View *x = &lines->call->input[0], *y = &lines->call->output[0];
    const bool backwards = lines->call->attr->line.backwards;
    _Alignas(64) float values[CPU_BLOCK];
    double sum[CPU_BLOCK];
    EACH_STRIP(lines, strip, begin, end) {
        fill(sum, strip.width, 0);
        for (int64_t i = 0, places; i < lines->size; i += places) {
            places = cpu_smaller(strip.places, lines->size - i);
            const int64_t place = backwards ? lines->size - i - places : i;
            const int64_t at = strip.first + place * lines->inner, count = places * strip.width;
            load(lines, x, at, values, count);
            add_up(values, places, strip.width, backwards, sum);
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
        fill(product, strip.width, 1);
        for (int64_t i = 0, places; i < lines->size; i += places) {
            places = cpu_smaller(strip.places, lines->size - i);
            load(lines, x, strip.first + i * lines->inner, values, places * strip.width);
            multiply_up(values, places, strip.width, product);
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
        fill(product, strip.width, 1);
        for (int64_t i = 0; i < lines->size; i++) {
            int64_t at = strip.first + i * lines->inner;
            load(lines, x, at, values, strip.width);
            for (int64_t k = 0; k < strip.width; k++) {
                lines->before[at + k] = (float)product[k];
                product[k] *= (double)values[k];
            }
        }
        load(lines, dy, strip.column, gradient, strip.width);
        fill(product, strip.width, 1);
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

// Elements of a dense view as fp32, where they lie if that will do.
static const float *numbers(const Lines *lines, const View *x, int64_t at, int64_t count,
                            float *buffer) {
    if (x->format == FORMAT_FP32)
        return (const float *)x->data + at;
    load(lines, x, at, buffer, count);
    return buffer;
}

static void add_share(float *restrict sum, const float *restrict x, int64_t count, float share) {
    for (int64_t i = 0; i < count; i++)
        sum[i] += share * x[i];
}

static float share_at(const ResampleTaps *taps, int64_t place) {
    int64_t part = 0, whole = 1;
    (void)resample_share(taps, place, &part, &whole);
    return (float)part / (float)whole;
}

// A row of the result, `inner` numbers: the sum of rows of the input in their shares.
static void draw_row(const Lines *lines, const ResampleTaps *taps, int64_t from, int64_t to) {
    const View *x = &lines->call->input[0], *y = &lines->call->output[0];
    const Result result = result_of(lines->device, y);
    const int64_t inner = lines->inner;
    _Alignas(64) float values[CPU_BLOCK], sums[CPU_BLOCK];
    CPU_EACH_BLOCK(at, size, 0, inner) {
        float *sum = result_begin(&result, to + at, sums);
        const float first = share_at(taps, taps->first);
        const float *row = numbers(lines, x, from + at, size, values);
        for (int64_t i = 0; i < size; i++)
            sum[i] = first * row[i];
        for (int64_t k = 1; k < taps->count; k++)
            add_share(sum, numbers(lines, x, from + k * inner + at, size, values), size,
                      share_at(taps, taps->first + k));
        result_end(&result, to + at, size, sum);
    }
}

// Rows of the result: element row % count of outer index row / count.
static void resample_task(void *context, int64_t begin, int64_t end, int thread) {
    (void)thread;
    const Lines *lines = context;
    const View *x = &lines->call->input[0], *y = &lines->call->output[0];
    const ResampleAttr *attr = &lines->call->attr->resample;
    const int64_t inner = lines->inner, bytes = (int64_t)format_table[y->format].bytes;
    int64_t place = begin % attr->count, outer = begin / attr->count;
    for (int64_t row = begin; row < end; row++) {
        const ResampleTaps *taps = &lines->taps[place];
        const int64_t from = (outer * attr->size + taps->first) * inner;
        if (taps->count == 1 && x->format == y->format)
            memcpy(cpu_at_mutable(y, row * inner), cpu_at(x, from), (size_t)(inner * bytes));
        else
            draw_row(lines, taps, from, row * inner);
        if (++place == attr->count) {
            place = 0;
            outer++;
        }
    }
}

// The taps of every element of the result: they are the same for all lines.
static const ResampleTaps *taps_of(Device *device, const ResampleAttr *attr, Error *error) {
    ResampleTaps *taps = device_workspace(device, (size_t)(attr->count + 1) * sizeof *taps, error);
    for (int64_t i = 0; taps && i < attr->count; i++)
        taps[i] = resample_taps(attr, i);
    return taps;
}

static bool resample(Device *device, const KernelCall *call, Error *error) {
    const ResampleAttr *attr = &call->attr->resample;
    Lines lines = lines_of(device, call, &call->input[0], attr->dim);
    if (!(lines.taps = taps_of(device, attr, error)))
        return false;
    cpu_parallel(device, lines.outer * attr->count, 1,
                 (double)view_count(&call->output[0]) * 2 * CPU_STREAM, resample_task, &lines);
    return true;
}

KERNEL_SIGNATURE(cpu, resample) {
    return resample(device, call, error);
}
KERNEL_SIGNATURE(cpu, interpolate) {
    return resample(device, call, error);
}

// A row of the input's gradient, from all rows of the result that it had a share of, in order.
static void draw_back(const Lines *lines, int64_t place, int64_t from, int64_t to) {
    const View *dy = &lines->call->input[0];
    const ResampleAttr *attr = &lines->call->attr->resample;
    const Result result = result_of(lines->device, &lines->call->output[0]);
    const int64_t inner = lines->inner;
    _Alignas(64) float values[CPU_BLOCK], sums[CPU_BLOCK];
    CPU_EACH_BLOCK(at, size, 0, inner) {
        float *sum = result_begin(&result, to + at, sums);
        memset(sum, 0, (size_t)size * sizeof *sum);
        for (int number = 0; number < RESAMPLE_RANGES; number++) {
            const ResampleRange range = resample_reach(attr, place, number);
            for (int64_t k = range.first; k < range.end; k++) {
                const ResampleTaps *taps = &lines->taps[k];
                if (place >= taps->first && place < taps->first + taps->count)
                    add_share(sum, numbers(lines, dy, from + k * inner + at, size, values), size,
                              share_at(taps, place));
            }
        }
        result_end(&result, to + at, size, sum);
    }
}

static void resample_backward_task(void *context, int64_t begin, int64_t end, int thread) {
    (void)thread;
    const Lines *lines = context;
    const ResampleAttr *attr = &lines->call->attr->resample;
    for (int64_t row = begin; row < end; row++)
        draw_back(lines, row % attr->size, row / attr->size * attr->count * lines->inner,
                  row * lines->inner);
}

KERNEL_SIGNATURE(cpu, resample_backward) {
    const View *dy = &call->input[0];
    const ResampleAttr *attr = &call->attr->resample;
    Lines lines = lines_of(device, call, dy, attr->dim);
    if (!(lines.taps = taps_of(device, attr, error)))
        return false;
    cpu_parallel(device, lines.outer * attr->size, 1, (double)view_count(dy) * 3 * CPU_STREAM,
                 resample_backward_task, &lines);
    return true;
}
