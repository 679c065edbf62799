// What the history knows of the runs that are compared: their curves, the times of their steps,
// what was ordered of them, and when they trained.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/lua_code.h"
#include "compare/private.h"
#include "store/events.h"
#include "store/runs.h"

enum { CURVE_POINTS = 4096 }; // read of a series

static bool fail_memory(Error *error) {
    return error_fail(error, ERROR_MEMORY, "no memory to compare the runs");
}

// ---- which series -------------------------------------------------------------------------------

// What the engine records by itself stands behind what the scripts log.
static bool is_own(const char *name) {
    static const char *const names[] = {"scale", "grad_norm", "step_seconds"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(names[i], name) == 0)
            return true;
    return false;
}

int compare_series_rank(const char *name) {
    return strcmp(name, "loss") == 0 ? 0 : is_own(name) ? 3 : strstr(name, "loss") ? 1 : 2;
}

typedef struct Named { // a series, and how many of the runs have it
    char name[SERIES_NAME_SIZE];
    int runs;
} Named;

// Those of more runs first.
static int by_rank(const void *a, const void *b) {
    const Named *one = a, *other = b;
    int order = compare_series_rank(one->name) - compare_series_rank(other->name);
    return one->runs != other->runs ? other->runs - one->runs
           : order                  ? order
                                    : strcmp(one->name, other->name);
}

static bool add_names(const SeriesInfo *series, int count, Named **names, int *name_count) {
    Named *grown = realloc(*names, (size_t)(*name_count + count + 1) * sizeof *grown);
    if (!grown)
        return false;
    *names = grown;
    const int before = *name_count;
    for (int i = 0; i < count; i++) {
        int at = 0;
        while (at < before && strcmp(grown[at].name, series[i].name) != 0)
            at++;
        if (at == before) {
            at = (*name_count)++;
            grown[at].runs = 0;
            memcpy(grown[at].name, series[i].name, sizeof series[i].name);
        }
        grown[at].runs++;
    }
    return true;
}

// What all runs log can be held against each other; what some of them do can be looked at.
static bool list_series(Store *store, Comparison *comparison, Error *error) {
    Named *names = NULL;
    int count = 0;
    bool done = true;
    for (int i = 0; i < comparison->run_count && done; i++) {
        SeriesInfo *series = NULL;
        int series_count = 0;
        done = store_list_series(store, comparison->runs[i].id, &series, &series_count, error) &&
               (add_names(series, series_count, &names, &count) || fail_memory(error));
        free(series);
    }
    if (done)
        qsort(names, (size_t)count, sizeof *names, by_rank);
    comparison->all_series = calloc((size_t)count + 1, sizeof *comparison->all_series);
    done = done && (comparison->all_series || fail_memory(error));
    for (int i = 0; i < count && done; i++) {
        bool is_common = names[i].runs == comparison->run_count;
        if (is_common || comparison->options.takes_any_series)
            memcpy(comparison->all_series[comparison->all_series_count++], names[i].name,
                   sizeof names[i].name);
    }
    free(names);
    return done;
}

static bool is_listed(const Comparison *comparison, const char *name) {
    for (int i = 0; i < comparison->all_series_count; i++)
        if (strcmp(comparison->all_series[i], name) == 0)
            return true;
    return false;
}

static bool choose_series(Comparison *comparison, Error *error) {
    const char *wanted = comparison->options.series;
    if (wanted && !is_listed(comparison, wanted)) {
        char list[256] = "";
        for (int i = 0; i < comparison->all_series_count && strlen(list) + 1 < sizeof list; i++)
            snprintf(list + strlen(list), sizeof list - strlen(list), " %s",
                     comparison->all_series[i]);
        return error_fail(error, ERROR_USAGE,
                          "--series %.60s: not in all of these runs, which have%s", wanted,
                          list[0] ? list : " none in common");
    }
    bool has_any = comparison->all_series_count > 0 && !is_own(comparison->all_series[0]);
    snprintf(comparison->series, sizeof comparison->series, "%s",
             wanted    ? wanted
             : has_any ? comparison->all_series[0]
                       : "loss");
    return true;
}

// ---- times --------------------------------------------------------------------------------------

