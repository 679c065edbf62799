// The losses, or another series, of the runs that are compared, as curves.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/rune.h"
#include "base/sanitize.h"
#include "ui/cells/glyphs.h"
#include "ui/cells/theme.h"
#include "ui/cells/words.h"
#include "ui/compare/compare.h"

enum { LABELS = 8 };

static const double smoothings[COMPARE_SMOOTHINGS] = {0, 0.6, 0.9, 0.97};

// ---- making -------------------------------------------------------------------------------------

void compare_clear_curves(CompareCurves *curves) {
    for (int i = 0; i < curves->count; i++)
        free(curves->points[i]);
    *curves = (CompareCurves){0};
}

Ink compare_ink(const Comparison *comparison, int run) {
    return theme_format_ink(comparison->runs[run].precision);
}

static void make_curve(CompareView *view, int run) {
    const Comparison *comparison = view->comparison;
    const CompareCurve *curve = &comparison->losses[run];
    CompareCurves *curves = &view->curves;
    PlotPoint *points = calloc((size_t)curve->count + 1, sizeof *points);
    int count = points ? curve->count : 0;
    for (int i = 0; i < count; i++) {
        const SeriesPoint *point = &curve->points[i];
        points[i] = (PlotPoint){.x = curve->x[i],
                                .low = point->min,
                                .mean = point->mean,
                                .high = point->max,
                                .bad = point->nans + point->infs + point->minus_infs > 0};
        if (isfinite(curve->x[i]))
            curves->last_x = fmax(curves->last_x, curve->x[i]);
    }
    plot_smooth(points, count, smoothings[view->smoothing]);
    int at = curves->count++;
    curves->points[at] = points;
    curves->letters[at] = compare_letter(run);
    curves->lines[at] = (PlotLine){.points = points,
                                   .count = count,
                                   .ink = compare_ink(comparison, run),
                                   .spans = smoothings[view->smoothing] == 0,
                                   .dotted = run % 2 == 1};
    const RunRecord *record = &comparison->runs[run];
    snprintf(curves->labels[at], sizeof curves->labels[at], "#%lld %s", (long long)record->id,
             record->precision);
    snprintf(curves->seeds[at], sizeof curves->seeds[at], ", seed %lld", (long long)record->seed);
}

void compare_make_curves(CompareView *view) {
    compare_clear_curves(&view->curves);
    if (!view->comparison)
        return;
    for (int i = 0; i < view->comparison->run_count && i < COMPARE_MOST_CURVES; i++)
        if (!compare_is_hidden(view, i))
            make_curve(view, i);
}

// ---- drawing ------------------------------------------------------------------------------------

static PlotAxes axes_of(const CompareView *view) {
    double last = view->curves.last_x > 0 ? view->curves.last_x : 1;
    double left = last * view->from, right = last * fmin(view->from + view->span, 1);
    return plot_fit(view->curves.lines, view->curves.count, left, right, view->log_axis);
}

// The mean of the last point up to x; NaN before the first.
static double value_at(const PlotLine *line, double x) {
    double value = (double)NAN;
    for (int i = 0; i < line->count && line->points[i].x <= x; i++)
        value = line->points[i].mean;
    return value;
}

// False past the run's end: what it reached there is no value of this place.
static bool has_come_to(const PlotLine *line, double x) {
    if (line->count == 0)
        return false;
    const PlotPoint *last = &line->points[line->count - 1];
    return line->count == 1 ? x <= last->x : x < last->x + (last->x - last[-1].x);
}

char compare_letter(int run) {
    return (char)('a' + run % 26);
}

// ---- the legend: beside the curves, or above them -----------------------------------------------

enum { VALUE = 9, BEFORE_LABEL = 4 };

typedef struct Legend {
    Area area;
    int columns, width; // entries beside each other; of one
    bool has_seeds;
} Legend;

static int label_width(const CompareCurves *curves, bool has_seeds) {
    int widest = 0;
    for (int i = 0; i < curves->count; i++) {
        int width = text_width(curves->labels[i]) + (has_seeds ? text_width(curves->seeds[i]) : 0);
        widest = width > widest ? width : widest;
    }
    return widest;
}

