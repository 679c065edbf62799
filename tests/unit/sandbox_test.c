// What the system keeps a confined process from: tried in child processes, by the calls themselves.
#define _GNU_SOURCE
#include "base/sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/folder.h"
#include "tests/test.h"

static char folder[TEST_FOLDER_SIZE];

static const char *place(const char *name) {
    static char path[4][128];
    static int next;
    next = (next + 1) % 4;
    snprintf(path[next], sizeof path[next], "%s/%s", folder, name);
    return path[next];
}

static void put(const char *name) {
    FILE *file = fopen(place(name), "w");
    if (file) {
        fputs("text", file);
        fclose(file);
    }
}

// Runs `body` in a child that has entered the sandbox; it gives what failed first, or NULL.
static void in_child(const char *(*body)(void), SandboxPart part) {
    int ends[2];
    char why[200] = "";
    if (pipe(ends) != 0)
        return;
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        char readable[128], writable[128];
        snprintf(readable, sizeof readable, "%s", place("read"));
        snprintf(writable, sizeof writable, "%s", place("write"));
        const SandboxPath paths[] = {{readable, false}, {writable, true}, {"/no/such", true}};
        const char *failed = "skip";
        if (sandbox_enter(paths, 3) & (int)part)
            failed = body();
        if (failed && write(ends[1], failed, strlen(failed)) < 0)
            _exit(2);
        _exit(0);
    }
    close(ends[1]);
    ssize_t length = read(ends[0], why, sizeof why - 1);
    close(ends[0]);
    int status;
    waitpid(child, &status, 0);
    why[length > 0 ? length : 0] = 0;
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    if (strcmp(why, "skip") == 0)
        SKIP("this kernel lacks %s", part == SANDBOX_FILES ? "Landlock" : "seccomp");
    else
        CHECK_MESSAGE(!why[0], "%s", why);
}

#define WANT(condition)        \
    do {                       \
        if (!(condition))      \
            return #condition; \
    } while (0)

static bool opens(const char *path, int flags) {
    int file = open(path, flags, 0600);
    if (file >= 0)
        close(file);
    return file >= 0;
}

static const char *try_files(void) {
    WANT(opens(place("read/a"), O_RDONLY));
    WANT(!opens(place("read/a"), O_WRONLY));
    WANT(!opens(place("read/new"), O_WRONLY | O_CREAT));
    WANT(unlink(place("read/a")) != 0);
    WANT(rename(place("read/a"), place("write/a")) != 0);
    WANT(truncate(place("read/a"), 0) != 0);
    WANT(opens(place("write/new"), O_RDWR | O_CREAT));
    WANT(rename(place("write/new"), place("write/moved")) == 0);
    WANT(mkdir(place("write/below"), 0700) == 0 || errno == EEXIST);
    WANT(rename(place("write/moved"), place("write/below/moved")) == 0 || errno == EXDEV);
    WANT(!opens(place("other"), O_RDONLY));
    WANT(!opens(place("read/../other"), O_RDONLY));
    WANT(!opens(place("read/link"), O_RDONLY));
    WANT(!opens("/etc/passwd", O_RDONLY));
    WANT(!opens("/etc/shadow", O_RDONLY));
    WANT(mkfifo(place("write/pipe"), 0600) != 0);
    WANT(opens("/proc/self/stat", O_RDONLY));
    WANT(opens("/dev/null", O_RDWR));
    WANT(opens("/usr/bin", O_RDONLY));
    return NULL;
}

static void a_confined_process_has_the_files_it_was_given(void) {
    in_child(try_files, SANDBOX_FILES);
}

static const char *try_calls(void) {
    char *const arguments[] = {(char *)"true", NULL};
    WANT(execve("/bin/true", arguments, arguments + 1) != 0 && errno == EPERM);
    WANT(socket(AF_INET, SOCK_STREAM, 0) < 0 && errno == EPERM);
    WANT(socket(AF_UNIX, SOCK_STREAM, 0) < 0 && errno == EPERM);
    WANT(chmod(place("write"), 0777) != 0);
    WANT(kill(getppid(), SIGCONT) != 0);
    WANT(kill(getpid(), 0) == 0);
    WANT(kill(getpid(), SIGCONT) == 0);
    WANT(raise(SIGCONT) == 0);
    char letter = 'x';
    WANT(ioctl(STDIN_FILENO, TIOCSTI, &letter) != 0 && errno == EPERM);
#if !defined(__SANITIZE_ADDRESS__)
    WANT(fork() < 0);
#endif
    return NULL;
}

typedef struct Attempt {
    const char *(*body)(void);
    const char *failed;
} Attempt;

static void *try_in_thread(void *argument) {
    Attempt *attempt = argument;
    attempt->failed = attempt->body();
    return NULL;
}

static const char *in_thread(const char *(*body)(void)) {
    Attempt attempt = {body, NULL};
    pthread_t thread;
    WANT(pthread_create(&thread, NULL, try_in_thread, &attempt) == 0);
    pthread_join(thread, NULL);
    return attempt.failed;
}

static const char *try_files_in_a_thread(void) {
    return in_thread(try_files);
}

static const char *try_calls_in_a_thread(void) {
    return in_thread(try_calls);
}

static void a_confined_process_starts_no_other_and_reaches_nobody(void) {
    in_child(try_calls, SANDBOX_CALLS);
}

static void threads_that_start_later_are_confined_too(void) {
    in_child(try_files_in_a_thread, SANDBOX_FILES);
    in_child(try_calls_in_a_thread, SANDBOX_CALLS);
}

int main(void) {
    if (!test_folder_make(folder, sizeof folder) || mkdir(place("read"), 0700) != 0 ||
        mkdir(place("write"), 0700) != 0)
        return 1;
    put("read/a");
    put("other");
    if (symlink("../other", place("read/link")) != 0)
        return 1;
    RUN_TEST(a_confined_process_has_the_files_it_was_given);
    RUN_TEST(a_confined_process_starts_no_other_and_reaches_nobody);
    RUN_TEST(threads_that_start_later_are_confined_too);
    test_folder_remove(folder);
    return test_end();
}
