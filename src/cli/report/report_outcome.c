// Of a report: what the runs reached, beside each other.
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "cli/print/text.h"
#include "cli/report/html.h"
#include "cli/report/report.h"

const char *report_number(char *text, double value, int digits) {
    text[0] = 0;
    return isnan(value) ? text : text_number(text, value, digits);
}

// ---- sentences ----------------------------------------------------------------------------------

void report_outcome(const Report *report) {
    const Comparison *comparison = report->comparison;
    html_begin_section(report->out, "Outcome");
    for (int i = 0; i < comparison->verdict_count; i++) {
        fputs("<p class=\"verdict\">", report->out);
        html_text(report->out, comparison->verdicts[i]);
        fputs("</p>\n", report->out);
    }
    for (int i = 0; i < comparison->run_count; i++)
        if (comparison->runs[i].error[0]) {
            fputs("<p class=\"bad\">", report->out);
            html_format(report->out, "%s: %s", comparison->runs[i].name, comparison->runs[i].error);
            fputs("</p>\n", report->out);
        }
    for (int i = 0; i < comparison->caveat_count; i++) {
        fputs("<p>", report->out);
        html_text(report->out, comparison->caveats[i]);
        fputs("</p>\n", report->out);
    }
    html_end_section(report->out);
}

// ---- the table ----------------------------------------------------------------------------------

static void put_statistic(FILE *out, const Statistic *value) {
    char text[STATISTIC_TEXT_SIZE] = "";
    if (value->count + value->not_finite > 0)
        statistic_text(text, value, false);
    html_number_cell(out, text);
}

static void put_ratio(FILE *out, double ratio) {
    char text[TEXT_SIZE] = "";
    if (!isnan(ratio))
        snprintf(text, sizeof text, "%.2f×", ratio);
    html_number_cell(out, text);
}

static void put_speedup(FILE *out, const Comparison *comparison, const CompareSide *side) {
    const double speedup = compare_told_speedup(comparison, side);
    char text[TEXT_SIZE * 2] = "";
    if (!isnan(speedup) && !isnan(side->speedup_low) && side != comparison->groups)
        snprintf(text, sizeof text, "%.2f× (%.2f..%.2f)", speedup, side->speedup_low,
                 side->speedup_high);
    else if (!isnan(speedup))
        snprintf(text, sizeof text, "%.2f×", speedup);
    html_number_cell(out, text);
}

static void put_side(const Report *report, const CompareSide *side, const char *const *metrics,
                     int metric_count) {
    FILE *out = report->out;
    const RunRecord *run = &report->comparison->runs[side->members[0]];
    const Statistic unknown = {.count = 0};
    char text[TEXT_SIZE];
    html_begin_row(out);
    html_cell(out, side->label, run->precision);
    if (side->member_count > 1)
        snprintf(text, sizeof text, "%d seeds", side->member_count);
    else
        snprintf(text, sizeof text, "run %" PRId64, run->id);
    html_cell(out, text, NULL);
    put_statistic(out, &side->loss);
    for (int i = 0; i < metric_count; i++) {
        const CompareMetric *metric = compare_metric(side, metrics[i]);
        put_statistic(out, metric ? &metric->value : &unknown);
    }
    put_statistic(out, &side->steps_per_s);
    put_speedup(out, report->comparison, side);
    html_number_cell(out, isnan(side->memory.mean) ? "" : text_bytes(text, side->memory.mean));
    put_ratio(out, side->memory_ratio);
    put_statistic(out, &side->wall_s);
    put_statistic(out, &side->energy_j);
    put_statistic(out, &side->co2_g);
    html_number_cell(out, side->skipped > 0 ? text_count(text, side->skipped) : "0");
    html_end_row(out);
}

static void put_differences(const Report *report) {
    const Comparison *comparison = report->comparison;
    if (comparison->difference_count == 0)
        return;
    const char *titles[COMPARE_MOST_RUNS + 2] = {"differs"};
    for (int g = 0; g < comparison->group_count; g++)
        titles[1 + g] = comparison->groups[g].label;
    html_begin_table(report->out, titles);
    for (int i = 0; i < comparison->difference_count; i++) {
        html_begin_row(report->out);
        html_cell(report->out, comparison->differences[i].name, NULL);
        for (int g = 0; g < comparison->group_count; g++)
            html_cell(report->out, comparison->differences[i].values[g], NULL);
        html_end_row(report->out);
    }
    html_end_table(report->out);
}

