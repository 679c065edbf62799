// `mpbench scan`: which layers of an experiment, or of a trained run, may go into which formats.
#include "cli/scan/scan.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/load.h"
#include "base/utf8.h"
#include "checkpoint/weights.h"
#include "cli/scan/kept.h"
#include "cli/scan/policy_out.h"
#include "cli/train/confine.h"
#include "cli/train/progress.h"
#include "cli/train/training.h"
#include "lua/experiment.h"

typedef struct Scanning {
    Cli *cli;
    Past past; // of a run; empty for an experiment
    char script[EXPERIMENT_PATH_SIZE];
    SafeFile *weights; // NULL: those that the script makes
    ScanRecord *record;
    ScanKeeping keeping;
    ProgressView progress;
    PolicyOut policy;
} Scanning;

// ---- what is asked ------------------------------------------------------------------------------

static bool add_format(ScanRecord *scan, const char *name, size_t length, Error *error) {
    char text[SCAN_FORMAT_SIZE];
    LayerPrecision precision;
    if (scan->format_count == SCAN_MOST_FORMATS || length >= sizeof text)
        return error_fail(error, ERROR_USAGE, "--formats: more than %d of up to %d letters",
                          SCAN_MOST_FORMATS, SCAN_FORMAT_SIZE - 1);
    snprintf(text, sizeof text, "%.*s", (int)length, name);
    if (!layer_precision_parse(text, NULL, &precision, error))
        return error_prefix(error, "--formats");
    const char *usual = format_usual_name(text);
    for (int i = 0; i < scan->format_count; i++)
        if (strcmp(scan->formats[i], usual) == 0)
            return true;
    if (strcmp(usual, "fp32") != 0) // all is held against it
        snprintf(scan->formats[scan->format_count++], SCAN_FORMAT_SIZE, "%s", usual);
    return true;
}

// What says how a policy is verified asks for what --quick says not to do.
static bool is_of_one_mind(const Cli *cli, Error *error) {
    const struct {
        const char *name;
        bool is_given;
    } verifying[] = {{"--steps", cli->run.steps > 0},
                     {"--seeds", cli->seeds > 0},
                     {"--within", cli->within > 0}};
    for (size_t i = 0; cli->quick && i < sizeof verifying / sizeof *verifying; i++)
        if (verifying[i].is_given)
            return error_fail(error, ERROR_USAGE,
                              "--quick verifies no policy, and %s says how one is verified: leave "
                              "out one of the two",
                              verifying[i].name);
    return true;
}

static bool read_asked(Scanning *scanning, Error *error) {
    static const Format usual[] = {FORMAT_BF16, FORMAT_FP16, FORMAT_MXFP8};
    const Cli *cli = scanning->cli;
    ScanRecord *scan = scanning->record;
    for (size_t i = 0; !cli->formats && i < sizeof usual / sizeof *usual; i++)
        if (!add_format(scan, format_name(usual[i]), strlen(format_name(usual[i])), error))
            return false;
    for (const char *next = cli->formats; next; next = *next ? next + 1 : NULL) {
        size_t length = strcspn(next, ",");
        if (!add_format(scan, next, length, error))
            return false;
        next += length;
    }
    if (scan->format_count == 0)
        return error_fail(
            error, ERROR_USAGE,
            "--formats %.60s: what is held against fp32 is wanted, as in --formats bf16",
            cli->formats);
    enum { BATCHES = 4, WARM_UP = 50, STEPS = 60, SEEDS = 3 };
    scan->batches = cli->batches > 0 ? cli->batches : BATCHES;
    scan->steps = cli->run.steps > 0 ? cli->run.steps : cli->quick ? 0 : STEPS;
    scan->seeds = cli->seeds > 0 ? cli->seeds : SEEDS;
    if (scan->seeds > SCAN_MOST_SEEDS)
        return error_fail(error, ERROR_USAGE, "--seeds %" PRId64 ": up to %d can be kept",
                          scan->seeds, SCAN_MOST_SEEDS);
    scan->warm_up = scanning->weights ? 0 : WARM_UP;
    scan->within = cli->within > 0 ? cli->within : 0.01;
    scan->tolerance = 0.15; // adds 2 % to the noise that gradients have anyway
    scan->by_block = cli->by_block;
    scan->seed = (int64_t)cli->run.seed;
    return true;
}

