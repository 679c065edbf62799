// What runs over all tensors of a model: they are cut into pieces of a fixed size and these shared
// out, so that many small tensors cost one fork, and none if there is little to do.
#include <math.h>
#include <string.h>

#include "cpu/cpu.h"
#include "cpu/kernels.h"
#include "cpu/multi.h"

Pieces pieces_of(void *memory, int items) {
    return (Pieces){.first = memory, .items = items};
}

void pieces_add(Pieces *pieces, int item, int64_t elements) {
    pieces->first[item] = pieces->count;
    pieces->count += (elements + PIECE_ELEMENTS - 1) / PIECE_ELEMENTS;
    pieces->first[item + 1] = pieces->count;
    pieces->elements += elements;
}

int pieces_item(const Pieces *pieces, int64_t piece) {
    int low = 0, high = pieces->items - 1;
    while (low < high) {
        int middle = (low + high + 1) / 2;
        if (pieces->first[middle] <= piece)
            low = middle;
        else
            high = middle - 1;
    }
    while (pieces->first[low + 1] <= piece) // tensors without elements have no piece
        low++;
    return low;
}

// ---- the scan -----------------------------------------------------------------------------------

enum { CUT_ENDS = 2 };

// What a worker found: in all, and in the tensors that it shares with its neighbours.
typedef struct ScanWorker {
    CpuScan scan;
    uint64_t count;
    int cut_item[CUT_ENDS]; // -1: none
    GradStats cut[CUT_ENDS];
    GradStats unwanted; // of tensors whose statistics nobody asked for
} ScanWorker;

typedef struct Scan {
    const CpuScanTable *table;
    const ScanItem *items;
    Pieces pieces;
    ScanWorker *workers;
    float inverse;
} Scan;

static void scan_task(void *context, int64_t begin, int64_t end, int thread) {
    const Scan *work = context;
    ScanWorker *worker = &work->workers[thread];
    int cuts = 0;
    for (int64_t piece = begin; piece < end;) {
        int item = pieces_item(&work->pieces, piece);
        const ScanItem *tensor = &work->items[item];
        int64_t first = work->pieces.first[item];
        int64_t last = cpu_smaller(work->pieces.first[item + 1], end);
        bool cut = piece > first || last < work->pieces.first[item + 1];
        int64_t from = (piece - first) * PIECE_ELEMENTS;
        int64_t to = cpu_smaller((last - first) * PIECE_ELEMENTS, view_count(&tensor->gradient));
        GradStats *stats = cut ? &worker->cut[cuts] : tensor->stats;
        if (cut)
            worker->cut_item[cuts++] = item;
        if (!stats)
            stats = &worker->unwanted;
        if (cut || !tensor->stats || !tensor->adds)
            memset(stats, 0, sizeof *stats);
        worker->scan.stats = stats;
        worker->scan.round_to = tensor->round_to;
        worker->scan.inverse = work->inverse;
        work->table->scan((float *)tensor->gradient.data + from, to - from, &worker->scan);
        worker->count += (uint64_t)(to - from);
        piece = last;
    }
}

static void stats_add(GradStats *sum, const GradStats *part) {
#define COUNT(name) sum->name += part->name;
#define SUM(name)   sum->name += part->name;
#define MOST(name)  sum->name = part->name > sum->name ? part->name : sum->name;
#include "number/statistics.def"
    for (int i = 0; i < EXPONENT_BINS; i++)
        sum->exponents[i] += part->exponents[i];
}

static void scan_gather(const Scan *work, int workers, StepFlags *flags) {
    int previous = -1;
    for (int i = 0; i < workers; i++) {
        const ScanWorker *worker = &work->workers[i];
        flags->found_inf |= worker->scan.found_inf;
        flags->norm_squared += worker->scan.stored_squares;
        flags->sum += worker->scan.stored_sum;
        flags->count += worker->count - worker->scan.not_finite;
        if (worker->scan.stored_largest > flags->largest)
            flags->largest = worker->scan.stored_largest;
        for (int k = 0; k < CUT_ENDS; k++) {
            int item = worker->cut_item[k];
            if (item < 0 || !work->items[item].stats)
                continue;
            if (item != previous && !work->items[item].adds)
                memset(work->items[item].stats, 0, sizeof(GradStats));
            stats_add(work->items[item].stats, &worker->cut[k]);
            previous = item;
        }
    }
}

