// From a checkpoint back to a run that stands where it was taken.
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "data/loader.h"
#include "optim/state.h"
#include "run/checkpoint.h"
#include "run/checkpoint_private.h"
#include "run/run_private.h"

// ---- opening ------------------------------------------------------------------------------------

const char *checkpoint_note(const Checkpoint *checkpoint, const char *key) {
    return safe_header_note(safe_header(checkpoint->file), key);
}

int64_t checkpoint_step(const Checkpoint *checkpoint) {
    return checkpoint->step;
}

bool checkpoint_is_at_end(const Checkpoint *checkpoint) {
    return checkpoint->at_end;
}

bool checkpoint_leader_ends(const Checkpoint *checkpoint) {
    const char *boundary = checkpoint_note(checkpoint, "boundary");
    return !boundary || strcmp(boundary, "first") == 0;
}

Checkpoint *checkpoint_open(const char *path, const char *hash, const RestoreOwn *own,
                            Error *error) {
    Checkpoint *checkpoint = calloc(1, sizeof *checkpoint);
    if (!checkpoint) {
        error_fail(error, ERROR_MEMORY, "no memory to open a checkpoint");
        return NULL;
    }
    checkpoint->exact = own == NULL;
    if (own)
        checkpoint->own = *own;
    checkpoint->file = safe_open(path, error);
    if (checkpoint->file && check_file_hash(checkpoint->file, path, hash, error) &&
        check_contents(checkpoint, path, error))
        return checkpoint;
    checkpoint_close(checkpoint);
    return NULL;
}

void checkpoint_close(Checkpoint *checkpoint) {
    if (!checkpoint)
        return;
    safe_close(checkpoint->file);
    free(checkpoint);
}

bool checkpoint_read_journal(Checkpoint *checkpoint, Journal *journal, Error *error) {
    const SafeEntry *entry = safe_header_find(safe_header(checkpoint->file), "journal");
    size_t size = (size_t)(entry->end - entry->begin);
    void *bytes = malloc(size ? size : 1);
    if (!bytes)
        return error_fail(error, ERROR_MEMORY, "resume: no memory for the journal");
    bool done = safe_read(checkpoint->file, entry, bytes, error) &&
                journal_set(journal, bytes, size, error);
    free(bytes);
    return done;
}

// ---- filling ------------------------------------------------------------------------------------

// Reads up to `count` numbers; returns how many there were.
static int numbers_of(const char *text, double *numbers, int count) {
    int found = 0;
    while (text && *text && found < count) {
        char *end;
        numbers[found] = strtod(text, &end);
        if (end == text)
            break;
        found++;
        text = end;
    }
    return found;
}

// Whether a fork's own options decide what this piece holds: a scale by another rule starts afresh,
// and rates are those of its own settings.
static bool is_overruled(const Checkpoint *checkpoint, const Inventory *inventory,
                         const Piece *piece) {
    const MemberList *scalers = &inventory->lists[MEMBER_SCALER];
    if (piece->is_setting && checkpoint->own.settings)
        return true;
    if (!checkpoint->own.scale)
        return false;
    for (int i = 0; i < scalers->count; i++) {
        char key[32], text[256];
        if (!scalers->members[i] || scalers->members[i] != piece->owner)
            continue;
        snprintf(key, sizeof key, "scaler%d.rule", i);
        const char *saved = checkpoint_note(checkpoint, key);
        checkpoint_rule_text(scaler_rule(piece->owner), text, sizeof text);
        return !saved || strcmp(saved, text) != 0;
    }
    return false;
}

// The rule of a scale, which an order may have changed.
static bool restore_rules(const Checkpoint *checkpoint, const Inventory *inventory, Error *error) {
    const MemberList *scalers = &inventory->lists[MEMBER_SCALER];
    for (int i = 0; i < scalers->count && !checkpoint->own.scale; i++) {
        char key[32], text[256];
        snprintf(key, sizeof key, "scaler%d.rule", i);
        const char *saved = checkpoint_note(checkpoint, key);
        ScaleRule rule;
        if (!scalers->members[i] || !saved)
            continue;
        checkpoint_rule_text(scaler_rule(scalers->members[i]), text, sizeof text);
        if (strcmp(saved, text) == 0)
            continue;
        double numbers[8];
        if (numbers_of(saved, numbers, 8) < 8 || !(numbers[0] >= 0 && numbers[0] <= SCALE_GIVEN) ||
            !(fabs(numbers[6]) <= 0x1p53) || !(fabs(numbers[7]) <= 0x1p53))
            return error_fail(error, ERROR_FAILED, "the checkpoint's %s cannot be read; " WAY_OUT,
                              key);
        rule = (ScaleRule){.kind = (ScaleKind)numbers[0],
                           .init = numbers[1],
                           .growth = numbers[2],
                           .backoff = numbers[3],
                           .floor = numbers[4],
                           .ceiling = numbers[5],
                           .interval = (int64_t)numbers[6],
                           .hysteresis = (int64_t)numbers[7]};
        if (!scaler_set_rule(scalers->members[i], &rule, error))
            return false;
    }
    return true;
}

