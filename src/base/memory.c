#include "base/memory.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { GROUP_SIZE = 1024 };

// The number behind `field` in a file of the system's; UINT64_MAX where there is none ("max").
static uint64_t number_in(const char *root, const char *path, const char *field) {
    uint64_t value = UINT64_MAX;
    char full[2 * GROUP_SIZE], line[128];
    snprintf(full, sizeof full, "%.900s%s", root, path);
    FILE *file = fopen(full, "re");
    while (file && value == UINT64_MAX && fgets(line, sizeof line, file)) {
        const char *number = line + strlen(field);
        if (strncmp(line, field, strlen(field)) == 0 && strpbrk(number, "0123456789"))
            value = strtoull(number, NULL, 10);
    }
    if (file)
        fclose(file);
    return value;
}

// ---- control groups -----------------------------------------------------------------------------

// The control group that this process is in, of version 2: "0::/user.slice/..". The limits of all
// groups above hold too.
static void find_group(const char *root, char group[GROUP_SIZE]) {
    char path[GROUP_SIZE], line[GROUP_SIZE];
    group[0] = 0;
    snprintf(path, sizeof path, "%.900s/proc/self/cgroup", root);
    FILE *file = fopen(path, "re");
    if (!file)
        return;
    while (fgets(line, sizeof line, file))
        if (strncmp(line, "0::/", 4) == 0) {
            line[strcspn(line, "\n")] = 0;
            snprintf(group, GROUP_SIZE, "%s", line[4] ? line + 3 : "");
        }
    fclose(file);
}

// Goes to the group above; false: there is none.
static bool go_up(char group[GROUP_SIZE]) {
    char *slash = strrchr(group, '/');
    if (slash)
        *slash = 0;
    return slash != NULL;
}

static uint64_t of_group(const char *root, const char *group, const char *file, const char *field) {
    char path[GROUP_SIZE + 64];
    snprintf(path, sizeof path, "/sys/fs/cgroup%s/%s", group, file);
    return number_in(root, path, field);
}

// What the processes of the group may still take.
static uint64_t left_to_group(const char *root, const char *group) {
    uint64_t most = of_group(root, group, "memory.max", "");
    uint64_t now = of_group(root, group, "memory.current", "");
    if (most == UINT64_MAX || now == UINT64_MAX)
        return UINT64_MAX;
    uint64_t files = of_group(root, group, "memory.stat", "file "); // given back when wanted,
    uint64_t kept = of_group(root, group, "memory.stat", "shmem "); // but those in memory alone
    if (files < now)
        now -= files - (kept < files ? kept : 0);
    return now < most ? most - now : 0;
}

// ---- all together -------------------------------------------------------------------------------

static uint64_t smaller(uint64_t a, uint64_t b) {
    return a < b ? a : b;
}

size_t memory_of_machine(void) {
    char group[GROUP_SIZE];
    long pages = sysconf(_SC_PHYS_PAGES), size = sysconf(_SC_PAGE_SIZE);
    uint64_t least = pages > 0 && size > 0 ? (uint64_t)pages * (uint64_t)size : UINT64_MAX;
    find_group("", group);
    do
        least = smaller(least, of_group("", group, "memory.max", ""));
    while (go_up(group));
    return least == UINT64_MAX ? 0 : (size_t)least;
}

uint64_t memory_left_below(const char *root) {
    uint64_t kib = number_in(root, "/proc/meminfo", "MemAvailable: ");
    uint64_t swap = number_in(root, "/proc/meminfo", "SwapFree: ");
    uint64_t least = kib == UINT64_MAX ? kib : (kib + (swap == UINT64_MAX ? 0 : swap)) * 1024;
    char group[GROUP_SIZE];
    find_group(root, group);
    do
        least = smaller(least, left_to_group(root, group));
    while (go_up(group));
    return least;
}

bool memory_is_left_for(size_t bytes) {
    const size_t worth_asking = (size_t)256 << 20;
    return bytes < worth_asking || bytes <= memory_left_below("");
}
