#define _DEFAULT_SOURCE // scandir
#include "cli/own_scripts.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/sanitize.h"

enum { SCRIPT_MOST = 1 << 20 }; // bytes: what is longer is no script that anybody wrote

static int may_be_listed(const struct dirent *entry) {
    const char *name = entry->d_name;
    const size_t length = strlen(name), ending = strlen(".lua");
    char shown[4 * EXPERIMENT_NAME_SIZE];
    if (name[0] == '.' || name[0] == '-' || length >= EXPERIMENT_NAME_SIZE || length <= ending ||
        strcmp(name + length - ending, ".lua") != 0)
        return 0;
    sanitize_line(shown, sizeof shown, name, length);
    return strcmp(shown, name) == 0;
}

static bool declares_experiment(const char *path) {
    struct stat status;
    const bool is_plain = stat(path, &status) == 0 && S_ISREG(status.st_mode);
    if (!is_plain || status.st_size > SCRIPT_MOST)
        return false;
    FILE *file = fopen(path, "re");
    char *text = file ? malloc(SCRIPT_MOST + 1) : NULL;
    if (text)
        text[fread(text, 1, SCRIPT_MOST, file)] = 0;
    const bool does = text && strstr(text, ".experiment") != NULL;
    free(text);
    if (file)
        fclose(file);
    return does;
}

bool own_scripts_is(const char *name, const char *path) {
    struct stat here, there;
    return stat(name, &here) == 0 && stat(path, &there) == 0 && here.st_dev == there.st_dev &&
           here.st_ino == there.st_ino;
}

static bool ships(const ExperimentFile *shipped, int count, const char *name) {
    for (int i = 0; i < count; i++)
        if (own_scripts_is(name, shipped[i].path))
            return true;
    return false;
}

ExperimentFile *own_scripts_list(int *count) {
    int shipped_count = 0;
    struct dirent **entries = NULL;
    const int entry_count = scandir(".", &entries, may_be_listed, alphasort);
    ExperimentFile *files = calloc(EXPERIMENT_MOST, sizeof *files);
    ExperimentFile *shipped = entry_count > 0 ? experiment_list(&shipped_count) : NULL;
    *count = 0;
    for (int i = 0; i < entry_count; i++) {
        const char *name = entries[i]->d_name;
        if (files && *count < EXPERIMENT_MOST && declares_experiment(name) &&
            !ships(shipped, shipped_count, name)) {
            ExperimentFile *file = &files[(*count)++];
            snprintf(file->name, sizeof file->name, "%.*s", EXPERIMENT_NAME_SIZE - 1, name);
            snprintf(file->path, sizeof file->path, "%s", file->name);
        }
        free(entries[i]);
    }
    free(entries);
    free(shipped);
    return files;
}
