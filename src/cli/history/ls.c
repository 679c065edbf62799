// `mpbench ls`: the runs of the history, the newest first, and below them the scans.
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/text_stream.h"
#include "cli/cli.h"
#include "cli/history/history.h"
#include "cli/print/table.h"
#include "cli/print/wrap.h"
#include "store/scan.h"

enum { FILTER_SIZE = 1024, METRIC_COLUMN = 7 };

// What is looked at most gives way last.
static const TableColumn columns[] = {
    {"id", true, 0, 0},         {"name", false, 0, 28},     {"status", false, 1, 0},
    {"precision", false, 2, 0}, {"device", false, 10, 12},  {"steps", true, 4, 0},
    {"loss", true, 3, 0},       {"result", true, 5, 24},    {"skipped", true, 6, 0},
    {"steps/s", true, 7, 0},    {"samples/s", true, 12, 0}, {"memory", true, 8, 0},
    {"age", true, 9, 0},        {"tag", false, 11, 20},
};

enum { COLUMNS = sizeof columns / sizeof *columns };

static bool join_words(const Cli *cli, char *words, Error *error) {
    size_t used = 0;
    words[0] = 0;
    for (int i = 0; i < cli->operand_count; i++) {
        int length =
            snprintf(words + used, FILTER_SIZE - used, "%s%s", i ? " " : "", cli->operands[i]);
        if (length < 0 || used + (size_t)length >= FILTER_SIZE)
            return error_fail(error, ERROR_USAGE, "ls: the filter is longer than %d characters",
                              FILTER_SIZE - 1);
        used += (size_t)length;
    }
    return true;
}

// The metric that all runs have, whose name then stands above; NULL: they differ.
static const char *shared_metric(const RunRecord *runs, int count) {
    const char *shared = NULL;
    for (int i = 0; i < count; i++) {
        const RecordMetric *metric = record_leading_metric(&runs[i]);
        if (!metric)
            continue;
        if (shared && strcmp(shared, metric->name) != 0)
            return NULL;
        shared = metric->name;
    }
    return shared;
}

static void put_run(Table *table, const Terminal *terminal, const RunRecord *run,
                    bool name_metric) {
    char text[RECORD_NAME_SIZE + TEXT_SIZE], number[TEXT_SIZE], total[TEXT_SIZE];
    bool in_progress = run_status_goes_on(run->status);
    snprintf(text, sizeof text, "%" PRId64, run->id);
    table_put(table, text, "");
    table_put(table, run->name, "");
    table_put(table, history_status(run), history_status_style(terminal, run));
    record_precision_brief(run, text);
    table_put(table, text, history_precision_style(terminal, run->precision));
    table_put(table, run->device, "");
    text_count(number, run->step);
    if (in_progress && run->total_steps > 0)
        snprintf(text, sizeof text, "%s/%s", number, text_count(total, run->total_steps));
    else
        snprintf(text, sizeof text, "%s", number);
    table_put(table, text, "");
    table_put(table, run->has_loss ? text_number(number, run->loss_last, 4) : NULL, "");
    const RecordMetric *metric = record_leading_metric(run);
    if (metric)
        snprintf(text, sizeof text, "%s%s%s", name_metric ? metric->name : "",
                 name_metric ? " " : "", text_number(number, metric->value, 4));
    table_put(table, metric ? text : NULL, "");
    table_put(table, run->skipped > 0 ? text_count(number, run->skipped) : NULL, "");
    table_put(table, history_reading(number, run->steps_per_s, 4), "");
    table_put(table, history_reading(number, run->samples_per_s, 4), "");
    table_put(table, history_size(number, run->memory.peak), "");
    table_put(table, history_age(number, run->created_ms), "");
    table_put(table, run->tag[0] ? run->tag : NULL, "");
}

static bool print_runs(const Cli *cli, const RunRecord *runs, int count, Error *error) {
    Terminal terminal = terminal_of(stdout, cli->color);
    TableColumn shown[COLUMNS];
    memcpy(shown, columns, sizeof shown);
    const char *metric = shared_metric(runs, count);
    if (metric)
        shown[METRIC_COLUMN].title = metric;
    Table *table = table_new(shown, COLUMNS);
    if (!table)
        return error_fail(error, ERROR_MEMORY, "no memory for the list");
    for (int i = 0; i < count; i++)
        put_run(table, &terminal, &runs[i], !metric);
    bool done =
        table_print(table, stdout, terminal_width(&terminal), terminal_style(&terminal, STYLE_DIM),
                    terminal_style(&terminal, STYLE_NONE), error);
    table_free(table);
    return done;
}