static bool fill(const Checkpoint *checkpoint, const PieceList *list, const Inventory *inventory,
                 Error *error) {
    for (int i = 0; i < list->count; i++) {
        const Piece *piece = &list->pieces[i];
        const SafeEntry *entry = safe_header_find(safe_header(checkpoint->file), piece->name);
        bool wanted = entry && piece_fits(piece, entry) &&
                      !(piece->storage && !piece->storage->hollow) &&
                      !is_overruled(checkpoint, inventory, piece);
        if (wanted && !piece_put(piece, checkpoint->file, entry, error))
            return false;
    }
    return true;
}

bool checkpoint_has_own_settings(const Checkpoint *checkpoint) {
    return checkpoint->own.settings;
}

// The base rate, which an order may have changed from outside; a fork's --set is the fork's own.
static bool restore_rates(const Checkpoint *checkpoint, const Inventory *inventory, Error *error) {
    const MemberList *optimizers = &inventory->lists[MEMBER_OPTIMIZER];
    if (checkpoint_has_own_settings(checkpoint))
        return true;
    for (int i = 0; i < optimizers->count; i++) {
        char name[32];
        double numbers[OPTIMIZER_NUMBERS];
        snprintf(name, sizeof name, "optimizer%d/state", i);
        const SafeEntry *entry = safe_header_find(safe_header(checkpoint->file), name);
        if (!optimizers->members[i] || !entry)
            continue;
        if (!safe_read(checkpoint->file, entry, numbers, error) ||
            !optimizer_set_rate(optimizers->members[i], numbers[OPTIMIZER_NUMBERS - 1], error))
            return false;
    }
    return true;
}

// Layers as they were set while the run went on; of a fork that sets some itself, they stay its
// own.
static bool restore_layers(const Checkpoint *checkpoint, Run *run, Error *error) {
    Policy *policy = run->engine->policy;
    if (checkpoint->own.layers)
        return true;
    for (int i = 1; i < policy_layer_count(policy); i++) {
        char key[32];
        const PolicyLayer *layer = policy_layer(policy, i);
        snprintf(key, sizeof key, "layer%d", i);
        const char *saved = checkpoint_note(checkpoint, key);
        LayerPrecision own = LAYER_AUTO;
        if (saved && !layer_precision_parse(saved, &own, error))
            return false;
        if (own != layer->own)
            policy_set_layer(policy, i, own);
    }
    return true;
}

// ---- counters -----------------------------------------------------------------------------------

static int64_t whole(const Checkpoint *checkpoint, const char *key) {
    const char *text = checkpoint_note(checkpoint, key);
    return text ? strtoll(text, NULL, 10) : 0;
}

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

static void restore_series(const SafeHeader *header, Run *run) {
    for (int i = 0; i < header->note_count; i++) {
        const SafeNote *note = &header->notes[i];
        double numbers[5];
        if (strncmp(note->key, "series.", 7) == 0 && numbers_of(note->value, numbers, 5) == 5)
            restore_one_series(run, note->key + 7, numbers);
    }
}

// In the order in which they were given first; notes are sorted.
static void restore_results(const SafeHeader *header, Run *run) {
    bool found = true;
    for (int at = 0; found && at < RUN_MAX_METRICS; at++) {
        found = false;
        for (int i = 0; i < header->note_count && !found; i++) {
            const SafeNote *note = &header->notes[i];
            double numbers[2];
            found = strncmp(note->key, "result.", 7) == 0 &&
                    numbers_of(note->value, numbers, 2) == 2 && numbers[0] == at &&
                    run_result(run, note->key + 7, numbers[1], NULL);
        }
    }
}

