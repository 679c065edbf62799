// What `mpbench eval` prints: a table, a sentence that says which format is worth it, JSON.
#include <math.h>
#include <string.h>

#include "base/phrase.h"
#include "cli/history/history.h"
#include "cli/print/table.h"
#include "cli/print/wrap.h"
#include "cli/train/eval.h"

// One that was gone through: not one that did not fit.
static const Evaluated *shown(const Evaluations *all) {
    for (int i = 0; i < all->count; i++)
        if (all->formats[i].found.samples > 0)
            return &all->formats[i];
    return &all->formats[0];
}

// ---- the table ----------------------------------------------------------------------------------

enum { COLUMN_METRIC = 1, COLUMN_SECOND = 3, COLUMN_FASTER = 8, COLUMNS = 15, FORMATS_A_TABLE = 8 };

// Of the results, the two that stand beside times and sizes; the others have a table of their own.
typedef struct TableResults {
    const RecordMetric *leading, *second; // NULL: none
} TableResults;

// The second is the loss; where that leads, what the experiment's `eval` says first.
static TableResults choose_results(const Evaluation *found) {
    TableResults results = {.leading = eval_leading(found)};
    results.second = evaluation_metric(found, "loss");
    if (results.second != results.leading)
        return results;
    results.second = NULL;
    for (int i = 0; i < found->metric_count && !results.second; i++)
        if (&found->metrics[i] != results.leading)
            results.second = &found->metrics[i];
    return results;
}

// What a format gives, and what that is from fp32's: "" where nothing is told.
typedef struct MetricCells {
    char value[TEXT_SIZE], change[TEXT_SIZE];
} MetricCells;

static MetricCells metric_cells(const Evaluations *all, const Evaluated *format,
                                const RecordMetric *which) {
    MetricCells cells = {.value = ""};
    const Evaluated *base = eval_baseline(all);
    const RecordMetric *metric = which ? evaluation_metric(&format->found, which->name) : NULL;
    const RecordMetric *was = base && which ? evaluation_metric(&base->found, which->name) : NULL;
    if (metric)
        text_number(cells.value, metric->value, 4);
    if (metric && was && format != base)
        snprintf(cells.change, sizeof cells.change, "%+.4f", metric->value - was->value);
    return cells;
}

static void put_metric(Table *table, const Evaluations *all, const Evaluated *format,
                       const RecordMetric *which) {
    const MetricCells cells = metric_cells(all, format, which);
    table_put(table, cells.value[0] ? cells.value : NULL, "");
    table_put(table, cells.change, "");
}

// The size of the batch that all were timed in; 0: a limit on memory gave each its own.
static int64_t common_batch(const Evaluations *all) {
    const int64_t batch = shown(all)->found.batch;
    for (int i = 0; i < all->count; i++)
        if (all->formats[i].found.samples > 0 && all->formats[i].found.batch != batch)
            return 0;
    return batch;
}

// `of`: samples in a call, which the heading does not tell; 0: it does.
static void put_time(Table *table, const EvaluationTime *time, int64_t of) {
    char reading[TEXT_SIZE], text[2 * TEXT_SIZE];
    history_reading(reading, 1e3 * eval_seconds(time), 4);
    snprintf(text, sizeof text, "%s (%lld)", reading, (long long)of);
    table_put(table, time->round_count == 0 ? NULL : of > 0 ? text : reading, "");
}

// NULL: unknown, of what did not fit.
static const char *put_bytes(char text[TEXT_SIZE], int64_t bytes) {
    return bytes > 0 ? text_bytes(text, (double)bytes) : NULL;
}