// What it takes is not the curves', which would be drawn over.
static Legend place_legend(const CompareView *view, Area *inside) {
    enum { WIDE = 90, GAP = 2, WIDEST_LABEL = 40 };
    Legend legend = {.columns = 1, .has_seeds = inside->width >= WIDE};
    int label = label_width(&view->curves, legend.has_seeds), count = view->curves.count;
    label = label < WIDEST_LABEL ? label : WIDEST_LABEL;
    legend.width = BEFORE_LABEL + label + 1 + VALUE;
    if (legend.has_seeds) {
        int left = inside->width - legend.width - GAP;
        legend.area = area_part(*inside, left + GAP, 0, legend.width, inside->height);
        *inside = area_part(*inside, 0, 0, left, inside->height);
        return legend;
    }
    legend.columns = (inside->width + GAP) / (legend.width + GAP);
    legend.columns = legend.columns > 0 ? legend.columns : 1;
    int rows = (count + legend.columns - 1) / legend.columns, most = inside->height / 2;
    rows = rows < most ? rows : most;
    legend.area = area_part(*inside, 1, 0, inside->width - 1, rows);
    *inside = area_part(*inside, 0, rows, inside->width, inside->height - rows);
    legend.width += GAP;
    return legend;
}

static void draw_entry(const CompareView *view, const Legend *legend, Area area, int i, double x) {
    const PlotLine *line = &view->curves.lines[i];
    char label[sizeof view->curves.labels[0] + sizeof view->curves.seeds[0]];
    double value = view->has_cross   ? value_at(line, x)
                   : line->count > 0 ? line->points[line->count - 1].mean
                                     : (double)NAN;
    bool is_known = line->count > 0 && (!view->has_cross || has_come_to(line, x));
    snprintf(label, sizeof label, "%s%s", view->curves.labels[i],
             legend->has_seeds ? view->curves.seeds[i] : "");
    area_put(area, 0, 0, style_bold(line->ink), (unsigned char)view->curves.letters[i]);
    area_put(area, 2, 0, style_bold(line->ink), line->dotted ? GLYPH_DOT : GLYPH_BAR);
    area_outside(area, BEFORE_LABEL, 0, area.width - BEFORE_LABEL - VALUE - 1, style_of(line->ink),
                 label);
    area_text_right(area, area.width, 0, style_of(INK_BRIGHT),
                    is_known ? word_number(value).text : "–");
}

static void draw_legend(const CompareView *view, const Legend *legend, double x) {
    enum { GAP = 2 };
    for (int i = 0; i < view->curves.count; i++) {
        int column = i % legend->columns * legend->width, row = i / legend->columns;
        int width = legend->width - (legend->has_seeds ? 0 : GAP);
        Area area = area_part(legend->area, column, row, width, 1);
        if (!area_is_empty(area))
            draw_entry(view, legend, area, i, x);
    }
}

// ---- the panel ----------------------------------------------------------------------------------

// Each in a column of its own, near the right end of its line.
static void draw_letters(const CompareView *view, Area plot, const PlotAxes *axes) {
    enum { APART = 3 };
    for (int i = 0; i < view->curves.count; i++) {
        const PlotLine *line = &view->curves.lines[i];
        double last = line->count > 0 ? line->points[line->count - 1].x : axes->left;
        int end = last < axes->right ? plot_column_of(axes, plot.width, last) : plot.width - 1;
        int column = end - APART * i;
        int row =
            plot_row_of(axes, plot.height, value_at(line, plot_x_of(axes, plot.width, column)));
        if (line->count > 0 && column >= 0 && row >= 0)
            area_put(plot, column, row, style_bold(line->ink),
                     (unsigned char)view->curves.letters[i]);
    }
}

static void draw_cross(Area area, const PlotAxes *axes, double x) {
    int column = plot_column_of(axes, area.width, x);
    for (int row = 0; row < area.height && column >= 0; row++)
        if (frame_cell(area.frame, area.column + column, area.row + row)->rune == ' ')
            area_put(area, column, row, style_of(INK_ACCENT), GLYPH_VERTICAL);
}

// As many digits as columns can tell apart, so that they do not run on; steps are whole.
static void write_x(const CompareView *view, const PlotAxes *axes, int width, double x, char *text,
                    size_t size) {
    enum { MOST = 3 };
    double column = (axes->right - axes->left) / (width > 1 ? width : 1);
    int digits = view->axis == COMPARE_BY_STEP ? 0 : (int)ceil(-log10(column));
    if (digits > 0)
        snprintf(text, size, "%.*f", digits < MOST ? digits : MOST, x);
    else
        snprintf(text, size, "%s", word_count(llround(x)).text);
}

