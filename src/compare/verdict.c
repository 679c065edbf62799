// What a comparison comes down to, in one sentence a group, and what may mislead about it.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/phrase.h"
#include "compare/private.h"

// ---- the parts of a sentence --------------------------------------------------------------------

static void say_number(Phrase *text, const Statistic *number) {
    char words[STATISTIC_TEXT_SIZE];
    phrase_add(text, "%s", statistic_text(words, number, false));
}

// With the seeds that the mean leaves out.
static void say_seeds(Phrase *text, const Statistic *value) {
    say_number(text, value);
    if (value->count > 0 && value->not_finite > 0)
        phrase_add(text, " (%d of %d seeds not finite)", value->not_finite,
                   value->count + value->not_finite);
}

// Two values that differ, and look alike in the usual digits, in as many as tell them apart.
static bool say_apart(Phrase *text, const Statistic *value, const Statistic *baseline) {
    enum { LEAST_DIGITS = 5, MOST_DIGITS = 17 };
    char ours[STATISTIC_TEXT_SIZE], theirs[STATISTIC_TEXT_SIZE];
    const bool are_single =
        value->count == 1 && baseline->count == 1 && value->not_finite + baseline->not_finite == 0;
    if (!are_single || value->mean == baseline->mean ||
        strcmp(statistic_text(ours, value, false), statistic_text(theirs, baseline, false)) != 0)
        return false;
    for (int digits = LEAST_DIGITS; digits <= MOST_DIGITS && strcmp(ours, theirs) == 0; digits++) {
        snprintf(ours, sizeof ours, "%#.*g", digits, value->mean);
        snprintf(theirs, sizeof theirs, "%#.*g", digits, baseline->mean);
    }
    phrase_add(text, "%s against %s", ours, theirs);
    return true;
}

static void say_both(Phrase *text, const Statistic *value, const Statistic *baseline) {
    if (say_apart(text, value, baseline))
        return;
    say_seeds(text, value);
    phrase_add(text, " against ");
    say_seeds(text, baseline);
}

// What pairs of a seed differ by, which may be told more surely than either side is known.
static void say_difference(Phrase *text, const Contrast *contrast, double difference) {
    const Statistic all = {
        .count = contrast->pairs, .mean = difference, .interval = contrast->interval};
    if (contrast->pairs > 0)
        say_number(text, &all);
    else
        phrase_add(text, "%.2g", difference);
}

enum { MOST_PARTS = 4 };

typedef struct Parts {
    char text[MOST_PARTS][COMPARE_TEXT_SIZE];
    int count;
} Parts;

static Phrase next_part(Parts *parts) {
    return phrase_begin(parts->text[parts->count++], COMPARE_TEXT_SIZE);
}

const char *compare_slowed_by(const Comparison *comparison, const CompareSide *side) {
    bool had_company = false, was_busy = false;
    for (int m = 0; m < side->member_count; m++) {
        had_company |= compare_had_company(comparison, side->members[m]);
        was_busy |= compare_was_busy(&comparison->runs[side->members[m]]);
    }
    return had_company ? " (trained at the same time)"
           : was_busy  ? " while other programs ran"
                       : NULL;
}

static const double notable = 0.03; // ratios nearer to 1 are told as equal

// "(1.77 to 1.84)": with as many digits as tell the two apart.
static void say_interval(Phrase *text, const CompareSide *side) {
    const double least = 1e-4; // no interval: two runs that took the same time at every step
    double low = side->speedup_low, high = side->speedup_high;
    if (isnan(low) || (isfinite(high) && !(high - low > least * high)))
        return;
    int decimals = high < 9.95 ? 2 : 1;
    if (isinf(high))
        phrase_add(text, " (%.*f or more)", decimals, low);
    else
        phrase_add(text, " (%.*f to %.*f)", decimals, low, decimals, high);
}

static void tell_speed(Parts *parts, const CompareSide *side, const CompareSide *against,
                       const char *slowed) {
    double ratio = side->speedup;
    const char *baseline = against->label;
    if (isnan(ratio))
        return;
    Phrase text = next_part(parts);
    if (compare_is_too_short(side, against)) {
        if (compare_is_too_short(side, side))
            phrase_add(&text, "ran too shortly to tell its speed from that of %s", baseline);
        else
            phrase_add(&text, "cannot be told faster or slower, as %s ran too shortly", baseline);
        return;
    }
    if (compare_is_too_uneven(side)) {
        phrase_add(&text, "ran too unevenly to tell its speed from that of %s", baseline);
        say_interval(&text, side);
        return;
    }
    if (compare_is_about_as_fast(side) || fabs(ratio - 1) < notable)
        phrase_add(&text, "%s about as fast as %s", slowed ? "seemed" : "is", baseline);
    else if (ratio > 1)
        phrase_add(&text, "%s %.*f times as fast as %s", slowed ? "seemed" : "is",
                   ratio < 1.095 ? 2 : 1, ratio, baseline);
    else
        phrase_add(&text, "%s at %.2g of the speed of %s", slowed ? "seemed to run" : "runs", ratio,
                   baseline);
    say_interval(&text, side);
    if (slowed)
        phrase_add(&text, "%s", slowed);
}

