// Points of series as samples of a ladder: how they add up, and their rows.
#include <math.h>
#include <string.h>

#include "store/series_private.h"

SeriesPoint series_point_of(int64_t step, double value) {
    bool is_finite = isfinite(value);
    double kept = is_finite ? value : (double)NAN;
    return (SeriesPoint){
        .step = step,
        .width = 1,
        .count = is_finite,
        .nans = isnan(value) != 0,
        .infs = isinf(value) && value > 0,
        .minus_infs = isinf(value) && value < 0,
        .first = kept,
        .last = kept,
        .min = kept,
        .mean = kept,
        .max = kept,
    };
}

double series_point_value(const SeriesPoint *point) {
    if (point->count > 0)
        return point->last;
    if (point->infs > 0)
        return (double)INFINITY;
    return point->minus_infs > 0 ? -(double)INFINITY : (double)NAN;
}

void series_point_merge(SeriesPoint *a, const SeriesPoint *b) {
    a->nans += b->nans;
    a->infs += b->infs;
    a->minus_infs += b->minus_infs;
    if (b->count == 0)
        return;
    if (a->count == 0) {
        a->first = b->first;
        a->min = b->min;
        a->mean = b->mean;
        a->max = b->max;
    } else {
        // No sum, which could overflow where the mean does not.
        double part = (double)b->count / (double)(a->count + b->count);
        a->min = fmin(a->min, b->min);
        a->max = fmax(a->max, b->max);
        a->mean = fmin(fmax(a->mean * (1 - part) + b->mean * part, a->min), a->max);
    }
    a->last = b->last;
    a->count += b->count;
}

static void open_bucket(void *bucket, int level) {
    SeriesPoint *point = bucket;
    point->step = ladder_begin(point->step, level);
    point->width = ladder_width(level);
}

static void merge(void *a, const void *b) {
    series_point_merge(a, b);
}

static int64_t weigh(const void *element) {
    const SeriesPoint *point = element;
    return point->count + point->nans + point->infs + point->minus_infs;
}

static int64_t width_of(const void *element) {
    return ((const SeriesPoint *)element)->width;
}

// ---- rows ---------------------------------------------------------------------------------------

// A statement for many points costs half as much a point as one for each.
#define POINTS_HEAD \
    "INSERT OR REPLACE INTO points (series, segment, step, value, kind) VALUES (?1, ?2, ?, ?, ?)"
#define POINTS_4 ", (?1, ?2, ?, ?, ?), (?1, ?2, ?, ?, ?), (?1, ?2, ?, ?, ?), (?1, ?2, ?, ?, ?)"
#define POINTS_3 ", (?1, ?2, ?, ?, ?), (?1, ?2, ?, ?, ?), (?1, ?2, ?, ?, ?)"

enum { POINTS_AT_ONCE = 32 };

static bool write_points(const LadderSource *source, int segment, const SeriesPoint *points,
                         int count, Error *error) {
    for (int done = 0; done < count;) {
        int some = count - done >= POINTS_AT_ONCE ? POINTS_AT_ONCE : 1;
        Query query;
        if (!query_begin(&query, source->store,
                         some == 1 ? POINTS_HEAD
                                   : POINTS_HEAD POINTS_3 POINTS_4 POINTS_4 POINTS_4 POINTS_4
                                         POINTS_4 POINTS_4 POINTS_4,
                         error))
            return false;
        query_put_integer(&query, source->owner);
        query_put_integer(&query, segment);
        for (int end = done + some; done < end; done++) {
            double value = series_point_value(&points[done]);
            query_put_integer(&query, points[done].step);
            query_put_number(&query, value);
            query_put_kind(&query, value);
        }
        query_next(&query);
        if (!query_end(&query, "points cannot be written", error))
            return false;
    }
    return true;
}

static bool write_bucket(const LadderSource *source, int segment, const SeriesPoint *bucket,
                         Error *error) {
    Query query;
    if (!query_begin(&query, source->store,
                     "INSERT OR REPLACE INTO buckets (series, segment, step, width, count, nans, "
                     "infs, minus_infs, first, last, least, mean, largest) VALUES (?1, ?2, ?3, ?4, "
                     "?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)",
                     error))
        return false;
    const int64_t integers[] = {source->owner, segment,      bucket->step, bucket->width,
                                bucket->count, bucket->nans, bucket->infs, bucket->minus_infs};
    const double numbers[] = {bucket->first, bucket->last, bucket->min, bucket->mean, bucket->max};
    for (int i = 0; i < 8; i++)
        query_put_integer(&query, integers[i]);
    for (int i = 0; i < 5; i++)
        query_put_number(&query, numbers[i]);
    query_next(&query);
    return query_end(&query, "points cannot be written", error);
}

