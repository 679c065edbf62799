#include "cli/experiments.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/nearest.h"

#ifndef MPBENCH_DATADIR
#define MPBENCH_DATADIR "/usr/local/share/mpbench"
#endif

enum { MOST_FOLDERS = 5 };

typedef struct Folders {
    char path[MOST_FOLDERS][EXPERIMENT_PATH_SIZE];
    int count;
} Folders;

static void add_folder(Folders *folders, const char *base, const char *rest) {
    char *path = folders->path[folders->count];
    int length = snprintf(path, EXPERIMENT_PATH_SIZE, "%s%s", base, rest);
    if (length > 0 && length < EXPERIMENT_PATH_SIZE)
        folders->count++;
}

static void cut_last_name(char *path) {
    char *slash = strrchr(path, '/');
    if (slash)
        *slash = 0;
}

static void find_folders(Folders *folders) {
    folders->count = 0;
    const char *named = getenv("MPBENCH_EXPERIMENTS");
    if (named && named[0])
        add_folder(folders, named, "");
    char program[EXPERIMENT_PATH_SIZE];
    ssize_t length = readlink("/proc/self/exe", program, sizeof program - 1);
    if (length > 0) { // whole, and free of links
        program[length] = 0;
        cut_last_name(program);
        add_folder(folders, program, "/experiments");
        cut_last_name(program);
        add_folder(folders, program, "/experiments");
        add_folder(folders, program, "/share/mpbench/experiments");
    }
    add_folder(folders, MPBENCH_DATADIR, "/experiments");
}

static int compare_names(const void *a, const void *b) {
    return strcmp(((const ExperimentFile *)a)->name, ((const ExperimentFile *)b)->name);
}

static bool is_listed(const ExperimentFile *files, int count, const char *name) {
    for (int i = 0; i < count; i++)
        if (strcmp(files[i].name, name) == 0)
            return true;
    return false;
}

static int list_folder(const char *folder, ExperimentFile *files, int count) {
    static const char ending[] = ".lua";
    DIR *directory = opendir(folder);
    if (!directory)
        return count;
    const struct dirent *entry;
    while (count < EXPERIMENT_MOST && (entry = readdir(directory)) != NULL) {
        size_t length = strlen(entry->d_name);
        if (length <= sizeof ending - 1 || entry->d_name[0] == '.' ||
            strcmp(entry->d_name + length - (sizeof ending - 1), ending) != 0)
            continue;
        ExperimentFile *file = &files[count];
        length -= sizeof ending - 1;
        if (length >= sizeof file->name)
            continue;
        memcpy(file->name, entry->d_name, length);
        file->name[length] = 0;
        int used = snprintf(file->path, sizeof file->path, "%s/%s", folder, entry->d_name);
        if (used > 0 && used < (int)sizeof file->path && !is_listed(files, count, file->name))
            count++;
    }
    closedir(directory);
    return count;
}

ExperimentFile *experiment_list(int *count) {
    *count = 0;
    Folders *folders = malloc(sizeof *folders);
    ExperimentFile *files = calloc(EXPERIMENT_MOST, sizeof *files);
    if (folders && files) {
        find_folders(folders);
        for (int i = 0; i < folders->count; i++)
            *count = list_folder(folders->path[i], files, *count);
        qsort(files, (size_t)*count, sizeof *files, compare_names);
    }
    free(folders);
    return files;
}

static bool copy_path(char *path, size_t size, const char *found) {
    int length = snprintf(path, size, "%s", found);
    return length >= 0 && (size_t)length < size;
}

bool experiment_find_file(const char *name, char *path, size_t size) {
    Folders *folders = malloc(sizeof *folders);
    bool found = false;
    if (folders)
        find_folders(folders);
    for (int i = 0; folders && i < folders->count && !found; i++) {
        int length = snprintf(path, size, "%s/%s", folders->path[i], name);
        found = length > 0 && (size_t)length < size && access(path, R_OK) == 0;
    }
    free(folders);
    return found;
}

static bool is_folder(const char *name) {
    struct stat status;
    return stat(name, &status) == 0 && S_ISDIR(status.st_mode);
}

static bool fail_unknown(const ExperimentFile *files, int count, const char *name, Error *error) {
    char list[300] = "";
    size_t used = 0;
    Nearest nearest;
    nearest_begin(&nearest, name);
    for (int i = 0; i < count; i++) {
        nearest_offer(&nearest, files[i].name);
        if (used + strlen(files[i].name) + 2 < sizeof list)
            used += (size_t)snprintf(list + used, sizeof list - used, " %s", files[i].name);
    }
    if (is_folder(name))
        return error_fail(error, ERROR_USAGE,
                          "%.80s: a folder, not an experiment; give the path of a Lua file in it, "
                          "or the name of one that ships:%s",
                          name, list);
    if (access(name, F_OK) == 0)
        return error_fail(error, ERROR_USAGE,
                          "%.80s: a file, but no Lua experiment; give the path of one, whose name "
                          "ends in .lua, or the name of one that ships:%s",
                          name, list);
    if (count == 0)
        return error_fail(error, ERROR_USAGE,
                          "%.80s: no such experiment, and none are installed; give the path of a "
                          "Lua file or set MPBENCH_EXPERIMENTS to their folder",
                          name);
    return error_fail(error, ERROR_USAGE,
                      "%.80s: no such experiment or file%s%s%s; those that ship are:%s", name,
                      nearest.best ? "; did you mean " : "", nearest.best ? nearest.best : "",
                      nearest.best ? "?" : "", list);
}

bool experiment_find(const char *name, char *path, size_t size, Error *error) {
    const char *dot = strrchr(name, '.');
    bool is_path = strchr(name, '/') || (dot && strcmp(dot, ".lua") == 0);
    struct stat status;
    if (is_path && is_folder(name))
        return error_fail(error, ERROR_USAGE, "%.300s: a folder; give the path of a Lua file in it",
                          name);
    if (is_path && stat(name, &status) == 0)
        return copy_path(path, size, name) ||
               error_fail(error, ERROR_USAGE, "%.80s: the path is too long", name);
    if (is_path && strchr(name, '/'))
        return error_fail(error, ERROR_USAGE, "%.300s: no such file", name);
    int count;
    ExperimentFile *files = experiment_list(&count);
    bool found = false;
    for (int i = 0; files && i < count && !found; i++)
        found = strcmp(files[i].name, name) == 0 && copy_path(path, size, files[i].path);
    if (!found)
        fail_unknown(files, count, name, error);
    free(files);
    return found;
}
