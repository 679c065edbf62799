// Fault 29: a reader, as the screen is one, that is stopped in the midst of a read. Training goes
// on, what it leaves is kept within bounds, and all of it is in the history once the reader goes
// on.
#include <signal.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "run/run_private.h"
#include "store/events.h"
#include "store/runs.h"
#include "store/series.h"
#include "store/store_private.h"
#include "tests/unit/recorder_fixture.h"

typedef struct Reader {
    pid_t process;
    int start, begun; // ends of pipes
} Reader;

// Reads as long as it is let, from within one transaction.
static int read_slowly(int start, int begun) {
    char word = 0;
    RunRecord *runs;
    int count;
    if (read(start, &word, 1) != 1)
        return 2;
    Store *store = store_open(path, STORE_READ, &error);
    if (!store || !store_begin_reading(store, &error) ||
        !store_list_runs(store, &(RunFilter){0}, &runs, &count, &error) || count == 0)
        return 3;
    store_free_runs(runs, count);
    if (write(begun, &word, 1) != 1)
        return 4;
    raise(SIGSTOP);
    bool done = store_list_runs(store, &(RunFilter){0}, &runs, &count, &error);
    store_end_reading(store);
    if (done)
        store_free_runs(runs, count);
    store_close(store);
    return done ? 0 : 5;
}

// Made while this process has one thread.
static Reader make_reader(void) {
    int start[2], begun[2];
    if (pipe(start) != 0 || pipe(begun) != 0)
        abort();
    Reader reader = {fork(), start[1], begun[0]};
    if (reader.process == 0)
        _exit(read_slowly(start[0], begun[1]));
    close(start[0]);
    close(begun[1]);
    return reader;
}

static void stop_reading(Reader *reader) {
    char word = 'r';
    int status = 0;
    CHECK(write(reader->start, &word, 1) == 1 && read(reader->begun, &word, 1) == 1);
    CHECK(waitpid(reader->process, &status, WUNTRACED) == reader->process && WIFSTOPPED(status));
}

static void end_reading(Reader *reader) {
    int status = 0;
    kill(reader->process, SIGCONT);
    CHECK(waitpid(reader->process, &status, 0) == reader->process);
    CHECK_MESSAGE(WIFEXITED(status) && WEXITSTATUS(status) == 0, "the reader ended at %d",
                  WEXITSTATUS(status));
    close(reader->start);
    close(reader->begun);
}

// Points of a series and events of the run that was recorded last.
static int64_t points_of(int64_t run) {
    SeriesPoint *points = NULL;
    int count = 0;
    int64_t values = 0;
    Store *store = store_open(path, STORE_READ, &error);
    CHECK_MESSAGE(
        store && store_read_series(store, run, "loss", 0, INT64_MAX, 0, &points, &count, &error),
        "%s", error.text);
    for (int i = 0; i < count; i++)
        values += points[i].count;
    free(points);
    store_close(store);
    return values;
}

static void check_ends_whole(void) {
    int64_t id = model.run->id, steps = model.run->step;
    run_finish(model.run, NULL);
    CHECK_MESSAGE(recorder_end(model.recorder, model.run, &error), "%s", error.text);
    end();
    CHECK_INT(points_of(id), steps);
}

static void fault_29_training_goes_on_beside_a_reader_that_is_stopped(void) {
    const double held = 3; // several commits of it; who waits for the reader waits as long
    Reader reader = make_reader();
    bool stop;
    begin("watched");
    CHECK(train(1, &stop));
    stop_reading(&reader);
    double longest = 0;
    for (double now = clock_seconds(), last = now + held; now < last;) {
        CHECK(train(1, &stop) && !stop);
        CHECK(model.run->waits_for == NULL);
        double next = clock_seconds();
        longest = fmax(longest, next - now);
        now = next;
        nanosleep(&(struct timespec){.tv_nsec = 200000}, NULL);
    }
    CHECK_MESSAGE(longest < held / 2, "a step waited %.0f ms", 1000 * longest);
    CHECK_MESSAGE(model.run->step > 20, "only %lld steps", (long long)model.run->step);
    int64_t id = model.run->id, steps = model.run->step;
    end_reading(&reader);
    // What was made meanwhile comes by itself.
    for (int i = 0; i < 600 && points_of(id) < steps && !test_why[0]; i++) {
        CHECK(train(1, &stop));
        a_moment();
    }
    CHECK(points_of(id) >= steps);
    check_ends_whole();
}

// ---- more than there is room for ----------------------------------------------------------------

static Reader stopped;
static int64_t memory_before, memory_waiting;

static int64_t memory_now(void) { // resident bytes
    long pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    if (!file || fscanf(file, "%*d %ld", &pages) != 1)
        abort();
    fclose(file);
    return pages * sysconf(_SC_PAGESIZE);
}

static void go_on_when_waited_for(void *context, const Run *run) {
    (void)context;
    if (!run->waits_for || memory_waiting)
        return;
    CHECK_TEXT(run->waits_for, "history locked");
    memory_waiting = memory_now();
    kill(stopped.process, SIGCONT);
}

static void fault_29_what_waits_for_a_reader_stays_within_bounds(void) {
    enum {
        MOST = RING_BYTES + MOST_BACKLOG + MOST_EVENTS * (int)sizeof(Event),
#ifdef __SANITIZE_ADDRESS__ // keeps what was freed for a while
        MARGIN = 256 << 20,
#else
        MARGIN = 24 << 20,
#endif
        EVENTS = MOST / sizeof(Event) + 1000,
    };
    stopped = make_reader();
    bool stop;
    begin("flooded");
    CHECK(train(1, &stop));
    bool is_wal = ask("SELECT journal_mode = 'wal' FROM pragma_journal_mode") == 1;
    stop_reading(&stopped);
    memory_before = memory_now();
    memory_waiting = 0;
    model.run->observer.step = go_on_when_waited_for;
    for (int i = 0; i < (int)EVENTS; i++)
        run_record_event(model.run, EVENT_MESSAGE, "", (double)NAN, "one of many");
    CHECK(train(1, &stop));
    int64_t id = model.run->id;
    if (!is_wal) { // where a reader keeps nobody from writing, nobody waits
        CHECK(memory_waiting > 0);
        int64_t grown = memory_waiting - memory_before;
        CHECK_MESSAGE(grown < MOST + MARGIN, "%lld MiB where %d MiB are kept",
                      (long long)grown >> 20, MOST >> 20);
    }
    end_reading(&stopped);
    check_ends_whole();
    char sql[100];
    snprintf(sql, sizeof sql, "SELECT count(*) FROM events WHERE run = %lld AND kind = 'message'",
             (long long)id);
    CHECK_INT(ask(sql), EVENTS);
}

int main(void) {
    make_place();
    RUN_TEST(fault_29_training_goes_on_beside_a_reader_that_is_stopped);
    RUN_TEST(fault_29_what_waits_for_a_reader_stays_within_bounds);
    return end_tests();
}
