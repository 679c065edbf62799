// store/checkpoints.h: the rows of checkpoints. The files are run/'s; a row is added after its file
// is safe on the disk, and taken away before its file is removed.
#pragma once

#include "store/store.h"

typedef struct CheckpointRow {
    int64_t id, run, step;
    int segment;
    int64_t created_ms, bytes;
    char why[16];               // "asked", "periodic", "fork" (where it began as one), "stop",
                                // "end"; to be gone on from by their
                                // weights alone: "weights", of a run that was stopped in the middle
                                // of a step, "final", what a script left after the last step's
    char hash[65];              // SHA-256 of the file
    char file[STORE_PATH_SIZE]; // relative to store_checkpoint_root
} CheckpointRow;

bool store_add_checkpoint(Store *store, CheckpointRow *row, Error *error) MUST_CHECK; // sets id
// Those of the run in force (not superseded ones), by step; the caller frees the array.
bool store_list_checkpoints(Store *store, int64_t run, CheckpointRow **rows, int *count,
                            Error *error) MUST_CHECK;
// Those that a resume before them superseded: nobody loads them any more.
bool store_list_superseded_checkpoints(Store *store, int64_t run, CheckpointRow **rows, int *count,
                                       Error *error) MUST_CHECK;
// Whether its training state is missing: nothing goes on from there in place, nor as a fork.
bool checkpoint_has_weights_only(const CheckpointRow *row);
bool store_remove_checkpoint(Store *store, int64_t id, Error *error) MUST_CHECK;
