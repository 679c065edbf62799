// The boundary between two steps. On the way where nothing happens it costs a few reads of
// counters: a small model takes forty thousand steps a second.
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/shortest.h"
#include "run/recorder_private.h"
#include "run/run_private.h"
#include "run/twin_private.h"

typedef enum StepOutcome { STEP_WITHOUT_UPDATE, STEP_APPLIED, STEP_SKIPPED } StepOutcome;

// What one optimizer did since the step before.
static StepOutcome observe_optimizer(WatchedOptimizer *watched, OptimizerReport report) {
    if (report.applied < watched->applied) // its count was set back
        watched->applied = watched->skipped = 0;
    bool has_applied = report.applied > watched->applied;
    watched->applied = report.applied;
    if (has_applied)
        return STEP_APPLIED;
    bool has_skipped = report.skipped > watched->skipped;
    watched->skipped = report.skipped;
    return has_skipped ? STEP_SKIPPED : STEP_WITHOUT_UPDATE;
}

// Which of them acted, and which were applied, is a bit each.
static StepOutcome observe_optimizers(RunState *state, const StepReport *report, unsigned *scanned,
                                      unsigned *applied) {
    StepOutcome outcome = STEP_WITHOUT_UPDATE;
    for (int i = 0; i < report->note->optimizer_count; i++) {
        StepOutcome one = observe_optimizer(&state->watched[i], run_reported(report, i));
        if (one != STEP_WITHOUT_UPDATE) {
            *scanned |= 1u << i;
            run_check_rate(state, i, report->note->optimizers[i].rate, one == STEP_SKIPPED);
        }
        if (one == STEP_APPLIED)
            *applied |= 1u << i;
        if (one > outcome) // one that skipped makes the step a skipped one
            outcome = one;
    }
    return outcome;
}

void run_include_scale(Run *run, double scale) {
    run->scale_last = scale;
    if (scale < run->scale_min)
        run->scale_min = scale;
    if (scale > run->scale_max)
        run->scale_max = scale;
}

static void observe_scale(RunState *state, const StepReport *report) {
    Run *run = &state->run;
    const StepNote *note = report->note;
    if (!note->scaler)
        return;
    if (note->scaler != state->watched_scaler) { // what it started from counts too
        double initial = (double)scale_state_initial(&note->rule).scale;
        if (!state->watched_scaler)
            run->scale_last = run->scale_min = run->scale_max = initial;
        run_include_scale(run, initial);
        state->watched_scaler = note->scaler;
    }
    double scale = (double)run_reported_scale(report)->scale;
    if (scale != run->scale_last)
        run_include_scale(run, scale);
}

SeenScale *run_seen_scale(RunState *state, uint64_t scaler) {
    return &state->seen_scales[scaler % RUN_MAX_OPTIMIZERS];
}

// What each optimizer was stepped at: one whose scaler was not seen before at what that starts
// from.
static void observe_scales(RunState *state, const StepReport *report, double before) {
    const StepNote *note = report->note;
    for (int i = 0; i < note->optimizer_count; i++) {
        const NotedScale *noted = &note->scales[i];
        const SeenScale *seen = run_seen_scale(state, noted->scaler);
        state->watched[i].scale_before = noted->scaler == 0 ? before
                                         : seen->scaler == noted->scaler
                                             ? seen->scale
                                             : (double)scale_state_initial(&noted->rule).scale;
    }
    for (int i = 0; i < note->optimizer_count; i++)
        if (note->scales[i].scaler != 0)
            *run_seen_scale(state, note->scales[i].scaler) = (SeenScale){
                note->scales[i].scaler, (double)run_scale_of(state, report, i).state->scale};
}

// ---- changes from outside -----------------------------------------------------------------------

void run_apply_changes(Run *run) {
    const Policy *policy = run->engine->policy;
    if (policy_apply_queued(run->engine->policy) == 0)
        return;
    char text[256];
    int set = 0;
    int used = snprintf(text, sizeof text, EVENT_FORMATS_CHANGED "%lld:", (long long)run->step);
    for (int i = 1; i < policy_layer_count(policy); i++) {
        const PolicyLayer *layer = policy_layer(policy, i);
        if (layer->own == LAYER_AUTO || (size_t)used + strlen(layer->name) + 8 > sizeof text)
            continue;
        used += snprintf(text + used, sizeof text - (size_t)used, " %s=%s", layer->name,
                         layer_precision_name(layer->own));
        set++;
    }
    if (set == 0)
        snprintf(text + used, sizeof text - (size_t)used, " no layer is set apart any more");
    run_tell(run, EVENT_LIFE, "", (double)NAN, text);
}