static void tell_share(Parts *parts, double ratio, const char *verb, const char *what,
                       const char *of) {
    if (isnan(ratio))
        return;
    Phrase text = next_part(parts);
    if (fabs(ratio - 1) < notable)
        phrase_add(&text, "%s as much %s", verb, what);
    else if (ratio < 0.095)
        phrase_add(&text, "%s %.1g of %s %s", verb, ratio, of, what);
    else if (ratio < 1)
        phrase_add(&text, "%s %.2f of %s %s", verb, ratio, of, what);
    else
        phrase_add(&text, "%s %.*f times %s %s", verb, ratio < 1.095 ? 2 : 1, ratio, of, what);
}

// Whether what came of this step of a run is in what is compared: losses are as far as all runs
// came, results as each ended.
static bool is_compared(const Comparison *comparison, const RunRecord *run, int64_t step,
                        bool as_ended) {
    const double end = compare_shared_end(comparison); // 0: no points were kept
    const double at = compare_axis_of_step(run, comparison->options.axis, (double)step);
    return as_ended || !(end > 0) || !(at > end);
}

// The step from which on the loss was off its course; of older runs, in which that was noticed. 0:
// it was not.
static int64_t own_diverged_since(const RunRecord *run) {
    const double since = record_fact_number(run, RECORD_FACT_DIVERGED);
    for (int i = 0; i < run->diagnosis_count; i++)
        if (strcmp(run->diagnoses[i].kind, "diverged") == 0)
            return since > 0 ? (int64_t)since : run->diagnoses[i].step;
    return 0;
}

// What a fork began with it has from its parent, whose note is there where both are compared.
static int64_t diverged_since(const Comparison *comparison, const RunRecord *run) {
    const int64_t own = own_diverged_since(run);
    for (int i = 0; i < comparison->run_count && own > 0 && run->parent > 0; i++) {
        const RunRecord *parent = &comparison->runs[i];
        const int64_t since = parent->id == run->parent ? own_diverged_since(parent) : 0;
        if (since > 0 && since <= run->parent_step && since < own)
            return since;
    }
    return own;
}

// Whether more than one loss is known of a run: one tells no way that it went.
static bool has_course(const Comparison *comparison, int run) {
    const CompareCurve *curve = &comparison->losses[run];
    int64_t points = 0;
    for (int i = 0; i < curve->count; i++)
        points += curve->points[i].count;
    return comparison->runs[run].step > 1 && (curve->count == 0 || points > 1);
}

// Of a run that did not train as it should, what is known of it by itself; false: nothing.
// `as_ended`: results are compared.
static bool say_failure(Phrase *text, const Comparison *comparison, const CompareSide *side,
                        const CompareSide *other, bool as_ended) {
    const double nothing = 0.9, much = 0.5; // of the loss that it began with is left
    const RunRecord *run = &comparison->runs[side->members[0]];
    const RunRecord *beside = &comparison->runs[other->members[0]];
    if (side->member_count > 1) // the seeds tell
        return false;
    const int64_t since = diverged_since(comparison, run);
    if (since > 0 && is_compared(comparison, run, since, as_ended)) {
        phrase_add(text, "; %s had diverged by step %lld", side->label, (long long)since);
        const double course = record_fact_number(run, RECORD_FACT_COURSE);
        if (course > 0 && run->has_loss) // it may have come back
            phrase_add(text, " (a loss of %.3g before, %.3g in the end)", course, run->loss_last);
        if (run->parent > 0 && since <= run->parent_step) // nothing of its own is to blame
            phrase_add(text, ", as run %lld had already when it was forked from that at step %lld",
                       (long long)run->parent, (long long)run->parent_step);
        return true;
    }
    if (!run->has_loss || !has_course(comparison, side->members[0]) || run->parent > 0 ||
        !(run->loss_first > 0) ||
        !(beside->loss_last < much * beside->loss_first) || // may begin with weights that can it
        !(run->loss_last > nothing * run->loss_first) || !isfinite(run->loss_last))
        return false;
    phrase_add(text, "; %s learned next to nothing: its loss went from %.4g to %.4g", side->label,
               run->loss_first, run->loss_last);
    return true;
}

