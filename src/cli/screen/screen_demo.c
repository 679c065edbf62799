// The recording that `mpbench --demo` opens. It is packed, and unpacked into a folder that nobody
// else reads: what is done in the demo (a tag, a note, a run that is removed) is forgotten with it,
// at its end, or when the next demo begins.
#include "cli/screen/screen.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/experiments.h"
#include "data/unpack.h"

static const char recording[] = "demo.history.gz";

#define FOLDER_START "mpbench-demo-"

static void remove_folder(const char *folder) {
    static const char *const files[] = {"history.db", "history.db-wal", "history.db-shm",
                                        "history.db-journal"};
    char path[STORE_PATH_SIZE + 32];
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, files[i]);
        unlink(path);
    }
    rmdir(folder);
}

// A folder is somebody's as long as he holds its lock. -1: it is, or it is no folder of ours.
static int hold_folder(const char *folder) {
    struct stat status;
    int lock = open(folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (lock >= 0 && fstat(lock, &status) == 0 && status.st_uid == geteuid() &&
        flock(lock, LOCK_EX | LOCK_NB) == 0 && fstat(lock, &status) == 0 && status.st_nlink > 0)
        return lock;
    if (lock >= 0)
        close(lock);
    return -1;
}

// What demos left that were killed.
static void clear_away(const char *parent) {
    DIR *list = opendir(parent);
    if (!list)
        return;
    for (const struct dirent *entry; (entry = readdir(list));) {
        char folder[STORE_PATH_SIZE];
        int length = snprintf(folder, sizeof folder, "%s/%s", parent, entry->d_name);
        bool is_one = strncmp(entry->d_name, FOLDER_START, sizeof FOLDER_START - 1) == 0 &&
                      length > 0 && (size_t)length < sizeof folder;
        int lock = is_one ? hold_folder(folder) : -1;
        if (lock < 0)
            continue;
        remove_folder(folder);
        close(lock);
    }
    closedir(list);
}

// One that another demo clears away before its lock is held is made again under the next name.
static bool make_folder(ScreenDemo *demo, Error *error) {
    enum { MOST_TRIES = 1000 };
    const char *parent = getenv("TMPDIR");
    parent = parent && parent[0] ? parent : "/tmp";
    clear_away(parent);
    for (int i = 0; i < MOST_TRIES; i++) {
        snprintf(demo->folder, sizeof demo->folder - sizeof "/history.db",
                 "%s/" FOLDER_START "%ld-%d", parent, (long)getpid(), i);
        bool is_made = mkdir(demo->folder, 0700) == 0;
        demo->lock = is_made ? hold_folder(demo->folder) : -1;
        if (demo->lock >= 0)
            return true;
        if (!is_made && errno != EEXIST)
            break;
    }
    error_fail(error, ERROR_FAILED, "%.300s: %s; set TMPDIR to a folder that can be written",
               demo->folder, error_cause(errno));
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
    if (!demo->folder[0])
        return;
    remove_folder(demo->folder);
    close(demo->lock);
}
