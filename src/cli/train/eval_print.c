// What `mpbench eval` prints: a table, a sentence that says which format is worth it, JSON.
#include <math.h>
#include <string.h>

#include "cli/history/history.h"
#include "cli/print/table.h"
#include "cli/print/wrap.h"
#include "cli/train/eval.h"

// What one would give for speed: of accuracy, and of the loss as a share of fp32's.
static const double accuracy_given = 0.005, loss_given = 0.01;
// Times that differ by less are alike.
static const double noticeable = 1.05;

// ---- what is worth it ---------------------------------------------------------------------------

const Evaluated *eval_baseline(const Evaluations *all) {
    for (int i = 0; i < all->count; i++)
        if (strcmp(all->formats[i].precision, format_name(FORMAT_FP32)) == 0)
            return &all->formats[i];
    return NULL;
}

// One that was gone through: not one that did not fit.
static const Evaluated *shown(const Evaluations *all) {
    for (int i = 0; i < all->count; i++)
        if (all->formats[i].found.samples > 0)
            return &all->formats[i];
    return &all->formats[0];
}

// What is looked at before all else: one of accuracy, else the loss, else the first.
static const RecordMetric *leading(const Evaluation *found) {
    for (int i = 0; i < found->metric_count; i++)
        if (record_metric_leads(found->metrics[i].name))
            return &found->metrics[i];
    const RecordMetric *loss = evaluation_metric(found, "loss");
    return loss ? loss : found->metric_count > 0 ? &found->metrics[0] : NULL;
}

static double throughput(const Evaluation *found) {
    return found->whole.count > 0 ? (double)found->batch / found->whole.seconds : (double)NAN;
}

EvalGain eval_gain(const Evaluations *all, const Evaluated *format) {
    EvalGain gain = {.faster = (double)NAN, .lighter = (double)NAN, .lost = (double)NAN};
    const Evaluated *base = eval_baseline(all);
    if (!base)
        return gain;
    gain.faster = throughput(&format->found) / throughput(&base->found);
    gain.lighter = (double)format->found.weights_memory / (double)base->found.weights_memory;
    const RecordMetric *was = leading(&base->found);
    const RecordMetric *is = was ? evaluation_metric(&format->found, was->name) : NULL;
    if (!is)
        return gain;
    gain.has_metric = record_metric_leads(was->name);
    gain.lost = gain.has_metric ? was->value - is->value : is->value - was->value;
    gain.is_good = gain.lost <= (gain.has_metric ? accuracy_given : loss_given * fabs(was->value));
    return gain;
}

// The fastest of those that lost little; of two alike the one whose weights are smaller.
const Evaluated *eval_best(const Evaluations *all) {
    const Evaluated *best = NULL, *base = eval_baseline(all);
    EvalGain most = {.faster = 1, .lighter = 1};
    for (int i = 0; base && i < all->count; i++) {
        EvalGain gain = eval_gain(all, &all->formats[i]);
        if (&all->formats[i] == base || !gain.is_good || !(gain.faster * noticeable >= 1))
            continue;
        bool faster = gain.faster > most.faster * noticeable,
             alike = gain.faster * noticeable >= most.faster;
        if (faster || (alike && gain.lighter < most.lighter)) {
            best = &all->formats[i];
            most = gain;
        }
    }
    return best;
}

// "0.12 points of accuracy lost"; what rounds to nothing is called that.
static void say_lost(char text[80], const Evaluations *all, const EvalGain *gain) {
    const RecordMetric *metric = leading(&eval_baseline(all)->found);
    double lost = 100 * gain->lost / (gain->has_metric ? 1 : fabs(metric->value));
    const char *unit = gain->has_metric ? "points" : "%";
    if (fabs(lost) < 0.005)
        snprintf(text, 80, "the same %.40s", metric->name);
    else
        snprintf(text, 80, "%.40s %.2f %s %s", metric->name, fabs(lost), unit,
                 lost > 0 ? "worse" : "better");
}

