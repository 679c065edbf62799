// What a run leaves in the history, and what becomes of both when the history fails.
#include "run/recorder.h"

#include <sqlite3.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "store/commands.h"
#include "store/events.h"
#include "store/layers.h"
#include "store/runs.h"
#include "store/series.h"
#include "tests/test.h"

// A model of one weight: loss = weight * x, whose gradient is x.
typedef struct Model {
    RunOptions options;
    Run *run;
    Recorder *recorder;
    Tensor *weight;
    Optimizer *optimizer;
    Scaler *scaler;
    char events[900]; // told so far
} Model;

static Model model;
static Error error;
static char folder[64], path[128];

static void on_event(void *context, const Run *run, const char *text) {
    (void)run;
    Model *at = context;
    size_t used = strlen(at->events);
    snprintf(at->events + used, sizeof at->events - used, "%s\n", text);
}

static Tensor *number(double value) {
    int64_t one = 1;
    float narrow = (float)value;
    return tensor_from_host(model.run->device, FORMAT_FP32, 1, &one, &narrow, MEMORY_DATA, &error);
}

static void begin(const char *name) {
    static const RecordOption typed[] = {{"precision", "fp32"}, {"set", "lr=1"}};
    model = (Model){.events = ""};
    error = (Error){0};
    run_request_stop(0);
    model.options =
        (RunOptions){.device = "ref", .seed = 1, .name = name, .typed = typed, .typed_count = 2};
    Run *run = model.run = run_new(&model.options, &error);
    bool done = run && (model.recorder = run->recorder = recorder_new(path, &error));
    if (done) {
        run->observer = (RunObserver){.context = &model, .event = on_event};
        run_set_script(run, "tiny.lua", "abc", "return 1", 8);
        done = run_configure(run, "tiny", "fp32", NULL, 0, &error);
    }
    int layer = done ? policy_add_layer(run->engine->policy, "fc", 0, &error) : 0;
    OptimizerOptions options = optimizer_defaults(OPTIMIZER_SGD);
    options.schedule.rate = 1e-3;
    OptimizerGroup group = {&model.weight, 1, 1, 0};
    if (!done || !(model.weight = number(0.5)) ||
        !parameter_attach(model.weight, "fc.weight", layer, false, &error) ||
        !(model.optimizer = optimizer_new(run->engine, &options, &group, 1, &error)) ||
        !(model.scaler = scaler_new(run->engine, &run->scale_rule, &error))) {
        printf("not ok begin: %s\n", error.text);
        exit(1);
    }
    run_add_optimizer(run, model.optimizer);
    run->scaler = model.scaler;
}

static void end(void) {
    optimizer_free(model.optimizer);
    scaler_free(model.scaler);
    tensor_release(model.weight);
    recorder_free(model.recorder);
    run_free(model.run);
}

// One step with gradient x.
static bool train(double x, bool *stop) {
    Engine *engine = model.run->engine;
    Tensor *input = number(x);
    Tensor *loss = op_two(engine, OP_mul, model.weight, input, NULL, &error);
    Tensor *scaled = scaler_scale(model.scaler, loss, &error);
    optimizer_zero_grad(model.optimizer);
    BackwardOptions options = {0};
    bool done = scaled && engine_backward(engine, scaled, NULL, &options, &error) &&
                scaler_step(model.scaler, model.optimizer, &error) &&
                scaler_update(model.scaler, 0, &error) &&
                run_log(model.run, "loss", loss, &error) && run_step_ended(model.run, stop, &error);
    tensor_release(input);
    tensor_release(loss);
    tensor_release(scaled);
    return done;
}

static void a_moment(void) {
    const struct timespec moment = {.tv_nsec = 5000000};
    nanosleep(&moment, NULL);
}

// Steps, slowly, until `part` was told or the run is to stop.
static bool trains_until(const char *part) {
    bool stop = false;
    for (int i = 0; i < 1000 && !strstr(model.events, part); i++) {
        if (!train(1, &stop))
            return false;
        a_moment();
    }
    return strstr(model.events, part) != NULL;
}

// Changes the file behind the recorder's back.
static void tamper(const char *sql) {
    sqlite3 *db;
    CHECK(sqlite3_open(path, &db) == SQLITE_OK);
    sqlite3_busy_timeout(db, 5000);
    int code = sqlite3_exec(db, sql, NULL, NULL, NULL);
    CHECK_MESSAGE(code == SQLITE_OK, "%s: %s", sql, sqlite3_errmsg(db));
    sqlite3_close(db);
}

// ---- tests --------------------------------------------------------------------------------------