// ---- the subject --------------------------------------------------------------------------------

// The weights of the checkpoint. Nothing can be told from those that are not finite: in every
// format, fp32 too, the model breaks or guesses. Then none are open, and it is scanned from its
// start.
static bool open_weights(Scanning *scanning, Error *error) {
    const char *name;
    scanning->weights = past_open_weights(&scanning->past, error);
    if (!scanning->weights || !weights_first_not_finite(scanning->weights, &name, error))
        return false;
    if (!name)
        return true;
    fputs("mpbench: ", stderr);
    cli_print_outside(stderr, name);
    fprintf(stderr,
            " holds inf or nan in run %" PRId64 " at step %" PRId64
            ": it is scanned from its start; --at an earlier step may have finite ones\n",
            scanning->past.record.id, scanning->past.row->step);
    safe_close(scanning->weights);
    scanning->weights = NULL;
    return true;
}

static bool open_run(Scanning *scanning, Error *error) {
    Cli *cli = scanning->cli;
    Past *past = &scanning->past;
    if (!past_keep_own(cli, past, error))
        return false;
    cli->weights_only = true; // any checkpoint has them
    if (!past_read(cli, past, false, error))
        return false;
    char *subject = scanning->record->subject;
    if (past->row && !open_weights(scanning, error))
        return false;
    if (scanning->weights) {
        snprintf(subject, SCAN_SUBJECT_SIZE, "run %" PRId64 " at step %" PRId64, past->record.id,
                 past->row->step);
    } else { // as of one that failed early, or that holds what is not finite
        snprintf(subject, SCAN_SUBJECT_SIZE, "run %" PRId64 " from its start", past->record.id);
    }
    snprintf(scanning->script, sizeof scanning->script, "%s", past->script);
    int64_t steps = cli->run.steps;
    bool done = past_set_options(cli, past, false, true, error);
    cli->run.steps = steps;
    past_warn_of_changes(past);
    return done;
}

// An experiment, where there is one of that name, else a run.
static bool find_subject(Scanning *scanning, Error *error) {
    const char *operand = scanning->cli->operands[0];
    if (experiment_find(operand, scanning->script, sizeof scanning->script, NULL)) {
        utf8_copy(scanning->record->subject, SCAN_SUBJECT_SIZE, operand);
        return true;
    }
    Error why = {0};
    if (open_run(scanning, &why))
        return true;
    // Neither: what is more likely meant is told of.
    bool is_run = operand[0] == '@' || strspn(operand, "0123456789") == strlen(operand) ||
                  why.code != ERROR_USAGE;
    if (!is_run)
        return experiment_find(operand, scanning->script, sizeof scanning->script, error);
    *error = why;
    return false;
}

// ---- the scan -----------------------------------------------------------------------------------

static RunOptions options_of(const Scanning *scanning) {
    RunOptions options = scanning->cli->run;
    options.precision = "fp32";
    options.layer_count = 0;
    options.loss_scale = NULL;
    options.steps = options.epochs = 0;
    options.evaluates = true; // the script's own rules are let be
    return options;
}

static void describe_device(const Device *device, ScanRecord *scan) {
    utf8_copy(scan->device, sizeof scan->device, device->label);
    utf8_copy(scan->device_name, sizeof scan->device_name, device->name);
    scan->threads = device->threads;
    if (device->backend->ways)
        device->backend->ways(device, scan->ways, sizeof scan->ways);
}

// Formats that were typed and that nothing trains in here, before a scan is begun with them.
static bool check_formats(const Cli *cli, const ScanRecord *scan, const Device *device,
                          Error *error) {
    LayerPrecision precision;
    for (int i = 0; cli->formats && i < scan->format_count; i++)
        if (!layer_precision_parse(scan->formats[i], device, &precision, error))
            return error_prefix(error, "--formats");
    return true;
}

// The device as it computed when the scan began: others differ in their last bits.
static Run *take_ways(Run *run, RunOptions *options, const ScanRecord *scan, Error *error) {
    char now[sizeof scan->ways] = "";
    if (run->device->backend->ways)
        run->device->backend->ways(run->device, now, sizeof now);
    if (strcmp(now, scan->ways) == 0)
        return run;
    run_free(run);
    options->ways = scan->ways;
    return run_new(options, error);
}

