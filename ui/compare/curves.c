// The losses, or another series, of the runs that are compared, as curves.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/phrase.h"
#include "base/rune.h"
#include "base/sanitize.h"
#include "ui/cells/glyphs.h"
#include "ui/cells/theme.h"
#include "ui/cells/words.h"
#include "ui/compare/compare.h"

enum { LABELS = 8 };

// All that is drawn: differences over a line of none, values over that of their target. `level`
// gets the ends of that line.
static int gather_lines(const CompareView *view, PlotPoint level[2],
                        PlotLine lines[1 + COMPARE_MOST_CURVES]) {
    const CompareCurves *curves = &view->curves;
    const bool is_of_target = strcmp(view->target.name, view->comparison->series) == 0;
    const double value = view->shows_difference ? 0 : view->target.value;
    int count = 0;
    for (int i = 0; i < 2; i++)
        level[i] = (PlotPoint){i * curves->last_x, value, value, value, false};
    if (view->shows_difference || is_of_target)
        lines[count++] = (PlotLine){.points = level, .count = 2, .ink = INK_DIM};
    memcpy(lines + count, curves->lines, (size_t)curves->count * sizeof *lines);
    return count + curves->count;
}

// Bands do not move the axes: that of two seeds may be as wide as one likes.
static PlotAxes axes_of(const CompareView *view) {
    const CompareCurves *curves = &view->curves;
    PlotLine fitted[1 + COMPARE_MOST_CURVES];
    PlotPoint level[2];
    double left, right;
    int count = gather_lines(view, level, fitted);
    for (int i = 0; i < curves->count; i++)
        if (curves->extremes[i])
            fitted[count - curves->count + i].points = curves->extremes[i];
    compare_window(view, &left, &right);
    return plot_fit(fitted, count, left, right, view->log_axis && !view->shows_difference);
}

// The last one up to x; NULL: there is none.
static const PlotPoint *point_at(const PlotLine *line, double x) {
    const PlotPoint *point = NULL;
    for (int i = 0; i < line->count && line->points[i].x <= x; i++)
        point = &line->points[i];
    return point;
}

// False past the run's end: what it reached there is no value of this place.
static bool has_come_to(const PlotLine *line, double x) {
    if (line->count == 0)
        return false;
    const PlotPoint *last = &line->points[line->count - 1];
    return line->count == 1 ? x <= last->x : x < last->x + (last->x - last[-1].x);
}

// ---- the legend: beside the curves, or above them -----------------------------------------------

enum { BEFORE_LABEL = 4 };

typedef struct Legend {
    Area area;
    int columns, width; // entries beside each other, and of one
    int label, value;   // of its parts: the label without what follows it, and the value
    bool has_seeds;
} Legend;

static int larger(int a, int b) {
    return a > b ? a : b;
}

static int smaller(int a, int b) {
    return a < b ? a : b;
}

static int widest_label(const CompareCurves *curves) {
    int widest = 0;
    for (int i = 0; i < curves->count; i++)
        widest = larger(widest, text_width(curves->labels[i]));
    return widest;
}

static int widest_tail(const CompareCurves *curves, bool has_seeds) {
    int widest = 0;
    for (int i = 0; i < curves->count; i++)
        widest = larger(widest, text_width(curves->tails[i]) +
                                    (has_seeds ? text_width(curves->seeds[i]) : 0));
    return widest;
}

// What it takes is not the curves', which would be drawn over.
static Legend place_legend(const CompareView *view, Area *inside) {
    enum { WIDE = 90, GAP = 2, WIDEST_LABEL = 28, VALUE = 9, WITH_INTERVAL = 17 };
    Legend legend = {.columns = 1, .has_seeds = inside->width >= WIDE};
    legend.value = legend.has_seeds && view->curves.has_bands ? WITH_INTERVAL : VALUE;
    int count = view->curves.count;
    int others = BEFORE_LABEL + widest_tail(&view->curves, legend.has_seeds) + 1 + legend.value;
    int most = smaller(WIDEST_LABEL, inside->width - 1 - others);
    legend.label = larger(smaller(widest_label(&view->curves), most), 1);
    legend.width = legend.label + others;
    if (legend.has_seeds) {
        int left = inside->width - legend.width - GAP;
        legend.area = area_part(*inside, left + GAP, 0, legend.width, inside->height);
        *inside = area_part(*inside, 0, 0, left, inside->height);
        return legend;
    }
    legend.columns = (inside->width + GAP) / (legend.width + GAP);
    legend.columns = legend.columns > 0 ? legend.columns : 1;
    int rows = smaller((count + legend.columns - 1) / legend.columns, inside->height / 2);
    legend.area = area_part(*inside, 1, 0, inside->width - 1, rows);
    *inside = area_part(*inside, 0, rows, inside->width, inside->height - rows);
    legend.width += GAP;
    return legend;
}

// As it was logged, however smooth the curve is; without a cross that of a run is its last one, the
// same that other screens tell. Of a mean with what is uncertain of it, where there is room.
static void write_value(const CompareView *view, const Legend *legend, int curve,
                        const PlotPoint *point, char *text, size_t size) {
    const bool is_mean = view->curves.extremes[curve] && point && point->high > point->low;
    if (!view->has_cross && view->curves.has_last[curve])
        snprintf(text, size, "%s", word_number(view->curves.last[curve]).text);
    else if (!point)
        snprintf(text, size, "–");
    else if (is_mean && legend->has_seeds)
        snprintf(text, size, "%s±%.2g", word_number(point->mean).text, point->high - point->mean);
    else
        snprintf(text, size, "%s", word_number(point->mean).text);
}