static void draw_x_labels(const CompareView *view, Area area, int row, const PlotAxes *axes) {
    enum { MOST = 6 };
    char text[72];
    double apart = (axes->right - axes->left) / 2;
    int needed = apart > 0 ? (int)ceil(-log10(apart)) + 1 : 1; // so that no two are written alike
    int digits = needed > MOST ? MOST : needed > 1 ? needed : 1;
    for (int i = 0; i < 3; i++) {
        double x = axes->left + apart * i;
        bool is_whole = view->axis == COMPARE_BY_STEP || (x >= 100 && digits == 1);
        snprintf(text, sizeof text, "%.*f", is_whole ? 0 : digits, x);
        int column = LABELS + (area.width - LABELS) * i / 2;
        if (i == 0)
            area_text(area, column, row, style_of(INK_DIM), text);
        else
            area_text_right(area, i == 1 ? column + 4 : column, row, style_of(INK_DIM), text);
    }
}

// Why there are no curves; NULL: there are.
static const char *say_why_empty(const CompareView *view) {
    return !view->comparison         ? view->problem
           : view->curves.last_x > 0 ? NULL
           : view->curves.count == 0 ? "all are hidden: space shows those under the cursor"
           : compare_is_live(view)   ? "no points yet: the first steps are on their way"
                                     : "these runs have nothing of this series by this axis: v "
                                       "takes another series, b another axis";
}

// "d_loss (2 of 5)": there are others.
static void write_title(const Comparison *comparison, char *text, size_t size) {
    char name[2 * RECORD_NAME_SIZE] = "loss";
    int at = 0, count = comparison ? comparison->all_series_count : 0;
    if (comparison)
        sanitize_line(name, sizeof name, comparison->series, strlen(comparison->series));
    while (at < count && strcmp(comparison->all_series[at], comparison->series) != 0)
        at++;
    if (at < count && count > 1)
        snprintf(text, size, "%s (%d of %d)", name, at + 1, count);
    else
        snprintf(text, size, "%s", name);
}

void compare_draw_curves(const CompareView *view, Area area, bool focused) {
    char right[96], title[2 * RECORD_NAME_SIZE + 32];
    snprintf(right, sizeof right, "%s · by %s · smooth %g%s",
             view->has_cross ? "values at the cross" : "last values", compare_axis_name(view->axis),
             smoothings[view->smoothing], view->log_axis ? " · log" : "");
    write_title(view->comparison, title, sizeof title);
    Area inside = area_box(area, title, right, focused);
    const char *why = say_why_empty(view);
    if (why) {
        area_wrap(area_part(inside, 2, 1, inside.width - 4, inside.height - 1), 0,
                  style_of(view->comparison ? INK_DIM : INK_TEXT), why);
        return;
    }
    PlotAxes axes = axes_of(view);
    double x = axes.left + (axes.right - axes.left) * view->cross;
    Legend legend = place_legend(view, &inside);
    Area plot = area_part(inside, LABELS, 0, inside.width - LABELS - 1, inside.height - 1);
    plot_label_y(area_part(inside, 0, 0, LABELS - 1, inside.height - 1), &axes, false);
    plot_draw(plot, &axes, view->curves.lines, view->curves.count);
    draw_letters(view, plot, &axes);
    if (view->has_cross) {
        char text[48];
        write_x(view, &axes, plot.width, x, text, sizeof text);
        draw_cross(plot, &axes, x);
        area_print(plot, 0, plot.height - 1, style_of(INK_ACCENT), " %s %s ",
                   compare_axis_name(view->axis), text);
    }
    draw_legend(view, &legend, x);
    draw_x_labels(view, area_part(inside, 0, 0, inside.width - 1, inside.height), inside.height - 1,
                  &axes);
}

void compare_put_cross(CompareView *view, int width, int column) {
    Area inside = {.width = width - 2, .height = 8}; // only columns are asked for
    place_legend(view, &inside);
    int plot = inside.width - LABELS - 2;
    view->has_cross = true;
    view->cross = fmin(fmax((double)(column - LABELS - 1) / (plot > 0 ? plot : 1), 0), 1);
}
