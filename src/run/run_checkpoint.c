// What a run has counted, as the notes of a checkpoint, and back.
#include "run/run_checkpoint.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/stops.h"
#include "run/run_private.h"

// ---- notes --------------------------------------------------------------------------------------

static void note_time(CheckpointNotes *notes, const RunState *state) {
    const Run *run = &state->run;
    checkpoint_put_note(notes, "seconds", "%a %a", run_clock(run), state->first_step_seconds);
    checkpoint_put_note(notes, "wall", "%a", run_wall(run));
    checkpoint_put_note(notes, "joules", "%a", run_joules(state));
}

static void note_diagnoses(CheckpointNotes *notes, const Run *run) {
    char key[40];
    for (int i = 0; i < run->diagnosis_count; i++) {
        const RecordDiagnosis *diagnosis = &run->diagnoses[i];
        snprintf(key, sizeof key, "diagnosis%d", i);
        checkpoint_put_note(notes, key, "%" PRId64 " %s", diagnosis->step, diagnosis->kind);
        snprintf(key, sizeof key, "diagnosis%d.layer", i);
        checkpoint_put_note(notes, key, "%s", diagnosis->layer);
        snprintf(key, sizeof key, "diagnosis%d.text", i);
        checkpoint_put_note(notes, key, "%s", diagnosis->text);
    }
}

static void note_counters(CheckpointNotes *notes, const Run *run) {
    char key[32 + RUN_NAME_SIZE];
    checkpoint_put_note(notes, "applied", "%" PRId64, run->applied);
    checkpoint_put_note(notes, "skipped", "%" PRId64, run->skipped);
    checkpoint_put_note(notes, "samples", "%" PRIu64, run->samples);
    checkpoint_put_note(notes, "epoch", "%" PRId64, run->epoch);
    checkpoint_put_note(notes, "forked_at", "%" PRId64, run->forked_at);
    note_time(notes, (const RunState *)run);
    checkpoint_put_note(notes, "scale", "%a %a %a", run->scale_last, run->scale_min,
                        run->scale_max);
    const RunState *state = (const RunState *)run;
    checkpoint_put_note(notes, "usual_loss", "%a %" PRId64, state->usual_loss.mean,
                        state->usual_loss.count);
    if (state->loss_began_anew)
        checkpoint_put_note(notes, "loss_began_anew", "1");
    if (state->loss_is_beyond)
        checkpoint_put_note(notes, "loss_beyond", "%" PRId64 " %d", state->loss_since,
                            state->losses_beyond);
    checkpoint_put_note(notes, "loss_grown", "%a %a %d %" PRId64, state->loss_before,
                        state->loss_grew_from, state->losses_grown, state->loss_grew_at);
    checkpoint_put_note(notes, "skips_in_a_row", "%d", run->skips_in_a_row);
    checkpoint_put_note(notes, "culprit", "%s", run->culprit);
    for (int i = 0; i < run->series_count; i++) {
        const RunSeries *series = &run->series[i];
        snprintf(key, sizeof key, "series.%s", series->name);
        checkpoint_put_note(notes, key, "%d %" PRIu64 " %a %a %a", i, series->count, series->first,
                            series->last, series->best);
    }
    for (int i = 0; i < run->metric_count; i++) {
        snprintf(key, sizeof key, "result.%s", run->metrics[i].name);
        checkpoint_put_note(notes, key, "%d %a", i, run->metrics[i].value);
    }
}

static void note_run(const void *context, CheckpointNotes *notes) {
    const Run *run = context;
    checkpoint_put_note(notes, "experiment", "%s", run->experiment);
    checkpoint_put_note(notes, "seed", "%" PRIu64, run->options->seed);
    checkpoint_put_note(notes, "precision", "%s", run->precision);
    note_counters(notes, run);
    note_diagnoses(notes, run);
}

static CheckpointTraining training_of(const Run *run, Inventory *inventory,
                                      const CheckpointExtra *extra) {
    return (CheckpointTraining){.engine = run->engine,
                                .inventory = inventory,
                                .extra = extra,
                                .step = run->step,
                                .note = note_run,
                                .context = run};
}

bool run_save(Run *run, Inventory *inventory, const CheckpointExtra *extra, const char *path,
              CheckpointFile *file, Error *error) {
    run_report_points(run_state(run));
    run_settle(run_state(run));
    run_tell_skip(run_state(run));
    run_look_at_energy(run_state(run));
    CheckpointTraining training = training_of(run, inventory, extra);
    return checkpoint_save(&training, path, file, error);
}

