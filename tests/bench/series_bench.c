// What series cost: points a second written, rows and bytes a point, and the slowest of many
// windows read, at 10^5 and 10^6 steps, with every point a row and with points too fast for that.
#include <inttypes.h>

#include "base/clock.h"
#include "store/series_private.h"
#include "tests/unit/history_fixture.h"

enum { SERIES = 5, WINDOWS = 200, WINDOW_POINTS = 1000 };

typedef struct Speed {
    int64_t in_flush; // steps
    double seconds;   // a flush
    int64_t most_steps;
    const char *what;
} Speed;

static double file_bytes(History *history) {
    return (double)history_number(history, "SELECT page_count FROM pragma_page_count") *
           (double)history_number(history, "SELECT page_size FROM pragma_page_size");
}

static bool write_series(History *history, int64_t steps, const Speed *speed, Error *error) {
    SeriesWriter *writer = series_writer_new(history->store, history->run, 0, "start", error);
    if (!writer)
        return false;
    static const char *const names[SERIES] = {"loss", "scale", "seconds", "accuracy", "rate"};
    bool done = true;
    for (int64_t step = 1; done && step <= steps; step++) {
        for (int i = 0; done && i < SERIES; i++)
            done = series_add(writer, names[i], step, sin((double)step * 1e-3 * (i + 1)), error);
        if (done && (step % speed->in_flush == 0 || step == steps))
            done = series_flush(writer, speed->seconds, error);
    }
    series_writer_free(writer);
    return done;
}

static bool read_windows(History *history, int64_t steps, double *slowest, double *mean,
                         Error *error) {
    uint64_t random = 1;
    *slowest = *mean = 0;
    for (int i = 0; i < WINDOWS; i++) {
        // Of every length, the whole series among them.
        int64_t length = i == 0 ? steps : 1 + history_below(&random, steps >> (i % 12));
        int64_t from = 1 + history_below(&random, steps - length + 1);
        SeriesPoint *points;
        int count;
        double began = clock_seconds();
        if (!store_read_series(history->store, history->run, "loss", from, from + length - 1,
                               WINDOW_POINTS, &points, &count, error))
            return false;
        double seconds = clock_seconds() - began;
        free(points);
        *slowest = fmax(*slowest, seconds);
        *mean += seconds / WINDOWS;
    }
    return true;
}

static bool measure(int64_t steps, const Speed *speed) {
    History history;
    Error error = {0};
    double slowest, mean;
    if (!history_open(&history))
        return false;
    if (!history_execute(&history, "PRAGMA synchronous = FULL"))
        return false;
    double empty = file_bytes(&history), began = clock_seconds();
    bool done = write_series(&history, steps, speed, &error);
    double seconds = clock_seconds() - began, points = (double)(SERIES * steps);
    done = done && read_windows(&history, steps, &slowest, &mean, &error);
    if (done) {
        double rows = (double)history_number(&history, "SELECT count(*) FROM points") +
                      (double)history_number(&history, "SELECT count(*) FROM buckets");
        printf("%8" PRId64 " steps, %-18s %9.0f points/s  %.3f rows and %5.1f bytes a point  "
               "window of %d: mean %.2f ms, slowest %.2f ms\n",
               steps, speed->what, points / seconds, rows / points,
               (file_bytes(&history) - empty) / points, WINDOW_POINTS, mean * 1e3, slowest * 1e3);
    } else {
        printf("series_bench: %s\n", error.text);
    }
    history_close(&history);
    return done;
}

int main(void) {
    // 64 points of a series in the 0.2 s of a flush are the most that are rows.
    static const Speed speeds[] = {
        {64, 0.2, 100000, "live, all rows"},
        {5000, 20, 1000000, "in bulk, all rows"},
        {10000, 0.2, 1000000, "live, too fast"},
    };
    for (size_t i = 0; i < sizeof speeds / sizeof *speeds; i++)
        for (int64_t steps = 100000; steps <= speeds[i].most_steps; steps *= 10)
            if (!measure(steps, &speeds[i]))
                return 1;
    return test_failures || test_why[0] ? 1 : 0;
}