// One seed each: no noise is known, but some differences are larger than it can well be.
static void say_of_one_seed(Phrase *text, const Comparison *comparison, const CompareSide *side,
                            const CompareSide *baseline, const char *metric, double apart) {
    const double far = 0.2; // in what lies between 0 and 1
    const bool is_far = metric && record_metric_leads(metric) && apart > far && apart <= 1;
    const bool as_ended = metric && !comparison->results_at[0];
    bool has_failed = say_failure(text, comparison, side, baseline, as_ended);
    has_failed = say_failure(text, comparison, baseline, side, as_ended) || has_failed;
    if (has_failed)
        phrase_add(text, "; whether other seeds do so too one seed cannot tell");
    else if (is_far)
        phrase_add(text, ", farther apart than seeds of trainings that go well usually are, though "
                         "one seed cannot tell what others would do");
    else
        phrase_add(text, side->divergence.is_parted_at_end
                             ? ", and the losses part by more than their noise, though one seed "
                               "cannot tell what others would do"
                             : ", and one seed cannot tell that from chance");
}

// `at`: where metrics were taken, if not at the end.
static void tell_outcome(Parts *parts, const Comparison *comparison, const CompareSide *side,
                         const CompareSide *baseline) {
    const char *at = comparison->results_at, *series = comparison->series;
    const CompareMetric *metric = compare_leading_metric(side);
    const char *name = metric ? metric->name : series;
    const Statistic *value = metric ? &metric->value : &side->loss;
    const Statistic *base = metric ? &metric->baseline : &baseline->loss;
    Contrast contrast = metric ? metric->contrast : side->loss_contrast;
    if (value->count + value->not_finite == 0 && base->count + base->not_finite == 0)
        return;
    Phrase text = next_part(parts);
    phrase_add(&text, "its %.63s%s%s is ", name, metric && at[0] ? " at " : "", metric ? at : "");
    if (value->count + value->not_finite == 0) {
        phrase_add(&text, "not known, that of %s is ", baseline->label);
        say_seeds(&text, base);
    } else if (base->count + base->not_finite == 0) {
        say_seeds(&text, value);
        phrase_add(&text, ", that of %s is not known", baseline->label);
    } else if (value->count == 0 || base->count == 0 || value->not_finite + base->not_finite > 0) {
        say_both(&text, value, base);
    } else if (contrast.likeness == LIKENESS_SAME && value->count <= 2 && base->count <= 2) {
        say_both(&text, value, base); // an interval of two is so wide that it holds nearly all
        phrase_add(&text, ", and two seeds cannot tell that from chance");
    } else if (contrast.likeness == LIKENESS_SAME) {
        phrase_add(&text, "the same within the noise");
        if (contrast.pairs > 0) {
            phrase_add(&text, ": ");
            say_difference(&text, &contrast, contrast.delta);
            phrase_add(&text, ", pair by pair");
        }
        phrase_add(&text, " (");
        say_both(&text, value, base);
        phrase_add(&text, ")");
    } else if (contrast.likeness == LIKENESS_DIFFERENT) {
        phrase_add(&text, "%s by ", contrast.delta < 0 ? "lower" : "higher");
        say_difference(&text, &contrast, fabs(contrast.delta));
        phrase_add(&text, ", more than the noise of the seeds%s (",
                   contrast.pairs > 0 ? ", pair by pair" : "");
        say_both(&text, value, base);
        phrase_add(&text, ")");
    } else if (((value->count == 1 && base->count == 1) || side->seeds_are_alike) &&
               value->mean == base->mean) {
        phrase_add(&text, "the same (");
        say_number(&text, value);
        phrase_add(&text, "), though one seed cannot tell what others would do");
    } else if (side->seeds_are_alike) {
        say_both(&text, value, base);
        phrase_add(&text, ", and seeds that change nothing cannot tell that from chance");
    } else {
        say_both(&text, value, base);
        say_of_one_seed(&text, comparison, side, baseline, metric ? metric->name : NULL,
                        fabs(value->mean - base->mean));
    }
}

bool compare_loss_is_broken(const CompareSide *side) {
    return side->loss.count == 0 && side->loss.not_finite > 0;
}

