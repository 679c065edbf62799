// `mpbench resume` and `mpbench fork`: a run of the history goes on from a checkpoint, in place or
// as a new run.
#include <fnmatch.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/train/known_parameters.h"
#include "cli/train/past.h"
#include "cli/train/training.h"
#include "precision/policy.h"
#include "store/twin.h"

// Opens the chosen checkpoint; one that is damaged is refused with the way to the one before it.
// That of a run's end was once taken when the evaluation there had begun, which a run that trains
// on does not come by: nothing was computed since the step, and where loaders had not moved since
// either, its place is found without.
static Checkpoint *open_chosen(const Past *past, const RestoreOwn *own, Error *error) {
    Checkpoint *checkpoint = checkpoint_open(past->file, past->row->hash, own, error);
    if (checkpoint && checkpoint_waypoint(checkpoint) > 0 && strcmp(past->row->why, "end") == 0)
        checkpoint_forget_waypoint(checkpoint);
    if (checkpoint)
        return checkpoint;
    const CheckpointRow *before = past->row > past->rows ? past->row - 1 : NULL;
    size_t used = strlen(error->text);
    if (before && used < sizeof error->text)
        snprintf(error->text + used, sizeof error->text - used,
                 "; the checkpoint before it: --at %" PRId64, before->step);
    return NULL;
}

// Whether a --layer that was typed now names it.
static bool names_layer(const void *context, const char *layer) {
    const Past *past = context;
    for (int i = 0; i < past->own_count; i++) {
        char pattern[RUN_NAME_SIZE];
        const char *equals = strrchr(past->own[i].value, '=');
        if (strcmp(past->own[i].name, "layer") != 0 || !equals)
            continue;
        snprintf(pattern, sizeof pattern, "%.*s", (int)(equals - past->own[i].value),
                 past->own[i].value);
        if (fnmatch(pattern, layer, 0) == 0)
            return true;
    }
    return false;
}

// The parent, which had no layer in fp16, needed no scale; what is set to fp16 now does.
static bool sets_fp16_unscaled(const Past *past) {
    bool sets_fp16 = false;
    for (int i = 0; i < past->own_layer_count; i++) {
        const LayerPrecision own = past->own_layers[i].precision;
        sets_fp16 = sets_fp16 || (own != LAYER_AUTO && layer_precision_format(own) == FORMAT_FP16);
    }
    return sets_fp16 && strcmp(past->record.scale_rule, "none") == 0;
}

static RestoreOwn own_of(const Past *past) {
    RestoreOwn own = {
        .names_layer = names_layer, .context = past, .scale = sets_fp16_unscaled(past)};
    for (int i = 0; i < past->own_count; i++) {
        const char *name = past->own[i].name;
        bool is_precision = strcmp(name, "precision") == 0;
        own.settings = own.settings || strcmp(name, "set") == 0;
        own.recipe = own.recipe || strcmp(name, "recipe") == 0;
        own.precision = own.precision || is_precision;
        own.layers = own.layers || strcmp(name, "layer") == 0;
        own.scale = own.scale || is_precision || strcmp(name, "loss-scale") == 0;
    }
    return own;
}

// The step after which a run was to end by its --steps; 0: by none.
static int64_t step_limit(const RunRecord *record) {
    int64_t limit = 0;
    for (int i = 0; i < record->option_count; i++)
        if (strcmp(record->options[i].name, "steps") == 0)
            limit = strtoll(record->options[i].value, NULL, 10);
    return limit;
}

// The option that gives a run that has finished more to train.
static const char *longer_by(const RunRecord *record) {
    return step_limit(record) == record->step || record->epochs == 0 ? "--steps" : "--epochs";
}

// Nothing can go on from where the run never came. What is known of one that was killed may lag
// behind its last checkpoint.
static bool check_came_to(const Past *past, int64_t step, Error *error) {
    const RunRecord *record = &past->record;
    const CheckpointRow *last = past->row_count > 0 ? &past->rows[past->row_count - 1] : NULL;
    if (step <= record->step || (last && step <= last->step))
        return true;
    return error_fail(
        error, ERROR_USAGE, "--at %" PRId64 ": run %s %s step %" PRId64, step, record->name,
        run_status_goes_on(record->status) ? "has only come to" : "ended at", record->step);
}

// ---- resume -------------------------------------------------------------------------------------

// One of two that were trained in lock step. What is known of the pair stays with it.
static void part_from_twin(const RunRecord *record) {
    const char *twin = record_fact(record, TWIN_FACT_TWIN), *of = record_fact(record, TWIN_FACT_OF);
    if (twin || of) {
        fputs("mpbench: it was trained beside run ", stderr);
        cli_print_outside(stderr, twin ? twin : of);
        fputs(", and goes on alone\n", stderr);
    }
}

