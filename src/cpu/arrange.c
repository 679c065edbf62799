// Selection and arrangement: rows by index, joining, padding. Values move, and are rounded only
// where the format changes.
#include <string.h>

#include "cpu/cpu.h"
#include "cpu/kernels.h"

// Moves dense elements from one format to another, through fp32 where they differ.
static void move(const Device *device, Format from, const void *source, Format to, void *target,
                 int64_t count) {
    if (from == to) {
        memcpy(target, source, (size_t)count * format_table[to].bytes);
        return;
    }
    _Alignas(64) float buffer[CPU_BLOCK];
    const char *in = source;
    char *out = target;
    CPU_EACH_BLOCK(at, size, 0, count) {
        cpu_load(device, from, in + at * (int64_t)format_table[from].bytes, buffer, size);
        cpu_store(device, to, buffer, out + at * (int64_t)format_table[to].bytes, size);
    }
}

// ---- embedding ----------------------------------------------------------------------------------

static bool check_rows(const KernelCall *call, int64_t rows, Error *error) {
    const View *index = &call->input[1];
    const ValueCheck check = value_check(call, FAULT_ROW, rows);
    int64_t count = view_count(index);
    for (int64_t i = 0; i < count; i++) {
        int64_t row = cpu_index(index, i);
        if (!value_passes(&check, row))
            return value_fail(&check, i, row, error);
    }
    return true;
}

typedef struct Embedding {
    const Device *device;
    const KernelCall *call;
    int64_t depth;
} Embedding;

static void embedding_task(void *context, int64_t begin, int64_t end, int thread) {
    (void)thread;
    const Embedding *work = context;
    const View *weight = &work->call->input[0], *y = &work->call->output[0];
    for (int64_t i = begin; i < end; i++) {
        int64_t row = cpu_index(&work->call->input[1], i);
        move(work->device, weight->format, cpu_at(weight, row * work->depth), y->format,
             cpu_at_mutable(y, i * work->depth), work->depth);
    }
}

KERNEL_SIGNATURE(cpu, embedding) {
    const View *weight = &call->input[0], *index = &call->input[1];
    if (!check_rows(call, weight->shape[0], error))
        return false;
    Embedding work = {device, call, weight->shape[1]};
    int64_t count = view_count(index);
    cpu_parallel(device, count, 1, (double)(count * work.depth) * CPU_STREAM, embedding_task,
                 &work);
    return true;
}

// A worker owns some rows of the weight and looks through all indices for them, so that sums are
// taken in the order of the indices whatever the number of threads.
static void embedding_backward_task(void *context, int64_t begin, int64_t end, int thread) {
    (void)thread;
    const Embedding *work = context;
    const View *dy = &work->call->input[0], *index = &work->call->input[1];
    float *dweight = work->call->output[0].data;
    int64_t count = view_count(index), depth = work->depth;
    memset(dweight + begin * depth, 0, (size_t)((end - begin) * depth) * sizeof *dweight);
    const CpuPointwise *table = cpu_simd(work->device)->pointwise;
    _Alignas(64) float buffer[CPU_BLOCK];
    for (int64_t i = 0; i < count; i++) {
        int64_t row = cpu_index(index, i);
        if (row < begin || row >= end)
            continue;
        CPU_EACH_BLOCK(at, size, 0, depth) {
            float *out = dweight + row * depth + at;
            cpu_load(work->device, dy->format, cpu_at(dy, i * depth + at), buffer, size);
            table->binary[OP_add](out, buffer, out, size);
        }
    }
}

KERNEL_SIGNATURE(cpu, embedding_backward) {
    const View *dweight = &call->output[0];
    if (!check_rows(call, dweight->shape[0], error))
        return false;
    Embedding work = {device, call, dweight->shape[1]};
    double cost = (double)(view_count(dweight) + view_count(&call->input[0])) * CPU_STREAM;
    cpu_parallel(device, dweight->shape[0], 1, cost, embedding_backward_task, &work);
    return true;
}

// ---- gather -------------------------------------------------------------------------------------

// The element of `whole` that element i of the index selects; `chosen`, which passed, is its value.
static int64_t selected(const View *index, const View *whole, int dim, int64_t i, int64_t chosen) {
    int64_t element = 0, step = 1, rest = i;
    for (int d = whole->ndim - 1; d >= 0; d--) {
        int64_t at = rest % index->shape[d];
        rest /= index->shape[d];
        element += (d == dim ? chosen : at) * step;
        step *= whole->shape[d];
    }
    return element;
}

KERNEL_SIGNATURE(cpu, gather) {
    const View *x = &call->input[0], *index = &call->input[1], *y = &call->output[0];
    int dim = call->attr->index.dim;
    const ValueCheck check = value_check(call, FAULT_ELEMENT, x->shape[dim]);
    int64_t count = view_count(index);
    for (int64_t i = 0; i < count; i++) {
        int64_t chosen = cpu_index(index, i);
        if (!value_passes(&check, chosen))
            return value_fail(&check, i, chosen, error);
        int64_t from = selected(index, x, dim, i, chosen);
        move(device, x->format, cpu_at(x, from), y->format, cpu_at_mutable(y, i), 1);
    }
    return true;
}