static void put_format(Table *table, const Terminal *terminal, const Evaluations *all,
                       const Evaluated *format, const TableResults *results) {
    char text[EVAL_NAME_SIZE + TEXT_SIZE];
    const Evaluation *found = &format->found;
    EvalGain gain = eval_gain(all, format);
    snprintf(text, sizeof text, "%s%s", format->precision, format->is_own ? "*" : "");
    table_put(table, text, history_precision_style(terminal, format->precision));
    put_metric(table, all, format, results->leading);
    put_metric(table, all, format, results->second);
    put_time(table, &found->times[EVALUATION_ONE], 0);
    put_time(table, &found->times[EVALUATION_BATCH], common_batch(all) > 0 ? 0 : found->batch);
    const bool is_timed = found->times[EVALUATION_BATCH].round_count > 0;
    table_put(table, is_timed ? history_reading(text, eval_throughput(found), 4) : NULL, "");
    snprintf(text, sizeof text, "%.2f", gain.speed.faster);
    table_put(table, isnan(gain.speed.faster) ? NULL : text, "");
    snprintf(text, sizeof text, "%.2f-%.2f", gain.speed.least, gain.speed.most);
    table_put(table, isnan(gain.speed.least) || format == eval_baseline(all) ? "" : text, "");
    table_put(table, put_bytes(text, found->weights_disk), "");
    table_put(table, put_bytes(text, found->weights_memory), "");
    table_put(table, put_bytes(text, found->activations), "");
    const bool is_capped = found->needed > 0;
    table_put(table, is_capped ? text_count(text, found->largest_batch) : "", "");
    table_put(table, is_capped ? put_bytes(text, found->needed) : "", "");
}

// The results that are not in the table, of the formats from..to-1.
static bool print_others_of(const Terminal *terminal, const Evaluations *all,
                            const TableResults *results, int from, int to, Error *error) {
    const Evaluation *found = &shown(all)->found;
    TableColumn columns[1 + FORMATS_A_TABLE] = {{"result", false, 0, 24}};
    for (int i = from; i < to; i++)
        columns[1 + i - from] = (TableColumn){all->formats[i].precision, true, 0, 0};
    Table *table = table_new(columns, 1 + to - from);
    if (!table)
        return error_fail(error, ERROR_MEMORY, "no memory for the table");
    for (int m = 0; m < found->metric_count; m++) {
        const RecordMetric *metric = &found->metrics[m];
        if (metric == results->leading || metric == results->second)
            continue;
        table_put(table, metric->name, "");
        for (int i = from; i < to; i++) {
            const MetricCells cells = metric_cells(all, &all->formats[i], metric);
            char text[2 * TEXT_SIZE];
            snprintf(text, sizeof text, cells.change[0] ? "%s (%s)" : "%s", cells.value,
                     cells.change);
            table_put(table, cells.value[0] ? text : NULL, "");
        }
    }
    putchar('\n');
    bool done =
        table_print(table, stdout, terminal_width(terminal), terminal_style(terminal, STYLE_DIM),
                    terminal_style(terminal, STYLE_NONE), error);
    table_free(table);
    return done;
}

// As many formats beside each other as surely fit: no result gives way to a narrow terminal.
static bool print_others(const Terminal *terminal, const Evaluations *all,
                         const TableResults *results, Error *error) {
    enum { NAMES = 24, A_FORMAT = 24 }; // columns of the terminal: "-1.234e-05 (+1234.5678)"
    const int width = terminal_width(terminal);
    int count = width > 0 ? (width - NAMES) / A_FORMAT : FORMATS_A_TABLE;
    count = count < 1 ? 1 : count > FORMATS_A_TABLE ? FORMATS_A_TABLE : count;
    const int in_table = (results->leading != NULL) + (results->second != NULL);
    bool done = true;
    for (int from = 0; shown(all)->found.metric_count > in_table && from < all->count && done;
         from += count)
        done = print_others_of(terminal, all, results, from,
                               from + count < all->count ? from + count : all->count, error);
    return done;
}

static void print_line(const Terminal *terminal, const char *text) {
    wrap_print_outside(stdout, text, terminal_width(terminal), 0, 0);
    putchar('\n');
}

