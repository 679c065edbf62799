#include "compare/pace.h"

#include <math.h>

#include "compare/statistics.h"

enum { MOST_BLOCKS = 64, LEAST_BLOCKS = 8, LEAST_STEPS = 16 };

static const Pace unknown = {.seconds = (double)NAN, .interval = (double)NAN};

// The first step makes primitives and fills caches: it is no measure of the others.
static double steps_of(const SeriesPoint *point, bool is_first) {
    double steps = (double)point->width - (is_first ? 1 : 0);
    return point->count > 0 && isfinite(point->mean) ? steps : 0;
}

// Puts the means of so many blocks of as many steps each into `means`; points that lie in two
// blocks count for both, by their share.
static void fill_blocks(const SeriesPoint *points, int count, double steps, double *means,
                        int blocks) {
    double sums[MOST_BLOCKS] = {0}, counts[MOST_BLOCKS] = {0}, at = 0;
    for (int i = 0; i < count; i++) {
        double left = steps_of(&points[i], i == 0);
        while (left > 0) {
            int block = (int)(at * blocks / steps);
            block = block < blocks ? block : blocks - 1;
            double room = (block + 1) * steps / blocks - at;
            double taken = block == blocks - 1 || left < room ? left : fmax(room, 1e-6 * steps);
            sums[block] += taken * points[i].mean;
            counts[block] += taken;
            at += taken;
            left -= taken;
        }
    }
    for (int b = 0; b < blocks; b++)
        means[b] = counts[b] > 0 ? sums[b] / counts[b] : (double)NAN;
}

// How much a block tells of the next one, from -1 to 1.
static double correlation(const double *means, const Statistic *all) {
    double sum = 0, squares = (all->count - 1) * all->deviation * all->deviation;
    for (int b = 1; b < all->count; b++)
        sum += (means[b] - all->mean) * (means[b - 1] - all->mean);
    return squares > 0 ? sum / squares : 0;
}

Pace pace_of(const SeriesPoint *points, int count) {
    const double little = 0.25, most = 0.8;
    double steps = 0, means[MOST_BLOCKS];
    for (int i = 0; i < count; i++)
        steps += steps_of(&points[i], i == 0);
    if (steps < LEAST_STEPS)
        return unknown;
    int blocks = MOST_BLOCKS;
    while (blocks > LEAST_BLOCKS && (blocks * 2 > steps || blocks > count))
        blocks /= 2;
    Statistic all;
    double related;
    for (;; blocks /= 2) {
        fill_blocks(points, count, steps, means, blocks);
        all = statistic_of(means, blocks);
        related = correlation(means, &all);
        if (related <= little || blocks == LEAST_BLOCKS)
            break;
    }
    // What relation is left makes the mean less sure, as that of a series which forgets so slowly.
    double kept = fmin(fmax(related, 0), most);
    return (Pace){all.mean, all.interval * sqrt((1 + kept) / (1 - kept)), blocks};
}

Pace pace_of_all(const Pace *paces, int count) {
    double seconds[64], squares = 0;
    int known = 0;
    for (int i = 0; i < count && known < (int)(sizeof seconds / sizeof *seconds); i++)
        if (!isnan(paces[i].seconds)) {
            seconds[known++] = paces[i].seconds;
            squares += paces[i].interval * paces[i].interval;
        }
    if (known == 0)
        return unknown;
    Statistic all = statistic_of(seconds, known);
    double within = sqrt(squares) / known;
    return (Pace){all.mean, known > 1 ? fmax(within, all.interval) : within, known};
}

PaceRatio pace_ratio(const Pace *a, const Pace *b) {
    PaceRatio ratio = {(double)NAN, (double)NAN};
    if (isnan(a->interval) || isnan(b->interval))
        return ratio;
    ratio.low = fmax(a->seconds - a->interval, 0) / (b->seconds + b->interval);
    double least = b->seconds - b->interval;
    ratio.high = least > 0 ? (a->seconds + a->interval) / least : (double)INFINITY;
    return ratio;
}
