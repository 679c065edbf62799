// A scan in words.
#include "compare/scan.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/phrase.h"
#include "precision/keep.h"

static bool bears(const ScanRecord *scan, int unit, int format) {
    const ScanCell *cell = &scan->cells[unit][format];
    return cell->is_known && !cell->is_broken && cell->damage <= scan->tolerance;
}

static bool is_low(const ScanRecord *scan, int unit) {
    return scan->policy[unit] != scan->format_count;
}

const char *scan_format_of(const ScanRecord *scan, int unit) {
    return !scan->has_policy ? ""
           : scan_is_kept(scan, unit) && !is_low(scan, unit)
               ? scan->rests[unit]
               : scan_format_name(scan, scan->policy[unit]);
}

// ---- norms and embeddings -----------------------------------------------------------------------

// Whether a norm or an embedding of this kind is low: by the policy, or alone.
static bool is_released(const ScanRecord *scan, int unit, KeepKind kind) {
    bool is_any = false;
    for (int i = 0; i < scan->unit_count; i++)
        is_any =
            is_any || (strcmp(scan->kept[i], keep_kind_name(kind)) == 0 &&
                       (unit == SCAN_BY_POLICY ? scan->has_policy && is_low(scan, i) : unit == i));
    return is_any;
}

void scan_keep_fp32(const ScanRecord *scan, int unit, char text[SCAN_KEEP_SIZE]) {
    const char *typed = scan_option(scan, "keep-fp32");
    bool is_any = false;
    Phrase phrase = phrase_begin(text, SCAN_KEEP_SIZE);
    for (int kind = 0; kind < KEEP_KINDS; kind++)
        is_any = is_any || is_released(scan, unit, (KeepKind)kind);
    if (typed)
        phrase_add(&phrase, "%.100s", typed);
    for (int kind = 0; !typed && is_any && kind < KEEP_KINDS; kind++)
        if (!is_released(scan, unit, (KeepKind)kind))
            phrase_add(&phrase, "%s%s", text[0] ? "+" : "", keep_kind_name((KeepKind)kind));
}

// Of all norms and embeddings how many there are, and how many of them are so.
typedef struct KeptCount {
    int all, low, borne; // borne: in the format, as what they are low in
} KeptCount;

static KeptCount count_kept(const ScanRecord *scan, int format) {
    KeptCount count = {.all = 0};
    for (int i = 0; i < scan->unit_count; i++) {
        if (!scan_is_kept(scan, i))
            continue;
        count.all++;
        count.low += is_low(scan, i);
        count.borne += format < scan->format_count && bears(scan, i, format);
    }
    return count;
}

// What norms and embeddings in it, too, would do to a pass, as far as that was measured.
static const char *lowered_words(const ScanRecord *scan, int format) {
    const RoundsGain pass = scan_pass_gain(scan, format), lowered = scan_lowered_gain(scan, format);
    return scan->lowered[format].round_count == 0 ? "stay as they are"
           : rounds_ahead(&pass, &lowered)        ? "are slower by it"
                                                  : "gain nothing by it";
}

// ", all 6 norms and embeddings too": what becomes of them beside what multiplies, most of that in
// `format`.
static void say_kept(const ScanRecord *scan, int format, Phrase *phrase) {
    const KeptCount kept = count_kept(scan, format);
    if (kept.all == 0 || format == scan->format_count)
        return;
    if (kept.low == kept.all)
        phrase_add(phrase, ", all %d norms and embeddings too", kept.all);
    else if (kept.low > 0)
        phrase_add(phrase, ", %d of %d norms and embeddings too", kept.low, kept.all);
    else if (kept.borne == kept.all)
        phrase_add(phrase, ", norms and embeddings may too, but %s", lowered_words(scan, format));
    else
        phrase_add(phrase, ", norms and embeddings as they are");
}

int scan_units_in_fp32(const ScanRecord *scan) {
    int count = 0;
    for (int i = 0; i < scan->unit_count; i++)
        count += !is_low(scan, i);
    return count;
}

bool scan_shows_training(const ScanRecord *scan, const ScanTraining *training) {
    return scan_training_of(scan, training->label) == training &&
           (strcmp(training->label, "policy") != 0 || !scan_is_all_fp32(scan, training));
}

// Of the subject, and of the training as it was scanned: its own precision and layers are what the
// policy takes the place of.
static const char *const repeated[] = {"set",     "recipe", "loss-scale", "seed",  "device",
                                       "threads", "steps",  "epochs",     "trust", "no-capture"};