static void draw_entry(const CompareView *view, const Legend *legend, const CompareLabels *fitted,
                       Area area, int i, double x) {
    const CompareCurves *curves = &view->curves;
    const PlotLine *line = &curves->lines[i];
    PlotLine logged = *line;
    char label[sizeof curves->labels[0] + sizeof curves->tails[0] + sizeof curves->seeds[0]];
    char value[48];
    logged.points = curves->logged[i];
    const PlotPoint *last = logged.count > 0 ? &logged.points[logged.count - 1] : NULL;
    const PlotPoint *point = !view->has_cross          ? last
                             : has_come_to(&logged, x) ? point_at(&logged, x)
                                                       : NULL;
    write_value(view, legend, i, point, value, sizeof value);
    snprintf(label, sizeof label, "%s%s%s",
             curves->groups[i] < 0 ? curves->labels[i] : fitted->text[curves->groups[i]],
             curves->tails[i], legend->has_seeds ? curves->seeds[i] : "");
    area_put(area, 0, 0, style_bold(line->ink), (unsigned char)view->curves.letters[i]);
    area_put(area, 2, 0, style_bold(line->ink), line->dotted ? GLYPH_DOT : GLYPH_BAR);
    area_outside(area, BEFORE_LABEL, 0, area.width - BEFORE_LABEL - legend->value - 1,
                 style_of(line->ink), label);
    area_text_right(area, area.width, 0, style_of(INK_BRIGHT), value);
}

static void draw_legend(const CompareView *view, const Legend *legend, double x) {
    enum { GAP = 2 };
    CompareLabels fitted;
    compare_fit_labels(view->comparison, legend->label, &fitted);
    for (int i = 0; i < view->curves.count; i++) {
        int column = i % legend->columns * legend->width, row = i / legend->columns;
        int width = legend->width - (legend->has_seeds ? 0 : GAP);
        Area area = area_part(legend->area, column, row, width, 1);
        if (!area_is_empty(area))
            draw_entry(view, legend, &fitted, area, i, x);
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
        const PlotPoint *point = point_at(line, plot_x_of(axes, plot.width, column));
        int row = point ? plot_row_of(axes, plot.height, point->mean) : -1;
        if (column >= 0 && row >= 0)
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
    return !view->comparison                                   ? view->problem
           : view->curves.count == 0 && view->shows_difference ? "nothing to hold against the "
                                                                 "baseline: all others are hidden, "
                                                                 "or of another experiment"
           : view->curves.last_x > 0 && view->curves.count > 0 ? NULL
           : view->curves.count == 0 ? "all are hidden: space shows those under the cursor"
           : compare_is_live(view)   ? "no points yet: the first steps are on their way"
                                     : "these runs have nothing of this series by this axis: v "
                                       "takes another series, b another axis";
}

// "d_loss (2 of 5)": there are others.
static void write_title(const CompareView *view, char *text, size_t size) {
    enum { BASELINE = 16 };
    const Comparison *comparison = view->comparison;
    char name[2 * RECORD_NAME_SIZE] = "loss";
    CompareLabels fitted = {0};
    int at = 0, count = comparison ? comparison->all_series_count : 0;
    if (comparison) {
        sanitize_line(name, sizeof name, comparison->series, strlen(comparison->series));
        compare_fit_labels(comparison, BASELINE, &fitted);
    }
    while (at < count && strcmp(comparison->all_series[at], comparison->series) != 0)
        at++;
    Phrase phrase = phrase_begin(text, size);
    phrase_add(&phrase, "%s", name);
    if (view->shows_difference)
        phrase_add(&phrase, " minus %.60s's", fitted.text[0]);
    if (at < count && count > 1)
        phrase_add(&phrase, " (%d of %d)", at + 1, count);
}

// `is_log`: the axis, which is not where a value is 0 or less, whatever was asked for.
static void write_manner(const CompareView *view, bool is_log, char *text, size_t size) {
    const char *axis = compare_axis_name(view->axis);
    const bool has_bands = view->curves.has_bands;
    if (view->shows_difference)
        snprintf(text, size, "%s · by %s · smooth %g",
                 !has_bands               ? "no seeds: chance unknown"
                 : view->curves.has_pairs ? "±95 % in pairs"
                                          : "±95 %",
                 axis, compare_smoothing(view));
    else
        snprintf(text, size, "%s%s · by %s · smooth %g%s", has_bands ? "means ±95 % · " : "",
                 view->has_cross ? "values at the cross" : "last values", axis,
                 compare_smoothing(view), is_log ? " · log" : "");
}

void compare_draw_curves(const CompareView *view, Area area, bool focused) {
    char right[96], title[4 * RECORD_NAME_SIZE];
    const char *why = say_why_empty(view);
    const PlotAxes axes = why ? (PlotAxes){.log_y = false} : axes_of(view);
    write_manner(view, axes.log_y, right, sizeof right);
    write_title(view, title, sizeof title);
    Area inside = area_box(area, title, right, focused);
    if (why) {
        area_wrap(area_part(inside, 2, 1, inside.width - 4, inside.height - 1), 0,
                  style_of(view->comparison ? INK_DIM : INK_TEXT), why);
        return;
    }
    PlotLine lines[1 + COMPARE_MOST_CURVES];
    PlotPoint level[2];
    double x = axes.left + (axes.right - axes.left) * view->cross;
    Legend legend = place_legend(view, &inside);
    Area plot = area_part(inside, LABELS, 0, inside.width - LABELS - 1, inside.height - 1);
    plot_label_y(area_part(inside, 0, 0, LABELS - 1, inside.height - 1), &axes, false);
    int count = gather_lines(view, level, lines);
    plot_draw(plot, &axes, lines, count);
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