static void everything_of_a_run_is_found_again(void) {
    enum { STEPS = 300 };
    begin("whole");
    bool stop;
    for (int i = 1; i <= STEPS; i++)
        CHECK(train(i == 100 ? (double)INFINITY : 0.25, &stop));
    run_event(model.run, "a word of the script");
    CHECK(run_result(model.run, "answer", 42, &error));
    run_finish(model.run, NULL);
    CHECK(recorder_end(model.recorder, model.run, &error));
    int64_t id = model.run->id;
    end();

    Store *store = store_open(path, STORE_READ, &error);
    RunRecord record;
    CHECK(store && store_read_run(store, id, &record, &error));
    CHECK_TEXT(record.name, "whole");
    CHECK_INT(record.status, RUN_FINISHED);
    CHECK_INT(record.step, STEPS);
    CHECK_INT(record.applied, STEPS - 1);
    CHECK_INT(record.option_count, 2);
    CHECK(record.option_count == 2 && strcmp(record.options[1].value, "lr=1") == 0);
    CHECK(record_metric(&record, "answer") != NULL);
    CHECK_INT(record.layer_count, 1);
    CHECK(record.fact_count > 3);
    record_clear(&record);
    const char *const names[] = {"loss", "scale", "grad_norm", "step_seconds"};
    for (size_t i = 0; i < 4; i++) {
        SeriesPoint *points = NULL;
        int count = 0;
        CHECK(store_read_series(store, id, names[i], 0, STEPS, 0, &points, &count, &error));
        int64_t values = 0;
        for (int k = 0; k < count; k++)
            values += points[k].count + points[k].infs + points[k].nans;
        CHECK_MESSAGE(values == STEPS, "%s has %lld points", names[i], (long long)values);
        free(points);
    }
    LayerSample *samples = NULL;
    int count = 0;
    CHECK(store_read_layer(store, id, 0, 0, STEPS, 0, &samples, &count, &error));
    int64_t steps = 0, binned = 0;
    for (int i = 0; i < count; i++) {
        steps += samples[i].count;
        binned += samples[i].bins[-2 - LAYER_LOWEST_EXPONENT]; // 0.25
    }
    CHECK_INT(steps, STEPS); // one element a step
    CHECK_INT(binned, STEPS - 1);
    free(samples);
    Event *events = NULL;
    CHECK(store_read_events(store, id, 0, 1u << EVENT_SKIP | 1u << EVENT_MESSAGE, 0, &events,
                            &count, &error));
    CHECK_INT(count, 2);
    if (count == 2) {
        CHECK_INT(events[0].step, 100);
        CHECK_TEXT(events[0].layer, "fc");
        CHECK_TEXT(events[1].text, "a word of the script");
    }
    free(events);
    store_close(store);
}

static void orders_are_obeyed_at_a_boundary_and_answered(void) {
    static const struct {
        const char *verb, *argument, *answer;
        CommandState state;
    } orders[] = {
        {"set", "layer.f*=bf16", "f* is bf16 from step", COMMAND_DONE},
        {"set", "layer.fx=bf16", "no layer has such a name", COMMAND_REFUSED},
        {"set", "layer.fc=fp12", "one of auto fp32", COMMAND_REFUSED},
        {"set", "loss_scale=64", "the loss scale is 64", COMMAND_DONE},
        {"set", "loss_scale=apex", "the loss scale is 65536", COMMAND_DONE},
        {"set", "loss_scale=-1", "", COMMAND_REFUSED},
        {"set", "lr=0.5", "the learning rate is 0.5", COMMAND_DONE},
        {"set", "lr.2=0.5", "the run has 1 optimizer", COMMAND_REFUSED},
        {"set", "lr=much", "a number is wanted", COMMAND_REFUSED},
        {"set", "speed=9", "can be set", COMMAND_REFUSED},
        {"checkpoint", "", "keeps no checkpoints", COMMAND_REFUSED},
        {"resume", "", "is not paused", COMMAND_REFUSED},
        {"stop", "", "stopped after step", COMMAND_DONE},
    };
    enum { COUNT = sizeof orders / sizeof *orders };
    int64_t ids[COUNT];
    begin("obedient");
    Store *other = store_open(path, STORE_WRITE, &error);
    for (int i = 0; i < COUNT; i++)
        CHECK(store_send_command(other, model.run->id, orders[i].verb, orders[i].argument, &ids[i],
                                 &error));
    bool stop = false;
    for (int i = 0; i < 1000 && !stop; i++, a_moment())
        CHECK(train(1, &stop));
    CHECK(stop);
    CHECK_NEAR(optimizer_rate(model.optimizer), 0.5, 0);
    run_finish(model.run, NULL);
    CHECK_INT(model.run->status, RUN_STOPPED);
    CHECK(recorder_end(model.recorder, model.run, &error));
    for (int i = 0; i < COUNT; i++) {
        RunCommand command;
        CHECK(store_read_command(other, ids[i], &command, &error));
        CHECK_MESSAGE(command.state == orders[i].state, "%s %s: %s", orders[i].verb,
                      orders[i].argument, command.answer);
        CHECK_CONTAINS(command.answer, orders[i].answer);
    }
    store_close(other);
    end();
}