// A new run that begins with the weights of the checkpoint.
static bool begin_with_weights(Cli *cli, Past *past, Error *error) {
    SafeFile *weights = past_open_weights(past, error);
    const bool is_whole = weights != NULL;
    safe_close(weights);
    // The option is kept with the new run: a fork of that one begins where it did.
    if (!is_whole || !past_set_options(cli, past, false, true, error) ||
        !cli_set_option(cli, "weights", past->file, error))
        return false;
    cli->weights_hash = past->row->hash;
    cli->run.parent = past->record.id;
    return training_run(cli, &(TrainingPlan){.path = past->script}, error);
}

static bool refuse_finished(const Past *past, Error *error) {
    const RunRecord *record = &past->record;
    const CheckpointRow *before = past_last_row(past, record->step - 1, false);
    error_fail(error, ERROR_USAGE,
               "run %s has finished, at step %" PRId64 ": `mpbench fork %s %s N` trains on",
               record->name, record->step, record->name, longer_by(record));
    const size_t used = strlen(error->text);
    if (before)
        snprintf(error->text + used, sizeof error->text - used,
                 ", `mpbench resume %s --at %" PRId64 "` trains its end again", record->name,
                 before->step);
    return false;
}

// One that is whole would train nothing from its very end, and still be said to have taken longer.
static bool check_resume(const Cli *cli, const Past *past, Error *error) {
    const RunRecord *record = &past->record;
    const bool is_at_end = cli->at == 0 || cli->at == record->step;
    if (record->status == RUN_FINISHED && is_at_end && !cli->weights_only)
        return refuse_finished(past, error);
    return check_came_to(past, cli->at, error);
}

