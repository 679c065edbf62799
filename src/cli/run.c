// `mpbench run`: trains one experiment in the foreground and says what came of it.
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/experiments.h"
#include "cli/progress.h"
#include "cli/summary.h"
#include "lua/experiment.h"

enum { STATUS_OF_SIGNALS = 128 };

static void on_signal(int number) {
    static const char note[] = "\nmpbench: stopping after this step; once more ends it at once\n";
    if (run_stop_requested())
        _exit(STATUS_OF_SIGNALS + number);
    run_request_stop(number);
    ssize_t written = write(STDERR_FILENO, note, sizeof note - 1);
    (void)written; // there is nobody else to tell
}

static void catch_signals(void) {
    static const int numbers[] = {SIGINT, SIGTERM, SIGHUP};
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
    sigemptyset(&action.sa_mask);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        sigaction(numbers[i], &action, NULL);
}

static void write_json(const Run *run) {
    JsonWriter json = {.stream = stdout};
    run_write_json(run, 0, &json);
    putchar('\n');
}

bool command_run(Cli *cli, Error *error) {
    char path[EXPERIMENT_PATH_SIZE];
    if (!experiment_find(cli->operands[0], path, sizeof path, error))
        return false;
    cli_limit_spinning(cli->arguments);
    catch_signals();
    Run *run = run_new(&cli->run, error);
    if (!run)
        return false;
    ProgressView progress;
    progress_begin(&progress, cli->color, cli->quiet);
    run->observer = progress_observer(&progress);
    LuaRunOptions options = {.trust = cli->trust, .print = progress_print, .context = &progress};
    bool done = lua_run_experiment(run, path, &options, error);
    progress_end(&progress);
    if (cli->json)
        write_json(run);
    else if (done || run->step > 0)
        summary_print(run, cli->color);
    if (run->status == RUN_STOPPED && run_stop_requested())
        cli->status = STATUS_OF_SIGNALS + run_stop_requested();
    run_free(run);
    return done;
}
