// Checkpoints in the history: where their files lie, their rows, and how many are kept.
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "run/recorder.h"
#include "run/run_checkpoint.h"
#include "run/run_private.h"
#include "store/checkpoints.h"

enum { KEPT_AT_LEAST = 2 };

// Beside the history, as store_checkpoint_root says; the recorder's thread has the store.
static bool find_root(Store *store, void *context, Error *error) {
    (void)error;
    store_checkpoint_root(store, context);
    return true;
}

bool run_checkpoint_folder(Run *run, char *folder, size_t size, Error *error) {
    char root[STORE_PATH_SIZE];
    if (!recorder_call(run->recorder, find_root, root, error))
        return false;
    int length = snprintf(folder, size, "%s/%" PRId64, root, run->id);
    return length < (int)size ||
           error_fail(error, ERROR_FAILED, "checkpoint: the path of its folder is too long");
}

typedef struct Recording {
    const Run *run;
    const CheckpointFile *file;
} Recording;

typedef struct OlderRows {
    CheckpointRow *rows; // of which those at the front are gone
    int count;
} OlderRows;

// The rows of periodic ones but the last.
static bool remove_older(Store *store, int64_t run, OlderRows *older, Error *error) {
    int count, kept = 0;
    if (!store_list_checkpoints(store, run, &older->rows, &count, error))
        return false;
    for (int i = 0; i < count - KEPT_AT_LEAST; i++) {
        CheckpointRow *row = &older->rows[i];
        if (strcmp(row->why, "periodic") != 0)
            continue;
        if (!store_remove_checkpoint(store, row->id, error))
            return false;
        older->rows[kept++] = *row;
    }
    older->count = kept;
    return true;
}

// Rows without a file would be checkpoints that cannot be loaded: files go when that is settled.
static void unlink_older(const Store *store, const OlderRows *older) {
    char root[STORE_PATH_SIZE], path[2 * STORE_PATH_SIZE + 2];
    store_checkpoint_root(store, root);
    for (int i = 0; i < older->count; i++) {
        snprintf(path, sizeof path, "%s/%s", root, older->rows[i].file);
        unlink(path);
    }
}

// All or nothing: it is called again where a lock was held too long.
static bool add_row(Store *store, void *context, Error *error) {
    const Recording *recording = context;
    OlderRows older = {.count = 0};
    const Run *run = recording->run;
    const CheckpointFile *file = recording->file;
    CheckpointRow row = {.run = run->id,
                         .step = file->step,
                         .segment = recorder_segment(run->recorder),
                         .created_ms = run_wall_ms(),
                         .bytes = (int64_t)file->bytes};
    const char *name = strrchr(file->path, '/');
    snprintf(row.why, sizeof row.why, "%s", file->why);
    snprintf(row.hash, sizeof row.hash, "%s", file->hash);
    snprintf(row.file, sizeof row.file, "%" PRId64 "%s", run->id, name);
    if (!store_begin(store, error))
        return false;
    bool done =
        store_add_checkpoint(store, &row, error) && remove_older(store, run->id, &older, error);
    if (!done)
        store_rollback(store);
    else if ((done = store_commit(store, error)))
        unlink_older(store, &older);
    free(older.rows);
    return done;
}

bool run_record_checkpoint(Run *run, const CheckpointFile *file, Error *error) {
    Recording recording = {run, file};
    if (!recorder_call(run->recorder, add_row, &recording, error))
        return false;
    run->can_go_on |= strcmp(file->why, "weights") != 0 && strcmp(file->why, "final") != 0;
    char text[EVENT_TEXT_SIZE];
    snprintf(text, sizeof text, "checkpoint of step %" PRId64 ", %.1f MB (%s)", file->step,
             (double)file->bytes / 1e6, file->why);
    run_record_event(run, EVENT_CHECKPOINT, "", (double)NAN, text);
    return true;
}
