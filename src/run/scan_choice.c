// What follows from a scan: a format for each unit, and which training is the policy.
//
// Nothing is sorted by how fast it is: of times that scatter, the first may be as fast as the
// second, the second as the third, and the first slower than the third. What is left are those that
// none is ahead of (base/rounds.h), of which there is always one, and among them an order by what
// is known for certain.
#include <math.h>
#include <string.h>

#include "run/scan.h"

// ---- a unit -------------------------------------------------------------------------------------

static double damage_of(const ScanRecord *scan, int unit, int format) {
    return format == scan->format_count ? 0 : scan->cells[unit][format].damage;
}

static bool is_borne(const ScanRecord *scan, int unit, int format) {
    const ScanCell *cell = &scan->cells[unit][format];
    return format == scan->format_count ||
           (cell->is_known && !cell->is_broken && cell->damage <= scan->tolerance);
}

static bool is_beaten(const ScanRecord *scan, int unit, int format) {
    const RoundsGain own = scan_pass_gain(scan, format);
    bool is_beaten = false;
    for (int f = 0; f <= scan->format_count && !is_beaten; f++) {
        const RoundsGain other = scan_pass_gain(scan, f);
        is_beaten = is_borne(scan, unit, f) && rounds_ahead(&other, &own);
    }
    return is_beaten;
}

static int choose_for_product(const ScanRecord *scan, int unit) {
    int best = -1;
    for (int f = 0; f <= scan->format_count; f++) {
        if (!is_borne(scan, unit, f) || is_beaten(scan, unit, f))
            continue;
        const int64_t more = best < 0 ? 0 : scan->activations[best] - scan->activations[f];
        if (best < 0 || more > 0 ||
            (more == 0 && damage_of(scan, unit, f) < damage_of(scan, unit, best)))
            best = f;
    }
    return best;
}

// The format of most units that multiply.
static int usual_format(const ScanRecord *scan) {
    int counts[SCAN_MOST_FORMATS + 1] = {0}, most = scan->format_count;
    for (int i = 0; i < scan->unit_count; i++)
        if (!scan_is_kept(scan, i))
            counts[choose_for_product(scan, i)]++;
    for (int f = scan->format_count; f >= 0; f--)
        most = counts[f] >= counts[most] ? f : most;
    return most;
}

// Whether a pass gains time or memory by it that norms and embeddings are low too, and loses none.
static bool lowering_gains(const ScanRecord *scan, int format) {
    const RoundsGain without = scan_pass_gain(scan, format);
    const RoundsGain with = scan_lowered_gain(scan, format);
    if (scan->lowered[format].round_count == 0 || rounds_ahead(&without, &with))
        return false;
    return rounds_ahead(&with, &without) ||
           scan->lowered[format].activations < scan->activations[format];
}

static int choose_for_kept(const ScanRecord *scan, int unit) {
    const int format = usual_format(scan);
    const bool goes_low =
        format < scan->format_count && is_borne(scan, unit, format) && lowering_gains(scan, format);
    return goes_low ? format : scan->format_count;
}

int scan_choose_format(const ScanRecord *scan, int unit) {
    return scan_is_kept(scan, unit) ? choose_for_kept(scan, unit) : choose_for_product(scan, unit);
}

// ---- a training ---------------------------------------------------------------------------------

static bool is_policy(const ScanTraining *training) {
    return strcmp(training->label, "policy") == 0;
}

static bool holds(const ScanRecord *scan, const ScanTraining *training) {
    return training->is_known && scan_training_of(scan, training->label) == training &&
           training->is_within &&
           (is_policy(training) || scan_outcome(scan, training) == SCAN_WITHIN);
}

// Whether both what it gains and that it holds are known.
static bool is_told(const ScanRecord *scan, const ScanTraining *training) {
    const RoundsGain gain = scan_step_gain(scan, training);
    return scan_outcome(scan, training) == SCAN_WITHIN && rounds_tempo(&gain) == TEMPO_FASTER;
}

// Whether it takes less memory, and no pass says that it is slower: steps scatter more.
static bool is_lighter(const ScanRecord *scan, const ScanTraining *training,
                       const ScanTraining *other) {
    const ScanPass own = scan_pass_of(scan, training), its = scan_pass_of(scan, other);
    return own.activations > 0 && own.activations < its.activations &&
           !rounds_ahead(&its.gain, &own.gain);
}

// Of two that neither is surely faster of.
static bool is_preferred(const ScanRecord *scan, const ScanTraining *training,
                         const ScanTraining *other) {
    if (is_told(scan, training) != is_told(scan, other))
        return is_told(scan, training);
    if (is_lighter(scan, training, other) || is_lighter(scan, other, training))
        return is_lighter(scan, training, other);
    return is_policy(training) || (!is_policy(other) && training->above < other->above);
}

int scan_choose_training(const ScanRecord *scan) {
    int best = -1;
    for (int i = 0; i < scan->training_count; i++) {
        const ScanTraining *training = &scan->trainings[i];
        const RoundsGain own = scan_step_gain(scan, training);
        bool is_beaten = !holds(scan, training);
        for (int k = 0; k < scan->training_count && !is_beaten; k++) {
            const RoundsGain other = scan_step_gain(scan, &scan->trainings[k]);
            is_beaten = holds(scan, &scan->trainings[k]) && rounds_ahead(&other, &own);
        }
        if (!is_beaten && (best < 0 || is_preferred(scan, training, &scan->trainings[best])))
            best = i;
    }
    return best;
}
