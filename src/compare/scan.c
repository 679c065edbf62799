// A scan in words.
#include "compare/scan.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *name_of(const ScanRecord *scan, int format) {
    return format < scan->format_count ? scan->formats[format] : "fp32";
}

const char *scan_format_of(const ScanRecord *scan, int unit) {
    return scan->has_policy ? name_of(scan, scan->policy[unit]) : "";
}

const ScanTraining *scan_training_of(const ScanRecord *scan, const char *label) {
    const ScanTraining *last = NULL;
    for (int i = 0; i < scan->training_count; i++)
        if (scan->trainings[i].is_known && strcmp(scan->trainings[i].label, label) == 0)
            last = &scan->trainings[i];
    return last;
}

int scan_units_in_fp32(const ScanRecord *scan) {
    int count = 0;
    for (int i = 0; i < scan->unit_count; i++)
        count += scan->policy[i] == scan->format_count;
    return count;
}

bool scan_is_open(const ScanRecord *scan, const ScanTraining *training) {
    return training->broken == 0 && training->above != 0 && // the same to the bit is the same
           (isnan(training->interval) || training->interval > scan->within);
}

// ---- ranks --------------------------------------------------------------------------------------

typedef struct Rank {
    int unit;
    double damage;
} Rank;

static int by_damage(const void *a, const void *b) {
    const Rank *left = a, *right = b;
    if (left->damage != right->damage)
        return left->damage < right->damage ? 1 : -1;
    return left->unit - right->unit;
}

// Of each unit the worst of the formats that were tried.
static double damage_of(const ScanRecord *scan, int unit) {
    double worst = 0;
    for (int f = 0; f < scan->format_count; f++)
        worst = fmax(worst, scan->cells[unit][f].damage);
    return worst;
}

void scan_rank(const ScanRecord *scan, int units[SCAN_MOST_UNITS]) {
    Rank ranks[SCAN_MOST_UNITS];
    for (int i = 0; i < scan->unit_count; i++)
        ranks[i] = (Rank){i, damage_of(scan, i)};
    qsort(ranks, (size_t)scan->unit_count, sizeof *ranks, by_damage);
    for (int i = 0; i < scan->unit_count; i++)
        units[i] = ranks[i].unit;
}

// ---- sentences ----------------------------------------------------------------------------------

// "all 6 layers in bf16", "conv1 fp32, the other 5 in fp16", as far as there is room.
static int say_policy(const ScanRecord *scan, char *text, size_t size) {
    const char *most = NULL;
    int most_count = 0;
    for (int f = 0; f <= scan->format_count; f++) {
        int count = 0;
        for (int i = 0; i < scan->unit_count; i++)
            count += scan->policy[i] == f;
        if (count > most_count) {
            most = f < scan->format_count ? scan->formats[f] : "fp32";
            most_count = count;
        }
    }
    if (most_count == scan->unit_count)
        return snprintf(
            text, size, "%sall %d layers in %s",
            strcmp(most, "fp32") == 0 ? "" : "every layer may go low: ", scan->unit_count, most);
    int used = 0, named = 0;
    for (int i = 0; i < scan->unit_count && named < 4; i++)
        if (strcmp(scan_format_of(scan, i), most) != 0)
            used += snprintf(text + used, size - (size_t)used, "%s%.40s in %s", named++ ? ", " : "",
                             scan->units[i], scan_format_of(scan, i));
    int rest = scan->unit_count - most_count - named;
    if (rest > 0)
        used += snprintf(text + used, size - (size_t)used, " and %d more", rest);
    return used +
           snprintf(text + used, size - (size_t)used, ", the other %d in %s", most_count, most);
}

void scan_verdict(const ScanRecord *scan, char text[SCAN_VERDICT_SIZE]) {
    const size_t size = SCAN_VERDICT_SIZE;
    const ScanTraining *policy = scan_training_of(scan, "policy");
    const ScanTraining *base = scan_training_of(scan, "fp32");
    text[0] = 0;
    if (scan->unit_count == 0 || scan->ended_ms == 0 || !scan->has_policy)
        return;
    int used = say_policy(scan, text, size);
    if (!policy || !base) {
        snprintf(text + used, size - (size_t)used,
                 ": by what their gradients lose; no training has verified it.");
        return;
    }
    used += snprintf(text + used, size - (size_t)used, ": %.2fx the speed of fp32",
                     base->seconds / policy->seconds);
    if (policy->broken > 0) {
        snprintf(text + used, size - (size_t)used, "; %d of %" PRId64 " seeds diverged.",
                 policy->broken, scan->seeds);
        return;
    }
    used += snprintf(text + used, size - (size_t)used, ", loss %+.2f %%", 100 * policy->above);
    if (!isnan(policy->interval))
        used += snprintf(text + used, size - (size_t)used, " +- %.2f %%", 100 * policy->interval);
    snprintf(text + used, size - (size_t)used,
             " of fp32's over %" PRId64 " steps and %" PRId64 " seed%s, %s the %g %% allowed.",
             scan->steps, scan->seeds, scan->seeds == 1 ? "" : "s",
             scan_is_open(scan, policy) ? "too few to tell it from"
             : policy->is_within        ? "within"
                                        : "beyond",
             100 * scan->within);
}
