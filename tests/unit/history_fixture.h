// A history in a folder of its own, with one run in it, for tests of what is kept of a run.
#pragma once

#include <stdint.h>
#include <unistd.h>

#include "store/store_private.h"
#include "tests/folder.h"
#include "tests/test.h"

typedef struct History {
    char folder[TEST_FOLDER_SIZE], path[96];
    Store *store;
    int64_t run;
} History;

static inline bool history_execute(History *history, const char *sql) {
    char *why = NULL;
    if (sqlite3_exec(history->store->db, sql, NULL, NULL, &why) == SQLITE_OK)
        return true;
    CHECK_MESSAGE(false, "%s: %s", sql, why);
    sqlite3_free(why);
    return false;
}

static inline int64_t history_number(History *history, const char *sql) {
    sqlite3_stmt *statement;
    int64_t number = -1;
    if (sqlite3_prepare_v2(history->store->db, sql, -1, &statement, NULL) != SQLITE_OK)
        return -1;
    if (sqlite3_step(statement) == SQLITE_ROW)
        number = sqlite3_column_int64(statement, 0);
    sqlite3_finalize(statement);
    return number;
}

static inline bool history_open(History *history) {
    Error error = {0};
    *history = (History){.run = 1};
    if (!test_folder_make(history->folder, sizeof history->folder)) {
        CHECK_MESSAGE(false, "no folder for the test");
        return false;
    }
    snprintf(history->path, sizeof history->path, "%s/history.db", history->folder);
    history->store = store_open(history->path, STORE_WRITE, &error);
    CHECK_MESSAGE(history->store != NULL, "%s", error.text);
    return history->store && history_execute(history, "PRAGMA synchronous = OFF") &&
           history_execute(history,
                           "INSERT INTO runs (id, name, experiment, status, precision, scale_rule, "
                           "device, device_name, threads, seed, step, applied, skipped, wall_s, "
                           "created_ms) VALUES (1, 'a', 'a', 'running', 'fp16', 'none', 'cpu', '', "
                           "1, 1, 0, 0, 0, 0, 0)");
}

static inline void history_close(History *history) {
    store_close(history->store);
    test_folder_remove(history->folder);
}

static inline uint64_t history_random(uint64_t *state) { // splitmix64
    uint64_t mixed = *state += 0x9e3779b97f4a7c15u;
    mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9u;
    mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111ebu;
    return mixed ^ (mixed >> 31);
}

static inline int64_t history_below(uint64_t *state, int64_t bound) {
    return (int64_t)(history_random(state) % (uint64_t)bound);
}
