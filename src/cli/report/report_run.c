// Of a report: one run. What became of its layers, what it met, where it ran, how to repeat it.
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/phrase.h"
#include "cli/experiments.h"
#include "cli/history/history.h"
#include "cli/print/text.h"
#include "cli/report/html.h"
#include "cli/report/plot.h"
#include "cli/report/report.h"
#include "store/events.h"
#include "store/runs.h"

enum { MOST_EVENTS = 40, MOST_SCRIPT = 1 << 18 };

// ---- layers -------------------------------------------------------------------------------------

static void put_share(FILE *out, int64_t part, const LayerSample *sample) {
    char text[TEXT_SIZE] = "";
    double percent = sample->count > 0 ? 100 * (double)part / (double)sample->count : 0;
    if (sample->width > 0 && sample->count > 0)
        snprintf(text, sizeof text,
                 part == 0        ? "0"
                 : percent < 0.01 ? "<0.01 %%"
                                  : "%.2f %%",
                 percent);
    html_number_cell(out, text);
}

static void put_layer(FILE *out, const RunRecord *run, int layer, const LayerSample *sample,
                      int first, int last) {
    const RecordLayer *record = &run->layers[layer];
    char text[TEXT_SIZE];
    bool is_known = sample->width > 0;
    html_begin_row(out);
    html_cell(out, record->name, NULL);
    html_cell(out, record->precision, record->precision);
    html_cell(out, record->set, NULL);
    put_share(out, sample->nans + sample->infs, sample);
    put_share(out, sample->flushed, sample);
    put_share(out, sample->zeros, sample);
    put_share(out, sample->subnormal, sample);
    put_share(out, sample->overflowed, sample);
    html_number_cell(out, report_number(text, is_known ? sample->largest : NAN, 3));
    html_number_cell(out, report_number(text, is_known ? sample->update_ratio : NAN, 2));
    html_number_cell(out, report_number(text, is_known ? 1e3 * sample->seconds : NAN, 3));
    fputs("<td>", out);
    if (is_known)
        plot_exponents(out, sample, first, last, record->precision,
                       run->scale_last > 0 ? run->scale_last : 1);
    fputs("</td>", out);
    html_end_row(out);
}

static void put_layers(FILE *out, const RunRecord *run, const LayerSample *samples) {
    static const char *const titles[] = {
        "layer",       "in",       "set to",  "#not finite", "#flushed",  "#zero", "#subnormal",
        "#overflowed", "#largest", "#update", "#ms a step",  "exponents", NULL};
    int first = LAYER_BINS, last = -1;
    for (int i = 0; i < run->layer_count; i++)
        for (int bin = 0; bin < LAYER_BINS; bin++)
            if (samples[i].width > 0 && samples[i].bins[bin] > 0) {
                first = bin < first ? bin : first;
                last = bin > last ? bin : last;
            }
    char steps[HISTORY_STEPS_SIZE];
    fprintf(out, "<h3>Layers: their true gradients %s</h3>\n",
            history_layer_steps(steps, run, samples));
    html_begin_table(out, titles);
    for (int i = 0; i < run->layer_count; i++)
        put_layer(out, run, i, &samples[i], first, last);
    html_end_table(out);
    if (last >= first) {
        fputs("<p class=\"dim\">", out);
        html_format(
            out,
            "Exponents from 2^%d to 2^%d; the band is what the layer's format holds with all "
            "its digits at the last loss scale.",
            first + LAYER_LOWEST_EXPONENT, last + LAYER_LOWEST_EXPONENT);
        fputs("</p>\n", out);
    }
}

static bool write_layers(const Report *report, const RunRecord *run, Error *error) {
    if (run->layer_count == 0)
        return true;
    LayerSample *samples = calloc((size_t)run->layer_count, sizeof *samples);
    if (!samples)
        return error_fail(error, ERROR_MEMORY, "no memory for the layers of the report");
    bool done = history_read_layers(report->store, run, samples, error);
    if (done)
        put_layers(report->out, run, samples);
    free(samples);
    return done;
}

// ---- what it met --------------------------------------------------------------------------------

static void write_diagnoses(FILE *out, const RunRecord *run) {
    if (run->diagnosis_count == 0)
        return;
    fputs("<h3>Diagnoses</h3>\n<ul class=\"said\">\n", out);
    for (int i = 0; i < run->diagnosis_count; i++) {
        fputs("<li>", out);
        html_format(out, "step %" PRId64 ": ", run->diagnoses[i].step);
        html_text(out, run->diagnoses[i].text);
        fputs("</li>\n", out);
    }
    fputs("</ul>\n", out);
}

static bool write_events(const Report *report, const RunRecord *run, Error *error) {
    static const char *const titles[] = {"#step", "what", "", NULL};
    FILE *out = report->out;
    Event *events;
    int count;
    int64_t total;
    if (!store_read_last_events(report->store, run->id, MOST_EVENTS, &events, &count, &total,
                                error))
        return false;
    if (count > 0) {
        fputs("<details><summary>", out);
        if (count < total)
            html_format(out, "The last %d of %" PRId64 " events", count, total);
        else
            html_format(out, "%d event%s", count, count == 1 ? "" : "s");
        fputs("</summary>\n", out);
        html_begin_table(out, titles);
        for (int i = 0; i < count; i++) {
            char text[TEXT_SIZE];
            html_begin_row(out);
            html_number_cell(out, text_count(text, events[i].step));
            html_cell(out, event_kind_name(events[i].kind), NULL);
            html_cell(out, events[i].text, NULL);
            html_end_row(out);
        }
        html_end_table(out);
        fputs("</details>\n", out);
    }
    free(events);
    return true;
}