bool scan_option_repeats(const ScanRecord *scan, int at) {
    const char *name = scan->options[at].name;
    bool is_of_it = false, is_last = true;
    for (size_t i = 0; i < sizeof repeated / sizeof *repeated; i++)
        is_of_it = is_of_it || strcmp(name, repeated[i]) == 0;
    for (int later = at + 1; later < scan->option_count; later++)
        is_last = is_last && strcmp(name, scan->options[later].name) != 0;
    return is_of_it && (is_last || strcmp(name, "set") == 0 || strcmp(name, "recipe") == 0);
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

// "all 6 layers in bf16", "conv1 in fp32, the other 5 in fp16", of what multiplies; then the rest.
static void say_policy(const ScanRecord *scan, Phrase *phrase) {
    enum { MOST_NAMED = 4 };
    int most = 0, most_count = 0, all = 0, named = 0;
    for (int f = 0; f <= scan->format_count; f++) {
        int count = 0;
        for (int i = 0; i < scan->unit_count; i++)
            count += !scan_is_kept(scan, i) && scan->policy[i] == f;
        all += count;
        if (count > most_count) {
            most = f;
            most_count = count;
        }
    }
    const char *format = scan_format_name(scan, most);
    if (most_count == all) {
        phrase_add(phrase, "every layer that multiplies may go low: all %d layers in %s", all,
                   format);
        say_kept(scan, most, phrase);
        return;
    }
    for (int i = 0; i < scan->unit_count && named < MOST_NAMED; i++)
        if (!scan_is_kept(scan, i) && scan->policy[i] != most)
            phrase_add(phrase, "%s%.40s in %s", named++ ? ", " : "", scan->units[i],
                       scan_format_of(scan, i));
    const int rest = all - most_count - named;
    if (rest > 0)
        phrase_add(phrase, " and %d more", rest);
    phrase_add(phrase, ", the other %d in %s", most_count, format);
    say_kept(scan, most, phrase);
}

// ", with 0.66x the activations", where that is known.
static void say_memory(const ScanRecord *scan, int64_t activations, Phrase *phrase) {
    const int64_t base = scan->activations[scan->format_count];
    if (activations > 0 && base > 0)
        phrase_add(phrase, ", with %.2fx the activations", (double)activations / (double)base);
}

static void say_gain(const RoundsGain *gain, Phrase *phrase) {
    phrase_add(phrase, "%.2fx the speed of fp32", gain->faster);
    if (!isnan(gain->least))
        phrase_add(phrase, " (%.2f to %.2f)", gain->least, gain->most);
}

// Beside what it is over fp32 between what that lies, or what it comes to.
static void say_speed(const ScanRecord *scan, const ScanTraining *policy, Phrase *phrase) {
    const RoundsGain gain = scan_step_gain(scan, policy);
    const Tempo tempo = rounds_tempo(&gain);
    phrase_add(phrase, ": ");
    say_gain(&gain, phrase);
    if (tempo == TEMPO_OPEN)
        phrase_add(phrase, ", too uncertain to tell whether it gains time");
    else if (tempo != TEMPO_FASTER)
        phrase_add(phrase, ", which gains no time");
    say_memory(scan, scan_pass_of(scan, policy).activations, phrase);
}

// ---- fp32 ---------------------------------------------------------------------------------------

// Of the formats that every unit bears, else that any does, the one that takes the least memory;
// format_count: there is none.
static int lightest_borne(const ScanRecord *scan, bool *by_all) {
    int best = scan->format_count, best_bear = 0;
    *by_all = false;
    for (int f = 0; f < scan->format_count; f++) {
        int bear = 0;
        for (int i = 0; i < scan->unit_count; i++)
            bear += bears(scan, i, f);
        const bool is_all = bear == scan->unit_count;
        const bool is_lighter = best_bear == 0 || scan->activations[f] < scan->activations[best];
        if (bear > 0 && (is_all == *by_all ? is_lighter : is_all)) {
            best = f;
            best_bear = bear;
            *by_all = is_all;
        }
    }
    return best;
}

// Whether any policy that was trained with and is not fp32 held.
static bool has_held(const ScanRecord *scan) {
    bool has = false;
    for (int i = 0; i < scan->training_count; i++) {
        const ScanTraining *training = &scan->trainings[i];
        has = has || (scan_outcome(scan, training) == SCAN_WITHIN &&
                      strcmp(training->label, "fp32") != 0 && !scan_is_all_fp32(scan, training));
    }
    return has;
}

// What speaks against a format that takes less memory, or passes of which are faster.
static void say_against(const ScanRecord *scan, int format, Phrase *phrase) {
    char label[SCAN_LABEL_SIZE];
    snprintf(label, sizeof label, "all %s", scan->formats[format]);
    const ScanTraining *all = scan_training_of(scan, label);
    const RoundsGain pass = scan_pass_gain(scan, format);
    const RoundsGain step = all ? scan_step_gain(scan, all) : pass;
    const ScanOutcome outcome = all ? scan_outcome(scan, all) : SCAN_WITHIN;
    if (rounds_ahead(&rounds_same, &pass)) {
        phrase_add(phrase, ", but a pass has ");
        say_gain(&pass, phrase);
    } else if (outcome == SCAN_WITHIN && rounds_ahead(&rounds_same, &step)) {
        phrase_add(phrase, ", but a step has ");
        say_gain(&step, phrase);
    } else if (!all) {
        phrase_add(phrase, ", but no training has verified it");
    } else if (outcome == SCAN_WITHIN) {
        phrase_add(phrase, ", but what was trained in it gained no time");
    } else {
        phrase_add(phrase, ", but %s",
                   outcome == SCAN_OPEN ? "whether that holds cannot be told"
                                        : "that does not hold");
    }
}

// Why all stays as it is: held against itself it says nothing.
static void say_fp32(const ScanRecord *scan, Phrase *phrase) {
    const int base = scan->format_count;
    bool by_all;
    const int format = lightest_borne(scan, &by_all);
    phrase_add(phrase, "train in fp32: ");
    if (scan->rounds > 0 && !has_held(scan)) {
        phrase_add(phrase, "no policy of lower formats held.");
        return;
    }
    if (format == base) {
        phrase_add(phrase, "no layer bears one of these formats.");
        return;
    }
    phrase_add(phrase, "%s may go low, in %s", by_all ? "every layer" : "some layers",
               scan->formats[format]);
    const RoundsGain pass = scan_pass_gain(scan, format);
    const bool is_lighter = scan->activations[format] < scan->activations[base];
    if (is_lighter && by_all)
        say_memory(scan, scan->activations[format], phrase);
    if (is_lighter || rounds_tempo(&pass) == TEMPO_FASTER)
        say_against(scan, format, phrase);
    else
        phrase_add(phrase, ", but none gains time or memory by it here");
    phrase_add(phrase, ".");
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
    if (scan_units_in_fp32(scan) == scan->unit_count) {
        say_fp32(scan, phrase);
        return;
    }
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
    phrase_add(phrase, " over %" PRId64 " steps", scan->steps);
    if (scan_most_skipped(policy) > 0)
        phrase_add(phrase, " (%" PRId64 " skipped)", scan_most_skipped(policy));
    phrase_add(phrase, " and %" PRId64 " seed%s", scan->seeds, scan->seeds == 1 ? "" : "s");
    if (scan_seeds_are_alike(scan, policy))
        phrase_add(phrase, " that count as one");
    const ScanOutcome outcome = scan_outcome(scan, policy);
    if (outcome == SCAN_OPEN)
        phrase_add(phrase, ": whether that is within the %g %% allowed %s.", 100 * scan->within,
                   untold);
    else
        phrase_add(phrase, ", %s the %g %% allowed.", scan_outcome_name(outcome),
                   100 * scan->within);
}

void scan_say_skipped(const ScanRecord *scan, char text[SCAN_VERDICT_SIZE]) {
    Phrase phrase = phrase_begin(text, SCAN_VERDICT_SIZE);
    int told = 0;
    for (int i = 0; i < scan->training_count; i++) {
        const ScanTraining *training = &scan->trainings[i];
        const int64_t skipped = scan_most_skipped(training);
        if (skipped == 0 || training->broken > 0 || !scan_shows_training(scan, training))
            continue;
        phrase_add(&phrase, told++ > 0 ? ", %s %" PRId64 : "%s skipped %" PRId64, training->label,
                   skipped);
    }
    if (told > 0)
        phrase_add(
            &phrase,
            " of %" PRId64 " steps (of a seed, at the most), in which gradients were not "
            "finite: where a loss scale is yet to be found, more --steps make that weigh less.",
            scan->steps);
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
