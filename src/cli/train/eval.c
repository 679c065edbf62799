// `mpbench eval`: a trained model on the data that its experiment keeps for tests, in formats side
// by side. Each is a run of its own that is not recorded: it has the device, its memory and the
// weights to itself.
#include "cli/train/eval.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/load.h"
#include "base/phrase.h"
#include "cli/print/text.h"
#include "cli/train/confine.h"
#include "cli/train/past.h"
#include "cli/train/progress.h"
#include "cli/train/training.h"
#include "lua/experiment.h"

enum { USUAL_CALIBRATION = 8 }; // batches

typedef struct Evaluating {
    Cli *cli;
    Past *past;
    SafeFile *weights;
    int parent_layers; // of cli->layers: the first are the run's own
    Evaluations all;
    int next;                              // of all.formats: not begun
    Evaluated *begun;                      // the last that was
    Evaluated *waiting[EVAL_MOST_FORMATS]; // to be timed, in the order in which they were begun
    int waiting_count;
    int alive;    // models: one within the other's `ready`
    bool is_full; // there is no memory for one more beside them
    bool failed;
    Error error; // why
    ProgressView progress;
    bool is_asked; // formats were named
} Evaluating;

// ---- what is asked ------------------------------------------------------------------------------

static void add_format(Evaluations *all, const char *name, size_t length) {
    for (int i = 0; i < all->count; i++)
        if (strlen(all->formats[i].precision) == length &&
            strncmp(all->formats[i].precision, name, length) == 0)
            return;
    if (all->count == EVAL_MOST_FORMATS)
        return;
    Evaluated *added = &all->formats[all->count++];
    snprintf(added->precision, sizeof added->precision, "%.*s", (int)length, name);
    added->is_own = strcmp(added->precision, all->run->precision) == 0;
}

static void choose_formats(Evaluations *all, const char *asked) {
    static const Format usual[] = {FORMAT_FP32, FORMAT_BF16, FORMAT_FP16, FORMAT_INT8};
    for (const char *next = asked; next && *next; next += *next == ',') {
        size_t length = strcspn(next, ",");
        add_format(all, next, length);
        next += length;
    }
    if (asked)
        return;
    add_format(all, all->run->precision, strlen(all->run->precision));
    for (size_t i = 0; i < sizeof usual / sizeof *usual; i++)
        add_format(all, format_name(usual[i]), strlen(format_name(usual[i])));
}

// The checkpoint's file as it was written, or the one that was named.
static bool open_weights(Evaluating *evaluating, const char *named, Error *error) {
    const Past *past = evaluating->past;
    evaluating->all.weights = named;
    evaluating->all.step = named ? RECORD_UNKNOWN : past->row ? past->row->step : 0;
    if (!named && !past->row)
        return error_fail(error, ERROR_FAILED,
                          "run %s has no checkpoint%s; --weights FILE evaluates other weights",
                          past->record.name, evaluating->cli->at ? " at or before that step" : "");
    evaluating->weights =
        named ? training_open_weights(named, error) : past_open_weights(past, error);
    return evaluating->weights != NULL;
}

// The run's options hold, but for its precision, and those typed now before them.
static bool set_options(Evaluating *evaluating, Error *error) {
    Cli *cli = evaluating->cli;
    const Past *past = evaluating->past;
    const char *asked = cli->run.precision, *weights = cli->weights;
    if (!past_set_options(cli, past, false, false, error))
        return false;
    evaluating->parent_layers = cli->run.layer_count;
    for (int i = 0; i < past->own_count; i++)
        if (strcmp(past->own[i].name, "precision") != 0 &&
            !cli_set_option(cli, past->own[i].name, past->own[i].value, error))
            return false;
    evaluating->all.sets_layers = cli->run.layer_count > evaluating->parent_layers;
    cli->weights = weights;
    cli->run.loss_scale = NULL;
    cli->run.steps = cli->run.epochs = 0;
    cli->run.evaluates = true;
    evaluating->is_asked = asked != NULL;
    choose_formats(&evaluating->all, asked);
    return true;
}

// ---- one format ---------------------------------------------------------------------------------

static void ready(void *context, const EvaluationCaller *caller);

static void tell(void *context, const char *what, int64_t done, int64_t of) {
    Evaluating *evaluating = context;
    char text[80];
    snprintf(text, sizeof text, "%s: %s", evaluating->begun->precision, what);
    progress_tell(&evaluating->progress, text, done, of);
}

