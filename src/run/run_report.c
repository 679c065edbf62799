// Reports of steps: what the boundary asks of the device, beside what the host knows by then; and
// their coming back, in order, some steps later. Nobody else in this room reads the device while
// steps are made.
#include <stdlib.h>
#include <string.h>

#include "run/run_private.h"

// ---- asked for ----------------------------------------------------------------------------------

bool run_make_reports(RunState *state, Error *error) {
    if (state->reports)
        return true;
    state->reports = reports_new(state->run.device, error);
    if (!state->reports)
        return false;
    state->notes = calloc((size_t)reports_places(state->reports), sizeof *state->notes);
    if (state->notes)
        return true;
    reports_free(state->reports);
    state->reports = NULL;
    return error_fail(error, ERROR_MEMORY, "no memory for the reports of steps");
}

void run_free_reports(RunState *state) {
    int places = state->notes ? reports_places(state->reports) : 0;
    for (int i = 0; i < places; i++) {
        lookout_notes_clear(&state->notes[i].looks);
        for (int k = 0; k < RUN_MAX_OPTIMIZERS; k++)
            optimizer_note_clear(&state->notes[i].optimizers[k]);
    }
    free(state->notes);
    reports_free(state->reports);
}

// A point that is a number already goes along, so that those of one series stay in order.
static bool add_points(RunState *state, StepNote *note, Error *error) {
    note->point_count = 0;
    for (int i = 0; i < state->pending_count; i++) {
        const PendingPoint *pending = &state->pending[i];
        NotedPoint *point = &note->points[note->point_count];
        *point = (NotedPoint){.series = pending->series,
                              .step = pending->step,
                              .is_number = !pending->tensor,
                              .number = pending->number};
        if (pending->tensor && !tensor_check_readable(pending->tensor, NULL))
            continue; // a replay left it out
        if (pending->tensor) {
            point->format = pending->tensor->view.format;
            if (!reports_add(state->reports, pending->tensor->view.data,
                             format_table[point->format].bytes, &point->piece, error))
                return false;
        }
        note->point_count++;
    }
    return true;
}

// Of those that another scaler steps than marks the steps, what that one's scale is.
static bool add_scales(RunState *state, StepNote *note, Error *error) {
    const Run *run = &state->run;
    for (int i = 0; i < note->optimizer_count; i++) {
        NotedScale *noted = &note->scales[i];
        const Scaler *scaler = scalers_find(&run->engine->scalers, note->optimizers[i].scaler);
        *noted = (NotedScale){.scaler = 0};
        if (!scaler || scaler == run->scaler)
            continue;
        noted->scaler = scaler_number(scaler);
        noted->rule = *scaler_rule(scaler);
        if (!scaler_add_report(scaler, state->reports, &noted->piece, error))
            return false;
    }
    return true;
}

static bool add_step(RunState *state, StepNote *note, double now, Error *error) {
    Run *run = &state->run;
    const bool has_break = run_leave_out_break(state, now);
    double clock = run_clock_at(state, now);
    note->seconds = has_break ? (double)NAN : clock - state->step_clock;
    state->step_clock = clock;
    state->step_has_break = false;
    if (has_break)
        run_drop_sample(state); // its times are none of the layers' either
    note->optimizer_count = run->optimizer_count;
    note->scaler = run->scaler;
    note->has_sample = run_end_sample(state);
    note->has_factors = run_end_factors(state, now);
    if (!run_note_flight(state, note, error))
        return false;
    for (int i = 0; i < run->optimizer_count; i++)
        if (!optimizer_add_report(run->optimizers[i], state->reports, &note->optimizers[i], error))
            return false;
    if (!add_scales(state, note, error))
        return false;
    if (note->has_sample && !run_add_sample(state, &note->found, error))
        return false;
    if (!run->scaler)
        return true;
    note->rule = *scaler_rule(run->scaler);
    return scaler_add_report(run->scaler, state->reports, &note->scale, error);
}

