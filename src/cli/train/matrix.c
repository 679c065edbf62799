#define _GNU_SOURCE // locks of an open file, which no other descriptor's end lets go

// `mpbench matrix`: every combination of precision, parameters and seed as a run of its own, in
// processes of their own, and then the comparison. What finished before is not run again, and what
// was stopped goes on: runs are found by the options that they were recorded with.
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/stops.h"
#include "cli/experiments.h"
#include "cli/history/compare.h"
#include "cli/history/history.h"
#include "cli/print/table.h"
#include "cli/train/child.h"
#include "cli/train/matrix.h"

// ---- one run ------------------------------------------------------------------------------------

static bool start(MatrixCell *cell, char **arguments, Error *error) {
    cell->began = stops_clock();
    if (!child_start(arguments, &cell->process, error))
        return error_prefix(error, "matrix");
    cell->state = CELL_RUNNING;
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
        fprintf(stderr, " ended after %s s\n", text_number(time, stops_clock() - cell->began, 3));
    else
        fputs(" failed\n", stderr);
}

// Where nothing but seeds, formats and scales varies, what its first run refuses all would: which
// parameters a model is made by may decide of its layers.
static void note_refusal(Matrix *matrix, int status) {
    if (!WIFEXITED(status) || WEXITSTATUS(status) != error_exit_status(ERROR_USAGE))
        return;
    bool is_for_all = matrix_count(matrix, CELL_DONE) == 0;
    for (int i = 0; i < matrix->key_count; i++)
        if (strcmp(matrix->keys[i].option, "set") == 0 && matrix->keys[i].count > 1)
            is_for_all = false;
    matrix->is_refused = matrix->is_refused || is_for_all;
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
            if (cell->stopped == 0) // else it was not refused when it began
                note_refusal(matrix, status);
            if (cell->state != CELL_MISSING)
                tell(cli, matrix, cell);
        }
}

static int fill_running(const Matrix *matrix, pid_t processes[MATRIX_MOST_CELLS]) {
    int count = 0;
    for (int i = 0; i < matrix->cell_count; i++)
        if (matrix->cells[i].state == CELL_RUNNING)
            processes[count++] = matrix->cells[i].process;
    return count;
}

static void pass_on(const Matrix *matrix, int number) {
    pid_t processes[MATRIX_MOST_CELLS];
    child_send(processes, fill_running(matrix, processes), number);
}

