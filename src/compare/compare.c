#include "compare/compare.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "compare/private.h"
#include "store/runs.h"

enum {
    CHUNK_STEPS = 16384, // read at once while the first difference is looked for
};

// ---- making and freeing -------------------------------------------------------------------------

static void clear_curves(CompareCurve *curves, int count) {
    for (int i = 0; curves && i < count; i++) {
        free(curves[i].points);
        free(curves[i].x);
    }
    free(curves);
}

static void clear_stretches(CompareStretches *stretches, int count) {
    for (int i = 0; stretches && i < count; i++)
        free(stretches[i].list);
    free(stretches);
}

static void clear_runs(RunRecord *runs, int count) {
    for (int i = 0; runs && i < count; i++)
        record_clear(&runs[i]);
    free(runs);
}

void compare_free(Comparison *comparison) {
    if (!comparison)
        return;
    for (int i = 0; comparison->sides && i < comparison->run_count; i++)
        free(comparison->sides[i].metrics);
    for (int i = 0; comparison->groups && i < comparison->group_count; i++)
        free(comparison->groups[i].metrics);
    for (int i = 0; i < comparison->difference_count; i++)
        free(comparison->differences[i].values);
    clear_curves(comparison->losses, comparison->run_count);
    clear_runs(comparison->runs, comparison->run_count);
    clear_stretches(comparison->stretches, comparison->run_count);
    free(comparison->paces);
    free(comparison->reached);
    free(comparison->energies);
    free(comparison->orders);
    free(comparison->codes);
    free(comparison->all_series);
    free(comparison->sides);
    free(comparison->groups);
    free(comparison->differences);
    free(comparison->caveats);
    free(comparison->verdicts);
    free(comparison->members);
    free(comparison);
}

// Where the axis was not read, it follows from the record.
static bool place_points(Comparison *comparison, Error *error) {
    for (int i = 0; i < comparison->run_count; i++) {
        CompareCurve *curve = &comparison->losses[i];
        if (curve->x || curve->count == 0)
            continue;
        curve->x = calloc((size_t)curve->count, sizeof *curve->x);
        if (!curve->x)
            return error_fail(error, ERROR_MEMORY, "no memory to compare the runs");
        for (int k = 0; k < curve->count; k++)
            curve->x[k] = compare_axis_of_step(&comparison->runs[i], comparison->options.axis,
                                               (double)curve->points[k].step);
    }
    return true;
}

static bool fill_sides(Comparison *comparison, Error *error) {
    for (int i = 0; i < comparison->run_count; i++) {
        CompareSide *side = &comparison->sides[i];
        comparison->members[i] = i;
        side->members = &comparison->members[i];
        side->member_count = 1;
        memcpy(side->label, comparison->runs[i].name, sizeof comparison->runs[i].name);
        if (!compare_fill_side(comparison, side, &comparison->sides[0], error) ||
            !compare_find_divergence(comparison, side, &comparison->sides[0], error))
            return false;
    }
    for (int g = 0; g < comparison->group_count; g++) {
        CompareSide *group = &comparison->groups[g];
        if (!compare_fill_side(comparison, group, &comparison->groups[0], error) ||
            !compare_find_divergence(comparison, group, &comparison->groups[0], error))
            return false;
    }
    return true;
}

static void put_first(void *list, size_t size, int at) {
    enum { MOST = sizeof(RunRecord) };
    char one[MOST], *bytes = list;
    memcpy(one, bytes + (size_t)at * size, size);
    memmove(bytes + size, bytes, (size_t)at * size);
    memcpy(bytes, one, size);
}

// The first that logged losses, one in fp32 rather: a profile of steps has none, nor what has just
// begun. None has, or another series is looked at, which a run may well lack: the first in fp32.
static int best_baseline(const Comparison *comparison) {
    const bool tells = strcmp(comparison->series, "loss") == 0;
    int best = 0, most = -1;
    for (int i = 0; i < comparison->run_count; i++) {
        const bool is_fp32 = strcmp(comparison->runs[i].precision, "fp32") == 0;
        const int fit = 2 * (tells && comparison->losses[i].count > 0) + is_fp32;
        if (fit > most) {
            most = fit;
            best = i;
        }
    }
    return best;
}

static void put_baseline_first(Comparison *comparison) {
    int at = best_baseline(comparison);
    put_first(comparison->runs, sizeof *comparison->runs, at);
    put_first(comparison->losses, sizeof *comparison->losses, at);
    put_first(comparison->paces, sizeof *comparison->paces, at);
    put_first(comparison->reached, sizeof *comparison->reached, at);
    put_first(comparison->orders, sizeof *comparison->orders, at);
    put_first(comparison->codes, sizeof *comparison->codes, at);
    put_first(comparison->stretches, sizeof *comparison->stretches, at);
}

static bool fail_memory(Error *error) {
    return error_fail(error, ERROR_MEMORY, "no memory to compare the runs");
}

// Without runs, which the caller puts in; NULL: no memory.
static Comparison *make(int count, const CompareOptions *options) {
    Comparison *comparison = calloc(1, sizeof *comparison);
    size_t runs = (size_t)count;
    if (!comparison)
        return NULL;
    *comparison = (Comparison){.options = *options, .run_count = count};
    comparison->losses = calloc(runs, sizeof *comparison->losses);
    comparison->paces = calloc(runs, sizeof *comparison->paces);
    comparison->reached = calloc(runs, sizeof *comparison->reached);
    comparison->orders = calloc(runs, sizeof *comparison->orders);
    comparison->codes = calloc(runs, sizeof *comparison->codes);
    comparison->stretches = calloc(runs, sizeof *comparison->stretches);
    comparison->sides = calloc(runs, sizeof *comparison->sides);
    comparison->members = calloc(2 * runs, sizeof *comparison->members);
    for (int i = 0; comparison->paces && i < count; i++)
        comparison->paces[i] = pace_of(NULL, 0);
    for (int i = 0; comparison->reached && i < count; i++)
        comparison->reached[i] = compare_never;
    if (comparison->losses && comparison->paces && comparison->reached && comparison->orders &&
        comparison->codes && comparison->stretches && comparison->sides && comparison->members)
        return comparison;
    compare_free(comparison);
    return NULL;
}

