// Checkpoints in the history: where their files lie, their rows, and how many are kept.
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "run/checkpoint.h"
#include "run/recorder.h"
#include "run/run_private.h"
#include "store/checkpoints.h"

enum { KEPT_AT_LEAST = 2 };

// Beside the history, as store_checkpoint_root says; the recorder's thread has the store.
static bool find_root(Store *store, void *context, Error *error) {
    (void)error;
    store_checkpoint_root(store, context);
    return true;
}

bool checkpoint_folder(Run *run, char *folder, size_t size, Error *error) {
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

// Periodic ones but the last are taken away: the row first, then the file.
static bool remove_older(Store *store, int64_t run, Error *error) {
    char root[STORE_PATH_SIZE], path[2 * STORE_PATH_SIZE + 2];
    CheckpointRow *rows;
    int count;
    store_checkpoint_root(store, root);
    if (!store_list_checkpoints(store, run, &rows, &count, error))
        return false;
    bool done = true;
    for (int i = 0; done && i < count - KEPT_AT_LEAST; i++) {
        if (strcmp(rows[i].why, "periodic") != 0)
            continue;
        done = store_remove_checkpoint(store, rows[i].id, error);
        snprintf(path, sizeof path, "%s/%s", root, rows[i].file);
        if (done)
            unlink(path);
    }
    free(rows);
    return done;
}

static bool add_row(Store *store, void *context, Error *error) {
    const Recording *recording = context;
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
    return store_add_checkpoint(store, &row, error) && remove_older(store, run->id, error);
}

bool checkpoint_record(Run *run, const CheckpointFile *file, Error *error) {
    Recording recording = {run, file};
    if (!recorder_call(run->recorder, add_row, &recording, error))
        return false;
    char text[EVENT_TEXT_SIZE];
    snprintf(text, sizeof text, "checkpoint of step %" PRId64 ", %.1f MB (%s)", file->step,
             (double)file->bytes / 1e6, file->why);
    run_record_event(run, EVENT_CHECKPOINT, "", (double)NAN, text);
    return true;
}
