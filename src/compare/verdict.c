// What a comparison comes down to, in one sentence a group, and what may mislead about it.
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "compare/private.h"

typedef struct Text { // grows up to COMPARE_TEXT_SIZE; what does not fit is left out
    char *bytes;
    size_t used;
} Text;

__attribute__((format(printf, 2, 3))) static void say(Text *text, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    size_t room = COMPARE_TEXT_SIZE - text->used;
    int length = vsnprintf(text->bytes + text->used, room, format, arguments);
    va_end(arguments);
    if (length > 0)
        text->used += (size_t)length < room ? (size_t)length : room - 1;
}

static char *add_line(char (**lines)[COMPARE_TEXT_SIZE], int *count) {
    char(*grown)[COMPARE_TEXT_SIZE] = realloc(*lines, (size_t)(*count + 1) * sizeof *grown);
    if (!grown)
        return NULL;
    *lines = grown;
    grown[*count][0] = 0;
    return grown[(*count)++];
}

// ---- the parts of a sentence --------------------------------------------------------------------

static void say_number(Text *text, const Statistic *number) {
    char words[STATISTIC_TEXT_SIZE];
    say(text, "%s", statistic_text(words, number, false));
}

// With the seeds that the mean leaves out.
static void say_seeds(Text *text, const Statistic *value) {
    say_number(text, value);
    if (value->count > 0 && value->not_finite > 0)
        say(text, " (%d of %d seeds not finite)", value->not_finite,
            value->count + value->not_finite);
}

static void say_both(Text *text, const Statistic *value, const Statistic *baseline) {
    say_seeds(text, value);
    say(text, " against ");
    say_seeds(text, baseline);
}

enum { MOST_PARTS = 4 };

typedef struct Parts {
    char text[MOST_PARTS][COMPARE_TEXT_SIZE];
    int count;
} Parts;

static Text next_part(Parts *parts) {
    char *bytes = parts->text[parts->count++];
    bytes[0] = 0;
    return (Text){bytes, 0};
}

// One that goes on has no end yet, and of one that died nobody wrote it down.
static int64_t end_of(const RunRecord *run) {
    if (run_status_goes_on(run->status))
        return INT64_MAX;
    return run->status == RUN_DEAD ? run->created_ms + (int64_t)(1000 * run->wall_s)
                                   : run->ended_ms;
}

static bool overlap(const RunRecord *a, const RunRecord *b) {
    return a->created_ms < end_of(b) && b->created_ms < end_of(a) &&
           strcmp(a->device_name, b->device_name) == 0;
}

// Of a group: one of its runs shared the device with another run of the comparison.
static bool had_company(const Comparison *comparison, const CompareSide *side) {
    for (int m = 0; m < side->member_count; m++)
        for (int i = 0; i < comparison->run_count; i++)
            if (i != side->members[m] &&
                overlap(&comparison->runs[side->members[m]], &comparison->runs[i]))
                return true;
    return false;
}

static const double notable = 0.03; // ratios nearer to 1 are told as equal
// Shorter runs are start and noise.
static const double least_seconds = 3;

// `shared`: they slowed each other, so that the ratio is no more than a hint.
static void tell_speed(Parts *parts, const CompareSide *side, const CompareSide *against,
                       bool shared) {
    double ratio = side->speedup;
    const char *baseline = against->label;
    if (isnan(ratio))
        return;
    Text text = next_part(parts);
    if (fmin(side->wall_s.mean, against->wall_s.mean) < least_seconds) {
        say(&text, "ran too shortly to tell its speed from %s's", baseline);
        return;
    }
    bool is_noise = side->speed_contrast.likeness == LIKENESS_SAME;
    if (is_noise || fabs(ratio - 1) < notable)
        say(&text, "%s as fast as %s%s", shared ? "seemed" : "is", baseline,
            is_noise ? " within the noise" : "");
    else if (ratio > 1)
        say(&text, "%s %.*f times as fast as %s", shared ? "seemed" : "is", ratio < 1.095 ? 2 : 1,
            ratio, baseline);
    else
        say(&text, "%s at %.2g of the speed of %s", shared ? "seemed to run" : "runs", ratio,
            baseline);
    if (shared)
        say(&text, " (trained at the same time)");
}

static void tell_share(Parts *parts, double ratio, const char *verb, const char *what,
                       const char *of) {
    if (isnan(ratio))
        return;
    Text text = next_part(parts);
    if (fabs(ratio - 1) < notable)
        say(&text, "%s as much %s", verb, what);
    else if (ratio < 1)
        say(&text, "%s %.2f of %s %s", verb, ratio, of, what);
    else
        say(&text, "%s %.*f times %s %s", verb, ratio < 1.095 ? 2 : 1, ratio, of, what);
}

