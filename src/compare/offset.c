// Whether one of two trainings of a seed stays above the other. compare.h has the rule.
//
// They share their first weights and the order of their data, so that what their losses rise and
// fall by is in both: their difference, step by step, scatters less than either by far. But it is
// no independent draw a step: two trainings of other bits wander about each other, and stay on one
// side for a while. So neighbours are first made one mean, a few means are held against their own
// scatter, with Student's quantile for so few, and that has to be so for a good part of all steps.
#include <math.h>
#include <stdlib.h>

#include "compare/private.h"

enum {
    WINDOW_BATCHES = 8,  // batches of differences a window
    MOST_WINDOWS = 16,   // so that a batch is no less than one of 128 parts
    LEAST_IN_BATCH = 2,  // points
    LEAST_IN_A_ROW = 3,  // windows
    PART_OF_WINDOWS = 4, // or so much of them
};

static const double least_share = 0.01;
static const double certainty = 0.99865; // what lies below 3 standard errors of many values

typedef struct Pair { // the losses of both in the same steps
    int64_t step;
    double a, b;
} Pair;

typedef struct Span { // steps of one curve: a point, or those that the other has one bucket for
    int64_t end;
    double sum, count;
    bool is_broken; // something in it is not finite
} Span;

static void span_add(Span *span, const SeriesPoint *point) {
    span->end = point->step + point->width;
    span->is_broken |= point->nans + point->infs + point->minus_infs > 0 || point->count == 0;
    if (point->count > 0) {
        span->sum += point->mean * (double)point->count;
        span->count += (double)point->count;
    }
}

// How many there are. `pairs` has room for all points of one of them.
static int pair_curves(const CompareCurve *a, const CompareCurve *b, Pair *pairs) {
    int count = 0;
    for (int i = 0, k = 0; i < a->count && k < b->count;) {
        const int64_t begin = a->points[i].step;
        if (begin != b->points[k].step) {
            if (begin < b->points[k].step)
                i++;
            else
                k++;
            continue;
        }
        Span left = {.end = begin}, right = {.end = begin};
        span_add(&left, &a->points[i++]);
        span_add(&right, &b->points[k++]);
        while (left.end != right.end && (left.end < right.end ? i < a->count : k < b->count)) {
            if (left.end < right.end)
                span_add(&left, &a->points[i++]);
            else
                span_add(&right, &b->points[k++]);
        }
        if (left.end == right.end && !left.is_broken && !right.is_broken)
            pairs[count++] = (Pair){begin, left.sum / left.count, right.sum / right.count};
    }
    return count;
}

typedef struct Batch { // means over some pairs
    int64_t step;      // the first
    double difference; // b - a
    double size;       // of the larger loss
} Batch;

static Batch batch_of(const Pair *pairs, int from, int to) {
    Batch batch = {.step = pairs[from].step};
    double a = 0, b = 0;
    for (int i = from; i < to; i++) {
        a += pairs[i].a / (to - from);
        b += pairs[i].b / (to - from);
        batch.difference += (pairs[i].b - pairs[i].a) / (to - from);
    }
    batch.size = fmax(fabs(a), fabs(b));
    return batch;
}

// 1: b is above by more than what is nothing to hold against each other, -1: below, 0: neither.
static int side_of(double difference, double size) {
    return !(fabs(difference) > least_share * size) ? 0 : difference > 0 ? 1 : -1;
}

static void look_at_window(const Batch *batches, double critical, int *leans, int *stays) {
    double differences[WINDOW_BATCHES], size = 0;
    for (int i = 0; i < WINDOW_BATCHES; i++) {
        differences[i] = batches[i].difference;
        size += batches[i].size / WINDOW_BATCHES;
    }
    const Statistic all = statistic_of(differences, WINDOW_BATCHES);
    const double error = all.deviation / sqrt(WINDOW_BATCHES);
    *leans = side_of(all.mean, size);
    *stays = fabs(all.mean) > critical * error ? *leans : 0;
}

static void find_in_batches(const Batch *batches, int windows, CompareOffset *offset) {
    const double critical = student_quantile(certainty, WINDOW_BATCHES - 1);
    const int part = windows / PART_OF_WINDOWS;
    const int needed = part > LEAST_IN_A_ROW ? part : LEAST_IN_A_ROW;
    int side = 0, in_a_row = 0, leans = 0, found = 0;
    for (int w = 0; w < windows; w++) {
        int stays;
        look_at_window(&batches[w * WINDOW_BATCHES], critical, &leans, &stays);
        in_a_row = stays == 0 ? 0 : stays == side ? in_a_row + 1 : 1;
        side = stays;
        if (in_a_row < needed)
            continue;
        found = side; // the last of several rows, which may lie on either side
        if (offset->since >= 0)
            continue;
        // Windows are coarse: back from there to the first batch of those that are on that side.
        int at = (w - needed + 2) * WINDOW_BATCHES - 1;
        while (at > 0 && side_of(batches[at - 1].difference, batches[at - 1].size) == side)
            at--;
        offset->since = batches[at].step;
    }
    offset->is_at_end = found != 0 && leans == found;
}

bool compare_find_offset(const CompareCurve *a, const CompareCurve *b, CompareOffset *offset) {
    *offset = (CompareOffset){.since = -1};
    const int most = a->count < b->count ? a->count : b->count;
    Pair *pairs = calloc((size_t)most + 1, sizeof *pairs);
    if (!pairs)
        return false;
    const int count = pair_curves(a, b, pairs);
    const int fit = count / (WINDOW_BATCHES * LEAST_IN_BATCH);
    const int windows = fit < MOST_WINDOWS ? fit : MOST_WINDOWS;
    Batch batches[MOST_WINDOWS * WINDOW_BATCHES];
    const int batch_count = windows * WINDOW_BATCHES;
    for (int i = 0; i < batch_count; i++)
        batches[i] = batch_of(pairs, (int)((int64_t)count * i / batch_count),
                              (int)((int64_t)count * (i + 1) / batch_count));
    free(pairs);
    find_in_batches(batches, windows, offset);
    return true;
}
