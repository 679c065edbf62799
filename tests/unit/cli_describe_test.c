// Reading what an experiment says of itself, where there is no process to read it in.
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/describe.h"
#include "tests/test.h"

enum { DONE = 0, KEPT_SOMETHING = 1, NO_REASON = 2, NO_LIMIT = 3 };

// Of a process that may have no other one; the limit holds for nobody who is root.
static int describe_in_vain(void) {
    enum { TIMES = 20 };
    static LuaExperimentInfo info;
    Error error = {0};
    if ((getuid() == 0 && setuid(65534) != 0) ||
        setrlimit(RLIMIT_NPROC, &(struct rlimit){0, 0}) != 0)
        return NO_LIMIT;
    int before = dup(STDIN_FILENO);
    close(before);
    for (int i = 0; i < TIMES; i++) {
        if (describe_experiment("experiments/simple.lua", &info, &error))
            return NO_LIMIT;
        if (error.code != ERROR_BUSY || !strstr(error.text, "cannot be read: "))
            return NO_REASON;
    }
    return dup(STDIN_FILENO) == before ? DONE : KEPT_SOMETHING;
}

static void what_cannot_be_read_keeps_no_descriptor(void) {
    fflush(stdout);
    int status = 0;
    pid_t child = fork();
    if (child == 0)
        _exit(describe_in_vain());
    CHECK(child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status));
    if (WEXITSTATUS(status) == NO_LIMIT)
        SKIP("processes cannot be limited here");
    else
        CHECK_INT(WEXITSTATUS(status), DONE);
}

int main(void) {
    RUN_TEST(what_cannot_be_read_keeps_no_descriptor);
    return test_end();
}
