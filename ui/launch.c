// Workers: `mpbench run ..` in a session of their own, which the screen's end does not touch.
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "store/checkpoints.h"
#include "ui/live/live.h"

enum { MOST_WORKERS = 64, MOST_ARGUMENTS = 1024 };

// Watched until it is clear that they run: a worker that ends soon, and badly, says why on its
// standard error, which nobody sees.
static struct Worker {
    pid_t pid;
    int errors;              // the reading end of its standard error
    char last[MESSAGE_SIZE]; // of what came from there
} workers[MOST_WORKERS];

void launch_become(const Ui *ui, const char *const *arguments, int out, int errors) {
    const char *list[MOST_ARGUMENTS + 4];
    int count = 0;
    list[count++] = ui->host->program;
    for (; *arguments && count < MOST_ARGUMENTS; arguments++)
        list[count++] = *arguments;
    list[count++] = "--db";
    list[count++] = ui->options->database;
    list[count] = NULL;
    int nothing = open("/dev/null", O_RDWR);
    dup2(nothing, STDIN_FILENO);
    dup2(out < 0 ? nothing : out, STDOUT_FILENO);
    dup2(errors, STDERR_FILENO);
    signal(SIGPIPE, SIG_IGN); // it writes on when the screen is closed
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    execv(ui->host->program, (char *const *)list);
    _exit(127);
}

bool launch_worker(Ui *ui, const char *const *arguments, int64_t *process, Error *error) {
    int ends[2];
    struct Worker *worker = NULL;
    for (int i = 0; i < MOST_WORKERS && !worker; i++)
        if (workers[i].pid == 0)
            worker = &workers[i];
    if (!worker)
        return error_fail(error, ERROR_FAILED,
                          "%d runs were started here and still go; wait for "
                          "one to end, or stop one with S",
                          MOST_WORKERS);
    if (pipe(ends) != 0)
        return error_fail(error, ERROR_FAILED, "cannot start a run: %s", error_cause(errno));
    fcntl(ends[0], F_SETFD, FD_CLOEXEC);
    fcntl(ends[1], F_SETFD, FD_CLOEXEC);
    fcntl(ends[0], F_SETFL, O_NONBLOCK);
    pid_t pid = fork();
    if (pid == 0) {
        setsid();
        launch_become(ui, arguments, -1, ends[1]);
    }
    close(ends[1]);
    if (pid < 0) {
        close(ends[0]);
        return error_fail(error, ERROR_FAILED, "cannot start a run: %s; close other programs",
                          error_cause(errno));
    }
    *worker = (struct Worker){.pid = pid, .errors = ends[0]};
    *process = pid;
    return true;
}

bool launch_goes_on(int64_t process) {
    for (int i = 0; i < MOST_WORKERS; i++)
        if (workers[i].pid == process)
            return true;
    return false;
}

bool launch_may(const Ui *ui) {
    return !(ui->options && ui->options->demo);
}

bool launch_is_allowed(Ui *ui) {
    if (!launch_may(ui))
        ui_say(ui, INK_WARN,
               "the demo is a recording, nothing trains here: q, then mpbench trains for real");
    return launch_may(ui);
}

int64_t launch_last_checkpoint(Ui *ui, int64_t run, int64_t step) {
    CheckpointRow *rows;
    Error busy; // then the worker says what there is
    int count;
    int64_t last = -1;
    if (!store_list_checkpoints(ui->store, run, &rows, &count, &busy))
        return 0;
    for (int i = 0; i < count; i++)
        if (rows[i].step <= step && !checkpoint_has_weights_only(&rows[i]))
            last = rows[i].step;
    free(rows);
    return last;
}

// One that ended early goes on from its last checkpoint. Without one it is trained again up to the
// step of a fork, where it was not a fork itself: what lies before is its parent's.
static void say_what_goes_on(Ui *ui, const RunRecord *run) {
    const long long id = run->id;
    const char *status = run_status_name(run->status);
    if (launch_last_checkpoint(ui, run->id, INT64_MAX) >= 0)
        ui_say(ui, INK_WARN,
               "#%lld is over (%s); :resume goes on with it (mpbench resume %lld), :fork STEP in "
               "another way",
               id, status, id);
    else if (run->step > 0 && run->parent_step == 0)
        ui_say(ui, INK_WARN,
               "#%lld is over (%s), without a checkpoint; :fork STEP trains it again up to there "
               "and on (mpbench fork %lld --at STEP)",
               id, status, id);
    else
        ui_say(ui, INK_WARN,
               "#%lld is over (%s), without a checkpoint: start it anew in the form at home (1)",
               id, status);
}

bool launch_takes_orders(Ui *ui, const RunRecord *run) {
    long long id = run->id;
    if (!launch_is_allowed(ui))
        return false;
    if (run->status == RUN_FINISHED)
        ui_say(ui, INK_WARN,
               "#%lld is over (finished); :fork STEP bf16 trains on from there in another way "
               "(mpbench fork %lld --at STEP)",
               id, id);
    else if (live_is_over(run))
        say_what_goes_on(ui, run);
    return !live_is_over(run);
}

// What it wrote is read all the time: a full pipe would hold the worker up.
static void drain(struct Worker *worker) {
    char text[4096];
    for (ssize_t length; (length = read(worker->errors, text, sizeof text - 1)) > 0;) {
        text[length] = 0;
        char *line = strstr(text, "mpbench: ");
        if (line)
            snprintf(worker->last, sizeof worker->last, "%.*s", (int)strcspn(line, "\n"), line);
    }
}

static void tell_end(Ui *ui, const struct Worker *worker, int status) {
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
        return;
    if (worker->last[0])
        ui_say(ui, INK_BAD, "%s", worker->last);
    else
        ui_say(ui, INK_BAD, "process %ld, started here, ended %s %d and left no word",
               (long)worker->pid, WIFEXITED(status) ? "with status" : "by signal",
               WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status));
}

void launch_watch(Ui *ui) {
    for (int i = 0; i < MOST_WORKERS; i++) {
        struct Worker *worker = &workers[i];
        if (worker->pid == 0)
            continue;
        int status;
        bool is_over = waitpid(worker->pid, &status, WNOHANG) == worker->pid;
        drain(worker);
        if (!is_over)
            continue;
        tell_end(ui, worker, status);
        close(worker->errors);
        worker->pid = 0;
    }
}