// All but the verdicts, for which the divergence must be settled.
static bool compute(Comparison *comparison, Error *error) {
    if (comparison->options.prefers_fp32)
        put_baseline_first(comparison);
    return place_points(comparison, error) && compare_group_runs(comparison, error) &&
           fill_sides(comparison, error) && compare_tell_energy(comparison, error);
}

Comparison *compare_records(RunRecord *runs, CompareCurve *losses, int count,
                            const CompareOptions *options, Error *error) {
    Comparison *comparison = make(count, options);
    if (!comparison) {
        clear_runs(runs, count);
        clear_curves(losses, count);
        fail_memory(error);
        return NULL;
    }
    comparison->runs = runs;
    snprintf(comparison->series, sizeof comparison->series, "%s",
             options->series ? options->series : "loss");
    if (losses)
        memcpy(comparison->losses, losses, (size_t)count * sizeof *losses);
    free(losses);
    if (!compute(comparison, error) || !compare_judge(comparison, error)) {
        compare_free(comparison);
        return NULL;
    }
    return comparison;
}

// ---- from the history ---------------------------------------------------------------------------

// The curves hold no more than so many points: near the first difference all of them are read.
static bool refine_difference(Store *store, const Comparison *comparison, CompareSide *side,
                              const CompareSide *baseline, Error *error) {
    const CompareCurve *a = &comparison->losses[baseline->members[0]];
    const CompareCurve *b = &comparison->losses[side->partner];
    CompareDivergence *found = &side->divergence;
    if (a->count == 0 || b->count == 0 || side->partner == baseline->members[0] ||
        !compare_is_one_experiment(comparison, side, baseline))
        return true;
    bool is_exact = found->is_known && found->different_width <= 1;
    for (int i = 0; i < a->count && is_exact; i++)
        is_exact = a->points[i].width == 1;
    for (int i = 0; i < b->count && is_exact; i++)
        is_exact = b->points[i].width == 1;
    if (is_exact)
        return true;
    int64_t begin = found->is_known && found->different >= 0 ? found->different : 0;
    int64_t a_end = a->points[a->count - 1].step + a->points[a->count - 1].width;
    int64_t b_end = b->points[b->count - 1].step + b->points[b->count - 1].width;
    int64_t end = a_end < b_end ? a_end : b_end;
    if (found->is_known && found->different < 0)
        return true; // equal sums at every zoom are equal points
    *found = (CompareDivergence){.different = -1,
                                 .parted = found->parted,
                                 .parted_before = found->parted_before,
                                 .is_parted_at_end = found->is_parted_at_end};
    for (int64_t from = begin; from < end && found->different < 0; from += CHUNK_STEPS) {
        SeriesPoint *points[2] = {NULL, NULL};
        int counts[2] = {0, 0};
        const int64_t runs[2] = {comparison->runs[baseline->members[0]].id,
                                 comparison->runs[side->partner].id};
        bool done = true;
        for (int i = 0; i < 2 && done; i++)
            done = store_read_series(store, runs[i], comparison->series, from,
                                     from + CHUNK_STEPS - 1, 0, &points[i], &counts[i], error);
        if (done)
            compare_first_difference(points[0], counts[0], points[1], counts[1], found);
        free(points[0]);
        free(points[1]);
        if (!done)
            return false;
    }
    compare_bound_parting(side, baseline);
    return true;
}

static bool refine_all(Store *store, Comparison *comparison, Error *error) {
    for (int i = 1; i < comparison->run_count; i++)
        if (!refine_difference(store, comparison, &comparison->sides[i], &comparison->sides[0],
                               error))
            return false;
    for (int g = 1; g < comparison->group_count; g++)
        if (!refine_difference(store, comparison, &comparison->groups[g], &comparison->groups[0],
                               error))
            return false;
    return true;
}

static bool check_runs(const int64_t *ids, int count, Error *error) {
    if (count < 1 || count > COMPARE_MOST_RUNS)
        return error_fail(error, ERROR_USAGE, "compare: takes from 1 to %d runs, not %d",
                          COMPARE_MOST_RUNS, count);
    for (int i = 0; i < count; i++)
        for (int k = 0; k < i; k++)
            if (ids[i] == ids[k])
                return error_fail(error, ERROR_USAGE,
                                  "compare: run %" PRId64 " is given twice; name each run once",
                                  ids[i]);
    return true;
}

Comparison *compare_new(Store *store, const int64_t *ids, int count, const CompareOptions *options,
                        Error *error) {
    if (!check_runs(ids, count, error))
        return NULL;
    Comparison *comparison = make(count, options);
    if (!comparison || !(comparison->runs = calloc((size_t)count, sizeof *comparison->runs))) {
        compare_free(comparison);
        fail_memory(error);
        return NULL;
    }
    if (!compare_read_runs(store, comparison, ids, error) ||
        !compare_meet(store, comparison->runs, count, comparison->results_at, error) ||
        !compute(comparison, error) || !refine_all(store, comparison, error) ||
        !compare_judge(comparison, error)) {
        compare_free(comparison);
        return NULL;
    }
    return comparison;
}
