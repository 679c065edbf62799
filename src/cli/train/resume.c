// `mpbench resume` and `mpbench fork`: a run of the history goes on from a checkpoint, in place or
// as a new run.
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/experiments.h"
#include "cli/history/checkpoint_files.h"
#include "cli/history/history.h"
#include "cli/train/training.h"
#include "lua/script.h"
#include "store/worker.h"

typedef struct Past { // the run that is gone on with
    RunRecord record;
    CheckpointRow *rows;
    int row_count;
    const CheckpointRow *row;        // where to begin; NULL: at the start
    char file[CHECKPOINT_FILE_SIZE]; // of it
    char root[STORE_PATH_SIZE];      // of all checkpoints
    char script[EXPERIMENT_PATH_SIZE];
    RecordOption *own; // options typed now
    int own_count;
} Past;

static void past_clear(Past *past) {
    record_clear(&past->record);
    free(past->rows);
    free(past->own);
}

// ---- the past -----------------------------------------------------------------------------------

static bool find_script(Past *past, Error *error) {
    const RunRecord *record = &past->record;
    if (access(record->script_path, R_OK) == 0) {
        snprintf(past->script, sizeof past->script, "%s", record->script_path);
        return true;
    }
    const char *slash = strrchr(record->script_path, '/');
    char name[EXPERIMENT_NAME_SIZE];
    snprintf(name, sizeof name, "%.*s", (int)strcspn(slash ? slash + 1 : record->script_path, "."),
             slash ? slash + 1 : record->script_path);
    if (experiment_find(name, past->script, sizeof past->script, NULL))
        return true;
    return error_fail(
        error, ERROR_FAILED,
        "run %s: its script %.200s is not there any more; start from the folder where "
        "it was, or put it back",
        record->name, record->script_path);
}

static void warn_of_changes(const Past *past) {
    Script script = {0};
    Error error = {0};
    bool same = script_read(&script, past->script, past->script, &error) &&
                strcmp(script.hash, past->record.script_hash) == 0;
    script_clear(&script);
    if (same || !past->record.script_hash[0])
        return;
    fputs("mpbench: ", stderr);
    cli_print_outside(stderr, past->script);
    fputs(" has changed since the run began: where it goes another way, resuming fails\n", stderr);
}

static bool has_weights_only(const char *why) {
    return strcmp(why, "weights") == 0 || strcmp(why, "final") == 0;
}

// The last checkpoint at or before the step (0: of all). One that a run left in the middle of a
// step or an evaluation has its weights only.
static void choose_row(Past *past, const Store *store, int64_t at, bool weights_only) {
    past->row = NULL;
    for (int i = 0; i < past->row_count; i++)
        if ((at == 0 || past->rows[i].step <= at) &&
            (weights_only || !has_weights_only(past->rows[i].why)))
            past->row = &past->rows[i];
    if (past->row)
        checkpoint_file_path(store, past->row, past->file);
}

static bool read_past(const Cli *cli, Past *past, bool in_place, Error *error) {
    Store *store = history_open(cli, STORE_READ, error);
    bool done =
        store && history_read_run(store, cli->operands[0], &past->record, error) &&
        (!in_place || store_refuse_living(store, past->record.id, error)) &&
        store_list_checkpoints(store, past->record.id, &past->rows, &past->row_count, error) &&
        find_script(past, error);
    if (done) {
        choose_row(past, store, cli->at, cli->weights_only);
        store_checkpoint_root(store, past->root);
    }
    store_close(store);
    return done;
}

// Opens the chosen checkpoint; one that is damaged is refused with the way to the one before it.
static Checkpoint *open_chosen(const Past *past, const RestoreOwn *own, Error *error) {
    Checkpoint *checkpoint = checkpoint_open(past->file, past->row->hash, own, error);
    if (checkpoint)
        return checkpoint;
    const CheckpointRow *before = past->row > past->rows ? past->row - 1 : NULL;
    size_t used = strlen(error->text);
    if (before && used < sizeof error->text)
        snprintf(error->text + used, sizeof error->text - used,
                 "; the checkpoint before it: --at %" PRId64, before->step);
    return NULL;
}

// ---- options ------------------------------------------------------------------------------------

// Options that a command gives anew, or that belong to one run alone.
static bool is_inherited(const char *name, bool in_place) {
    static const char *const never[] = {"json", "quiet", "no-history", "trust", "matrix", NULL};
    static const char *const of_one[] = {"name", "tag", "note", NULL};
    for (int i = 0; never[i]; i++)
        if (strcmp(name, never[i]) == 0)
            return false;
    for (int i = 0; !in_place && of_one[i]; i++)
        if (strcmp(name, of_one[i]) == 0)
            return false;
    return true;
}

