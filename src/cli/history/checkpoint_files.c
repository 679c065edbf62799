#include "cli/history/checkpoint_files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

void checkpoint_file_path(const Store *store, const CheckpointRow *row,
                          char path[CHECKPOINT_FILE_SIZE]) {
    char root[STORE_PATH_SIZE];
    store_checkpoint_root(store, root);
    snprintf(path, CHECKPOINT_FILE_SIZE, "%s/%s", root, row->file);
}

static bool is_kept(const CheckpointRow *kept, int count, int64_t run, const char *name) {
    char file[STORE_PATH_SIZE];
    int length = snprintf(file, sizeof file, "%" PRId64 "/%s", run, name);
    for (int i = 0; i < count; i++)
        if (length < (int)sizeof file && strcmp(kept[i].file, file) == 0)
            return true;
    return false;
}

// The plain files of the opened folder, which is closed. `run` and what is kept of it: as above.
static bool remove_files(int opened, const char *folder, int64_t run, const CheckpointRow *kept,
                         int count, bool only_count, FilesRemoved *removed, Error *error) {
    DIR *entries = fdopendir(opened);
    if (!entries) {
        close(opened);
        return error_fail(error, ERROR_MEMORY, "no memory to read %.300s", folder);
    }
    bool done = true;
    for (struct dirent *entry; done && (entry = readdir(entries));) {
        struct stat about;
        if (fstatat(opened, entry->d_name, &about, AT_SYMLINK_NOFOLLOW) != 0 ||
            !S_ISREG(about.st_mode) || is_kept(kept, count, run, entry->d_name))
            continue;
        if (!only_count && unlinkat(opened, entry->d_name, 0) != 0 && errno != ENOENT)
            done = error_fail(error, ERROR_FAILED, "%.300s/%.100s: %s", folder, entry->d_name,
                              error_cause(errno));
        removed->count += done;
        removed->bytes += done ? (int64_t)about.st_size : 0;
    }
    if (!only_count)
        rmdir(folder); // stays where something lies in it
    closedir(entries);
    return done;
}

// The folder itself, not what a link in its place points to.
static int open_folder(const char *folder) {
    return open(folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

bool checkpoint_files_remove(const Store *store, int64_t run, const CheckpointRow *kept, int count,
                             bool only_count, FilesRemoved *removed, Error *error) {
    char root[STORE_PATH_SIZE], folder[STORE_PATH_SIZE + 24];
    store_checkpoint_root(store, root);
    snprintf(folder, sizeof folder, "%s/%" PRId64, root, run);
    int opened = open_folder(folder);
    if (opened < 0)
        return errno == ENOENT ||
               error_fail(error, ERROR_FAILED, "%.300s: %s", folder, error_cause(errno));
    return remove_files(opened, folder, run, kept, count, only_count, removed, error);
}

// *entries NULL: there is no folder of checkpoints.
static bool open_root(const char *root, DIR **entries, Error *error) {
    *entries = opendir(root);
    return *entries || errno == ENOENT ||
           error_fail(error, ERROR_FAILED, "%.300s: %s", root, error_cause(errno));
}

bool checkpoint_folders(const Store *store, int64_t **runs, int *count, Error *error) {
    char root[STORE_PATH_SIZE];
    *runs = NULL;
    *count = 0;
    store_checkpoint_root(store, root);
    DIR *entries;
    if (!open_root(root, &entries, error))
        return false;
    bool done = true;
    for (struct dirent *entry; entries && done && (entry = readdir(entries));) {
        char *end;
        errno = 0;
        long long run = strtoll(entry->d_name, &end, 10);
        char plain[24]; // "007" is nobody's folder
        snprintf(plain, sizeof plain, "%lld", run);
        if (*end || run <= 0 || errno != 0 || strcmp(plain, entry->d_name) != 0)
            continue;
        int64_t *grown = realloc(*runs, (size_t)(*count + 1) * sizeof *grown);
        if (!grown) {
            done = error_fail(error, ERROR_MEMORY, "no memory to list %.300s", root);
            break;
        }
        *runs = grown;
        grown[(*count)++] = run;
    }
    if (entries)
        closedir(entries);
    if (!done) {
        free(*runs);
        *runs = NULL;
    }
    return done;
}

// ---- scratch folders ----------------------------------------------------------------------------

static const char scratch_prefix[] = "scratch-";

bool scratch_folder_make(ScratchFolder *folder, const char *root, Error *error) {
    struct stat about;
    if (mkdir(root, 0700) != 0 && errno != EEXIST)
        return error_fail(error, ERROR_HISTORY, "cannot make the folder %.300s: %s", root,
                          error_cause(errno));
    // A number that another process had may be taken, by what it left.
    for (int number = 1;; number++) {
        snprintf(folder->path, sizeof folder->path, "%s/%s%d", root, scratch_prefix, number);
        int failed = mkdir(folder->path, 0700);
        if (failed && errno == EEXIST)
            continue;
        folder->lock = failed ? -1 : open_folder(folder->path);
        if (!failed && folder->lock < 0 && errno == ENOENT) // gc came before it was opened
            continue;
        if (folder->lock < 0 || flock(folder->lock, LOCK_EX) != 0 ||
            fstat(folder->lock, &about) != 0) {
            error_fail(error, ERROR_HISTORY, "cannot make the folder %.300s: %s", folder->path,
                       error_cause(errno));
            if (folder->lock >= 0)
                scratch_folder_remove(folder);
            return false;
        }
        if (about.st_nlink > 0) // else gc came before the lock
            return true;
        close(folder->lock);
    }
}

void scratch_folder_remove(ScratchFolder *folder) {
    Error ignored = {0}; // gc takes what stays
    FilesRemoved removed = {.count = 0};
    (void)!remove_files(folder->lock, folder->path, 0, NULL, 0, false, &removed, &ignored);
}

bool scratch_folders_sweep(const Store *store, bool only_count, FilesRemoved *removed, int *in_use,
                           Error *error) {
    char root[STORE_PATH_SIZE], path[STORE_PATH_SIZE + NAME_MAX + 2];
    DIR *entries;
    store_checkpoint_root(store, root);
    if (!open_root(root, &entries, error))
        return false;
    bool done = true;
    for (struct dirent *entry; entries && done && (entry = readdir(entries));) {
        if (strncmp(entry->d_name, scratch_prefix, sizeof scratch_prefix - 1) != 0)
            continue;
        snprintf(path, sizeof path, "%s/%s", root, entry->d_name);
        int opened = open_folder(path);
        if (opened < 0) // no folder, or gone meanwhile
            continue;
        if (flock(opened, LOCK_EX | LOCK_NB) == 0) {
            done = remove_files(opened, path, 0, NULL, 0, only_count, removed, error);
        } else {
            close(opened);
            ++*in_use;
        }
    }
    if (entries)
        closedir(entries);
    return done;
}
