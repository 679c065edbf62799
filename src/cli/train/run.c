// Trains one experiment in the foreground and says what came of it: `mpbench run`, and what resume
// and fork share with it.
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "base/stops.h"
#include "cli/cli.h"
#include "cli/experiments.h"
#include "cli/train/confine.h"
#include "cli/train/dry_run.h"
#include "cli/train/progress.h"
#include "cli/train/summary.h"
#include "cli/train/training.h"
#include "cli/train/twin.h"
#include "kernel/kernel.h"
#include "lua/experiment.h"
#include "precision/preset.h"
#include "run/recorder.h"

static bool tells_of_signals = true; // of two processes that both get them one alone

static void on_signal(int number) {
    static const char note[] = "\nmpbench: stopping after this step; once more ends it at once\n";
    if (run_stop_requested())
        _exit(STATUS_OF_SIGNALS + number);
    run_request_stop(number);
    int before = errno;
    ssize_t written = tells_of_signals && progress_takes_output()
                          ? write(STDERR_FILENO, note, sizeof note - 1)
                          : 0;
    (void)written; // there is nobody else to tell
    errno = before;
}

static void on_continue(int number) {
    (void)number;
    stops_forget();
    run_note_break();
}

void training_catch_signals(void) {
    static const int numbers[] = {SIGINT, SIGTERM, SIGHUP};
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
    sigemptyset(&action.sa_mask);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        sigaction(numbers[i], &action, NULL);
    action.sa_handler = on_continue;
    sigaction(SIGCONT, &action, NULL);
    // Whoever read our output may go: that ends no training.
    action.sa_handler = SIG_IGN;
    sigaction(SIGPIPE, &action, NULL);
}

void training_end_stuck(void *context, const Error *error) {
    (void)context;
    cli_print_error(error);
    _exit(error_exit_status(error->code));
}

void training_end_left(void *context) {
    (void)context;
    _exit(STATUS_OF_SIGNALS + run_stop_requested());
}

// ---- what came of it ----------------------------------------------------------------------------

typedef struct Training {
    const Cli *cli;
    Run *run;
    Recorder *recorder; // NULL: no history
    const TrainingPlan *plan;
    ProgressView progress;
    Error lost; // why a checkpoint was not kept
} Training;

// One that was to be recorded and is not in the history has no name there: what it was to be called
// may be another's.
static bool write_json(const Training *training, Error *error) {
    RunRecord record;
    if (!run_describe(training->run, &record, error))
        return false;
    if (training->recorder && record.id == 0)
        record.name[0] = 0;
    JsonWriter json = {.stream = stdout};
    record_write_json(&record, true, &json);
    putchar('\n');
    record_clear(&record);
    return true;
}

static void tell_untouched(const Run *run) {
    fputs("mpbench: ", stderr);
    cli_print_outside(stderr, run->name);
    fputs(" was not resumed: it is as before\n", stderr);
}

// The run is finished: its last state goes into the history, and the result to standard output.
// `done`: it did what it was asked for, else `error` says why not.
static bool report(Training *training, bool done, Error *error) {
    Run *run = training->run;
    Error lost = {0};
    bool is_kept = !training->recorder || recorder_end(training->recorder, run, &lost);
    // It never came to its checkpoint, and stands in the history as before: nothing came of it.
    const bool is_untouched =
        training->recorder && run->options->resumes > 0 && !recorder_has_begun(training->recorder);
    bool is_own = lost.code == ERROR_STOPPED; // somebody else's run now: it has been told
    progress_end(&training->progress);
    if (!is_kept && !is_own) {
        error_prefix(&lost, "not all of run %s is in the history", run->name);
        lost.code = ERROR_HISTORY;
    }
    if (is_untouched) {
        if (done) // else its error is told
            tell_untouched(run);
    } else if (training->cli->json) {
        done = write_json(training, done ? error : NULL) && done;
    } else if (done || run->step > run->forked_at) {
        summary_print(run, training->cli);
    }
    if (is_kept)
        return done;
    if (!done)
        cli_print_error(&lost); // beside its own
    else
        *error = lost;
    return false;
}

static void print(void *context, const char *text, size_t length) {
    Training *training = context;
    progress_print(&training->progress, text, length);
}

// On another thread, while the run's own hangs in the script: nothing can be freed any more.
static void end_stuck(void *context, const Error *error) {
    Error ignored = *error;
    bool done = report(context, false, &ignored);
    cli_print_error(error);
    fflush(stdout);
    _exit(done ? 0 : error_exit_status(error->code));
}

// The same, while the run's own is in the middle of an operation that goes on and on.
static void end_left(void *context) {
    Error error = {0};
    bool done = report(context, true, &error);
    if (!done)
        cli_print_error(&error);
    fflush(stdout);
    int number = run_stop_requested();
    _exit(!done ? error_exit_status(error.code) : number ? STATUS_OF_SIGNALS + number : 0);
}

// Training again up to a step only serves to get there: it ends with the checkpoint.
static void end_there(void *context, const Run *run) {
    Training *training = context;
    if (run->step == training->plan->until)
        run_stop(training->run, "there");
}

static void note_lost(void *context, const Error *error) {
    Training *training = context;
    training->lost = *error;
}