static void print_notes(const Terminal *terminal, const Evaluations *all) {
    const Evaluation *first = &shown(all)->found;
    const EvaluationTime *one = &first->times[EVALUATION_ONE],
                         *batch = &first->times[EVALUATION_BATCH];
    char text[512], samples[TEXT_SIZE], busy[TEXT_LOAD_SIZE];
    Phrase phrase = phrase_begin(text, sizeof text);
    phrase_add(&phrase, "%s samples on %s, %d thread%s", text_count(samples, first->samples),
               all->device, all->threads, all->threads == 1 ? "" : "s");
    if (batch->round_count > 0)
        phrase_add(&phrase,
                   "; times are medians of %d round%s through all formats, up to %lld calls of the "
                   "model in all",
                   batch->round_count, batch->round_count == 1 ? "" : "s",
                   (long long)(one->count > batch->count ? one->count : batch->count));
    if (batch->round_count > 0 && eval_baseline(all) && all->count > 1)
        phrase_add(&phrase, "; x fp32 is the median of what each round found per sample, not the "
                            "ratio of two medians");
    bool has_own = false;
    for (int i = 0; i < all->count; i++)
        has_own = has_own || all->formats[i].is_own;
    if (has_own)
        phrase_add(&phrase, "; * what the run was trained in%s",
                   all->sets_layers ? ", but for the layers that --layer sets" : "");
    print_line(terminal, text);
    for (int i = 0; i < all->count; i++) {
        const char *why = all->formats[i].found.one_fails;
        if (!why[0])
            continue;
        snprintf(text, sizeof text,
                 "A single sample was not timed, since the model fails on it (in %s): %s",
                 all->formats[i].precision, why);
        print_line(terminal, text);
        break; // the others mostly fail alike
    }
    if (!eval_baseline(all))
        print_line(terminal,
                   "fp32, which changes and speeds are held against, is not among -p: add it to "
                   "see them.");
    if (first->takers_unknown)
        print_line(terminal,
                   "Weights: these do not say which of them no product takes; embeddings, "
                   "if there are any, are counted in the format, though they were in "
                   "fp32 here.");
    text_load(busy, all->others);
    if (busy[0]) {
        phrase = phrase_begin(text, sizeof text);
        phrase_add(&phrase, "O%s: times tell of them, too.", busy + 1);
        print_line(terminal, text);
    }
}

bool eval_print(const Cli *cli, const Evaluations *all, Error *error) {
    char batch[64], verdict[EVAL_VERDICT_SIZE];
    Terminal terminal = terminal_of(stdout, cli->color);
    TableColumn columns[COLUMNS] = {
        {"precision", false, 0, 0},  {"", true, 0, 0},
        {"change", true, 3, 0},      {"", true, 2, 0},
        {"change", true, 4, 0},      {"ms, one", true, 5, 0},
        {batch, true, 6, 0},         {"samples/s", true, 1, 0},
        {"x fp32", true, 0, 0},      {"spread", true, 2, 0},
        {"weights", true, 7, 0},     {"in memory", true, 8, 0},
        {"activations", true, 9, 0}, {"fits", true, 1, 0},
        {"one takes", true, 8, 0},
    };
    const TableResults results = choose_results(&shown(all)->found);
    columns[COLUMN_METRIC].title = results.leading ? results.leading->name : "";
    columns[COLUMN_SECOND].title = results.second ? results.second->name : "";
    snprintf(batch, sizeof batch, "ms, batch");
    if (common_batch(all) > 0)
        snprintf(batch, sizeof batch, "ms, %lld", (long long)common_batch(all));
    const bool is_timed = shown(all)->found.times[EVALUATION_BATCH].round_count > 0;
    columns[COLUMN_FASTER].rank = is_timed ? 0 : 1; // --quick times nothing
    Table *table = table_new(columns, COLUMNS);
    if (!table)
        return error_fail(error, ERROR_MEMORY, "no memory for the table");
    for (int i = 0; i < all->count; i++)
        put_format(table, &terminal, all, &all->formats[i], &results);
    bool done =
        table_print(table, stdout, terminal_width(&terminal), terminal_style(&terminal, STYLE_DIM),
                    terminal_style(&terminal, STYLE_NONE), error);
    table_free(table);
    done = done && print_others(&terminal, all, &results, error);
    putchar('\n');
    print_notes(&terminal, all);
    eval_verdict(all, verdict, sizeof verdict);
    if (verdict[0])
        print_line(&terminal, verdict);
    return done;
}

// ---- JSON ---------------------------------------------------------------------------------------

static void write_time(JsonWriter *json, const char *key, const EvaluationTime *time,
                       int64_t samples) {
    json_key(json, key);
    json_begin_object(json);
    json_put_integer(json, "samples", samples);
    json_put_reading(json, "median_s", eval_seconds(time));
    json_put_integer(json, "count", time->count);
    json_key(json, "rounds_s");
    json_begin_array(json);
    for (int i = 0; i < time->round_count; i++)
        json_number(json, time->rounds[i]);
    json_end_array(json);
    json_end_object(json);
}

