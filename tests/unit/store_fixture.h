// What the tests of store/ share: a folder that goes away at the end, a history in it, records.
#pragma once

#ifndef __clang__ // texts that are too long for a message of a test are cut on purpose
#pragma GCC diagnostic ignored "-Wformat-truncation"
#endif

#include <dirent.h>
#include <fcntl.h>
#include <sqlite3.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "store/runs.h"
#include "store/store_private.h"
#include "tests/folder.h"
#include "tests/test.h"

static char folder[TEST_FOLDER_SIZE];
static Error error;

static inline void remove_folder(void) {
    test_folder_remove(folder);
}

static inline void make_folder(void) {
    test_folder_in_memory();
    if (!test_folder_make(folder, sizeof folder))
        exit(1);
}

static inline const char *path_of(const char *name) {
    static char paths[4][256]; // a few at once
    static int next;
    char *path = paths[next++ % 4];
    snprintf(path, sizeof paths[0], "%s/%s", folder, name);
    return path;
}

// An empty history of that name.
static inline Store *fresh_store(const char *name) {
    static const char *const ends[] = {"", "-journal", "-wal", "-shm"};
    for (int i = 0; i < 4; i++) {
        char file[300];
        snprintf(file, sizeof file, "%s%s", path_of(name), ends[i]);
        unlink(file);
    }
    error = (Error){0};
    Store *store = store_open(path_of(name), STORE_WRITE, &error);
    if (!store) {
        printf("not ok fixture: %s\n", error.text);
        exit(1);
    }
    return store;
}

// What nobody measured is unknown.
static inline RunRecord some_run(const char *experiment, const char *precision) {
    RunRecord record = {.status = RUN_FINISHED,
                        .cast_share = NAN,
                        .energy_j = NAN,
                        .steps_per_s = NAN,
                        .samples_per_s = NAN,
                        .scale_last = 1,
                        .scale_min = 1,
                        .scale_max = 1,
                        .seed = 1};
    record.memory = (RecordMemory){RECORD_UNKNOWN, RECORD_UNKNOWN, RECORD_UNKNOWN, RECORD_UNKNOWN,
                                   RECORD_UNKNOWN, RECORD_UNKNOWN, RECORD_UNKNOWN};
    snprintf(record.experiment, sizeof record.experiment, "%s", experiment);
    snprintf(record.precision, sizeof record.precision, "%s", precision);
    snprintf(record.scale_rule, sizeof record.scale_rule, "dynamic");
    snprintf(record.device, sizeof record.device, "cpu");
    return record;
}

static inline int64_t add_run(Store *store, RunRecord record) {
    bool done = store_add_run(store, &record, NULL, 0, &error);
    CHECK_MESSAGE(done, "%s", error.text);
    return done ? record.id : 0;
}

// Runs SQL as another program would, on a connection of its own.
static inline void run_sql(const char *path, const char *sql) {
    sqlite3 *db = NULL;
    char *message = NULL;
    int code = sqlite3_open(path, &db);
    sqlite3_db_config(db, SQLITE_DBCONFIG_WRITABLE_SCHEMA, 1, NULL);
    if (code == SQLITE_OK)
        code = sqlite3_exec(db, sql, NULL, NULL, &message);
    CHECK_MESSAGE(code == SQLITE_OK, "%s: %s", sql, message ? message : "cannot be opened");
    sqlite3_free(message);
    sqlite3_close(db);
}

static inline int64_t ask_sql(const char *path, const char *sql) {
    sqlite3 *db = NULL;
    sqlite3_stmt *statement = NULL;
    int64_t value = -1;
    if (sqlite3_open(path, &db) == SQLITE_OK &&
        sqlite3_prepare_v2(db, sql, -1, &statement, NULL) == SQLITE_OK &&
        sqlite3_step(statement) == SQLITE_ROW)
        value = sqlite3_column_int64(statement, 0);
    sqlite3_finalize(statement);
    sqlite3_close(db);
    return value;
}

// The call fails with that code, in one line that has these parts.
#define CHECK_REFUSED(call, expected, ...)                                              \
    do {                                                                                \
        error = (Error){0};                                                             \
        bool refused_ = !(call);                                                        \
        CHECK_MESSAGE(refused_, "%s was accepted", #call);                              \
        CHECK_MESSAGE(error.code == (expected), "%s: code %d (%s)", #call, error.code,  \
                      error.text);                                                      \
        const char *const parts_[] = {__VA_ARGS__};                                     \
        for (size_t i_ = 0; i_ < sizeof parts_ / sizeof parts_[0]; i_++)                \
            CHECK_CONTAINS(error.text, parts_[i_]);                                     \
        CHECK_MESSAGE(!strchr(error.text, '\n'), "%s: more than one line", error.text); \
    } while (0)

#define CHECK_DONE(call)                                   \
    do {                                                   \
        error = (Error){0};                                \
        bool done_ = (call);                               \
        CHECK_MESSAGE(done_, "%s: %s", #call, error.text); \
    } while (0)
