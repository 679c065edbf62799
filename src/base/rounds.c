#include "base/rounds.h"

#include <math.h>
#include <stdlib.h>

const RoundsGain rounds_same = {.faster = 1, .least = 1, .most = 1};

// Times that differ by less are alike.
static const double noticeable = 1.05;

static int by_size(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double rounds_median(double *values, int count) {
    qsort(values, (size_t)count, sizeof *values, by_size);
    return (values[(count - 1) / 2] + values[count / 2]) / 2;
}

// The true median lies between the least and the most of six rounds or more in 96 of 100 cases, so
// does it of nine or more without one at either end.
RoundsGain rounds_gain(const double *was, const double *is, int count) {
    const int plenty = 9;
    RoundsGain gain = {.faster = (double)NAN, .least = (double)NAN, .most = (double)NAN};
    double gains[ROUNDS_MOST];
    count = count < ROUNDS_MOST ? count : ROUNDS_MOST;
    for (int i = 0; i < count; i++)
        gains[i] = was[i] / is[i];
    if (count == 0)
        return gain;
    gain.faster = rounds_median(gains, count);
    if (count < ROUNDS_LEAST)
        return gain;
    const int left_out = count >= plenty;
    gain.least = gains[left_out];
    gain.most = gains[count - 1 - left_out];
    return gain;
}

Tempo rounds_tempo(const RoundsGain *gain) {
    if (isnan(gain->faster))
        return TEMPO_UNKNOWN;
    if (gain->least > 1 && gain->faster > noticeable)
        return TEMPO_FASTER;
    if (gain->most < 1 && gain->faster * noticeable < 1)
        return TEMPO_SLOWER;
    const bool is_alike = gain->least * noticeable >= 1 && gain->most <= noticeable;
    const bool is_clear =
        (gain->least > 1 || gain->most < 1) && fabs(log(gain->faster)) <= log(noticeable);
    return is_alike || is_clear ? TEMPO_ALIKE : TEMPO_OPEN;
}

const char *rounds_tempo_name(Tempo tempo) {
    static const char *const names[] = {[TEMPO_OPEN] = "cannot be told",
                                        [TEMPO_SLOWER] = "slower",
                                        [TEMPO_ALIKE] = "as fast",
                                        [TEMPO_FASTER] = "faster"};
    return names[tempo];
}

bool rounds_ahead(const RoundsGain *gain, const RoundsGain *other) {
    return gain->least > other->most && gain->faster > other->faster * noticeable;
}
