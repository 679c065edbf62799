#include "measure/formats.h"

#include <math.h>
#include <stdlib.h>

#include "base/clock.h"
#include "kernel/allocator.h"
#include "measure/trial.h"

enum { MOST_ROUNDS = 11, LEAST_ROUNDS = 3 };

// Each task is doubled from the least size until fp32 takes so long, or it is the most.
static const struct {
    int64_t least, most;
    double seconds;
} size_table[FORMAT_TASKS] = {
    [FORMAT_PRODUCT] = {64, 4096, 2e-3},
    [FORMAT_CONVOLUTION] = {1, 256, 2e-3},
    [FORMAT_STEP] = {1, 512, 30e-3},
};

typedef struct Cell { // one format's trial of one task
    Trial *trial;     // NULL: the device does none
    double seconds[MOST_ROUNDS];
    double estimate;
} Cell;

typedef struct Bench {
    Device *device;
    FormatSpeeds *speeds;
    Cell cells[FORMAT_COUNT][FORMAT_TASKS];
} Bench;

void measure_formats_begin(const Device *device, FormatSpeeds *speeds) {
    *speeds = (FormatSpeeds){0};
    for (int f = 0; f < FORMAT_COUNT; f++) {
        const Format format = (Format)f;
        if (!trial_is_possible(device, FORMAT_PRODUCT, format))
            continue;
        FormatSpeed *row = &speeds->rows[speeds->count++];
        *row = (FormatSpeed){.format = format, .bytes = (double)NAN, .memory = (double)NAN};
        for (int t = 0; t < FORMAT_TASKS; t++)
            row->gain[t] = row->seconds[t] = (double)NAN;
    }
}

// ---- a clock ------------------------------------------------------------------------------------

// What one call takes of so many in a row.
static bool time_calls(Bench *bench, Trial *trial, int64_t calls, double *seconds, Error *error) {
    const double began = clock_seconds();
    for (int64_t i = 0; i < calls; i++)
        if (!trial_do(trial, error))
            return false;
    device_synchronize(bench->device);
    *seconds = (clock_seconds() - began) / (double)calls;
    return device_check(bench->device, error);
}

// The first call prepares what later ones find; where it takes long, it is an estimate too.
static bool warm_up(Bench *bench, Cell *cell, Error *error) {
    const double long_seconds = 0.05;
    return time_calls(bench, cell->trial, 1, &cell->estimate, error) &&
           (cell->estimate > long_seconds ||
            (time_calls(bench, cell->trial, 1, &cell->estimate, error) &&
             time_calls(bench, cell->trial, 1, &cell->estimate, error)));
}

// ---- preparing ----------------------------------------------------------------------------------

static bool find_size(Bench *bench, FormatTask task, Error *error) {
    int64_t size = size_table[task].least;
    for (;; size *= 2) {
        Cell cell = {.trial = trial_new(bench->device, task, FORMAT_FP32, size, error)};
        const bool done = cell.trial && warm_up(bench, &cell, error);
        trial_free(cell.trial);
        if (!done)
            return false;
        if (cell.estimate >= size_table[task].seconds || size >= size_table[task].most)
            break;
    }
    bench->speeds->size[task] = size;
    bench->speeds->flops[task] = trial_flops(task, size);
    return true;
}

static double held(const Bench *bench) {
    const MemoryUse use = allocator_use(bench->device->allocator);
    return (double)(use.total_now - use.now[MEMORY_WORKSPACE]);
}

// Fills a cell; of a training, also what it holds when it is not computing.
static bool prepare_cell(Bench *bench, int row, FormatTask task, Error *error) {
    FormatSpeed *speed = &bench->speeds->rows[row];
    Cell *cell = &bench->cells[row][task];
    if (!trial_is_possible(bench->device, task, speed->format))
        return true;
    const double before = held(bench);
    cell->trial = trial_new(bench->device, task, speed->format, bench->speeds->size[task], error);
    if (!cell->trial || !warm_up(bench, cell, error))
        return false;
    if (task == FORMAT_STEP)
        speed->bytes = held(bench) - before;
    return true;
}

// Adds what a step takes beyond that. By now kernels have the workspace that any of them needs.
static bool add_peak(Bench *bench, int row, Error *error) {
    Cell *cell = &bench->cells[row][FORMAT_STEP];
    Allocator *allocator = bench->device->allocator;
    if (!cell->trial)
        return true;
    const size_t before = allocator_use(allocator).total_now;
    allocator_forget_peaks(allocator);
    if (!time_calls(bench, cell->trial, 1, &cell->estimate, error))
        return false;
    bench->speeds->rows[row].bytes += (double)(allocator_use(allocator).total_peak - before);
    return true;
}

