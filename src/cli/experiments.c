#define _XOPEN_SOURCE 700 // realpath
#include "cli/experiments.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/nearest.h"
#include "base/spelling.h"
#include "cli/own_scripts.h"

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

static bool is_folder(const char *name) {
    struct stat status;
    return stat(name, &status) == 0 && S_ISDIR(status.st_mode);
}

// The name without its ending, behind that of its folder; false: no experiment's.
static bool name_of_file(const char *group, const char *file, char name[EXPERIMENT_NAME_SIZE]) {
    static const char ending[] = ".lua";
    const size_t length = strlen(file), cut = sizeof ending - 1;
    if (length <= cut || strcmp(file + length - cut, ending) != 0)
        return false;
    int used = snprintf(name, EXPERIMENT_NAME_SIZE, "%s%.*s", group, (int)(length - cut), file);
    return used > 0 && used < EXPERIMENT_NAME_SIZE;
}

// Those of a folder and, where `group` is empty, of the folders in it; otherwise that is the
// folder's name with a slash.
static int list_folder(const char *folder, const char *group, ExperimentFile *files, int count) {
    DIR *directory = opendir(folder);
    if (!directory)
        return count;
    const struct dirent *entry;
    while (count < EXPERIMENT_MOST && (entry = readdir(directory)) != NULL) {
        ExperimentFile *file = &files[count];
        int used = snprintf(file->path, sizeof file->path, "%s/%s", folder, entry->d_name);
        if (entry->d_name[0] == '.' || used <= 0 || used >= (int)sizeof file->path)
            continue;
        char inner[EXPERIMENT_NAME_SIZE], path[EXPERIMENT_PATH_SIZE];
        if (name_of_file(group, entry->d_name, file->name)) {
            count += !is_listed(files, count, file->name);
        } else if (!group[0] && is_folder(file->path)) {
            used = snprintf(inner, sizeof inner, "%s/", entry->d_name);
            memcpy(path, file->path, sizeof path); // its place is the next file's
            if (used < (int)sizeof inner)
                count = list_folder(path, inner, files, count);
        }
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
            *count = list_folder(folders->path[i], "", files, *count);
        qsort(files, (size_t)*count, sizeof *files, compare_names);
    }
    free(folders);
    return files;
}

bool experiment_group(const char *folder, char *names, size_t size) {
    const size_t length = strlen(folder);
    size_t used = 0;
    int count;
    ExperimentFile *files = experiment_list(&count);
    names[0] = 0;
    for (int i = 0; files && i < count && length > 0; i++)
        if (strncmp(files[i].name, folder, length) == 0 && files[i].name[length] == '/' &&
            used + strlen(files[i].name) + 2 < size)
            used += (size_t)snprintf(names + used, size - used, " %s", files[i].name);
    free(files);
    return used > 0;
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

// A script of this folder that may be meant, with or without its ending, where none that ships is
// nearer; "": none.
static void find_own_near(const char *name, const Nearest *shipped,
                          char near[EXPERIMENT_NAME_SIZE]) {
    int count;
    char wanted[EXPERIMENT_NAME_SIZE + 8];
    ExperimentFile *own = own_scripts_list(&count);
    const char *dot = strrchr(name, '.');
    snprintf(wanted, sizeof wanted, "%.*s%s", EXPERIMENT_NAME_SIZE, name,
             dot && strcmp(dot, ".lua") == 0 ? "" : ".lua");
    Nearest nearest;
    nearest_begin(&nearest, wanted);
    for (int i = 0; own && i < count; i++)
        nearest_offer(&nearest, own[i].name);
    const bool is_nearer = nearest.best && (!shipped->best || nearest.cost <= shipped->cost);
    snprintf(near, EXPERIMENT_NAME_SIZE, "%s", is_nearer ? nearest.best : "");
    free(own);
}

static bool fail_unknown(const ExperimentFile *files, int count, const char *name, Error *error) {
    char list[300] = "", own[EXPERIMENT_NAME_SIZE];
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
    find_own_near(name, &nearest, own);
    if (own[0])
        nearest.best = own;
    if (count == 0)
        return error_fail(error, ERROR_USAGE,
                          "%.80s: no such experiment%s%s%s none are installed; give the path of a "
                          "Lua file or set MPBENCH_EXPERIMENTS to their folder",
                          name, own[0] ? "; did you mean " : "", own, own[0] ? "? And" : ", and");
    return error_fail(error, ERROR_USAGE,
                      "%.80s: no such experiment or file%s%s%s that ship are:%s", name,
                      nearest.best ? "; did you mean " : "", nearest.best ? nearest.best : "",
                      nearest.best ? "? Those" : "; those", list);
}

// By its whole name, as its file or its runs spell it, or by what follows its folder's where that
// is nobody else's.
static const ExperimentFile *file_named(const ExperimentFile *files, int count, const char *name) {
    const ExperimentFile *found = NULL;
    int matches = 0;
    for (int i = 0; i < count; i++) {
        const char *slash = strrchr(files[i].name, '/');
        if (spelling_is_same(files[i].name, name))
            return &files[i];
        if (slash && spelling_is_same(slash + 1, name)) {
            found = &files[i];
            matches++;
        }
    }
    return matches == 1 ? found : NULL;
}

bool experiment_find(const char *name, char *path, size_t size, Error *error) {
    const char *dot = strrchr(name, '.');
    bool ends_in_lua = dot && strcmp(dot, ".lua") == 0;
    bool is_path = strchr(name, '/') || ends_in_lua; // or a name in a folder: gan/dcgan
    struct stat status;
    if (is_path && is_folder(name))
        return error_fail(error, ERROR_USAGE, "%.300s: a folder; give the path of a Lua file in it",
                          name);
    if (is_path && stat(name, &status) == 0)
        return copy_path(path, size, name) ||
               error_fail(error, ERROR_USAGE, "%.80s: the path is too long", name);
    if (ends_in_lua && strchr(name, '/'))
        return error_fail(error, ERROR_USAGE, "%.300s: no such file", name);
    int count;
    ExperimentFile *files = experiment_list(&count);
    const ExperimentFile *file = files ? file_named(files, count, name) : NULL;
    bool found = file && copy_path(path, size, file->path);
    if (!found)
        fail_unknown(files, count, name, error);
    free(files);
    return found;
}

void experiment_read_top(const char *path, char *text, size_t size) {
    char line[256];
    size_t used = 0;
    FILE *file = fopen(path, "re");
    text[0] = 0;
    while (file && fgets(line, sizeof line, file) && strncmp(line, "--", 2) == 0) {
        const char *said = line + 2 + (line[2] == ' ');
        size_t length = strlen(said);
        if (used + length >= size)
            break;
        memcpy(text + used, said, length + 1);
        used += length;
    }
    if (file)
        fclose(file);
}

const char *experiment_subject(const char *path, char name[EXPERIMENT_NAME_SIZE]) {
    char *own = realpath(path, NULL);
    int count = 0;
    bool ships = false;
    ExperimentFile *all = own ? experiment_list(&count) : NULL;
    for (int i = 0; i < count && !ships; i++) {
        char *other = realpath(all[i].path, NULL);
        ships = other && strcmp(other, own) == 0;
        if (ships)
            memcpy(name, all[i].name, EXPERIMENT_NAME_SIZE);
        free(other);
    }
    free(all);
    free(own);
    return ships ? name : path;
}
