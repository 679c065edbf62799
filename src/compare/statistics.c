#include "compare/statistics.h"

#include <assert.h>
#include <float.h>
#include <math.h>
#include <stdio.h>

static const double confidence = 0.975; // two sides of 2.5 % each

// The continued fraction of the incomplete beta function, by Lentz's method.
static double beta_fraction(double x, double a, double b) {
    const double tiny = 1e-300;
    double c = 1, d = 1 - (a + b) * x / (a + 1);
    d = 1 / (fabs(d) < tiny ? tiny : d);
    double result = d;
    for (int m = 1; m < 10000; m++) {
        double even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
        double odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1));
        const double terms[] = {even, odd};
        double before = result;
        for (int i = 0; i < 2; i++) {
            d = 1 + terms[i] * d;
            d = 1 / (fabs(d) < tiny ? tiny : d);
            c = 1 + terms[i] / c;
            c = fabs(c) < tiny ? tiny : c;
            result *= c * d;
        }
        if (fabs(result - before) <= 1e-16 * fabs(result))
            break;
    }
    return result;
}

// The regularised incomplete beta function.
static double beta_share(double x, double a, double b) {
    if (x <= 0 || x >= 1)
        return x <= 0 ? 0 : 1;
    double front = exp(a * log(x) + b * log1p(-x) + lgamma(a + b) - lgamma(a) - lgamma(b));
    if (x < (a + 1) / (a + b + 2)) // where the fraction converges fast
        return front * beta_fraction(x, a, b) / a;
    return 1 - front * beta_fraction(1 - x, b, a) / b;
}

// How probable a value above t is, t >= 0.
static double student_tail(double t, double freedom) {
    if (isinf(freedom))
        return 0.5 * erfc(t / sqrt(2));
    return 0.5 * beta_share(freedom / (freedom + t * t), freedom / 2, 0.5);
}

double student_quantile(double probability, double freedom) {
    if (!(probability > 0 && probability < 1 && freedom > 0))
        return NAN;
    const double normal = 1e7; // beyond it the two agree to all digits that matter
    if (freedom > normal)
        freedom = INFINITY;
    double tail = probability < 0.5 ? probability : 1 - probability;
    double low = 0, high = 1;
    while (student_tail(high, freedom) > tail && high < 1e300)
        high *= 2;
    for (int i = 0; i < 200 && high - low > 1e-15 * high; i++) {
        double middle = low + (high - low) / 2;
        if (student_tail(middle, freedom) > tail)
            low = middle;
        else
            high = middle;
    }
    double t = low + (high - low) / 2;
    return probability < 0.5 ? -t : t;
}

Statistic statistic_of(const double *values, int count) {
    Statistic result = {.mean = NAN, .deviation = NAN, .interval = NAN};
    double first = NAN, sum = 0, squares = 0; // the sum is of what each is above the first: equal
    for (int i = 0; i < count; i++) {         // values are their own mean, to the bit
        if (!isfinite(values[i])) {
            result.not_finite++;
            continue;
        }
        if (result.count++ == 0)
            first = values[i];
        sum += values[i] - first;
    }
    if (result.count == 0)
        return result;
    result.mean = first + sum / result.count;
    for (int i = 0; i < count; i++)
        if (isfinite(values[i]))
            squares += (values[i] - result.mean) * (values[i] - result.mean);
    if (result.count < 2)
        return result;
    result.deviation = sqrt(squares / (result.count - 1));
    result.interval =
        student_quantile(confidence, result.count - 1) * result.deviation / sqrt(result.count);
    return result;
}

Contrast statistic_contrast(const Statistic *a, const Statistic *b) {
    Contrast contrast = {.delta = b->mean - a->mean, .interval = NAN};
    if (a->count < 2 || b->count < 2)
        return contrast;
    // Errors of the means; as shares of both together no square of them overflows.
    double ea = a->deviation / sqrt(a->count), eb = b->deviation / sqrt(b->count);
    double both = hypot(ea, eb), va = ea / both * (ea / both), vb = eb / both * (eb / both);
    if (both == 0) // every seed gave the same number
        contrast.interval = 0;
    else
        contrast.interval = student_quantile(confidence, 1 / (va * va / (a->count - 1) +
                                                              vb * vb / (b->count - 1))) *
                            both;
    if (isnan(contrast.interval) || !isfinite(contrast.delta))
        return contrast;
    contrast.likeness =
        fabs(contrast.delta) <= contrast.interval ? LIKENESS_SAME : LIKENESS_DIFFERENT;
    return contrast;
}

