#include "data/unpack.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

static bool copy(gzFile in, const char *from, int out, const char *to, int64_t most, Error *error) {
    enum { BLOCK = 64 * 1024 };
    char *block = malloc(BLOCK);
    if (!block)
        return error_fail(error, ERROR_MEMORY, "no memory to unpack %.300s", from);
    int length = 0;
    bool done = true;
    for (int64_t total = 0; done && (length = gzread(in, block, BLOCK)) > 0; total += length) {
        if (total + length > most)
            done = error_fail(error, ERROR_FAILED,
                              "%.300s: unpacks to more than %lld bytes; it is not what it should "
                              "be",
                              from, (long long)most);
        else if (write(out, block, (size_t)length) != length)
            done = error_fail(error, ERROR_FAILED, "%.300s: %s; make room there", to,
                              error_cause(errno ? errno : ENOSPC));
    }
    free(block);
    int code;
    const char *why = gzerror(in, &code);
    if (done && (length < 0 || code != Z_OK))
        done = error_fail(error, ERROR_FAILED, "%.300s: damaged (%s); install it again", from, why);
    return done;
}

bool unpack_file(const char *from, const char *to, int64_t most, Error *error) {
    gzFile in = gzopen(from, "rb");
    if (!in)
        return error_fail(error, ERROR_FAILED, "%.300s: %s", from, error_cause(errno));
    int out = open(to, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    bool done = out >= 0 || error_fail(error, ERROR_FAILED, "%.300s: %s", to, error_cause(errno));
    done = done && copy(in, from, out, to, most, error);
    gzclose(in);
    if (out >= 0)
        close(out);
    if (!done && out >= 0)
        unlink(to);
    return done;
}
