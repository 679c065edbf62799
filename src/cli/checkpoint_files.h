// cli/checkpoint_files.h: the files of checkpoints, as rm, gc and export handle them. The store
// lists only rows whose file lies below its folder of checkpoints.
#pragma once

#include "store/checkpoints.h"

typedef struct FilesRemoved {
    int count;
    int64_t bytes;
} FilesRemoved;

enum { CHECKPOINT_FILE_SIZE = 2 * STORE_PATH_SIZE + 2 };

void checkpoint_file_path(const Store *store, const CheckpointRow *row,
                          char path[CHECKPOINT_FILE_SIZE]);
// Removes the plain files in the folder of a run but those that the rows name, and the folder when
// nothing is left in it. `only_count` leaves all of them. No folder is no error.
bool checkpoint_files_remove(const Store *store, int64_t run, const CheckpointRow *kept, int count,
                             bool only_count, FilesRemoved *removed, Error *error) MUST_CHECK;
// The runs that have a folder; the caller frees the array.
bool checkpoint_folders(const Store *store, int64_t **runs, int *count, Error *error) MUST_CHECK;
