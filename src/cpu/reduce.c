// Sums, means and extremes over any dimensions of an array of any strides.
//
// Dimensions are sorted into those that stay and those that are reduced, and joined where they can
// be walked as one. If memory runs along a dimension that stays, whole rows are added up (the
// gradient of a bias); if it runs along one that is reduced, each run is summed by itself.
#include <math.h>
#include <string.h>

#include "cpu/columns.h"
#include "cpu/cpu.h"
#include "cpu/kernels.h"

typedef struct Axes {
    int ndim;
    int64_t shape[VIEW_MAX_DIMS], stride[VIEW_MAX_DIMS];
    int64_t count;
} Axes;

typedef struct Reduction {
    const Device *device;
    const KernelCall *call;
    Axes kept, reduced;
    Columns columns;
    int64_t column; // the first of these
    void *sums;
    double *partial;
} Reduction;

static void axes_add(Axes *axes, int64_t size, int64_t stride) {
    int last = axes->ndim - 1;
    axes->count *= size;
    if (size == 1)
        return;
    if (last >= 0 && axes->stride[last] == stride * size) {
        axes->shape[last] *= size;
        axes->stride[last] = stride;
        return;
    }
    axes->shape[axes->ndim] = size;
    axes->stride[axes->ndim++] = stride;
}

static Reduction reduction_of(const Device *device, const KernelCall *call) {
    const View *x = &call->input[0];
    uint32_t dims = call->attr ? call->attr->reduce.dims : 0;
    Reduction work = {
        .device = device, .call = call, .kept = {.count = 1}, .reduced = {.count = 1}};
    for (int i = 0; i < x->ndim; i++)
        axes_add(dims == 0 || dims >> i & 1 ? &work.reduced : &work.kept, x->shape[i],
                 x->stride[i]);
    return work;
}

// Where element `index` of the axes lies.
static int64_t axes_offset(const Axes *axes, int64_t index) {
    int64_t offset = 0;
    for (int i = axes->ndim - 1; i >= 0; i--) {
        offset += index % axes->shape[i] * axes->stride[i];
        index /= axes->shape[i];
    }
    return offset;
}

// ---- down columns -------------------------------------------------------------------------------

// So many columns are summed together: the sums of many more would take more memory than a batch.
enum { MOST_COLUMNS = 8192 };

// [rows, channels], rows `stride` apart: the plainest and commonest sum.
static bool is_matrix_of_columns(const Reduction *work) {
    return work->reduced.ndim == 1 && work->kept.ndim == 1 && work->kept.stride[0] == 1 &&
           work->reduced.stride[0] >= work->kept.shape[0] &&
           format_trains(work->call->input[0].format);
}

static void columns_task(void *context, int64_t begin, int64_t end, int thread) {
    const Reduction *work = context;
    const View *x = &work->call->input[0];
    ColumnSums sums = columns_sums(&work->columns, work->sums, thread);
    int64_t stride = work->reduced.stride[0] * work->columns.fold;
    cpu_simd(work->device)
        ->columns->sum(x->format, cpu_at(x, begin * stride + work->column), end - begin, stride,
                       work->columns.width, sums.scratch, sums.first);
}

// Work of `cost` in all, shared out alike whichever columns these are.
static void sum_some_columns(Reduction *work, Device *device, double cost, double factor) {
    const int workers = cpu_workers(device, cost);
    View out = work->call->output[0];
    columns_clear(&work->columns, work->sums, workers);
    cpu_parallel(device, work->columns.folded, 1, cost, columns_task, work);
    columns_total(&work->columns, work->sums, workers);
    double *total = columns_sums(&work->columns, work->sums, 0).first;
    for (int64_t i = 0; i < work->columns.channels; i++)
        total[i] *= factor;
    out.data = cpu_at_mutable(&out, work->column);
    columns_store(device, &out, total, work->columns.channels);
}

static bool sum_columns(Reduction *work, Device *device, double factor, Error *error) {
    const int64_t rows = work->reduced.shape[0], channels = work->kept.shape[0];
    const int64_t most = cpu_smaller(channels, MOST_COLUMNS);
    const bool dense = work->reduced.stride[0] == channels && most == channels;
    work->columns = dense ? columns_of(rows, channels) : (Columns){rows, most, 1, most, rows};
    const double cost = (double)(rows * channels) * CPU_STREAM;
    work->sums =
        device_workspace(device, columns_bytes(&work->columns, cpu_workers(device, cost)), error);
    if (!work->sums)
        return false;
    for (; work->column < channels; work->column += most) {
        if (!dense)
            work->columns.channels = work->columns.width =
                cpu_smaller(most, channels - work->column);
        sum_some_columns(work, device, cost, factor);
    }
    return true;
}

// ---- anything else ------------------------------------------------------------------------------

typedef enum ReduceKind { REDUCE_SUM, REDUCE_MAX, REDUCE_MIN } ReduceKind;

static ReduceKind kind_of(OpId op) {
    return op == OP_max ? REDUCE_MAX : op == OP_min ? REDUCE_MIN : REDUCE_SUM;
}

static double kind_start(ReduceKind kind) {
    return kind == REDUCE_SUM ? 0 : kind == REDUCE_MAX ? -(double)INFINITY : (double)INFINITY;
}

static double kind_join(ReduceKind kind, double so_far, double value) {
    if (kind == REDUCE_SUM)
        return so_far + value;
    if (isnan(so_far) || isnan(value))
        return NAN;
    return kind == REDUCE_MAX ? fmax(so_far, value) : fmin(so_far, value);
}