static bool keep_own(Cli *cli, Past *past, Error *error) {
    past->own_count = cli->run.typed_count;
    past->own = malloc(((size_t)past->own_count + 1) * sizeof *past->own);
    if (!past->own)
        return error_fail(error, ERROR_MEMORY, "no memory for the options");
    memcpy(past->own, cli->typed, (size_t)past->own_count * sizeof *past->own);
    return true;
}

// Whether it goes on on another device than the parent's.
static bool moves(const Past *past) {
    bool does = false;
    for (int i = 0; i < past->own_count; i++)
        if (strcmp(past->own[i].name, "device") == 0)
            does = strcmp(past->own[i].value, past->record.device) != 0;
    return does;
}

// The parent's options, then those typed now. `with_own` false: only the parent's.
static bool set_options(Cli *cli, const Past *past, bool in_place, bool with_own, Error *error) {
    const RunRecord *record = &past->record;
    bool was_trusted = false;
    cli->run.typed_count = cli->run.layer_count = cli->run.setting_count = 0;
    cli->run.seed = (uint64_t)record->seed;
    cli->run.device = record->device;
    if (!moves(past)) // the sums of other counts differ in their last bits
        cli->run.threads = record->threads;
    cli->run.ways = record_fact(record, RECORD_FACT_WAYS); // likewise
    for (int i = 0; i < record->option_count; i++) {
        const RecordOption *option = &record->options[i];
        was_trusted = was_trusted || strcmp(option->name, "trust") == 0;
        if (is_inherited(option->name, in_place) &&
            !cli_set_option(cli, option->name, option->value, error))
            return false;
    }
    for (int i = 0; with_own && i < past->own_count; i++)
        if (!cli_set_option(cli, past->own[i].name, past->own[i].value, error))
            return false;
    // Kept too, so that the next resume asks for it again.
    if (!with_own && cli->trust && !cli_set_option(cli, "trust", "", error))
        return false;
    if (was_trusted && !cli->trust)
        return error_fail(
            error, ERROR_USAGE,
            "run %s was started with --trust: give it here too if you still trust its "
            "script",
            record->name);
    return true;
}

static RestoreOwn own_of(const Past *past) {
    RestoreOwn own = {false, false, false};
    for (int i = 0; i < past->own_count; i++) {
        const char *name = past->own[i].name;
        bool is_precision = strcmp(name, "precision") == 0;
        own.settings = own.settings || strcmp(name, "set") == 0;
        own.layers = own.layers || is_precision || strcmp(name, "layer") == 0;
        own.scale = own.scale || is_precision || strcmp(name, "loss-scale") == 0;
    }
    return own;
}

// ---- resume -------------------------------------------------------------------------------------

// A new run that begins with the weights of the checkpoint.
static bool begin_with_weights(Cli *cli, Past *past, Error *error) {
    if (!set_options(cli, past, false, true, error))
        return false;
    cli->weights = past->file;
    cli->run.parent = past->record.id;
    return training_run(cli, &(TrainingPlan){.path = past->script}, error);
}

static bool resume(Cli *cli, Past *past, Error *error) {
    const RunRecord *record = &past->record;
    if (record->status == RUN_FINISHED && cli->at == 0 && !cli->weights_only)
        return error_fail(error, ERROR_USAGE,
                          "run %s has finished, at step %" PRId64 ": `mpbench fork %s --steps N` "
                          "trains on, `mpbench resume %s --at STEP` trains its end again",
                          record->name, record->step, record->name, record->name);
    if (!past->row)
        return error_fail(error, ERROR_FAILED,
                          "run %s has no checkpoint%s; `mpbench run` starts anew",
                          past->record.name, cli->at ? " at or before that step" : "");
    if (cli->weights_only)
        return begin_with_weights(cli, past, error);
    Checkpoint *checkpoint = open_chosen(past, NULL, error);
    if (!checkpoint)
        return false;
    bool done = set_options(cli, past, true, false, error);
    if (done) {
        warn_of_changes(past);
        cli->weights = NULL; // they are in the checkpoint
        cli->run.name = past->record.name;
        cli->run.resumes = past->record.id;
        cli->run.from = past->row->step;
        const TrainingPlan plan = {.path = past->script, .resume = checkpoint};
        done = training_run(cli, &plan, error);
    }
    checkpoint_close(checkpoint);
    return done;
}

bool command_resume(Cli *cli, Error *error) {
    cli_limit_spinning(cli->arguments); // starts anew: before anything is opened
    Past *past = calloc(1, sizeof *past);
    if (!past)
        return error_fail(error, ERROR_MEMORY, "no memory to resume");
    bool done =
        keep_own(cli, past, error) && read_past(cli, past, true, error) && resume(cli, past, error);
    past_clear(past);
    free(past);
    return done;
}

// ---- fork ---------------------------------------------------------------------------------------

