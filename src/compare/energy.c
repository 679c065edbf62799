// What the runs took of energy and caused of CO2, in words: a sentence a group, and how it is
// known.
#include <math.h>
#include <stdio.h>

#include "base/phrase.h"
#include "compare/private.h"

static const double joules_per_kwh = 3.6e6;

double compare_kwh(double joules) {
    return joules / joules_per_kwh;
}

bool compare_is_stated(const Comparison *comparison, int run) {
    return isnan(comparison->runs[run].energy_j) && comparison->options.watts > 0;
}

double compare_joules(const RunRecord *run, double watts) {
    if (!isnan(run->energy_j) || !(watts > 0))
        return run->energy_j;
    return run->wall_s > 0 ? run->wall_s * watts : NAN;
}

double compare_energy(const Comparison *comparison, int run) {
    return compare_joules(&comparison->runs[run], comparison->options.watts);
}

bool compare_may_hold_energy(const Comparison *comparison, const CompareSide *side,
                             const CompareSide *baseline) {
    const RunRecord *first = &comparison->runs[baseline->members[0]];
    const CompareSide *both[] = {side, baseline};
    if (compare_is_too_short(side, baseline))
        return false;
    for (int k = 0; k < 2; k++)
        for (int i = 0; i < both[k]->member_count; i++) {
            const RunRecord *run = &comparison->runs[both[k]->members[i]];
            if (run->step - run->parent_step != first->step - first->parent_step)
                return false;
        }
    return true;
}

// What the group took less, or more, in each of the units that its sentence has.
static void say_reduction(Phrase *phrase, const CompareSide *side, const CompareSide *baseline,
                          bool has_grams) {
    const double joules = fabs(baseline->energy_j.mean - side->energy_j.mean);
    phrase_add(phrase, ": %.3g %% %s than %s, by %.4g J, %.3g kWh",
               fabs(1 - side->energy_ratio) * 100, side->energy_ratio <= 1 ? "less" : "more",
               baseline->label, joules, compare_kwh(joules));
    if (has_grams)
        phrase_add(phrase, " and %.3g g of CO2", fabs(baseline->co2_g.mean - side->co2_g.mean));
}

static bool say_group(Comparison *comparison, const CompareSide *side) {
    const CompareSide *baseline = &comparison->groups[0];
    const double grams = comparison->options.grams_per_kwh;
    if (isnan(side->energy_j.mean) || side->energy_j.count == 0)
        return true;
    char *line = compare_add_line(&comparison->energies, &comparison->energy_count);
    if (!line)
        return false;
    Phrase phrase = phrase_begin(line, COMPARE_TEXT_SIZE);
    phrase_add(&phrase, "%s: %.4g J, which is %.3g kWh", side->label, side->energy_j.mean,
               compare_kwh(side->energy_j.mean));
    if (!isnan(grams))
        phrase_add(&phrase, " and, at %.4g g a kWh, %.3g g of CO2", grams, side->co2_g.mean);
    if (side != baseline && !isnan(side->energy_ratio) &&
        compare_may_hold_energy(comparison, side, baseline))
        say_reduction(&phrase, side, baseline, !isnan(grams));
    phrase_add(&phrase, ".");
    return true;
}

bool compare_tell_energy(Comparison *comparison, Error *error) {
    int stated = 0;
    bool done = true;
    for (int i = 0; i < comparison->run_count; i++)
        stated += compare_is_stated(comparison, i);
    for (int g = 0; g < comparison->group_count && done; g++)
        done = say_group(comparison, &comparison->groups[g]);
    char *line = NULL;
    if (done && stated > 0)
        done = (line = compare_add_line(&comparison->energies, &comparison->energy_count)) != NULL;
    if (line)
        snprintf(
            line, COMPARE_TEXT_SIZE,
            "%s nothing measured the energy%s: it is stated, %.4g W for as long as a run took, "
            "and tells of time alone.",
            stated == comparison->run_count ? "Here" : "Of some runs",
            stated == comparison->run_count ? "" : " itself", comparison->options.watts);
    return done || error_fail(error, ERROR_MEMORY, "no memory to compare the runs");
}
