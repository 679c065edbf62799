// A claim against the runs that test it.
#include <math.h>
#include <string.h>

#include "cli/claims/claims.h"

const Claim claim_table[] = {
#define CLAIM(name, sentence, published, source, trial, scope, figure, side, metric, unit, low, \
              high, here)                                                                       \
    {name,          sentence,       published, source, CLAIM_TRIAL_##trial,                     \
     CLAIM_##scope, CLAIM_##figure, side,      metric, unit,                                    \
     low,           high,           here},
#include "cli/claims/claims.def"
    {.name = NULL},
};

const ClaimTraining claim_trainings[CLAIM_TRIALS] = {
#define TRIAL(id, command, base) {#id, command, base},
#include "cli/claims/claims.def"
};

const char *claim_verdict_name(ClaimVerdict verdict) {
    static const char *const names[] = {
        [CLAIM_CONFIRMED] = "confirmed",       [CLAIM_NOT_HERE] = "not here",
        [CLAIM_CONTRADICTED] = "contradicted", [CLAIM_OPEN] = "cannot be told",
        [CLAIM_UNTESTED] = "not tested",
    };
    return names[verdict];
}

// ---- the runs that it is of ---------------------------------------------------------------------

static const RunRecord *first_run(const Comparison *comparison, const CompareSide *side) {
    return &comparison->runs[side->members[0]];
}

// A side is named by its precision, its loss scale or a parameter: "bf16", "none", "scales=fixed".
static bool is_side(const RunRecord *run, const char *wanted) {
    const char *equals = strchr(wanted, '=');
    if (!equals)
        return strcmp(run->precision, wanted) == 0 || strcmp(run->scale_rule, wanted) == 0;
    for (int i = 0; i < run->parameter_count; i++) {
        const RecordParameter *parameter = &run->parameters[i];
        size_t length = strlen(parameter->name);
        if (length == (size_t)(equals - wanted) && strncmp(parameter->name, wanted, length) == 0)
            return parameter->kind == RECORD_TEXT && strcmp(parameter->text, equals + 1) == 0;
    }
    return false;
}

static const CompareSide *find_side(const Comparison *comparison, const char *wanted) {
    for (int g = 0; g < comparison->group_count; g++)
        if (is_side(first_run(comparison, &comparison->groups[g]), wanted))
            return &comparison->groups[g];
    return NULL;
}

// Whether what `side` is held against finished too: else the first group is another.
static bool has_other_side(const Claim *claim, const Comparison *comparison,
                           const CompareSide *side) {
    if (claim->figure == CLAIM_METRICS || claim->figure == CLAIM_VALUE)
        return true;
    return side != &comparison->groups[0] && is_side(first_run(comparison, &comparison->groups[0]),
                                                     claim_trainings[claim->trial].base);
}

// Of all runs the most that other programs took of the machine, where that is enough to tell.
static double busy_with_others(const Comparison *comparison) {
    double most = 0;
    for (int i = 0; i < comparison->run_count; i++)
        if (compare_was_busy(&comparison->runs[i])) {
            int processors;
            most = fmax(most, compare_load_of_others(&comparison->runs[i], &processors));
        }
    return most;
}

// ---- figures ------------------------------------------------------------------------------------

// Of its steps, where that is known: what is tried before the first is none of them.
static double mean_activations(const Comparison *comparison, const CompareSide *side) {
    double sum = 0;
    for (int i = 0; i < side->member_count; i++) {
        const RunRecord *run = &comparison->runs[side->members[i]];
        RecordMemory memory;
        if (!record_memory_in_steps(run, &memory))
            memory = run->memory;
        sum += (double)memory.activations / side->member_count;
    }
    return sum;
}

// `metric` of a side less another, or the same, of a base, seed by seed.
static Statistic paired(const Comparison *comparison, const CompareSide *side, const char *metric,
                        const CompareSide *base, const char *less) {
    Sample ours, theirs;
    compare_sample_metric(comparison, side, metric, &ours);
    compare_sample_metric(comparison, base, less, &theirs);
    return statistic_of_pairs(&theirs, &ours);
}

static void measure(const Claim *claim, const Comparison *comparison, const CompareSide *side,
                    ClaimFound *found) {
    const CompareMetric *metric = compare_metric(side, claim->metric);
    Statistic statistic;
    switch (claim->figure) {
    case CLAIM_SPEED:
        found->value = side->speedup;
        found->interval = (side->speedup_high - side->speedup_low) / 2;
        found->busy = busy_with_others(comparison);
        break;
    case CLAIM_ACTIVATIONS:
        found->value = mean_activations(comparison, side) /
                       mean_activations(comparison, &comparison->groups[0]);
        found->interval = 0; // the same in every run
        break;
    case CLAIM_MEMORY:
        found->value = side->memory_ratio;
        found->interval = 0;
        break;
    case CLAIM_DELTA:
        statistic = paired(comparison, side, claim->metric, &comparison->groups[0], claim->metric);
        found->value = statistic.mean;
        found->interval = statistic.interval;
        found->seeds = statistic.count;
        break;
    case CLAIM_METRICS: // `side` of a claim is here the metric that the other is taken from
        statistic = paired(comparison, side, claim->side, side, claim->metric);
        found->value = statistic.mean;
        found->interval = statistic.interval;
        break;
    case CLAIM_VALUE:
        found->value = metric ? metric->value.mean : (double)NAN;
        found->interval = metric ? metric->value.interval : (double)NAN;
        break;
    }
    if (strcmp(claim->unit, "points") == 0 || strcmp(claim->unit, "%") == 0) {
        found->value *= 100;
        found->interval *= 100;
    }
}

static ClaimVerdict verdict_of(const Claim *claim, const ClaimFound *found) {
    double about = isnan(found->interval) ? 0 : found->interval;
    if (isnan(found->value))
        return CLAIM_UNTESTED;
    if (found->busy > 0)
        return CLAIM_OPEN;
    if (found->value - about >= claim->low && found->value + about <= claim->high)
        return CLAIM_CONFIRMED;
    bool is_outside = found->value - about > claim->high || found->value + about < claim->low;
    if (!is_outside)
        return CLAIM_OPEN;
    return claim->scope == CLAIM_MACHINE ? CLAIM_NOT_HERE : CLAIM_CONTRADICTED;
}

ClaimFound claim_judge(const Claim *claim, const Comparison *comparison) {
    ClaimFound found = {.value = (double)NAN, .interval = (double)NAN, .verdict = CLAIM_UNTESTED};
    if (!comparison || comparison->group_count == 0)
        return found;
    const CompareSide *side = claim->figure == CLAIM_METRICS ? &comparison->groups[0]
                                                             : find_side(comparison, claim->side);
    if (!side || !has_other_side(claim, comparison, side))
        return found;
    found.seeds = side->member_count;
    measure(claim, comparison, side, &found);
    found.verdict = verdict_of(claim, &found);
    return found;
}