static bool resume(Cli *cli, Past *past, Error *error) {
    const RunRecord *record = &past->record;
    if (!past->row)
        return error_fail(error, ERROR_FAILED,
                          "run %s has no checkpoint%s; `mpbench run` starts anew",
                          past->record.name, cli->at ? " at or before that step" : "");
    if (cli->weights_only)
        return begin_with_weights(cli, past, error);
    Checkpoint *checkpoint = open_chosen(past, NULL, error);
    if (!checkpoint)
        return false;
    bool done = past_set_options(cli, past, true, false, error);
    if (done) {
        past_warn_of_changes(past);
        part_from_twin(record);
        cli->weights = NULL; // they are in the checkpoint
        cli->run.name = past->record.name;
        cli->run.resumes = past->record.id;
        cli->run.from = past->row->step;
        cli->run.past = &past->past;
        cli->run.facts = record->facts;
        cli->run.fact_count = record->fact_count;
        cli->run.held = &record->memory;
        cli->run.orders = past->orders;
        cli->run.order_count = past->order_count;
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
    bool done = past_keep_own(cli, past, error) && past_read(cli, past, true, error) &&
                check_resume(cli, past, error) && resume(cli, past, error);
    past_clear(past);
    free(past);
    return done;
}

// ---- fork ---------------------------------------------------------------------------------------

// Trains the parent again from its checkpoint (or the start) up to the step, unrecorded; the file
// that comes of it lies in `folder`.
static bool train_up_to(Cli *cli, const Past *past, int64_t step, const char *folder,
                        Error *error) {
    const char *name = cli->run.name; // of the fork; what this says of itself is the parent's
    Checkpoint *checkpoint = past->row ? open_chosen(past, NULL, error) : NULL;
    bool done = (!past->row || checkpoint) && past_set_options(cli, past, false, false, error);
    if (done) {
        const TrainingPlan plan = {
            .path = past->script, .resume = checkpoint, .until = step, .folder = folder};
        cli->run.name = past->record.name;
        cli->run.orders = past->orders;
        cli->run.order_count = past->order_count;
        cli->run.fork_layers = past->own_layers;
        cli->run.fork_layer_count = past->own_layer_count;
        if (checkpoint)
            cli->weights = NULL;
        if (!cli->quiet)
            fprintf(stderr, "mpbench: training run %lld again from step %lld to %lld\n",
                    (long long)past->record.id, past->row ? (long long)past->row->step : 0LL,
                    (long long)step);
        done = training_run(cli, &plan, error);
        cli->run.name = name;
        cli->run.order_count = cli->run.fork_layer_count = 0;
    }
    checkpoint_close(checkpoint);
    return done;
}

// What lies before a fork's own beginning, or cannot be trained again from there since nothing is
// kept of it, is its parent's: trained with the fork's options it would be another.
static bool check_beginning(const Past *past, int64_t step, Error *error) {
    const RunRecord *record = &past->record;
    if (record->parent_step == 0 || past->row)
        return true;
    if (record->parent == 0)
        return error_fail(error, ERROR_USAGE,
                          "--at %" PRId64 ": run %s began at step %" PRId64 ", as a fork of a run "
                          "that was removed, and has no checkpoint up to there; `mpbench show` "
                          "lists those from which it can be forked",
                          step, record->name, record->parent_step);
    if (step <= record->parent_step)
        return error_fail(error, ERROR_USAGE,
                          "--at %" PRId64 ": run %s began at step %" PRId64 ", as a fork of run "
                          "%" PRId64 ": fork that one, `mpbench fork %" PRId64 " --at %" PRId64 "`",
                          step, record->name, record->parent_step, record->parent, record->parent,
                          step);
    return error_fail(error, ERROR_USAGE,
                      "--at %" PRId64 ": run %s, a fork of run %" PRId64 " at step %" PRId64
                      ", has no checkpoint up to there; `mpbench show` lists those from which it "
                      "can be forked",
                      step, record->name, record->parent, record->parent_step);
}

// The fork's own precision is asked for only after its parent was trained up to there: one that
// nothing trains in is refused before.
static bool check_precision(const Cli *cli, const Past *past, Error *error) {
    const char *device = cli->run.device ? cli->run.device : past->record.device;
    bool done = !cli->run.precision || training_check_precision(cli->run.precision, device, error);
    for (int i = 0; i < past->own_layer_count && done; i++) {
        const LayerPrecision own = past->own_layers[i].precision;
        const char *name = own == LAYER_AUTO ? "" : format_name(layer_precision_format(own));
        if (precision_is_untrained(name))
            done = training_check_precision(name, device, error);
    }
    return done;
}

// Likewise what its --set says.
static bool check_settings(const Past *past, Error *error) {
    if (!past_has_own(past, "set"))
        return true;
    KnownParameters known;
    bool done = known_parameters_read(&known, past->script, true, error);
    for (int i = 0; i < past->own_count && done; i++) {
        char name[RUN_NAME_SIZE];
        const char *value = strchr(past->own[i].value, '=');
        if (strcmp(past->own[i].name, "set") != 0 || !value)
            continue;
        snprintf(name, sizeof name, "%.*s", (int)(value - past->own[i].value), past->own[i].value);
        done = known_parameters_check(&known, name, value + 1, error);
    }
    known_parameters_clear(&known);
    return done;
}

// A fork that would train nothing, or from where the parent never came, is refused at once.
static bool check_fork(const Cli *cli, const Past *past, Error *error) {
    const RunRecord *record = &past->record;
    int64_t step = cli->at ? cli->at : past->row ? past->row->step : 0;
    const int64_t limit = step_limit(record);
    // More epochs, or what else is set, train no step behind the limit that a fork inherits.
    const bool is_at_limit = limit > 0 && limit <= step && !past_has_own(past, "steps");
    const bool is_longer =
        past_has_own(past, "steps") || past_has_own(past, "epochs") || past_has_own(past, "set");
    if (!check_came_to(past, step, error))
        return false;
    if (cli->run.steps > 0 && cli->run.steps <= step)
        return error_fail(error, ERROR_USAGE,
                          "--steps %" PRId64 ": the fork begins after step %" PRId64
                          " and would train nothing",
                          cli->run.steps, step);
    if (is_at_limit || (record->status == RUN_FINISHED && step == record->step && !is_longer))
        return error_fail(error, ERROR_USAGE,
                          "run %s ended at step %" PRId64 ", so that a fork would train nothing: "
                          "give --at an earlier step, or %s N, more of them",
                          record->name, record->step, longer_by(record));
    return check_precision(cli, past, error) && check_beginning(past, step, error) &&
           check_settings(past, error);
}

static bool fork_from(Cli *cli, const Past *past, Checkpoint *checkpoint, Error *error) {
    if (!past_set_options(cli, past, false, true, error))
        return false;
    past_warn_of_changes(past);
    cli->weights = NULL;
    cli->run.parent = past->record.id;
    cli->run.from = checkpoint_step(checkpoint);
    const RunPast known = past_of_fork(past, cli->run.from);
    cli->run.past = &known;
    const TrainingPlan plan = {.path = past->script, .resume = checkpoint};
    return training_run(cli, &plan, error);
}

// Whether the history has its name in all its length.
static bool is_whole(const RecordLayer *layer) {
    enum { CHARACTER = 4 }; // bytes of one, at most, that may have been cut off
    return strlen(layer->name) + CHARACTER < sizeof layer->name;
}

// What a run refuses by itself is refused before its parent is trained again: names that no layer
// of that has. A changed script, or other parameters, may make others.
static bool check_layers(const Past *past, Error *error) {
    const RunRecord *record = &past->record;
    if (past->own_layer_count == 0 || record->layer_count == 0 || past_has_own(past, "set") ||
        !past_script_is_same(past))
        return true;
    for (int i = 0; i < record->layer_count; i++)
        if (!is_whole(&record->layers[i]))
            return true;
    Policy *policy = policy_new(preset_table, error);
    bool done = policy != NULL;
    for (int i = 0; i < record->layer_count && done; i++)
        done = policy_add_layer(policy, record->layers[i].name, 0, error) > 0;
    for (int i = 0; i < past->own_layer_count && done; i++)
        done = run_check_rule(policy, &past->own_layers[i], error);
    policy_free(policy);
    return done;
}

static bool fork_between(Cli *cli, const Past *past, int64_t step, Error *error) {
    ScratchFolder folder;
    char file[sizeof folder.path + 64];
    RestoreOwn own = own_of(past);
    if (!check_layers(past, error))
        return false;
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
    bool done = past_keep_own(cli, past, error) && past_read(cli, past, false, error) &&
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
