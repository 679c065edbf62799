// Loaded into the program before its libraries (LD_PRELOAD): while the file named by $FULL_DISK is
// there, the disk of the history is full.
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static int is_full(int file) {
    const char *sign = getenv("FULL_DISK");
    char link[64], path[1024];
    if (!sign || access(sign, F_OK) != 0)
        return 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    ssize_t length = readlink(link, path, sizeof path - 1);
    path[length > 0 ? length : 0] = 0;
    return strstr(path, "history.db") != NULL;
}

ssize_t pwrite64(int file, const void *data, size_t size, off64_t at) {
    if (is_full(file)) {
        errno = ENOSPC;
        return -1;
    }
    return syscall(SYS_pwrite64, file, data, size, at);
}

ssize_t pwrite(int file, const void *data, size_t size, off_t at) {
    return pwrite64(file, data, size, at);
}
