// A series on disk beside its model: writing to both, and holding every window against the model.
#pragma once

#include "store/series_private.h"
#include "tests/unit/history_fixture.h"
#include "tests/unit/series_model.h"

// Whatever the zoom, each bucket is what the model has there, and no point of the window is missed.
static inline void check_window(History *history, const Model *model, int64_t from, int64_t to,
                                int most) {
    Error error = {0};
    SeriesPoint *points;
    int count;
    bool done = store_read_series(history->store, history->run, "loss", from, to, most, &points,
                                  &count, &error);
    CHECK_MESSAGE(done, "%s", error.text);
    CHECK_MESSAGE(most == 0 || count <= most, "%d points where %d fit", count, most);
    int64_t covered = from;
    for (int i = 0; i < count; i++) {
        const SeriesPoint *point = &points[i];
        SeriesPoint expected = model_bucket(model, point->step, point->width);
        CHECK_MESSAGE(same_bucket(point, &expected),
                      "window %lld..%lld at most %d: the bucket of %lld steps at %lld has %lld "
                      "points, expected %lld",
                      (long long)from, (long long)to, most, (long long)point->width,
                      (long long)point->step, (long long)point->count, (long long)expected.count);
        for (; covered < point->step && covered <= to && covered < model->steps; covered++)
            CHECK_MESSAGE(!model->has[covered], "step %lld is missed", (long long)covered);
        CHECK(covered <= point->step || i == 0);
        CHECK(point->step <= to && point->step + point->width > from);
        covered = point->step + point->width;
    }
    for (; covered <= to && covered < model->steps; covered++)
        CHECK_MESSAGE(!model->has[covered], "step %lld is missed at the end", (long long)covered);
    free(points);
}

static inline void check_windows(History *history, const Model *model, int64_t last,
                                 uint64_t *random) {
    check_window(history, model, 0, last, 0);
    for (int most = 1; most < 3000; most *= 3)
        check_window(history, model, 0, last, most);
    for (int i = 0; i < 40 && !test_why[0]; i++) {
        int64_t from = history_below(random, last + 1);
        int64_t to = from + history_below(random, last + 2 - from);
        check_window(history, model, from, to, (int)history_below(random, 300));
    }
}

static inline SeriesWriter *writer_of(History *history, int64_t from, const char *why) {
    Error error = {0};
    SeriesWriter *writer = series_writer_new(history->store, history->run, from, why, &error);
    CHECK_MESSAGE(writer != NULL, "%s", error.text);
    return writer;
}

static inline void add(SeriesWriter *writer, Model *model, int64_t step, double value) {
    Error error = {0};
    CHECK_MESSAGE(series_add(writer, "loss", step, value, &error), "%s", error.text);
    model->values[step] = value;
    model->has[step] = true;
}

static inline void flush(SeriesWriter *writer, double seconds) {
    Error error = {0};
    CHECK_MESSAGE(series_flush(writer, seconds, &error), "%s", error.text);
}

static inline double some_value(uint64_t *random) {
    int kind = (int)history_below(random, 40);
    if (kind == 0)
        return (double)NAN;
    if (kind == 1)
        return (double)INFINITY;
    if (kind == 2)
        return -(double)INFINITY;
    return ldexp((double)history_below(random, 1 << 20) + 0.5, (int)history_below(random, 60) - 30);
}
