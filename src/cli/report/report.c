// `mpbench report`: one run or several as one page of HTML, for who has no mpbench.
#include "cli/report/report.h"

#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "base/embedded.h"
#include "base/out_file.h"
#include "cli/cli.h"
#include "cli/history/history.h"
#include "cli/report/html.h"

static const char *label_of_group(const Comparison *comparison, int run) {
    for (int g = 0; g < comparison->group_count; g++)
        for (int i = 0; i < comparison->groups[g].member_count; i++)
            if (comparison->groups[g].members[i] == run)
                return comparison->groups[g].label;
    return comparison->runs[run].precision;
}

// A run is told by what its group is called and by its number.
static void name_runs(Report *report) {
    const Comparison *comparison = report->comparison;
    for (int i = 0; i < comparison->run_count; i++) {
        const RunRecord *run = &comparison->runs[i];
        snprintf(report->labels[i], sizeof report->labels[i], "%.150s, run %" PRId64,
                 comparison->run_count > 1 ? label_of_group(comparison, i) : run->precision,
                 run->id);
        for (int k = 0; k < i; k++)
            report->dashes[i] += strcmp(html_format_class(comparison->runs[k].precision),
                                        html_format_class(run->precision)) == 0;
    }
}

static const char *embedded(const char *name) {
    const EmbeddedText *text = embedded_report;
    while (strcmp(text->name, name) != 0)
        text++;
    return text->text;
}

static void write_top(const Report *report) {
    const Comparison *comparison = report->comparison;
    const RunRecord *first = &comparison->runs[0];
    char time[TEXT_SIZE];
    FILE *out = report->out;
    // Nothing may be fetched, whatever a name of a run tries.
    fputs("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
          "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
          "style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:\">\n"
          "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
          "<link rel=\"icon\" href=\"data:,\">\n<title>",
          out);
    html_format(out, "%s: %d run%s", first->experiment, comparison->run_count,
                comparison->run_count == 1 ? "" : "s");
    fprintf(out, "</title>\n<style>\n%s</style>\n</head>\n<body>\n<header><h1>", embedded("style"));
    html_text(out, first->experiment);
    for (int i = 1, others = 0; i < comparison->run_count; i++)
        if (strcmp(comparison->runs[i].experiment, first->experiment) != 0 && others++ == 0)
            fputs(" and others", out);
    fputs("</h1>\n<p class=\"dim\">", out);
    html_format(out, "%d run%s, the first of %s, on %s. Made by mpbench %s.", comparison->run_count,
                comparison->run_count == 1 ? "" : "s", history_time(time, first->created_ms),
                first->device_name, MPBENCH_VERSION);
    fputs("</p></header>\n<main>\n", out);
}

static bool write_report(Report *report, Error *error) {
    name_runs(report);
    write_top(report);
    report_outcome(report);
    report_results(report);
    if (!report_curves(report, error))
        return false;
    report_memory(report);
    for (int i = 0; i < report->comparison->run_count; i++)
        if (!report_run(report, i, error))
            return false;
    fprintf(report->out, "</main>\n<script>\n%s</script>\n</body>\n</html>\n", embedded("values"));
    return true;
}

static bool write_to_file(const Cli *cli, Report *report, Error *error) {
    OutFile out;
    if (!out_file_open(&out, cli->output, false, error))
        return error_prefix(error, "--output");
    report->out = out.stream;
    Error why = {0};
    bool done = write_report(report, error), closed = out_file_close(&out, done, &why);
    if (done && !closed) {
        error_prefix(&why, "--output");
        *error = why;
    }
    return closed;
}

static Comparison *compare_runs(const Cli *cli, Store *store, Error *error) {
    int64_t runs[CLI_MAX_OPERANDS];
    for (int i = 0; i < cli->operand_count; i++)
        if (!store_find_run(store, cli->operands[i], &runs[i], error))
            return NULL;
    CompareOptions options = {.axis = COMPARE_BY_STEP,
                              .grams_per_kwh = history_grams_per_kwh(cli),
                              .series = cli->series,
                              .watts = cli->watts};
    return compare_new(store, runs, cli->operand_count, &options, error);
}

bool command_report(Cli *cli, Error *error) {
    if (!cli->output && isatty(STDOUT_FILENO))
        return error_fail(error, ERROR_USAGE,
                          "report: a page is not for a terminal; add -o FILE.html");
    Store *store = history_open(cli, STORE_RESCUE, error);
    Comparison *comparison = store ? compare_runs(cli, store, error) : NULL;
    Report report = {.out = stdout, .store = store, .comparison = comparison};
    bool done = comparison && history_check_output(cli, store, error);
    if (done)
        done = cli->output ? write_to_file(cli, &report, error) : write_report(&report, error);
    done = history_tell_losses(store, done, error);
    compare_free(comparison);
    store_close(store);
    return done;
}
