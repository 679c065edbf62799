#include "run/scan.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/utf8.h"
#include "run/run_private.h"

// ---- layers -------------------------------------------------------------------------------------

static bool fail_changed(const Scan *scan, const char *what, Error *error) {
    return error_fail(error, ERROR_FAILED,
                      "%s than when scan %" PRId64 " began, though the script has not changed: "
                      "its data or a file that it reads have; --again measures anew",
                      what, scan->record->id);
}

bool scan_take_layer(Scan *scan, const char *name, int64_t parameters, const char *kept,
                     const char *rests, bool *has_room, Error *error) {
    ScanRecord *record = scan->record;
    char cut[RECORD_NAME_SIZE];
    const int at = scan->seen++;
    *has_room = at < SCAN_MOST_UNITS;
    utf8_copy(cut, sizeof cut, name);
    if (scan->goes_on && *has_room)
        return (at < record->unit_count && strcmp(record->units[at], cut) == 0 &&
                record->parameters[at] == parameters) ||
               fail_changed(scan, "the model has other layers", error);
    if (scan->goes_on)
        return true;
    if (*has_room) {
        snprintf(record->units[at], sizeof record->units[at], "%s", cut);
        record->parameters[at] = parameters;
        utf8_copy(record->kept[at], sizeof record->kept[at], kept);
        utf8_copy(record->rests[at], sizeof record->rests[at], rests);
        record->unit_count++;
    } else {
        record->left_out++;
    }
    return true;
}

static bool add(Scan *scan, Error *error) {
    if (!store_begin(scan->store, error))
        return false;
    if (store_add_scan(scan->store, scan->record, &scan->worker, error) &&
        store_put_scan_layers(scan->store, scan->record, error))
        return store_commit(scan->store, error);
    store_rollback(scan->store);
    scan->record->id = 0;
    return false;
}

bool scan_take_loss(Scan *scan, double loss, Error *error) {
    const double most_apart = 1e-6; // a card may add in another order
    ScanRecord *record = scan->record;
    if (scan->goes_on && scan->seen != record->unit_count + record->left_out)
        return fail_changed(scan, "the model has other layers", error);
    if (scan->goes_on)
        return fabs(loss - record->loss) <= most_apart * fabs(record->loss) ||
               fail_changed(scan, "the loss in fp32 is another", error);
    record->loss = loss;
    return !scan->store || add(scan, error);
}

// ---- cells and costs ----------------------------------------------------------------------------

bool scan_take_cell(Scan *scan, int unit, int format, const ScanCell *cell, Error *error) {
    scan->record->cells[unit][format] = *cell;
    return !scan->store || store_put_scan_cell(scan->store, scan->record, unit, format, error);
}

bool scan_has_costs(const Scan *scan) {
    return scan->record->pass_round_count[scan->record->format_count] > 0;
}

static int keep_rounds(double kept[ROUNDS_MOST], const double *rounds, int count) {
    const int most = count < ROUNDS_MOST ? count : ROUNDS_MOST;
    memcpy(kept, rounds, (size_t)most * sizeof *kept);
    return most;
}

static double median_of(const double *rounds, int count) {
    double sorted[ROUNDS_MOST];
    count = keep_rounds(sorted, rounds, count);
    return count > 0 ? rounds_median(sorted, count) : 0;
}

bool scan_take_cost(Scan *scan, int format, const double *rounds, int round_count,
                    int64_t activations, Error *error) {
    ScanRecord *record = scan->record;
    record->seconds[format] = median_of(rounds, round_count);
    record->pass_round_count[format] =
        keep_rounds(record->pass_rounds[format], rounds, round_count);
    record->activations[format] = activations;
    return !scan->store || format < record->format_count ||
           store_put_scan_costs(scan->store, record, error);
}

void scan_take_lowered(Scan *scan, int format, const double *rounds, int round_count,
                       int64_t activations) {
    ScanRecord *record = scan->record;
    record->lowered[format].seconds = median_of(rounds, round_count);
    record->lowered[format].round_count =
        keep_rounds(record->lowered[format].rounds, rounds, round_count);
    record->lowered[format].activations = activations;
}

// ---- the policy and its trainings ---------------------------------------------------------------

void scan_take_metric(Scan *scan, const char *const *names, int count) {
    const char *best = count > 0 ? names[0] : "";
    for (int i = count - 1; i >= 0; i--)
        best = record_metric_leads(names[i]) ? names[i] : best;
    utf8_copy(scan->record->metric, sizeof scan->record->metric, best);
}

