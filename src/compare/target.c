// When each run was first as good as is asked for: steps and seconds to a target.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/phrase.h"
#include "compare/private.h"

enum { TARGET_POINTS = 4096 }; // read of the series

const CompareReach compare_never = {NAN, NAN};

bool compare_target_falls(const Comparison *comparison) {
    const CompareOptions *options = &comparison->options;
    return options->toward == COMPARE_AT_MOST ||
           (options->toward == COMPARE_BY_NAME &&
            record_result_falls(&comparison->runs[0], options->target));
}

size_t compare_target_parse(const char *text, double *value, CompareToward *toward) {
    const char *equals = strrchr(text, '=');
    const char *sign = equals && equals > text && strchr("<>", equals[-1]) ? equals - 1
                       : equals                                            ? equals
                                                                           : strpbrk(text, "<>");
    char *end = NULL;
    if (sign > text && sign[1 + (equals > sign)])
        *value = strtod(sign + 1 + (equals > sign), &end);
    if (!end || *end || !isfinite(*value))
        return 0;
    *toward = *sign == '>' ? COMPARE_AT_LEAST : *sign == '<' ? COMPARE_AT_MOST : COMPARE_BY_NAME;
    return (size_t)(sign - text);
}

static int first_to_reach(const Comparison *comparison, const CompareCurve *curve) {
    const CompareOptions *options = &comparison->options;
    const bool is_falling = compare_target_falls(comparison);
    for (int i = 0; i < curve->count; i++) {
        const SeriesPoint *point = &curve->points[i];
        if (point->count > 0 && (is_falling ? point->mean <= options->target_value
                                            : point->mean >= options->target_value))
            return i;
    }
    return -1;
}

bool compare_read_reach(Store *store, Comparison *comparison, int run, Error *error) {
    const CompareOptions *options = &comparison->options;
    const RunRecord *record = &comparison->runs[run];
    CompareCurve curve = {.count = 0};
    SeriesPoint *times = NULL;
    int time_count = 0;
    comparison->reached[run] = compare_never;
    if (!options->target)
        return true;
    bool done = store_read_series(store, record->id, options->target, 0, INT64_MAX, TARGET_POINTS,
                                  &curve.points, &curve.count, error) &&
                store_read_series(store, record->id, "step_seconds", 0, INT64_MAX, TARGET_POINTS,
                                  &times, &time_count, error) &&
                compare_place_by_seconds(&curve, times, time_count, error);
    comparison->knows_target |= curve.count > 0;
    const int at = done ? first_to_reach(comparison, &curve) : -1;
    if (at >= 0) {
        const double step = (double)(curve.points[at].step + curve.points[at].width - 1);
        double seconds =
            curve.x ? curve.x[at] : compare_axis_of_step(record, COMPARE_BY_SECONDS, step);
        if (record->parent_step > 0) // its steps are counted from where its parent began
            seconds = NAN;
        comparison->reached[run] = (CompareReach){step, seconds};
    }
    free(curve.points);
    free(curve.x);
    free(times);
    return done;
}

// ---- in words -----------------------------------------------------------------------------------

// ", 0.83 of the time of fp32.", as far as that can be told: the end of the sentence.
static void tell_time(const CompareSide *side, const CompareSide *baseline, Phrase *phrase) {
    const Likeness likeness = side->target_contrast.likeness;
    const double ratio = side->target_ratio;
    const char *times = ratio < 1 ? "of" : "times";
    const bool is_whole = side->target_seconds.count == side->member_count &&
                          baseline->target_seconds.count == baseline->member_count;
    const bool is_long = !(fmin(side->wall_s.mean, baseline->wall_s.mean) < compare_least_seconds);
    // The mean of those that came there would flatter, and short runs are all start.
    if (side == baseline || isnan(ratio) || !is_whole || !is_long)
        phrase_add(phrase, ".");
    else if (likeness == LIKENESS_SAME)
        phrase_add(phrase, ", the time of %s within the noise.", baseline->label);
    else
        phrase_add(phrase, ", %.2f %s the time of %s, %s.", ratio, times, baseline->label,
                   likeness == LIKENESS_DIFFERENT ? "more than the noise of the seeds"
                                                  : "which one seed cannot tell from chance");
}

// With what the seeds leave open.
static const char *mean_text(char text[STATISTIC_TEXT_SIZE], const Statistic *value,
                             bool is_whole) {
    if (value->interval > 0)
        return statistic_text(text, value, false);
    const int digits = is_whole ? 15 : 3;
    snprintf(text, STATISTIC_TEXT_SIZE, "%.*g", digits, value->mean);
    return text;
}

void compare_say_target(const Comparison *comparison, int group, char text[COMPARE_TEXT_SIZE]) {
    const CompareOptions *options = &comparison->options;
    const CompareSide *side = &comparison->groups[group], *baseline = &comparison->groups[0];
    const char *sign = compare_target_falls(comparison) ? "<=" : ">=";
    const int reached = side->target_steps.count, members = side->member_count;
    char steps[STATISTIC_TEXT_SIZE], seconds[STATISTIC_TEXT_SIZE], seeds[48] = "";
    bool goes_on = false;
    for (int i = 0; i < members; i++)
        goes_on |= run_status_goes_on(comparison->runs[side->members[i]].status);
    if (reached == 0) {
        snprintf(text, COMPARE_TEXT_SIZE, "%s %s to %.63s %s %.4g.", side->label,
                 goes_on ? "has not come yet" : "never came", options->target, sign,
                 options->target_value);
        return;
    }
    const char *slowed = compare_slowed_by(comparison, side);
    if (members > 1)
        snprintf(seeds, sizeof seeds, ", %d of %d seeds,", reached, members);
    Phrase phrase = phrase_begin(text, COMPARE_TEXT_SIZE);
    phrase_add(&phrase, "%s%s came to %.63s %s %.4g after %s steps", side->label, seeds,
               options->target, sign, options->target_value,
               mean_text(steps, &side->target_steps, true));
    if (side->target_seconds.count == 0) {
        const bool is_fork = comparison->runs[side->members[0]].parent_step > 0;
        phrase_add(&phrase, is_fork ? ", of which its parent had the first: how long is not told "
                                      "of a fork."
                                    : "; how long that took is not known.");
        return;
    }
    phrase_add(&phrase, ", %s s%s", mean_text(seconds, &side->target_seconds, false),
               slowed ? slowed : "");
    tell_time(side, baseline, &phrase);
}
