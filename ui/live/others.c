// The runs beside the one that is looked at: the one drawn behind its curves, and the fp32 run that
// its speed and memory are held against. Only runs that can be compared: of the same experiment and
// parameters, on the same device, and not broken off.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "store/runs.h"
#include "store/twin.h"
#include "ui/live/live.h"

static void take_other(LiveOther *other, const RunRecord *record) {
    *other = (LiveOther){.is_there = true,
                         .id = record->id,
                         .step = record->step,
                         .samples_per_s = record->samples_per_s,
                         .steps_per_s = record->steps_per_s,
                         .wall_s = record->wall_s,
                         .memory_peak = record->memory.peak,
                         .activations = record->memory.activations};
    if (!record_memory_in_steps(record, &other->held))
        other->held.activations = RECORD_UNKNOWN;
    live_clean(other->precision, sizeof other->precision, record->precision);
}

static bool is_alike(const RecordParameter *a, const RecordParameter *b) {
    return a->kind == b->kind && strcmp(a->name, b->name) == 0 && strcmp(a->text, b->text) == 0 &&
           a->integer == b->integer && (a->kind != RECORD_NUMBER || a->number == b->number);
}

bool live_has_parameters_of(const RunRecord *run, const RunRecord *other) {
    bool same = run->parameter_count == other->parameter_count;
    for (int i = 0; same && i < run->parameter_count; i++)
        same = is_alike(&run->parameters[i], &other->parameters[i]);
    return same;
}

// In every layer, whatever it was started in.
static bool is_full_precision(const RunRecord *run) {
    bool all = run->layer_count > 0 || strcmp(run->precision, "fp32") == 0;
    for (int i = 0; i < run->layer_count; i++)
        all = all && strcmp(run->layers[i].precision, "fp32") == 0;
    return all;
}

// It goes on or went through, on the same device: what the listing tells.
static bool may_be_compared(const RunRecord *run, const RunRecord *other) {
    bool is_whole = other->status == RUN_FINISHED || (!live_is_over(other) && !other->stale);
    return other->id != run->id && is_whole && strcmp(other->experiment, run->experiment) == 0 &&
           strcmp(other->device, run->device) == 0 &&
           strcmp(other->device_name, run->device_name) == 0;
}

// The higher the better a companion: trained beside it, in another precision, of the same matrix,
// the same seed, earlier rather than later.
static int likeness(const RunRecord *run, const RunRecord *other) {
    return (record_twin(run) == other->id ? 16 : 0) +
           (strcmp(other->precision, run->precision) != 0 ? 8 : 0) +
           (run->matrix != 0 && run->matrix == other->matrix ? 4 : 0) +
           (run->seed == other->seed ? 2 : 0) + (other->id < run->id ? 1 : 0);
}

static bool is_as_it_was(const LiveOther *a, const LiveOther *b) {
    return a->id == b->id && a->step == b->step;
}

// Parameters and layers are not in the listing.
static void look_closer(Ui *ui, LiveData *data, int64_t id, bool wants_full) {
    RunRecord other = {0};
    if (store_read_run(ui->store, id, &other, NULL) &&
        live_has_parameters_of(&data->record, &other)) {
        if (!data->ghost.is_there)
            take_other(&data->ghost, &other);
        if (wants_full && !data->full.is_there && is_full_precision(&other))
            take_other(&data->full, &other);
    }
    record_clear(&other);
}

// From the best down, of equal ones the newest first, as far as is worth the reading.
static void choose_others(Ui *ui, LiveData *data, const RunRecord *runs, int count) {
    enum { BEST = 31, MOST_READ = 32 };
    const RunRecord *run = &data->record;
    int left = MOST_READ;
    for (int score = BEST; score >= 0; score--)
        for (int i = 0; i < count && left > 0; i++) {
            if (likeness(run, &runs[i]) != score || !may_be_compared(run, &runs[i]))
                continue;
            bool may_be_full = !data->is_full && strcmp(runs[i].precision, "fp32") == 0;
            if (data->ghost.is_there && (data->full.is_there || !may_be_full))
                continue;
            look_closer(ui, data, runs[i].id, may_be_full);
            left--;
        }
}

// Why there is no fp32 run to compare it with, as far as is worth the reading.
static void look_for_broken(Ui *ui, LiveData *data, const RunRecord *runs, int count) {
    enum { MOST_READ = 4 };
    const RunRecord *run = &data->record;
    int left = MOST_READ;
    for (int i = 0; i < count && left > 0 && data->broken_full == 0; i++) {
        RunRecord other = {0};
        bool is_here = strcmp(runs[i].device, run->device) == 0 &&
                       strcmp(runs[i].device_name, run->device_name) == 0;
        if (runs[i].id == run->id || strcmp(runs[i].precision, "fp32") != 0 ||
            strcmp(runs[i].experiment, run->experiment) != 0)
            continue;
        data->has_unlike_full = true;
        left--;
        if (is_here && store_read_run(ui->store, runs[i].id, &other, NULL) &&
            live_has_parameters_of(run, &other) && is_full_precision(&other)) {
            data->broken_full = other.id;
            data->broken_status = other.status;
        }
        record_clear(&other);
    }
}

// What a fork was forked from stands behind it, whatever became of that.
static void take_parent(Ui *ui, LiveData *data) {
    RunRecord parent = {0};
    if (data->record.parent > 0 && store_read_run(ui->store, data->record.parent, &parent, NULL))
        take_other(&data->ghost, &parent);
    record_clear(&parent);
}

// As a comparison tells it.
static Pace pace_read(Ui *ui, int64_t run) {
    enum { MOST = 256 };
    SeriesPoint *points = NULL;
    int count = 0;
    Pace pace = pace_of(NULL, 0);
    if (store_read_series(ui->store, run, "step_seconds", 1, INT64_MAX, MOST, &points, &count,
                          NULL))
        pace = pace_of(points, count);
    free(points);
    return pace;
}

static void compare_speeds(Ui *ui, LiveData *data) {
    data->speed = (PaceRatio){NAN, NAN};
    if (!data->full.is_there)
        return;
    Pace full = pace_read(ui, data->full.id), own = pace_read(ui, data->record.id);
    data->speed = pace_ratio(&full, &own);
}

bool live_find_others(Ui *ui, LiveData *data, bool *changed, Error *error) {
    enum { MOST_LOOKED_AT = 200 };
    const RunRecord *run = &data->record;
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.";
    char words[RECORD_NAME_SIZE + 16] = "";
    if (run->experiment[0] && run->experiment[strspn(run->experiment, plain)] == 0)
        snprintf(words, sizeof words, "experiment:%s", run->experiment);
    RunFilter filter = {.words = words[0] ? words : NULL, .limit = MOST_LOOKED_AT};
    RunRecord *runs = NULL;
    int count = 0;
    LiveOther ghost = data->ghost, full = data->full;
    int64_t broken = data->broken_full;
    if (!store_list_runs(ui->store, &filter, &runs, &count, error))
        return false;
    data->ghost = data->full = (LiveOther){0};
    data->is_full = is_full_precision(run);
    take_parent(ui, data);
    choose_others(ui, data, runs, count);
    data->broken_full = 0;
    data->has_unlike_full = false;
    if (!data->full.is_there && !data->is_full)
        look_for_broken(ui, data, runs, count);
    store_free_runs(runs, count);
    compare_speeds(ui, data);
    *changed = *changed || !is_as_it_was(&ghost, &data->ghost) ||
               !is_as_it_was(&full, &data->full) || broken != data->broken_full;
    return true;
}
