#include "base/spare.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// The number behind `field` in a file of the system's; UINT64_MAX where there is none.
static uint64_t number_in(const char *path, const char *field) {
    uint64_t value = UINT64_MAX;
    char line[128];
    FILE *file = fopen(path, "re");
    while (file && value == UINT64_MAX && fgets(line, sizeof line, file)) {
        const char *number = line + strlen(field);
        if (strncmp(line, field, strlen(field)) == 0 && strpbrk(number, "0123456789"))
            value = strtoull(number, NULL, 10);
    }
    if (file)
        fclose(file);
    return value;
}

// What the group of processes that this one belongs to may still take, in a container.
static uint64_t left_to_group(void) {
    uint64_t most = number_in("/sys/fs/cgroup/memory.max", "");
    uint64_t now = number_in("/sys/fs/cgroup/memory.current", "");
    uint64_t files = number_in("/sys/fs/cgroup/memory.stat", "file "); // given back when wanted
    if (most == UINT64_MAX || now == UINT64_MAX)
        return UINT64_MAX;
    now -= files < now ? files : 0;
    return now < most ? most - now : 0;
}

bool spare_memory_holds(size_t bytes) {
    uint64_t kib = number_in("/proc/meminfo", "MemAvailable: ");
    uint64_t swap = number_in("/proc/meminfo", "SwapFree: ");
    if (kib == UINT64_MAX)
        return true;
    kib += swap == UINT64_MAX ? 0 : swap;
    return bytes / 1024 <= kib && bytes <= left_to_group();
}
