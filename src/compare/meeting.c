// Results of runs that still go on: those of the last step, or the last epoch, that all of them
// evaluated.
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "compare/private.h"

enum { MOST_POINTS = 4096 }; // read of a series

typedef struct Evaluations { // of one run
    SeriesPoint *points;
    int count;
    double per_step; // places on the way: epochs, or steps
    int at;
} Evaluations;

static bool goes_on(const RunRecord *runs, int count) {
    for (int i = 0; i < count; i++)
        if (run_status_goes_on(runs[i].status))
            return true;
    return false;
}

// That by which all others are placed: the one that leads, if there is one.
static const char *leading_metric(const RunRecord *runs, int count) {
    const char *first = NULL;
    for (int i = 0; i < count; i++)
        for (int k = 0; k < runs[i].metric_count; k++) {
            if (record_result_leads(&runs[i], runs[i].metrics[k].name))
                return runs[i].metrics[k].name;
            first = first ? first : runs[i].metrics[k].name;
        }
    return first;
}

static double place_of(const Evaluations *run) {
    const SeriesPoint *point = &run->points[run->at];
    return run->per_step * (double)(point->step + point->width - 1);
}

// Steps that were summed up lie somewhere in their bucket.
static double slack_of(const Evaluations *run) {
    const double rounding = 1e-6;
    return run->per_step * (double)(run->points[run->at].width - 1) + rounding;
}

// Goes back in each to the place where the hindmost is, until all stand at one. False: there is no
// such place, or only one run has any.
static bool meet(Evaluations *all, int count) {
    int taking_part = 0;
    for (int i = 0; i < count; i++) {
        all[i].at = all[i].count - 1;
        taking_part += all[i].count > 0;
    }
    while (taking_part > 1) {
        int hindmost = -1;
        bool moved = false;
        for (int i = 0; i < count; i++)
            if (all[i].count > 0 && (hindmost < 0 || place_of(&all[i]) < place_of(&all[hindmost])))
                hindmost = i;
        double place = place_of(&all[hindmost]), slack = slack_of(&all[hindmost]);
        for (int i = 0; i < count; i++)
            while (all[i].count > 0 && place_of(&all[i]) > place + fmax(slack, slack_of(&all[i]))) {
                if (all[i].at == 0)
                    return false;
                all[i].at--;
                moved = true;
            }
        if (!moved)
            return true;
    }
    return false;
}

static double value_of(const SeriesPoint *point) {
    return point->width == 1 ? series_point_value(point) : point->last;
}

// What the run evaluated in the same steps as its leading metric.
static bool take_results(Store *store, RunRecord *run, const SeriesPoint *at, Error *error) {
    for (int i = 0; i < run->metric_count; i++) {
        SeriesPoint *points;
        int count;
        if (!store_read_series(store, run->id, run->metrics[i].name, at->step,
                               at->step + at->width - 1, 0, &points, &count, error))
            return false;
        if (count > 0)
            run->metrics[i].value = value_of(&points[count - 1]);
        free(points);
    }
    return true;
}

static void tell_place(const Evaluations *run, bool by_epoch, char place[COMPARE_PLACE_SIZE]) {
    if (by_epoch)
        snprintf(place, COMPARE_PLACE_SIZE, "epoch %.3g", place_of(run));
    else
        snprintf(place, COMPARE_PLACE_SIZE, "step %" PRId64, run->points[run->at].step);
}

bool compare_meet(Store *store, RunRecord *runs, int count, char place[COMPARE_PLACE_SIZE],
                  Error *error) {
    const char *leading = goes_on(runs, count) ? leading_metric(runs, count) : NULL;
    place[0] = 0;
    if (!leading)
        return true;
    char name[RECORD_NAME_SIZE];
    memcpy(name, leading, sizeof name);
    Evaluations *all = calloc((size_t)count, sizeof *all);
    bool done = all || error_fail(error, ERROR_MEMORY, "no memory to compare the runs");
    bool by_epoch = true;
    for (int i = 0; i < count && done; i++) {
        done = store_read_series(store, runs[i].id, name, 0, INT64_MAX, MOST_POINTS, &all[i].points,
                                 &all[i].count, error);
        all[i].per_step = compare_axis_of_step(&runs[i], COMPARE_BY_EPOCH, 1);
        by_epoch = by_epoch && (!done || all[i].count == 0 || all[i].per_step > 0);
    }
    for (int i = 0; i < count && done && !by_epoch; i++)
        all[i].per_step = 1;
    if (done && meet(all, count)) {
        for (int i = 0; i < count && done; i++)
            done = all[i].count == 0 ||
                   take_results(store, &runs[i], &all[i].points[all[i].at], error);
        for (int i = 0; i < count && !place[0]; i++)
            if (all[i].count > 0)
                tell_place(&all[i], by_epoch, place);
    }
    for (int i = 0; i < count && all; i++)
        free(all[i].points);
    free(all);
    return done;
}