// The time that steps took, as the run logged it: x is the time at the end of a point's last step.
// Without it, and for the other axes, steps are even.
bool compare_place_by_seconds(CompareCurve *curve, const SeriesPoint *points, int count,
                              Error *error) {
    if (count > 0 && curve->count > 0 &&
        !(curve->x = calloc((size_t)curve->count, sizeof *curve->x)))
        return fail_memory(error);
    double before = 0; // at the begin of points[at]
    for (int i = 0, at = 0; i < curve->count && count > 0; i++) {
        int64_t end = curve->points[i].step + curve->points[i].width;
        for (; at + 1 < count && points[at + 1].step < end; at++)
            before += fmax(points[at].mean, 0) * (double)points[at].width;
        double steps = (double)(end - points[at].step);
        if (at + 1 == count) // what was logged ends here
            steps = fmin(steps, (double)points[at].width);
        curve->x[i] = before + fmax(points[at].mean, 0) * fmax(steps, 0);
    }
    return true;
}

static bool read_times(Store *store, Comparison *comparison, int run, Error *error) {
    SeriesPoint *points = NULL;
    int count = 0;
    bool done = store_read_series(store, comparison->runs[run].id, "step_seconds", 0, INT64_MAX,
                                  CURVE_POINTS, &points, &count, error);
    if (done)
        comparison->paces[run] = pace_of(points, count);
    if (done && comparison->options.axis == COMPARE_BY_SECONDS)
        done = compare_place_by_seconds(&comparison->losses[run], points, count, error);
    free(points);
    return done;
}

// ---- orders -------------------------------------------------------------------------------------

// An order that changed something says from which step on: "head is fp32 from step 240 on".
static size_t length_of_change(const char *text) {
    static const char end[] = " on";
    size_t length = strlen(text), tail = sizeof end - 1;
    bool is_change = length > tail && strcmp(text + length - tail, end) == 0 &&
                     strstr(text, " from step ") && !strstr(text, ": refused: ");
    return is_change ? length - tail : 0;
}

static bool read_orders(Store *store, Comparison *comparison, int run, Error *error) {
    enum { MOST = 64, ROOM_FOR_REST = 24 };
    CompareOrders *orders = &comparison->orders[run];
    Event *events;
    int count, left_out = 0;
    if (!store_read_events(store, comparison->runs[run].id, 0, 1 << EVENT_COMMAND, MOST, &events,
                           &count, error))
        return false;
    size_t used = 0;
    for (int i = 0; i < count; i++) {
        size_t length = length_of_change(events[i].text);
        if (length == 0)
            continue;
        if (used + length + 2 + ROOM_FOR_REST > sizeof orders->text) {
            left_out++;
            continue;
        }
        used += (size_t)snprintf(orders->text + used, sizeof orders->text - used, "%s%.*s",
                                 used > 0 ? "; " : "", (int)length, events[i].text);
    }
    if (left_out > 0)
        snprintf(orders->text + used, sizeof orders->text - used, "; %d more", left_out);
    free(events);
    return true;
}

// ---- all of them --------------------------------------------------------------------------------

static bool read_curve(Store *store, Comparison *comparison, int run, Error *error) {
    CompareCurve *curve = &comparison->losses[run];
    return store_read_series(store, comparison->runs[run].id, comparison->series, 0, INT64_MAX,
                             CURVE_POINTS, &curve->points, &curve->count, error);
}

// Where scripts are not the same to the byte, what they do may be.
static bool read_codes(Store *store, Comparison *comparison, Error *error) {
    const RunRecord *runs = comparison->runs;
    bool differ = false;
    for (int i = 1; i < comparison->run_count; i++)
        differ |= strcmp(runs[i].script_hash, runs[0].script_hash) != 0;
    for (int i = 0; i < comparison->run_count && differ; i++) {
        size_t length;
        Error unknown;
        char *text = store_read_script(store, runs[i].script_hash, &length, &unknown);
        bool has_memory = !text || lua_code_hash(text, length, comparison->codes[i].hash);
        free(text);
        if (!has_memory)
            return fail_memory(error);
    }
    return true;
}

bool compare_read_runs(Store *store, Comparison *comparison, const int64_t *ids, Error *error) {
    bool done = true;
    for (int i = 0; i < comparison->run_count && done; i++)
        done = store_read_run(store, ids[i], &comparison->runs[i], error);
    done = done && read_codes(store, comparison, error) && list_series(store, comparison, error) &&
           choose_series(comparison, error);
    for (int i = 0; i < comparison->run_count && done; i++)
        done = read_curve(store, comparison, i, error) && read_times(store, comparison, i, error) &&
               compare_read_reach(store, comparison, i, error) &&
               read_orders(store, comparison, i, error) &&
               store_read_stretches(store, comparison->runs[i].id, &comparison->stretches[i].list,
                                    &comparison->stretches[i].count, error);
    if (done && comparison->options.target && !comparison->knows_target)
        return error_fail(error, ERROR_USAGE,
                          "--target %.60s: no series of these runs; `mpbench show RUN` names them",
                          comparison->options.target);
    return done;
}
