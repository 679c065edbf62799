// store/series.h: points of series, at any zoom, at a bounded price.
//
// A point is a value at a step, of a series of a run. While that is cheap every point is a row; the
// first 4,096 steps of a series always are, later ones as long as few come in a second. Beside the
// rows there are buckets of 8, 64, 512, ... steps, aligned to multiples of their width, with count,
// first, last, least, mean and largest, so that any window reads a bounded number of rows.
//
// Rows belong to a segment: a start, a resume. A resume at step S supersedes the rows of the
// earlier segments after S, which stay in the file; reading follows what superseded what.
#pragma once

#include "store/store.h"

enum { SERIES_NAME_SIZE = 64 };

// ---- writing: the writer thread of one run ------------------------------------------------------

typedef struct SeriesWriter SeriesWriter;

// Begins a segment of the run after step `from` (0: at the start, all of before is superseded) and
// supersedes what came later. `why`: "start", "resume", "fork". In a transaction of its own, or the
// caller's; when that is undone the writer is of no use.
SeriesWriter *series_writer_new(Store *store, int64_t run, int64_t from, const char *why,
                                Error *error);
void series_writer_free(SeriesWriter *writer); // without writing
int series_writer_segment(const SeriesWriter *writer);

// In memory: steps of one series come in order; the same step again replaces its value. A run has
// up to 256 series. `name` is copied. A run that is resumed may do again what it did between its
// checkpoint and the next step: points of steps up to `from` that the history has stay as they are,
// and one of `from` itself that it lacks is taken.
bool series_add(SeriesWriter *writer, const char *name, int64_t step, double value,
                Error *error) MUST_CHECK;
// Rows since the last call, `seconds` ago, which decides whether points are cheap. Buckets that are
// not full yet are written too, and written over later, so that what was flushed is complete. Call
// it in a transaction, once. What it wrote is let go when the next call finds it committed: after a
// transaction that failed or was undone the next call writes it again. What waits is bounded: more
// than 8,192 points of a series leave coarser buckets only.
//
// A resume goes on exactly after a step at which a flush was made (that of a checkpoint) or up to
// which every point is a row. Elsewhere, the points of a bucket that were never rows are left out.
bool series_flush(SeriesWriter *writer, double seconds, Error *error) MUST_CHECK;

// ---- reading ------------------------------------------------------------------------------------

typedef struct SeriesInfo {
    char name[SERIES_NAME_SIZE];
    int64_t first_step, last_step;
    int64_t count; // points that were logged
    double last;   // value of the last point
} SeriesInfo;

bool store_list_series(Store *store, int64_t run, SeriesInfo **series, int *count,
                       Error *error) MUST_CHECK; // the caller frees the array

typedef struct SeriesPoint { // a point (width 1) or a bucket
    int64_t step;            // the first step of the bucket
    int64_t width;           // steps that it spans
    int64_t count;           // points in it that are finite
    int64_t nans, infs, minus_infs;
    double first, last, min, mean, max; // over the finite ones; NaN without any
} SeriesPoint;

// Points of the steps from .. to, both included, in order, not many more than `most` of them: the
// finest level that fits. most 0: the finest there is. The array is the caller's to free; no point
// is no error. Where the points of a part of the window came too fast to be rows, that part has the
// finest buckets there are.
bool store_read_series(Store *store, int64_t run, const char *name, int64_t from, int64_t to,
                       int most, SeriesPoint **points, int *count, Error *error) MUST_CHECK;

// The first step from `from` on at which a point or a sum of some begins; -1: there is none. Who
// reads a whole run window by window asks for each where to begin: what a row claims to be the last
// step bounds nothing.
bool store_next_step(Store *store, int64_t run, const char *name, int64_t from, int64_t *step,
                     Error *error) MUST_CHECK;

// The value of a point (width 1) as it was logged: NaN and infinities included.
double series_point_value(const SeriesPoint *point);