// ---- how to repeat it ---------------------------------------------------------------------------

static void put_word(FILE *out, const char *word) {
    char text[4 * RECORD_TEXT_SIZE];
    Phrase phrase = phrase_begin(text, sizeof text);
    phrase_add_word(&phrase, word);
    html_text(out, text);
}

static bool is_typed(const RunRecord *run, const char *option) {
    for (int i = 0; i < run->option_count; i++)
        if (strcmp(run->options[i].name, option) == 0)
            return true;
    return false;
}

static void put_command(FILE *out, const RunRecord *run) {
    char name[EXPERIMENT_NAME_SIZE];
    fputs("<pre>mpbench run ", out);
    put_word(out,
             run->script_path[0] ? experiment_subject(run->script_path, name) : run->experiment);
    static const char *const said[] = {"precision", "device", "seed", "threads"};
    char values[sizeof said / sizeof *said][TEXT_SIZE];
    snprintf(values[0], TEXT_SIZE, "%s", run->precision);
    snprintf(values[1], TEXT_SIZE, "%.31s", run->device);
    snprintf(values[2], TEXT_SIZE, "%" PRId64, run->seed);
    snprintf(values[3], TEXT_SIZE, "%d", run->threads);
    for (size_t i = 0; i < sizeof said / sizeof *said; i++)
        if (!is_typed(run, said[i])) {
            fprintf(out, " --%s ", said[i]);
            put_word(out, values[i]);
        }
    for (int i = 0; i < run->option_count; i++) {
        if (!record_option_is_typed(&run->options[i]))
            continue;
        fputs(" --", out);
        html_text(out, run->options[i].name);
        if (run->options[i].value[0]) {
            fputc(' ', out);
            put_word(out, run->options[i].value);
        }
    }
    fputs("</pre>\n", out);
}

static bool write_script(const Report *report, const RunRecord *run, Error *error) {
    FILE *out = report->out;
    if (!run->script_hash[0])
        return true;
    size_t length;
    char *text = store_read_script(report->store, run->script_hash, &length, error);
    if (!text)
        return false;
    fputs("<details><summary>", out);
    const char *slash = strrchr(run->script_path, '/');
    html_format(out, "The script, %s (%.12s)", slash ? slash + 1 : run->script_path,
                run->script_hash);
    fputs("</summary>\n<pre>", out);
    if (length > MOST_SCRIPT)
        text[MOST_SCRIPT] = 0;
    html_block(out, text);
    fputs("</pre>", out);
    if (length > MOST_SCRIPT)
        html_format(out, "The first %d of %zu bytes; the history has the rest.", MOST_SCRIPT,
                    length);
    fputs("</details>\n", out);
    free(text);
    return true;
}

static void write_environment(FILE *out, const RunRecord *run) {
    static const char *const titles[] = {"", "", NULL};
    if (run->fact_count == 0)
        return;
    fputs("<details><summary>Environment</summary>\n", out);
    html_begin_table(out, titles);
    for (int i = 0; i < run->fact_count; i++) {
        html_begin_row(out);
        html_cell(out, run->facts[i].name, NULL);
        html_cell(out, run->facts[i].value, NULL);
        html_end_row(out);
    }
    html_end_table(out);
    fputs("</details>\n", out);
}

static void write_head(FILE *out, const RunRecord *run) {
    char steps[TEXT_SIZE], skipped[TEXT_SIZE], time[TEXT_SIZE];
    fputs("<p>", out);
    html_format(out,
                "%s, in %s on %s (%s), %d thread%s, seed %" PRId64
                ", %s steps of which %s skipped; "
                "began %s.",
                history_status(run), run->precision, run->device, run->device_name, run->threads,
                run->threads == 1 ? "" : "s", run->seed, text_count(steps, run->step),
                text_count(skipped, run->skipped), history_time(time, run->created_ms));
    if (run->parent > 0)
        html_format(out, " Fork of run %" PRId64 " at step %" PRId64 ".", run->parent,
                    run->parent_step);
    fputs("</p>\n", out);
    if (run->note[0] || run->tag[0]) {
        fputs("<p>", out);
        html_format(out, "%s%s%s", run->tag, run->tag[0] && run->note[0] ? ": " : "", run->note);
        fputs("</p>\n", out);
    }
}

bool report_run(const Report *report, int index, Error *error) {
    const RunRecord *run = &report->comparison->runs[index];
    FILE *out = report->out;
    char title[RECORD_NAME_SIZE + COMPARE_LABEL_SIZE + TEXT_SIZE];
    snprintf(title, sizeof title, "Run %" PRId64 ", %s", run->id, run->name);
    html_begin_section(out, title);
    write_head(out, run);
    write_diagnoses(out, run);
    if (!write_layers(report, run, error))
        return false;
    fputs("<h3>How to repeat it</h3>\n", out);
    put_command(out, run);
    if (report->comparison->orders[index].text[0]) {
        fputs("<p>", out);
        html_format(out, "While it went on: %s.", report->comparison->orders[index].text);
        fputs("</p>\n", out);
    }
    if (!write_events(report, run, error) || !write_script(report, run, error))
        return false;
    write_environment(out, run);
    html_end_section(out);
    return true;
}