static bool evaluate(Evaluating *evaluating, Evaluated *format, Error *error) {
    Cli *cli = evaluating->cli;
    RunOptions options = cli->run;
    const bool own = format->is_own;
    options.precision = format->precision;
    options.layers = cli->layers + (own ? 0 : evaluating->parent_layers);
    options.layer_count = cli->run.layer_count - (own ? 0 : evaluating->parent_layers);
    format->found = (Evaluation){.calibrate = cli->calibrate ? cli->calibrate : USUAL_CALIBRATION,
                                 .largest = cli->by_largest,
                                 .memory = cli->memory,
                                 .quick = cli->quick,
                                 .progress = tell,
                                 .ready = ready,
                                 .context = evaluating};
    const LuaRunOptions lua = {.trust = cli->trust,
                               .print = progress_print,
                               .stuck = training_end_stuck,
                               .left = training_end_left,
                               .context = &evaluating->progress,
                               .weights = evaluating->weights,
                               .evaluation = &format->found};
    Run *run = run_new(&options, error);
    if (!run)
        return false;
    Evaluations *all = &evaluating->all;
    snprintf(all->device, sizeof all->device, "%s", run->device->label);
    snprintf(all->device_name, sizeof all->device_name, "%s", run->device->name);
    all->threads = run->device->threads;
    bool done = lua_run_experiment(run, evaluating->past->script, &lua, error);
    run_free(run);
    return done;
}

// ---- all of them --------------------------------------------------------------------------------

// Of formats that nobody named only the run's own would be missed.
static void leave_out(Evaluating *evaluating, Evaluated *format, const Error *why) {
    Evaluations *all = &evaluating->all;
    char text[EVAL_NAME_SIZE + ERROR_TEXT_SIZE + 64];
    snprintf(text, sizeof text, "mpbench: %s, the run's own precision, is left out: %s",
             format->precision, why->text);
    if (format->is_own)
        progress_print(&evaluating->progress, text, strlen(text));
    all->count--;
    evaluating->next--;
    memmove(format, format + 1,
            (size_t)(all->formats + all->count - format) * sizeof *all->formats);
}

// Whether what ended a format is no fault: it is left out, or begun again when others are gone.
static bool goes_on_without(Evaluating *evaluating, Evaluated *format, const Error *error) {
    if (format->caller || evaluating->failed)
        return false;
    if (error->code == ERROR_UNAVAILABLE && !evaluating->is_asked) {
        leave_out(evaluating, format, error); // this device has no such products
        return true;
    }
    evaluating->is_full = evaluating->alive > 0 && error->code == ERROR_MEMORY;
    evaluating->next -= evaluating->is_full;
    return evaluating->is_full;
}

// Begins those that have not been, while there is memory for one more beside those alive. Those
// that have gone over their data before the end is asked for are shown.
static void go_on(Evaluating *evaluating) {
    Evaluations *all = &evaluating->all;
    while (evaluating->next < all->count && !evaluating->failed && !evaluating->is_full) {
        Evaluated *format = &all->formats[evaluating->next++];
        Error error = {0};
        evaluating->begun = format;
        if (!evaluate(evaluating, format, &error) && !goes_on_without(evaluating, format, &error)) {
            evaluating->error = evaluating->failed ? evaluating->error : error;
            evaluating->failed = true;
        }
        if (run_stop_requested() && format->found.samples == 0)
            all->count = (int)(format - all->formats);
        evaluating->is_full = evaluating->is_full && evaluating->alive > 0;
    }
}

static void tell_round(void *context, const char *what, int64_t done, int64_t of) {
    Evaluating *evaluating = context;
    progress_tell(&evaluating->progress, what, done, of);
}

static void time_waiting(Evaluating *evaluating) {
    const double least_seconds = 0.3; // in which the load of others shows
    Evaluations *all = &evaluating->all;
    Load before, after;
    const bool is_counted = load_look(&before);
    evaluating->failed = !eval_time(evaluating->waiting, evaluating->waiting_count, tell_round,
                                    evaluating, &evaluating->error);
    if (is_counted && load_look(&after) && after.at - before.at > least_seconds)
        all->others = fmax(all->others, load_of_others(&before, &after));
    evaluating->waiting_count = 0;
}

