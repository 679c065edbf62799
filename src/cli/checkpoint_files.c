#include "cli/checkpoint_files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
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

bool checkpoint_files_remove(const Store *store, int64_t run, const CheckpointRow *kept, int count,
                             bool only_count, FilesRemoved *removed, Error *error) {
    char root[STORE_PATH_SIZE], folder[STORE_PATH_SIZE + 24];
    store_checkpoint_root(store, root);
    snprintf(folder, sizeof folder, "%s/%" PRId64, root, run);
    // The folder itself, not what a link in its place points to.
    int opened = open(folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (opened < 0)
        return errno == ENOENT ||
               error_fail(error, ERROR_FAILED, "%.300s: %s", folder, strerror(errno));
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
                              strerror(errno));
        removed->count += done;
        removed->bytes += done ? (int64_t)about.st_size : 0;
    }
    closedir(entries);
    if (!only_count)
        rmdir(folder); // stays where something lies in it
    return done;
}

bool checkpoint_folders(const Store *store, int64_t **runs, int *count, Error *error) {
    char root[STORE_PATH_SIZE];
    *runs = NULL;
    *count = 0;
    store_checkpoint_root(store, root);
    DIR *entries = opendir(root);
    if (!entries)
        return errno == ENOENT ||
               error_fail(error, ERROR_FAILED, "%.300s: %s", root, strerror(errno));
    bool done = true;
    for (struct dirent *entry; done && (entry = readdir(entries));) {
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
    closedir(entries);
    if (!done) {
        free(*runs);
        *runs = NULL;
    }
    return done;
}
