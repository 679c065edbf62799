#include "cli/train/twin.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/load.h"
#include "run/twin.h"

// ---- the twin's process -------------------------------------------------------------------------

// What it keeps as typed is what it is asked for: so it can be resumed, and trained again.
static bool retype(Cli *cli, Error *error) {
    static const char *const own[] = {"precision", "layer", "twin", "name"};
    int kept = 0;
    for (int i = 0; i < cli->run.typed_count; i++) {
        bool is_own = false;
        for (size_t k = 0; k < sizeof own / sizeof *own; k++)
            is_own = is_own || strcmp(cli->typed[i].name, own[k]) == 0;
        if (!is_own)
            cli->typed[kept++] = cli->typed[i];
    }
    cli->run.typed_count = kept;
    return cli_set_option(cli, "precision", cli->twin, error);
}

// A name is one run's: the twin of NAME is NAME-twin, which check_options has found to fit.
static bool rename_twin(Cli *cli, Error *error) {
    char name[RECORD_NAME_SIZE];
    if (!cli->run.name)
        return true;
    snprintf(name, sizeof name, "%.*s-twin", RECORD_NAME_SIZE - 6, cli->run.name);
    return cli_set_option(cli, "name", name, error);
}

// Never returns. All that is to be told, the run tells: standard output is its own.
static void be_twin(Cli *cli, const TrainingPlan *plan) {
    Error error = {0};
    TrainingPlan own = *plan;
    own.is_twin = true;
    cli->run.layer_count = 0;
    cli->quiet = true;
    cli->json = false;
    bool done = freopen("/dev/null", "w", stdout) && retype(cli, &error) &&
                rename_twin(cli, &error) && training_run(cli, &own, &error);
    twin_free(cli->run.twin);
    fflush(stderr);
    _exit(done ? cli->status : error_exit_status(error.code));
}

// ---- the run's ----------------------------------------------------------------------------------

// It has heard of the end, or will at its next step, and ends: this only lets it write what it
// keeps, in a step that takes long too.
static void await_twin(pid_t twin) {
    const double patience = 10;
    const struct timespec moment = {.tv_nsec = 5000000};
    double until = clock_seconds() + patience;
    while (clock_seconds() < until) {
        pid_t ended = waitpid(twin, NULL, WNOHANG);
        if (ended == twin || (ended < 0 && errno != EINTR))
            return;
        nanosleep(&moment, NULL);
    }
    fprintf(stderr, "mpbench: the twin, process %ld, has not ended yet\n", (long)twin);
}

// The processors are shared, unless somebody says how many each is to have.
static void share_threads(Cli *cli) {
    int each = load_processors() / 2;
    if (cli->run.threads == 0)
        cli->run.threads = each > 0 ? each : 1;
}

static bool check_options(const Cli *cli, Error *error) {
    enum { ENDING = sizeof "-twin" - 1 };
    if (cli->run.name && strlen(cli->run.name) + ENDING >= RECORD_NAME_SIZE)
        return error_fail(error, ERROR_USAGE,
                          "--name: longer than %d bytes, with -twin behind it, as the twin is "
                          "called: shorten it",
                          RECORD_NAME_SIZE - 1);
    return true;
}

bool twin_training_run(Cli *cli, const TrainingPlan *plan, Error *error) {
    cli_limit_spinning(cli->arguments); // starts anew: before there are two
    if (!check_options(cli, error) || !(cli->run.twin = twin_new(error)))
        return false;
    share_threads(cli);
    fflush(NULL); // what waits to be written is not to be written twice
    pid_t twin = fork();
    if (twin < 0) {
        int cause = errno;
        twin_free(cli->run.twin);
        return error_fail(error, ERROR_FAILED, "--twin: no second process: %s%s",
                          error_cause(cause), error_remedy(cause));
    }
    twin_take_side(cli->run.twin, twin == 0 ? TWIN_TWIN : TWIN_RUN);
    if (twin == 0)
        be_twin(cli, plan);
    bool done = training_run(cli, plan, error);
    if (done && cli->status == 0 && twin_link_failed(cli->run.twin, error))
        done = false;
    twin_free(cli->run.twin);
    await_twin(twin);
    return done;
}
