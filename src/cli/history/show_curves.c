// The curves of `mpbench show`: those of the loss and the scale large, and a line for every other
// series.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/history/history.h"
#include "cli/history/show.h"
#include "cli/print/curve.h"
#include "cli/print/table.h"
#include "store/series.h"

enum { CURVE_COLUMNS = 64, CURVE_ROWS = 5, LINE_COLUMNS = 24 };

// Means of the points in each cell of the steps 0 .. last; infinite where most are not finite.
static bool read_cells(Store *store, int64_t run, const char *name, int64_t last, double *cells,
                       int count, Error *error) {
    SeriesPoint *points;
    int point_count;
    if (!store_read_series(store, run, name, 0, last, 4 * CURVE_MOST_CELLS, &points, &point_count,
                           error))
        return false;
    double finite[CURVE_MOST_CELLS] = {0}, broken[CURVE_MOST_CELLS] = {0};
    memset(cells, 0, (size_t)count * sizeof *cells);
    for (int i = 0; i < point_count; i++) {
        const SeriesPoint *point = &points[i];
        int cell = (int)((double)point->step / ((double)last + 1) * count);
        finite[cell] += (double)point->count;
        broken[cell] += (double)(point->nans + point->infs + point->minus_infs);
        if (point->count > 0)
            cells[cell] += point->mean * (double)point->count;
    }
    for (int i = 0; i < count; i++)
        cells[i] = broken[i] > finite[i] ? INFINITY : finite[i] > 0 ? cells[i] / finite[i] : NAN;
    free(points);
    return true;
}

static bool print_curve(const ShowPage *page, Store *store, const RunRecord *run, const char *name,
                        Error *error) {
    int width = terminal_width(&page->terminal);
    int columns = width > 0 && width < CURVE_COLUMNS + CURVE_LABEL_COLUMNS + 4
                      ? width - CURVE_LABEL_COLUMNS - 4
                      : CURVE_COLUMNS;
    if (columns < 8)
        return true;
    CurveFrame frame = {.columns = columns,
                        .rows = CURVE_ROWS,
                        .has_braille = page->has_utf8,
                        .style = history_precision_style(&page->terminal, run->precision),
                        .plain = page->plain,
                        .indent = "  "};
    double cells[CURVE_MOST_CELLS];
    int count = curve_cells(&frame);
    if (!read_cells(store, run->id, name, run->step, cells, count, error))
        return false;
    curve_bridge(cells, count);
    CurveAxis axis = curve_axis(cells, count);
    char text[TEXT_SIZE], title[RECORD_NAME_SIZE + 16];
    snprintf(title, sizeof title, "%s%s", name, axis.is_log ? ", logarithmic" : "");
    show_title(page, title);
    curve_print(stdout, &frame, &axis, cells);
    printf("%*s%s%*s\n", CURVE_LABEL_COLUMNS + 3, "", "0", columns - 1,
           text_count(text, run->step));
    return true;
}

// ---- a line a series ----------------------------------------------------------------------------

// The loss and the scale have a curve or a row of the results.
static bool is_other(const SeriesInfo *series) {
    return series->count > 0 && strcmp(series->name, "loss") != 0 &&
           strcmp(series->name, "scale") != 0;
}

// Between the lowest and the highest, the lowest not blank: what was not logged, or not finite, is.
static void draw_line(const ShowPage *page, const double *cells, char *text, size_t size) {
    const double least = 0.1; // of the height
    double heights[LINE_COLUMNS], low = INFINITY, high = -INFINITY;
    for (int i = 0; i < LINE_COLUMNS; i++)
        if (isfinite(cells[i])) {
            low = fmin(low, cells[i]);
            high = fmax(high, cells[i]);
        }
    for (int i = 0; i < LINE_COLUMNS; i++)
        heights[i] = isfinite(cells[i]) ? least + (1 - least) * (cells[i] - low) / (high - low) : 0;
    if (high > low)
        curve_spark(text, size, heights, LINE_COLUMNS, page->has_utf8);
    else
        snprintf(text, size, "%s", low == high ? "flat" : "");
}

static bool put_series(const ShowPage *page, Store *store, const RunRecord *run,
                       const SeriesInfo *series, Table *table, Error *error) {
    char text[4 * LINE_COLUMNS + 1];
    double cells[LINE_COLUMNS];
    SeriesPoint *first;
    int count;
    if (!store_read_series(store, run->id, series->name, series->first_step, series->first_step, 0,
                           &first, &count, error))
        return false;
    const bool is_joined = count > 0 && first[0].count > 0; // of several steps
    const double began = is_joined   ? first[0].first
                         : count > 0 ? series_point_value(&first[0])
                                     : (double)NAN;
    free(first);
    if (!read_cells(store, run->id, series->name, run->step, cells, LINE_COLUMNS, error))
        return false;
    curve_bridge(cells, LINE_COLUMNS);
    table_put(table, series->name, "");
    table_put(table, text_count(text, series->count), "");
    table_put(table, count > 0 ? text_number(text, began, 4) : NULL, "");
    table_put(table, text_number(text, series->last, 4), "");
    draw_line(page, cells, text, sizeof text);
    table_put(table, series->count > 1 ? text : "", "");
    return true;
}

static bool print_others(const ShowPage *page, Store *store, const RunRecord *run,
                         const SeriesInfo *series, int count, Error *error) {
    static const TableColumn columns[] = {{"series", false, 0, 24},
                                          {"points", true, 2, 0},
                                          {"first", true, 0, 0},
                                          {"last", true, 0, 0},
                                          {"from lowest to highest", false, 1, 0}};
    int others = 0;
    for (int i = 0; i < count; i++)
        others += is_other(&series[i]);
    if (others == 0)
        return true;
    Table *table = table_new(columns, sizeof columns / sizeof *columns);
    bool done = table || error_fail(error, ERROR_MEMORY, "no memory for the table of series");
    for (int i = 0; done && i < count; i++)
        done = !is_other(&series[i]) || put_series(page, store, run, &series[i], table, error);
    if (done) {
        show_title(page, "Other series");
        done = table_print(table, stdout, terminal_width(&page->terminal), page->dim, page->plain,
                           error);
    }
    table_free(table);
    return done;
}

bool show_curves(const ShowPage *page, Store *store, const RunRecord *run, Error *error) {
    SeriesInfo *series;
    int count;
    if (!store_list_series(store, run->id, &series, &count, error))
        return false;
    bool done = true;
    for (int i = 0; done && i < count; i++) {
        bool is_loss = strcmp(series[i].name, "loss") == 0;
        bool is_scale = strcmp(series[i].name, "scale") == 0 && run->scale_min < run->scale_max;
        if (series[i].count > 1 && (is_loss || is_scale))
            done = print_curve(page, store, run, series[i].name, error);
    }
    done = done && print_others(page, store, run, series, count, error);
    free(series);
    return done;
}