static bool prepare(Bench *bench, Error *error) {
    for (int t = 0; t < FORMAT_TASKS; t++) {
        if (!find_size(bench, (FormatTask)t, error))
            return false;
        for (int row = 0; row < bench->speeds->count; row++)
            if (!prepare_cell(bench, row, (FormatTask)t, error))
                return false;
    }
    for (int row = 0; row < bench->speeds->count; row++)
        if (!add_peak(bench, row, error))
            return false;
    return true;
}

// ---- measuring ----------------------------------------------------------------------------------

// All formats in turn, every second time from the last to the first.
static bool go_round(Bench *bench, int round, double share, Error *error) {
    const int count = bench->speeds->count;
    for (int t = 0; t < FORMAT_TASKS; t++)
        for (int i = 0; i < count; i++) {
            Cell *cell = &bench->cells[round % 2 ? count - 1 - i : i][t];
            if (!cell->trial)
                continue;
            const double calls = share / fmax(cell->estimate, 1e-7);
            if (!time_calls(bench, cell->trial, calls > 1 ? (int64_t)calls : 1,
                            &cell->seconds[round], error))
                return false;
            cell->estimate = fmin(cell->estimate, cell->seconds[round]); // what was disturbed
        }
    return true;
}

static int count_cells(const Bench *bench) {
    int cells = 0;
    for (int row = 0; row < bench->speeds->count; row++)
        for (int t = 0; t < FORMAT_TASKS; t++)
            cells += bench->cells[row][t].trial != NULL;
    return cells;
}

// At least one round; a second and further ones while they fit into the time.
static bool measure(Bench *bench, double seconds, Error *error) {
    const double began = clock_seconds();
    const double share = seconds / MOST_ROUNDS / count_cells(bench);
    int round = 0;
    while (round < MOST_ROUNDS) {
        if (!go_round(bench, round++, share, error))
            return false;
        const double spent = clock_seconds() - began;
        if (spent + spent / round > seconds * (round < LEAST_ROUNDS ? 1.3 : 1))
            break;
    }
    bench->speeds->rounds = round;
    return true;
}

// ---- what came of it ----------------------------------------------------------------------------

static int by_size(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double middle(double *values, int count) {
    qsort(values, (size_t)count, sizeof *values, by_size);
    return (values[(count - 1) / 2] + values[count / 2]) / 2;
}

static void conclude(Bench *bench) {
    const int rounds = bench->speeds->rounds;
    FormatSpeed *rows = bench->speeds->rows;
    for (int row = 0; row < bench->speeds->count; row++) {
        const Trial *product = bench->cells[row][FORMAT_PRODUCT].trial;
        rows[row].memory =
            isnan(rows[row].bytes) ? trial_weight_share(product) : rows[row].bytes / rows[0].bytes;
        for (int t = 0; t < FORMAT_TASKS; t++) {
            const Cell *cell = &bench->cells[row][t], *fp32 = &bench->cells[0][t];
            if (!cell->trial)
                continue;
            double times[MOST_ROUNDS], gains[MOST_ROUNDS];
            for (int i = 0; i < rounds; i++) {
                times[i] = cell->seconds[i];
                gains[i] = fp32->seconds[i] / cell->seconds[i];
            }
            rows[row].seconds[t] = middle(times, rounds);
            rows[row].gain[t] = middle(gains, rounds);
        }
    }
}

bool measure_formats(Device *device, double seconds, FormatSpeeds *speeds, Error *error) {
    Bench *bench = calloc(1, sizeof *bench);
    if (!bench)
        return error_fail(error, ERROR_MEMORY, "no memory for what is measured");
    const double began = clock_seconds();
    *bench = (Bench){.device = device, .speeds = speeds};
    measure_formats_begin(device, speeds);
    const bool done =
        prepare(bench, error) && measure(bench, seconds - (clock_seconds() - began), error);
    if (done)
        conclude(bench);
    for (int row = 0; row < speeds->count; row++)
        for (int t = 0; t < FORMAT_TASKS; t++)
            trial_free(bench->cells[row][t].trial);
    free(bench);
    return done;
}
