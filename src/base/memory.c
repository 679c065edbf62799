#include "base/memory.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

// A file with one number; 0 where there is none ("max").
static size_t read_limit(const char *path) {
    unsigned long long bytes = 0;
    FILE *file = fopen(path, "re");
    if (!file)
        return 0;
    if (fscanf(file, "%llu", &bytes) != 1)
        bytes = 0;
    fclose(file);
    return (size_t)bytes;
}

// The control group that this process is in, of version 2: "0::/user.slice/..".
static void find_group(char *group, size_t size) {
    char line[1024];
    group[0] = 0;
    FILE *file = fopen("/proc/self/cgroup", "re");
    if (!file)
        return;
    while (fgets(line, sizeof line, file))
        if (strncmp(line, "0::", 3) == 0) {
            line[strcspn(line, "\n")] = 0;
            snprintf(group, size, "%s", line + 3);
        }
    fclose(file);
}

size_t memory_of_machine(void) {
    char group[1024], path[1200];
    long pages = sysconf(_SC_PHYS_PAGES), size = sysconf(_SC_PAGE_SIZE);
    size_t least = pages > 0 && size > 0 ? (size_t)pages * (size_t)size : 0;
    find_group(group, sizeof group);
    for (;;) { // the limits of all groups above hold too
        snprintf(path, sizeof path, "/sys/fs/cgroup%s/memory.max", strcmp(group, "/") ? group : "");
        size_t limit = read_limit(path);
        if (limit > 0 && (least == 0 || limit < least))
            least = limit;
        char *slash = strrchr(group, '/');
        if (!slash)
            return least;
        *slash = 0;
    }
}
