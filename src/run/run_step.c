// The boundary between two steps. On the way where nothing happens it costs a few reads of
// counters: a small model takes forty thousand steps a second.
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/shortest.h"
#include "run/recorder_private.h"
#include "run/run_private.h"

typedef enum StepOutcome { STEP_WITHOUT_UPDATE, STEP_APPLIED, STEP_SKIPPED } StepOutcome;

// What one optimizer did since the last boundary.
static StepOutcome observe_optimizer(WatchedOptimizer *watched, Optimizer *optimizer,
                                     char culprit[RUN_NAME_SIZE]) {
    uint64_t applied = optimizer_applied(optimizer);
    if (applied < watched->applied) // its count was set back
        watched->applied = watched->skipped = 0;
    bool has_applied = applied > watched->applied;
    watched->applied = applied;
    if (has_applied)
        return STEP_APPLIED;
    OptimizerReport report = optimizer_report(optimizer);
    bool has_skipped = report.skipped > watched->skipped;
    watched->skipped = report.skipped;
    if (has_skipped && !culprit[0] && report.culprit)
        utf8_copy(culprit, RUN_NAME_SIZE, report.culprit);
    return has_skipped ? STEP_SKIPPED : STEP_WITHOUT_UPDATE;
}

// Which of them acted, and which were applied, is a bit each.
static StepOutcome observe_optimizers(RunState *state, char culprit[RUN_NAME_SIZE],
                                      unsigned *scanned, unsigned *applied) {
    Run *run = &state->run;
    StepOutcome outcome = STEP_WITHOUT_UPDATE;
    for (int i = 0; i < run->optimizer_count; i++) {
        StepOutcome one = observe_optimizer(&state->watched[i], run->optimizers[i], culprit);
        if (one != STEP_WITHOUT_UPDATE) {
            *scanned |= 1u << i;
            run_check_rate(state, i, one == STEP_SKIPPED);
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

static void observe_scale(RunState *state) {
    Run *run = &state->run;
    if (!run->scaler)
        return;
    if (run->scaler != state->watched_scaler) { // what it started from counts too
        const ScaleRule *rule = scaler_rule(run->scaler);
        double initial = (double)scale_state_initial(rule).scale;
        if (!state->watched_scaler)
            run->scale_last = run->scale_min = run->scale_max = initial;
        run_include_scale(run, initial);
        state->watched_scaler = run->scaler;
    }
    double scale = scaler_get(run->scaler);
    if (scale != run->scale_last)
        run_include_scale(run, scale);
}

// ---- skips --------------------------------------------------------------------------------------

// Of many in a row, the first few and every tenth are told.
static bool is_told(int in_a_row) {
    enum { FIRST = 3, THEN_EVERY = 10 };
    return in_a_row <= FIRST || in_a_row % THEN_EVERY == 0;
}

// "fc1" of "fc1.weight".
static void layer_of_parameter(char layer[RUN_NAME_SIZE], const char *parameter) {
    utf8_copy(layer, RUN_NAME_SIZE, parameter);
    char *dot = strrchr(layer, '.');
    if (dot)
        *dot = 0;
}

void run_tell_skip(RunState *state) {
    SkippedStep *skip = &state->waiting;
    if (skip->step == 0)
        return;
    Run *run = &state->run;
    char text[400], scale[96] = "";
    if (skip->has_scale && run->scale_last != skip->scale)
        snprintf(scale, sizeof scale, ", scale %s -> %s", shortest_of_float(skip->scale).text,
                 shortest_of_float(run->scale_last).text);
    else if (skip->has_scale)
        snprintf(scale, sizeof scale, " at scale %s", shortest_of_float(skip->scale).text);
    // A loss may be logged before its step ends or after.
    bool has_loss = state->loss_step >= skip->step - 1;
    bool is_bad = state->bad_loss_step >= skip->step - 1;
    const char *cause = !has_loss ? ""
                        : is_bad  ? "; the loss is not finite either: the forward pass overflowed"
                        : skip->has_scale ? "; the loss is finite: the scale was too large"
                                          : "; the loss is finite: only the way back overflowed";
    snprintf(text, sizeof text, "step %lld skipped: gradient of %s not finite%s%s",
             (long long)skip->step, skip->culprit[0] ? skip->culprit : "a parameter", scale, cause);
    char layer[RUN_NAME_SIZE];
    layer_of_parameter(layer, skip->culprit);
    double after = skip->has_scale ? skip->scale_after : (double)NAN;
    if (is_told(skip->in_a_row) && run->observer.event && !run->is_silent)
        run->observer.event(run->observer.context, run, text);
    run_record_event_at(run, skip->step, EVENT_SKIP, layer, after, text);
    skip->step = 0;
}

// Skips in a row that the scale could do nothing about: those on its way down are not among them.
static int pointless_skips(const Run *run) {
    return run->scaler ? (int)scaler_state(run->scaler).skips_at_floor : run->skips_in_a_row;
}

// 20 of them: going on is pointless.
static bool fail_at_floor(RunState *state, Error *error) {
    Run *run = &state->run;
    int skips = pointless_skips(run);
    run_read_pending(state, INT64_MAX);
    bool is_bad = state->bad_loss_step >= run->step - 2;
    run_tell_skip(state);
    const char *culprit = run->culprit[0] ? run->culprit : "a parameter";
    const ScaleRule *rule = run->scaler ? scaler_rule(run->scaler) : NULL;
    bool is_fixed = rule && rule->kind == SCALE_STATIC;
    char scale[96] = "no loss scale in use";
    if (is_fixed)
        snprintf(scale, sizeof scale, "the loss scale fixed at %s",
                 shortest_of_float(run->scale_last).text);
    else if (rule && rule->kind != SCALE_NONE)
        snprintf(scale, sizeof scale, "the loss scale at %s, from where it does not fall",
                 shortest_of_float(run->scale_last).text);
    const char *where = is_bad ? "forward: the loss itself is not finite"
                               : "backward: the loss is finite as far as it was logged";
    run_diagnose(run, DIAGNOSIS_SCALE_FLOOR, culprit,
                 "%d steps in a row skipped with %s; first not finite: the gradient of %s (%s)",
                 skips, scale, culprit, where);
    if (is_fixed && !is_bad) // with another scale it may go well
        return error_fail(error, ERROR_FAILED,
                          "%d steps in a row were skipped with %s, which is too large: the first "
                          "gradient that is not finite is that of %s (%s); lower it, or take "
                          "--loss-scale dynamic, which finds its own",
                          skips, scale, culprit, where);
    return error_fail(
        error, ERROR_FAILED,
        "the loss scale cannot help any more: %d steps in a row were skipped with %s; "
        "the first gradient that is not finite is that of %s (%s); set that layer to "
        "bf16 or fp32 with --layer, lower the learning rate, or check the data",
        skips, scale, culprit, where);
}

static bool is_stuck(const Run *run) {
    return run->skips_in_a_row >= RUN_SKIPS_AT_FLOOR && pointless_skips(run) >= RUN_SKIPS_AT_FLOOR;
}

static bool count_skip(RunState *state, double scale_before, const char *culprit, Error *error) {
    Run *run = &state->run;
    run->skipped++;
    run->skips_in_a_row++;
    utf8_copy(run->culprit, sizeof run->culprit, culprit);
    state->waiting = (SkippedStep){.step = run->step,
                                   .in_a_row = run->skips_in_a_row,
                                   .scale = scale_before,
                                   .scale_after = run->scale_last,
                                   .has_scale = run->scaler != NULL};
    utf8_copy(state->waiting.culprit, sizeof state->waiting.culprit, culprit);
    return !is_stuck(run) || fail_at_floor(state, error);
}

// ---- changes from outside -----------------------------------------------------------------------

void run_apply_changes(Run *run) {
    const Policy *policy = run->engine->policy;
    if (policy_apply_queued(run->engine->policy) == 0)
        return;
    char text[256];
    int set = 0;
    int used =
        snprintf(text, sizeof text, "precision changed after step %lld:", (long long)run->step);
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
static void tell_scale(Run *run, double before) {
    if (!run->recorder || !run->scaler || run->scale_last == before ||
        scaler_rule(run->scaler)->kind != SCALE_DYNAMIC)
        return;
    char text[96];
    snprintf(text, sizeof text, "the loss scale went from %s to %s", shortest_of_float(before).text,
             shortest_of_float(run->scale_last).text);
    run_record_event(run, EVENT_SCALE, "", run->scale_last, text);
}

// What is recorded of the step, and how long it waits for that: pauses are not on the clock.
static void record_step(RunState *state, unsigned scanned, unsigned applied) {
    Run *run = &state->run;
    double began = run_clock(run);
    if (state->watch_from == 0)
        state->watch_from = began;
    run_sample_step(state, applied);
    if (!run->recorder)
        return;
    recorder_step(run->recorder, run, scanned);
    run_attend(run);
    state->watch_seconds += run_clock(run) - began;
}

// ---- the boundary -------------------------------------------------------------------------------

bool run_step_ended(Run *run, bool *stop, Error *error) {
    RunState *state = run_state(run);
    *stop = false;
    if (!run_check_layers(run, error))
        return false;
    run->step++;
    if (run->step > run->total_steps)
        run->total_steps = 0; // the plan was less than the script does: the end is unknown
    run_read_pending(state, run->step);
    double scale_before = run->scale_last;
    if (run->scaler && run->scaler != state->watched_scaler)
        scale_before = (double)scale_state_initial(scaler_rule(run->scaler)).scale;
    run_tell_skip(state);
    char culprit[RUN_NAME_SIZE] = "";
    unsigned scanned = 0, applied = 0;
    StepOutcome outcome = observe_optimizers(state, culprit, &scanned, &applied);
    observe_scale(state);
    if (outcome == STEP_APPLIED) {
        run->applied++;
        run->skips_in_a_row = 0;
    }
    if (outcome != STEP_SKIPPED)
        tell_scale(run, scale_before);
    bool done = outcome != STEP_SKIPPED || count_skip(state, scale_before, culprit, error);
    run_apply_changes(run);
    if (run->step == run->forked_at + 1)
        state->first_step_seconds = run_clock(run);
    if (run->step == 1)
        run_check_setup(state);
    run_check_gradients(state);
    if (!run->is_silent)
        record_step(state, scanned, applied);
    if (run->observer.step && !run->is_silent)
        run->observer.step(run->observer.context, run);
    state->reached_limit = run->step_limit > 0 && run->step >= run->step_limit;
    *stop = state->reached_limit || run_is_to_stop(run);
    return done;
}
