// tests/unit/recorder_fixture.h: a run of a model of one weight, recorded in a history of its own.
#pragma once

#include <sqlite3.h>
#include <time.h>
#include <unistd.h>

#include "run/recorder_private.h"
#include "store/store.h"
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

// In memory where there is such a place: what is tested here commits often.
static inline void make_place(void) {
    const char *parent = access("/dev/shm", W_OK | X_OK) == 0 ? "/dev/shm" : "/tmp";
    snprintf(folder, sizeof folder, "%s/mpbench-recorder-%ld", parent, (long)getpid());
    snprintf(path, sizeof path, "%s/history.db", folder);
}

static inline int end_tests(void) {
    char command[100];
    snprintf(command, sizeof command, "rm -r %s", folder);
    return system(command) == 0 ? test_end() : 1;
}

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

// All that has been made lies in `model`, also where it fails; `end` takes it.
static inline bool try_begin(const char *name, int64_t resumes, int64_t from) {
    static const RecordOption typed[] = {{"precision", "fp32"}, {"set", "lr=1"}};
    model = (Model){.events = ""};
    error = (Error){0};
    run_request_stop(0);
    model.options = (RunOptions){.device = "ref",
                                 .seed = 1,
                                 .name = name,
                                 .typed = typed,
                                 .typed_count = 2,
                                 .resumes = resumes,
                                 .from = from};
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
    if (layer <= 0 || !(model.weight = number(0.5)) ||
        !parameter_attach(model.weight, "fc.weight", layer, false, &error) ||
        !(model.optimizer = optimizer_new(run->engine, &options, &group, 1, &error)) ||
        !(model.scaler = scaler_new(run->engine, &run->scale_rule, &error)))
        return false;
    run_add_optimizer(run, model.optimizer);
    run->scaler = model.scaler;
    return true;
}

static inline void begin_from(const char *name, int64_t resumes, int64_t from) {
    if (!try_begin(name, resumes, from)) {
        printf("not ok begin: %s\n", error.text);
        exit(1);
    }
}

static inline void begin(const char *name) {
    begin_from(name, 0, 0);
}

static inline void end(void) {
    optimizer_free(model.optimizer);
    scaler_free(model.scaler);
    tensor_release(model.weight);
    recorder_free(model.recorder);
    run_free(model.run);
}

// One step with gradient x.
static bool train(double x, bool *stop) {
    Engine *engine = model.run->engine;
    Tensor *input = number(x), *loss = NULL, *scaled = NULL;
    optimizer_zero_grad(model.optimizer);
    BackwardOptions options = {0};
    bool done = input && (loss = op_two(engine, OP_mul, model.weight, input, NULL, &error)) &&
                (scaled = scaler_scale(model.scaler, loss, &error)) &&
                engine_backward(engine, scaled, NULL, &options, &error) &&
                scaler_step(model.scaler, model.optimizer, &error) &&
                scaler_update(model.scaler, 0, &error) &&
                run_log(model.run, "loss", loss, &error) && run_step_ended(model.run, stop, &error);
    tensor_release(input);
    tensor_release(loss);
    tensor_release(scaled);
    return done;
}

static inline void a_moment(void) {
    const struct timespec moment = {.tv_nsec = 5000000};
    nanosleep(&moment, NULL);
}

// Changes the file behind the recorder's back.
static inline void tamper(const char *sql) {
    sqlite3 *db;
    CHECK(sqlite3_open(path, &db) == SQLITE_OK);
    sqlite3_busy_timeout(db, 5000);
    int code = sqlite3_exec(db, sql, NULL, NULL, NULL);
    CHECK_MESSAGE(code == SQLITE_OK, "%s: %s", sql, sqlite3_errmsg(db));
    sqlite3_close(db);
}

static inline int64_t ask(const char *sql) {
    sqlite3 *db;
    sqlite3_stmt *statement;
    int64_t number = -1;
    CHECK(sqlite3_open(path, &db) == SQLITE_OK);
    sqlite3_busy_timeout(db, 5000);
    CHECK_MESSAGE(sqlite3_prepare_v2(db, sql, -1, &statement, NULL) == SQLITE_OK, "%s: %s", sql,
                  sqlite3_errmsg(db));
    if (sqlite3_step(statement) == SQLITE_ROW)
        number = sqlite3_column_int64(statement, 0);
    sqlite3_finalize(statement);
    sqlite3_close(db);
    return number;
}
