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

double compare_energy(const Comparison *comparison, int run) {
    const RunRecord *record = &comparison->runs[run];
    if (!compare_is_stated(comparison, run))
        return record->energy_j;
    return record->wall_s > 0 ? record->wall_s * comparison->options.watts : NAN;
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
    if (side != baseline && !isnan(side->energy_ratio))
        phrase_add(&phrase, ": %.3g %% %s than %s", fabs(1 - side->energy_ratio) * 100,
                   side->energy_ratio <= 1 ? "less" : "more", baseline->label);
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
