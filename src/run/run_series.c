// Points of series and results. A point that is a tensor waits here for the end of the step, and
// comes back with its report.
#include <math.h>
#include <string.h>

#include "run/recorder_private.h"
#include "run/run_private.h"

const char *const run_own_series[OWN_SERIES] = {
    [OWN_SCALE] = "scale", [OWN_GRADIENT_NORM] = "grad_norm", [OWN_STEP_SECONDS] = "step_seconds"};

const RunSeries *run_series(const Run *run, const char *name) {
    for (int i = 0; i < run->series_count; i++)
        if (strcmp(run->series[i].name, name) == 0)
            return &run->series[i];
    return NULL;
}

bool run_is_own_series(const char *name) {
    for (int i = 0; i < OWN_SERIES; i++)
        if (strcmp(name, run_own_series[i]) == 0)
            return true;
    return false;
}

// The series of this name, made when it is new; -1 when it cannot be.
static int find_series(Run *run, const char *name, Error *error) {
    const RunSeries *found = run_series(run, name);
    if (found)
        return (int)(found - run->series);
    if (run_is_own_series(name)) {
        error_fail(error, ERROR_FAILED,
                   "log: %s: the run records a series of this name by itself, at every step; call "
                   "yours my_%s",
                   name, name);
        return -1;
    }
    if (strlen(name) >= RUN_NAME_SIZE) {
        error_fail(error, ERROR_FAILED, "log: the name of a series has up to %d bytes, not %zu",
                   RUN_NAME_SIZE - 1, strlen(name));
        return -1;
    }
    if (run->series_count == RUN_MAX_SERIES) {
        error_fail(error, ERROR_FAILED, "log: %s: a run has up to %d series", name, RUN_MAX_SERIES);
        return -1;
    }
    RunSeries *series = &run->series[run->series_count];
    utf8_copy(series->name, sizeof series->name, name);
    series->best = (double)NAN;
    return run->series_count++;
}

void run_add_point(RunState *state, int index, double value, int64_t step) {
    RunSeries *series = &state->run.series[index];
    if (series->count++ == 0)
        series->first = value;
    series->last = value;
    state->last_point[index] = step;
    if (isfinite(value) && !(series->best <= value))
        series->best = value;
    if (state->run.recorder && !state->run.is_silent)
        recorder_point(state->run.recorder, &state->run, index, step, value);
    run_check_loss(state, series->name, value, step);
}

void run_drop_pending(RunState *state) {
    for (int i = 0; i < state->pending_count; i++)
        tensor_release(state->pending[i].tensor);
    state->pending_count = 0;
}

static void add_pending(RunState *state, PendingPoint point) {
    if (state->pending_count == RUN_MAX_PENDING)
        run_report_points(state);
    if (state->pending_count < RUN_MAX_PENDING) // else there is no memory for a report
        state->pending[state->pending_count++] = point;
    else
        tensor_release(point.tensor);
}

bool run_log(Run *run, const char *name, Tensor *value, Error *error) {
    if (tensor_count(value) != 1) {
        char text[96];
        tensor_describe(value, text, sizeof text);
        return error_fail(error, ERROR_FAILED,
                          "log: %s: one value is wanted, the tensor is %s; reduce it first", name,
                          text);
    }
    int series = find_series(run, name, error);
    if (series < 0)
        return false;
    // A view of its own: the tensor would keep the whole graph that made it.
    Tensor *held = tensor_view(value, &value->view, error);
    if (!held)
        return false;
    add_pending(run_state(run),
                (PendingPoint){.series = series, .step = run->step, .tensor = held});
    return true;
}

bool run_log_number(Run *run, const char *name, double value, Error *error) {
    int series = find_series(run, name, error);
    if (series < 0)
        return false;
    RunState *state = run_state(run);
    if (run_awaits_points(state)) // points of one series stay in order
        add_pending(state, (PendingPoint){.series = series, .step = run->step, .number = value});
    else
        run_add_point(state, series, value, run->step);
    return true;
}

bool run_result(Run *run, const char *name, double value, Error *error) {
    RecordMetric *metric = NULL;
    for (int i = 0; i < run->metric_count && !metric; i++)
        if (strcmp(run->metrics[i].name, name) == 0)
            metric = &run->metrics[i];
    if (!metric) {
        if (strlen(name) >= RUN_NAME_SIZE || run->metric_count == RUN_MAX_METRICS)
            return error_fail(error, ERROR_FAILED,
                              "result: %.80s: a run has up to %d results, with names of up to %d "
                              "bytes",
                              name, RUN_MAX_METRICS, RUN_NAME_SIZE - 1);
        metric = &run->metrics[run->metric_count++];
        utf8_copy(metric->name, sizeof metric->name, name);
    }
    metric->value = value;
    return true;
}
