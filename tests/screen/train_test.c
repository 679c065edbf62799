// The screen on a training that really runs: started, steered, looked at and left alone through
// keys alone. What a key asks for shows within 200 ms; orders reach the worker at its next step.
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "store/commands.h"
#include "store/runs.h"
#include "tests/screen/shown.h"
#include "tests/test.h"

enum { MOST_TIMES = 64 };

static char folder[64], path[96], database[128];
static double times[MOST_TIMES]; // from a key to what it shows
static int time_count;
static Shown shown;

static void open_screen(const char *const *arguments) {
    const char *environment[] = {database, "XDG_CONFIG_HOME=/nonexistent", NULL};
    shown_start(&shown, 120, 36, environment, arguments);
}

static void expect(const char *text, double seconds) {
    bool came = shown_wait(&shown, text, true, seconds) >= 0;
    CHECK_MESSAGE(came, "\"%s\" did not appear:\n%s", text, shown_text(&shown));
}

// Keys, and what they show.
static void press(const char *keys, const char *text) {
    shown_type(&shown, keys);
    double taken = shown_wait(&shown, text, true, 10);
    CHECK_MESSAGE(taken >= 0, "\"%s\" did not appear:\n%s", text, shown_text(&shown));
    if (taken >= 0 && time_count < MOST_TIMES)
        times[time_count++] = taken;
}

static Store *open_store(void) {
    Error error;
    Store *store = store_open(path, STORE_READ, &error);
    CHECK_MESSAGE(store != NULL, "%s", error.text);
    return store;
}

static RunRecord read_run(int64_t id) {
    Error error = {.code = ERROR_NONE};
    RunRecord record = {.id = 0};
    Store *store = open_store();
    CHECK_MESSAGE(store && store_read_run(store, id, &record, &error), "%s", error.text);
    store_close(store);
    return record;
}

static RunStatus status_of(int64_t id, int64_t *step) {
    RunRecord record = read_run(id);
    RunStatus status = record.status;
    *step = record.step;
    record_clear(&record);
    return status;
}

// ---- launching ----------------------------------------------------------------------------------

static void choose_experiment(const char *name) {
    char mark[80];
    snprintf(mark, sizeof mark, "▸%s", name);
    for (int i = 0; i < 32 && shown_wait(&shown, mark, true, i ? 0.3 : 1) < 0; i++)
        shown_type(&shown, i < 16 ? KEY_DOWN : KEY_UP);
    expect(mark, 1);
}

static void a_run_is_launched_from_home(void) {
    const char *const nothing[] = {NULL};
    open_screen(nothing);
    expect("experiments", 20);
    choose_experiment("simple");
    press("\r" KEY_RIGHT, "‹ auto ›");
    for (int i = 0; i < 16 && shown_wait(&shown, "‹ fp16 ›", true, i ? 0.3 : 0) < 0; i++)
        shown_type(&shown, KEY_RIGHT);
    expect("‹ fp16 ›", 1);
    shown_type(&shown, KEY_DOWN KEY_DOWN KEY_DOWN KEY_DOWN KEY_DOWN KEY_DOWN); // to its steps
    press("5000000\r", "5000000");
    press("\r", "is starting");
    expect("#1 simple-1", 20); // and it opens
    expect("left", 20);        // the time that is left: it goes on
}

// ---- steering -----------------------------------------------------------------------------------

static int64_t last_order(const char *argument, int64_t *effect) {
    Error error;
    Store *store = open_store();
    int64_t id = 0;
    RunCommand order = {.step = -1};
    if (store && store_last_command(store, 1, &id, &error) && id > 0)
        CHECK_MESSAGE(store_read_command(store, id, &order, &error), "%s", error.text);
    CHECK_INT(order.state, COMMAND_DONE);
    CHECK_CONTAINS(order.argument, argument);
    store_close(store);
    *effect = order.step;
    return id;
}

// The steps that the run made from the key until the order took effect, at its own speed, are
// those of the way through the history: within half a second.
static void check_effect(int64_t before, const char *argument) {
    int64_t effect;
    RunRecord record = read_run(1);
    last_order(argument, &effect);
    double speed = record.steps_per_s > 0 ? record.steps_per_s : 10000;
    CHECK_MESSAGE(effect >= before, "it took effect at step %lld, before %lld", (long long)effect,
                  (long long)before);
    CHECK_MESSAGE((double)(effect - before) < 3 * speed, "from step %lld to %lld",
                  (long long)before, (long long)effect);
    record_clear(&record);
}

