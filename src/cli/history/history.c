#include "cli/history/history.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/out_file.h"

// True with *store NULL where there is no file, which is not made.
static bool open_existing(const Cli *cli, StoreMode mode, Store **store, Error *error) {
    char path[STORE_PATH_SIZE];
    *store = NULL;
    bool exists;
    if (!store_find_file(cli->database, path, &exists, error))
        return false;
    if (exists)
        *store = store_open(path, mode, error);
    return *store || !exists;
}

bool history_open_to_read(const Cli *cli, StoreMode mode, Store **store, Error *error) {
    return open_existing(cli, mode, store, error);
}

static bool refuse_empty(Error *error) {
    return error_fail(
        error, ERROR_USAGE,
        "the history is empty: nothing was recorded yet; `mpbench run simple` begins one");
}

Store *history_open(const Cli *cli, StoreMode mode, Error *error) {
    Store *store;
    if (open_existing(cli, mode, &store, error) && !store)
        refuse_empty(error);
    return store;
}

bool history_check_there(const Cli *cli, Error *error) {
    char path[STORE_PATH_SIZE];
    bool exists;
    return store_find_file(cli->database, path, &exists, error) && (exists || refuse_empty(error));
}

bool history_read_run(Store *store, const char *text, RunRecord *record, Error *error) {
    int64_t id;
    *record = (RunRecord){.id = 0};
    return store_find_run(store, text, &id, error) && store_read_run(store, id, record, error);
}

bool history_tell_losses(const Store *store, bool done, Error *error) {
    if (!store || store_losses(store) == 0)
        return done;
    if (done)
        return error_fail(
            error, ERROR_HISTORY,
            "%.300s is damaged: this is what can be read, and some is missing; export "
            "what you need, then name another file with --db",
            store_file(store));
    if (error->code != ERROR_HISTORY) // it may be for that alone that it failed
        error_prefix(error, "%.200s is damaged", store_file(store));
    error->code = ERROR_HISTORY;
    return false;
}

bool history_check_output(const Cli *cli, const Store *store, Error *error) {
    char part[STORE_PATH_SIZE];
    const char *output = cli->output ? cli->output : "/proc/self/fd/1";
    int length = snprintf(part, sizeof part, "%s" OUT_FILE_PART, output);
    if (length < 0 || length >= (int)sizeof part)
        return error_fail(error, ERROR_USAGE, "--output %.60s...: too long a path", output);
    if (!store_owns(store, output) && !(cli->output && store_owns(store, part)))
        return true;
    return error_fail(error, ERROR_USAGE,
                      "%s: %.300s is a file of the history, which is left alone: name another",
                      cli->command->name, cli->output ? cli->output : "standard output");
}

const char *history_status(const RunRecord *record) {
    bool in_progress = run_status_goes_on(record->status);
    return record->stale && in_progress ? "stale" : run_status_name(record->status);
}

const char *history_status_style(const Terminal *terminal, const RunRecord *record) {
    switch (record->status) {
    case RUN_RUNNING:
    case RUN_PAUSED: return terminal_style(terminal, STYLE_STRONG);
    case RUN_FAILED:
    case RUN_DEAD: return terminal_style(terminal, STYLE_BAD);
    default: return "";
    }
}

const char *history_precision_style(const Terminal *terminal, const char *precision) {
    for (const Preset *preset = preset_table; preset->name; preset++)
        if (strcmp(preset->name, precision) == 0)
            return terminal_format_color(terminal, preset->low);
    Format format = format_named(precision);
    return format < FORMAT_COUNT ? terminal_format_color(terminal, format) : "";
}

// ---- readings -----------------------------------------------------------------------------------

static const char *dash(char text[TEXT_SIZE]) {
    snprintf(text, TEXT_SIZE, "-");
    return text;
}

const char *history_reading(char text[TEXT_SIZE], double value, int digits) {
    return isnan(value) ? dash(text) : text_number(text, value, digits);
}

