#include "data/file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *describe_kind(mode_t mode) {
    static const struct {
        mode_t kind;
        const char *name;
    } kinds[] = {{S_IFDIR, "a directory"},
                 {S_IFIFO, "a FIFO"},
                 {S_IFSOCK, "a socket"},
                 {S_IFCHR, "a character device"},
                 {S_IFBLK, "a block device"}};
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        if ((mode & S_IFMT) == kinds[i].kind)
            return kinds[i].name;
    return "of an unknown kind";
}

static bool fail_with_errno(const char *path, const char *action, int code, Error *error) {
    const char *remedy = code == ENOENT   ? "; check the path"
                         : code == EACCES ? "; check its permissions and those of its folders"
                                          : "";
    return error_fail(error, ERROR_FAILED, FILE_PATH ": cannot %s: %s (errno %d)%s", path, action,
                      error_cause(code), code, remedy);
}

bool file_open(const char *path, int *file, uint64_t *size, Error *error) {
    // Without O_NONBLOCK, opening a FIFO waits for its writer.
    int opened = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (opened < 0) {
        int code = errno;
        struct stat status;
        if (code == ENXIO && stat(path, &status) == 0) // a socket cannot be opened at all
            return error_fail(error, ERROR_FAILED, FILE_PATH ": is %s; a regular file is expected",
                              path, describe_kind(status.st_mode));
        return fail_with_errno(path, "open", code, error);
    }
    struct stat status;
    if (fstat(opened, &status) != 0) {
        int code = errno;
        close(opened);
        return fail_with_errno(path, "examine", code, error);
    }
    if (!S_ISREG(status.st_mode)) {
        close(opened);
        return error_fail(error, ERROR_FAILED, FILE_PATH ": is %s; a regular file is expected",
                          path, describe_kind(status.st_mode));
    }
    *file = opened;
    *size = (uint64_t)status.st_size;
    return true;
}

bool file_take(int file, const char *path, uint8_t *out, size_t size, Error *error) {
    size_t have = 0;
    while (have < size) {
        size_t part = size - have < (size_t)1 << 30 ? size - have : (size_t)1 << 30;
        ssize_t got = read(file, out + have, part);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return fail_with_errno(path, "read", errno, error);
        if (got == 0)
            return error_fail(error, ERROR_FAILED,
                              FILE_PATH ": ends at byte %zu of %zu: it was cut while being read; "
                                        "try again when its writer has finished",
                              path, have, size);
        have += (size_t)got;
    }
    return true;
}

bool file_read(const char *path, uint64_t limit, uint8_t **bytes, size_t *size, Error *error) {
    int file = -1;
    uint64_t length = 0;
    uint8_t *memory = NULL;
    bool done = false;
    if (!file_open(path, &file, &length, error))
        return false;
    if (length > limit || length >= SIZE_MAX) {
        error_fail(error, ERROR_FAILED,
                   FILE_PATH ": has %" PRIu64 " bytes; at most %" PRIu64
                             " are read: take a part of it",
                   path, length, limit);
        goto done;
    }
    memory = malloc(length ? (size_t)length : 1);
    if (!memory) {
        error_fail(error, ERROR_MEMORY, FILE_PATH ": no memory for its %" PRIu64 " bytes", path,
                   length);
        goto done;
    }
    if (!file_take(file, path, memory, (size_t)length, error))
        goto done;
    *bytes = memory;
    *size = (size_t)length;
    memory = NULL;
    done = true;
done:
    free(memory);
    close(file);
    return done;
}
