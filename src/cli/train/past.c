#include "cli/train/past.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/phrase.h"
#include "lua/script.h"
#include "run/diagnosis.h"
#include "store/worker.h"

void past_clear(Past *past) {
    record_clear(&past->record);
    free(past->rows);
    free(past->orders);
    free(past->own);
    free(past->own_layers);
}

// ---- the past -----------------------------------------------------------------------------------

bool past_script_is_same(const Past *past) {
    Script script = {0};
    Error error = {0};
    bool same = script_read(&script, past->script, past->script, &error) &&
                strcmp(script.hash, past->record.script_hash) == 0;
    script_clear(&script);
    return same || !past->record.script_hash[0];
}

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
    // One that ships and has moved since; of the same name alone it may be another.
    if (experiment_find(name, past->script, sizeof past->script, NULL) && past_script_is_same(past))
        return true;
    return error_fail(error, ERROR_FAILED,
                      "run %s: its script %.200s is not there any more; put it back, as with "
                      "`mpbench show %" PRId64 " --script >FILE`",
                      record->name, record->script_path, record->id);
}

void past_warn_of_changes(const Past *past) {
    if (past_script_is_same(past))
        return;
    fputs("mpbench: ", stderr);
    cli_print_outside(stderr, past->script);
    fputs(" has changed since the run began: where it goes another way, resuming fails\n", stderr);
}

// One that a run left in the middle of a step or an evaluation has its weights only.
const CheckpointRow *past_last_row(const Past *past, int64_t at, bool weights_only) {
    const CheckpointRow *last = NULL;
    for (int i = 0; i < past->row_count; i++)
        if (past->rows[i].step <= at &&
            (weights_only || !checkpoint_has_weights_only(&past->rows[i])))
            last = &past->rows[i];
    return last;
}

// The last at or before the step; 0: of all.
static void choose_row(Past *past, const Store *store, int64_t at, bool weights_only) {
    past->row = past_last_row(past, at == 0 ? INT64_MAX : at, weights_only);
    if (past->row)
        checkpoint_file_path(store, past->row, past->file);
}

SafeFile *past_open_weights(const Past *past, Error *error) {
    char found[HASH_HEX_SIZE];
    SafeFile *weights = safe_open(past->file, error);
    if (weights && safe_hash(weights, found, error) && strcmp(found, past->row->hash) == 0)
        return weights;
    if (weights && error->code == ERROR_NONE)
        error_fail(error, ERROR_FAILED,
                   "the checkpoint of step %" PRId64 " is damaged: its checksum is not the one "
                   "that was recorded; --at an earlier step has another",
                   past->row->step);
    safe_close(weights);
    return NULL;
}

// The runs that it was forked from, as far as they are still there.
static void read_ancestors(Past *past, Store *store) {
    RunPast *of = &past->past;
    int64_t run = past->record.parent, until = past->record.parent_step;
    while (run > 0 && of->count < RUN_MAX_ANCESTORS) {
        RunRecord record = {.id = 0};
        Error ignored = {0};
        of->ancestors[of->count++] = (RunAncestor){.run = run, .until = until};
        const bool is_there = store_read_run(store, run, &record, &ignored);
        run = is_there ? record.parent : 0;
        until = record.parent_step;
        record_clear(&record);
    }
}

bool past_read(const Cli *cli, Past *past, bool in_place, Error *error) {
    Store *store = history_open(cli, STORE_READ, error);
    bool done =
        store && history_read_run(store, cli->operands[0], &past->record, error) &&
        (!in_place || store_refuse_living(store, past->record.id, error)) &&
        store_list_checkpoints(store, past->record.id, &past->rows, &past->row_count, error) &&
        find_script(past, error);
    if (done) {
        choose_row(past, store, cli->at, cli->weights_only);
        store_checkpoint_root(store, past->root);
        read_ancestors(past, store);
        done = store_list_settings(store, past->record.id, past->row ? past->row->step : 0,
                                   &past->orders, &past->order_count, error);
    }
    store_close(store);
    return done;
}