static bool cpu_scan(Device *device, ScanPlan *plan, const ScaleState *scale, StepFlags *flags,
                     Error *error) {
    const ScanItem *items = plan->items;
    int count = plan->count;
    size_t pieces_bytes = cpu_line(pieces_bytes_of(count));
    char *memory = device_workspace(
        device, pieces_bytes + (size_t)device->threads * sizeof(ScanWorker), error);
    if (!memory)
        return false;
    Scan work = {.table = cpu_simd(device)->scan,
                 .items = items,
                 .pieces = pieces_of(memory, count),
                 .workers = (ScanWorker *)(void *)(memory + pieces_bytes),
                 .inverse = scale ? (float)(1.0 / (double)scale->scale) : 1};
    for (int i = 0; i < count; i++) {
        int64_t elements = view_count(&items[i].gradient);
        pieces_add(&work.pieces, i, elements);
        if (elements == 0 && items[i].stats && !items[i].adds)
            memset(items[i].stats, 0, sizeof(GradStats));
    }
    double cost = (double)work.pieces.elements * CPU_STREAM * 1.5;
    int workers = cpu_workers(device, cost);
    for (int i = 0; i < workers; i++) {
        work.workers[i].scan = (CpuScan){0};
        work.workers[i].count = 0;
        work.workers[i].cut_item[0] = work.workers[i].cut_item[1] = -1;
    }
    cpu_parallel(device, work.pieces.count, 1, cost, scan_task, &work);
    *flags = (StepFlags){.clip = 1};
    scan_gather(&work, workers, flags);
    return true;
}

// ---- clipping, the scale, and what is taken back ------------------------------------------------

static bool cpu_clip_norm(Device *device, double limit, StepFlags *flags, Error *error) {
    (void)device, (void)error;
    double norm = flags->found_inf ? (double)INFINITY : sqrt(flags->norm_squared);
    flags->norm = (float)norm;
    flags->clip = norm > limit && isfinite(norm) ? (float)(limit / norm) : 1;
    return true;
}

static bool cpu_clip_value(Device *device, ScanPlan *plan, float limit, Error *error) {
    (void)error;
    for (int k = 0; k < plan->count; k++) {
        const View *gradient = &plan->items[k].gradient;
        Result result = result_of(device, gradient);
        int64_t elements = view_count(gradient);
        float buffer[CPU_BLOCK];
        CPU_EACH_BLOCK(at, size, 0, elements) {
            float *values = result_begin(&result, at, buffer);
            if (values == buffer)
                cpu_load(device, result.format, cpu_at(gradient, at), buffer, size);
            cpu_simd(device)->multi->clip_value(values, size, limit);
            result_end(&result, at, size, buffer);
        }
    }
    return true;
}

typedef struct Multiply {
    const CpuMulti *table;
    const ScanItem *items;
    Pieces pieces;
    float factor;
} Multiply;

static void multiply_task(void *context, int64_t begin, int64_t end, int thread) {
    (void)thread;
    const Multiply *work = context;
    for (int64_t piece = begin; piece < end; piece++) {
        int item = pieces_item(&work->pieces, piece);
        const View *gradient = &work->items[item].gradient;
        int64_t at = (piece - work->pieces.first[item]) * PIECE_ELEMENTS;
        int64_t last = cpu_smaller(at + PIECE_ELEMENTS, view_count(gradient));
        work->table->multiply((float *)gradient->data + at, last - at, work->factor);
    }
}

static bool cpu_multiply(Device *device, ScanPlan *plan, const float *factor, Error *error) {
    if (*factor == 1) // mostly nothing is clipped
        return true;
    void *memory = device_workspace(device, pieces_bytes_of(plan->count), error);
    if (!memory)
        return false;
    Multiply work = {.table = cpu_simd(device)->multi,
                     .items = plan->items,
                     .pieces = pieces_of(memory, plan->count),
                     .factor = *factor};
    for (int i = 0; i < plan->count; i++)
        pieces_add(&work.pieces, i, view_count(&plan->items[i].gradient));
    cpu_parallel(device, work.pieces.count, 1, (double)work.pieces.elements * CPU_STREAM,
                 multiply_task, &work);
    return true;
}

static bool cpu_scale_update(Device *device, const ScaleRule *rule, ScaleState *state,
                             const StepFlags *const *flags, int count, Error *error) {
    (void)device, (void)error;
    step_flags_move_scale(flags, count, rule, state);
    return true;
}

static bool cpu_restore(Device *device, PairPlan *plan, const StepFlags *flags, Error *error) {
    if (!flags->found_inf)
        return true;
    for (int k = 0; k < plan->count; k++)
        if (!cpu_cast_view(device, &plan->items[k].source, &plan->items[k].target, error))
            return false;
    return true;
}