void eval_verdict(const Evaluations *all, char *text, size_t size) {
    const Evaluated *base = eval_baseline(all), *best = eval_best(all);
    char lost[80];
    text[0] = 0;
    if (!base || all->count < 2 || !(throughput(&base->found) > 0))
        return;
    if (best) {
        EvalGain gain = eval_gain(all, best);
        say_lost(lost, all, &gain);
        snprintf(text, size,
                 "%s is worth it: %.2f times as fast as fp32, weights %.2f of its size, %s.",
                 best->precision, gain.faster, gain.lighter, lost);
        return;
    }
    int good = 0;
    for (int i = 0; i < all->count; i++)
        good += eval_gain(all, &all->formats[i]).is_good;
    snprintf(text, size, "fp32 stays: %s.",
             good > 1 ? "of the others, those that lose little are slower or no smaller"
                      : "all others lose more than half a point of accuracy, or 1 % of loss");
}

// ---- the table ----------------------------------------------------------------------------------

enum { COLUMN_METRIC = 1, COLUMN_FASTER = 8, COLUMNS = 14 };

static void put_metric(Table *table, const Evaluations *all, const Evaluated *format,
                       const char *name) {
    char text[TEXT_SIZE];
    const Evaluated *base = eval_baseline(all);
    const RecordMetric *metric = name ? evaluation_metric(&format->found, name) : NULL;
    const RecordMetric *was = base && name ? evaluation_metric(&base->found, name) : NULL;
    if (metric)
        text_number(text, metric->value, 4);
    table_put(table, metric ? text : NULL, "");
    if (metric && was && format != base)
        snprintf(text, sizeof text, "%+.4f", metric->value - was->value);
    table_put(table, metric && was && format != base ? text : "", "");
}

static void put_time(Table *table, const EvaluationTime *time) {
    char text[TEXT_SIZE];
    table_put(table, time->count > 0 ? history_reading(text, 1e3 * time->seconds, 4) : NULL, "");
}

// NULL: unknown, of what did not fit.
static const char *put_bytes(char text[TEXT_SIZE], int64_t bytes) {
    return bytes > 0 ? text_bytes(text, (double)bytes) : NULL;
}

static void put_format(Table *table, const Terminal *terminal, const Evaluations *all,
                       const Evaluated *format, const char *metric, const char *loss) {
    char text[EVAL_NAME_SIZE + TEXT_SIZE];
    const Evaluation *found = &format->found;
    EvalGain gain = eval_gain(all, format);
    snprintf(text, sizeof text, "%s%s", format->precision, format->is_own ? "*" : "");
    table_put(table, text, history_precision_style(terminal, format->precision));
    put_metric(table, all, format, metric);
    put_metric(table, all, format, loss);
    put_time(table, &found->one);
    put_time(table, &found->whole);
    table_put(table, found->whole.count > 0 ? history_reading(text, throughput(found), 4) : NULL,
              "");
    snprintf(text, sizeof text, "%.2f", gain.faster);
    table_put(table, isnan(gain.faster) ? NULL : text, "");
    table_put(table, put_bytes(text, found->weights_disk), "");
    table_put(table, put_bytes(text, found->weights_memory), "");
    table_put(table, put_bytes(text, found->activations), "");
    const bool is_capped = found->needed > 0;
    table_put(table, is_capped ? text_count(text, found->largest_batch) : "", "");
    table_put(table, is_capped ? put_bytes(text, found->needed) : "", "");
}

static void print_notes(const Terminal *terminal, const Evaluations *all) {
    const Evaluation *first = &shown(all)->found;
    char text[512], samples[TEXT_SIZE];
    int length = snprintf(text, sizeof text, "%s samples on %s, %d thread%s",
                          text_count(samples, first->samples), all->device, all->threads,
                          all->threads == 1 ? "" : "s");
    if (first->one.count > 0)
        length += snprintf(text + length, sizeof text - (size_t)length,
                           "; times are medians of up to %lld calls of the model",
                           (long long)(first->one.count > first->whole.count ? first->one.count
                                                                             : first->whole.count));
    bool has_own = false;
    for (int i = 0; i < all->count; i++)
        has_own = has_own || all->formats[i].is_own;
    snprintf(text + length, sizeof text - (size_t)length, "%s",
             has_own ? "; * what the run was trained in" : "");
    wrap_print_outside(stdout, text, terminal_width(terminal), 0, 0);
    putchar('\n');
}

