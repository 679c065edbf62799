#define _GNU_SOURCE // dl_iterate_phdr
#include "cli/train/confine.h"

#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <libgen.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/sandbox.h"
#include "kernel/kernel.h"
#include "store/store.h"

enum {
    MOST_NODES = 40,
    MOST_LIBRARIES = 16,
    MOST_PATHS = 24 + MOST_NODES + 4 * MOST_LIBRARIES + CLI_MAX_RULES
};

typedef struct Paths {
    SandboxPath list[MOST_PATHS];
    char *kept[MOST_PATHS]; // that are ours to free
    int count, kept_count, library_count;
} Paths;

static void add(Paths *paths, const char *path, bool is_written) {
    if (path && path[0] && paths->count < MOST_PATHS)
        paths->list[paths->count++] = (SandboxPath){path, is_written};
}

// Its folder, and where a link leads.
static void add_with_folder(Paths *paths, const char *path, bool is_written) {
    char *real = realpath(path, NULL), *of_folder = strdup(path);
    if (of_folder)
        add(paths, dirname(of_folder), is_written);
    add(paths, real, false);
    paths->kept[paths->kept_count++] = of_folder;
    paths->kept[paths->kept_count++] = real;
}

// Where the program's own Lua and the data that ships may be told to lie.
static void add_environment(Paths *paths) {
    add(paths, getenv("MPBENCH_LUA"), false);
    add(paths, getenv("MPBENCH_FASHION_MNIST"), false);
}

// The folder of a library that is loaded, under the name that it was found by and under its own.
static int add_library(struct dl_phdr_info *library, size_t size, void *context) {
    (void)size;
    Paths *paths = context;
    const char *name = library->dlpi_name;
    if (name[0] != '/' || strncmp(name, "/usr/", 5) == 0 || paths->library_count == MOST_LIBRARIES)
        return 0;
    paths->library_count++;
    char *real = realpath(name, NULL);
    add_with_folder(paths, name, false);
    add_with_folder(paths, real ? real : name, false);
    free(real);
    return 0;
}

// A card is reached through files of the system. Its driver is started first, which may make them
// by a program of its own. The libraries that compute on it lie where they were installed, and open
// further parts of themselves only when these are needed.
static void add_device(Paths *paths, const char *device) {
    bool is_any = !device || strcmp(device, "auto") == 0;
    glob_t nodes;
    if (!device_prepare(is_any ? NULL : device))
        return;
    dl_iterate_phdr(add_library, paths);
    if (glob("/dev/nvidia*", 0, NULL, &nodes) != 0)
        return;
    for (size_t i = 0; i < nodes.gl_pathc && i < MOST_NODES; i++) {
        char *node = strdup(nodes.gl_pathv[i]);
        add(paths, node, true);
        paths->kept[paths->kept_count++] = node;
    }
    globfree(&nodes);
}

static void enter(Paths *paths) {
    sandbox_enter(paths->list, paths->count);
    while (paths->kept_count > 0)
        free(paths->kept[--paths->kept_count]);
}

void confine(const Cli *cli, const char *script, const char *written) {
    static bool is_confined;
    char history[STORE_PATH_SIZE];
    Paths paths = {.count = 0};
    if (cli->trust || is_confined)
        return;
    is_confined = true;
    add_device(&paths, cli->run.device);
    add_with_folder(&paths, script, false);
    add_environment(&paths);
    add(&paths, cli->weights, false);
    for (int i = 0; i < cli->run.setting_count; i++)
        add(&paths, cli->run.settings[i].value, false);
    if ((!cli->no_history || written) && store_path(cli->database, history, NULL)) {
        char *real = realpath(history, NULL);
        add_with_folder(&paths, real ? real : history, true);
        paths.kept[paths.kept_count++] = real;
    }
    add(&paths, written, true);
    enter(&paths);
}

void confine_to_script(const char *script) {
    Paths paths = {.count = 0};
    add_with_folder(&paths, script, false);
    add_environment(&paths);
    enter(&paths);
}

int confine_try(void) {
    pid_t child = fork();
    if (child == 0) {
        int parts = sandbox_enter(NULL, 0), held = 0;
        if ((parts & SANDBOX_FILES) && open("/etc/passwd", O_RDONLY | O_CLOEXEC) < 0 &&
            open("/tmp", O_RDONLY | O_CLOEXEC) < 0)
            held |= SANDBOX_FILES;
        char *const arguments[] = {(char *)"true", NULL};
        if ((parts & SANDBOX_CALLS) && execve("/bin/true", arguments, arguments + 1) != 0 &&
            errno == EPERM)
            held |= SANDBOX_CALLS;
        _exit(held);
    }
    int status = 0;
    while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR)
        continue;
    return child > 0 && WIFEXITED(status) ? WEXITSTATUS(status) : 0;
}