// ---- seed by seed -------------------------------------------------------------------------------

void sample_add(Sample *sample, int64_t seed, double value) {
    assert(sample->count < STATISTIC_MOST_SEEDS);
    sample->seeds[sample->count] = seed;
    sample->values[sample->count++] = value;
}

static int find_seed(const Sample *sample, int64_t seed) {
    for (int i = 0; i < sample->count; i++)
        if (sample->seeds[i] == seed)
            return i;
    return -1;
}

Statistic statistic_of_pairs(const Sample *a, const Sample *b) {
    const double rounding = 4 * DBL_EPSILON; // of the larger of two numbers, in their difference
    double differences[STATISTIC_MOST_SEEDS], largest = 0;
    int count = 0;
    for (int i = 0; i < b->count; i++) {
        int base = find_seed(a, b->seeds[i]);
        if (base < 0)
            continue;
        double difference = b->values[i] - a->values[base];
        differences[count++] = difference;
        if (isfinite(difference))
            largest = fmax(largest, fmax(fabs(a->values[base]), fabs(b->values[i])));
    }
    Statistic result = statistic_of(differences, count);
    if (result.deviation <= rounding * largest)
        result.deviation = result.interval = 0;
    return result;
}

Contrast statistic_contrast_samples(const Sample *a, const Sample *b) {
    Statistic of_a = statistic_of(a->values, a->count), of_b = statistic_of(b->values, b->count);
    Statistic pairs = statistic_of_pairs(a, b);
    bool have_same_seeds =
        a->count == b->count && pairs.count + pairs.not_finite == b->count && pairs.count > 1;
    bool differ_alike = pairs.deviation == 0 && pairs.mean != 0;
    if (!have_same_seeds || differ_alike || !isfinite(pairs.interval))
        return statistic_contrast(&of_a, &of_b);
    bool is_same = fabs(pairs.mean) <= pairs.interval;
    return (Contrast){.delta = pairs.mean,
                      .interval = pairs.interval,
                      .likeness = is_same ? LIKENESS_SAME : LIKENESS_DIFFERENT,
                      .pairs = pairs.count};
}

// ---- in words -----------------------------------------------------------------------------------

// As many decimals as the interval is good for, with two of its own digits.
static int decimals_for(const Statistic *statistic) {
    double interval = statistic->interval;
    double digit = interval > 0 ? interval / 10 : fabs(statistic->mean) / 1000;
    int decimals = digit > 0 ? (int)ceil(-log10(digit)) : 3;
    return decimals < 0 ? 0 : decimals > 9 ? 9 : decimals;
}

const char *statistic_text(char text[STATISTIC_TEXT_SIZE], const Statistic *statistic, bool ascii) {
    const char *sign = ascii ? "+-" : "±";
    double size = fabs(statistic->mean), mean = statistic->mean, interval = statistic->interval;
    bool has_scatter = statistic->count > 1 && interval > 0;
    double larger = has_scatter ? fmax(size, interval) : size;
    bool is_plain = larger == 0 || (larger >= 1e-4 && larger < 1e9);
    int decimals = decimals_for(statistic);
    if (is_plain && size < 0.5 * pow(10, -decimals))
        mean = 0; // and not -0.00
    if (statistic->count == 0)
        snprintf(text, STATISTIC_TEXT_SIZE, statistic->not_finite > 0 ? "not finite" : "unknown");
    else if (has_scatter && is_plain)
        snprintf(text, STATISTIC_TEXT_SIZE, "%.*f %s %.*f", decimals, mean, sign, decimals,
                 interval);
    else if (has_scatter)
        snprintf(text, STATISTIC_TEXT_SIZE, "%.4g %s %.2g", mean, sign, interval);
    else if (is_plain)
        snprintf(text, STATISTIC_TEXT_SIZE, "%.*f", decimals, mean);
    else
        snprintf(text, STATISTIC_TEXT_SIZE, "%.4g", mean);
    return text;
}
