// `mpbench ctl`: an order to a run in progress, and its answer.
#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "cli/cli.h"
#include "cli/history/history.h"
#include "store/commands.h"
#include "store/worker.h"

static const double patience = 10, look_interval = 0.5;

// ---- while it waits -----------------------------------------------------------------------------

// Says after a second that the command waits, so that nobody takes it for hung. A thread of its
// own: a run that was stopped in the middle of a write keeps the history locked, too.
typedef struct Notice {
    const char *name; // of the run, as it was typed
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t ended;
    bool is_over, has_thread;
} Notice;

static void *notice_after_a_second(void *context) {
    Notice *notice = context;
    struct timespec when;
    clock_gettime(CLOCK_REALTIME, &when);
    when.tv_sec++;
    pthread_mutex_lock(&notice->lock);
    int code = 0;
    while (!notice->is_over && code != ETIMEDOUT)
        code = pthread_cond_timedwait(&notice->ended, &notice->lock, &when);
    if (!notice->is_over) {
        fputs("mpbench: waiting for ", stderr);
        cli_print_outside(stderr, notice->name);
        fprintf(stderr, " to answer, for about %g s at most\n", patience);
    }
    pthread_mutex_unlock(&notice->lock);
    return NULL;
}

static void notice_begin(Notice *notice, const char *name) {
    *notice = (Notice){
        .name = name, .lock = PTHREAD_MUTEX_INITIALIZER, .ended = PTHREAD_COND_INITIALIZER};
    notice->has_thread = pthread_create(&notice->thread, NULL, notice_after_a_second, notice) == 0;
}

static void notice_end(Notice *notice) {
    pthread_mutex_lock(&notice->lock);
    notice->is_over = true;
    pthread_cond_signal(&notice->ended);
    pthread_mutex_unlock(&notice->lock);
    if (notice->has_thread)
        pthread_join(notice->thread, NULL);
}

// ---- the answer ---------------------------------------------------------------------------------

typedef struct Answering { // who is to answer
    Store *store;
    int64_t run;
    const char *name; // as it was typed
    double began;
} Answering;

static bool is_answered(const RunCommand *order) {
    return order->state == COMMAND_DONE || order->state == COMMAND_REFUSED;
}

// Whether anybody is there who could still answer. A worker that ends answers first.
static bool look_after(const Answering *answering, RunCommand *order, WorkerLife *life, pid_t *pid,
                       Error *error) {
    if (!store_worker_life(answering->store, answering->run, life, pid, error))
        return false;
    if (*life == WORKER_LIVE || *life == WORKER_STALE)
        return true;
    if (!store_read_command(answering->store, order->id, order, error))
        return false;
    return is_answered(order) ||
           error_fail(error, ERROR_FAILED,
                      "%.60s: its process is gone, and the order is not done; `mpbench resume "
                      "%.60s` goes on with the run",
                      answering->name, answering->name);
}

static bool give_up(const Answering *answering, WorkerLife life, pid_t pid, Error *error) {
    if (life == WORKER_STALE)
        return error_fail(error, ERROR_TAKEN,
                          "%.60s: no answer within %g s: its process %lld is there but silent, "
                          "stopped or starved; the order is kept and done when it goes on",
                          answering->name, patience, (long long)pid);
    return error_fail(
        error, ERROR_TAKEN,
        "%.60s: no answer within %g s: its step or checkpoint takes long; the order is "
        "kept and done after it",
        answering->name, patience);
}

// Until the worker has answered; false with an error where it does not, or is gone meanwhile.
static bool wait_for_answer(const Answering *answering, RunCommand *order, Error *error) {
    double next_look = answering->began + look_interval;
    WorkerLife life = WORKER_LIVE;
    pid_t pid = 0;
    for (;;) {
        if (!store_read_command(answering->store, order->id, order, error))
            return false;
        if (is_answered(order))
            return true;
        double now = clock_seconds();
        if (now >= next_look) {
            if (!look_after(answering, order, &life, &pid, error))
                return false;
            next_look = now + look_interval;
        }
        if (now >= answering->began + patience)
            return give_up(answering, life, pid, error);
        const struct timespec moment = {.tv_nsec = 20000000};
        nanosleep(&moment, NULL);
    }
}

static void write_answer(const RunCommand *order) {
    JsonWriter json = {.stream = stdout};
    json_begin_object(&json);
    json_put_integer(&json, "id", order->run);
    json_put_text(&json, "order", order->verb);
    json_put_text(&json, "argument", order->argument[0] ? order->argument : NULL);
    json_put_known(&json, "step", (double)order->step, order->step >= 0);
    json_put_text(&json, "answer", order->answer);
    json_end_object(&json);
    putchar('\n');
}

bool command_ctl(Cli *cli, Error *error) {
    const char *argument = cli->operand_count > 2 ? cli->operands[2] : "";
    RunCommand order = {0};
    Notice notice;
    Answering answering = {.name = cli->operands[0], .began = clock_seconds()};
    notice_begin(&notice, answering.name);
    Store *store = answering.store = history_open(cli, STORE_WRITE, error);
    bool done =
        store && store_find_run(store, cli->operands[0], &answering.run, error) &&
        store_send_command(store, answering.run, cli->operands[1], argument, &order.id, error) &&
        wait_for_answer(&answering, &order, error);
    notice_end(&notice);
    if (done && order.state == COMMAND_REFUSED) {
        // What the run looked at and cannot set was typed wrong, as it would be for `run`.
        const bool is_wrong = command_is(&order, VERB_SET) && order.step >= 0;
        done =
            error_fail(error, is_wrong ? ERROR_USAGE : ERROR_FAILED, "refused: %s", order.answer);
    }
    if (done && cli->json) {
        write_answer(&order);
    } else if (done) {
        cli_print_outside(stdout, order.answer);
        putchar('\n');
    }
    store_close(store);
    return done;
}