// The scale moved by itself. Rules that move it at every step would only repeat its series.
static void tell_scale(Run *run, const StepNote *note, double before) {
    if (!run->recorder || !note->scaler || run->scale_last == before ||
        note->rule.kind != SCALE_DYNAMIC)
        return;
    char text[96];
    snprintf(text, sizeof text, "the loss scale went from %s to %s", shortest_of_float(before).text,
             shortest_of_float(run->scale_last).text);
    run_record_event(run, EVENT_SCALE, "", run->scale_last, text);
}

// ---- a step that is reported --------------------------------------------------------------------

bool run_look_at_step(RunState *state, const StepReport *report, Error *error) {
    Run *run = &state->run;
    const StepNote *note = report->note;
    double scale_before = run->scale_last;
    if (note->scaler && note->scaler != state->watched_scaler)
        scale_before = (double)scale_state_initial(&note->rule).scale;
    run_tell_skip(state);
    unsigned scanned = 0, applied = 0;
    StepOutcome outcome = observe_optimizers(state, report, &scanned, &applied);
    observe_scale(state, report);
    observe_scales(state, report, scale_before);
    if (outcome == STEP_APPLIED) {
        run->applied++;
        run->skips_in_a_row = 0;
    }
    if (outcome != STEP_SKIPPED)
        tell_scale(run, note, scale_before);
    bool done = outcome != STEP_SKIPPED || run_count_skip(state, report, scanned & ~applied, error);
    run_check_skips(state, report, outcome == STEP_SKIPPED, outcome == STEP_APPLIED);
    run_check_gradients(state, report);
    run_check_zeros(state, report, applied);
    run_watch_gradients(state, report);
    run_fly(state, report, scale_before, outcome == STEP_SKIPPED);
    if (note->has_sample)
        run_look_at_sample(state, report, applied);
    if (note->has_factors)
        run_look_at_factors(state, note->step);
    if (run->recorder && !run->is_silent)
        recorder_step(run->recorder, run, report, scanned);
    return done;
}

// ---- the boundary -------------------------------------------------------------------------------

// Samples, orders, and what all of the boundary that began at `now` cost: pauses are not on the
// clock.
static void attend(RunState *state, double now) {
    Run *run = &state->run;
    double began = run_clock_at(state, now);
    if (state->watch_from == 0)
        state->watch_from = began;
    run_begin_sample(state, now);
    if (!run->recorder)
        return;
    run_attend(run);
    state->watch_seconds += run_clock(run) - began;
}

static void tell_remark(Run *run) {
    char *remark = run->device->remark;
    if (!remark[0])
        return;
    run_tell(run, EVENT_LIFE, "", (double)NAN, remark);
    remark[0] = 0;
}

// What later steps find made is made in the first two: what they hold at most is told by itself.
static void begin_lap(RunState *state) {
    if (state->steps_here < RUN_LAP_STEPS && ++state->steps_here == RUN_LAP_STEPS)
        allocator_begin_lap(state->run.device->allocator);
}

bool run_step_ended(Run *run, bool *stop, Error *error) {
    enum { AUTOCAST_AT = 10, AUTOCAST_EVERY = 1000 }; // steps
    RunState *state = run_state(run);
    *stop = false;
    if (!run_check_layers(run, error) || !run_make_reports(state, error))
        return false;
    double now = clock_seconds();
    run->step++;
    begin_lap(state);
    if (!engine_end_step(run->engine, error))
        return false;
    if (run->step > run->total_steps)
        run->total_steps = 0; // the plan was less than the script does: the end is unknown
    bool done = run_report_step(state, now, error);
    run_apply_changes(run);
    tell_remark(run);
    twin_step_ended(state);
    if (run->options->twin)
        now = clock_seconds(); // the clock stood still while it was waited for
    if (run->step == run->forked_at + 1)
        state->first_step_seconds = run_clock(run);
    if (run->step == 1)
        run_check_setup(state);
    if (run->step % AUTOCAST_EVERY == AUTOCAST_AT)
        run_check_autocast(run);
    if (!run->is_silent) {
        run_obey_again(run);
        attend(state, now);
    }
    if (run->observer.step && !run->is_silent)
        run->observer.step(run->observer.context, run);
    state->reached_limit = run->step_limit > 0 && run->step >= run->step_limit;
    *stop = state->reached_limit || run_is_to_stop(run);
    return done;
}