// Of the step that ended at `now`; NULL: of points alone.
static bool post(RunState *state, const double *now, Error *error) {
    if (!run_make_reports(state, error))
        return false;
    StepNote *note = &state->notes[reports_begin(state->reports)];
    note->is_step = now != NULL;
    note->step = state->run.step;
    if (!add_points(state, note, error) || (now && !add_step(state, note, *now, error)) ||
        !reports_post(state->reports, error))
        return false;
    run_drop_pending(state);
    return true;
}

// ---- there --------------------------------------------------------------------------------------

static double value_of(const StepReport *report, const NotedPoint *point) {
    if (point->is_number)
        return point->number;
    return format_load(point->format, reports_piece(report->reports, report->place, point->piece));
}

static void take_points(RunState *state, const StepReport *report) {
    const StepNote *note = report->note;
    Run *run = &state->run;
    for (int i = 0; i < note->point_count; i++) {
        const NotedPoint *point = &note->points[i];
        run->step = point->is_number ? point->step : note->step;
        run_add_point(state, point->series, value_of(report, point), point->step);
    }
}

// What is told of a step is told as of its end, though others may have ended since.
static bool look_at(RunState *state, int place, Error *error) {
    Run *run = &state->run;
    int64_t now = run->step;
    const StepReport report = {&state->notes[place], state->reports, place};
    take_points(state, &report);
    run->step = report.note->step;
    if (report.note->is_step)
        run_settle_flight(state, &state->notes[place], place);
    bool done = !report.note->is_step || run_look_at_step(state, &report, error);
    if (done)
        run->step = now; // else it is where the run ends: what came after counts for nothing
    return done;
}

// What kernels found wrong with values comes with the reports: from then on nothing is believed.
// After a step that ends the run the reports of others are dropped.
static bool take(RunState *state, bool drains, Error *error) {
    Device *device = state->run.device;
    bool done = state->fault.code == ERROR_NONE;
    for (int place; state->reports && (place = reports_take(state->reports, drains)) >= 0;) {
        device_take_status(device);
        done = done && device_check(device, &state->fault) && look_at(state, place, &state->fault);
        drains = drains || !done;
        reports_done(state->reports, place);
    }
    if (!done && error)
        *error = state->fault;
    return done;
}

bool run_report_step(RunState *state, double now, Error *error) {
    return post(state, &now, error) && take(state, false, error);
}

void run_settle(RunState *state) {
    (void)take(state, true, NULL); // it is kept in `fault`
}

void run_report_points(RunState *state) {
    Error ignored = {0};
    if (state->pending_count > 0)
        (void)post(state, NULL, &ignored); // without memory they go with the step
    (void)take(state, false, NULL);
}

bool run_awaits_points(const RunState *state) {
    return state->pending_count > 0 || (state->reports && reports_under_way(state->reports) > 0);
}

// ---- read ---------------------------------------------------------------------------------------

OptimizerReport run_reported(const StepReport *report, int i) {
    return optimizer_reported(&report->note->optimizers[i], report->reports, report->place);
}

const GradStats *run_reported_stats(const StepReport *report, int i, int parameter,
                                    GradStats *room) {
    return gradients_reported_stats(&report->note->optimizers[i].gradients, report->reports,
                                    report->place, parameter, room);
}

const ScaleState *run_reported_scale(const StepReport *report) {
    return report->note->scaler ? reports_piece(report->reports, report->place, report->note->scale)
                                : NULL;
}

StepScale run_scale_of(const RunState *state, const StepReport *report, int i) {
    const StepNote *note = report->note;
    const NotedScale *noted = &note->scales[i];
    if (i < note->optimizer_count && noted->scaler != 0)
        return (StepScale){&noted->rule,
                           reports_piece(report->reports, report->place, noted->piece),
                           state->watched[i].scale_before, true};
    if (!note->scaler)
        return (StepScale){.before = 1};
    return (StepScale){&note->rule, run_reported_scale(report), state->watched[i].scale_before,
                       false};
}
