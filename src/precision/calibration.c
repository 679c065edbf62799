#include "precision/calibration.h"

#include <math.h>
#include <stdlib.h>

#include "number/int8.h"

enum { BINS = 2048 };

struct Calibration {
    double width;  // of a bin; 0: nothing but zeros came yet
    float largest; // magnitude
    uint64_t count[BINS];
    uint64_t zeros; // are whole whatever a step is worth
};

Calibration *calibration_new(void) {
    return calloc(1, sizeof(Calibration));
}

void calibration_free(Calibration *calibration) {
    free(calibration);
}

// Two bins become one until the number has its own.
static void make_room(Calibration *calibration, double magnitude) {
    if (calibration->width == 0) {
        int exponent;
        frexp(magnitude / BINS, &exponent);
        calibration->width = ldexp(1, exponent);
    }
    while (magnitude >= calibration->width * BINS) {
        for (int i = 0; i < BINS / 2; i++)
            calibration->count[i] = calibration->count[2 * i] + calibration->count[2 * i + 1];
        for (int i = BINS / 2; i < BINS; i++)
            calibration->count[i] = 0;
        calibration->width *= 2;
    }
}

bool calibration_add(Calibration *calibration, const float *values, int64_t count) {
    float largest = calibration->largest;
    for (int64_t i = 0; i < count; i++) {
        if (!isfinite(values[i]))
            return false;
        largest = fabsf(values[i]) > largest ? fabsf(values[i]) : largest;
    }
    calibration->largest = largest;
    if (largest > 0)
        make_room(calibration, (double)largest);
    const double bins = largest > 0 ? 1 / calibration->width : 0; // a power of two
    for (int64_t i = 0; i < count; i++) {
        if (values[i] == 0)
            calibration->zeros++;
        else
            calibration->count[(int)((double)fabsf(values[i]) * bins)]++;
    }
    return true;
}

// The sum of squares that is lost where steps reach up to `limit`: what is beyond is clipped to it,
// what is within lies anywhere between two steps.
static double lost_by(const Calibration *calibration, double limit) {
    const double step = limit / INT8_LARGEST, within = step * step / 12;
    double lost = 0;
    for (int i = 0; i < BINS; i++) {
        double middle = (i + 0.5) * calibration->width, beyond = middle - limit;
        double each = beyond > 0 ? beyond * beyond : within;
        lost += (double)calibration->count[i] * each;
    }
    return lost;
}

// The end of the bin up to which there are so many.
static double limit_of(const Calibration *calibration, double share) {
    uint64_t all = 0, seen = 0;
    for (int i = 0; i < BINS; i++)
        all += calibration->count[i];
    for (int i = 0; i < BINS; i++) {
        seen += calibration->count[i];
        if ((double)seen >= share * (double)all)
            return (i + 1) * calibration->width;
    }
    return BINS * calibration->width;
}

float calibration_step(const Calibration *calibration, bool by_largest) {
    static const double percentiles[] = {0.9999, 0.9995, 0.999, 0.995, 0.99, 0.98, 0.95, 0.9};
    float limit = calibration->largest;
    if (by_largest || limit == 0)
        return int8_step(limit);
    double least = lost_by(calibration, (double)limit);
    for (size_t i = 0; i < sizeof percentiles / sizeof *percentiles; i++) {
        double clipped = limit_of(calibration, percentiles[i]);
        double lost = lost_by(calibration, clipped);
        if (lost < least && clipped < (double)calibration->largest) {
            least = lost;
            limit = (float)clipped;
        }
    }
    return int8_step(limit);
}
