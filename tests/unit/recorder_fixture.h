// tests/unit/recorder_fixture.h: a run of a model of one weight, recorded in a history of its own.
#pragma once

#include <sqlite3.h>
#include <time.h>
#include <unistd.h>

#include "run/recorder_private.h"
#include "store/runs.h"
#include "store/store_private.h"
#include "tests/folder.h"
#include "tests/unit/run_fixture.h"

static char told[900]; // so far
static char folder[TEST_FOLDER_SIZE], path[128];

static inline void make_place(void) {
    test_folder_in_memory();
    if (!test_folder_make(folder, sizeof folder))
        exit(1);
    snprintf(path, sizeof path, "%s/history.db", folder);
}

static inline int end_tests(void) {
    test_folder_remove(folder);
    return test_end();
}

static void on_event(void *context, const Run *run, const char *text) {
    (void)context, (void)run;
    size_t used = strlen(told);
    snprintf(told + used, sizeof told - used, "%s\n", text);
}

// As model_open, with a recorder.
static inline bool try_begin(const char *name, int64_t resumes, int64_t from) {
    static const RecordOption typed[] = {{"precision", "fp32"}, {"set", "lr=1"}};
    const RunOptions options = {.device = "ref",
                                .seed = 1,
                                .name = name,
                                .typed = typed,
                                .typed_count = 2,
                                .resumes = resumes,
                                .from = from};
    told[0] = 0;
    if (!model_open(&options) ||
        !(model.recorder = model.run->recorder = recorder_new(path, &error)))
        return false;
    model.run->observer = (RunObserver){.event = on_event};
    run_set_script(model.run, "tiny.lua", "abc", "return 1", 8);
    return run_configure(model.run, "tiny", "fp32", NULL, 0, &error) && model_build();
}

static inline void begin_from(const char *name, int64_t resumes, int64_t from) {
    model_must(try_begin(name, resumes, from));
}

static inline void begin(const char *name) {
    begin_from(name, 0, 0);
}

static inline void end(void) {
    model_close();
}

static inline bool set_waiting(Store *store, void *seconds, Error *why) {
    (void)why;
    store->wait_seconds = *(const double *)seconds;
    return true;
}

// From here on the recorder's store looks at a lock for so long at a time, instead of 5 s.
static inline void hurry(void) {
    double seconds = 0.05;
    CHECK_MESSAGE(recorder_call(model.recorder, set_waiting, &seconds, &error), "%s", error.text);
}

static bool train(double x, bool *stop) {
    return model_step(x, true, stop);
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

// Work for the recorder's thread: a note of the run whose number `context` is.
static inline bool write_note(Store *store, void *context, Error *why) {
    return store_set_note(store, *(int64_t *)context, "from the thread", why);
}
