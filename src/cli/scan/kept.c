#define _XOPEN_SOURCE 700 // realpath
#include "cli/scan/kept.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/out_file.h"
#include "base/utf8.h"
#include "cli/history/history.h"
#include "cli/scan/scan.h"
#include "lua/script.h"
#include "precision/scaler.h"

static bool goes_on_waiting(void *context) {
    (void)context;
    return !run_stop_requested();
}

bool scan_keep_open(const Cli *cli, ScanKeeping *keeping, Error *error) {
    const double patience = 60; // with who holds the file: what is measured took longer
    char path[STORE_PATH_SIZE];
    if (cli->no_history)
        return true;
    if (!worker_identify(&keeping->worker, error) || !store_path(cli->database, path, error) ||
        !(keeping->store = store_open(path, STORE_WRITE, error)))
        return false;
    store_set_waiting(keeping->store, patience, goes_on_waiting, NULL);
    return true;
}

// ---- the key ------------------------------------------------------------------------------------

__attribute__((format(printf, 2, 3))) static void add(Sha256 *hash, const char *format, ...) {
    char text[1024]; // twice what the longest has: of options and of a path no more is kept
    _Static_assert(sizeof((ScanRecord *)0)->script_path + RECORD_TEXT_SIZE < sizeof text,
                   "what is cut would not tell scans apart");
    va_list list;
    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    sha256_add(hash, text, strlen(text) + 1); // with the zero, so that no two run together
}

static int by_key(const void *a, const void *b) {
    const RunSetting *const *left = a, *const *right = b;
    return strcmp((*left)->key, (*right)->key);
}

// In an order that does not hang on how they were typed; of one key the last.
static void add_settings(Sha256 *hash, const RunOptions *run) {
    const RunSetting *settings[CLI_MAX_RULES];
    int count = 0;
    for (int i = 0; i < run->setting_count; i++) {
        bool is_last = true;
        for (int later = i + 1; is_last && later < run->setting_count; later++)
            is_last = strcmp(run->settings[i].key, run->settings[later].key) != 0;
        if (is_last)
            settings[count++] = &run->settings[i];
    }
    qsort(settings, (size_t)count, sizeof *settings, by_key);
    for (int i = 0; i < count; i++) {
        add(hash, "set %s", settings[i]->key);
        add(hash, "%s", settings[i]->value);
    }
}

static const char scale_option[] = "loss-scale";

static void make_key(const Cli *cli, const Past *past, ScanRecord *scan) {
    uint8_t digest[HASH_BYTES];
    Sha256 hash;
    sha256_init(&hash);
    add(&hash, "mpbench %s", MPBENCH_VERSION);
    add(&hash, "script %s %s", scan->script_hash, scan->script_path);
    add(&hash, "run %" PRId64 " %" PRId64 " %s", scan->run, scan->run_step,
        past->row ? past->row->hash : "");
    add_settings(&hash, &cli->run);
    add(&hash, "recipe %s", cli->run.recipe ? cli->run.recipe : "");
    add(&hash, "keeps %s", cli->run.keep_fp32 ? cli->run.keep_fp32 : "");
    for (int i = 0; i < scan->option_count; i++)
        if (strcmp(scan->options[i].name, scale_option) == 0)
            add(&hash, "scale %s", scan->options[i].value);
    add(&hash, "seed %" PRId64, scan->seed);
    for (int i = 0; i < scan->format_count; i++)
        add(&hash, "format %s", scan->formats[i]);
    add(&hash, "batches %" PRId64 " after %" PRId64, scan->batches, scan->warm_up);
    add(&hash, "with norms, verified by loss and result");
    add(&hash, "trains %" PRId64 " steps, %" PRId64 " seeds", scan->steps, scan->seeds);
    add(&hash, "within %.17g, tolerance %.17g, by block %d", scan->within, scan->tolerance,
        scan->by_block);
    add(&hash, "on %s, %s, %d", scan->device, scan->device_name, scan->threads);
    sha256_end(&hash, digest);
    sha256_format(scan->key, digest);
}

// ---- the subject --------------------------------------------------------------------------------

// A scale that moves. One that does not is what may have lost: then dynamic scaling is tried.
static bool is_moving(const RecordOption *option) {
    ScaleRule rule;
    Error error;
    return scale_rule_parse(option->value, &rule, &error) && rule.kind != SCALE_NONE &&
           rule.kind != SCALE_STATIC;
}

// Those of a run of this kind; what is printed, or kept, is not of it, nor how long trainings are
// that verify.
static bool keep_options(const Cli *cli, const Past *past, ScanRecord *scan, Error *error) {
    static const char *const not_of_it[] = {"json", "quiet", "no-history", "steps"};
    const RunRecord *run = &past->record;
    const size_t most = (size_t)cli->run.typed_count + (size_t)run->option_count + 1;
    scan->options = calloc(most, sizeof *scan->options);
    if (!scan->options)
        return error_fail(error, ERROR_MEMORY, "no memory for the options");
    for (int i = 0; i < cli->run.typed_count; i++) {
        bool is_kept = true;
        for (size_t k = 0; k < sizeof not_of_it / sizeof *not_of_it; k++)
            is_kept = is_kept && strcmp(cli->run.typed[i].name, not_of_it[k]) != 0;
        if (strcmp(cli->run.typed[i].name, scale_option) == 0)
            is_kept = is_moving(&cli->run.typed[i]);
        if (is_kept)
            scan->options[scan->option_count++] = cli->run.typed[i];
    }
    for (int i = 0; i < run->option_count; i++)
        if (strcmp(run->options[i].name, "steps") == 0)
            scan->options[scan->option_count++] = run->options[i];
    return true;
}

