// What the history holds of where a run's time went: that of each layer, on a few steps a second.
#include <math.h>
#include <stdlib.h>

#include "base/utf8.h"
#include "cli/profile/profile.h"
#include "store/layers.h"
#include "store/series.h"

// The mean over the samples that were timed; NaN: none was.
static bool read_seconds(Store *store, const RunRecord *record, int layer, double *seconds,
                         Error *error) {
    enum { MOST = 512 };
    LayerSample *samples;
    int count, timed = 0;
    if (!store_read_layer(store, record->id, layer, 0, record->step, MOST, &samples, &count, error))
        return false;
    double sum = 0;
    for (int i = 0; i < count; i++)
        if (!isnan(samples[i].seconds)) {
            sum += samples[i].seconds;
            timed++;
        }
    free(samples);
    *seconds = timed > 0 ? sum / timed : (double)NAN;
    return true;
}

// Of a step; the first made what the others found made.
static bool read_step(Store *store, const RunRecord *record, ProfileReport *report, Error *error) {
    enum { MOST = 512 };
    SeriesPoint *points;
    int count;
    const int64_t first = record->parent_step + 2;
    if (!store_read_series(store, record->id, "step_seconds", first, record->step, MOST, &points,
                           &count, error))
        return false;
    double sum = 0;
    for (int i = 0; i < count; i++) {
        sum += points[i].count > 0 ? points[i].mean * (double)points[i].count : 0;
        report->steps += points[i].count;
    }
    free(points);
    report->step_seconds = report->steps > 0 ? sum / (double)report->steps : (double)NAN;
    return true;
}

static bool take_layers(Store *store, const RunRecord *record, ProfileReport *report,
                        Error *error) {
    report->rows =
        calloc((size_t)(record->layer_count ? record->layer_count : 1), sizeof *report->rows);
    if (!report->rows)
        return error_fail(error, ERROR_MEMORY, "no memory for the profile");
    for (int i = 0; i < record->layer_count; i++) {
        double seconds;
        if (!read_seconds(store, record, i, &seconds, error))
            return false;
        if (!(seconds > 0))
            continue;
        ProfileRow *row = &report->rows[report->row_count++];
        Format format = format_named(record->layers[i].precision);
        *row = (ProfileRow){.work = -1, .from = format, .to = format, .seconds = seconds};
        utf8_copy(row->layer, sizeof row->layer, record->layers[i].name);
        report->between -= seconds;
    }
    return true;
}

bool profile_of_record(Store *store, const RunRecord *record, ProfileReport *report, Error *error) {
    *report = (ProfileReport){.run = record->id,
                              .threads = record->threads,
                              .memory_limit = (double)NAN,
                              .casts = (double)NAN,
                              .cast_bytes = (double)NAN,
                              .cast_seconds = (double)NAN};
    for (int i = 0; i < FORMAT_COUNT; i++)
        report->product_limit[i] = (double)NAN;
    utf8_copy(report->name, sizeof report->name, record->name);
    utf8_copy(report->precision, sizeof report->precision, record->precision);
    utf8_copy(report->device, sizeof report->device, record->device);
    utf8_copy(report->device_name, sizeof report->device_name, record->device_name);
    if (!read_step(store, record, report, error))
        return false;
    report->between = report->step_seconds;
    if (!take_layers(store, record, report, error))
        return false;
    report->row_count = profile_group(report, PROFILE_BY_PART, report->rows);
    report->cast_seconds = record->cast_share * report->step_seconds;
    if (report->row_count == 0)
        return error_fail(error, ERROR_FAILED,
                          "the history holds no times of %s's layers, which are taken five times a "
                          "second: mpbench profile EXPERIMENT trains and times every step",
                          record->name);
    profile_find_words(report);
    return true;
}
