// tests/folder.h: a folder of a test's own, below TMPDIR, and its removal with all that is in it.
#pragma once

#include <dirent.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { TEST_FOLDER_SIZE = 64 }; // of a path that has room for a usual TMPDIR

// Makes a folder that nobody else has; where that fails it says why.
static inline bool test_folder_make(char *path, size_t size) {
    const char *parent = getenv("TMPDIR");
    int length = snprintf(path, size, "%s/mpbench-XXXXXX", parent && *parent ? parent : "/tmp");
    if (length > 0 && (size_t)length < size && mkdtemp(path))
        return true;
    printf("not ok folder: none can be made as %s: set TMPDIR to another place\n", path);
    return false;
}

// For tests that commit thousands of times: in memory where there is such a place and no TMPDIR.
static inline void test_folder_in_memory(void) {
    if (access("/dev/shm", W_OK | X_OK) == 0)
        setenv("TMPDIR", "/dev/shm", 0);
}

// Links are removed, and what they lead to stays.
static inline void test_folder_remove(const char *path) {
    DIR *entries = opendir(path);
    for (struct dirent *entry; entries && (entry = readdir(entries)) != NULL;) {
        char inner[4096];
        struct stat status;
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        int length = snprintf(inner, sizeof inner, "%s/%s", path, entry->d_name);
        if (length < 0 || (size_t)length >= sizeof inner || lstat(inner, &status) != 0)
            continue;
        if (S_ISDIR(status.st_mode))
            test_folder_remove(inner);
        else
            unlink(inner);
    }
    if (entries)
        closedir(entries);
    rmdir(path);
}
