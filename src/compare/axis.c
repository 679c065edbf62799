// Where a step stands on the axis, and the losses of all runs on one grid along it.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "compare/private.h"

static const char *const axis_names[COMPARE_AXES] = {
    [COMPARE_BY_STEP] = "step",
    [COMPARE_BY_EPOCH] = "epoch",
    [COMPARE_BY_SECONDS] = "seconds",
    [COMPARE_BY_SAMPLES] = "samples",
};

const char *compare_axis_name(CompareAxis axis) {
    return axis_names[axis];
}

bool compare_axis_parse(const char *name, CompareAxis *axis) {
    for (int i = 0; i < COMPARE_AXES; i++)
        if (strcmp(axis_names[i], name) == 0) {
            *axis = (CompareAxis)i;
            return true;
        }
    return false;
}

static double ratio(double value, double by) {
    return value > 0 && by > 0 ? value / by : NAN;
}

double compare_axis_of_step(const RunRecord *run, CompareAxis axis, double step) {
    double steps = (double)run->step;
    switch (axis) {
    case COMPARE_BY_EPOCH: {
        double whole = ratio((double)run->epochs, (double)run->total_steps);
        return step * (isnan(whole) ? ratio((double)run->epoch, steps) : whole);
    }
    case COMPARE_BY_SECONDS: {
        double rate = run->steps_per_s;
        // Of a fork, as if all steps had gone at its own rate.
        return step * (rate > 0 ? 1 / rate : ratio(run->wall_s, steps - (double)run->parent_step));
    }
    case COMPARE_BY_SAMPLES: return step * ratio((double)run->samples, steps);
    default: return step;
    }
}

bool compare_has_curves(const Comparison *comparison) {
    for (int i = 0; i < comparison->run_count; i++)
        if (comparison->losses[i].count > 0)
            return true;
    return false;
}

// A last one is held only against its like, where nothing else is known of any.
bool compare_lacks_series(const Comparison *comparison, int run) {
    bool has_last = comparison->runs[run].has_loss && strcmp(comparison->series, "loss") == 0;
    return comparison->losses[run].count == 0 && (!has_last || compare_has_curves(comparison));
}

double compare_shared_end(const Comparison *comparison) {
    double end = INFINITY;
    for (int i = 0; i < comparison->run_count; i++) {
        const CompareCurve *curve = &comparison->losses[i];
        double last = 0;
        if (curve->count == 0)
            continue;
        for (int k = 0; k < curve->count; k++)
            last = fmax(last, curve->x[k]);
        end = fmin(end, last);
    }
    return isfinite(end) ? end : 0;
}

void compare_align(const Comparison *comparison, int cells, double *values, double *last_x) {
    *last_x = 0;
    for (int i = 0; i < comparison->run_count; i++) {
        const CompareCurve *curve = &comparison->losses[i];
        for (int k = 0; k < curve->count; k++)
            *last_x = fmax(*last_x, curve->x[k]);
    }
    for (int i = 0; i < comparison->run_count; i++) {
        const CompareCurve *curve = &comparison->losses[i];
        double *row = values + (size_t)i * (size_t)cells;
        double sum = 0, finite = 0, broken = 0;
        int at = -1; // the cell that is being summed up; x does not fall
        for (int c = 0; c < cells; c++)
            row[c] = NAN;
        for (int k = 0; k <= curve->count; k++) {
            int cell = cells;
            if (k < curve->count && !(curve->x[k] >= 0))
                continue;
            if (k<curve->count && * last_x> 0)
                cell = (int)fmin(cells - 1, curve->x[k] / *last_x * cells);
            if (cell != at) {
                if (at >= 0 && at < cells && finite + broken > 0)
                    row[at] = broken > finite ? INFINITY : sum / finite;
                at = cell;
                sum = finite = broken = 0;
            }
            if (k == curve->count)
                break;
            const SeriesPoint *point = &curve->points[k];
            if (point->count > 0)
                sum += point->mean * (double)point->count;
            finite += (double)point->count;
            broken += (double)(point->nans + point->infs + point->minus_infs);
        }
    }
}
