// `mpbench ctl`: an order to a run in progress, and its answer.
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "cli/cli.h"
#include "cli/history.h"
#include "store/commands.h"

static const double patience = 10;

// Until the worker has answered; false with an error where it does not, or is gone meanwhile.
static bool wait_for_answer(Store *store, RunCommand *order, const char *run, Error *error) {
    double give_up = clock_seconds() + patience;
    for (;;) {
        if (!store_read_command(store, order->id, order, error))
            return false;
        if (order->state == COMMAND_DONE || order->state == COMMAND_REFUSED)
            return true;
        if (clock_seconds() >= give_up)
            return error_fail(error, ERROR_BUSY,
                              "%.60s: no answer within %g s: the step that it is in takes long; "
                              "the order is kept and done at its end",
                              run, patience);
        const struct timespec moment = {.tv_nsec = 20000000};
        nanosleep(&moment, NULL);
    }
}

bool command_ctl(Cli *cli, Error *error) {
    const char *argument = cli->operand_count > 2 ? cli->operands[2] : "";
    RunCommand order = {0};
    int64_t run;
    Store *store = history_open(cli, STORE_WRITE, error);
    bool done = store && store_find_run(store, cli->operands[0], &run, error) &&
                store_send_command(store, run, cli->operands[1], argument, &order.id, error) &&
                wait_for_answer(store, &order, cli->operands[0], error);
    if (done && order.state == COMMAND_REFUSED)
        done = error_fail(error, ERROR_FAILED, "refused: %s", order.answer);
    if (done) {
        cli_print_outside(stdout, order.answer);
        putchar('\n');
    }
    store_close(store);
    return done;
}