static void a_layer_goes_to_fp32_and_back(void) {
    int64_t before;
    for (int i = 0; i < 8 && shown_wait(&shown, "▸fc2", true, i ? 0.3 : 1) < 0; i++)
        shown_type(&shown, "\t" KEY_DOWN); // to the panel of layers
    expect("▸fc2", 1);
    status_of(1, &before);
    press(" ", "pending: fc2");
    expect("fc2 is fp32 from step", 10);
    check_effect(before, "layer.fc2=fp32");
    expect("fp32 set", 5);
    status_of(1, &before);
    shown_type(&shown, "a");
    expect("fc2 is auto from step", 10);
    check_effect(before, "layer.fc2=auto");
}

static void the_scale_is_set(void) {
    int64_t before;
    status_of(1, &before);
    press("s", "loss scale (now");
    press("512\r", "512");
    expect("the loss scale is 512", 10);
    check_effect(before, "loss_scale=512");
}

static void a_run_pauses_and_goes_on(void) {
    int64_t step, later;
    press("p", "pause");
    expect("paused", 10);
    CHECK_INT(status_of(1, &step), RUN_PAUSED);
    shown_pump(&shown, 1);
    CHECK_INT(status_of(1, &later), RUN_PAUSED);
    CHECK_INT(later, step);
    shown_type(&shown, "p");
    expect("goes on after step", 10);
    expect(" left", 10);
    shown_pump(&shown, 1);
    CHECK_INT(status_of(1, &later), RUN_RUNNING);
    CHECK(later > step);
}

static void the_past_is_looked_at(void) {
    press("{", "G follows again");
    press("G", " left");
}

// ---- comparing, leaving, coming back ------------------------------------------------------------

static void runs_are_compared(void) {
    char command[300];
    snprintf(command, sizeof command,
             "MPBENCH_DB='%s' '%s' run simple -p fp32 --steps 200 --quiet >/dev/null 2>&1", path,
             getenv("MPBENCH") ? getenv("MPBENCH") : "build/mpbench");
    CHECK(system(command) == 0);
    press("1", "experiments");
    expect("fp32", 10);
    for (int i = 0; i < 4 && !strstr(shown_text(&shown), "2 chosen"); i++) {
        shown_type(&shown, i ? "\t" : ""); // to the panel of runs
        shown_type(&shown, "g  ");
        shown_pump(&shown, 0.5);
    }
    expect("2 chosen", 5);
    press("c", "outcomes");
    expect("fp32", 5);
}

static void the_run_lives_on_without_the_screen(void) {
    static const char *const watch[] = {"watch", "1", NULL};
    int64_t step, later;
    shown_type(&shown, "q");
    CHECK(shown_wait_end(&shown, 10));
    shown_free(&shown);
    CHECK_INT(status_of(1, &step), RUN_RUNNING);
    sleep(2);
    CHECK_INT(status_of(1, &later), RUN_RUNNING);
    CHECK_MESSAGE(later > step, "it stands at step %lld", (long long)later);
    open_screen(watch);
    expect("#1 simple-1", 20);
    expect(" left", 10);
    shown_type(&shown, "S");
    expect("stop #1", 5);
    shown_type(&shown, "y");
    expect("stopped", 20);
    CHECK_INT(status_of(1, &step), RUN_STOPPED);
    shown_type(&shown, "q");
    CHECK(shown_wait_end(&shown, 10));
    shown_free(&shown);
}

static int by_time(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void keys_show_within_200_ms(void) {
    CHECK(time_count >= 8);
    qsort(times, (size_t)time_count, sizeof *times, by_time);
    double usual = times[time_count / 2]; // single ones are the machine's, when others use it
    CHECK_MESSAGE(usual < 0.2, "half of them take %.0f ms and more", 1000 * usual);
}

static void end_run(void) {
    Error error;
    int64_t id;
    Store *store = store_open(path, STORE_WRITE, &error);
    if (!store || !store_send_command(store, 1, "stop", "", &id, &error))
        fprintf(stderr, "%s\n", error.text);
    store_close(store);
    sleep(1);
}

int main(void) {
    int64_t step;
    const char *parent = getenv("TMPDIR");
    char command[128];
    snprintf(folder, sizeof folder, "%.40s/mpbench-XXXXXX", parent ? parent : "/tmp");
    if (!mkdtemp(folder))
        return 1;
    snprintf(path, sizeof path, "%s/history.db", folder);
    snprintf(database, sizeof database, "MPBENCH_DB=%s", path);
    RUN_TEST(a_run_is_launched_from_home);
    RUN_TEST(a_layer_goes_to_fp32_and_back);
    RUN_TEST(the_scale_is_set);
    RUN_TEST(a_run_pauses_and_goes_on);
    RUN_TEST(the_past_is_looked_at);
    RUN_TEST(runs_are_compared);
    RUN_TEST(the_run_lives_on_without_the_screen);
    RUN_TEST(keys_show_within_200_ms);
    if (status_of(1, &step) == RUN_RUNNING) // a test failed: nothing goes on for ever
        end_run();
    snprintf(command, sizeof command, "rm -rf '%s'", folder);
    return system(command) != 0 || test_end();
}
