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
    MOST_LIBRARIES = 16, // that a card needs, outside of the system's folders
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

typedef struct Loaded {
    Paths *paths;
    int seen, before; // of those that are loaded, in their order: the first were there before
} Loaded;

static int count_loaded(struct dl_phdr_info *library, size_t size, void *context) {
    (void)library, (void)size;
    ((Loaded *)context)->before++;
    return 0;
}

// The folder of a library under the name that it was found by, and where a link leads. Those of the
// system may be read in any case.
static int add_loaded(struct dl_phdr_info *library, size_t size, void *context) {
    (void)size;
    Loaded *loaded = context;
    Paths *paths = loaded->paths;
    if (loaded->seen++ < loaded->before || paths->library_count == MOST_LIBRARIES)
        return 0;
    char *real = realpath(library->dlpi_name, NULL);
    if (real && strncmp(real, "/usr/", strlen("/usr/")) != 0) {
        paths->library_count++;
        add_with_folder(paths, library->dlpi_name, false);
        add_with_folder(paths, real, false);
    }
    free(real);
    return 0;
}

// A card is reached through files of the system. Its driver is started first, which may make them
// by a program of its own. The libraries that compute on it are opened then, too: they lie where
// somebody installed them, and open parts of themselves only when these are needed.
static void add_device(Paths *paths, const char *device) {
    bool is_any = !device || strcmp(device, "auto") == 0;
    Loaded loaded = {.paths = paths};
    glob_t nodes;
    dl_iterate_phdr(count_loaded, &loaded);
    if (!device_prepare(is_any ? NULL : device))
        return;
    dl_iterate_phdr(add_loaded, &loaded);
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