// Trains the parent again from its checkpoint (or the start) up to the step, unrecorded; the file
// that comes of it lies in `folder`.
static bool train_up_to(Cli *cli, const Past *past, int64_t step, const char *folder,
                        Error *error) {
    Checkpoint *checkpoint = past->row ? open_chosen(past, NULL, error) : NULL;
    bool done = (!past->row || checkpoint) && set_options(cli, past, false, false, error);
    if (done) {
        const TrainingPlan plan = {
            .path = past->script, .resume = checkpoint, .until = step, .folder = folder};
        if (checkpoint)
            cli->weights = NULL;
        if (!cli->quiet)
            fprintf(stderr, "mpbench: training run %lld again from step %lld to %lld\n",
                    (long long)past->record.id, past->row ? (long long)past->row->step : 0LL,
                    (long long)step);
        done = training_run(cli, &plan, error);
    }
    checkpoint_close(checkpoint);
    return done;
}

static bool has_own(const Past *past, const char *name) {
    for (int i = 0; i < past->own_count; i++)
        if (strcmp(past->own[i].name, name) == 0)
            return true;
    return false;
}

// A fork that would train nothing, or from where the parent never came, is refused at once.
static bool check_fork(const Cli *cli, const Past *past, Error *error) {
    const RunRecord *record = &past->record;
    int64_t step = cli->at ? cli->at : past->row ? past->row->step : 0;
    bool is_longer = has_own(past, "steps") || has_own(past, "epochs") || has_own(past, "set");
    if (step > record->step)
        return error_fail(
            error, ERROR_USAGE, "--at %" PRId64 ": run %s %s step %" PRId64, step, record->name,
            run_status_goes_on(record->status) ? "has only come to" : "ended at", record->step);
    if (cli->run.steps > 0 && cli->run.steps <= step)
        return error_fail(error, ERROR_USAGE,
                          "--steps %" PRId64 ": the fork begins after step %" PRId64
                          " and would train nothing",
                          cli->run.steps, step);
    if (record->status == RUN_FINISHED && step == record->step && !is_longer)
        return error_fail(error, ERROR_USAGE,
                          "run %s ended at step %" PRId64 ", so that a fork would train nothing: "
                          "give --at an earlier step, or --steps more of them",
                          record->name, record->step);
    return true;
}

static bool fork_from(Cli *cli, const Past *past, Checkpoint *checkpoint, Error *error) {
    if (!set_options(cli, past, false, true, error))
        return false;
    warn_of_changes(past);
    cli->weights = NULL;
    cli->run.parent = past->record.id;
    cli->run.from = checkpoint_step(checkpoint);
    const TrainingPlan plan = {.path = past->script, .resume = checkpoint};
    return training_run(cli, &plan, error);
}

static bool fork_between(Cli *cli, const Past *past, int64_t step, Error *error) {
    ScratchFolder folder;
    char file[sizeof folder.path + 64];
    RestoreOwn own = own_of(past);
    if (!scratch_folder_make(&folder, past->root, error))
        return error_prefix(error, "fork");
    snprintf(file, sizeof file, "%s/step-%" PRId64 ".safetensors", folder.path, step);
    Checkpoint *checkpoint = NULL;
    bool done = train_up_to(cli, past, step, folder.path, error);
    bool was_stopped = done && run_stop_requested() != 0;
    if (done && !was_stopped && access(file, R_OK) != 0)
        done = error_fail(error, ERROR_USAGE, "--at %" PRId64 ": run %s ends before that step",
                          step, past->record.name);
    if (done && !was_stopped)
        done = (checkpoint = checkpoint_open(file, NULL, &own, error)) &&
               fork_from(cli, past, checkpoint, error);
    checkpoint_close(checkpoint);
    scratch_folder_remove(&folder);
    return done;
}

bool command_fork(Cli *cli, Error *error) {
    cli_limit_spinning(cli->arguments); // starts anew: before anything is opened
    Past *past = calloc(1, sizeof *past);
    if (!past)
        return error_fail(error, ERROR_MEMORY, "no memory to fork");
    bool done = keep_own(cli, past, error) && read_past(cli, past, false, error) &&
                check_fork(cli, past, error);
    int64_t step = cli->at;
    if (done && !past->row && step == 0)
        done = error_fail(error, ERROR_USAGE,
                          "run %s has no checkpoint; say with --at STEP where to fork",
                          past->record.name);
    if (done && past->row && (step == 0 || past->row->step == step)) {
        RestoreOwn own = own_of(past);
        Checkpoint *checkpoint = open_chosen(past, &own, error);
        done = checkpoint && fork_from(cli, past, checkpoint, error);
        checkpoint_close(checkpoint);
    } else if (done) {
        done = fork_between(cli, past, step, error);
    }
    past_clear(past);
    free(past);
    return done;
}
