// tests/screen/home_place.h: the home screen on a history of four runs, for the programs that test
// it. Nothing trains here.
#pragma once

#include <math.h>
#include <unistd.h>

#include "store/runs.h"
#include "tests/screen/place.h"

static inline void add_run(Store *store, const char *experiment, const char *precision) {
    Error error;
    RunRecord record = {.status = RUN_FINISHED,
                        .step = 10,
                        .total_steps = 10,
                        .steps_per_s = NAN,
                        .samples_per_s = NAN,
                        .cast_share = NAN,
                        .energy_j = NAN,
                        .created_ms = 1795245000000};
    record.memory = (RecordMemory){RECORD_UNKNOWN, RECORD_UNKNOWN, RECORD_UNKNOWN, RECORD_UNKNOWN,
                                   RECORD_UNKNOWN, RECORD_UNKNOWN, RECORD_UNKNOWN};
    snprintf(record.experiment, sizeof record.experiment, "%s", experiment);
    snprintf(record.precision, sizeof record.precision, "%s", precision);
    snprintf(record.device, sizeof record.device, "cpu");
    CHECK_MESSAGE(store_add_run(store, &record, NULL, 0, &error), "%s", error.text);
}

// alpha-1 and alpha-2 in fp32, beta-3 in bf16, gamma-4 in fp16.
static inline void make_history(void) {
    static const char *const runs[][2] = {
        {"alpha", "fp32"}, {"alpha", "fp32"}, {"beta", "bf16"}, {"gamma", "fp16"}};
    Error error;
    unlink(history_path);
    Store *store = store_open(history_path, STORE_WRITE, &error);
    CHECK_MESSAGE(store != NULL, "%s", error.text);
    for (int i = 0; store && i < 4; i++)
        add_run(store, runs[i][0], runs[i][1]);
    store_close(store);
}

static inline int count_runs(void) {
    Error error;
    RunFilter all = {.words = NULL};
    RunRecord *runs = NULL;
    int count = -1;
    Store *store = store_open(history_path, STORE_READ, &error);
    if (store && store_list_runs(store, &all, &runs, &count, &error))
        store_free_runs(runs, count);
    store_close(store);
    return count;
}

// On the history as it is.
static inline void show_home(int columns, int rows) {
    static const char *const nothing[] = {NULL};
    const char *environment[] = {database, "MPBENCH_SCREEN_CLOCK=" SCREEN_CLOCK, NULL};
    shown_start(&shown, columns, rows, environment, nothing);
    expect("gamma");
}

static inline void open_home(int columns, int rows) {
    make_history();
    show_home(columns, rows);
}
