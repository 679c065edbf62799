#include "base/kept.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { PATH_SIZE = 4096, NAME_SIZE = 64, LINE_SIZE = 256, LARGEST_FILE = 16 << 10 };

// Makes the folders above the file, too.
static bool find_file(const char *subject, char path[PATH_SIZE]) {
    const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    bool is_named = cache && cache[0] == '/';
    if (!is_named && (!home || home[0] != '/'))
        return false;
    int used = snprintf(path, PATH_SIZE - NAME_SIZE, "%s%s", is_named ? cache : home,
                        is_named ? "" : "/.cache");
    if (used < 0 || used >= PATH_SIZE - NAME_SIZE)
        return false;
    (void)mkdir(path, 0700); // where one is there already, or cannot be made, opening tells
    snprintf(path + used, NAME_SIZE, "/mpbench");
    (void)mkdir(path, 0700);
    snprintf(path + used, NAME_SIZE, "/mpbench/%s", subject);
    return true;
}

bool kept_read(const char *subject, const char *what, const char *of, double *figure) {
    char path[PATH_SIZE], line[LINE_SIZE], word[NAME_SIZE];
    FILE *file = find_file(subject, path) ? fopen(path, "r") : NULL;
    bool found = false;
    while (file && fgets(line, sizeof line, file)) {
        int name = 0;
        double value;
        line[strcspn(line, "\n")] = 0;
        if (sscanf(line, "%63s %lf %n", word, &value, &name) == 2 && name > 0 && isfinite(value) &&
            strcmp(word, what) == 0 && strcmp(line + name, of) == 0) {
            *figure = value;
            found = true;
        }
    }
    if (file)
        fclose(file);
    return found;
}

void kept_write(const char *subject, const char *what, const char *of, double figure) {
    char path[PATH_SIZE];
    struct stat about;
    if (!isfinite(figure) || !find_file(subject, path))
        return;
    bool is_full = stat(path, &about) == 0 && about.st_size > LARGEST_FILE;
    FILE *file = fopen(path, is_full ? "w" : "a");
    if (!file)
        return;
    fprintf(file, "%s %.1f %s\n", what, figure, of);
    fclose(file);
}
