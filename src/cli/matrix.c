// `mpbench matrix`: every combination of precision, parameters and seed as a run of its own, in
// processes of their own, and then the comparison. What finished before is not run again: runs are
// found by the options that they were recorded with.
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "cli/compare.h"
#include "cli/experiments.h"
#include "cli/history.h"
#include "cli/matrix.h"

static void on_signal(int number) {
    if (run_stop_requested())
        _exit(128 + number); // the runs were told before
    run_request_stop(number);
}

static void catch_signals(void) {
    static const int numbers[] = {SIGINT, SIGTERM, SIGHUP};
    struct sigaction action = {.sa_handler = on_signal};
    sigemptyset(&action.sa_mask);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        sigaction(numbers[i], &action, NULL);
}

// ---- one run ------------------------------------------------------------------------------------

// The child gets a group of its own, so that ^C on the terminal reaches it once: from us.
static bool start(MatrixCell *cell, char **arguments, Error *error) {
    fflush(NULL);
    pid_t child = fork();
    if (child < 0)
        return error_fail(error, ERROR_FAILED, "matrix: a run cannot be started: %s",
                          strerror(errno));
    if (child == 0) {
        setpgid(0, 0);
        // Only the comparison is a result.
        if (!freopen("/dev/null", "w", stdout) || !freopen("/dev/null", "r", stdin))
            _exit(127);
        execv("/proc/self/exe", arguments);
        _exit(127);
    }
    cell->process = child;
    cell->state = CELL_RUNNING;
    cell->began = clock_seconds();
    return true;
}

static void tell(const Cli *cli, const Matrix *matrix, const MatrixCell *cell) {
    char name[MATRIX_NAME_SIZE], time[TEXT_SIZE];
    if (cli->quiet)
        return;
    matrix_cell_name(matrix, cell, name);
    fprintf(stderr,
            "%d/%d done: ", matrix_count(matrix, CELL_DONE) + matrix_count(matrix, CELL_FAILED),
            matrix->cell_count);
    cli_print_outside(stderr, name);
    if (cell->state == CELL_DONE)
        fprintf(stderr, " finished in %s s\n", text_number(time, clock_seconds() - cell->began, 3));
    else
        fputs(" failed\n", stderr);
}

static void reap(const Cli *cli, Matrix *matrix) {
    int status;
    pid_t child;
    while ((child = waitpid(-1, &status, WNOHANG)) > 0)
        for (int i = 0; i < matrix->cell_count; i++) {
            MatrixCell *cell = &matrix->cells[i];
            if (cell->state != CELL_RUNNING || cell->process != child)
                continue;
            bool is_done = WIFEXITED(status) && WEXITSTATUS(status) == 0;
            cell->state = is_done ? CELL_DONE : run_stop_requested() ? CELL_MISSING : CELL_FAILED;
            if (cell->state != CELL_MISSING)
                tell(cli, matrix, cell);
        }
}

static void pass_on(const Matrix *matrix, int number) {
    for (int i = 0; i < matrix->cell_count; i++)
        if (matrix->cells[i].state == CELL_RUNNING)
            kill(matrix->cells[i].process, number);
}

static bool start_next(const Cli *cli, Matrix *matrix, Error *error) {
    for (int i = 0; i < matrix->cell_count; i++) {
        MatrixCell *cell = &matrix->cells[i];
        if (cell->state != CELL_MISSING)
            continue;
        MatrixArguments arguments;
        bool done = matrix_arguments(cli, matrix, cell, &arguments, error) &&
                    start(cell, arguments.list, error);
        matrix_clear_arguments(&arguments);
        return done;
    }
    return true;
}

// Runs all that is missing, so many at once.
static bool run_cells(const Cli *cli, Matrix *matrix, Error *error) {
    const struct timespec pause = {.tv_nsec = 10 * 1000 * 1000};
    bool done = true, is_told = false;
    for (;;) {
        int running = matrix_count(matrix, CELL_RUNNING);
        int number = run_stop_requested();
        bool is_ending = number || !done;
        if (is_ending && !is_told) {
            pass_on(matrix, number ? number : SIGTERM);
            is_told = true;
        }
        if (running == 0 && (is_ending || matrix_count(matrix, CELL_MISSING) == 0))
            return done;
        if (!is_ending && running < matrix->workers && matrix_count(matrix, CELL_MISSING) > 0) {
            done = start_next(cli, matrix, error);
            continue;
        }
        nanosleep(&pause, NULL);
        reap(cli, matrix);
    }
}

// ---- the command --------------------------------------------------------------------------------

static bool compare_cells(const Cli *cli, Store *store, const Matrix *matrix, Error *error) {
    int64_t runs[MATRIX_MOST_CELLS];
    int count = 0;
    for (int i = 0; i < matrix->cell_count; i++)
        if (matrix->cells[i].run > 0)
            runs[count++] = matrix->cells[i].run;
    if (count < 2) {
        if (cli->json)
            puts("null");
        if (!cli->quiet)
            fprintf(stderr, "matrix: %d run%s finished: nothing to compare\n", count,
                    count == 1 ? "" : "s");
        return true;
    }
    return cli_compare_runs(cli, store, runs, count, error);
}

// What of the matrix is in the history; the store is closed while others write.
static bool look(const Cli *cli, Matrix *matrix, Error *error) {
    char path[STORE_PATH_SIZE];
    Store *store =
        store_path(cli->database, path, error) ? store_open(path, STORE_WRITE, error) : NULL;
    bool done = store && matrix_find_runs(store, matrix, error);
    store_close(store);
    return done;
}

static bool end(const Cli *cli, Matrix *matrix, Error *error) {
    Store *store = history_open(cli, STORE_READ, error);
    bool done =
        store && matrix_find_runs(store, matrix, error) && compare_cells(cli, store, matrix, error);
    store_close(store);
    int failed = matrix_count(matrix, CELL_FAILED), busy = matrix_count(matrix, CELL_ELSEWHERE);
    if (busy > 0 && !cli->quiet)
        fprintf(stderr, "matrix: %d run%s in progress in another process\n", busy,
                busy == 1 ? " is" : "s are");
    if (done && failed > 0)
        return error_fail(error, ERROR_FAILED,
                          "matrix: %d of %d runs failed; the same command tries them again", failed,
                          matrix->cell_count);
    return done;
}

bool command_matrix(Cli *cli, Error *error) {
    Matrix *matrix = matrix_new(cli, error);
    if (!matrix)
        return false;
    catch_signals();
    bool done = look(cli, matrix, error);
    int known = matrix_count(matrix, CELL_DONE);
    if (done && known > 0 && !cli->quiet)
        fprintf(stderr, "%d/%d done before\n", known, matrix->cell_count);
    done = done && run_cells(cli, matrix, error);
    if (done && run_stop_requested())
        cli->status = 128 + run_stop_requested();
    else if (done)
        done = end(cli, matrix, error);
    matrix_free(matrix);
    return done;
}