static bool is_same_to_the_bit(const Comparison *comparison, const CompareSide *side,
                               const CompareSide *baseline) {
    const RunRecord *a = &comparison->runs[baseline->members[0]];
    const RunRecord *b = &comparison->runs[side->members[0]];
    return side->member_count == 1 && baseline->member_count == 1 && side->divergence.is_known &&
           side->divergence.different < 0 && a->step == b->step;
}

// What somebody set meanwhile makes it another training than its label says.
static void say_orders(Phrase *text, const Comparison *comparison, const CompareSide *side,
                       const CompareSide *baseline) {
    const char *ours = comparison->orders[side->members[0]].text;
    const char *theirs = comparison->orders[baseline->members[0]].text;
    if (ours[0])
        phrase_add(text, " (in which %.120s%s)", ours, strlen(ours) > 120 ? " .." : "");
    if (theirs[0])
        phrase_add(text, " (and %s, in which %.120s%s)", baseline->label, theirs,
                   strlen(theirs) > 120 ? " .." : "");
}

static bool judge_group(Comparison *comparison, const CompareSide *side,
                        const CompareSide *baseline) {
    Parts *parts = calloc(1, sizeof *parts);
    char *line = compare_add_line(&comparison->verdicts, &comparison->verdict_count);
    if (!parts || !line) {
        free(parts);
        return false;
    }
    Phrase text = phrase_begin(line, COMPARE_TEXT_SIZE);
    if (!compare_is_one_experiment(comparison, side, baseline)) {
        phrase_add(&text,
                   "%s and %s are of two experiments: their numbers stand side by side, and say "
                   "nothing of precision.",
                   side->label, baseline->label);
        free(parts);
        return true;
    }
    const char *slowed = compare_slowed_by(comparison, side);
    slowed = slowed ? slowed : compare_slowed_by(comparison, baseline);
    tell_speed(parts, side, baseline, slowed);
    tell_share(parts, side->memory_ratio, "needs", "memory", "its");
    if (compare_may_hold_energy(comparison, side, baseline))
        tell_share(parts, side->energy_ratio, slowed ? "seemed to use" : "uses", "energy", "its");
    if (compare_loss_is_broken(side) && compare_loss_is_broken(baseline)) {
        Phrase broken = next_part(parts);
        phrase_add(&broken, "its %.63s is not finite in the end, nor is that of %s",
                   comparison->series, baseline->label);
    } else if (is_same_to_the_bit(comparison, side, baseline)) {
        Phrase same = next_part(parts);
        phrase_add(&same, "its %.63s is the same to the bit at every step that was kept",
                   comparison->series);
    } else {
        tell_outcome(parts, comparison, side, baseline);
    }
    const char outcome[] = "its "; // what begins with it has a subject of its own
    const bool is_outcome = strncmp(parts->text[0], outcome, strlen(outcome)) == 0;
    phrase_add(&text, "%s", side->label);
    say_orders(&text, comparison, side, baseline);
    phrase_add(&text, is_outcome ? ": " : " ");
    if (parts->count == 0)
        phrase_add(&text, "cannot be held against %s: nothing is known of both", baseline->label);
    for (int i = 0; i < parts->count; i++) {
        phrase_add_joint(&text, i, parts->count, parts->count > 2 ? ", and " : " and ");
        phrase_add(&text, "%s", parts->text[i]);
    }
    phrase_add(&text, ".");
    free(parts);
    return true;
}

// All runs are of one group: what its seeds say.
static bool judge_seeds(Comparison *comparison) {
    const CompareSide *group = &comparison->groups[0];
    char *line = compare_add_line(&comparison->verdicts, &comparison->verdict_count);
    if (!line)
        return false;
    Phrase text = phrase_begin(line, COMPARE_TEXT_SIZE);
    const CompareMetric *metric = compare_leading_metric(group);
    if (group->member_count == 1)
        phrase_add(&text, "One run is held against nothing");
    else
        phrase_add(&text, "The %d runs differ in their seed alone", group->member_count);
    phrase_add(&text, ": %s reaches %.63s ", group->label,
               metric ? metric->name : comparison->series);
    say_seeds(&text, metric ? &metric->value : &group->loss);
    phrase_add(&text, ".");
    return true;
}

bool compare_judge(Comparison *comparison, Error *error) {
    bool done = comparison->group_count > 1 || judge_seeds(comparison);
    for (int g = 1; g < comparison->group_count && done; g++)
        done = judge_group(comparison, &comparison->groups[g], &comparison->groups[0]);
    done = done && compare_warn(comparison);
    return done || error_fail(error, ERROR_MEMORY, "no memory to compare the runs");
}
