// Where two trainings part: to the bit, and by more than noise. compare.h has the rules.
#include <math.h>
#include <string.h>

#include "compare/private.h"

enum { MOST_WINDOWS = 64, LEAST_POINTS = 4 };

static const double least_share = 0.01, standard_errors = 3;
static const double far = 10; // times as large: no noise, whatever the scatter

// ---- to the bit ---------------------------------------------------------------------------------

static bool same_bits(double a, double b) {
    return a == b || (isnan(a) && isnan(b));
}

static bool same_point(const SeriesPoint *a, const SeriesPoint *b) {
    return a->count == b->count && a->nans == b->nans && a->infs == b->infs &&
           a->minus_infs == b->minus_infs && same_bits(a->first, b->first) &&
           same_bits(a->last, b->last) && same_bits(a->min, b->min) &&
           same_bits(a->mean, b->mean) && same_bits(a->max, b->max);
}

void compare_first_difference(const SeriesPoint *a, int a_count, const SeriesPoint *b, int b_count,
                              CompareDivergence *divergence) {
    for (int i = 0, k = 0; i < a_count && k < b_count;) {
        if (a[i].step < b[k].step) {
            i++;
        } else if (a[i].step > b[k].step) {
            k++;
        } else {
            bool is_comparable = a[i].width == b[k].width;
            divergence->is_known |= is_comparable;
            if (is_comparable && !same_point(&a[i], &b[k])) {
                divergence->different = a[i].step;
                divergence->different_width = a[i].width;
                return;
            }
            i++;
            k++;
        }
    }
}

// ---- by more than noise -------------------------------------------------------------------------

typedef struct Window { // the loss of one side in a window of steps
    Statistic points;   // of the only member's points, or of the members' means
    bool is_broken;     // mostly not finite
} Window;

static Statistic points_between(const CompareCurve *curve, int64_t from, int64_t to,
                                bool *is_broken) {
    // Welford's method: the window's points are not kept.
    Statistic result = {.mean = NAN, .deviation = NAN, .interval = NAN};
    double mean = 0, squares = 0, broken = 0, finite = 0;
    for (int i = 0; i < curve->count; i++) {
        const SeriesPoint *point = &curve->points[i];
        if (point->step < from || point->step >= to)
            continue;
        finite += (double)point->count;
        broken += (double)(point->nans + point->infs + point->minus_infs);
        if (point->count == 0)
            continue;
        result.count++;
        double step = point->mean - mean;
        mean += step / result.count;
        squares += step * (point->mean - mean);
    }
    *is_broken = broken > finite;
    if (result.count > 0)
        result.mean = mean;
    if (result.count > 1)
        result.deviation = sqrt(squares / (result.count - 1));
    return result;
}

static Window window_of(const Comparison *comparison, const CompareSide *side, int64_t from,
                        int64_t to) {
    double means[COMPARE_MOST_RUNS];
    Window window = {.is_broken = false};
    int broken = 0;
    for (int i = 0; i < side->member_count; i++) {
        bool is_broken;
        window.points = points_between(&comparison->losses[side->members[i]], from, to, &is_broken);
        means[i] = window.points.mean;
        broken += is_broken;
    }
    if (side->member_count > 1)
        window.points = statistic_of(means, side->member_count);
    window.is_broken = 2 * broken > side->member_count;
    return window;
}

// Of a loss that is mostly not finite: infinite.
static double size_of(const SeriesPoint *point) {
    bool is_broken = point->nans + point->infs + point->minus_infs > point->count;
    return is_broken ? INFINITY : fabs(point->mean);
}

typedef struct Beyond { // how one side's points between two steps stand to the other's largest one
    int points, beyond;
    int64_t since; // the first step from which on all are beyond; the end: there is none
} Beyond;