// ---- options ------------------------------------------------------------------------------------

// Options that a command gives anew, or that belong to one run alone.
static bool is_inherited(const char *name, bool in_place) {
    static const char *const never[] = {"json",   "quiet", "no-history", "trust",
                                        "matrix", "twin",  NULL};
    static const char *const of_one[] = {"name", "tag", "note", NULL};
    for (int i = 0; never[i]; i++)
        if (strcmp(name, never[i]) == 0)
            return false;
    for (int i = 0; !in_place && of_one[i]; i++)
        if (strcmp(name, of_one[i]) == 0)
            return false;
    return true;
}

bool past_keep_own(Cli *cli, Past *past, Error *error) {
    past->own_count = cli->run.typed_count;
    past->own_layer_count = cli->run.layer_count;
    past->own = malloc(((size_t)past->own_count + 1) * sizeof *past->own);
    past->own_layers = malloc(((size_t)past->own_layer_count + 1) * sizeof *past->own_layers);
    if (!past->own || !past->own_layers)
        return error_fail(error, ERROR_MEMORY, "no memory for the options");
    memcpy(past->own, cli->typed, (size_t)past->own_count * sizeof *past->own);
    memcpy(past->own_layers, cli->layers, (size_t)past->own_layer_count * sizeof *past->own_layers);
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

bool past_set_options(Cli *cli, const Past *past, bool in_place, bool with_own, Error *error) {
    const RunRecord *record = &past->record;
    bool was_trusted = false;
    cli->run.typed_count = cli->run.layer_count = cli->run.setting_count = 0;
    cli->run.recipe = NULL;
    cli->run.seed = (uint64_t)record->seed;
    cli->run.device = record->device;
    if (!moves(past)) // the sums of other counts differ in their last bits
        cli->run.threads = record->threads;
    cli->run.ways = record_fact(record, RECORD_FACT_WAYS); // likewise
    cli->weights_hash = record_fact(record, RECORD_FACT_WEIGHTS);
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

bool past_has_own(const Past *past, const char *name) {
    for (int i = 0; i < past->own_count; i++)
        if (strcmp(past->own[i].name, name) == 0)
            return true;
    return false;
}

// The options typed now that make it train otherwise; "" too where they are too many for a
// sentence.
static void say_change(const Past *past, char text[RUN_CHANGE_SIZE]) {
    static const char *const changing[] = {"precision",  "layer", "recipe", "keep-fp32",
                                           "loss-scale", "set",   "device", "seed"};
    Phrase phrase = phrase_begin(text, RUN_CHANGE_SIZE);
    for (int i = 0; i < past->own_count; i++)
        for (size_t k = 0; k < sizeof changing / sizeof *changing; k++) {
            if (strcmp(past->own[i].name, changing[k]) != 0)
                continue;
            phrase_add(&phrase, "%s--%s ", phrase.used ? " " : "", past->own[i].name);
            phrase_add_word(&phrase, past->own[i].value);
        }
    if (phrase.is_cut)
        text[0] = 0; // half of an option is none
}

RunPast past_of_fork(const Past *past, int64_t step) {
    static const DiagnosisKind leaving[] = {DIAGNOSIS_DIVERGED, DIAGNOSIS_LOSS_NOT_FINITE};
    const RunRecord *record = &past->record;
    RunPast of = {.count = 1, .parent_step = record->step};
    of.ancestors[0] = (RunAncestor){.run = record->id, .until = step};
    for (int i = 0; i < past->past.count && of.count < RUN_MAX_ANCESTORS; i++)
        of.ancestors[of.count++] = past->past.ancestors[i];
    say_change(past, of.change);
    for (int i = record->diagnosis_count - 1; i >= 0; i--) // the first that was told is left
        for (size_t k = 0; k < sizeof leaving / sizeof *leaving; k++)
            if (strcmp(record->diagnoses[i].kind, diagnosis_table[leaving[k]].name) == 0)
                of.parent_diverged = record->diagnoses[i].step;
    return of;
}
