// cpu/columns.h: work down the columns of a matrix, shared out among threads by rows.
//
// For norms and sums over leading dimensions. Each worker has sums of its own in the workspace,
// added up in the order of the workers. Private to this folder.
#pragma once

#include "cpu/cpu.h"

// A matrix [rows, channels] seen as [rows / fold, width]: a few short rows are one long one.
typedef struct Columns {
    int64_t rows, channels;      // as they are
    int64_t fold, width, folded; // width = channels * fold, folded = rows / fold
} Columns;

Columns columns_of(int64_t rows, int64_t channels);

// What a worker sums into: `scratch` of 2 * width, and two sums of `width`.
typedef struct ColumnSums {
    float *scratch;
    double *first, *second;
} ColumnSums;

// Bytes that the sums of so many workers take, and those of one, cleared.
size_t columns_bytes(const Columns *columns, int workers);
ColumnSums columns_sums(const Columns *columns, void *memory, int worker);
void columns_clear(const Columns *columns, void *memory, int workers);
// Adds all workers and folds up; the totals lie in the first `channels` of worker 0's sums.
void columns_total(const Columns *columns, void *memory, int workers);

// Repeats the first `channels` numbers up to `width`.
void columns_repeat(const Columns *columns, float *values);

// Rounds sums to the format of a dense view.
void columns_store(const Device *device, const View *view, const double *values, int64_t count);
