// A scan in words.
#include "compare/scan.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/phrase.h"

const char *scan_format_of(const ScanRecord *scan, int unit) {
    return scan->has_policy ? scan_format_name(scan, scan->policy[unit]) : "";
}

int scan_units_in_fp32(const ScanRecord *scan) {
    int count = 0;
    for (int i = 0; i < scan->unit_count; i++)
        count += scan->policy[i] == scan->format_count;
    return count;
}

const char *scan_borne_by_all(const ScanRecord *scan) {
    for (int f = 0; f < scan->format_count; f++) {
        int bear = 0;
        for (int i = 0; i < scan->unit_count; i++) {
            const ScanCell *cell = &scan->cells[i][f];
            bear += cell->is_known && !cell->is_broken && cell->damage <= scan->tolerance;
        }
        if (bear == scan->unit_count && bear > 0)
            return scan->formats[f];
    }
    return NULL;
}

static const char untold[] = "cannot be told";

const char *scan_outcome_name(ScanOutcome outcome) {
    static const char *const names[SCAN_OUTCOMES] = {
        [SCAN_OPEN] = untold, [SCAN_WITHIN] = "within", [SCAN_BEYOND] = "beyond"};
    return names[outcome];
}

const char *scan_unverified(const ScanRecord *scan) {
    const ScanTraining *policy = scan_training_of(scan, "policy");
    if (scan->ended_ms == 0)
        return "not finished";
    if (!policy)
        return "not trained with";
    const ScanOutcome outcome = scan_outcome(scan, policy);
    return outcome == SCAN_OPEN                        ? untold
           : outcome == SCAN_BEYOND || !scan->is_final ? "beyond what is allowed"
                                                       : NULL;
}

const char *scan_state_name(const ScanRecord *scan) {
    const char *why = scan_unverified(scan);
    return scan->is_live         ? "being measured"
           : scan->ended_ms == 0 ? why
           : !why                ? "verified"
           : why == untold       ? untold
                                 : "finished";
}

Tempo scan_step_tempo(const ScanRecord *scan, const ScanTraining *training) {
    const RoundsGain gain = scan_step_gain(scan, training);
    return rounds_tempo(&gain);
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

// "all 6 layers in bf16", "conv1 fp32, the other 5 in fp16".
static void say_policy(const ScanRecord *scan, Phrase *phrase) {
    enum { MOST_NAMED = 4 };
    int most = 0, most_count = 0, named = 0;
    for (int f = 0; f <= scan->format_count; f++) {
        int count = 0;
        for (int i = 0; i < scan->unit_count; i++)
            count += scan->policy[i] == f;
        if (count > most_count) {
            most = f;
            most_count = count;
        }
    }
    const char *format = scan_format_name(scan, most);
    if (most_count == scan->unit_count) {
        phrase_add(phrase, "%sall %d layers in %s",
                   most == scan->format_count ? "" : "every layer that multiplies may go low: ",
                   scan->unit_count, format);
        return;
    }
    for (int i = 0; i < scan->unit_count && named < MOST_NAMED; i++)
        if (scan->policy[i] != most)
            phrase_add(phrase, "%s%.40s in %s", named++ ? ", " : "", scan->units[i],
                       scan_format_of(scan, i));
    const int rest = scan->unit_count - most_count - named;
    if (rest > 0)
        phrase_add(phrase, " and %d more", rest);
    phrase_add(phrase, ", the other %d in %s", most_count, format);
}

// Beside what it is over fp32 between what that lies, or what it comes to.
static void say_speed(const ScanRecord *scan, const ScanTraining *policy, Phrase *phrase) {
    const RoundsGain gain = scan_step_gain(scan, policy);
    const Tempo tempo = rounds_tempo(&gain);
    phrase_add(phrase, ": %.2fx the speed of fp32", gain.faster);
    if (scan_units_in_fp32(scan) == scan->unit_count)
        return;
    if (!isnan(gain.least))
        phrase_add(phrase, " (%.2f to %.2f)", gain.least, gain.most);
    if (tempo == TEMPO_OPEN)
        phrase_add(phrase, ", too uncertain to tell whether it gains time");
    else if (tempo != TEMPO_FASTER)
        phrase_add(phrase, ", which gains no time");
}

// ", accuracy 0.12 % worse +- 0.30 %,"; what rounds to nothing is called that.
static void say_result(const ScanRecord *scan, const ScanTraining *policy, Phrase *phrase) {
    const double percent = 100 * policy->worse;
    if (!scan->metric[0])
        return;
    if (!isfinite(percent))
        phrase_add(phrase, ", %.40s not finite", scan->metric);
    else if (fabs(percent) < 0.005)
        phrase_add(phrase, ", the same %.40s", scan->metric);
    else
        phrase_add(phrase, ", %.40s %.2f %% %s", scan->metric, fabs(percent),
                   percent > 0 ? "worse" : "better");
    if (isfinite(percent) && !isnan(policy->worse_interval))
        phrase_add(phrase, " +- %.2f %%", 100 * policy->worse_interval);
    phrase_add(phrase, ",");
}

static void say_found(const ScanRecord *scan, Phrase *phrase) {
    const ScanTraining *policy = scan_training_of(scan, "policy");
    const ScanTraining *base = scan_training_of(scan, "fp32");
    say_policy(scan, phrase);
    if (!policy || !base) {
        phrase_add(phrase, ": by what their gradients lose; no training has verified it.");
        return;
    }
    say_speed(scan, policy, phrase);
    if (policy->broken > 0) {
        phrase_add(phrase, "; %d of %" PRId64 " seeds diverged.", policy->broken, scan->seeds);
        return;
    }
    phrase_add(phrase, ", loss %+.2f %%", 100 * policy->above);
    if (!isnan(policy->interval))
        phrase_add(phrase, " +- %.2f %%", 100 * policy->interval);
    phrase_add(phrase, " of fp32's");
    say_result(scan, policy, phrase);
    phrase_add(phrase, " over %" PRId64 " steps and %" PRId64 " seed%s", scan->steps, scan->seeds,
               scan->seeds == 1 ? "" : "s");
    const ScanOutcome outcome = scan_outcome(scan, policy);
    if (outcome == SCAN_OPEN)
        phrase_add(phrase, ": whether that is within the %g %% allowed %s.", 100 * scan->within,
                   untold);
    else
        phrase_add(phrase, ", %s the %g %% allowed.", scan_outcome_name(outcome),
                   100 * scan->within);
}

void scan_verdict(const ScanRecord *scan, char text[SCAN_VERDICT_SIZE]) {
    Phrase phrase = phrase_begin(text, SCAN_VERDICT_SIZE);
    if (scan->unit_count == 0 || scan->ended_ms == 0 || !scan->has_policy)
        return;
    say_found(scan, &phrase);
    if (scan->told[0])
        phrase_add(&phrase, " Beside that, run %" PRId64 " said of itself: %s.", scan->run,
                   scan->told);
}