bool eval_print(const Cli *cli, const Evaluations *all, Error *error) {
    char batch[64], verdict[256];
    Terminal terminal = terminal_of(stdout, cli->color);
    TableColumn columns[COLUMNS] = {
        {"precision", false, 0, 0}, {"", true, 0, 0},          {"change", true, 3, 0},
        {"loss", true, 2, 0},       {"change", true, 4, 0},    {"ms, one", true, 5, 0},
        {batch, true, 6, 0},        {"samples/s", true, 1, 0}, {"x fp32", true, 0, 0},
        {"weights", true, 7, 0},    {"in memory", true, 8, 0}, {"activations", true, 9, 0},
        {"fits", true, 1, 0},       {"one takes", true, 8, 0},
    };
    const RecordMetric *first = leading(&shown(all)->found);
    const RecordMetric *loss = evaluation_metric(&shown(all)->found, "loss");
    columns[COLUMN_METRIC].title = first ? first->name : "";
    snprintf(batch, sizeof batch, "ms, %lld", (long long)shown(all)->found.batch);
    columns[COLUMN_FASTER].rank =
        shown(all)->found.whole.count > 0 ? 0 : 1; // --quick times nothing
    Table *table = table_new(columns, COLUMNS);
    if (!table)
        return error_fail(error, ERROR_MEMORY, "no memory for the table");
    for (int i = 0; i < all->count; i++)
        put_format(table, &terminal, all, &all->formats[i], first ? first->name : NULL,
                   loss && loss->name != first->name && strcmp(first->name, "loss") != 0 ? "loss"
                                                                                         : NULL);
    bool done =
        table_print(table, stdout, terminal_width(&terminal), terminal_style(&terminal, STYLE_DIM),
                    terminal_style(&terminal, STYLE_NONE), error);
    table_free(table);
    putchar('\n');
    print_notes(&terminal, all);
    eval_verdict(all, verdict, sizeof verdict);
    if (verdict[0]) {
        wrap_print_outside(stdout, verdict, terminal_width(&terminal), 0, 0);
        putchar('\n');
    }
    return done;
}

// ---- JSON ---------------------------------------------------------------------------------------

static void write_time(JsonWriter *json, const char *key, const EvaluationTime *time) {
    json_key(json, key);
    json_begin_object(json);
    json_put_known(json, "median_s", time->seconds, time->count > 0);
    json_put_integer(json, "count", time->count);
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
    json_begin_object(json);
    json_put_text(json, "precision", format->precision);
    json_put_boolean(json, "own", format->is_own);
    write_metrics(json, found, NULL);
    if (base)
        write_metrics(json, found, &base->found);
    write_time(json, "one", &found->one);
    write_time(json, "batch", &found->whole);
    json_put_reading(json, "samples_per_s", throughput(found));
    json_put_reading(json, "speedup", eval_gain(all, format).faster);
    json_put_integer(json, "weights_disk", found->weights_disk);
    json_put_integer(json, "weights_memory", found->weights_memory);
    json_put_integer(json, "activations", found->activations);
    json_put_integer(json, "peak", found->peak);
    json_put_known(json, "largest_batch", (double)found->largest_batch, found->needed > 0);
    json_put_known(json, "one_takes", (double)found->needed, found->needed > 0);
    json_end_object(json);
}

void eval_write_json(const Evaluations *all) {
    char verdict[256];
    JsonWriter json = {.stream = stdout};
    json_begin_object(&json);
    json_put_integer(&json, "id", all->run->id);
    json_put_text(&json, "name", all->run->name);
    json_put_text(&json, "experiment", all->run->experiment);
    json_put_known(&json, "step", (double)all->step, all->step != RECORD_UNKNOWN);
    json_put_text(&json, "weights", all->weights);
    json_put_text(&json, "device", all->device);
    json_put_text(&json, "device_name", all->device_name);
    json_put_integer(&json, "threads", all->threads);
    json_put_integer(&json, "samples", all->count > 0 ? shown(all)->found.samples : 0);
    json_put_integer(&json, "batch", all->count > 0 ? shown(all)->found.batch : 0);
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
