// Convolution whose weights are infinite or NaN. What lies in the padding is not there to be
// multiplied, but the quick ways put zeros in its place, and 0 times infinity is NaN. Here the
// output is cut into bands along both dimensions, in each of which all windows have the same taps
// inside of the image; where two bands cross, a smaller kernel gives the same sums without padding.
#include <string.h>

#include "cpu/conv.h"
#include "kernel/allocator.h"

// ---- what is not finite -------------------------------------------------------------------------

typedef struct FiniteTask {
    const View *view;
    _Atomic bool all_finite;
} FiniteTask;

// Whether adding one to an exponent that is full has carried, in any of them.
static bool finite_words(const uint32_t *bits, int64_t count) {
    uint32_t found = 0;
#pragma omp simd reduction(| : found)
    for (int64_t i = 0; i < count; i++)
        found |= (bits[i] & 0x7F800000U) + 0x00800000U;
    return !(found >> 31);
}

static bool finite_halves(const uint16_t *bits, int64_t count, uint16_t exponent, uint16_t one) {
    uint16_t found = 0;
#pragma omp simd reduction(| : found)
    for (int64_t i = 0; i < count; i++)
        found |= (uint16_t)((bits[i] & exponent) + one);
    return !(found >> 15);
}

static void finite_range(void *context, int64_t begin, int64_t end, int thread) {
    FiniteTask *task = context;
    const void *at = cpu_at(task->view, begin);
    bool finite = task->view->format == FORMAT_FP32 ? finite_words(at, end - begin)
                  : task->view->format == FORMAT_BF16
                      ? finite_halves(at, end - begin, 0x7F80, 0x80)
                      : finite_halves(at, end - begin, 0x7C00, 0x400);
    (void)thread;
    if (!finite)
        task->all_finite = false;
}

bool conv_is_finite(const Device *device, const View *view) {
    FiniteTask task = {view, true};
    int64_t count = view_count(view);
    cpu_parallel(device, count, CPU_BLOCK, (double)count * CPU_STREAM / 4, finite_range, &task);
    return task.all_finite;
}

bool conv_pads_special(const Device *device, const ConvProblem *problem, const ConvArrays *arrays) {
    return problem->pass == CONV_FORWARD && (problem->padding[0] > 0 || problem->padding[1] > 0) &&
           !conv_is_finite(device, &arrays->weight);
}

// ---- bands --------------------------------------------------------------------------------------

// Outputs first .. first + count - 1 along one dimension see the taps begin .. end - 1.
typedef struct Band {
    int64_t first, count, begin, end;
} Band;

static void see_taps(const ConvProblem *problem, int dim, int64_t out, Band *band) {
    int64_t place = out * problem->stride[dim] - problem->padding[dim];
    int64_t step = problem->dilation[dim], last = problem->size[dim] - 1 - place;
    band->begin = place < 0 ? cpu_smaller((-place + step - 1) / step, problem->kernel[dim]) : 0;
    band->end = last < 0 ? 0 : cpu_smaller(last / step + 1, problem->kernel[dim]);
    if (band->end <= band->begin) // all of it in the padding
        band->begin = band->end = 0;
}

static Band band_from(const ConvProblem *problem, int dim, int64_t first) {
    Band band = {.first = first}, next = {0};
    see_taps(problem, dim, first, &band);
    do {
        band.count++;
        if (first + band.count < problem->out_size[dim])
            see_taps(problem, dim, first + band.count, &next);
    } while (first + band.count < problem->out_size[dim] && next.begin == band.begin &&
             next.end == band.end);
    return band;
}

// The part of the problem where two bands cross. A padding below 0 is where the image begins.
static ConvProblem part_of(const ConvProblem *problem, const Band band[2]) {
    ConvProblem part = *problem;
    for (int i = 0; i < 2; i++) {
        part.out_size[i] = band[i].count;
        part.kernel[i] = band[i].end - band[i].begin;
        part.padding[i] = problem->padding[i] - band[i].first * problem->stride[i] -
                          band[i].begin * problem->dilation[i];
    }
    return part;
}

static void take_weights(const ConvProblem *problem, const Band band[2], const View *from,
                         const View *to) {
    const int64_t channels = problem->channels / problem->groups, width = problem->kernel[1];
    const int64_t run = (band[1].end - band[1].begin) * channels;
    int64_t at = 0;
    for (int64_t filter = 0; filter < problem->filters; filter++)
        for (int64_t kernel = band[0].begin; kernel < band[0].end; kernel++, at += run) {
            int64_t row = (filter * problem->kernel[0] + kernel) * width;
            memcpy(cpu_at_mutable(to, at), cpu_at(from, (row + band[1].begin) * channels),
                   (size_t)run * format_table[from->format].bytes);
        }
}

static void put_outputs(const ConvProblem *problem, const Band band[2], const View *from,
                        const View *to) {
    const int64_t run = band[1].count * problem->filters, width = problem->out_size[1];
    int64_t at = 0;
    for (int64_t image = 0; image < problem->images; image++)
        for (int64_t line = 0; line < band[0].count; line++, at += run) {
            int64_t row = (image * problem->out_size[0] + band[0].first + line) * width;
            memcpy(cpu_at_mutable(to, (row + band[1].first) * problem->filters), cpu_at(from, at),
                   (size_t)run * format_table[to->format].bytes);
        }
}

static bool run_crossing(Device *device, const ConvProblem *problem, const Band band[2],
                         const ConvArrays *arrays, char *weights, char *outputs, Error *error) {
    ConvProblem part = part_of(problem, band);
    const int64_t kernel[] = {part.filters, part.kernel[0], part.kernel[1],
                              part.channels / part.groups};
    const int64_t out[] = {part.images, part.out_size[0], part.out_size[1], part.filters};
    ConvArrays own = *arrays;
    own.weight = view_dense(weights, arrays->weight.format, 4, kernel);
    own.y = view_dense(outputs, arrays->y.format, 4, out);
    take_weights(problem, band, &arrays->weight, &own.weight);
    if (!conv_columns_run(device, &part, &own, error))
        return false;
    put_outputs(problem, band, &own.y, &arrays->y);
    return true;
}

bool conv_bands_run(Device *device, const ConvProblem *problem, const ConvArrays *arrays,
                    Error *error) {
    const View *weight = &arrays->weight, *y = &arrays->y;
    size_t weight_bytes = cpu_line((size_t)view_count(weight) * format_table[weight->format].bytes);
    size_t bytes = (size_t)view_count(y) * format_table[y->format].bytes;
    char *memory =
        allocator_take(device->allocator, weight_bytes + bytes + 1, MEMORY_WORKSPACE, error);
    if (!memory)
        return false;
    bool done = true;
    Band band[2];
    for (int64_t row = 0; done && row < problem->out_size[0]; row += band[0].count) {
        band[0] = band_from(problem, 0, row);
        for (int64_t at = 0; done && at < problem->out_size[1]; at += band[1].count) {
            band[1] = band_from(problem, 1, at);
            done =
                run_crossing(device, problem, band, arrays, memory, memory + weight_bytes, error);
        }
    }
    allocator_give(device->allocator, memory);
    return done;
}
