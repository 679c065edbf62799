#define _GNU_SOURCE // pipe2
#include "cli/describe.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/sanitize.h"
#include "cli/train/confine.h"

static const double most_seconds = 3;
enum { MOST_MEMORY = 1 << 30 }; // bytes, beside what this program has

typedef struct Answer {
    bool done;
    Error error;
    LuaExperimentInfo info;
} Answer;

// ---- the child ----------------------------------------------------------------------------------

static void limit_memory(void) {
#if !defined(__SANITIZE_ADDRESS__) // which reserves more than any limit
    unsigned long pages = 0;
    FILE *file = fopen("/proc/self/statm", "re");
    if (file) {
        if (fscanf(file, "%lu", &pages) != 1)
            pages = 0;
        fclose(file);
    }
    rlim_t most = (rlim_t)pages * (rlim_t)sysconf(_SC_PAGE_SIZE) + MOST_MEMORY;
    setrlimit(RLIMIT_AS, &(struct rlimit){most, most});
#endif
}

_Noreturn static void answer_from_child(const char *path, int out) {
    static const int signals[] = {SIGINT, SIGTERM, SIGHUP, SIGPIPE};
    const rlim_t seconds = (rlim_t)most_seconds + 1;
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++)
        signal(signals[i], SIG_DFL);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    setrlimit(RLIMIT_CPU, &(struct rlimit){seconds, seconds});
    setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
    limit_memory();
    int nowhere = open("/dev/null", O_RDWR | O_CLOEXEC);
    for (int i = STDIN_FILENO; nowhere >= 0 && i <= STDERR_FILENO; i++)
        dup2(nowhere, i);
    confine_to_script(path);
    Answer *answer = calloc(1, sizeof *answer);
    if (!answer)
        _exit(1);
    answer->done = lua_describe_experiment(path, &answer->info, &answer->error);
    answer->error.file = NULL;
    const char *at = (const char *)answer;
    for (size_t left = sizeof *answer; left > 0;) {
        ssize_t written = write(out, at, left);
        if (written <= 0)
            _exit(1);
        at += written;
        left -= (size_t)written;
    }
    _exit(0);
}

// ---- this process -------------------------------------------------------------------------------

// All that comes within the time. False: it was not all.
static bool receive(int in, Answer *answer, bool *late) {
    double until = clock_seconds() + most_seconds;
    size_t got = 0;
    *late = false;
    while (got < sizeof *answer) {
        double left = until - clock_seconds();
        struct pollfd ready = {.fd = in, .events = POLLIN};
        int count = left > 0 ? poll(&ready, 1, (int)(left * 1000) + 1) : 0;
        if (count < 0 && errno == EINTR)
            continue;
        *late = count == 0;
        if (count <= 0)
            return false;
        ssize_t size = read(in, (char *)answer + got, sizeof *answer - got);
        if (size < 0 && errno == EINTR)
            continue;
        if (size <= 0)
            return false;
        got += (size_t)size;
    }
    return true;
}

#define END_TEXT(text) ((text)[sizeof(text) - 1] = 0)

// Nothing of it is taken for more than the child may have said.
static void check_answer(Answer *answer) {
    LuaExperimentInfo *info = &answer->info;
    END_TEXT(answer->error.text);
    END_TEXT(info->name);
    END_TEXT(info->about);
    if (answer->error.code < ERROR_NONE || answer->error.code > ERROR_BUSY)
        answer->error.code = ERROR_FAILED;
    if (info->parameter_count < 0 || info->parameter_count > LUA_INFO_PARAMETERS)
        info->parameter_count = 0;
    for (int i = 0; i < info->parameter_count; i++) {
        RecordParameter *usual = &info->parameters[i].usual;
        END_TEXT(info->parameters[i].value);
        END_TEXT(info->parameters[i].choices);
        END_TEXT(usual->name);
        END_TEXT(usual->text);
        if (usual->kind > RECORD_TEXT)
            usual->kind = RECORD_TEXT;
    }
}

static bool fail_without_answer(const char *path, bool late, int status, Error *error) {
    char shown[256];
    sanitize_line(shown, sizeof shown, path, strlen(path));
    if (late || (WIFSIGNALED(status) && WTERMSIG(status) == SIGXCPU))
        return error_fail(error, ERROR_FAILED,
                          "%s: says nothing of itself within %g s: what takes long belongs into "
                          "its functions, not at its top",
                          shown, most_seconds);
    return error_fail(error, ERROR_FAILED,
                      "%s: could not be read: it takes too much memory or breaks the program that "
                      "reads it%s%s",
                      shown, WIFSIGNALED(status) ? ": " : "",
                      WIFSIGNALED(status) ? strsignal(WTERMSIG(status)) : "");
}

bool describe_experiment(const char *path, LuaExperimentInfo *info, Error *error) {
    int ends[2], status = 0;
    bool late;
    Answer *answer = calloc(1, sizeof *answer);
    *info = (LuaExperimentInfo){.parameter_count = 0};
    if (!answer)
        return error_fail(error, ERROR_MEMORY, "no memory to read the experiment");
    bool is_open = pipe2(ends, O_CLOEXEC) == 0;
    pid_t child = is_open ? fork() : -1;
    if (child < 0) {
        int code = errno;
        for (int i = 0; is_open && i < 2; i++)
            close(ends[i]);
        free(answer);
        return error_fail(error, ERROR_BUSY, "the experiment cannot be read: %s%s",
                          error_cause(code), error_remedy(code));
    }
    if (child == 0)
        answer_from_child(path, ends[1]);
    close(ends[1]);
    bool is_whole = receive(ends[0], answer, &late);
    close(ends[0]);
    kill(child, SIGKILL); // it has nothing left to do
    while (waitpid(child, &status, 0) < 0 && errno == EINTR)
        continue;
    bool done = is_whole && answer->done;
    if (is_whole) {
        check_answer(answer);
        *info = answer->info;
        if (!done && error)
            *error = answer->error;
    } else {
        fail_without_answer(path, late, status, error);
    }
    free(answer);
    return done;
}
