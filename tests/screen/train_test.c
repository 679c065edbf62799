// The screen on a training that really runs: started, steered, looked at and left alone through
// keys alone. Orders reach the worker at its next step. How soon keys show is measure.c's to say.
#include <signal.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "store/commands.h"
#include "store/events.h"
#include "store/runs.h"
#include "store/series.h"
#include "tests/screen/place.h"

static void open_screen(const char *const *arguments) {
    const char *environment[] = {database, NULL};
    shown_start(&shown, 120, 36, environment, arguments);
}

static Store *open_store(void) {
    Error error;
    Store *store = store_open(history_path, STORE_READ, &error);
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

static void a_moment(void) {
    nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
}

// The first steps that the history gets may have been made before.
static void expect_goes_on(int64_t id) {
    enum { COMMITS = 3 };
    int64_t step, now;
    RunStatus status = status_of(id, &step);
    double end = shown_clock() + 10 * test_patience();
    for (int i = 0; i < COMMITS && shown_clock() < end; i++, step = now)
        do {
            a_moment();
            status = status_of(id, &now);
        } while (now <= step && shown_clock() < end);
    CHECK_INT(status, RUN_RUNNING);
    CHECK_MESSAGE(shown_clock() < end, "it stands at step %lld", (long long)now);
}

// What events say is written a moment before the state that follows.
static void expect_status(int64_t id, RunStatus wanted) {
    int64_t step;
    RunStatus status = status_of(id, &step);
    for (double end = shown_clock() + 10 * test_patience();
         status != wanted && shown_clock() < end;) {
        a_moment();
        status = status_of(id, &step);
    }
    CHECK_INT(status, wanted);
}

// ---- launching ----------------------------------------------------------------------------------

static void a_run_is_launched_from_home(void) {
    const char *const nothing[] = {NULL};
    open_screen(nothing);
    expect("experiments");
    choose_experiment("simple");
    press("\r" KEY_RIGHT, "‹ auto ›");
    for (int i = 0; i < 16 && shown_wait(&shown, "‹ fp16 ›", true, i ? 0.3 : 0) < 0; i++)
        shown_type(&shown, KEY_RIGHT);
    expect("‹ fp16 ›");
    shown_type(&shown,
               KEY_DOWN KEY_DOWN KEY_DOWN KEY_DOWN KEY_DOWN KEY_DOWN KEY_DOWN KEY_DOWN
                   KEY_DOWN); // to its steps
    press("5000000\r", "5000000");
    shown_type(&shown, "\r");
    expect("#1 simple-1"); // it opens, perhaps before a picture says that it is starting
    expect("left");        // the time that is left: it goes on
    CHECK_MESSAGE(shown_wait(&shown, "is starting", false, 1) >= 0, "it still is said to start");
}

// No loader counts its data: its parameters say what a step takes.
static void its_samples_a_second_are_known_while_it_goes_on(void) {
    const double batch = 32;
    RunRecord record = read_run(1);
    for (int i = 0; i < 50 && !(record.samples_per_s > 0); i++) { // the first second says nothing
        record_clear(&record);
        shown_pump(&shown, 0.1);
        record = read_run(1);
    }
    CHECK_INT(record.status, RUN_RUNNING);
    CHECK_NEAR(record.samples_per_s, batch * record.steps_per_s, 1e-6 * record.samples_per_s);
    record_clear(&record);
}

// ---- steering -----------------------------------------------------------------------------------

// The step after which the run's last order took effect, and when that was; 0: it waits still.
static int64_t last_effect(Store *store, int64_t run, const char *argument, int64_t *time_ms) {
    Error error;
    int64_t id = 0;
    RunCommand order = {.step = -1};
    Event *events = NULL;
    int count = 0;
    if (!store_last_command(store, run, &id, &error) || id == 0 ||
        !store_read_command(store, id, &order, &error) || order.state != COMMAND_DONE ||
        !strstr(order.argument, argument) ||
        !store_read_events(store, run, 0, 1u << EVENT_COMMAND, 0, &events, &count, &error))
        return 0;
    int64_t effect = count > 0 && events[count - 1].step == order.step ? order.step : 0;
    *time_ms = effect ? events[count - 1].time_ms : 0;
    free(events);
    return effect;
}

static int64_t wall_ms(void) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

// Of steps that take no time to speak of: the whole way from the key to the boundary.
static void check_effect(int64_t typed_ms, const char *argument) {
    const double most = 300 * test_patience();
    int64_t time_ms = 0;
    Store *store = open_store();
    CHECK(store && last_effect(store, 1, argument, &time_ms) > 0);
    store_close(store);
    CHECK_MESSAGE((double)(time_ms - typed_ms) < most, "%s took effect after %lld ms", argument,
                  (long long)(time_ms - typed_ms));
}

static void a_layer_goes_to_fp32_and_back(void) {
    int64_t typed_ms;
    for (int i = 0; i < 8 && shown_wait(&shown, "▸fc2", true, i ? 0.3 : 1) < 0; i++)
        shown_type(&shown, "\t" KEY_DOWN); // to the panel of layers
    expect("▸fc2");
    typed_ms = wall_ms();
    press(" ", "fc2 fp16 → fp32");
    expect("fc2 is fp32 from step");
    check_effect(typed_ms, "layer.fc2=fp32");
    expect("fp32 set");
    typed_ms = wall_ms();
    shown_type(&shown, "a");
    expect("fc2 is auto from step");
    check_effect(typed_ms, "layer.fc2=auto");
}

static void the_scale_is_set(void) {
    press("s", "loss scale (now");
    press("512", "512");
    int64_t typed_ms = wall_ms();
    shown_type(&shown, "\r");
    expect("the loss scale is 2^9 from step");
    check_effect(typed_ms, "loss_scale=512");
}

static void a_run_pauses_and_goes_on(void) {
    int64_t step, later;
    press("p", "paused");
    expect_status(1, RUN_PAUSED);
    status_of(1, &step);
    shown_pump(&shown, 0.5);
    CHECK_INT(status_of(1, &later), RUN_PAUSED);
    CHECK_INT(later, step);
    shown_type(&shown, "p");
    expect("goes on after step");
    expect(" left");
    expect_goes_on(1);
}

// Of another screen too.
static void orders_are_given_in_words(void) {
    press("1", "experiments");
    expect("1 simple"); // which they mean
    press(":pause\r", "pause #1: done, at step");
    press(":resume\r", "resume #1: done, at step");
    press(":stop\r", "stop #1 simple-1 after its step");
    shown_type(&shown, "n");
    shown_type(&shown, "2");
    expect(" left");
}

static void the_past_is_looked_at(void) {
    press("{", "G follows again");
    press("G", " left");
}

// ---- comparing, leaving, coming back ------------------------------------------------------------

static void runs_are_compared(void) {
    char command[300];
    snprintf(command, sizeof command,
             "MPBENCH_DB='%s' '%s' run simple -p fp32 --steps 200 --quiet >/dev/null 2>&1",
             history_path, getenv("MPBENCH"));
    CHECK(system(command) == 0);
    press("1", "experiments");
    expect("fp32");
    for (int i = 0; i < 4 && !strstr(shown_text(&shown), "2 chosen"); i++) {
        shown_type(&shown, i ? "\t" : ""); // to the panel of runs
        shown_type(&shown, "g  ");
        shown_pump(&shown, 0.5);
    }
    expect("2 chosen");
    press("c", "outcomes");
    expect("fp32");
}

// The run was launched from the screen that dies.
static void fault_43_the_run_lives_on_when_the_screen_is_killed(void) {
    static const char *const watch[] = {"watch", "1", NULL};
    CHECK(kill(shown.program, SIGKILL) == 0 && shown_wait_end(&shown, 10));
    shown_free(&shown);
    expect_goes_on(1);
    open_screen(watch);
    expect("#1 simple-1");
}

static void the_run_lives_on_without_the_screen(void) {
    static const char *const watch[] = {"watch", "1", NULL};
    shown_type(&shown, "q");
    CHECK(shown_wait_end(&shown, 10));
    expect("run 1 goes on; mpbench watch 1");
    shown_free(&shown);
    expect_goes_on(1);
    open_screen(watch);
    expect("#1 simple-1");
    expect(" left");
    shown_type(&shown, "S");
    expect("stop #1");
    shown_type(&shown, "y");
    expect("stopped");
    expect_status(1, RUN_STOPPED);
    quit();
}

// ---- slow steps ---------------------------------------------------------------------------------

// Steps of a fifth of a second, whatever the machine: os.clock is asked but once, since what it
// says is kept.
static const char slow_script[] =
    "local mp = require 'mp'\n"
    "local nn, F = mp.nn, mp.fn\n"
    "return mp.experiment { name = 'slow', params = {}, run = function(run)\n"
    "  local net = run:model(nn.Linear(8, 8))\n"
    "  local opt = mp.optim.SGD(net:parameters(), { lr = 1e-3 })\n"
    "  local scaler, x = run:scaler(), mp.randn(4, 8)\n"
    "  local function spin(count) local n = 0 for i = 1, count do n = n + i end return n end\n"
    "  local began = os.clock()\n"
    "  spin(5000000)\n"
    "  local count = math.floor(5000000 * 0.2 / (os.clock() - began))\n"
    "  for _ = 1, 1000 do\n"
    "    spin(count)\n"
    "    opt:zero_grad()\n"
    "    local loss = mp.autocast(function() return F.mse(net(x), x) end)\n"
    "    scaler:scale(loss):backward()\n"
    "    scaler:step(opt)\n"
    "    scaler:update()\n"
    "    run:log { loss = loss }\n"
    "  end\n"
    "end }\n";

static int64_t start_slow_run(void) {
    char script[128], command[400];
    Error error = {.code = ERROR_NONE};
    int64_t id = 0, step = 0;
    double end = shown_clock() + 20 * test_patience();
    snprintf(script, sizeof script, "%s/slow.lua", folder);
    FILE *file = fopen(script, "w");
    CHECK(file && fputs(slow_script, file) >= 0);
    if (file)
        fclose(file);
    snprintf(command, sizeof command,
             "MPBENCH_DB='%s' '%s' run '%s' -p fp16 --threads 1 --quiet >/dev/null 2>&1 &",
             history_path, getenv("MPBENCH"), script);
    CHECK(system(command) == 0);
    while (step < 3 && shown_clock() < end) {
        a_moment();
        Store *store = open_store();
        if (store && store_find_run(store, "@last:slow", &id, &error))
            status_of(id, &step);
        store_close(store);
    }
    CHECK_MESSAGE(step >= 3, "the slow run does not run: %s", error.text);
    return id;
}

// How many steps ended between the key and the boundary at which the order took effect, that one
// counted in; *left gets the share of the first of them that was still to come.
static int steps_until(Store *store, int64_t run, int64_t effect, int64_t typed_ms,
                       int64_t effect_ms, double *left) {
    Error error;
    SeriesPoint *points = NULL;
    int count = 0, steps = 0;
    double end = (double)effect_ms;
    CHECK_MESSAGE(store_read_series(store, run, "step_seconds", effect - 8, effect, 0, &points,
                                    &count, &error),
                  "%s", error.text);
    for (int i = count - 1; i >= 0 && end > (double)typed_ms; i--, steps++) {
        double took = 1000 * series_point_value(&points[i]);
        *left = (end - (double)typed_ms) / took;
        end -= took;
    }
    free(points);
    return steps;
}

// The worker sees an order within 20 ms, so one that is typed well before the end of a step takes
// effect with that end, and no order waits for more than the step after.
static void an_order_takes_effect_with_the_step_in_progress(void) {
    enum { ORDERS = 6 };
    const double seen = 0.5; // of a step: the screen, its write, the worker's next look
    int64_t run = start_slow_run();
    int early = 0;
    open_screen((const char *const[]){"watch", "@last:slow", NULL});
    expect("slow");
    shown_settle(&shown);
    for (int i = 0; i < ORDERS && !test_why[0]; i++) {
        char keys[16], argument[32];
        int64_t effect = 0, effect_ms = 0;
        double left = 0;
        Store *store = open_store();
        snprintf(argument, sizeof argument, "loss_scale=%d", 64 << i);
        snprintf(keys, sizeof keys, "%d", 64 << i);
        shown_type(&shown, "s");
        expect("loss scale (now");
        shown_type(&shown, keys);
        shown_pump(&shown, 0.037 * i); // anywhere in a step
        int64_t typed_ms = wall_ms();
        shown_type(&shown, "\r");
        for (int j = 0; j < 500 && store && effect == 0; j++) {
            shown_pump(&shown, 0.01);
            effect = last_effect(store, run, argument, &effect_ms);
        }
        int steps = steps_until(store, run, effect, typed_ms, effect_ms, &left);
        CHECK_MESSAGE(effect > 0 && steps >= 1 && steps <= 2,
                      "%s took effect with the end of step %d after the key", argument, steps);
        CHECK_MESSAGE(steps == 1 || left < seen,
                      "%s was typed %.2f of a step before its end, and came a step late", argument,
                      left);
        early += steps == 1;
        store_close(store);
    }
    CHECK_MESSAGE(early >= 2, "%d of %d orders met the end of their step", early, ORDERS);
    shown_type(&shown, "S");
    expect("stop #");
    shown_type(&shown, "y");
    expect("stopped");
    quit();
}

static void end_run(void) {
    Error error;
    int64_t id;
    Store *store = store_open(history_path, STORE_WRITE, &error);
    if (!store || !store_send_command(store, 1, "stop", "", &id, &error))
        fprintf(stderr, "%s\n", error.text);
    store_close(store);
    expect_status(1, RUN_STOPPED);
}

int main(void) {
    int64_t step;
    if (!make_place())
        return 1;
    RUN_TEST(a_run_is_launched_from_home);
    RUN_TEST(its_samples_a_second_are_known_while_it_goes_on);
    RUN_TEST(a_layer_goes_to_fp32_and_back);
    RUN_TEST(the_scale_is_set);
    RUN_TEST(a_run_pauses_and_goes_on);
    RUN_TEST(orders_are_given_in_words);
    RUN_TEST(the_past_is_looked_at);
    RUN_TEST(runs_are_compared);
    RUN_TEST(fault_43_the_run_lives_on_when_the_screen_is_killed);
    RUN_TEST(the_run_lives_on_without_the_screen);
    RUN_TEST(an_order_takes_effect_with_the_step_in_progress);
    if (status_of(1, &step) == RUN_RUNNING) // a test failed: nothing goes on for ever
        end_run();
    return end_tests();
}
