#include "base/whole_path.h"

#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/utf8.h"

void whole_path(char *text, size_t size, const char *path) {
    char folder[PATH_MAX];
    const bool is_relative = path[0] != '/' && getcwd(folder, sizeof folder) != NULL;
    const bool fits = is_relative && strlen(folder) + strlen(path) + 1 < size;
    const char *from = strncmp(path, "./", 2) == 0 ? path + 2 : path;
    if (fits)
        snprintf(text, size, "%s%s%s", folder, folder[1] ? "/" : "", from);
    else
        utf8_copy(text, size, path);
}
