// The record of a scan in memory.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "store/scan.h"

#define READING(name) \
    { #name, offsetof(ScanCell, name) }
const ScanReading scan_readings[] = {
    READING(damage),       READING(own_error),  READING(own_noise),   READING(own_degrees),
    READING(all_error),    READING(all_noise),  READING(all_degrees), READING(loss_change),
    READING(flushed),      READING(overflowed), READING(subnormal),   READING(least_scale),
    READING(middle_scale), READING(most_scale), READING(scale),       {NULL, 0}};

double *scan_reading(ScanCell *cell, const ScanReading *reading) {
    return (double *)(void *)((char *)cell + reading->offset);
}

ScanRecord *scan_record_new(Error *error) {
    ScanRecord *scan = calloc(1, sizeof *scan);
    if (!scan) {
        error_fail(error, ERROR_MEMORY, "no memory for a scan: close other programs");
        return NULL;
    }
    scan->loss = scan->others = (double)NAN;
    return scan;
}

void scan_record_free(ScanRecord *scan) {
    if (scan)
        free(scan->options);
    free(scan);
}

void scan_take_told(ScanRecord *scan, const char *kind, const char *text) {
    static const char *const of_time_alone[] = {"casting", "small_kernels", "odd_sizes"};
    bool bears = !scan->told[0];
    for (size_t i = 0; i < sizeof of_time_alone / sizeof *of_time_alone; i++)
        bears = bears && strcmp(kind, of_time_alone[i]) != 0;
    if (bears)
        utf8_copy(scan->told, sizeof scan->told, text);
}

int scan_cells_known(const ScanRecord *scan) {
    int known = 0;
    for (int unit = 0; unit < scan->unit_count; unit++)
        for (int format = 0; format < scan->format_count; format++)
            known += scan->cells[unit][format].is_known;
    return known;
}

const char *scan_option(const ScanRecord *scan, const char *name) {
    const char *value = NULL;
    for (int i = 0; i < scan->option_count; i++)
        if (strcmp(scan->options[i].name, name) == 0)
            value = scan->options[i].value;
    return value;
}

bool scan_is_kept(const ScanRecord *scan, int unit) {
    return scan->kept[unit][0] != 0;
}

const char *scan_format_name(const ScanRecord *scan, int format) {
    return format < scan->format_count ? scan->formats[format] : "fp32";
}

// ---- speeds -------------------------------------------------------------------------------------

// Without rounds in common, as of scans of before, only what one time each says.
static RoundsGain gain_of(double was, const double *was_rounds, int was_count, double is,
                          const double *is_rounds, int is_count) {
    RoundsGain gain = rounds_gain(was_rounds, is_rounds, was_count == is_count ? was_count : 0);
    if (isnan(gain.faster) && was > 0 && is > 0)
        gain.faster = was / is;
    return gain;
}

RoundsGain scan_pass_gain(const ScanRecord *scan, int format) {
    const int base = scan->format_count;
    return format == base ? rounds_same
                          : gain_of(scan->seconds[base], scan->pass_rounds[base],
                                    scan->pass_round_count[base], scan->seconds[format],
                                    scan->pass_rounds[format], scan->pass_round_count[format]);
}

RoundsGain scan_lowered_gain(const ScanRecord *scan, int format) {
    const int base = scan->format_count;
    return gain_of(scan->seconds[base], scan->pass_rounds[base], scan->pass_round_count[base],
                   scan->lowered[format].seconds, scan->lowered[format].rounds,
                   scan->lowered[format].round_count);
}

ScanPass scan_pass_of(const ScanRecord *scan, const ScanTraining *training) {
    const ScanPass unknown = {.gain = rounds_gain(NULL, NULL, 0)};
    int format = -1, kept = 0, low = 0;
    for (int i = 0; i < scan->unit_count; i++)
        if (!scan_is_kept(scan, i) && format >= 0 && training->format[i] != format)
            return unknown;
        else if (!scan_is_kept(scan, i))
            format = training->format[i];
    for (int i = 0; i < scan->unit_count; i++) {
        if (!scan_is_kept(scan, i))
            continue;
        if (training->format[i] != format && training->format[i] != scan->format_count)
            return unknown;
        kept++;
        low += training->format[i] != scan->format_count;
    }
    if (format < 0 || (low > 0 && low < kept))
        return unknown;
    return low > 0 ? (ScanPass){scan->lowered[format].activations, scan_lowered_gain(scan, format)}
                   : (ScanPass){scan->activations[format], scan_pass_gain(scan, format)};
}

bool scan_is_all_fp32(const ScanRecord *scan, const ScanTraining *training) {
    bool is_all = true;
    for (int i = 0; i < scan->unit_count; i++)
        is_all = is_all && training->format[i] == scan->format_count;
    return is_all;
}

const ScanTraining *scan_training_of(const ScanRecord *scan, const char *label) {
    const ScanTraining *last = NULL;
    for (int i = 0; i < scan->training_count; i++)
        if (scan->trainings[i].is_known && strcmp(scan->trainings[i].label, label) == 0)
            last = &scan->trainings[i];
    return last;
}

RoundsGain scan_step_gain(const ScanRecord *scan, const ScanTraining *training) {
    const ScanTraining *base = scan_training_of(scan, "fp32");
    if (!base)
        return rounds_gain(NULL, NULL, 0);
    return base == training ? rounds_same
                            : gain_of(base->seconds, base->rounds, base->round_count,
                                      training->seconds, training->rounds, training->round_count);
}

// ---- seeds --------------------------------------------------------------------------------------

int64_t scan_most_skipped(const ScanTraining *training) {
    int64_t most = 0;
    for (int i = 0; i < SCAN_MOST_SEEDS; i++)
        if (training->seeds[i].has_skipped && training->seeds[i].skipped > most)
            most = training->seeds[i].skipped;
    return most;
}

static bool has_same_seeds(const ScanTraining *training) {
    const ScanSeed *first = NULL;
    int count = 0;
    for (int i = 0; i < SCAN_MOST_SEEDS; i++) {
        const ScanSeed *seed = &training->seeds[i];
        if (!seed->is_known)
            continue;
        first = first ? first : seed;
        if (seed->loss != first->loss || seed->has_result != first->has_result ||
            (seed->has_result && seed->result != first->result))
            return false; // one that is no number is not the same as another, either
        count++;
    }
    return count > 1;
}

bool scan_seeds_are_alike(const ScanRecord *scan, const ScanTraining *training) {
    const ScanTraining *base = scan_training_of(scan, "fp32");
    return base && has_same_seeds(base) && has_same_seeds(training);
}

void scan_forget_alike(const ScanRecord *scan, ScanTraining *training) {
    if (scan_seeds_are_alike(scan, training))
        training->interval = training->worse_interval = (double)NAN;
}

// ---- outcomes -----------------------------------------------------------------------------------

// Of a share by which something is worse than fp32's.
static ScanOutcome outcome_of(double worse, double interval, double within) {
    if (!isfinite(worse))
        return worse < 0 ? SCAN_WITHIN : SCAN_BEYOND;
    return isnan(interval) || fabs(worse - within) < interval ? SCAN_OPEN
           : worse <= within                                  ? SCAN_WITHIN
                                                              : SCAN_BEYOND;
}

bool scan_result_counts(const ScanRecord *scan) {
    const ScanTraining *base = scan_training_of(scan, "fp32");
    return scan->metric[0] && base && isfinite(base->result);
}

ScanOutcome scan_outcome(const ScanRecord *scan, const ScanTraining *training) {
    const bool has_result = scan_result_counts(scan);
    if (training->broken > 0)
        return SCAN_BEYOND;
    // The same to the bit is the same, however few seeds say so.
    if (training->above == 0 && (!has_result || training->worse == 0))
        return SCAN_WITHIN;
    const ScanOutcome loss = outcome_of(training->above, training->interval, scan->within);
    const ScanOutcome result =
        has_result ? outcome_of(training->worse, training->worse_interval, scan->within) : loss;
    return loss == SCAN_BEYOND || result == SCAN_BEYOND ? SCAN_BEYOND
           : loss == SCAN_OPEN || result == SCAN_OPEN   ? SCAN_OPEN
                                                        : SCAN_WITHIN;
}