static Beyond stand_beyond(const Comparison *comparison, const CompareSide *side,
                           const CompareSide *other, int64_t from, int64_t to) {
    Beyond result = {.since = from};
    double largest = 0;
    for (int i = 0; i < other->member_count; i++) {
        const CompareCurve *curve = &comparison->losses[other->members[i]];
        for (int k = 0; k < curve->count; k++)
            if (curve->points[k].step >= from && curve->points[k].step < to)
                largest = fmax(largest, size_of(&curve->points[k]));
    }
    for (int i = 0; i < side->member_count; i++) {
        const CompareCurve *curve = &comparison->losses[side->members[i]];
        for (int k = 0; k < curve->count; k++) {
            const SeriesPoint *point = &curve->points[k];
            if (point->step < from || point->step >= to)
                continue;
            const bool is_beyond = size_of(point) > far * largest;
            result.points++;
            result.beyond += is_beyond;
            if (!is_beyond && point->step + point->width > result.since)
                result.since = point->step + point->width;
        }
    }
    return result;
}

// What a loss that grows by the step scatters by is its growth, in each window as large as the loss
// itself: a test by the scatter of both would never tell it from one that trains well.
static bool are_far_apart(const Comparison *comparison, const CompareSide *const sides[2],
                          int64_t from, int64_t to) {
    for (int s = 0; s < 2; s++) {
        const Beyond stand = stand_beyond(comparison, sides[s], sides[1 - s], from, to);
        if (2 * stand.beyond > stand.points)
            return true;
    }
    return false;
}

// The step from which they are far apart, in a stretch that ends so; -1: it does not.
static int64_t far_since(const Comparison *comparison, const CompareSide *const sides[2],
                         int64_t from, int64_t to) {
    for (int s = 0; s < 2; s++) {
        const Beyond stand = stand_beyond(comparison, sides[s], sides[1 - s], from, to);
        if (stand.beyond > 0 && stand.since < to)
            return stand.since;
    }
    return -1;
}

static bool windows_differ(const Window *a, const Window *b, bool over_seeds) {
    if (a->is_broken || b->is_broken)
        return a->is_broken != b->is_broken;
    double delta = fabs(a->points.mean - b->points.mean);
    if (!(delta > least_share * fmax(fabs(a->points.mean), fabs(b->points.mean))))
        return false; // nothing to hold against each other, too
    if (over_seeds)
        return statistic_contrast(&a->points, &b->points).likeness == LIKENESS_DIFFERENT;
    double va = a->points.deviation * a->points.deviation / a->points.count;
    double vb = b->points.deviation * b->points.deviation / b->points.count;
    return delta > standard_errors * sqrt(va + vb);
}

// The steps that all members of both have, and the fewest points that one has among them.
static int shared_steps(const Comparison *comparison, const CompareSide *const sides[2],
                        int64_t *from, int64_t *to) {
    *from = INT64_MIN, *to = INT64_MAX;
    for (int s = 0; s < 2; s++)
        for (int i = 0; i < sides[s]->member_count; i++) {
            const CompareCurve *curve = &comparison->losses[sides[s]->members[i]];
            if (curve->count == 0)
                return 0;
            const SeriesPoint *first = &curve->points[0], *last = &curve->points[curve->count - 1];
            if (first->step > *from)
                *from = first->step;
            if (last->step + last->width < *to)
                *to = last->step + last->width;
        }
    int fewest = INT32_MAX;
    for (int s = 0; s < 2; s++)
        for (int i = 0; i < sides[s]->member_count; i++) {
            const CompareCurve *curve = &comparison->losses[sides[s]->members[i]];
            int count = 0;
            for (int k = 0; k < curve->count; k++)
                count += curve->points[k].step >= *from && curve->points[k].step < *to;
            fewest = count < fewest ? count : fewest;
        }
    return fewest;
}

typedef struct Windows { // that the shared steps are cut into
    int64_t from, to;
    int count;
} Windows;

static int64_t begin_of(const Windows *windows, int at) {
    return windows->from + (int64_t)((double)(windows->to - windows->from) * at / windows->count);
}