KERNEL_SIGNATURE(cpu, gather_backward) {
    const View *dy = &call->input[0], *index = &call->input[1], *dx = &call->output[0];
    int dim = call->attr->index.dim;
    const ValueCheck check = value_check(call, FAULT_ELEMENT, dx->shape[dim]);
    int64_t count = view_count(index), all = view_count(dx);
    float *sums = dx->data;
    if (dx->format != FORMAT_FP32)
        sums = device_workspace(device, (size_t)(all + 1) * sizeof *sums, error);
    if (!sums)
        return false;
    memset(sums, 0, (size_t)all * sizeof *sums);
    for (int64_t i = 0; i < count; i++) {
        int64_t chosen = cpu_index(index, i);
        if (!value_passes(&check, chosen))
            return value_fail(&check, i, chosen, error);
        int64_t to = selected(index, dx, dim, i, chosen);
        float gradient;
        cpu_load(device, dy->format, cpu_at(dy, i), &gradient, 1);
        sums[to] += gradient;
    }
    if (dx->format != FORMAT_FP32)
        cpu_store(device, dx->format, sums, dx->data, all);
    return true;
}

// ---- cat and pad --------------------------------------------------------------------------------

typedef struct Cat {
    const Device *device;
    const View *x, *y;
    int64_t run, out_run, before; // elements of one outer index: of x, of y; of earlier inputs
} Cat;

static void cat_task(void *context, int64_t begin, int64_t end, int thread) {
    (void)thread;
    const Cat *cat = context;
    for (int64_t i = begin; i < end; i++)
        move(cat->device, cat->x->format, cpu_at(cat->x, i * cat->run), cat->y->format,
             cpu_at_mutable(cat->y, i * cat->out_run + cat->before), cat->run);
}

KERNEL_SIGNATURE(cpu, cat) {
    (void)error;
    const View *y = &call->output[0];
    int dim = call->attr->index.dim;
    int64_t inner = 1, outer = 1, before = 0;
    for (int i = 0; i < y->ndim; i++)
        *(i < dim ? &outer : &inner) *= y->shape[i];
    for (int k = 0; k < call->input_count; k++) {
        const View *x = &call->input[k];
        Cat cat = {.device = device, .x = x, .y = y, .out_run = inner, .before = before};
        cat.run = outer > 0 ? view_count(x) / outer : 0;
        before += cat.run;
        if (cat.run > 0)
            cpu_parallel(device, outer, 1, (double)view_count(x) * CPU_STREAM, cat_task, &cat);
    }
    return true;
}

typedef struct Pad {
    const Device *device;
    const KernelCall *call;
    _Alignas(8) char value[8]; // as it is stored
    size_t bytes;              // of it
    bool is_zero;              // all of these
} Pad;

// A whole run at once: a padding may be most of the output, as in the gradient of a thin slice.
static void fill_run(const Pad *pad, char *out, int64_t count) {
    const size_t size = count > 0 ? (size_t)count * pad->bytes : 0;
    if (pad->is_zero) {
        memset(out, 0, size);
        return;
    }
    for (size_t done = 0, more; done < size; done += more) { // twice as much each time
        more = done == 0 ? pad->bytes : done < size - done ? done : size - done;
        memcpy(out + done, done == 0 ? pad->value : out, more);
    }
}

// Rows of the output: each is all padding, or padding around a row of the input.
static void pad_task(void *context, int64_t begin, int64_t end, int thread) {
    (void)thread;
    const Pad *pad = context;
    const PadAttr *attr = &pad->call->attr->pad;
    const View *x = &pad->call->input[0], *y = &pad->call->output[0];
    int last = y->ndim - 1;
    const int64_t width = y->shape[last], bytes = (int64_t)pad->bytes;
    for (int64_t row = begin; row < end; row++) {
        char *out = cpu_at_mutable(y, row * width);
        int64_t rest = row, source = 0, step = 1;
        bool inside = true;
        for (int d = last - 1; d >= 0; d--) {
            int64_t at = rest % y->shape[d] - attr->before[d];
            rest /= y->shape[d];
            inside = inside && at >= 0 && at < x->shape[d];
            source += at * step;
            step *= x->shape[d];
        }
        int64_t first = inside ? attr->before[last] : width;
        int64_t resume = inside ? first + x->shape[last] : width;
        fill_run(pad, out, first);
        fill_run(pad, out + resume * bytes, width - resume);
        if (inside)
            move(pad->device, x->format, cpu_at(x, source * x->shape[last]), y->format,
                 out + first * bytes, x->shape[last]);
    }
}

KERNEL_SIGNATURE(cpu, pad) {
    (void)error;
    const View *y = &call->output[0];
    int64_t width = y->ndim > 0 ? y->shape[y->ndim - 1] : 0;
    Pad pad = {device, call, {0}, format_table[y->format].bytes, true};
    format_store(y->format, pad.value, call->attr->pad.value, OVERFLOW_SATURATES);
    for (size_t i = 0; i < pad.bytes; i++)
        pad.is_zero = pad.is_zero && pad.value[i] == 0;
    if (width > 0)
        cpu_parallel(device, view_count(y) / width, 1, (double)view_count(y) * CPU_STREAM * 2,
                     pad_task, &pad);
    return true;
}