// A list has no parameters and diagnoses; what other programs read has them. A run that goes
// meanwhile is left out.
static bool write_array(Store *store, const RunRecord *runs, int count, FILE *out, Error *error) {
    JsonWriter json = {.stream = out};
    json_begin_array(&json);
    for (int i = 0; i < count; i++) {
        RunRecord whole = {0};
        Error why = {0};
        bool is_read = store_read_run(store, runs[i].id, &whole, &why);
        if (is_read)
            record_write_json(&whole, false, &json);
        record_clear(&whole);
        if (!is_read && why.code != ERROR_USAGE) {
            *error = why;
            return false;
        }
    }
    json_end_array(&json);
    fputc('\n', out);
    return true;
}

// Whole or not at all: it is made before any of it is printed.
static bool write_runs(Store *store, const RunRecord *runs, int count, Error *error) {
    TextStream text;
    if (!text_stream_open(&text))
        return error_fail(error, ERROR_MEMORY, "no memory for the list");
    bool done = write_array(store, runs, count, text.stream, error), is_whole;
    is_whole = text_stream_close(&text);
    if (done && !is_whole)
        done = error_fail(error, ERROR_MEMORY, "no memory for the list");
    if (done)
        fwrite(text.text, 1, text.size, stdout);
    if (is_whole)
        free(text.text);
    return done;
}

bool history_print_list(const Cli *cli, Store *store, const RunFilter *filter, int *count,
                        Error *error) {
    RunRecord *runs;
    if (!store_list_runs(store, filter, &runs, count, error))
        return false;
    bool done = true;
    if (cli->json)
        done = write_runs(store, runs, *count, error);
    else if (*count > 0)
        done = print_runs(cli, runs, *count, error);
    store_free_runs(runs, *count);
    return done;
}

// ---- scans --------------------------------------------------------------------------------------

static void put_scan(Table *table, const ScanEntry *scan) {
    char text[2 * TEXT_SIZE];
    snprintf(text, sizeof text, "scan:%" PRId64, scan->id);
    table_put(table, text, "");
    table_put(table, scan->subject, "");
    snprintf(text, sizeof text, "%d", scan->units);
    table_put(table, text, "");
    snprintf(text, sizeof text, "%d", scan->formats);
    table_put(table, text, "");
    snprintf(text, sizeof text, "%s%d of %d cells", scan->is_live ? "goes on, " : "", scan->cells,
             scan->units * scan->formats);
    table_put(table, scan->ended_ms > 0 ? "ended" : text, "");
    table_put(table, history_age(text, scan->created_ms), "");
}

// The newest, below the runs, so that somebody finds the number that `show` takes.
static bool print_scans(const Cli *cli, Store *store, int limit, Error *error) {
    static const TableColumn shown[] = {{"scan", false, 0, 0},  {"of", false, 0, 40},
                                        {"layers", true, 0, 0}, {"formats", true, 0, 0},
                                        {"state", false, 0, 0}, {"age", true, 0, 0}};
    ScanEntry *scans;
    int count;
    if (!store_list_scans(store, &scans, &count, error))
        return false;
    Table *table = count > 0 ? table_new(shown, sizeof shown / sizeof *shown) : NULL;
    bool done = table || count == 0 || error_fail(error, ERROR_MEMORY, "no memory for the list");
    for (int i = 0; table && i < count && (limit == 0 || i < limit); i++)
        put_scan(table, &scans[i]);
    if (table) {
        Terminal terminal = terminal_of(stdout, cli->color);
        putchar('\n');
        done = table_print(table, stdout, terminal_width(&terminal),
                           terminal_style(&terminal, STYLE_DIM),
                           terminal_style(&terminal, STYLE_NONE), error);
    }
    table_free(table);
    free(scans);
    return done;
}

bool command_ls(Cli *cli, Error *error) {
    char words[FILTER_SIZE];
    Store *store;
    int count = 0;
    if (!join_words(cli, words, error) || !history_open_to_read(cli, STORE_RESCUE, &store, error))
        return false;
    if (!store_check_filter(store, words, error)) {
        store_close(store);
        return false;
    }
    int limit = cli->limit < INT32_MAX ? (int)cli->limit : INT32_MAX;
    RunFilter filter = {.words = words[0] ? words : NULL, .limit = limit};
    bool done = true;
    if (store)
        done = history_print_list(cli, store, &filter, &count, error);
    else if (cli->json)
        done = write_runs(NULL, NULL, 0, error);
    done = history_tell_losses(store, done, error);
    if (done && count == 0 && !cli->json) {
        Terminal terminal = terminal_of(stdout, cli->color);
        const char *word = words[0] && store
                               ? "No run is like that; `mpbench ls` lists all."
                               : "No run was recorded yet. `mpbench run simple` trains a small "
                                 "one; `mpbench help` lists more.";
        wrap_print(stdout, word, terminal_width(&terminal), 0, 0);
        putchar('\n');
    }
    if (done && store && !words[0] && !cli->json)
        done = history_tell_losses(store, print_scans(cli, store, limit, error), error);
    store_close(store);
    return done;
}
