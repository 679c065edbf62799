#include "cli/train/summary.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <string.h>

#include "base/phrase.h"
#include "base/shortest.h"
#include "base/utf8.h"
#include "cli/print/apart.h"
#include "cli/print/terminal.h"
#include "cli/print/text.h"
#include "cli/print/wrap.h"
#include "kernel/allocator.h"
#include "run/twin.h"

enum { LABEL_COLUMN = 14 }; // where what a row says begins

static void begin_row(const Terminal *terminal, const char *label) {
    printf("  %s", terminal_style(terminal, STYLE_DIM));
    cli_print_outside(stdout, label);
    int length = 0;
    while (label[length])
        length++;
    int least = LABEL_COLUMN - 2;
    printf("%*s%s", length < least ? least - length : 1, "", terminal_style(terminal, STYLE_NONE));
}

// What is said in a row goes out, in lines that fit.
static void say(const Terminal *terminal, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static void say(const Terminal *terminal, const char *format, ...) {
    char text[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    wrap_print(stdout, text, terminal_width(terminal), LABEL_COLUMN, LABEL_COLUMN);
    putchar('\n');
}

static void print_steps(const Terminal *terminal, const Run *run) {
    char steps[TEXT_SIZE], applied[TEXT_SIZE], skipped[TEXT_SIZE];
    begin_row(terminal, "steps");
    if (run->step == 0) {
        say(terminal, "none: nothing was trained");
        return;
    }
    say(terminal, "%s: %s applied, %s skipped", text_count(steps, run->step),
        text_count(applied, run->applied), text_count(skipped, run->skipped));
}

static const RecordMetric *metric_of(const Run *run, const char *name) {
    for (int i = 0; i < run->metric_count; i++)
        if (strcmp(run->metrics[i].name, name) == 0)
            return &run->metrics[i];
    return NULL;
}

// The end of a series is its result, where it is one: told once, in the row of the series.
static bool ends_series(const Run *run, const RecordMetric *metric) {
    const RunSeries *series = run_series(run, metric->name);
    char end[TEXT_SIZE], result[TEXT_SIZE];
    return series && series->count > 1 && // as they are shown: nan is nan, too
           strcmp(text_number(end, series->last, 4), text_number(result, metric->value, 4)) == 0;
}

static void print_series(const Terminal *terminal, const Run *run) {
    for (int i = 0; i < run->series_count; i++) {
        const RunSeries *series = &run->series[i];
        bool is_one_point = series->count == 1;
        if (series->count == 0 || (is_one_point && metric_of(run, series->name)))
            continue;
        char first[TEXT_SIZE], last[TEXT_SIZE];
        begin_row(terminal, series->name);
        printf("%s%s%s", text_number(first, series->first, 4), is_one_point ? "" : " -> ",
               is_one_point ? "" : text_number(last, series->last, 4));
        // The lowest of what is no loss, as a length or a rate, tells nothing.
        const bool is_loss = strstr(series->name, "loss") && !metric_of(run, series->name);
        if (!isnan(series->best) && !(series->best == series->last) && is_loss)
            printf(", lowest %.4g", series->best + 0.0); // no -0
        putchar('\n');
    }
}

static void print_metrics(const Terminal *terminal, const Run *run) {
    for (int i = 0; i < run->metric_count; i++) {
        if (ends_series(run, &run->metrics[i]))
            continue;
        begin_row(terminal, run->metrics[i].name);
        char value[TEXT_SIZE];
        printf("%s\n", text_number(value, run->metrics[i].value, 5));
    }
}

static void print_speed(const Terminal *terminal, const Run *run) {
    char wall[TEXT_SIZE], text[160];
    const double rate = run_steps_per_second(run), seconds = run_wall(run);
    begin_row(terminal, "time");
    Phrase row = phrase_begin(text, sizeof text);
    phrase_add(&row, "%.3g s", seconds);
    if (seconds >= 60)
        phrase_add(&row, " (%s)", text_duration(wall, seconds));
    if (rate > 0) // of training alone, as the help of `run` says
        phrase_add(&row, " in all; in training %.4g steps/s", rate);
    if (rate > 0 && run_samples(run) > 0)
        phrase_add(&row, ", %.5g samples/s", rate * (double)run_samples(run) / (double)run->step);
    say(terminal, "%s", text);
}

// By purpose as `show` has it: the most of each, which need not be of one moment.
static void print_memory(const Terminal *terminal, const Run *run) {
    static const struct {
        const char *name;
        MemoryPurpose purpose;
    } parts[] = {{"weights", MEMORY_WEIGHTS},
                 {"masters", MEMORY_MASTERS},
                 {"activations", MEMORY_ACTIVATIONS},
                 {"optimizer", MEMORY_OPTIMIZER}};
    char text[160], bytes[TEXT_SIZE];
    MemoryUse use = allocator_use(run->device->allocator);
    Phrase row = phrase_begin(text, sizeof text);
    phrase_add(&row, "%s at most", text_bytes(bytes, (double)use.total_peak));
    for (size_t i = 0, said = 0; i < sizeof parts / sizeof *parts; i++)
        if (use.peak[parts[i].purpose] > 0)
            phrase_add(&row, "%s %s %s", said++ ? "," : ":", parts[i].name,
                       text_bytes(bytes, (double)use.peak[parts[i].purpose]));
    begin_row(terminal, "memory");
    say(terminal, "%s", text);
}

// Beside a row of its own, a table below all.
static void print_twin(const Terminal *terminal, const Run *run) {
    const TwinReport *report = run_twin(run);
    char line[APART_LINE_SIZE];
    Error error = {0};
    begin_row(terminal, "twin");
    apart_line(report, run->precision, line);
    wrap_print_outside(stdout, line, terminal_width(terminal), LABEL_COLUMN, LABEL_COLUMN);
    printf("\n\n");
    if (!apart_print(report, terminal, &error))
        cli_print_error(&error);
}

// With what single layers were set to, as `show` has it.
static void say_precision(const Run *run, char text[RECORD_PRECISION_SIZE]) {
    RunRecord record;
    Error error = {0};
    if (run_describe(run, &record, &error))
        record_precision_brief(&record, text);
    else
        utf8_copy(text, RECORD_PRECISION_SIZE, run->precision);
    record_clear(&record);
}

// The command, on one line, to be copied.
static void print_how_to_go_on(const Terminal *terminal, const Run *run, const Cli *cli) {
    char command[2 * STORE_PATH_SIZE];
    Phrase phrase = phrase_begin(command, sizeof command);
    phrase_add(&phrase, "mpbench resume %" PRId64 "%s", run->id, cli->trust ? " --trust" : "");
    if (cli->database) {
        phrase_add(&phrase, " --db ");
        phrase_add_word(&phrase, cli->database);
    }
    begin_row(terminal, "go on");
    cli_print_outside(stdout, command);
    putchar('\n');
}

void summary_print(const Run *run, const Cli *cli) {
    Terminal terminal = terminal_of(stdout, cli->color);
    const char *plain = terminal_style(&terminal, STYLE_NONE);
    printf("%s", terminal_style(&terminal, STYLE_STRONG));
    cli_print_outside(stdout, run->name);
    printf("%s %s%s%s\n", plain,
           run->status == RUN_FAILED ? terminal_style(&terminal, STYLE_BAD) : "",
           run_status_name(run->status), plain);
    char precision[RECORD_PRECISION_SIZE];
    say_precision(run, precision);
    begin_row(&terminal, "precision");
    say(&terminal, "%s%s%s on %s (%s), %d thread%s",
        terminal_format_color(&terminal, policy_preset(run->engine->policy)->low), precision, plain,
        run->device->label, run->device->name, run->device->threads,
        run->device->threads == 1 ? "" : "s");
    print_steps(&terminal, run);
    print_series(&terminal, run);
    print_metrics(&terminal, run);
    if (run->scale_min != 1 || run->scale_max != 1) {
        begin_row(&terminal, "scale");
        printf("%s, between %s and %s\n", shortest_of_float(run->scale_last).text,
               shortest_of_float(run->scale_min).text, shortest_of_float(run->scale_max).text);
    }
    print_speed(&terminal, run);
    print_memory(&terminal, run);
    for (int i = 0; i < run->diagnosis_count; i++) {
        begin_row(&terminal, "note");
        wrap_print_outside(stdout, run->diagnoses[i].text, terminal_width(&terminal), LABEL_COLUMN,
                           LABEL_COLUMN);
        putchar('\n');
    }
    if (run->status == RUN_STOPPED && run->can_go_on)
        print_how_to_go_on(&terminal, run, cli);
    if (run_twin(run))
        print_twin(&terminal, run);
}
