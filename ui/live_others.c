// The runs beside the one that is looked at: the one drawn behind its curves, and the fp32 run that
// its speed and memory are held against.
#include <stdio.h>
#include <string.h>

#include "store/runs.h"
#include "ui/live.h"

static void take_other(LiveOther *other, const RunRecord *record) {
    *other = (LiveOther){.is_there = true,
                         .id = record->id,
                         .step = record->step,
                         .samples_per_s = record->samples_per_s,
                         .steps_per_s = record->steps_per_s,
                         .memory_peak = record->memory.peak,
                         .activations = record->memory.activations};
    live_clean(other->precision, sizeof other->precision, record->precision);
}

// The higher the better a twin: of the same matrix, the same seed, earlier rather than later.
static int likeness(const RunRecord *run, const RunRecord *other) {
    return (run->matrix != 0 && run->matrix == other->matrix ? 4 : 0) +
           (run->seed == other->seed ? 2 : 0) + (other->id < run->id ? 1 : 0);
}

static bool is_as_it_was(const LiveOther *a, const LiveOther *b) {
    return a->id == b->id && a->step == b->step;
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
    int count = 0, best_ghost = -1, best_full = -1;
    LiveOther ghost = data->ghost, full = data->full;
    if (!store_list_runs(ui->store, &filter, &runs, &count, error))
        return false;
    data->ghost = data->full = (LiveOther){0};
    for (int i = 0; i < count; i++) { // from the newest
        const RunRecord *other = &runs[i];
        if (other->id == run->id || strcmp(other->experiment, run->experiment) != 0)
            continue;
        bool is_parent = run->parent > 0 && other->id == run->parent;
        int score = likeness(run, other);
        bool differs = strcmp(other->precision, run->precision) != 0;
        if ((is_parent || differs) && (is_parent ? 100 : score) > best_ghost) {
            best_ghost = is_parent ? 100 : score;
            take_other(&data->ghost, other);
        }
        if (differs && strcmp(other->precision, "fp32") == 0 && score > best_full) {
            best_full = score;
            take_other(&data->full, other);
        }
    }
    store_free_runs(runs, count);
    if (run->parent > 0 && data->ghost.id != run->parent) { // it is older than those looked at
        RunRecord parent = {0};
        if (store_read_run(ui->store, run->parent, &parent, NULL))
            take_other(&data->ghost, &parent);
        record_clear(&parent);
    }
    *changed = *changed || !is_as_it_was(&ghost, &data->ghost) || !is_as_it_was(&full, &data->full);
    return true;
}