const char *history_size(char text[TEXT_SIZE], int64_t bytes) {
    return bytes == RECORD_UNKNOWN ? dash(text) : text_bytes(text, (double)bytes);
}

const char *history_age(char text[TEXT_SIZE], int64_t created_ms) {
    static const struct {
        int64_t seconds;
        const char *unit;
    } units[] = {{365 * 86400, "y"}, {86400, "d"}, {3600, "h"}, {60, "min"}};
    int64_t seconds = (int64_t)time(NULL) - created_ms / 1000;
    if (seconds < 0) // the clock was put back since
        return dash(text);
    for (size_t i = 0; i < sizeof units / sizeof *units; i++)
        if (seconds >= units[i].seconds) {
            snprintf(text, TEXT_SIZE, "%" PRId64 " %s", seconds / units[i].seconds, units[i].unit);
            return text;
        }
    snprintf(text, TEXT_SIZE, "%" PRId64 " s", seconds);
    return text;
}

const char *history_time(char text[TEXT_SIZE], int64_t wall_ms) {
    time_t seconds = (time_t)(wall_ms / 1000);
    struct tm local;
    if (wall_ms <= 0 || !localtime_r(&seconds, &local) ||
        strftime(text, TEXT_SIZE, "%Y-%m-%d %H:%M:%S", &local) == 0)
        return dash(text);
    return text;
}

void history_write_set(int64_t id, const char *key, const char *text) {
    JsonWriter json = {.stream = stdout};
    json_begin_object(&json);
    json_put_integer(&json, "id", id);
    json_put_text(&json, key, text);
    json_end_object(&json);
    putchar('\n');
}

double history_grams_per_kwh(const Cli *cli) {
    const char *text = getenv("MPBENCH_CO2");
    char *end = NULL;
    if (cli->grams_per_kwh > 0)
        return cli->grams_per_kwh;
    double grams = text && text[0] ? strtod(text, &end) : NAN;
    return end && *end == 0 && grams > 0 && isfinite(grams) ? grams : NAN;
}

static bool fill_measured(Store *store, const RunRecord *run, int layer, LayerSample *sample,
                          Error *error) {
    enum { PARTS = 8 }; // of the run, the last of which has a step that was measured
    LayerSample *before;
    int count;
    if (!store_read_layer(store, run->id, layer, 1, run->step, PARTS, &before, &count, error))
        return false;
    for (int i = count - 1; i >= 0; i--)
        layer_sample_lend(sample, &before[i]);
    free(before);
    return true;
}

const char *history_layer_steps(char text[HISTORY_STEPS_SIZE], const RunRecord *run,
                                const LayerSample *samples) {
    int64_t from = run->step, to = 0;
    for (int i = 0; i < run->layer_count; i++) {
        const int64_t last = samples[i].step + samples[i].width - 1;
        if (samples[i].width == 0)
            continue;
        from = samples[i].step < from ? samples[i].step : from;
        to = last > to ? last : to;
    }
    to = to < run->step ? to : run->step; // a sum may be of fewer than its width
    if (to == 0)
        snprintf(text, HISTORY_STEPS_SIZE, "at the end");
    else if (from == to)
        snprintf(text, HISTORY_STEPS_SIZE, "in step %lld", (long long)to);
    else
        snprintf(text, HISTORY_STEPS_SIZE, "in steps %lld to %lld", (long long)from, (long long)to);
    return text;
}

bool history_read_layers(Store *store, const RunRecord *run, LayerSample *samples, Error *error) {
    bool done = store_read_layers_at(store, run->id, run->step, samples, run->layer_count, error);
    for (int i = 0; done && i < run->layer_count; i++)
        if (samples[i].width > 0 && (isnan(samples[i].update_ratio) || isnan(samples[i].seconds)))
            done = fill_measured(store, run, i, &samples[i], error);
    return done;
}
