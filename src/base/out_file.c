#define _DEFAULT_SOURCE     // flock
#define _XOPEN_SOURCE   700 // realpath
#include "base/out_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static bool fail_with(const char *path, int code, Error *error) {
    return error_fail(error, ERROR_FAILED, "%.300s: %s%s", path, error_cause(code),
                      error_remedy(code));
}

// The descriptor of our own output that is the same file, whatever its name; -1: none is.
static int find_own(const struct stat *file) {
    struct stat own;
    for (int i = STDOUT_FILENO; i <= STDERR_FILENO; i++)
        if (fstat(i, &own) == 0 && own.st_dev == file->st_dev && own.st_ino == file->st_ino)
            return i;
    return -1;
}

static bool take_stream(OutFile *out, int descriptor, Error *error) {
    out->stream = descriptor >= 0 ? fdopen(descriptor, "wb") : NULL;
    if (out->stream)
        return true;
    fail_with(out->part[0] ? out->part : out->path, errno, error);
    if (descriptor >= 0) {
        close(descriptor);
        if (out->part[0])
            unlink(out->part);
    }
    return false;
}

// Never for reading or as our terminal; not cut short, since it is none of ours.
static bool open_through(OutFile *out, const struct stat *file, Error *error) {
    int own = find_own(file);
    return take_stream(out,
                       own >= 0 ? fcntl(own, F_DUPFD_CLOEXEC, 0)
                                : open(out->path, O_WRONLY | O_NOCTTY | O_CLOEXEC),
                       error);
}

// ---- the part -----------------------------------------------------------------------------------

// Whether the file that is open has this name still: another may have put it away meanwhile.
static bool has_name(int descriptor, const char *name) {
    struct stat open_one, named;
    return fstat(descriptor, &open_one) == 0 && lstat(name, &named) == 0 &&
           open_one.st_dev == named.st_dev && open_one.st_ino == named.st_ino;
}

// A new part that is locked, where the file system has locks. -1 with EEXIST: there is one.
static int make_part(const char *part, bool is_private) {
    const int made = open(part, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, is_private ? 0600 : 0666);
    const bool is_lost = made >= 0 && flock(made, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
    if (made < 0 || (!is_lost && has_name(made, part)))
        return made;
    close(made); // another took it for one that was left
    errno = EEXIST;
    return -1;
}

// Takes away a part that nobody holds. What is no regular file is not ours.
static void remove_left(const char *part) {
    struct stat about;
    const int left = open(part, O_WRONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (left >= 0 && fstat(left, &about) == 0 && S_ISREG(about.st_mode) &&
        flock(left, LOCK_EX | LOCK_NB) == 0 && has_name(left, part))
        (void)unlink(part);
    if (left >= 0)
        close(left);
}

// One that holds it may be about to let go of it, as that of a scan that was killed just now.
static int take_part(const char *part, bool is_private) {
    enum { TRIES = 100 };
    const struct timespec pause = {.tv_nsec = 10000000};
    int taken = make_part(part, is_private);
    for (int i = 0; i < TRIES && taken < 0 && errno == EEXIST; i++) {
        remove_left(part);
        taken = make_part(part, is_private);
        if (taken < 0 && errno == EEXIST) {
            nanosleep(&pause, NULL);
            errno = EEXIST;
        }
    }
    return taken;
}

static bool has_folder(const OutFile *out) {
    char folder[sizeof out->path];
    struct stat about;
    const char *end = strrchr(out->path, '/');
    snprintf(folder, sizeof folder, "%.*s", end > out->path ? (int)(end - out->path) : 1,
             end ? out->path : ".");
    return stat(folder, &about) == 0 && S_ISDIR(about.st_mode);
}

static bool open_part(OutFile *out, const struct stat *old, bool is_private, Error *error) {
    snprintf(out->part, sizeof out->part, "%s" OUT_FILE_PART, out->path);
    const int descriptor = take_part(out->part, is_private);
    if (descriptor < 0 && errno == EEXIST)
        return error_fail(error, ERROR_FAILED,
                          "%.300s is there already: another program writes it; wait for its end, "
                          "or remove what is no regular file",
                          out->part);
    if (descriptor < 0 && errno == ENOENT) // /proc has the same cause for what it cannot hold
        return error_fail(error, ERROR_FAILED,
                          has_folder(out) ? "%.300s: its folder takes no new files: name another"
                                          : "%.300s: the folder that it would lie in is not there",
                          out->path);
    if (descriptor >= 0 && old && !is_private)
        (void)!fchmod(descriptor, old->st_mode & 0777);
    return take_stream(out, descriptor, error);
}

// The file that a name leads to through links, into out->path. What is not there yet keeps its
// name.
static bool find_file(OutFile *out, const char *path, struct stat *file, bool *exists,
                      Error *error) {
    struct stat link;
    *exists = stat(path, file) == 0;
    if (!*exists && errno != ENOENT)
        return fail_with(path, errno, error);
    if (!*exists && lstat(path, &link) == 0)
        return error_fail(error, ERROR_FAILED,
                          "%.300s is a link to what is not there: make that, or name another file",
                          path);
    bool is_regular = *exists && S_ISREG(file->st_mode);
    char *real = is_regular ? realpath(path, NULL) : NULL;
    if (is_regular && !real)
        return fail_with(path, errno, error);
    int length = snprintf(out->path, sizeof out->path, "%s", real ? real : path);
    free(real);
    return (length >= 0 && (size_t)length < sizeof out->path) ||
           error_fail(error, ERROR_USAGE, "%.60s...: too long a path", path);
}

bool out_file_open(OutFile *out, const char *path, bool is_private, Error *error) {
    struct stat file;
    bool exists;
    out->stream = NULL;
    out->part[0] = 0;
    if (!find_file(out, path, &file, &exists, error))
        return false;
    if (!exists)
        return open_part(out, NULL, is_private, error);
    if (S_ISDIR(file.st_mode) || S_ISBLK(file.st_mode))
        return error_fail(error, ERROR_FAILED, "%.300s is %s: name a file", path,
                          S_ISDIR(file.st_mode) ? "a folder" : "a disk");
    if (!S_ISREG(file.st_mode) || find_own(&file) >= 0)
        return open_through(out, &file, error);
    if ((file.st_mode & (S_IWUSR | S_IWGRP | S_IWOTH)) == 0 || access(out->path, W_OK) != 0)
        return error_fail(error, ERROR_FAILED,
                          "%.300s may not be written: change its permissions, or name another file",
                          path);
    return open_part(out, &file, is_private, error);
}

bool out_file_close(OutFile *out, bool done, Error *error) {
    const char *written = out->part[0] ? out->part : out->path;
    if (done && fflush(out->stream) != 0)
        done = fail_with(written, errno, error);
    if (done && ferror(out->stream)) // a write before the last one
        done = error_fail(error, ERROR_FAILED,
                          "%.300s: not all of it could be written; is the disk full?", written);
    if (done && out->part[0] && fsync(fileno(out->stream)) != 0)
        done = fail_with(written, errno, error);
    if (fclose(out->stream) != 0 && done)
        done = fail_with(written, errno, error);
    if (done && out->part[0] && rename(out->part, out->path) != 0)
        done = fail_with(out->path, errno, error);
    if (!done && out->part[0])
        unlink(out->part);
    out->stream = NULL;
    return done;
}