// ---- and back -----------------------------------------------------------------------------------

static void restore_one_series(Run *run, const char *name, const double numbers[5]) {
    if (!(numbers[0] >= 0 && numbers[0] < RUN_MAX_SERIES && numbers[1] >= 0 &&
          numbers[1] <= 0x1p53))
        return;
    int at = (int)numbers[0];
    RunSeries *series = &run->series[at];
    utf8_copy(series->name, sizeof series->name, name);
    series->count = (uint64_t)numbers[1];
    series->first = numbers[2];
    series->last = numbers[3];
    series->best = numbers[4];
    if (run->series_count <= at)
        run->series_count = at + 1;
}

static void restore_series(const Checkpoint *checkpoint, Run *run) {
    int at = 0;
    double numbers[5];
    for (const char *name, *note; (name = checkpoint_next_note(checkpoint, "series.", &at, &note));)
        if (checkpoint_note_numbers(note, numbers, 5) == 5)
            restore_one_series(run, name, numbers);
}

// In the order in which they were given first; notes are sorted.
static void restore_results(const Checkpoint *checkpoint, Run *run) {
    bool found = true;
    for (int place = 0; found && place < RUN_MAX_METRICS; place++) {
        int at = 0;
        double numbers[2];
        found = false;
        for (const char *name, *note;
             !found && (name = checkpoint_next_note(checkpoint, "result.", &at, &note));)
            found = checkpoint_note_numbers(note, numbers, 2) == 2 && numbers[0] == place &&
                    run_result(run, name, numbers[1], NULL);
    }
}

// What it took so far; energy that was not known then is not known now. Before an evaluation the
// clock stands still, and goes on doing so.
static void restore_time(const Checkpoint *checkpoint, RunState *state) {
    Run *run = &state->run;
    double numbers[2];
    bool clock_ran = run_pause_clock(run);
    if (checkpoint_note_numbers(checkpoint_note(checkpoint, "seconds"), numbers, 2) == 2) {
        run->training_seconds = numbers[0];
        state->first_step_seconds = numbers[1];
    }
    state->step_clock = run->training_seconds;
    if (clock_ran)
        run_resume_clock(run);
    if (checkpoint_note_numbers(checkpoint_note(checkpoint, "wall"), numbers, 1) == 1)
        run->started -= numbers[0];
    if (checkpoint_note_numbers(checkpoint_note(checkpoint, "joules"), numbers, 1) == 1)
        run_set_joules(state, run_joules(state) + numbers[0]);
}

// What a run says of all its steps together.
static void restore_summary(const Checkpoint *checkpoint, RunState *state) {
    Run *run = &state->run;
    double numbers[3];
    run->forked_at = checkpoint_note_count(checkpoint, "forked_at");
    if (checkpoint_note_numbers(checkpoint_note(checkpoint, "scale"), numbers, 3) == 3) {
        run->scale_last = numbers[0];
        run->scale_min = numbers[1];
        run->scale_max = numbers[2];
    }
    restore_series(checkpoint, run);
    restore_time(checkpoint, state);
}

// A fork says that of its own steps alone: what its parent did before stands with the parent.
static void begin_as_fork(RunState *state) {
    Run *run = &state->run;
    run->forked_at = run->step;
    if (run->scaler)
        run->scale_last = run->scale_min = run->scale_max = scaler_get(run->scaler);
    run->started = stops_clock();
    bool clock_ran = run_pause_clock(run);
    run->training_seconds = state->first_step_seconds = state->step_clock = 0;
    if (clock_ran)
        run_resume_clock(run);
    run_look_at_energy(state);
    if (!isnan(run_joules(state)))
        run_set_joules(state, 0);
}

// A fork that is to be otherwise makes its own.
static void restore_diagnoses(const Checkpoint *checkpoint, Run *run) {
    char key[40];
    const RestoreOwn *own = checkpoint_own(checkpoint);
    if (own->settings || own->precision || own->layers || own->scale || own->recipe) {
        run_state(run)->losses_beyond = 0; // that the loss is beyond, too
        return;
    }
    run->diagnosis_count = 0;
    for (int i = 0; i < RUN_MAX_DIAGNOSES; i++) {
        RecordDiagnosis *diagnosis = &run->diagnoses[i];
        char *kind = NULL;
        snprintf(key, sizeof key, "diagnosis%d", i);
        const char *saved = checkpoint_note(checkpoint, key);
        int64_t step = saved ? strtoll(saved, &kind, 10) : 0;
        if (!kind || *kind != ' ')
            return;
        *diagnosis = (RecordDiagnosis){.step = step};
        utf8_copy(diagnosis->kind, sizeof diagnosis->kind, kind + 1);
        snprintf(key, sizeof key, "diagnosis%d.layer", i);
        saved = checkpoint_note(checkpoint, key);
        utf8_copy(diagnosis->layer, sizeof diagnosis->layer, saved ? saved : "");
        snprintf(key, sizeof key, "diagnosis%d.text", i);
        saved = checkpoint_note(checkpoint, key);
        utf8_copy(diagnosis->text, sizeof diagnosis->text, saved ? saved : "");
        run->diagnosis_count = i + 1;
    }
}