static void a_run_that_another_worker_took_ends(void) {
    begin("taken");
    bool stop = false;
    CHECK(train(1, &stop));
    tamper("UPDATE workers SET token = 'somebody else'");
    for (int i = 0; i < 1000 && !stop; i++, a_moment())
        CHECK(train(1, &stop));
    CHECK(stop);
    run_finish(model.run, NULL);
    CHECK_INT(model.run->status, RUN_STOPPED);
    CHECK(model.run->stop_reason[0]);
    CHECK(!recorder_end(model.recorder, model.run, &error));
    CHECK_INT(error.code, ERROR_STOPPED);
    end();
    tamper("DELETE FROM workers");
}

static void training_outlives_a_history_that_is_deleted(void) {
    begin("bereft");
    bool stop = false;
    CHECK(train(1, &stop));
    a_moment();
    CHECK(unlink(path) == 0);
    CHECK(trains_until("training goes on, but nothing after step"));
    CHECK_CONTAINS(model.events, "deleted or replaced");
    int64_t step = model.run->step;
    CHECK(train(1, &stop) && !stop);
    CHECK_INT(model.run->step, step + 1);
    run_finish(model.run, NULL);
    CHECK_INT(model.run->status, RUN_FINISHED);
    CHECK(!recorder_end(model.recorder, model.run, &error));
    CHECK_INT(error.code, ERROR_HISTORY);
    end();
}

static void a_lock_held_long_loses_nothing(void) {
    const double held = 6.5; // longer than the store waits at a time
    begin("locked_out");
    sqlite3 *db;
    CHECK(sqlite3_open(path, &db) == SQLITE_OK);
    sqlite3_busy_timeout(db, 5000);
    CHECK(sqlite3_exec(db, "BEGIN IMMEDIATE", NULL, NULL, NULL) == SQLITE_OK);
    bool stop;
    for (double until = clock_seconds() + held; clock_seconds() < until;) {
        CHECK(train(1, &stop) && !stop);
        a_moment();
    }
    CHECK(sqlite3_exec(db, "ROLLBACK", NULL, NULL, NULL) == SQLITE_OK);
    sqlite3_close(db);
    int64_t id = model.run->id, steps = model.run->step;
    run_finish(model.run, NULL);
    CHECK(recorder_end(model.recorder, model.run, &error));
    end();
    Store *store = store_open(path, STORE_READ, &error);
    SeriesPoint *points = NULL;
    int count = 0;
    CHECK(store && store_read_series(store, id, "loss", 0, steps, 0, &points, &count, &error));
    int64_t values = 0;
    for (int i = 0; i < count; i++)
        values += points[i].count;
    CHECK_INT(values, steps);
    free(points);
    store_close(store);
}

static bool write_note(Store *store, void *context, Error *fault) {
    return store_set_note(store, *(int64_t *)context, "from the thread", fault);
}

static void work_is_done_on_the_recorders_thread(void) {
    begin("called");
    int64_t unknown = 12345;
    CHECK(recorder_call(model.recorder, write_note, &model.run->id, &error));
    CHECK(!recorder_call(model.recorder, write_note, &unknown, &error));
    bool stop;
    CHECK(train(1, &stop)); // a failed call ends nothing
    run_finish(model.run, NULL);
    CHECK(recorder_end(model.recorder, model.run, &error));
    end();
}

int main(void) {
    snprintf(folder, sizeof folder, "/tmp/mpbench-recorder-%ld", (long)getpid());
    snprintf(path, sizeof path, "%s/history.db", folder);
    RUN_TEST(everything_of_a_run_is_found_again);
    RUN_TEST(orders_are_obeyed_at_a_boundary_and_answered);
    RUN_TEST(work_is_done_on_the_recorders_thread);
    RUN_TEST(a_lock_held_long_loses_nothing);
    RUN_TEST(a_run_that_another_worker_took_ends);
    RUN_TEST(training_outlives_a_history_that_is_deleted);
    char command[100];
    snprintf(command, sizeof command, "rm -r %s", folder);
    return system(command) == 0 ? test_end() : 1;
}