bool scan_take_policy(Scan *scan, const short formats[SCAN_MOST_UNITS], int rounds, bool is_final,
                      Error *error) {
    ScanRecord *record = scan->record;
    for (int i = 0; i < record->unit_count; i++)
        record->policy[i] = formats[i];
    record->has_policy = true;
    record->rounds = rounds;
    record->is_final = is_final;
    return !scan->store || store_put_scan_layers(scan->store, record, error);
}

static bool has_formats(const Scan *scan, const ScanTraining *training, const short *formats) {
    return memcmp(training->format, formats, (size_t)scan->record->unit_count * sizeof *formats) ==
           0;
}

const ScanTraining *scan_trained(const Scan *scan, const short formats[SCAN_MOST_UNITS],
                                 int64_t seed) {
    const ScanRecord *record = scan->record;
    for (int i = 0; i < record->training_count; i++)
        if (seed <= SCAN_MOST_SEEDS && record->trainings[i].seeds[seed - 1].is_known &&
            has_formats(scan, &record->trainings[i], formats))
            return &record->trainings[i];
    return NULL;
}

// The one of that label and these formats, a new one where there is none.
static ScanTraining *training_of(Scan *scan, const char *label, const short *formats,
                                 Error *error) {
    ScanRecord *record = scan->record;
    int at = 0;
    while (at < record->training_count && (strcmp(record->trainings[at].label, label) != 0 ||
                                           !has_formats(scan, &record->trainings[at], formats)))
        at++;
    if (at == SCAN_MOST_TRAININGS) {
        error_fail(error, ERROR_FAILED, "more than %d trainings: scan fewer formats at once",
                   SCAN_MOST_TRAININGS);
        return NULL;
    }
    ScanTraining *training = &record->trainings[at];
    if (at == record->training_count) {
        record->training_count++;
        utf8_copy(training->label, sizeof training->label, label);
        memcpy(training->format, formats, (size_t)record->unit_count * sizeof *formats);
    }
    return training;
}

static bool keep_training(Scan *scan, const ScanTraining *training, Error *error) {
    return !scan->store ||
           store_put_scan_training(scan->store, scan->record,
                                   (int)(training - scan->record->trainings), error);
}

bool scan_take_seed(Scan *scan, const char *label, const short formats[SCAN_MOST_UNITS],
                    int64_t seed, const ScanSeed *found, Error *error) {
    ScanTraining *training = training_of(scan, label, formats, error);
    if (!training)
        return false;
    training->seeds[seed - 1] = *found;
    training->seeds[seed - 1].is_known = true;
    return keep_training(scan, training, error);
}

static void set_rounds(ScanTraining *training, const double *rounds, int count) {
    if (rounds != training->rounds)
        training->round_count = keep_rounds(training->rounds, rounds, count);
    training->seconds = median_of(training->rounds, training->round_count);
}

bool scan_take_training(Scan *scan, const char *label, const short formats[SCAN_MOST_UNITS],
                        const ScanTraining *over, Error *error) {
    ScanTraining *training = training_of(scan, label, formats, error);
    if (!training)
        return false;
    training->is_known = true;
    training->loss = over->loss;
    training->above = over->above;
    training->interval = over->interval;
    training->seconds = over->seconds;
    training->broken = over->broken;
    training->result = over->result;
    training->worse = over->worse;
    training->worse_interval = over->worse_interval;
    training->is_within = over->is_within;
    scan_forget_alike(scan->record, training);
    for (int i = 0; i < scan->record->training_count; i++) // as under another label
        if (scan->record->trainings[i].round_count > 0 &&
            has_formats(scan, &scan->record->trainings[i], formats))
            set_rounds(training, scan->record->trainings[i].rounds,
                       scan->record->trainings[i].round_count);
    return keep_training(scan, training, error);
}

bool scan_take_rounds(Scan *scan, const short formats[SCAN_MOST_UNITS], const double *rounds,
                      int round_count, Error *error) {
    bool done = true;
    for (int i = 0; done && i < scan->record->training_count; i++) {
        ScanTraining *training = &scan->record->trainings[i];
        if (!has_formats(scan, training, formats))
            continue;
        set_rounds(training, rounds, round_count);
        done = keep_training(scan, training, error);
    }
    return done;
}

void scan_end(ScanRecord *record) {
    record->ended_ms = run_wall_ms();
}