typedef struct Average {
    const Device *device;
    const ViewPair *items; // the average, and what goes into it
    Pieces pieces;
    float decay, rest;
} Average;

static void average_task(void *context, int64_t begin, int64_t end, int thread) {
    (void)thread;
    const Average *work = context;
    for (int64_t piece = begin; piece < end; piece++) {
        int item = pieces_item(&work->pieces, piece);
        const View *mean = &work->items[item].target, *parameter = &work->items[item].source;
        int64_t at = (piece - work->pieces.first[item]) * PIECE_ELEMENTS;
        int64_t last = cpu_smaller(at + PIECE_ELEMENTS, view_count(mean));
        Result result = result_of(work->device, mean);
        Operand operand = operand_of(work->device, parameter, parameter->ndim, parameter->shape);
        float buffer[CPU_BLOCK], values[CPU_BLOCK];
        for (int64_t size; at < last; at += size) {
            size = cpu_smaller(CPU_BLOCK, last - at);
            float *means = result_begin(&result, at, buffer);
            if (means == buffer)
                cpu_load(work->device, mean->format, cpu_at(mean, at), buffer, size);
            cpu_simd(work->device)
                ->multi->average(means, operand_read(&operand, at, size, values), size, work->decay,
                                 work->rest);
            result_end(&result, at, size, buffer);
        }
    }
}

static bool cpu_average(Device *device, PairPlan *plan, double decay, const StepFlags *flags,
                        Error *error) {
    if (flags && flags->found_inf)
        return true;
    void *memory = device_workspace(device, pieces_bytes_of(plan->count), error);
    if (!memory)
        return false;
    Average work = {.device = device,
                    .items = plan->items,
                    .pieces = pieces_of(memory, plan->count),
                    .decay = (float)decay,
                    .rest = (float)(1 - decay)};
    for (int i = 0; i < plan->count; i++)
        pieces_add(&work.pieces, i, view_count(&plan->items[i].target));
    cpu_parallel(device, work.pieces.count, 1, (double)work.pieces.elements * CPU_STREAM,
                 average_task, &work);
    return true;
}

// ---- the largest --------------------------------------------------------------------------------

typedef struct Largest {
    const CpuScanTable *table;
    const View *view;
    uint32_t *found; // [workers], bits without the sign
} Largest;

static void largest_task(void *context, int64_t begin, int64_t end, int thread) {
    const Largest *work = context;
    const void *from = cpu_at(work->view, begin);
    work->found[thread] = format_table[work->view->format].bytes == 2
                              ? work->table->largest_of_16(from, end - begin)
                              : work->table->largest_of_32(from, end - begin);
}

// In formats that kernels do not compute in, which are few.
static double largest_plainly(const View *view) {
    double largest = 0;
    for (int64_t i = 0; i < view_count(view); i++) {
        const double value = fabs(format_load(view->format, cpu_at(view, i)));
        if (isnan(value))
            return value;
        largest = fmax(largest, value);
    }
    return largest;
}

static double cpu_largest(Device *device, const View *view) {
    const double of_a_byte = 0.016; // nanoseconds: it lies in the nearest caches mostly
    const size_t bytes = format_table[view->format].bytes;
    const bool is_plain =
        view->format == FORMAT_FP32 || view->format == FORMAT_FP16 || view->format == FORMAT_BF16;
    if (!is_plain)
        return largest_plainly(view);
    uint32_t found[CPU_MOST_THREADS], largest = 0;
    Largest work = {cpu_simd(device)->scan, view, found};
    const int64_t count = view_count(view);
    const double cost = (double)count * (double)bytes * of_a_byte;
    const int workers = cpu_workers(device, cost);
    for (int i = 0; i < workers; i++)
        found[i] = 0;
    cpu_parallel(device, count, 64, cost, largest_task, &work);
    for (int i = 0; i < workers; i++)
        largest = found[i] > largest ? found[i] : largest;
    const uint16_t half = (uint16_t)largest;
    return bytes == 2 ? format_load(view->format, &half) : format_load(view->format, &largest);
}

const MultiKernels cpu_multi_kernels = {
    .scan = cpu_scan,
    .clip_norm = cpu_clip_norm,
    .clip_value = cpu_clip_value,
    .multiply = cpu_multiply,
    .update = cpu_update,
    .scale_update = cpu_scale_update,
    .restore = cpu_restore,
    .average = cpu_average,
    .largest = cpu_largest,
};