static void write_metrics(JsonWriter *json, const Evaluation *found, const Evaluation *base) {
    json_key(json, base ? "metric_deltas" : "metrics");
    json_begin_object(json);
    for (int i = 0; i < found->metric_count; i++) {
        const RecordMetric *metric = &found->metrics[i];
        const RecordMetric *was = base ? evaluation_metric(base, metric->name) : NULL;
        if (was)
            json_put_number(json, metric->name, metric->value - was->value);
        else if (!base)
            json_put_number(json, metric->name, metric->value);
    }
    json_end_object(json);
}

static void write_format(JsonWriter *json, const Evaluations *all, const Evaluated *format) {
    const Evaluation *found = &format->found;
    const Evaluated *base = eval_baseline(all);
    const EvalGain gain = eval_gain(all, format);
    json_begin_object(json);
    json_put_text(json, "precision", format->precision);
    json_put_boolean(json, "own", format->is_own);
    write_metrics(json, found, NULL);
    if (base)
        write_metrics(json, found, &base->found);
    write_time(json, "one", &found->times[EVALUATION_ONE], 1);
    write_time(json, "batch", &found->times[EVALUATION_BATCH], found->batch);
    json_put_text(json, "one_fails", found->one_fails[0] ? found->one_fails : NULL);
    json_put_reading(json, "samples_per_s", eval_throughput(found));
    json_put_reading(json, "speedup", gain.speed.faster);
    json_put_reading(json, "speedup_least", gain.speed.least);
    json_put_reading(json, "speedup_most", gain.speed.most);
    json_put_integer(json, "weights_disk", found->weights_disk);
    json_put_integer(json, "weights_memory", found->weights_memory);
    json_put_integer(json, "activations", found->activations);
    json_put_integer(json, "peak", found->peak);
    json_put_known(json, "largest_batch", (double)found->largest_batch, found->needed > 0);
    json_put_known(json, "one_takes", (double)found->needed, found->needed > 0);
    json_end_object(json);
}

static void write_broken(JsonWriter *json, const Evaluation *found) {
    json_key(json, "weights_not_finite");
    if (!found || found->broken_count == 0) {
        json_null(json);
        return;
    }
    json_begin_object(json);
    json_put_text(json, "first", found->broken);
    json_put_integer(json, "tensors", found->broken_count);
    json_put_integer(json, "numbers", found->broken_numbers);
    json_end_object(json);
}

void eval_write_json(const Evaluations *all) {
    char verdict[EVAL_VERDICT_SIZE];
    JsonWriter json = {.stream = stdout};
    json_begin_object(&json);
    json_put_integer(&json, "id", all->run->id);
    json_put_text(&json, "name", all->run->name);
    json_put_text(&json, "experiment", all->run->experiment);
    json_put_known(&json, "step", (double)all->step, all->step != RECORD_UNKNOWN);
    json_put_text(&json, "weights", all->weights);
    write_broken(&json, all->count > 0 ? &all->formats[0].found : NULL);
    json_put_text(&json, "device", all->device);
    json_put_text(&json, "device_name", all->device_name);
    json_put_integer(&json, "threads", all->threads);
    json_put_reading(&json, "load_of_others", all->others);
    json_put_integer(&json, "samples", all->count > 0 ? shown(all)->found.samples : 0);
    json_put_known(&json, "batch", all->count > 0 ? (double)common_batch(all) : 0,
                   all->count == 0 || common_batch(all) > 0);
    json_put_text(&json, "baseline", eval_baseline(all) ? format_name(FORMAT_FP32) : NULL);
    json_key(&json, "formats");
    json_begin_array(&json);
    for (int i = 0; i < all->count; i++)
        write_format(&json, all, &all->formats[i]);
    json_end_array(&json);
    const Evaluated *best = eval_best(all);
    eval_verdict(all, verdict, sizeof verdict);
    json_put_text(&json, "best", best ? best->precision : NULL);
    json_put_text(&json, "verdict", verdict[0] ? verdict : NULL);
    json_end_object(&json);
    putchar('\n');
}
