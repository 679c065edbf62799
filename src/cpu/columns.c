#include "cpu/columns.h"

#include <string.h>

Columns columns_of(int64_t rows, int64_t channels) {
    enum { LONG_ENOUGH = 128 };
    Columns columns = {.rows = rows, .channels = channels, .fold = 1};
    while (channels > 0 && columns.fold * channels < LONG_ENOUGH && rows > 0 &&
           rows % (2 * columns.fold) == 0)
        columns.fold *= 2;
    columns.width = channels * columns.fold;
    columns.folded = rows / columns.fold;
    return columns;
}

static size_t worker_bytes(const Columns *columns) {
    size_t width = (size_t)columns->width;
    return cpu_line(2 * width * sizeof(float)) + cpu_line(2 * width * sizeof(double));
}

size_t columns_bytes(const Columns *columns, int workers) {
    return worker_bytes(columns) * (size_t)workers;
}

ColumnSums columns_sums(const Columns *columns, void *memory, int worker) {
    char *own = (char *)memory + worker_bytes(columns) * (size_t)worker;
    double *sums = (double *)(void *)(own + cpu_line(2 * (size_t)columns->width * sizeof(float)));
    return (ColumnSums){(float *)(void *)own, sums, sums + columns->width};
}

void columns_clear(const Columns *columns, void *memory, int workers) {
    for (int worker = 0; worker < workers; worker++)
        memset(columns_sums(columns, memory, worker).first, 0,
               2 * (size_t)columns->width * sizeof(double));
}

static void fold_up(const Columns *columns, double *sums) {
    const double *next = sums + columns->channels;
    for (int64_t fold = 1; fold < columns->fold; fold++, next += columns->channels)
        for (int64_t i = 0; i < columns->channels; i++)
            sums[i] += next[i];
}

void columns_total(const Columns *columns, void *memory, int workers) {
    ColumnSums total = columns_sums(columns, memory, 0);
    for (int worker = 1; worker < workers; worker++) {
        ColumnSums own = columns_sums(columns, memory, worker);
        for (int64_t i = 0; i < 2 * columns->width; i++)
            total.first[i] += own.first[i];
    }
    fold_up(columns, total.first);
    fold_up(columns, total.second);
}

void columns_repeat(const Columns *columns, float *values) {
    for (int64_t i = columns->channels; i < columns->width; i++)
        values[i] = values[i - columns->channels];
}

void columns_store(const Device *device, const View *view, const double *values, int64_t count) {
    float buffer[CPU_BLOCK];
    CPU_EACH_BLOCK(at, size, 0, count) {
        for (int64_t i = 0; i < size; i++)
            buffer[i] = (float)values[at + i];
        cpu_store(device, view->format, buffer, cpu_at_mutable(view, at), size);
    }
}
