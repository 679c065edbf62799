// Of a report: the series that the runs logged, over each other.
#include <stdlib.h>
#include <string.h>

#include "cli/report/html.h"
#include "cli/report/plot.h"
#include "cli/report/report.h"
#include "store/events.h"

enum { MOST_POINTS = 600, MOST_PLOTS = 12, MOST_SKIPS = 4000 };

static bool fail_memory(Error *error) {
    return error_fail(error, ERROR_MEMORY, "no memory for the curves of the report");
}

static void free_curves(PlotCurve *curves, int count) {
    for (int i = 0; curves && i < count; i++)
        free((SeriesPoint *)curves[i].points);
    free(curves);
}

static bool write_series(const Report *report, const char *name, const PlotMark *marks,
                         int mark_count, Error *error) {
    const Comparison *comparison = report->comparison;
    PlotCurve *curves = calloc((size_t)comparison->run_count, sizeof *curves);
    if (!curves)
        return fail_memory(error);
    bool done = true;
    for (int i = 0; i < comparison->run_count && done; i++) {
        SeriesPoint *points = NULL;
        done = store_read_series(report->store, comparison->runs[i].id, name, 0, INT64_MAX,
                                 MOST_POINTS, &points, &curves[i].count, error);
        curves[i].points = points;
        curves[i].label = report->labels[i];
        curves[i].format = comparison->runs[i].precision;
        curves[i].dash = report->dashes[i];
    }
    if (done)
        plot_write(report->out, &(Plot){.title = name,
                                        .x_name = "step",
                                        .curves = curves,
                                        .curve_count = comparison->run_count,
                                        .marks = marks,
                                        .mark_count = mark_count,
                                        .mark_name = "skipped steps"});
    free_curves(curves, comparison->run_count);
    return done;
}

// The skipped steps of all runs, in order.
static int by_place(const void *a, const void *b) {
    double left = ((const PlotMark *)a)->x, right = ((const PlotMark *)b)->x;
    return (left > right) - (left < right);
}

static bool read_skips(const Report *report, PlotMark **marks, int *count, Error *error) {
    const Comparison *comparison = report->comparison;
    *count = 0;
    *marks = NULL;
    for (int i = 0; i < comparison->run_count; i++) {
        Event *events;
        int found;
        if (!store_read_events(report->store, comparison->runs[i].id, 0, 1u << EVENT_SKIP,
                               MOST_SKIPS, &events, &found, error))
            return false;
        PlotMark *grown = realloc(*marks, (size_t)(*count + found + 1) * sizeof *grown);
        for (int k = 0; grown && k < found; k++)
            grown[(*count)++] = (PlotMark){.x = (double)events[k].step};
        free(events);
        if (!grown)
            return fail_memory(error);
        *marks = grown;
    }
    if (*count > 1)
        qsort(*marks, (size_t)*count, sizeof **marks, by_place);
    return true;
}

// Every series that all of them have; of the engine's own the times of steps are left to the table.
bool report_curves(const Report *report, Error *error) {
    const Comparison *comparison = report->comparison;
    PlotMark *marks;
    int mark_count;
    bool done = read_skips(report, &marks, &mark_count, error);
    html_begin_section(report->out, "Curves");
    fputs("<div class=\"plots\">\n", report->out);
    for (int i = 0, plots = 0; done && i < comparison->all_series_count && plots < MOST_PLOTS;
         i++) {
        const char *name = comparison->all_series[i];
        if (strcmp(name, "step_seconds") == 0)
            continue;
        bool is_marked = strcmp(name, "loss") == 0 || strcmp(name, "scale") == 0;
        done = write_series(report, name, marks, is_marked ? mark_count : 0, error);
        plots++;
    }
    fputs("</div>\n", report->out);
    html_end_section(report->out);
    free(marks);
    return done;
}
