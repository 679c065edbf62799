// cli/history/checkpoint_files.h: the files of checkpoints, as rm, gc, export and fork handle them.
// The store lists only rows whose file lies below its folder of checkpoints.
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

// A folder of a process's own below that of checkpoints, for files that no run gets. It is locked
// as long as the process lives, so that gc knows one that was left behind.
typedef struct ScratchFolder {
    char path[STORE_PATH_SIZE + 16];
    int lock;
} ScratchFolder;

// `root`: store_checkpoint_root, which is made where it is not there yet.
bool scratch_folder_make(ScratchFolder *folder, const char *root, Error *error) MUST_CHECK;
void scratch_folder_remove(ScratchFolder *folder); // with all that lies in it
// Removes those whose process is gone, as checkpoint_files_remove does; counts the others.
bool scratch_folders_sweep(const Store *store, bool only_count, FilesRemoved *removed, int *in_use,
                           Error *error) MUST_CHECK;