// What the loss is held against, in a fork too, and since when it has been beyond that.
static void restore_usual(const Checkpoint *checkpoint, RunState *state) {
    double numbers[4];
    if (checkpoint_note_numbers(checkpoint_note(checkpoint, "loss_grown"), numbers, 4) == 4 &&
        isfinite(numbers[0]) && isfinite(numbers[1]) && numbers[2] >= 0 &&
        numbers[2] <= INT32_MAX && numbers[3] >= 0 && numbers[3] <= 0x1p53) {
        state->loss_before = numbers[0];
        state->loss_grew_from = numbers[1];
        state->losses_grown = (int)numbers[2];
        state->loss_grew_at = (int64_t)numbers[3];
    }
    state->loss_began_anew = checkpoint_note(checkpoint, "loss_began_anew") != NULL;
    if (checkpoint_note_numbers(checkpoint_note(checkpoint, "loss_beyond"), numbers, 2) == 2 &&
        numbers[0] >= 0 && numbers[0] <= 0x1p53 && numbers[1] >= 0 && numbers[1] <= INT32_MAX) {
        state->loss_is_beyond = true;
        state->loss_since = (int64_t)numbers[0];
        state->losses_beyond = (int)numbers[1];
    }
    if (checkpoint_note_numbers(checkpoint_note(checkpoint, "usual_loss"), numbers, 2) == 2 &&
        isfinite(numbers[0]) && numbers[1] >= 0 && numbers[1] <= 0x1p53)
        state->usual_loss = (Usual){numbers[0], (int64_t)numbers[1]};
}

void run_restore_counters(Run *run, const Checkpoint *checkpoint) {
    restore_usual(checkpoint, run_state(run));
    run->step = checkpoint_step(checkpoint);
    run->applied = checkpoint_note_count(checkpoint, "applied");
    run->skipped = checkpoint_note_count(checkpoint, "skipped");
    run->samples = (uint64_t)checkpoint_note_count(checkpoint, "samples");
    run->epoch = checkpoint_note_count(checkpoint, "epoch");
    run->skips_in_a_row = (int)checkpoint_note_count(checkpoint, "skips_in_a_row");
    const char *culprit = checkpoint_note(checkpoint, "culprit");
    utf8_copy(run->culprit, sizeof run->culprit, culprit ? culprit : "");
    restore_results(checkpoint, run);
    if (run->options->parent)
        begin_as_fork(run_state(run));
    else
        restore_summary(checkpoint, run_state(run));
    restore_diagnoses(checkpoint, run);
}

// What the boundary compares its next look with.
static void restore_watched(Run *run) {
    RunState *state = run_state(run);
    for (int i = 0; i < run->optimizer_count; i++) {
        OptimizerReport report = optimizer_report(run->optimizers[i]);
        state->watched[i].optimizer = run->optimizers[i];
        state->watched[i].applied = report.applied;
        state->watched[i].skipped = report.skipped;
    }
    state->watched_scaler = run->scaler;
    const Scalers *scalers = &run->engine->scalers;
    for (uint64_t number = 1; number <= scalers->numbered; number++) {
        Scaler *scaler = scalers_find(scalers, number);
        if (scaler && scaler != run->scaler)
            *run_seen_scale(state, number) = (SeenScale){number, scaler_get(scaler)};
    }
}

bool run_restore(Run *run, Checkpoint *checkpoint, Inventory *inventory,
                 const CheckpointExtra *extra, Error *error) {
    CheckpointTraining training = training_of(run, inventory, extra);
    const RunPast *past = run->options->past;
    training.settings = past ? strstr(past->change, "--set ") : NULL;
    if (run->options->parent) // a fork that is refused here has made no step of its own
        run->forked_at = run->step;
    if (!checkpoint_restore(checkpoint, &training, error))
        return false;
    run_restore_counters(run, checkpoint);
    restore_watched(run);
    return true;
}
