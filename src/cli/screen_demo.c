// The recording that `mpbench --demo` opens. It is packed, and unpacked into a folder that nobody
// else reads: what is done in the demo (a tag, a note, a run that is removed) is forgotten with it.
#include "cli/screen.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/experiments.h"
#include "data/unpack.h"

static const char recording[] = "demo.history.gz";

static bool make_folder(ScreenDemo *demo, Error *error) {
    enum { MOST_TRIES = 1000 };
    const char *parent = getenv("TMPDIR");
    for (int i = 0; i < MOST_TRIES; i++) {
        snprintf(demo->folder, sizeof demo->folder - sizeof "/history.db", "%s/mpbench-demo-%ld-%d",
                 parent && parent[0] ? parent : "/tmp", (long)getpid(), i);
        if (mkdir(demo->folder, 0700) == 0)
            return true;
        if (errno != EEXIST)
            break;
    }
    error_fail(error, ERROR_FAILED, "%.300s: %s; set TMPDIR to a folder that can be written",
               demo->folder, strerror(errno));
    demo->folder[0] = 0;
    return false;
}

bool screen_unpack_demo(ScreenDemo *demo, Error *error) {
    const int64_t most = 256 * 1024 * 1024;
    char packed[EXPERIMENT_PATH_SIZE];
    *demo = (ScreenDemo){.folder = ""};
    if (!experiment_find_file(recording, packed, sizeof packed))
        return error_fail(error, ERROR_UNAVAILABLE,
                          "the recording for --demo (%s) does not lie beside the experiments; "
                          "install mpbench again, or train: mpbench run simple",
                          recording);
    if (!make_folder(demo, error))
        return false;
    size_t length = strlen(demo->folder);
    memcpy(demo->path, demo->folder, length);
    memcpy(demo->path + length, "/history.db", sizeof "/history.db");
    bool done = unpack_file(packed, demo->path, most, error);
    if (!done)
        screen_forget_demo(demo);
    return done;
}

void screen_forget_demo(const ScreenDemo *demo) {
    static const char *const ends[] = {"", "-wal", "-shm", "-journal"};
    char path[STORE_PATH_SIZE + 16];
    if (!demo->folder[0])
        return;
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        snprintf(path, sizeof path, "%s%s", demo->path, ends[i]);
        unlink(path);
    }
    rmdir(demo->folder);
}