// `at`: where metrics were taken, if not at the end.
static void tell_outcome(Parts *parts, const CompareSide *side, const CompareSide *baseline,
                         const char *at) {
    const CompareMetric *metric = compare_leading_metric(side);
    const char *name = metric ? metric->name : "loss";
    const Statistic *value = metric ? &metric->value : &side->loss;
    const Statistic *base = metric ? &metric->baseline : &baseline->loss;
    Contrast contrast = metric ? metric->contrast : side->loss_contrast;
    if (value->count + value->not_finite == 0 && base->count + base->not_finite == 0)
        return;
    Text text = next_part(parts);
    say(&text, "its %.63s%s%s is ", name, metric && at[0] ? " at " : "", metric ? at : "");
    if (value->count + value->not_finite == 0) {
        say(&text, "not known, that of %s ", baseline->label);
        say_seeds(&text, base);
    } else if (base->count + base->not_finite == 0) {
        say_seeds(&text, value);
        say(&text, ", that of %s not known", baseline->label);
    } else if (value->count == 0 || base->count == 0 || value->not_finite + base->not_finite > 0) {
        say_both(&text, value, base);
    } else if (contrast.likeness == LIKENESS_SAME) {
        say(&text, "the same within the noise (");
        say_both(&text, value, base);
        say(&text, ")");
    } else if (contrast.likeness == LIKENESS_DIFFERENT) {
        say(&text, "%s by %.2g, more than the noise of the seeds (",
            contrast.delta < 0 ? "lower" : "higher", fabs(contrast.delta));
        say_both(&text, value, base);
        say(&text, ")");
    } else if (value->count == 1 && base->count == 1 && value->mean == base->mean) {
        say(&text, "the same (");
        say_number(&text, value);
        say(&text, "), though one seed cannot tell what others would do");
    } else {
        say_both(&text, value, base);
        say(&text, side->divergence.is_parted_at_end
                       ? ", and the losses part by more than their noise, though one seed cannot "
                         "tell what others would do"
                       : ", and one seed cannot tell that from chance");
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

static bool judge_group(Comparison *comparison, const CompareSide *side,
                        const CompareSide *baseline) {
    Parts *parts = calloc(1, sizeof *parts);
    char *line = add_line(&comparison->verdicts, &comparison->verdict_count);
    if (!parts || !line) {
        free(parts);
        return false;
    }
    Text text = {line, 0};
    if (!compare_is_one_experiment(comparison, side, baseline)) {
        say(&text,
            "%s and %s are of two experiments: their numbers stand side by side, and say "
            "nothing of precision.",
            side->label, baseline->label);
        free(parts);
        return true;
    }
    bool shared = had_company(comparison, side) || had_company(comparison, baseline);
    tell_speed(parts, side, baseline, shared);
    tell_share(parts, side->memory_ratio, "needs", "memory", "its");
    tell_share(parts, side->energy_ratio, shared ? "seemed to use" : "uses", "energy", "its");
    if (compare_loss_is_broken(side) && compare_loss_is_broken(baseline)) {
        Text broken = next_part(parts);
        say(&broken, "its loss is not finite in the end, nor is that of %s", baseline->label);
    } else if (is_same_to_the_bit(comparison, side, baseline)) {
        Text same = next_part(parts);
        say(&same, "its loss is the same to the bit at every step that was kept");
    } else {
        tell_outcome(parts, side, baseline, comparison->results_at);
    }
    say(&text, "%s ", side->label);
    if (parts->count == 0)
        say(&text, "cannot be held against %s: nothing is known of both", baseline->label);
    for (int i = 0; i < parts->count; i++)
        say(&text, "%s%s",
            i == 0                 ? ""
            : i < parts->count - 1 ? ", "
            : parts->count > 2     ? ", and "
                                   : " and ",
            parts->text[i]);
    say(&text, ".");
    free(parts);
    return true;
}

// All runs are of one group: what its seeds say.
static bool judge_seeds(Comparison *comparison) {
    const CompareSide *group = &comparison->groups[0];
    char *line = add_line(&comparison->verdicts, &comparison->verdict_count);
    if (!line)
        return false;
    Text text = {line, 0};
    const CompareMetric *metric = compare_leading_metric(group);
    if (group->member_count == 1)
        say(&text, "One run is held against nothing");
    else
        say(&text, "The %d runs differ in their seed alone", group->member_count);
    say(&text, ": %s reaches %.63s ", group->label, metric ? metric->name : "loss");
    say_seeds(&text, metric ? &metric->value : &group->loss);
    say(&text, ".");
    return true;
}

// ---- caveats ------------------------------------------------------------------------------------

static bool differs(const Comparison *comparison, const char *name) {
    for (int i = 0; i < comparison->difference_count; i++)
        if (strcmp(comparison->differences[i].name, name) == 0)
            return true;
    return false;
}

static bool warn_of_differences(Comparison *comparison) {
    static const struct {
        const char *name, *text;
    } rows[] = {
        {"script", "The script's text was not the same in all runs."},
        {"device", "The runs were not on one kind of device: speed, memory and energy tell of the "
                   "devices too, and a device may lack formats that another has."},
        {"machine", "The runs were not on one machine: speed and energy tell of the machines too."},
        {"threads", "The runs did not have the same number of threads: speed tells of that too, "
                    "and sums may round differently."},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (!differs(comparison, rows[i].name))
            continue;
        char *line = add_line(&comparison->caveats, &comparison->caveat_count);
        if (!line)
            return false;
        snprintf(line, COMPARE_TEXT_SIZE, "%s", rows[i].text);
    }
    return true;
}

// What became of a run that did not finish, or what it does.
static const char *fate_of(const RunRecord *run) {
    static const char *const fates[RUN_STATUSES] = {
        [RUN_RUNNING] = "still runs",  [RUN_PAUSED] = "is paused", [RUN_FINISHED] = "finished",
        [RUN_STOPPED] = "was stopped", [RUN_FAILED] = "failed",    [RUN_DEAD] = "died"};
    bool goes_on = run_status_goes_on(run->status);
    return goes_on && run->stale ? "fell silent" : fates[run->status];
}

static bool warn_of_unfinished(Comparison *comparison) {
    for (int i = 0; i < comparison->run_count; i++) {
        const RunRecord *run = &comparison->runs[i];
        if (run->status == RUN_FINISHED)
            continue;
        char *line = add_line(&comparison->caveats, &comparison->caveat_count);
        if (!line)
            return false;
        snprintf(line, COMPARE_TEXT_SIZE, "%s %s: its numbers are of its first %" PRId64 " steps.",
                 run->name, fate_of(run), run->step);
    }
    return true;
}

static bool warn_of_lengths(Comparison *comparison) {
    int64_t least = INT64_MAX, most = 0;
    for (int i = 0; i < comparison->run_count; i++) {
        int64_t step = comparison->runs[i].step;
        least = step < least ? step : least;
        most = step > most ? step : most;
    }
    if (least == most)
        return true;
    char *line = add_line(&comparison->caveats, &comparison->caveat_count);
    if (!line)
        return false;
    snprintf(line, COMPARE_TEXT_SIZE,
             "The runs took between %" PRId64 " and %" PRId64
             " steps: losses are compared as far as all of them came, results %s%s.",
             least, most, comparison->results_at[0] ? "of " : "as they ended",
             comparison->results_at);
    return true;
}

// Where a run does not count what the axis is of, it has no place on it.
static bool warn_of_axis(Comparison *comparison) {
    CompareAxis axis = comparison->options.axis;
    for (int i = 0; i < comparison->run_count; i++) {
        const RunRecord *run = &comparison->runs[i];
        if (comparison->losses[i].count == 0 || !isnan(compare_axis_of_step(run, axis, 1)))
            continue;
        char *line = add_line(&comparison->caveats, &comparison->caveat_count);
        if (!line)
            return false;
        snprintf(line, COMPARE_TEXT_SIZE,
                 "%s counts no %s: its curve is left out, and losses are those at the end.",
                 run->name, axis == COMPARE_BY_EPOCH ? "epochs" : compare_axis_name(axis));
    }
    return true;
}

static bool warn_of_forks(Comparison *comparison) {
    for (int i = 0; i < comparison->run_count; i++) {
        const RunRecord *run = &comparison->runs[i];
        if (run->parent == 0 || run->parent_step == 0)
            continue;
        char *line = add_line(&comparison->caveats, &comparison->caveat_count);
        if (!line)
            return false;
        snprintf(line, COMPARE_TEXT_SIZE,
                 "%s is a fork of run %" PRId64 ": its time, energy and lowest loss are of its own "
                 "steps, those after step %" PRId64 ".",
                 run->name, run->parent, run->parent_step);
    }
    return true;
}

static bool warn_of_brevity(Comparison *comparison) {
    double shortest = INFINITY;
    for (int i = 0; i < comparison->run_count; i++)
        shortest = fmin(shortest, comparison->runs[i].wall_s);
    if (!(shortest < least_seconds))
        return true;
    char *line = add_line(&comparison->caveats, &comparison->caveat_count);
    if (!line)
        return false;
    snprintf(line, COMPARE_TEXT_SIZE,
             "The shortest run took %.2g s: too short to tell speeds by; train for %g s or more.",
             shortest, least_seconds);
    return true;
}

static bool warn_of_company(Comparison *comparison) {
    for (int i = 0; i < comparison->run_count; i++)
        for (int j = 0; j < i; j++) {
            if (!overlap(&comparison->runs[i], &comparison->runs[j]))
                continue;
            char *line = add_line(&comparison->caveats, &comparison->caveat_count);
            if (!line)
                return false;
            snprintf(line, COMPARE_TEXT_SIZE,
                     "%s and %s trained at the same time and slowed each other: train them one "
                     "after the other to compare speed and energy.",
                     comparison->runs[j].name, comparison->runs[i].name);
            return true;
        }
    return true;
}

bool compare_judge(Comparison *comparison, Error *error) {
    bool done = comparison->group_count > 1 || judge_seeds(comparison);
    for (int g = 1; g < comparison->group_count && done; g++)
        done = judge_group(comparison, &comparison->groups[g], &comparison->groups[0]);
    done = done && warn_of_differences(comparison) && warn_of_unfinished(comparison) &&
           warn_of_lengths(comparison) && warn_of_axis(comparison) && warn_of_forks(comparison) &&
           warn_of_company(comparison) && warn_of_brevity(comparison);
    return done || error_fail(error, ERROR_MEMORY, "no memory to compare the runs");
}
