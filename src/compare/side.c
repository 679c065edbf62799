// One run, or one group of seeds, in numbers, and what they are against the baseline's.
#include <limits.h>
#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "compare/private.h"

static const double tail = 0.9; // the loss is the mean over what follows, of the shared axis

// Before its first step a run has not shown what it needs.
static double peak_memory(const RunRecord *record) {
    bool is_known = record->memory.peak != RECORD_UNKNOWN && record->step > 0;
    return is_known ? (double)record->memory.peak : NAN;
}

// The mean loss over the last tenth of what all runs share.
static double tail_loss(const Comparison *comparison, int run) {
    const CompareCurve *curve = &comparison->losses[run];
    const RunRecord *record = &comparison->runs[run];
    const double rounding = 1e-9; // of an axis that is no whole number
    double end = compare_shared_end(comparison), sum = 0, finite = 0, broken = 0;
    const double before = tail * end * (1 + rounding); // a step at 270 of 300 is of the ninth tenth
    for (int i = 0; i < curve->count && end > 0; i++) {
        const SeriesPoint *point = &curve->points[i];
        if (!(curve->x[i] > before && curve->x[i] <= end))
            continue;
        if (point->count > 0)
            sum += point->mean * (double)point->count;
        finite += (double)point->count;
        broken += (double)(point->nans + point->infs + point->minus_infs);
    }
    if (finite + broken > 0)
        return broken > finite ? INFINITY : sum / finite;
    // A fork may begin where another ends: its last loss is of steps that nobody shares.
    if (compare_lacks_series(comparison, run) || !record->has_loss ||
        (curve->count > 0 && end > 0) || strcmp(comparison->series, "loss") != 0)
        return NAN;
    return isfinite(record->loss_last) ? record->loss_last : INFINITY;
}

typedef struct Reading { // what one run says; NaN: unknown; infinite: not finite
    double steps_per_s, samples_per_s, wall_s, memory, energy_j, co2_g, loss;
    double target_steps, target_seconds;
} Reading;

static Reading read_run(const Comparison *comparison, int run) {
    const RunRecord *record = &comparison->runs[run];
    return (Reading){
        .steps_per_s = record->steps_per_s > 0 ? record->steps_per_s : NAN,
        .samples_per_s = record->samples_per_s > 0 ? record->samples_per_s : NAN,
        .wall_s = record->wall_s > 0 ? record->wall_s : NAN,
        .memory = peak_memory(record),
        .energy_j = compare_energy(comparison, run),
        .co2_g = compare_kwh(compare_energy(comparison, run)) * comparison->options.grams_per_kwh,
        .target_steps = comparison->reached[run].steps,
        .target_seconds = comparison->reached[run].seconds,
        .loss = tail_loss(comparison, run),
    };
}

// One reading of the members that know it.
static void sample_members(const Comparison *comparison, const CompareSide *side,
                           const Reading *readings, size_t offset, Sample *sample) {
    double value;
    sample->count = 0;
    for (int i = 0; i < side->member_count; i++) {
        memcpy(&value, (const char *)&readings[i] + offset, sizeof value);
        if (!isnan(value))
            sample_add(sample, comparison->runs[side->members[i]].seed, value);
    }
}

static double ratio(const Statistic *value, const Statistic *base) {
    return base->mean > 0 ? value->mean / base->mean : NAN;
}

static Pace pace_of_side(const Comparison *comparison, const CompareSide *side) {
    Pace paces[COMPARE_MOST_RUNS];
    for (int i = 0; i < side->member_count; i++)
        paces[i] = comparison->paces[side->members[i]];
    return pace_of_all(paces, side->member_count);
}

// By Welch's test where seeds tell how far speeds scatter, else by the steps' own times. Not in
// pairs: what a machine is slowed by knows nothing of seeds.
static void bound_speedup(const Comparison *comparison, CompareSide *side,
                          const CompareSide *baseline, const Statistic *speed,
                          const Statistic *base) {
    Contrast contrast = statistic_contrast(base, speed);
    side->speedup_low = side->speedup_high = NAN;
    if (contrast.likeness != LIKENESS_UNKNOWN) {
        side->speedup_low = fmax(side->speedup - contrast.interval / base->mean, 0);
        side->speedup_high = side->speedup + contrast.interval / base->mean;
        return;
    }
    Pace theirs = pace_of_side(comparison, baseline), ours = pace_of_side(comparison, side);
    PaceRatio ratio = pace_ratio(&theirs, &ours);
    double middle = theirs.seconds / ours.seconds; // in steps; the speedup may be one in samples
    side->speedup_low = side->speedup * ratio.low / middle;
    side->speedup_high = side->speedup * ratio.high / middle;
}

