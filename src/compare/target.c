// When each run was first as good as is asked for: steps and seconds to a target.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "compare/private.h"

enum { TARGET_POINTS = 4096 }; // read of the series

const CompareReach compare_never = {NAN, NAN};

// What gets better by falling: by a part of its name, or by a whole word of it, as "val_mse".
static bool falls(const char *name) {
    static const char *const parts[] = {"loss", "error", "perplexity"};
    static const char *const words[] = {"bits", "bpb", "cer", "fid",  "mae",
                                        "mse",  "nll", "ppl", "rmse", "wer"};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (strstr(name, parts[i]))
            return true;
    for (const char *at = name; *at; at++) {
        const size_t length = strcspn(at, "_-. /");
        for (size_t i = 0; i < sizeof words / sizeof *words; i++)
            if (strlen(words[i]) == length && strncmp(at, words[i], length) == 0)
                return true;
        at += at[length] ? length : length - 1;
    }
    return false;
}

bool compare_target_falls(const CompareOptions *options) {
    return options->toward == COMPARE_AT_MOST ||
           (options->toward == COMPARE_BY_NAME && falls(options->target));
}

static int first_to_reach(const CompareOptions *options, const CompareCurve *curve) {
    const bool is_falling = compare_target_falls(options);
    for (int i = 0; i < curve->count; i++) {
        const SeriesPoint *point = &curve->points[i];
        if (point->count > 0 && (is_falling ? point->mean <= options->target_value
                                            : point->mean >= options->target_value))
            return i;
    }
    return -1;
}

bool compare_read_reach(Store *store, Comparison *comparison, int run, Error *error) {
    const CompareOptions *options = &comparison->options;
    const RunRecord *record = &comparison->runs[run];
    CompareCurve curve = {.count = 0};
    SeriesPoint *times = NULL;
    int time_count = 0;
    comparison->reached[run] = compare_never;
    if (!options->target)
        return true;
    bool done = store_read_series(store, record->id, options->target, 0, INT64_MAX, TARGET_POINTS,
                                  &curve.points, &curve.count, error) &&
                store_read_series(store, record->id, "step_seconds", 0, INT64_MAX, TARGET_POINTS,
                                  &times, &time_count, error) &&
                compare_place_by_seconds(&curve, times, time_count, error);
    comparison->knows_target |= curve.count > 0;
    const int at = done ? first_to_reach(options, &curve) : -1;
    if (at >= 0) {
        const double step = (double)(curve.points[at].step + curve.points[at].width - 1);
        comparison->reached[run] = (CompareReach){
            step,
            curve.x ? curve.x[at] : compare_axis_of_step(record, COMPARE_BY_SECONDS, step),
        };
    }
    free(curve.points);
    free(curve.x);
    free(times);
    return done;
}
