// Which files are the history's own, so that nobody writes over them.
#define _XOPEN_SOURCE 700 // realpath
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "store/store_private.h"

// What follows the name of the history's file; the copies that migrations make have a number more.
static const char *const endings[] = {"", "-journal", "-wal", "-shm"};
static const char copy_ending[] = ".backup-v";

static bool is_same_file(const char *path, const char *other) {
    struct stat first, second;
    return stat(path, &first) == 0 && stat(other, &second) == 0 && first.st_dev == second.st_dev &&
           first.st_ino == second.st_ino;
}

// The name without links; what is not there yet is one in the folder that it would lie in.
static bool find_real(const char *path, char real[PATH_MAX]) {
    char folder[PATH_MAX];
    if (realpath(path, real))
        return true;
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    int length = slash ? (int)(slash - path) + 1 : 1;
    int used = snprintf(folder, sizeof folder, "%.*s", length, slash ? path : ".");
    if (used < 0 || (size_t)used >= sizeof folder || !realpath(folder, real))
        return false;
    size_t at = strlen(real);
    used = snprintf(real + at, PATH_MAX - at, "%s%s", at > 1 ? "/" : "", name);
    return used >= 0 && (size_t)used < PATH_MAX - at;
}

bool own_is_beside(const char *path, char base[STORE_PATH_SIZE]) {
    size_t length = strlen(path);
    for (size_t i = 1; i < sizeof endings / sizeof *endings; i++) {
        size_t ending = strlen(endings[i]);
        if (length <= ending || length - ending >= STORE_PATH_SIZE ||
            strcmp(path + length - ending, endings[i]) != 0)
            continue;
        snprintf(base, STORE_PATH_SIZE, "%.*s", (int)(length - ending), path);
        struct stat status;
        if (stat(base, &status) == 0)
            return true;
    }
    return false;
}

bool store_owns(const Store *store, const char *path) {
    char real[PATH_MAX], own[STORE_PATH_SIZE + 16], root[STORE_PATH_SIZE], real_root[PATH_MAX];
    bool has_real = find_real(path, real);
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++) {
        snprintf(own, sizeof own, "%s%s", store->path, endings[i]);
        if (is_same_file(path, own) || (has_real && strcmp(real, own) == 0))
            return true;
    }
    snprintf(own, sizeof own, "%s%s", store->path, copy_ending);
    if (has_real && strncmp(real, own, strlen(own)) == 0)
        return true;
    store_checkpoint_root(store, root);
    if (!has_real || !find_real(root, real_root))
        return false;
    size_t length = strlen(real_root);
    return strncmp(real, real_root, length) == 0 && (real[length] == '/' || real[length] == 0);
}
