// Where a history may lie: a plain file on a local disk, in a folder that can be written.
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "store/store_private.h"

enum { FUSE_TYPE = 0x65735546 };

// Locks between machines are not kept there, or not reliably: two writers would destroy the file.
const char *place_network_name(long type, const char *fuse) {
    static const struct {
        unsigned long type;
        const char *name;
    } types[] = {
        {0x6969, "NFS"},          {0xFF534D42, "CIFS"}, {0xFE534D42, "SMB"},
        {0x517B, "SMB"},          {0x01021997, "9P"},   {0x5346414F, "AFS"},
        {0x6B414653, "AFS"},      {0x73757245, "Coda"}, {0x00C36400, "Ceph"},
        {0x0BD00BD0, "Lustre"},   {0x47504653, "GPFS"}, {0x19830326, "BeeGFS"},
        {0x20030528, "OrangeFS"},
    };
    static const char *const fuses[] = {"sshfs",  "glusterfs", "s3fs",      "rclone",   "ceph-fuse",
                                        "davfs",  "smbnetfs",  "curlftpfs", "gcsfuse",  "nfs",
                                        "goofys", "juicefs",   "mfs",       "seaweedfs"};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (types[i].type == ((unsigned long)type & 0xFFFFFFFFu))
            return types[i].name;
    const char *kind = fuse && strncmp(fuse, "fuse.", 5) == 0 ? fuse + 5 : "";
    for (size_t i = 0; type == FUSE_TYPE && i < sizeof fuses / sizeof *fuses; i++)
        if (strcmp(kind, fuses[i]) == 0)
            return fuses[i];
    return NULL;
}

// The type of a mount, as "fuse.sshfs", from the list of mounts: "ID PARENT MAJOR:MINOR ROOT POINT
// OPTIONS [FIELDS] - TYPE ...".
static void find_mount_type(dev_t device, char *type, size_t size) {
    type[0] = 0;
    FILE *list = fopen("/proc/self/mountinfo", "re");
    char line[4096];
    while (list && fgets(line, sizeof line, list)) {
        unsigned long first = 0, second = 0;
        const char *end = strstr(line, " - ");
        if (!end || sscanf(line, "%*s %*s %lu:%lu", &first, &second) != 2 ||
            first != major(device) || second != minor(device))
            continue;
        size_t length = strcspn(end + 3, " \n");
        utf8_copy_part(type, size, end + 3, length);
    }
    if (list)
        fclose(list);
}

// Cuts the last part of a path; "/" stays of "/x".
static void cut_last(char *path) {
    char *slash = strrchr(path, '/');
    if (slash)
        slash[slash == path] = 0;
}

static bool check_network(const char *path, Error *error) {
    char place[STORE_PATH_SIZE];
    snprintf(place, sizeof place, "%s", path);
    struct statfs system;
    while (statfs(place, &system) != 0) { // what is not there yet will lie on its parent's
        if ((errno != ENOENT && errno != ENOTDIR) || strcmp(place, "/") == 0)
            return true; // what comes next says why
        cut_last(place);
    }
    char fuse[64] = "";
    struct stat status;
    if (system.f_type == FUSE_TYPE && stat(place, &status) == 0)
        find_mount_type(status.st_dev, fuse, sizeof fuse);
    const char *name = place_network_name((long)system.f_type, fuse);
    return !name || error_fail(error, ERROR_HISTORY,
                               "%s lies on a network file system (%s), where locks are not safe: "
                               "name a file on a local disk with --db",
                               path, name);
}

bool place_check(const char *path, StoreMode mode, bool *exists, Error *error) {
    struct stat status;
    *exists = stat(path, &status) == 0;
    if (!*exists && errno != ENOENT)
        return error_fail(error, ERROR_HISTORY, "%s: %s: name another file with --db", path,
                          error_cause(errno));
    if (!*exists && mode == STORE_READ)
        return error_fail(error, ERROR_HISTORY,
                          "%s: no history yet: `mpbench run` makes it, --db names another", path);
    char base[STORE_PATH_SIZE];
    if (own_is_beside(path, base))
        return error_fail(error, ERROR_HISTORY,
                          "%.200s is where SQLite keeps the journal of %.200s: name another file "
                          "with --db",
                          path, base);
    if (*exists && !S_ISREG(status.st_mode))
        return error_fail(error, ERROR_HISTORY, "%s is %s, no file: name another with --db", path,
                          S_ISDIR(status.st_mode)    ? "a directory"
                          : S_ISFIFO(status.st_mode) ? "a pipe"
                                                     : "a device or socket");
    if (!check_network(path, error))
        return false;
    if (!*exists)
        return true;
    if (access(path, mode == STORE_READ ? R_OK : R_OK | W_OK) != 0)
        return error_fail(error, ERROR_HISTORY,
                          "%s may not be %s: change its permissions, or name another file with "
                          "--db",
                          path, mode == STORE_READ ? "read" : "written");
    char folder[STORE_PATH_SIZE];
    snprintf(folder, sizeof folder, "%s", path);
    cut_last(folder);
    if (mode == STORE_WRITE && access(folder, W_OK | X_OK) != 0)
        return error_fail(error, ERROR_HISTORY,
                          "%s: its folder may not be written (%s): a journal beside the file needs "
                          "that; name another file with --db",
                          path, error_cause(errno));
    return true;
}

bool place_has_folder(const char *path, Error *error) {
    char folder[STORE_PATH_SIZE];
    snprintf(folder, sizeof folder, "%s", path);
    cut_last(folder);
    return folder[0] == 0 || strcmp(folder, path) == 0 || access(folder, F_OK) == 0 ||
           error_fail(error, ERROR_HISTORY,
                      "%s: there is no folder %s: look at --db and MPBENCH_DB; `mpbench run` makes "
                      "it if it is the right one",
                      path, folder);
}

bool place_make(const char *path, Error *error) {
    char part[STORE_PATH_SIZE];
    snprintf(part, sizeof part, "%s", path);
    for (char *slash = strchr(part + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = 0;
        if (mkdir(part, 0700) != 0 && errno != EEXIST)
            return error_fail(error, errno == ENOSPC ? ERROR_FULL : ERROR_HISTORY,
                              "%s: the folder cannot be made (%s): name another file with --db",
                              part, error_cause(errno));
        *slash = '/';
    }
    // Never opened again but by SQLite: closing any descriptor of it would end SQLite's locks.
    int file = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (file < 0 && errno == EEXIST)
        return true; // another program was quicker
    if (file < 0)
        return error_fail(error, errno == ENOSPC ? ERROR_FULL : ERROR_HISTORY,
                          "%s cannot be made (%s): name another file with --db", path,
                          error_cause(errno));
    close(file);
    return true;
}
