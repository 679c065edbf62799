// `mpbench export --format tensorboard`: a run as a file of events.
#include <math.h>
#include <stdlib.h>

#include "cli/history/event_file.h"
#include "cli/history/export.h"

// When each step ended, from the times of steps that the run logged.
typedef struct Times {
    double begin; // seconds since 1970
    SeriesPoint *points;
    double *before; // seconds until the begin of each point
    int count;
} Times;

static bool read_times(const Export *export, Times *times, Error *error) {
    enum { MOST_POINTS = 8192 };
    times->begin = (double)export->run.created_ms / 1e3;
    if (!store_read_series(export->store, export->run.id, "step_seconds", 0, INT64_MAX, MOST_POINTS,
                           &times->points, &times->count, error))
        return false;
    times->before = calloc((size_t)times->count + 1, sizeof *times->before);
    if (!times->before)
        return error_fail(error, ERROR_MEMORY, "no memory to export the run");
    for (int i = 0; i < times->count; i++)
        times->before[i + 1] =
            times->before[i] + fmax(times->points[i].mean, 0) * (double)times->points[i].width;
    return true;
}

static void free_times(Times *times) {
    free(times->points);
    free(times->before);
}

// Between two points that were logged, the last one that began counts.
static double time_at(const Times *times, int64_t step) {
    int low = 0, high = times->count; // the first point that begins after the step is in low..high
    while (low < high) {
        int middle = low + (high - low) / 2;
        if (times->points[middle].step <= step)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == 0)
        return times->begin;
    const SeriesPoint *point = &times->points[low - 1];
    double steps = fmin((double)(step - point->step + 1), (double)point->width);
    return times->begin + times->before[low - 1] + fmax(point->mean, 0) * steps;
}

// ---- scalars ------------------------------------------------------------------------------------

// The value of a point as it was logged; of a sum of several their mean, or what was not finite
// where nothing else was logged.
static double value_of(const SeriesPoint *point) {
    if (point->width == 1)
        return series_point_value(point);
    if (point->count > 0)
        return point->mean;
    return point->nans > 0 ? NAN : point->infs > 0 ? INFINITY : -INFINITY;
}

static void put_point(Export *export, const char *name, const SeriesPoint *point, void *context) {
    const EventMoment moment = {export->out, time_at(context, point->step), point->step};
    event_file_scalar(&moment, name, value_of(point));
}

static void put_layer_scalar(const EventMoment *moment, const char *what, const char *layer,
                             double value) {
    char tag[EVENT_FILE_TAG_SIZE];
    snprintf(tag, sizeof tag, "%s/%s", what, layer); // a group of charts each
    if (!isnan(value))
        event_file_scalar(moment, tag, value);
}

// ---- layers -------------------------------------------------------------------------------------

// Of log2 |g|: the exponents that show which format would hold them.
static void put_exponents(const EventMoment *moment, const char *layer, const LayerSample *sample) {
    EventHistogram values = {.least = 0};
    int first = 0, last = LAYER_BINS - 1;
    while (first < LAYER_BINS && sample->bins[first] == 0)
        first++;
    while (last >= first && sample->bins[last] == 0)
        last--;
    if (first > last)
        return;
    values.least = first + LAYER_LOWEST_EXPONENT;
    values.most = last + LAYER_LOWEST_EXPONENT + 1;
    for (int bin = first; bin <= last; bin++) {
        double count = sample->bins[bin], middle = bin + LAYER_LOWEST_EXPONENT + 0.5;
        values.limits[values.buckets] = bin + LAYER_LOWEST_EXPONENT + 1;
        values.counts[values.buckets++] = count;
        values.count += count;
        values.sum += count * middle;
        values.sum_squares += count * middle * middle;
    }
    char tag[EVENT_FILE_TAG_SIZE];
    snprintf(tag, sizeof tag, "gradient exponents/%s", layer);
    event_file_histogram(moment, tag, &values);
}

_Static_assert((int)LAYER_BINS <= (int)EVENT_FILE_BUCKETS, "every bin is a bucket");

static void put_sample(Export *export, const char *name, const LayerSample *sample, void *context) {
    const EventMoment moment = {export->out, time_at(context, sample->step), sample->step};
    double count = (double)sample->count;
    double finite = count - (double)(sample->nans + sample->infs);
    const struct {
        const char *what;
        double value;
    } readings[] = {
        {"flushed", count > 0 ? (double)sample->flushed / count : NAN},
        {"subnormal", count > 0 ? (double)sample->subnormal / count : NAN},
        {"overflowed", count > 0 ? (double)sample->overflowed / count : NAN},
        {"zero", count > 0 ? (double)sample->zeros / count : NAN},
        {"not finite", count > 0 ? 1 - finite / count : NAN},
        {"largest gradient", count > 0 ? sample->largest : NAN},
        {"mean gradient", finite > 0 ? sample->sum / finite : NAN},
        {"update over weight", sample->update_ratio},
        {"layer seconds", sample->seconds},
    };
    for (size_t i = 0; i < sizeof readings / sizeof *readings; i++)
        put_layer_scalar(&moment, readings[i].what, name, readings[i].value);
    put_exponents(&moment, name, sample);
}

bool export_tensorboard(Export *export, Error *error) {
    Times times = {.count = 0};
    bool done = read_times(export, &times, error);
    if (done)
        event_file_begin(export->out, times.begin);
    for (int i = 0; i < export->series_count && done; i++)
        done = export_each_point(export, &export->series[i], put_point, &times, error);
    for (int i = 0; i < export->run.layer_count && done; i++)
        done = export_each_sample(export, i, put_sample, &times, error);
    free_times(&times);
    return done;
}