bool scan_keep_describe(const Cli *cli, const Past *past, const char *path, ScanRecord *scan,
                        Error *error) {
    Script script = {0};
    char *real = realpath(path, NULL);
    const bool is_read = script_read(&script, path, path, error);
    utf8_copy(scan->script_path, sizeof scan->script_path, real ? real : path);
    snprintf(scan->script_hash, sizeof scan->script_hash, "%s", script.hash);
    script_clear(&script);
    free(real);
    if (!is_read || !keep_options(cli, past, scan, error))
        return false;
    scan->run = past->record.id;
    scan->run_step = past->row ? past->row->step : 0;
    for (int i = 0; i < past->record.diagnosis_count; i++)
        scan_take_told(scan, past->record.diagnoses[i].kind, past->record.diagnoses[i].text);
    utf8_copy(scan->experiment, sizeof scan->experiment,
              past->record.id > 0 ? past->record.experiment : cli->operands[0]);
    make_key(cli, past, scan);
    return true;
}

// ---- going on -----------------------------------------------------------------------------------

static void tell_cells(const ScanRecord *scan) {
    fprintf(stderr, "scan %" PRId64 ": %d of %d cells are measured", scan->id,
            scan_cells_known(scan), scan->unit_count * scan->format_count);
}

static void tell_before(const ScanRecord *scan) {
    if (scan->ended_ms > 0) {
        fprintf(stderr, "scan %" PRId64 " has measured this; --again measures anew\n", scan->id);
        return;
    }
    fputs("goes on with ", stderr);
    tell_cells(scan);
    fputc('\n', stderr);
}

void scan_keep_tell(const Cli *cli, const ScanRecord *scan) {
    if (cli->quiet || scan->id == 0)
        return;
    tell_cells(scan);
    fputs("; the same command goes on\n", stderr);
}

bool scan_keep_begin(const Cli *cli, ScanKeeping *keeping, ScanRecord *scan, Error *error) {
    int64_t known = 0;
    if (!keeping->store)
        return true;
    if (!cli->again && !store_find_scan_by_key(keeping->store, scan->key, &known, error))
        return false;
    if (known == 0)
        return true;
    if (!store_read_scan(keeping->store, known, scan, error))
        return false;
    if (scan->ended_ms == 0 && (!store_own_scan(keeping->store, known, &keeping->worker, error) ||
                                !store_read_scan(keeping->store, known, scan, error)))
        return false; // read again: another may have measured it meanwhile
    if (!cli->quiet)
        tell_before(scan);
    return true;
}

bool scan_keep_end(const ScanKeeping *keeping, const ScanRecord *scan, Error *error) {
    return !keeping->store || store_end_scan(keeping->store, scan, &keeping->worker, error);
}

void scan_keep_close(ScanKeeping *keeping, const ScanRecord *scan) {
    Error error = {0};
    if (keeping->store && scan->id > 0)
        (void)!store_release_scan(keeping->store, scan->id, &keeping->worker, &error);
    store_close(keeping->store);
    *keeping = (ScanKeeping){.store = NULL};
}

// ---- named and shown ----------------------------------------------------------------------------

static const char kept_prefix[] = "scan:";

bool scan_is_named(const char *operand) {
    return strncmp(operand, kept_prefix, strlen(kept_prefix)) == 0;
}

bool scan_find(Store *store, const char *operand, int64_t *id, Error *error) {
    return store_find_scan(store, operand + strlen(kept_prefix), id, error);
}

bool scan_show(const Cli *cli, const char *operand, Error *error) {
    int64_t id;
    ScanRecord *scan = scan_record_new(error);
    Store *store = scan ? history_open(cli, STORE_RESCUE, error) : NULL;
    bool done =
        store && scan_find(store, operand, &id, error) && store_read_scan(store, id, scan, error);
    if (done && cli->json)
        scan_write_json(scan);
    else if (done)
        done = scan_print(cli, scan, error);
    done = history_tell_losses(store, done, error);
    scan_record_free(scan);
    store_close(store);
    return done;
}

static bool write_policy(const ScanRecord *scan, const char *path, Error *error) {
    OutFile out = {.stream = stdout};
    if (path && !out_file_open(&out, path, false, error))
        return error_prefix(error, "--output");
    policy_file_write(out.stream, scan);
    return !path || out_file_close(&out, true, error) || error_prefix(error, "--output");
}

bool scan_export(const Cli *cli, const char *operand, Error *error) {
    int64_t id;
    if (cli->format)
        return error_fail(error, ERROR_USAGE,
                          "export: of a scan its policy is exported: leave out --format");
    ScanRecord *scan = scan_record_new(error);
    Store *store = scan ? history_open(cli, STORE_RESCUE, error) : NULL;
    bool done = store && history_check_output(cli, store, error) &&
                scan_find(store, operand, &id, error) && store_read_scan(store, id, scan, error);
    if (done && !scan->has_policy)
        done = error_fail(error, ERROR_FAILED,
                          "scan %" PRId64 " has no policy yet: the same `mpbench scan` goes on "
                          "with it",
                          id);
    done = history_tell_losses(store, done && write_policy(scan, cli->output, error), error);
    scan_record_free(scan);
    store_close(store);
    return done;
}
