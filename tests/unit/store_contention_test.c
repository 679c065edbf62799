// Two workers write into one history as runs do, while a reader polls it: nobody is turned away,
// nothing is lost. How long they wait is printed; the machine has its say in that.
#include "base/clock.h"
#include "store/events.h"
#include "store/series.h"
#include "tests/unit/store_fixture.h"

static const double seconds = 3;

typedef struct Waits {
    int count;
    double longest;
} Waits;

static void add_wait(Waits *waits, double began) {
    double wait = clock_seconds() - began;
    waits->count++;
    waits->longest = fmax(waits->longest, wait);
}

// A commit five times a second: points, an event, the run's row.
static void work(int number, int out) {
    Error why = {0};
    Waits waits = {0};
    char name[16];
    snprintf(name, sizeof name, "worker%d", number);
    Store *store = store_open(path_of("busy.db"), STORE_WRITE, &why);
    RunRecord record = some_run("cnn", "fp16");
    snprintf(record.name, sizeof record.name, "%s", name);
    bool done = store && store_add_run(store, &record, NULL, 0, &why);
    SeriesWriter *writer = done ? series_writer_new(store, record.id, 0, "start", &why) : NULL;
    double end = clock_seconds() + seconds;
    for (int64_t step = 1; writer && done && clock_seconds() < end;) {
        for (int i = 0; i < 50 && done; i++, step++)
            done = series_add(writer, "loss", step, 1.0 / (double)step, &why);
        Event event = {.step = step, .kind = EVENT_MESSAGE, .value = NAN, .text = "here"};
        record.step = step;
        double began = clock_seconds();
        done = done && store_begin(store, &why) && series_flush(writer, 0.2, &why) &&
               store_add_event(store, record.id, &event, &why) &&
               store_update_run(store, &record, &why) && store_commit(store, &why);
        add_wait(&waits, began);
        nanosleep(&(struct timespec){0, 200000000}, NULL);
    }
    if (!done)
        waits.count = 0;
    ssize_t written = write(out, &waits, sizeof waits);
    series_writer_free(writer);
    store_close(store);
    _exit(done && written == sizeof waits ? 0 : 1);
}

static Waits read_on(Store *store, double end) {
    Waits waits = {0};
    while (clock_seconds() < end) {
        RunRecord *runs = NULL;
        SeriesPoint *points = NULL;
        int count = 0, point_count = 0;
        double began = clock_seconds();
        CHECK_MESSAGE(store_list_runs(store, &(RunFilter){0}, &runs, &count, &error), "%s",
                      error.text);
        if (count > 0)
            CHECK_MESSAGE(store_read_series(store, runs[0].id, "loss", 0, INT64_MAX, 200, &points,
                                            &point_count, &error),
                          "%s", error.text);
        add_wait(&waits, began);
        store_free_runs(runs, count);
        free(points);
        nanosleep(&(struct timespec){0, 20000000}, NULL);
    }
    return waits;
}

static void nobody_waits_until_the_others_are_done(void) {
    int ends[2];
    Waits worker;
    store_close(fresh_store("busy.db"));
    if (pipe(ends) != 0)
        abort();
    for (int i = 0; i < 2; i++)
        if (fork() == 0)
            work(i, ends[1]);
    Store *store = store_open(path_of("busy.db"), STORE_READ, &error);
    CHECK_MESSAGE(store != NULL, "%s", error.text);
    Waits reader = read_on(store, clock_seconds() + seconds);
    int count = reader.count;
    double longest = reader.longest;
    for (int i = 0; i < 2; i++) {
        CHECK(read(ends[0], &worker, sizeof worker) == sizeof worker);
        CHECK_MESSAGE(worker.count > 1, "a worker made %d commits", worker.count);
        count += worker.count;
        longest = fmax(longest, worker.longest);
        wait(NULL);
    }
    CHECK_MESSAGE(longest < seconds, "the longest waited %.1f s, as long as the others worked",
                  longest);
    printf("# the longest of %d waits: %.1f ms\n", count, 1000 * longest);
    SeriesInfo *series = NULL;
    int series_count;
    for (int64_t run = 1; run <= 2; run++) { // nothing is lost
        CHECK(store_list_series(store, run, &series, &series_count, &error) && series_count == 1);
        CHECK_INT(series[0].last_step, series[0].count);
        free(series);
    }
    store_close(store);
    close(ends[0]);
    close(ends[1]);
}

int main(void) {
    make_folder();
    RUN_TEST(nobody_waits_until_the_others_are_done);
    remove_folder();
    return test_end();
}