// What it took so far; energy that was not known then is not known now.
static void restore_time(const Checkpoint *checkpoint, RunState *state) {
    Run *run = &state->run;
    double numbers[2];
    run_pause_clock(run);
    if (numbers_of(checkpoint_note(checkpoint, "seconds"), numbers, 2) == 2) {
        run->training_seconds = numbers[0];
        state->first_step_seconds = numbers[1];
    }
    run_resume_clock(run);
    if (numbers_of(checkpoint_note(checkpoint, "wall"), numbers, 1) == 1)
        run->started -= numbers[0];
    if (numbers_of(checkpoint_note(checkpoint, "joules"), numbers, 1) == 1)
        state->energy.joules += numbers[0];
}

// What a run says of all its steps together.
static void restore_summary(const Checkpoint *checkpoint, RunState *state) {
    Run *run = &state->run;
    double numbers[3];
    run->forked_at = whole(checkpoint, "forked_at");
    if (numbers_of(checkpoint_note(checkpoint, "scale"), numbers, 3) == 3) {
        run->scale_last = numbers[0];
        run->scale_min = numbers[1];
        run->scale_max = numbers[2];
    }
    restore_series(safe_header(checkpoint->file), run);
    restore_time(checkpoint, state);
}

// A fork says that of its own steps alone: what its parent did before stands with the parent.
static void begin_as_fork(RunState *state) {
    Run *run = &state->run;
    run->forked_at = run->step;
    if (run->scaler)
        run->scale_last = run->scale_min = run->scale_max = scaler_get(run->scaler);
    run->started = clock_seconds();
    run_pause_clock(run);
    run->training_seconds = state->first_step_seconds = 0;
    run_resume_clock(run);
    energy_sample(&state->energy);
    if (!isnan(state->energy.joules))
        state->energy.joules = 0;
}

// A fork that is to be otherwise makes its own.
static void restore_diagnoses(const Checkpoint *checkpoint, Run *run) {
    char key[40];
    const RestoreOwn *own = &checkpoint->own;
    if (own->settings || own->layers || own->scale)
        return;
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

void checkpoint_restore_counters(const Checkpoint *checkpoint, Run *run) {
    const SafeHeader *header = safe_header(checkpoint->file);
    run->step = checkpoint->step;
    run->applied = whole(checkpoint, "applied");
    run->skipped = whole(checkpoint, "skipped");
    run->samples = (uint64_t)whole(checkpoint, "samples");
    run->epoch = whole(checkpoint, "epoch");
    run->skips_in_a_row = (int)whole(checkpoint, "skips_in_a_row");
    const char *culprit = checkpoint_note(checkpoint, "culprit");
    utf8_copy(run->culprit, sizeof run->culprit, culprit ? culprit : "");
    restore_results(header, run);
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
}

// ---- the whole ----------------------------------------------------------------------------------

bool checkpoint_restore(Checkpoint *checkpoint, Run *run, Inventory *inventory,
                        const CheckpointExtra *extra, Error *error) {
    PieceList list;
    if (!pieces_collect(&list, run, inventory, false, error))
        return false;
    // At the end of a script nothing is trained any more, and what trained may be gone.
    bool done =
        check_model(checkpoint, &list, error) &&
        (extra->at_end || check_state(checkpoint, &list, error)) &&
        check_positions(checkpoint, run, inventory, extra, error) &&
        restore_rules(checkpoint, inventory, error) && fill(checkpoint, &list, inventory, error) &&
        restore_rates(checkpoint, inventory, error) && restore_layers(checkpoint, run, error);
    pieces_clear(&list);
    if (!done)
        return false;
    checkpoint_restore_counters(checkpoint, run);
    restore_watched(run);
    return true;
}

// ---- weights alone ------------------------------------------------------------------------------

double checkpoint_scale_of_weights(const SafeFile *file) {
    const SafeHeader *header = safe_header(file);
    const char *scale = safe_header_note(header, "scale");
    return scale && safe_header_find(header, "scaler0/state") ? strtod(scale, NULL) : 0;
}

bool checkpoint_load_weights(SafeFile *file, Inventory *inventory, int first, Error *error) {
    const SafeHeader *header = safe_header(file);
    bool done = check_weights(header, inventory, first, error);
    for (int i = first; done && i < inventory->named_count; i++) {
        const NamedTensor *named = &inventory->named[i];
        char *name = piece_name_of(named);
        if (!name)
            return error_fail(error, ERROR_MEMORY, "no memory to load weights");
        const SafeEntry *entry = check_entry_of(header, named, name);
        Piece piece = piece_of_tensor(name, PIECE_WEIGHT, named->tensor);
        done = !entry || piece_put(&piece, file, entry, error);
        free(name);
    }
    return done;
}