// The model of the format that was begun last waits in here.
static void ready(void *context, const EvaluationCaller *caller) {
    Evaluating *evaluating = context;
    Evaluated *format = evaluating->begun;
    format->caller = caller;
    format->sitting = evaluating->waiting_count > 0 ? evaluating->waiting[0]->sitting
                                                    : (int)(format - evaluating->all.formats);
    evaluating->waiting[evaluating->waiting_count++] = format;
    evaluating->alive++;
    go_on(evaluating);
    if (evaluating->waiting_count > 0 && !evaluating->failed)
        time_waiting(evaluating);
    evaluating->alive--;
}

static bool evaluate_all(Evaluating *evaluating, Error *error) {
    evaluating->all.others = (double)NAN;
    progress_begin(&evaluating->progress, evaluating->cli->color, evaluating->cli->quiet);
    go_on(evaluating);
    progress_end(&evaluating->progress);
    if (evaluating->failed)
        *error = evaluating->error;
    return !evaluating->failed;
}

// Under a cap that leaves no format room for a single sample.
static bool check_fits(const Evaluations *all, int64_t cap, Error *error) {
    char has[TEXT_SIZE], needs[TEXT_SIZE];
    const Evaluated *least = NULL;
    for (int i = 0; i < all->count; i++) {
        const Evaluated *format = &all->formats[i];
        if (format->found.largest_batch > 0)
            return true;
        if (!least || format->found.needed < least->found.needed)
            least = format;
    }
    return !least || error_fail(error, ERROR_FAILED,
                                "--memory: one sample does not fit into %s: %s, which takes the "
                                "least, takes %s; a smaller model, or more memory",
                                text_bytes(has, (double)cap), least->precision,
                                text_bytes(needs, (double)least->found.needed));
}

// They are the same in all formats.
static void warn_of_weights(const Evaluations *all) {
    const Evaluation *found = &all->formats[0].found;
    char text[64 + sizeof found->broken + 2 * TEXT_SIZE], count[TEXT_SIZE];
    if (all->count == 0 || found->broken_count == 0)
        return;
    Phrase phrase = phrase_begin(text, sizeof text);
    phrase_add(&phrase, "%s holds inf or nan", found->broken);
    if (found->broken_count > 1)
        phrase_add(&phrase, ", and so do %d more", found->broken_count - 1);
    phrase_add(&phrase, ", %s number%s in all", text_count(count, found->broken_numbers),
               found->broken_numbers == 1 ? "" : "s");
    fputs("mpbench: these weights are of no use: ", stderr);
    cli_print_outside(stderr, text);
    fputs("; --at an earlier step may have finite ones\n", stderr);
}

static bool run_evaluations(Evaluating *evaluating, Error *error) {
    Cli *cli = evaluating->cli;
    const char *weights = cli->weights;
    if (!past_keep_own(cli, evaluating->past, error))
        return false;
    cli->weights_only = true; // any checkpoint has them
    if (!past_read(cli, evaluating->past, false, error))
        return false;
    evaluating->all.run = &evaluating->past->record;
    if (!open_weights(evaluating, weights, error) || !set_options(evaluating, error))
        return false;
    past_warn_of_changes(evaluating->past);
    training_catch_signals();
    confine(cli, evaluating->past->script, NULL);
    if (!evaluate_all(evaluating, error))
        return false;
    warn_of_weights(&evaluating->all);
    if (cli->memory > 0 && !check_fits(&evaluating->all, cli->memory, error))
        return false;
    if (run_stop_requested())
        cli->status = STATUS_OF_SIGNALS + run_stop_requested();
    if (cli->json) {
        eval_write_json(&evaluating->all);
        return true;
    }
    return evaluating->all.count == 0 || eval_print(cli, &evaluating->all, error);
}

bool command_eval(Cli *cli, Error *error) {
    cli_limit_spinning(cli->arguments); // starts anew: before anything is opened
    Evaluating *evaluating = calloc(1, sizeof *evaluating);
    Past *past = calloc(1, sizeof *past);
    bool done = evaluating && past;
    if (!done)
        error_fail(error, ERROR_MEMORY, "no memory to evaluate");
    if (done) {
        evaluating->cli = cli;
        evaluating->past = past;
        done = run_evaluations(evaluating, error);
        safe_close(evaluating->weights);
        past_clear(past);
    }
    free(past);
    free(evaluating);
    return done;
}
