// What the history holds of where a run's time went: that of each layer, on a few steps a second.
// To time a step makes it longer: shares are of the steps that were timed, not of all.
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

// Of all steps; the first made what the others found made.
static bool read_steps(Store *store, const RunRecord *record, ProfileReport *report, Error *error) {
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
    report->all_seconds = report->steps > 0 ? sum / (double)report->steps : (double)NAN;
    return true;
}

// ---- the steps that were timed ------------------------------------------------------------------

// Of a window of steps that are in the history one by one: what layers took of those that were
// timed, and what the steps did.
typedef struct Timed {
    double *layers; // [steps of the window]
    double layer_seconds, step_seconds;
} Timed;

enum { WINDOW = 512 };

static bool add_layers(Store *store, const RunRecord *record, int64_t from, Timed *timed,
                       Error *error) {
    for (int i = 0; i < WINDOW; i++)
        timed->layers[i] = 0;
    for (int layer = 0; layer < record->layer_count; layer++) {
        LayerSample *samples;
        int count;
        if (!store_read_layer(store, record->id, layer, from, from + WINDOW - 1, 0, &samples,
                              &count, error))
            return false;
        for (int i = 0; i < count; i++)
            if (samples[i].width == 1 && samples[i].seconds > 0 && samples[i].step >= from)
                timed->layers[samples[i].step - from] += samples[i].seconds;
        free(samples);
    }
    return true;
}

static bool add_steps(Store *store, const RunRecord *record, int64_t from, Timed *timed,
                      Error *error) {
    SeriesPoint *points;
    int count;
    if (!store_read_series(store, record->id, "step_seconds", from, from + WINDOW - 1, 0, &points,
                           &count, error))
        return false;
    for (int i = 0; i < count; i++) {
        const int64_t at = points[i].step - from;
        if (points[i].width != 1 || at < 0 || !(timed->layers[at] > 0))
            continue;
        timed->layer_seconds += timed->layers[at];
        timed->step_seconds += points[i].mean;
    }
    free(points);
    return true;
}

// The share of those steps that layers took, of the first and the last steps of the run; NaN: the
// history has none of them one by one.
static bool find_share(Store *store, const RunRecord *record, double *share, Error *error) {
    const int64_t first = record->parent_step + 2, last = record->step - WINDOW + 1;
    Timed timed = {.layers = calloc(WINDOW, sizeof *timed.layers)};
    if (!timed.layers)
        return error_fail(error, ERROR_MEMORY, "no memory for the times of steps");
    bool done = add_layers(store, record, first, &timed, error) &&
                add_steps(store, record, first, &timed, error);
    if (done && last >= first + WINDOW)
        done = add_layers(store, record, last, &timed, error) &&
               add_steps(store, record, last, &timed, error);
    free(timed.layers);
    *share = timed.step_seconds > 0 ? timed.layer_seconds / timed.step_seconds : (double)NAN;
    return done;
}

// What runs note of it themselves is of all that they timed; older ones did not. Where neither is
// known, a step takes no less than its layers.
static bool settle_step(Store *store, const RunRecord *record, ProfileReport *report,
                        Error *error) {
    double share = record_fact_number(record, "profile.layers"), layers = 0;
    for (int i = 0; i < report->row_count; i++)
        layers += report->rows[i].seconds;
    if (!(share > 0) && !find_share(store, record, &share, error))
        return false;
    report->step_seconds =
        share > 0 && share <= 1 ? layers / share : fmax(layers, report->all_seconds);
    report->between = fmax(report->step_seconds - layers, 0);
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
    }
    return true;
}

void profile_begin_record(const RunRecord *record, ProfileReport *report) {
    *report = (ProfileReport){.run = record->id,
                              .threads = record->threads,
                              .memory_limit = (double)NAN,
                              .all_seconds = (double)NAN,
                              .others = (double)NAN,
                              .casts = (double)NAN,
                              .cast_bytes = (double)NAN,
                              .cast_seconds = (double)NAN};
    for (int i = 0; i < FORMAT_COUNT; i++)
        report->product_limit[i] = (double)NAN;
    utf8_copy(report->name, sizeof report->name, record->name);
    utf8_copy(report->precision, sizeof report->precision, record->precision);
    utf8_copy(report->device, sizeof report->device, record->device);
    utf8_copy(report->device_name, sizeof report->device_name, record->device_name);
}

bool profile_of_record(Store *store, const RunRecord *record, ProfileReport *report, Error *error) {
    profile_begin_record(record, report);
    if (!read_steps(store, record, report, error) || !take_layers(store, record, report, error) ||
        !settle_step(store, record, report, error))
        return false;
    if (!profile_group(report, STEP_BY_PART, report->rows, &report->row_count, error))
        return false;
    report->cast_seconds = record->cast_share * report->step_seconds;
    if (report->row_count == 0)
        return error_fail(error, ERROR_FAILED,
                          "the history holds no times of %s's layers, which are taken five times a "
                          "second: mpbench profile EXPERIMENT trains and times every step",
                          record->name);
    profile_find_words(report);
    return true;
}