void report_results(const Report *report) {
    const Comparison *comparison = report->comparison;
    const char *metrics[COMPARE_MOST_METRICS], *titles[COMPARE_MOST_METRICS + 16];
    char headings[COMPARE_MOST_METRICS + 1][RECORD_NAME_SIZE + 2];
    int metric_count = compare_metric_names(comparison, metrics, COMPARE_MOST_METRICS), count = 0;
    static const char *const after[] = {"#steps/s", "#speed",  "#memory", "#of it",
                                        "#seconds", "#joules", "#g CO2",  "#skipped"};
    titles[count++] = "";
    titles[count++] = "of";
    snprintf(headings[0], sizeof headings[0], "#%s", comparison->series);
    titles[count++] = headings[0];
    for (int i = 0; i < metric_count; i++) {
        snprintf(headings[i + 1], sizeof headings[i + 1], "#%s", metrics[i]);
        titles[count++] = headings[i + 1];
    }
    for (size_t i = 0; i < sizeof after / sizeof *after; i++)
        titles[count++] = after[i];
    titles[count] = NULL;

    html_begin_section(report->out, "Results");
    html_begin_table(report->out, titles);
    for (int g = 0; g < comparison->group_count; g++)
        put_side(report, &comparison->groups[g], metrics, metric_count);
    html_end_table(report->out);
    fputs("<p class=\"dim\">", report->out);
    html_format(
        report->out,
        "The %s is the mean over the last tenth%s. What follows ± is a 95 %% interval of the "
        "mean over seeds; in brackets that of the speed.",
        comparison->series, comparison->run_count > 1 ? " of what all runs share" : " of the run");
    fputs("</p>\n", report->out);
    for (int i = 0; i < comparison->energy_count; i++) {
        fputs("<p>", report->out);
        html_text(report->out, comparison->energies[i]);
        fputs("</p>\n", report->out);
    }
    put_differences(report);
    html_end_section(report->out);
}

// ---- memory by purpose --------------------------------------------------------------------------

void report_memory(const Report *report) {
    enum { PARTS = COMPARE_PURPOSES, WIDE = 400, TALL = 16 };
    static const char *const titles[] = {
        "",           "#at most at once", "#weights",   "#masters", "#activations",
        "#gradients", "#optimizer",       "#workspace", "",         NULL};
    const Comparison *comparison = report->comparison;
    FILE *out = report->out;
    double most = 0;
    for (int i = 0; i < comparison->run_count; i++) {
        double sum = 0;
        for (int p = 0; p < PARTS; p++)
            sum += fmax(0, (double)*(const int64_t *)((const char *)&comparison->runs[i].memory +
                                                      compare_purposes[p].offset));
        most = fmax(most, sum);
    }
    if (most == 0)
        return;
    html_begin_section(out, "Memory by purpose");
    html_begin_table(out, titles);
    for (int i = 0; i < comparison->run_count; i++) {
        const RecordMemory *memory = &comparison->runs[i].memory;
        char text[TEXT_SIZE];
        html_begin_row(out);
        html_cell(out, report->labels[i], comparison->runs[i].precision);
        html_number_cell(
            out, memory->peak == RECORD_UNKNOWN ? "" : text_bytes(text, (double)memory->peak));
        for (int p = 0; p < PARTS; p++) {
            int64_t bytes = *(const int64_t *)((const char *)memory + compare_purposes[p].offset);
            html_number_cell(out, bytes < 0 ? "" : text_bytes(text, (double)bytes));
        }
        fprintf(out, "<td><svg class=\"parts\" viewBox=\"0 0 %d %d\" preserveAspectRatio=\"none\">",
                WIDE, TALL);
        double from = 0;
        for (int p = 0; p < PARTS; p++) {
            double width = fmax(0, (double)*(const int64_t *)((const char *)memory +
                                                              compare_purposes[p].offset)) /
                           most * WIDE;
            fprintf(out,
                    "<rect class=\"%s\" x=\"%.2f\" width=\"%.2f\" height=\"%d\"><title>%s</title>"
                    "</rect>",
                    compare_purposes[p].name, from, width, TALL, compare_purposes[p].name);
            from += width;
        }
        fputs("</svg></td>", out);
        html_end_row(out);
    }
    html_end_table(out);
    fputs("<ul class=\"legend\">", out);
    for (int p = 0; p < PARTS; p++)
        fprintf(
            out,
            "<li><svg viewBox=\"0 0 24 8\" aria-hidden=\"true\"><rect class=\"%s\" width=\"24\" "
            "height=\"8\"/></svg>%s</li>",
            compare_purposes[p].name, compare_purposes[p].name);
    fputs("</ul>\n<p class=\"dim\">Each purpose at its own highest, which need not be at one "
          "moment: the "
          "sum "
          "may pass what was there at once.</p>\n",
          out);
    html_end_section(out);
}
