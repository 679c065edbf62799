#include "cli/own_scripts.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { SCRIPT_MOST = 1 << 20 }; // bytes: what is longer is no script that anybody wrote

static bool is_lua(const char *name) {
    const size_t length = strlen(name), ending = strlen(".lua");
    return name[0] != '.' && name[0] != '-' && length > ending && length < EXPERIMENT_NAME_SIZE &&
           strcmp(name + length - ending, ".lua") == 0;
}

static bool declares_experiment(const char *path) {
    struct stat status;
    bool is_plain = stat(path, &status) == 0 && S_ISREG(status.st_mode);
    if (!is_plain || status.st_size > SCRIPT_MOST)
        return false;
    FILE *file = fopen(path, "re");
    char *text = file ? malloc(SCRIPT_MOST + 1) : NULL;
    if (text)
        text[fread(text, 1, SCRIPT_MOST, file)] = 0;
    bool does = text && strstr(text, ".experiment") != NULL;
    free(text);
    if (file)
        fclose(file);
    return does;
}

static bool ships(const char *path) {
    char name[EXPERIMENT_NAME_SIZE];
    return experiment_subject(path, name) == name;
}

static int compare_names(const void *a, const void *b) {
    return strcmp(((const ExperimentFile *)a)->name, ((const ExperimentFile *)b)->name);
}

ExperimentFile *own_scripts_list(int *count) {
    ExperimentFile *files = calloc(EXPERIMENT_MOST, sizeof *files);
    DIR *folder = files ? opendir(".") : NULL;
    const struct dirent *entry;
    *count = 0;
    while (folder && *count < EXPERIMENT_MOST && (entry = readdir(folder)) != NULL) {
        if (!is_lua(entry->d_name) || !declares_experiment(entry->d_name) || ships(entry->d_name))
            continue;
        ExperimentFile *file = &files[(*count)++];
        snprintf(file->name, sizeof file->name, "%s", entry->d_name);
        snprintf(file->path, sizeof file->path, "%s", entry->d_name);
    }
    if (folder)
        closedir(folder);
    if (files)
        qsort(files, (size_t)*count, sizeof *files, compare_names);
    return files;
}