static bool write_rows(const LadderSource *source, int level, int segment, const void *elements,
                       int count, Error *error) {
    const SeriesPoint *points = elements;
    if (level == 0)
        return write_points(source, segment, points, count, error);
    for (int i = 0; i < count; i++)
        if (!write_bucket(source, segment, &points[i], error))
            return false;
    return true;
}

// True: the row is left out, and reading goes on.
static bool lose_row(Query *query, const LadderSource *source, int level, int64_t step, Rows *rows,
                     Error *error) {
    if (rescue_lose(source->store)) {
        rows->count--;
        return true;
    }
    query_drop(query);
    return error_fail(error, ERROR_HISTORY,
                      "the history is damaged: the row of series %s at step %lld, width %lld, "
                      "makes no sense",
                      source->name, (long long)step, (long long)ladder_width(level));
}

// Counts of more points than there are steps in a bucket are nobody's.
static bool makes_sense(const SeriesPoint *point, int level) {
    int64_t width = ladder_width(level);
    if (point->step != ladder_begin(point->step, level))
        return false;
    const int64_t counts[] = {point->count, point->nans, point->infs, point->minus_infs};
    int64_t left = width;
    for (int i = 0; i < 4; i++) {
        if (counts[i] < 0 || counts[i] > left)
            return false;
        left -= counts[i];
    }
    if (left == width)
        return false;
    const double values[] = {point->first, point->last, point->min, point->mean, point->max};
    for (int i = 0; i < 5; i++)
        if (point->count > 0 ? !isfinite(values[i]) : !isnan(values[i]))
            return false;
    return true;
}

static bool read_rows(const LadderSource *source, int level, int segment, int64_t first,
                      int64_t last, int most, Rows *rows, Error *error) {
    Query query;
    if (!query_begin(&query, source->store,
                     level == 0
                         ? "SELECT step, value, kind FROM points WHERE series = ?1 AND "
                           "segment = ?2 AND step BETWEEN ?3 AND ?4 ORDER BY step LIMIT ?5"
                         : "SELECT step, count, nans, infs, minus_infs, first, last, least, mean, "
                           "largest FROM buckets WHERE series = ?1 AND segment = ?2 AND step "
                           "BETWEEN ?3 AND ?4 AND width = ?6 ORDER BY step LIMIT ?5",
                     error))
        return false;
    query_put_integer(&query, source->owner);
    query_put_integer(&query, segment);
    query_put_integer(&query, first);
    query_put_integer(&query, last);
    query_put_integer(&query, most);
    if (level > 0)
        query_put_integer(&query, ladder_width(level));
    while (query_next(&query)) {
        SeriesPoint *point = rows_add(rows, level, error);
        if (!point) {
            query_drop(&query);
            return false;
        }
        int64_t step = query_integer(&query, 0);
        if (level == 0) {
            *point = series_point_of(step, query_value(&query, 1));
            if (query_is_null(&query, 1) == (strcmp(query_word(&query, 2), "finite") == 0) &&
                !lose_row(&query, source, level, step, rows, error))
                return false;
            continue;
        }
        *point = (SeriesPoint){
            .step = step,
            .width = ladder_width(level),
            .count = query_integer(&query, 1),
            .nans = query_integer(&query, 2),
            .infs = query_integer(&query, 3),
            .minus_infs = query_integer(&query, 4),
            .first = query_number(&query, 5),
            .last = query_number(&query, 6),
            .min = query_number(&query, 7),
            .mean = query_number(&query, 8),
            .max = query_number(&query, 9),
        };
        if (!makes_sense(point, level) && !lose_row(&query, source, level, step, rows, error))
            return false;
    }
    return query_end(&query, "points cannot be read", error);
}

const LadderKind series_kind = {
    .size = sizeof(SeriesPoint),
    .rows_a_second = 320,
    .least_rows = 8,
    .always = 4096,
    .most_samples = 8192,
    .most_buckets = 1024,
    .keeps_tail = true,
    .open = open_bucket,
    .merge = merge,
    .weight = weigh,
    .weighs_points = true,
    .width = width_of,
    .write = write_rows,
    .read = read_rows,
};
