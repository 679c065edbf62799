// compare/statistics.h: what several seeds of the same thing say: mean, scatter, and how far chance
// alone could carry them. Pure functions on the caller's numbers; nothing allocates or fails. Any
// thread.
#pragma once

#include <stdbool.h>
#include <stdint.h>

typedef struct Statistic {
    int count;        // values that are finite
    int not_finite;   // values that are not, left out of the rest
    double mean;      // NaN without a value
    double deviation; // of the values, not of the mean; NaN with fewer than two
    double interval;  // mean ± interval holds the true mean in 95 of 100 cases; NaN as above
} Statistic;

Statistic statistic_of(const double *values, int count);

enum { STATISTIC_TEXT_SIZE = 64 };

// "0.9110 ± 0.0050": as many decimals as the interval is good for; "not finite", "unknown". In
// UTF-8, or with "+-" for `ascii`. Returns `text`.
const char *statistic_text(char text[STATISTIC_TEXT_SIZE], const Statistic *statistic, bool ascii);

typedef enum Likeness {
    LIKENESS_UNKNOWN, // a side has no value, one only, or too large ones: chance cannot be told
    LIKENESS_SAME,    // the difference could be chance
    LIKENESS_DIFFERENT,
} Likeness;

typedef struct Contrast { // b - a
    double delta;         // of the means; NaN where one has none
    double interval;      // 95 %; NaN where it cannot be told
    Likeness likeness;
    int pairs; // of one seed, of which it is the mean; 0: it is Welch's
} Contrast;

// Welch's test: the two may scatter differently.
Contrast statistic_contrast(const Statistic *a, const Statistic *b);

enum { STATISTIC_MOST_SEEDS = 256 };

// What seeds gave, each of them one value. Begins with no more than its count set to 0.
typedef struct Sample {
    int count;
    int64_t seeds[STATISTIC_MOST_SEEDS];
    double values[STATISTIC_MOST_SEEDS];
} Sample;

void sample_add(Sample *sample, int64_t seed, double value);

// b - a, seed by seed: two trainings of a seed share their first weights and the order of their
// data, so that their difference scatters less than either. Of a seed that only one of them has
// nothing is told; a difference that is not finite is counted as such. A scatter that is rounding
// alone is none.
Statistic statistic_of_pairs(const Sample *a, const Sample *b);

// By pairs where both have the same seeds, and two of them or more are finite on both sides; else
// Welch's test. That, too, where all pairs differ by the same number: what is counted (of so many
// right) moves in whole steps, and that a few seeds moved by the same tells nothing of chance.
Contrast statistic_contrast_samples(const Sample *a, const Sample *b);

// The value that Student's t with `freedom` degrees (need not be whole; INFINITY: normal) stays
// under with this probability, 0 < probability < 1.
double student_quantile(double probability, double freedom);