// Without that checkpoint, whose folder lies beside the history, it was for nothing.
static bool train_unrecorded(Training *training, LuaRunOptions *options, Error *error) {
    options->print = NULL;
    options->stuck = NULL;
    options->left = NULL;
    options->keeping.every = 0;
    options->keeping.lost = note_lost;
    options->keeping.context = training;
    training->run->observer = (RunObserver){.context = training, .step = end_there};
    if (!lua_run_experiment(training->run, training->plan->path, options, error))
        return false;
    return training->lost.code == ERROR_NONE ||
           error_fail(error, ERROR_HISTORY, "%s", training->lost.text);
}

static void tell_watch(void *context, const Run *run) {
    Training *training = context;
    (void)run;
    training->plan->watch->step(training->plan->watch->context, training->run);
}

static void tell_event(void *context, const Run *run, const char *text) {
    Training *training = context;
    RunObserver shown = progress_observer(&training->progress);
    if (shown.event)
        shown.event(shown.context, run, text);
}

// Its events are told, and what its watcher tells; of its steps nothing is.
static bool train_watched(Training *training, LuaRunOptions *options, Error *error) {
    const TrainingPlan *plan = training->plan;
    Run *run = training->run;
    options->stuck = NULL;
    options->left = NULL;
    options->keeping.every = 0;
    progress_begin(&training->progress, training->cli->color, training->cli->quiet);
    run->observer = (RunObserver){.context = training, .step = tell_watch, .event = tell_event};
    bool done = lua_run_experiment(run, plan->path, options, error);
    progress_end(&training->progress);
    return done && plan->watch->report(plan->watch->context, run, error);
}

static bool train(Training *training, const TrainingPlan *plan, SafeFile *weights, Error *error) {
    Run *run = training->run;
    const Cli *cli = training->cli;
    LuaRunOptions options = {.trust = cli->trust,
                             .print = plan->is_twin ? NULL : print,
                             .stuck = end_stuck,
                             .left = end_left,
                             .context = training,
                             .keeping = {.folder = plan->folder, .every = cli->checkpoint_every},
                             .resume = plan->resume,
                             .weights = weights};
    if (plan->until > 0)
        return train_unrecorded(training, &options, error);
    if (plan->watch)
        return train_watched(training, &options, error);
    progress_begin(&training->progress, cli->color, cli->quiet);
    run->observer = progress_observer(&training->progress);
    run->recorder = training->recorder;
    bool done = lua_run_experiment(run, plan->path, &options, error);
    return report(training, done, error);
}

bool training_check_precision(const char *precision, const char *name, Error *error) {
    Device *device = NULL;
    Preset preset;
    Error passed;
    // A device is opened only for those that hang on it.
    if (precision_is_untrained(precision) &&
        !(name && strcmp(name, "auto") != 0 ? device_open(name, 1, &device, error)
                                            : device_open_best(1, &device, &passed, error)))
        return false;
    const bool done = preset_resolve(precision, device, &preset, NULL, 0, error);
    device_close(device);
    return done;
}

SafeFile *training_open_weights(const char *path, Error *error) {
    SafeFile *weights = safe_open(path, error);
    if (!weights && error->code == ERROR_FAILED)
        error->code = ERROR_USAGE; // another file was meant
    if (!weights)
        error_prefix(error, "--weights");
    return weights;
}

// Who trains a run's past again needs the weights that it began with, not what lies there today.
static bool check_weights(const Cli *cli, SafeFile *weights, char hash[HASH_HEX_SIZE],
                          Error *error) {
    if (!safe_hash(weights, hash, error))
        return false;
    return !cli->weights_hash || strcmp(cli->weights_hash, hash) == 0 ||
           error_fail(error, ERROR_FAILED,
                      "--weights: %.200s is no longer the file that the run began with: put that "
                      "one back, or fork from a step at or after its first checkpoint",
                      cli->weights);
}

bool training_run(Cli *cli, const TrainingPlan *plan, Error *error) {
    cli_limit_spinning(cli->arguments);
    tells_of_signals = !plan->is_twin;
    training_catch_signals();
    Training training = {.cli = cli, .plan = plan};
    SafeFile *weights = NULL;
    char hash[HASH_HEX_SIZE];
    bool is_recorded = !cli->no_history && plan->until == 0 && !plan->watch;
    bool done = (!cli->weights || ((weights = training_open_weights(cli->weights, error)) &&
                                   check_weights(cli, weights, hash, error))) &&
                (!is_recorded || (training.recorder = recorder_new(cli->database, error)));
    if (done)
        confine(cli, plan->path, plan->folder);
    done = done && (training.run = run_new(&cli->run, error));
    if (done && weights)
        run_add_fact(training.run, RECORD_FACT_WEIGHTS, hash);
    done = done && train(&training, plan, weights, error);
    if (training.run && training.run->status == RUN_STOPPED && run_stop_requested())
        cli->status = STATUS_OF_SIGNALS + run_stop_requested();
    recorder_free(training.recorder);
    run_free(training.run);
    safe_close(weights);
    return done;
}

bool command_run(Cli *cli, Error *error) {
    char path[EXPERIMENT_PATH_SIZE];
    if (!experiment_find(cli->operands[0], path, sizeof path, error))
        return false;
    const TrainingPlan plan = {.path = path};
    if (cli->dry_run && cli->twin)
        return error_fail(error, ERROR_USAGE,
                          "--dry-run trains nothing, and so has no twin: leave out --twin");
    return cli->dry_run ? dry_run(cli, path, error)
           : cli->twin  ? twin_training_run(cli, &plan, error)
                        : training_run(cli, &plan, error);
}