static bool measure(Scanning *scanning, Run *run, Error *error) {
    ScanRecord *record = scanning->record;
    Scan scan = {.record = record,
                 .store = scanning->keeping.store,
                 .worker = scanning->keeping.worker,
                 .goes_on = record->id > 0,
                 .progress = progress_tell,
                 .context = &scanning->progress};
    const LuaRunOptions lua = {.trust = scanning->cli->trust,
                               .print = progress_print,
                               .stuck = training_end_stuck,
                               .left = training_end_left,
                               .context = &scanning->progress,
                               .weights = scanning->weights,
                               .scan = &scan};
    Load before, after;
    const bool is_counted = load_look(&before);
    progress_begin(&scanning->progress, scanning->cli->color, scanning->cli->quiet);
    const bool done = lua_run_experiment(run, scanning->script, &lua, error);
    progress_end(&scanning->progress);
    if (is_counted && load_look(&after))
        record->others = load_of_others(&before, &after);
    return done;
}

static bool scan(Scanning *scanning, Error *error) {
    Cli *cli = scanning->cli;
    ScanRecord *record = scanning->record;
    RunOptions options = options_of(scanning);
    Run *run = run_new(&options, error);
    if (!run)
        return false;
    describe_device(run->device, record);
    bool done = check_formats(cli, record, run->device, error) &&
                scan_keep_describe(cli, &scanning->past, scanning->script, record, error) &&
                scan_keep_begin(cli, &scanning->keeping, record, error);
    if (done && record->ended_ms == 0) {
        run = record->id > 0 ? take_ways(run, &options, record, error) : run;
        done = run && measure(scanning, run, error);
    }
    run_free(run);
    return done;
}

// ---- the end ------------------------------------------------------------------------------------

static bool write_policy(Scanning *scanning, Error *error) {
    const Cli *cli = scanning->cli;
    if (!cli->output)
        return true;
    utf8_copy(scanning->record->policy_file, sizeof scanning->record->policy_file, cli->output);
    policy_file_write(scanning->policy.stream, scanning->record);
    return policy_out_close(&scanning->policy, true, error) || error_prefix(error, "--output");
}

static bool run_scan(Scanning *scanning, Error *error) {
    Cli *cli = scanning->cli;
    ScanRecord *record = scanning->record;
    if (!is_of_one_mind(cli, error) || !find_subject(scanning, error) ||
        !read_asked(scanning, error))
        return false;
    training_catch_signals();
    if (cli->output && !policy_out_open(&scanning->policy, cli->output, error))
        return error_prefix(error, "--output");
    if (!scan_keep_open(cli, &scanning->keeping, error))
        return false;
    confine(cli, scanning->script, NULL);
    if (!scan(scanning, error))
        return false;
    if (run_stop_requested()) {
        cli->status = STATUS_OF_SIGNALS + run_stop_requested();
        scan_keep_tell(cli, record);
        return true;
    }
    if (record->ended_ms == 0)
        scan_end(record);
    if (!write_policy(scanning, error) || !scan_keep_end(&scanning->keeping, record, error))
        return false;
    if (cli->json) {
        scan_write_json(record);
        return true;
    }
    return scan_print(cli, record, error);
}

bool command_scan(Cli *cli, Error *error) {
    cli_limit_spinning(cli->arguments); // starts anew: before anything is opened
    Scanning *scanning = calloc(1, sizeof *scanning);
    if (!scanning)
        return error_fail(error, ERROR_MEMORY, "no memory to scan");
    scanning->cli = cli;
    scanning->policy = (PolicyOut){.answers = -1};
    scanning->record = scan_record_new(error);
    const bool done = scanning->record && run_scan(scanning, error);
    (void)!policy_out_close(&scanning->policy, false, NULL); // where it did not come so far
    if (scanning->record)
        scan_keep_close(&scanning->keeping, scanning->record);
    scan_record_free(scanning->record);
    safe_close(scanning->weights);
    past_clear(&scanning->past);
    free(scanning);
    return done;
}