static void find_parting(const Comparison *comparison, CompareDivergence *divergence,
                         const CompareSide *const sides[2]) {
    Windows windows;
    int fewest = shared_steps(comparison, sides, &windows.from, &windows.to);
    windows.count = fewest / LEAST_POINTS < MOST_WINDOWS ? fewest / LEAST_POINTS : MOST_WINDOWS;
    if (windows.count == 0) // too short for noise; one that is not finite from the begin is not
        windows.count = fewest > 0;
    bool over_seeds = sides[0]->member_count > 1 && sides[1]->member_count > 1;
    // A single seed beside several: its own scatter is all that is known of it.
    CompareSide first[2] = {*sides[0], *sides[1]};
    const CompareSide *const judged[2] = {&first[0], &first[1]};
    for (int s = 0; s < 2 && !over_seeds; s++)
        first[s].member_count = 1;
    bool before = false;
    for (int w = 0; w < windows.count; w++) {
        const int64_t begin = begin_of(&windows, w), end = begin_of(&windows, w + 1);
        Window a = window_of(comparison, &first[0], begin, end);
        Window b = window_of(comparison, &first[1], begin, end);
        const bool is_certain =
            a.is_broken != b.is_broken || are_far_apart(comparison, judged, begin, end);
        const bool differ =
            is_certain || (fewest >= LEAST_POINTS && windows_differ(&a, &b, over_seeds));
        const bool is_last = w == windows.count - 1;
        if (divergence->parted < 0 && differ && (before || (is_last && is_certain))) {
            const int at = before ? w - 1 : w;
            const int64_t since =
                far_since(comparison, judged, begin_of(&windows, at > 0 ? at - 1 : 0),
                          begin_of(&windows, at + 1));
            divergence->parted = since >= 0 ? since : begin_of(&windows, at);
            divergence->parted_before = end;
        }
        before = differ;
    }
    divergence->is_parted_at_end = divergence->parted >= 0 && before;
}

// The member of the side that has the seed of the baseline's first, else its first.
static int partner(const Comparison *comparison, const CompareSide *side,
                   const CompareSide *baseline) {
    int64_t seed = comparison->runs[baseline->members[0]].seed;
    for (int i = 0; i < side->member_count; i++)
        if (comparison->runs[side->members[i]].seed == seed)
            return side->members[i];
    return side->members[0];
}

bool compare_is_one_experiment(const Comparison *comparison, const CompareSide *side,
                               const CompareSide *baseline) {
    return strcmp(comparison->runs[side->members[0]].experiment,
                  comparison->runs[baseline->members[0]].experiment) == 0;
}

// A loss that stays above the other's is no noise, though each moves by far more. Over several
// seeds the seeds tell what is.
static bool add_offset(const Comparison *comparison, CompareSide *side, const CompareSide *baseline,
                       Error *error) {
    CompareDivergence *divergence = &side->divergence;
    const int first = baseline->members[0];
    const bool over_seeds = side->member_count > 1 && baseline->member_count > 1;
    CompareOffset offset;
    if (over_seeds || comparison->runs[first].seed != comparison->runs[side->partner].seed)
        return true;
    if (!compare_find_offset(&comparison->losses[first], &comparison->losses[side->partner],
                             &offset))
        return error_fail(error, ERROR_MEMORY, "no memory to compare the runs");
    if (offset.since < 0)
        return true;
    if (divergence->parted < 0 || offset.since < divergence->parted)
        divergence->parted = offset.since;
    divergence->is_parted_at_end |= offset.is_at_end;
    return true;
}

bool compare_find_divergence(const Comparison *comparison, CompareSide *side,
                             const CompareSide *baseline, Error *error) {
    const CompareCurve *a = &comparison->losses[baseline->members[0]];
    side->partner = partner(comparison, side, baseline);
    const CompareCurve *b = &comparison->losses[side->partner];
    side->divergence = (CompareDivergence){.different = -1, .parted = -1};
    if (side->members[0] == baseline->members[0] && side->member_count == baseline->member_count)
        return true;
    if (!compare_is_one_experiment(comparison, side, baseline))
        return true;
    compare_first_difference(a->points, a->count, b->points, b->count, &side->divergence);
    const CompareSide *const sides[2] = {baseline, side};
    find_parting(comparison, &side->divergence, sides);
    if (!add_offset(comparison, side, baseline, error))
        return false;
    compare_bound_parting(side, baseline);
    return true;
}

void compare_bound_parting(CompareSide *side, const CompareSide *baseline) {
    CompareDivergence *divergence = &side->divergence;
    const bool is_pair = side->member_count == 1 && baseline->member_count == 1;
    if (divergence->parted >= 0 && divergence->parted < divergence->different &&
        (is_pair || divergence->different < divergence->parted_before))
        divergence->parted = divergence->different;
}
