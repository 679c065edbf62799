// Rows of checkpoints.
#include "store/checkpoints.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "store/store_private.h"

bool store_add_checkpoint(Store *store, CheckpointRow *row, Error *error) {
    Query query;
    if (!query_begin(&query, store,
                     "INSERT INTO checkpoints (run, segment, step, created_ms, why, bytes, hash,"
                     " file) VALUES (?, ?, ?, ?, ?, ?, ?, ?) RETURNING id",
                     error))
        return false;
    query_put_integer(&query, row->run);
    query_put_integer(&query, row->segment);
    query_put_integer(&query, row->step);
    query_put_integer(&query, row->created_ms);
    query_put_text(&query, row->why);
    query_put_integer(&query, row->bytes);
    query_put_text(&query, row->hash);
    query_put_text(&query, row->file);
    while (query_next(&query))
        row->id = query_integer(&query, 0);
    return query_end(&query, "the checkpoint cannot be kept", error);
}

// A path that stays below the folder of checkpoints. Others, which no mpbench wrote, are not
// offered: somebody would read or remove the file that they name.
static bool is_inside(const char *file) {
    if (!file[0] || file[0] == '/')
        return false;
    for (const char *part = file; part; part = strchr(part, '/')) {
        part += *part == '/';
        size_t length = strcspn(part, "/");
        if (length == 2 && part[0] == '.' && part[1] == '.')
            return false;
    }
    return true;
}

static void get_row(Query *query, CheckpointRow *row) {
    *row = (CheckpointRow){0};
    row->id = query_integer(query, 0);
    row->run = query_integer(query, 1);
    row->segment = (int)query_integer(query, 2);
    row->step = query_integer(query, 3);
    row->created_ms = query_integer(query, 4);
    row->bytes = query_integer(query, 5);
    query_text(query, 6, row->why, sizeof row->why);
    query_text(query, 7, row->hash, sizeof row->hash);
    query_text(query, 8, row->file, sizeof row->file);
}

static bool read_rows(Store *store, int64_t run, const Lineage *lineage, bool superseded,
                      CheckpointRow **rows, int *count, Error *error) {
    Query query;
    int capacity = 0;
    if (!query_begin(&query, store,
                     "SELECT id, run, segment, step, created_ms, bytes, why, hash, file"
                     " FROM checkpoints WHERE run = ? ORDER BY step, id",
                     error))
        return false;
    query_put_integer(&query, run);
    while (query_next(&query)) {
        if (!is_inside(query_word(&query, 8)) ||
            lineage_supersedes(lineage, query_integer(&query, 2), query_integer(&query, 3)) !=
                superseded)
            continue;
        if (!store_grow((void **)rows, *count, &capacity, sizeof **rows, error)) {
            query_drop(&query);
            return false;
        }
        get_row(&query, &(*rows)[(*count)++]);
    }
    return query_end(&query, "the checkpoints of the run cannot be read", error);
}

static bool list(Store *store, int64_t run, bool superseded, CheckpointRow **rows, int *count,
                 Error *error) {
    Lineage lineage = {0};
    *rows = NULL;
    *count = 0;
    if (!store_begin_reading(store, error))
        return false;
    bool done = lineage_read(&lineage, store, run, error) &&
                read_rows(store, run, &lineage, superseded, rows, count, error);
    store_end_reading(store);
    lineage_clear(&lineage);
    if (!done) {
        free(*rows);
        *rows = NULL;
        *count = 0;
    }
    return done;
}

bool checkpoint_has_weights_only(const CheckpointRow *row) {
    return strcmp(row->why, "weights") == 0 || strcmp(row->why, "final") == 0;
}

bool store_list_checkpoints(Store *store, int64_t run, CheckpointRow **rows, int *count,
                            Error *error) {
    return list(store, run, false, rows, count, error);
}

bool store_list_superseded_checkpoints(Store *store, int64_t run, CheckpointRow **rows, int *count,
                                       Error *error) {
    return list(store, run, true, rows, count, error);
}

bool store_remove_checkpoint(Store *store, int64_t id, Error *error) {
    Query query;
    if (!query_begin(&query, store, "DELETE FROM checkpoints WHERE id = ?", error))
        return false;
    query_put_integer(&query, id);
    query_next(&query);
    int64_t changes = query_changes(&query);
    if (!query_end(&query, "the checkpoint cannot be removed", error))
        return false;
    return changes > 0 ||
           error_fail(error, ERROR_USAGE, "no checkpoint %" PRId64 ": see mpbench show", id);
}
