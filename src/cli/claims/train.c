// The trainings that claims are judged by: one `mpbench matrix` after the other, each in a process
// of its own.
#include <inttypes.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>

#include "base/stops.h"
#include "cli/claims/claims.h"
#include "cli/train/child.h"

enum { MOST_WORDS = 32, MOST_OPTIONS = 16, STATUS_NOT_STARTED = 127, STATUS_OF_SIGNALS = 128 };

void claim_tag(ClaimTrial trial, char tag[CLAIM_TAG_SIZE]) {
    snprintf(tag, CLAIM_TAG_SIZE, "claims-%s", claim_trainings[trial].name);
    for (char *at = tag; *at; at++)
        *at = (char)(*at >= 'A' && *at <= 'Z' ? *at + ('a' - 'A') : *at == '_' ? '-' : *at);
}

// Until it has ended; signals that come meanwhile are passed on.
static int wait_for(pid_t child, int *passed_on) {
    const struct timespec pause = {.tv_nsec = 10 * 1000 * 1000};
    int status = 0;
    while (waitpid(child, &status, WNOHANG) == 0) {
        for (; *passed_on < child_signals(); ++*passed_on)
            kill(child, run_stop_requested());
        child_heed_stop(&child, 1);
        nanosleep(&pause, NULL);
    }
    return status;
}

static bool run_matrix(Cli *cli, const char *const *words, ClaimTrial trial, ClaimLacks *lacks,
                       Error *error) {
    static int passed_on; // of all signals of the program
    pid_t child;
    stops_hold(); // until the matrix has been stopped, too
    const bool is_started = child_start((char *const *)words, &child, error);
    const int end = is_started ? wait_for(child, &passed_on) : 0;
    stops_let();
    if (!is_started)
        return error_prefix(error, "claims");
    int status = WIFEXITED(end) ? WEXITSTATUS(end) : STATUS_OF_SIGNALS;
    if (run_stop_requested()) {
        if (!cli->quiet)
            fputs("claims: stopped; the same command goes on\n", stderr);
        cli->status = STATUS_OF_SIGNALS + run_stop_requested();
        return true;
    }
    if (status == STATUS_NOT_STARTED)
        return error_fail(error, ERROR_FAILED,
                          "claims: %s: cannot be started; is the program still where it was?",
                          cli->arguments[0]);
    if (status >= STATUS_OF_SIGNALS)
        return error_fail(error, ERROR_FAILED,
                          "claims: `matrix %s` was ended by a signal; the same command goes on",
                          claim_trainings[trial].command);
    if (status == error_exit_status(ERROR_HISTORY)) // nor can the others be kept
        return error_fail(error, ERROR_HISTORY, "claims: `matrix %s` could not be kept",
                          claim_trainings[trial].command);
    lacks->failed += status == error_exit_status(ERROR_FAILED);
    if (status > error_exit_status(ERROR_FAILED)) {
        lacks->status = status;
        lacks->refused = claim_trainings[trial].command;
    }
    return true;
}

bool claim_train(Cli *cli, ClaimTrial trial, ClaimLacks *lacks, Error *error) {
    char command[256], seeds[24], threads[24], tag[CLAIM_TAG_SIZE];
    const char *words[MOST_WORDS + MOST_OPTIONS];
    int count = 0;
    snprintf(command, sizeof command, "%s", claim_trainings[trial].command);
    snprintf(seeds, sizeof seeds, "%" PRId64, cli->seeds > 0 ? cli->seeds : 3);
    snprintf(threads, sizeof threads, "%d", cli->run.threads);
    claim_tag(trial, tag);
    words[count++] = cli->arguments[0];
    words[count++] = "matrix";
    for (char *rest = NULL, *word = strtok_r(command, " ", &rest); word && count < MOST_WORDS;
         word = strtok_r(NULL, " ", &rest))
        words[count++] = word;
    const char *const said[][2] = {
        {"--seeds", seeds},
        {"--tag", tag},
        {"--device", cli->run.device ? cli->run.device : NULL},
        {"--threads", cli->run.threads > 0 ? threads : NULL},
        {"--db", cli->database},
    };
    for (size_t i = 0; i < sizeof said / sizeof *said; i++)
        if (said[i][1]) {
            words[count++] = said[i][0];
            words[count++] = said[i][1];
        }
    if (cli->quiet)
        words[count++] = "--quiet";
    words[count] = NULL;
    if (!cli->quiet)
        fprintf(stderr, "%s --seeds %s\n", claim_trainings[trial].command, seeds);
    return run_matrix(cli, words, trial, lacks, error);
}