// Steps of other batches are not alike: what counts is samples, where all members of both count
// them.
static void compare_speed(const Comparison *comparison, CompareSide *side,
                          const CompareSide *baseline) {
    bool has_samples = side->samples_per_s.count == side->member_count &&
                       baseline->samples_per_s.count == baseline->member_count;
    const Statistic *speed = has_samples ? &side->samples_per_s : &side->steps_per_s;
    const Statistic *base = has_samples ? &baseline->samples_per_s : &baseline->steps_per_s;
    side->speedup = ratio(speed, base);
    bound_speedup(comparison, side, baseline, speed, base);
}

bool compare_is_about_as_fast(const CompareSide *side) {
    return side->speedup_low <= 1 && side->speedup_high >= 1;
}

bool compare_is_too_short(const CompareSide *side, const CompareSide *baseline) {
    return fmin(side->wall_s.mean, baseline->wall_s.mean) < compare_least_seconds;
}

// An interval that holds both 1 and half or twice of it says nothing of which is faster.
bool compare_is_too_uneven(const CompareSide *side) {
    return compare_is_about_as_fast(side) && (side->speedup_low < 0.5 || side->speedup_high > 2);
}

double compare_told_speedup(const Comparison *comparison, const CompareSide *side) {
    const CompareSide *baseline = &comparison->groups[0];
    bool is_told =
        side == baseline || !(compare_is_too_short(side, baseline) || compare_is_too_uneven(side));
    return is_told ? side->speedup : (double)NAN;
}

double compare_load_of_others(const RunRecord *run, int *processors) {
    double whole, load = record_fact_part(run, RECORD_FACT_OTHERS, &whole);
    *processors = whole <= INT_MAX ? (int)whole : 0; // NaN: unknown
    return load;
}

// ---- metrics ------------------------------------------------------------------------------------

void compare_sample_metric(const Comparison *comparison, const CompareSide *side, const char *name,
                           Sample *sample) {
    sample->count = 0;
    for (int i = 0; i < side->member_count; i++) {
        const RunRecord *run = &comparison->runs[side->members[i]];
        const RecordMetric *metric = record_metric(run, name);
        if (metric)
            sample_add(sample, run->seed, metric->value);
    }
}

static void fill_metrics(const Comparison *comparison, CompareSide *side,
                         const CompareSide *baseline) {
    for (int i = 0; i < side->metric_count; i++) {
        CompareMetric *metric = &side->metrics[i];
        Sample ours, base;
        compare_sample_metric(comparison, side, metric->name, &ours);
        compare_sample_metric(comparison, baseline, metric->name, &base);
        metric->value = statistic_of(ours.values, ours.count);
        metric->baseline = statistic_of(base.values, base.count);
        metric->contrast = statistic_contrast_samples(&base, &ours);
    }
}

static bool add_metrics_of(const Comparison *comparison, CompareSide *side,
                           const CompareSide *from) {
    for (int m = 0; m < from->member_count; m++) {
        const RunRecord *run = &comparison->runs[from->members[m]];
        for (int i = 0; i < run->metric_count; i++) {
            if (compare_metric(side, run->metrics[i].name))
                continue;
            CompareMetric *grown =
                realloc(side->metrics, (size_t)(side->metric_count + 1) * sizeof *side->metrics);
            if (!grown)
                return false;
            side->metrics = grown;
            grown[side->metric_count] = (CompareMetric){.name = ""};
            memcpy(grown[side->metric_count++].name, run->metrics[i].name, RECORD_NAME_SIZE);
        }
    }
    return true;
}

// ---- the side -----------------------------------------------------------------------------------

// Of the members in their order; NULL: no memory.
static Reading *read_members(const Comparison *comparison, const CompareSide *side) {
    Reading *readings = calloc((size_t)side->member_count, sizeof *readings);
    for (int i = 0; readings && i < side->member_count; i++)
        readings[i] = read_run(comparison, side->members[i]);
    return readings;
}

// Of the loss that was, whatever series is compared: a rate is the same for every seed.
static bool losses_are_alike(const Comparison *comparison, const CompareSide *side) {
    const RunRecord *first = &comparison->runs[side->members[0]];
    bool is_same = first->has_loss && first->loss_last != 0; // all may have come to nothing
    for (int i = 1; i < side->member_count; i++) {
        const RunRecord *run = &comparison->runs[side->members[i]];
        is_same = is_same && run->has_loss && run->loss_first == first->loss_first &&
                  run->loss_last == first->loss_last && run->loss_best == first->loss_best;
    }
    return is_same;
}

static bool gave_the_same(const Comparison *comparison, const CompareSide *side) {
    bool is_same = side->member_count > 1 && side->loss.count == side->member_count &&
                   side->loss.deviation == 0 && losses_are_alike(comparison, side);
    for (int i = 0; i < side->metric_count; i++) {
        const Statistic *value = &side->metrics[i].value;
        is_same = is_same && value->not_finite == 0 && !(value->deviation > 0);
    }
    return is_same;
}