static void heed_stop(const Matrix *matrix) {
    pid_t processes[MATRIX_MOST_CELLS];
    child_heed_stop(processes, fill_running(matrix, processes));
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

static bool check_refused(const Matrix *matrix, Error *error) {
    return !matrix->is_refused ||
           error_fail(error, ERROR_USAGE,
                      "matrix: what it asks for is refused, as told above: no more of its runs are "
                      "started");
}

static bool run_in_turn(const Cli *cli, Matrix *matrix, Error *error) {
    const struct timespec pause = {.tv_nsec = 10 * 1000 * 1000};
    bool done = true, is_told = false; // of a failure
    int passed_on = 0;
    for (;;) {
        int running = matrix_count(matrix, CELL_RUNNING);
        int number = run_stop_requested(), count = child_signals();
        bool is_ending = number || !done || matrix->is_refused;
        for (; passed_on < count; passed_on++)
            pass_on(matrix, number);
        if (!done && !is_told && count == 0)
            pass_on(matrix, SIGTERM);
        is_told = is_told || !done;
        if (running == 0 && (is_ending || matrix_count(matrix, CELL_MISSING) == 0))
            return done && (number || check_refused(matrix, error));
        if (!is_ending && running < matrix->workers && matrix_count(matrix, CELL_MISSING) > 0) {
            done = start_next(cli, matrix, error);
            continue;
        }
        nanosleep(&pause, NULL);
        reap(cli, matrix);
        heed_stop(matrix);
    }
}

// Runs all that is missing, so many at once.
static bool run_cells(const Cli *cli, Matrix *matrix, Error *error) {
    stops_hold(); // until the runs have been stopped, too
    bool done = run_in_turn(cli, matrix, error);
    stops_let();
    return done;
}

// ---- the command --------------------------------------------------------------------------------

// Of --list: every combination, and what the history has of it.
static bool list_cells(const Cli *cli, const Matrix *matrix, Error *error) {
    static const TableColumn columns[] = {
        {"combination", false, 0, 0}, {"run", true, 0, 0}, {"state", false, 0, 0}};
    static const char *const words[] = {[CELL_MISSING] = "to be trained",
                                        [CELL_RUNNING] = "in progress",
                                        [CELL_ELSEWHERE] = "in progress",
                                        [CELL_DONE] = "finished",
                                        [CELL_FAILED] = "failed"};
    const Terminal terminal = terminal_of(stdout, cli->color);
    Table *table = table_new(columns, sizeof columns / sizeof *columns);
    if (!table)
        return error_fail(error, ERROR_MEMORY, "no memory for the table");
    for (int i = 0; i < matrix->cell_count; i++) {
        const MatrixCell *cell = &matrix->cells[i];
        char name[MATRIX_NAME_SIZE], run[TEXT_SIZE];
        const int64_t stopped = cell->state == CELL_MISSING ? cell->stopped : 0;
        const int64_t known = cell->run > 0 ? cell->run : stopped;
        matrix_cell_name(matrix, cell, name);
        snprintf(run, sizeof run, "%" PRId64, known);
        table_put(table, name, "");
        table_put(table, known > 0 ? run : NULL, "");
        table_put(table, stopped > 0 ? "stopped, to go on" : words[cell->state], "");
    }
    bool done =
        table_print(table, stdout, terminal_width(&terminal), terminal_style(&terminal, STYLE_DIM),
                    terminal_style(&terminal, STYLE_NONE), error);
    table_free(table);
    putchar('\n');
    return done;
}

static bool compare_cells(const Cli *cli, Store *store, const Matrix *matrix, Error *error) {
    int64_t runs[MATRIX_MOST_CELLS];
    int count = 0;
    for (int i = 0; i < matrix->cell_count; i++)
        if (matrix->cells[i].run > 0)
            runs[count++] = matrix->cells[i].run;
    if (count > 0)
        return cli_compare_runs(cli, store, runs, count, error);
    if (cli->json) { // of the same shape, with nothing in it
        JsonWriter json = {.stream = stdout};
        comparison_write_json(&(Comparison){.run_count = 0}, &json);
        putchar('\n');
    }
    if (!cli->quiet)
        fputs("matrix: no run finished: nothing to compare\n", stderr);
    return true;
}

// Two that train the same would train every run twice: the second is refused while this file is
// locked, a byte a matrix. The lock goes with the process, however that ends.
static bool lock(const Cli *cli, const Matrix *matrix, int *file, Error *error) {
    char path[STORE_PATH_SIZE], name[STORE_PATH_SIZE + 16];
    if (!store_path(cli->database, path, error))
        return false;
    snprintf(name, sizeof name, "%s-matrices", path);
    struct flock range = {
        .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = matrix->id, .l_len = 1};
    *file = open(name, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (*file < 0)
        return error_fail(error, ERROR_HISTORY, "%.300s: %s: name another history with --db", name,
                          error_cause(errno));
    if (fcntl(*file, F_OFD_SETLK, &range) == 0)
        return true;
    if (errno == EAGAIN || errno == EACCES)
        return error_fail(error, ERROR_TAKEN,
                          "matrix: another process trains this matrix; the same command goes on "
                          "with it, or compares its runs, once that has ended");
    return true; // a file system without locks
}

// The history that the runs will be in, which a list of them only reads.
static Store *open_history(const Cli *cli, Error *error) {
    char path[STORE_PATH_SIZE];
    if (cli->list)
        return history_open(cli, STORE_READ, error);
    return store_path(cli->database, path, error) ? store_open(path, STORE_WRITE, error) : NULL;
}

// What of the matrix is in the history; the store is closed while others write.
static bool look(const Cli *cli, Matrix *matrix, Error *error) {
    Store *store = open_history(cli, error);
    bool done =
        store &&
        (cli->list || store_keep_matrix(store, matrix->specification, &matrix->id, error)) &&
        matrix_find_runs(store, matrix, error);
    store_close(store);
    return done;
}

// What none of its runs heeds of the recipe, as each of them says: once for all.
static bool tell_unheeded(const Cli *cli, Store *store, const Matrix *matrix, Error *error) {
    char text[RECORD_TEXT_SIZE] = "";
    bool is_same = !cli->quiet && cli->run.recipe;
    for (int i = 0; i < matrix->cell_count && is_same; i++) {
        RunRecord run;
        if (matrix->cells[i].run == 0)
            continue;
        if (!store_read_run(store, matrix->cells[i].run, &run, error))
            return false;
        const char *fact = record_fact(&run, RECORD_FACT_UNHEEDED);
        is_same = fact && (!text[0] || strcmp(text, fact) == 0);
        snprintf(text, sizeof text, "%s", fact ? fact : "");
        record_clear(&run);
    }
    if (is_same && text[0])
        fprintf(stderr, "--recipe %s: %s\n", cli->run.recipe, text);
    return true;
}

static bool end(const Cli *cli, Matrix *matrix, Error *error) {
    Store *store = history_open(cli, STORE_READ, error);
    bool done = store && matrix_find_runs(store, matrix, error) &&
                tell_unheeded(cli, store, matrix, error) &&
                (!cli->list || cli->json || cli->markdown || list_cells(cli, matrix, error)) &&
                compare_cells(cli, store, matrix, error);
    store_close(store);
    int stopped = 0; // by an order, which to the run is an end like others
    for (int i = 0; i < matrix->cell_count; i++)
        stopped += matrix->cells[i].state == CELL_DONE && matrix->cells[i].run == 0;
    int failed = matrix_count(matrix, CELL_FAILED), busy = matrix_count(matrix, CELL_ELSEWHERE);
    if (cli->list) // nothing was tried
        return done;
    if (done && busy > 0)
        return error_fail(error, ERROR_TAKEN,
                          "matrix: %d of %d runs %s in progress in another process; the same "
                          "command compares them once they have ended",
                          busy, matrix->cell_count, busy == 1 ? "is" : "are");
    if (done && stopped > 0 && failed > 0)
        return error_fail(error, ERROR_FAILED,
                          "matrix: of %d runs %d failed, and %d did not come to the end; the same "
                          "command tries those again and goes on with these",
                          matrix->cell_count, failed, stopped);
    if (done && stopped > 0)
        return error_fail(error, ERROR_FAILED,
                          "matrix: %d of %d runs %s stopped before the end, and not compared; the "
                          "same command goes on with %s",
                          stopped, matrix->cell_count, stopped == 1 ? "was" : "were",
                          stopped == 1 ? "it" : "them");
    if (done && failed > 0)
        return error_fail(error, ERROR_FAILED,
                          "matrix: %d of %d runs failed; the same command tries them again", failed,
                          matrix->cell_count);
    return done;
}

static void tell_stopped(const Matrix *matrix) {
    int stopped = 0;
    for (int i = 0; i < matrix->cell_count; i++)
        stopped += matrix->cells[i].state == CELL_MISSING && matrix->cells[i].stopped > 0;
    if (stopped > 0)
        fprintf(stderr, "%d %s stopped before the end: from the last checkpoint on\n", stopped,
                stopped == 1 ? "was" : "were");
}

bool command_matrix(Cli *cli, Error *error) {
    Matrix *matrix = matrix_new(cli, error);
    if (!matrix)
        return false;
    child_catch_signals();
    int file = -1;                          // locked until the end
    bool done = look(cli, matrix, error) && // and again: who had the lock may have trained
                (cli->list || (lock(cli, matrix, &file, error) && look(cli, matrix, error)));
    int known = matrix_count(matrix, CELL_DONE);
    if (done && known > 0 && !cli->quiet)
        fprintf(stderr, "%d of %d done%s\n", known, matrix->cell_count, cli->list ? "" : " before");
    if (done && !cli->list && !cli->quiet)
        tell_stopped(matrix);
    done = done && (cli->list || run_cells(cli, matrix, error));
    if (done && run_stop_requested())
        cli->status = 128 + run_stop_requested();
    else if (done)
        done = end(cli, matrix, error);
    if (file >= 0)
        close(file);
    matrix_free(matrix);
    return done;
}