// Elements begin .. end - 1 of the reduced part of one output.
static double reduce_range(const Reduction *work, int64_t base, int64_t begin, int64_t end) {
    const CpuRows *table = cpu_simd(work->device)->rows;
    ReduceKind kind = kind_of(work->call->op);
    const View *x = &work->call->input[0];
    View shifted = *x;
    shifted.data = cpu_at_mutable(x, base);
    shifted.ndim = work->reduced.ndim;
    memcpy(shifted.shape, work->reduced.shape, sizeof shifted.shape);
    memcpy(shifted.stride, work->reduced.stride, sizeof shifted.stride);
    Operand operand = operand_of(work->device, &shifted, shifted.ndim, shifted.shape);
    double result = kind_start(kind);
    _Alignas(64) float buffer[CPU_BLOCK];
    CPU_EACH_BLOCK(at, size, begin, end) {
        const float *block = operand_read(&operand, at, size, buffer);
        float value = kind == REDUCE_SUM   ? table->sum(block, size)
                      : kind == REDUCE_MAX ? table->largest(block, size)
                                           : table->smallest(block, size);
        result = kind_join(kind, result, (double)value);
    }
    return result;
}

static void outputs_task(void *context, int64_t begin, int64_t end, int thread) {
    (void)thread;
    const Reduction *work = context;
    for (int64_t i = begin; i < end; i++)
        work->partial[i] = reduce_range(work, axes_offset(&work->kept, i), 0, work->reduced.count);
}

// One output, or few: the reduced part is cut into pieces of fixed size.
enum { PIECE = 64 * CPU_BLOCK };

static void pieces_task(void *context, int64_t begin, int64_t end, int thread) {
    (void)thread;
    const Reduction *work = context;
    int64_t pieces = (work->reduced.count + PIECE - 1) / PIECE;
    for (int64_t i = begin; i < end; i++) {
        int64_t first = i % pieces * PIECE;
        work->partial[i] = reduce_range(work, axes_offset(&work->kept, i / pieces), first,
                                        cpu_smaller(first + PIECE, work->reduced.count));
    }
}

// Memory runs along a dimension that stays: blocks of outputs, one reduced place after another.
static void across_task(void *context, int64_t begin, int64_t end, int thread) {
    (void)thread;
    const Reduction *work = context;
    ReduceKind kind = kind_of(work->call->op);
    const View *x = &work->call->input[0];
    for (int64_t at = begin, size; at < end; at += size) {
        int last = work->kept.ndim - 1;
        int64_t run = work->kept.shape[last], within = at % run;
        size = cpu_smaller(cpu_smaller(CPU_BLOCK, run - within), end - at);
        double *out = work->partial + at;
        for (int64_t i = 0; i < size; i++)
            out[i] = kind_start(kind);
        int64_t base = axes_offset(&work->kept, at);
        _Alignas(64) float buffer[CPU_BLOCK];
        for (int64_t j = 0; j < work->reduced.count; j++) {
            const void *source = cpu_at(x, base + axes_offset(&work->reduced, j));
            const float *value = source;
            if (x->format != FORMAT_FP32) {
                cpu_load(work->device, x->format, source, buffer, size);
                value = buffer;
            }
            if (kind == REDUCE_SUM)
                for (int64_t i = 0; i < size; i++)
                    out[i] += (double)value[i];
            else
                for (int64_t i = 0; i < size; i++)
                    out[i] = kind_join(kind, out[i], (double)value[i]);
        }
    }
}

static bool reduce(Device *device, const KernelCall *call, Error *error) {
    Reduction work = reduction_of(device, call);
    double factor = call->op == OP_mean ? 1 / (double)work.reduced.count : 1;
    bool sums = kind_of(call->op) == REDUCE_SUM;
    if (sums && is_matrix_of_columns(&work))
        return sum_columns(&work, device, factor, error);
    int64_t outputs = work.kept.count, pieces = (work.reduced.count + PIECE - 1) / PIECE;
    bool across = work.kept.ndim > 0 && work.kept.stride[work.kept.ndim - 1] == 1;
    bool cut = !across && pieces > 1 && outputs < 64;
    size_t numbers = (size_t)outputs * (size_t)(cut ? pieces : 1);
    work.partial = device_workspace(device, (numbers + 1) * sizeof(double), error);
    if (!work.partial)
        return false;
    double cost = (double)view_count(&call->input[0]) * CPU_STREAM;
    cpu_parallel(device, (int64_t)numbers, 1, cost,
                 across ? across_task : (cut ? pieces_task : outputs_task), &work);
    for (int64_t i = 0; i < outputs; i++) {
        double value = work.partial[cut ? i * pieces : i];
        for (int64_t j = 1; cut && j < pieces; j++)
            value = kind_join(kind_of(call->op), value, work.partial[i * pieces + j]);
        work.partial[i] = value * factor;
    }
    columns_store(device, &call->output[0], work.partial, outputs);
    return true;
}

KERNEL_SIGNATURE(cpu, sum) {
    return reduce(device, call, error);
}
KERNEL_SIGNATURE(cpu, mean) {
    return reduce(device, call, error);
}
KERNEL_SIGNATURE(cpu, max) {
    return reduce(device, call, error);
}
KERNEL_SIGNATURE(cpu, min) {
    return reduce(device, call, error);
}