static void forget(Contrast *contrast) {
    contrast->interval = (double)NAN;
    contrast->likeness = LIKENESS_UNKNOWN;
}

// An interval of 0 would claim that chance is known, and it is not.
static void forget_alike(const Comparison *comparison, CompareSide *side,
                         const CompareSide *baseline) {
    side->seeds_are_alike = gave_the_same(comparison, side) && gave_the_same(comparison, baseline);
    if (!side->seeds_are_alike)
        return;
    forget(&side->loss_contrast);
    for (int i = 0; i < side->metric_count; i++)
        forget(&side->metrics[i].contrast);
}

bool compare_fill_side(Comparison *comparison, CompareSide *side, const CompareSide *baseline,
                       Error *error) {
    Reading *readings = read_members(comparison, side), *base = read_members(comparison, baseline);
    bool done = readings && base && add_metrics_of(comparison, side, baseline) &&
                add_metrics_of(comparison, side, side);
    if (!done)
        goto done;
    const char *lead = record_fact(&comparison->runs[side->members[0]], RECORD_FACT_LEADS);
    snprintf(side->leads, sizeof side->leads, "%s", lead ? lead : "");
    side->skipped = 0;
    for (int i = 0; i < side->member_count; i++)
        side->skipped += comparison->runs[side->members[i]].skipped;
    const struct {
        size_t offset;
        Statistic *statistic;
        Contrast *contrast; // NULL: nobody asks for it
    } rows[] = {
        {offsetof(Reading, steps_per_s), &side->steps_per_s, NULL},
        {offsetof(Reading, samples_per_s), &side->samples_per_s, NULL},
        {offsetof(Reading, wall_s), &side->wall_s, NULL},
        {offsetof(Reading, memory), &side->memory, NULL},
        {offsetof(Reading, energy_j), &side->energy_j, NULL},
        {offsetof(Reading, co2_g), &side->co2_g, NULL},
        {offsetof(Reading, loss), &side->loss, &side->loss_contrast},
        {offsetof(Reading, target_steps), &side->target_steps, NULL},
        {offsetof(Reading, target_seconds), &side->target_seconds, &side->target_contrast},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        Sample ours, theirs;
        sample_members(comparison, side, readings, rows[i].offset, &ours);
        *rows[i].statistic = statistic_of(ours.values, ours.count);
        if (!rows[i].contrast)
            continue;
        sample_members(comparison, baseline, base, rows[i].offset, &theirs);
        *rows[i].contrast = statistic_contrast_samples(&theirs, &ours);
    }
    compare_speed(comparison, side, baseline);
    side->wall_ratio = ratio(&side->wall_s, &baseline->wall_s);
    side->memory_ratio = ratio(&side->memory, &baseline->memory);
    side->energy_ratio = ratio(&side->energy_j, &baseline->energy_j);
    side->co2_ratio = ratio(&side->co2_g, &baseline->co2_g);
    side->target_ratio = ratio(&side->target_seconds, &baseline->target_seconds);
    fill_metrics(comparison, side, baseline);
    forget_alike(comparison, side, baseline);
done:
    free(readings);
    free(base);
    return done || error_fail(error, ERROR_MEMORY, "no memory to compare the runs");
}

const CompareMetric *compare_metric(const CompareSide *side, const char *name) {
    for (int i = 0; i < side->metric_count; i++)
        if (strcmp(side->metrics[i].name, name) == 0)
            return &side->metrics[i];
    return NULL;
}

// What the script says leads, where there is that result.
static bool leads(const CompareSide *side, const char *name) {
    const bool is_said = side->leads[0] && compare_metric(side, side->leads);
    return is_said ? strcmp(side->leads, name) == 0 : record_metric_leads(name);
}

const CompareMetric *compare_leading_metric(const CompareSide *side) {
    for (int i = 0; i < side->metric_count; i++)
        if (leads(side, side->metrics[i].name))
            return &side->metrics[i];
    return side->metric_count > 0 ? &side->metrics[0] : NULL;
}

int compare_metric_names(const Comparison *comparison, const char **names, int most) {
    int count = 0;
    for (int pass = 0; pass < 2; pass++)
        for (int g = 0; g < comparison->group_count; g++)
            for (int i = 0; i < comparison->groups[g].metric_count; i++) {
                const char *name = comparison->groups[g].metrics[i].name;
                bool is_known = (pass == 0) != leads(&comparison->groups[g], name);
                for (int k = 0; k < count; k++)
                    is_known |= strcmp(names[k], name) == 0;
                if (!is_known && count < most)
                    names[count++] = name;
            }
    return count;
}
