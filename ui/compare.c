// The compare screen: runs on shared axes, what came of them, and only what differs.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/rune.h"
#include "base/sanitize.h"
#include "compare/compare.h"
#include "ui/glyphs.h"
#include "ui/plot.h"
#include "ui/screen.h"
#include "ui/theme.h"
#include "ui/words.h"

enum { MOST_CURVES = 8, LABELS = 8, SMOOTHINGS = 4 };

static const double smoothings[SMOOTHINGS] = {0, 0.6, 0.9, 0.97};

typedef struct Curves { // of all runs, ready to be drawn
    PlotPoint *points[MOST_CURVES];
    PlotLine lines[MOST_CURVES];
    char labels[MOST_CURVES][96];
    int count;
    double last_x;
} Curves;

typedef struct CompareView {
    Comparison *comparison; // NULL: none yet
    char problem[ERROR_TEXT_SIZE];
    Curves curves;
    CompareAxis axis;
    int smoothing;
    bool log_axis, has_cross, wants_reading;
    double cross;      // on the axis, from 0 to 1 of the window
    double from, span; // the window, in shares of the axis
    int scroll;        // of the sentences below the outcomes
    int first_difference;
    double since_read;
} CompareView;

static CompareView *view_of(const Ui *ui) {
    return ui->state[SCREEN_COMPARE];
}

// ---- reading ------------------------------------------------------------------------------------

static void clear_curves(Curves *curves) {
    for (int i = 0; i < curves->count; i++)
        free(curves->points[i]);
    *curves = (Curves){0};
}

// Runs of one format are told apart by what no format has.
static Ink ink_of(const Comparison *comparison, int run) {
    static const Ink others[] = {INK_BRIGHT, INK_GOOD, INK_WARN, INK_TEXT, INK_DIM};
    Ink ink = theme_format_ink(comparison->runs[run].precision);
    int same = 0;
    for (int i = 0; i < run; i++)
        same += theme_format_ink(comparison->runs[i].precision) == ink;
    return same == 0 ? ink : others[(same - 1) % (int)(sizeof others / sizeof *others)];
}

static void make_curve(CompareView *view, int run) {
    const Comparison *comparison = view->comparison;
    const CompareCurve *curve = &comparison->losses[run];
    Curves *curves = &view->curves;
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
    curves->lines[at] = (PlotLine){.points = points,
                                   .count = count,
                                   .ink = ink_of(comparison, run),
                                   .spans = smoothings[view->smoothing] == 0,
                                   .dotted = run % 2 == 1};
    const RunRecord *record = &comparison->runs[run];
    snprintf(curves->labels[at], sizeof curves->labels[at], "#%lld %s, seed %lld",
             (long long)record->id, record->precision, (long long)record->seed);
}

static void make_curves(CompareView *view) {
    clear_curves(&view->curves);
    if (!view->comparison)
        return;
    for (int i = 0; i < view->comparison->run_count && i < MOST_CURVES; i++)
        make_curve(view, i);
}

static void read_comparison(Ui *ui) {
    CompareView *view = view_of(ui);
    CompareOptions options = {.axis = view->axis,
                              .grams_per_kwh =
                                  ui->settings.co2 > 0 ? ui->settings.co2 : (double)NAN,
                              .prefers_fp32 = true};
    Error error;
    compare_free(view->comparison);
    view->comparison = NULL;
    view->problem[0] = 0;
    if (ui->run_count >= 2)
        view->comparison = compare_new(ui->store, ui->runs, ui->run_count, &options, &error);
    if (!view->comparison)
        snprintf(view->problem, sizeof view->problem, "%s",
                 ui->run_count >= 2 ? error.text
                                    : "Choose two runs or more on the home screen with space, then "
                                      "press c.");
    make_curves(view);
    view->wants_reading = false;
    view->since_read = 0;
}

static bool is_live(const CompareView *view) {
    if (!view->comparison)
        return false;
    for (int i = 0; i < view->comparison->run_count; i++) {
        RunStatus status = view->comparison->runs[i].status;
        if (status == RUN_RUNNING || status == RUN_PAUSED)
            return true;
    }
    return false;
}

// ---- curves -------------------------------------------------------------------------------------

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

// The letter of a line, at its end and in the legend: colours are not the only thing that tells.
static char letter_of(int line) {
    return (char)('a' + line);
}

// The table below has means: what the values here are is said above them.
static void draw_legend(const CompareView *view, Area area, double x) {
    enum { VALUE = 10 };
    bool is_smooth = smoothings[view->smoothing] > 0;
    area_text_right(area, area.width, 0, style_of(INK_DIM),
                    view->has_cross ? (is_smooth ? "smoothed, at the cross" : "at the cross")
                                    : (is_smooth ? "last, smoothed" : "last"));
    area = area_part(area, 0, 1, area.width, area.height - 1);
    for (int i = 0; i < view->curves.count && i < area.height; i++) {
        const PlotLine *line = &view->curves.lines[i];
        double value = view->has_cross   ? value_at(line, x)
                       : line->count > 0 ? line->points[line->count - 1].mean
                                         : (double)NAN;
        area_put(area, 0, i, style_bold(line->ink), (unsigned char)letter_of(i));
        area_put(area, 2, i, style_bold(line->ink), line->dotted ? GLYPH_DOT : GLYPH_BAR);
        area_outside(area, 4, i, area.width - 4 - VALUE, style_of(line->ink),
                     view->curves.labels[i]);
        area_text_right(area, area.width, i, style_of(INK_BRIGHT),
                        line->count > 0 ? word_number(value).text : "–");
    }
}

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
            area_put(plot, column, row, style_bold(line->ink), (unsigned char)letter_of(i));
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
    char text[72];
    for (int i = 0; i < 3; i++) {
        double x = axes->left + (axes->right - axes->left) * i / 2;
        snprintf(text, sizeof text, x < 100 && view->axis != COMPARE_BY_STEP ? "%.1f" : "%.0f", x);
        int column = LABELS + (area.width - LABELS) * i / 2;
        if (i == 0)
            area_text(area, column, row, style_of(INK_DIM), text);
        else
            area_text_right(area, i == 1 ? column + 4 : column, row, style_of(INK_DIM), text);
    }
}

static void draw_curves(const CompareView *view, Area area, bool focused) {
    char right[96];
    snprintf(right, sizeof right, "by %s · smooth %g%s", compare_axis_name(view->axis),
             smoothings[view->smoothing], view->log_axis ? " · log" : "");
    Area inside = area_box(area, "loss", right, focused);
    if (!view->comparison) {
        area_wrap(area_part(inside, 2, 1, inside.width - 4, inside.height - 1), 0,
                  style_of(INK_TEXT), view->problem);
        return;
    }
    if (!(view->curves.last_x > 0)) {
        area_wrap(area_part(inside, 2, 1, inside.width - 4, inside.height - 1), 0,
                  style_of(INK_DIM),
                  is_live(view) ? "no points yet: the first steps are on their way"
                                : "none of these runs has a loss by this axis: b takes another");
        return;
    }
    PlotAxes axes = axes_of(view);
    double x = axes.left + (axes.right - axes.left) * view->cross;
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
    int width = plot.width * 2 / 5 > 30 ? plot.width * 2 / 5 : 30;
    draw_legend(view, area_part(plot, plot.width - width, 0, width, plot.height), x);
    draw_x_labels(view, area_part(inside, 0, 0, inside.width - 1, inside.height), inside.height - 1,
                  &axes);
}

// ---- outcomes -----------------------------------------------------------------------------------

static void write_ratio(char *text, size_t size, double ratio) {
    if (isfinite(ratio))
        snprintf(text, size, "%.*f×", ratio < 99.995 ? 2 : 0, ratio);
    else
        snprintf(text, size, "–");
}

static void write_mean(char *text, size_t size, const Statistic *value) {
    if (value->count == 0)
        snprintf(text, size, "–");
    else if (isfinite(value->interval))
        snprintf(text, size, "%s±%.2g", word_number(value->mean).text, value->interval);
    else
        snprintf(text, size, "%s", word_number(value->mean).text);
}

typedef struct Outcome {
    const char *title;
    int width, least;
} Outcome;

static const Outcome outcomes[] = {
    {"steps/s", 8, 0},    {"speed", 6, 0},    {"memory", 8, 54}, {"of it", 6, 62},
    {"mean loss", 13, 0}, {"result", 13, 46}, {"energy", 7, 80}, {"skipped", 8, 90},
};
enum { OUTCOMES = sizeof outcomes / sizeof *outcomes };

static void outcome_cells(const CompareSide *side, char cells[OUTCOMES][48]) {
    snprintf(cells[0], 48, "%s", word_short(side->steps_per_s.mean).text);
    write_ratio(cells[1], 48, side->speedup);
    snprintf(cells[2], 48, "%s",
             word_bytes(isfinite(side->memory.mean) ? (int64_t)side->memory.mean : INT64_MIN).text);
    write_ratio(cells[3], 48, side->memory_ratio);
    write_mean(cells[4], 48, &side->loss);
    const CompareMetric *metric = compare_leading_metric(side);
    if (metric)
        write_mean(cells[5], 48, &metric->value);
    else
        snprintf(cells[5], 48, "–");
    write_ratio(cells[6], 48, side->energy_ratio);
    snprintf(cells[7], 48, "%s", word_count(side->skipped).text);
}

// A title row when `side` is NULL.
static void draw_outcome(Area area, int row, const CompareSide *side, Ink ink) {
    char cells[OUTCOMES][48];
    int at = area.width;
    if (side)
        outcome_cells(side, cells);
    for (int i = OUTCOMES - 1; i >= 0; i--) {
        if (area.width < outcomes[i].least)
            continue;
        area_text_right(area, at, row, style_of(side ? INK_BRIGHT : INK_DIM),
                        side ? cells[i] : outcomes[i].title);
        at -= outcomes[i].width + 1;
    }
    if (side)
        area_outside(area, 1, row, at - 1, style_bold(ink), side->label);
}

static bool describe_parting(const CompareSide *side, char *text, size_t size) {
    const CompareDivergence *divergence = &side->divergence;
    if (!divergence->is_known)
        return false;
    if (divergence->different < 0)
        snprintf(text, size, "%s: the same to the bit all along", side->label);
    else if (divergence->parted < 0)
        snprintf(text, size,
                 "%s: first different bit at step %lld; never apart by more "
                 "than noise",
                 side->label, (long long)divergence->different);
    else
        snprintf(text, size, "%s: first different bit at step %lld, apart from step %lld on",
                 side->label, (long long)divergence->different, (long long)divergence->parted);
    return true;
}

// All sentences, one below the other from `row` on; returns the row after them. Without a frame
// they are measured alone.
static int draw_sentences(const Comparison *comparison, Area area, int row) {
    char text[COMPARE_LABEL_SIZE + 160], clean[2 * sizeof text];
    for (int i = 0; i < comparison->verdict_count; i++)
        row = area_wrap(area, row, style_of(INK_BRIGHT), comparison->verdicts[i]);
    for (int i = 1; i < comparison->group_count; i++)
        if (describe_parting(&comparison->groups[i], text, sizeof text)) {
            sanitize_line(clean, sizeof clean, text, strlen(text));
            row = area_wrap(area, row, style_of(INK_DIM), clean);
        }
    for (int i = 0; i < comparison->caveat_count; i++)
        row = area_wrap(area, row, style_of(INK_WARN), comparison->caveats[i]);
    return row;
}

// On the border: how much of the sentences is not seen.
static void mark_hidden(Area area, int above, int below) {
    char text[64] = "";
    if (above > 0 && below > 0)
        snprintf(text, sizeof text, " %d above, %d more below ", above, below);
    else if (above > 0)
        snprintf(text, sizeof text, " %d above ", above);
    else if (below > 0)
        snprintf(text, sizeof text, " %d more below: down ", below);
    area_text_right(area, area.width - 2, area.height - 1, style_of(INK_WARN), text);
}

static void describe_baseline(const CompareSide *side, char *text, size_t size) {
    enum { NAME_MOST = 24 };
    char label[COMPARE_LABEL_SIZE];
    sanitize_line(label, sizeof label, side->label, strlen(side->label));
    bool is_short = text_width(label) <= NAME_MOST;
    snprintf(text, size, "%s is the baseline", is_short ? label : "the first");
}

static void draw_outcomes(CompareView *view, Area area, bool focused) {
    const Comparison *comparison = view->comparison;
    char right[COMPARE_LABEL_SIZE * 2] = "";
    if (comparison)
        describe_baseline(&comparison->groups[0], right, sizeof right);
    Area inside = area_box(area, "outcomes", right, focused);
    if (!comparison || area_is_empty(inside))
        return;
    int row = 1;
    draw_outcome(inside, 0, NULL, INK_DIM);
    for (int i = 0; i < comparison->group_count && row < inside.height; i++, row++)
        draw_outcome(inside, row, &comparison->groups[i],
                     ink_of(comparison, comparison->groups[i].members[0]));
    row += inside.height > 7; // a line apart where there is room
    Area text = area_part(inside, 1, row, inside.width - 2, inside.height - row);
    int most = draw_sentences(comparison, area_to_measure(text.width), 0) - text.height;
    view->scroll = view->scroll < most ? view->scroll : most;
    view->scroll = view->scroll > 0 ? view->scroll : 0;
    draw_sentences(comparison, text, -view->scroll);
    mark_hidden(area, view->scroll, most - view->scroll);
}

// ---- differences --------------------------------------------------------------------------------

static void draw_differences(CompareView *view, Area area, bool focused) {
    enum { NAME = 16 };
    const Comparison *comparison = view->comparison;
    Area inside = area_box(area, "what differs", NULL, focused);
    if (!comparison || area_is_empty(inside))
        return;
    if (comparison->difference_count == 0)
        area_text(inside, 1, 0, style_of(INK_DIM), "nothing but the seed");
    int groups = comparison->group_count;
    int width = (inside.width - NAME - 1) / groups;
    int most = comparison->difference_count - inside.height, *skip = &view->first_difference;
    *skip = *skip < most ? *skip : most;
    *skip = *skip > 0 ? *skip : 0;
    for (int i = *skip; i < comparison->difference_count && i - *skip < inside.height; i++) {
        const CompareDifference *difference = &comparison->differences[i];
        area_outside(inside, 1, i - *skip, NAME - 2, style_of(INK_DIM), difference->name);
        for (int j = 0; j < groups; j++) {
            const char *value = difference->values[j];
            Ink ink = theme_format_ink(value);
            area_outside(inside, NAME + width * j, i - *skip, width - 1,
                         style_of(ink == INK_TEXT ? INK_BRIGHT : ink), value[0] ? value : "–");
        }
    }
}

// ---- the screen ---------------------------------------------------------------------------------

static bool compare_open(Ui *ui, Error *error) {
    CompareView *view = calloc(1, sizeof *view);
    ui->state[SCREEN_COMPARE] = view;
    if (!view)
        return error_fail(error, ERROR_MEMORY, "no memory for the screen");
    view->span = 1;
    view->log_axis = ui->settings.log_axis != 0;
    view->smoothing = 1;
    view->cross = 0.5;
    return true;
}

static void compare_close(Ui *ui) {
    CompareView *view = view_of(ui);
    clear_curves(&view->curves);
    compare_free(view->comparison);
    free(view);
}

static void compare_enter(Ui *ui) {
    CompareView *view = view_of(ui);
    view->from = 0;
    view->span = 1;
    view->scroll = view->first_difference = 0;
    read_comparison(ui);
}

static bool compare_refresh(Ui *ui, double seconds) {
    const double read_every = 1;
    CompareView *view = view_of(ui);
    view->since_read += seconds;
    if (!view->wants_reading && !(is_live(view) && view->since_read >= read_every))
        return false;
    read_comparison(ui);
    return true;
}

static void compare_header(Ui *ui, Area area) {
    const CompareView *view = view_of(ui);
    char text[64];
    snprintf(text, sizeof text, "%d runs%s", view->comparison ? view->comparison->run_count : 0,
             is_live(view) ? ", live" : "");
    area_text_right(area, area.width, 0, style_of(INK_DIM), text);
}

static void compare_draw(Ui *ui, PanelId panel, Area area, bool focused) {
    CompareView *view = view_of(ui);
    if (panel == PANEL_CURVES)
        draw_curves(view, area, focused);
    else if (panel == PANEL_OUTCOMES)
        draw_outcomes(view, area, focused);
    else
        draw_differences(view, area, focused);
}

static void zoom(CompareView *view, double factor) {
    const double least = 1.0 / 256;
    double middle = view->from + view->span * (view->has_cross ? view->cross : 0.5);
    view->span = fmin(fmax(view->span * factor, least), 1);
    view->from = fmin(fmax(middle - view->span / 2, 0), 1 - view->span);
}

static void move(CompareView *view, double by) {
    if (view->has_cross)
        view->cross = fmin(fmax(view->cross + by / 8, 0), 1);
    else
        view->from = fmin(fmax(view->from + by * view->span / 2, 0), 1 - view->span);
}

// Drawing keeps it between the first line and the last.
static void scroll(CompareView *view, PanelId panel, int by) {
    if (panel == PANEL_DIFFERENCES)
        view->first_difference += by;
    else
        view->scroll += by;
}

static bool compare_request(Ui *ui, Request request) {
    CompareView *view = view_of(ui);
    switch (request) {
    case REQUEST_ALONG:
        view->axis = (view->axis + 1) % COMPARE_AXES;
        view->wants_reading = true;
        return true;
    case REQUEST_SMOOTH:
        view->smoothing = (view->smoothing + 1) % SMOOTHINGS;
        make_curves(view);
        return true;
    case REQUEST_LOG_AXIS: view->log_axis = !view->log_axis; return true;
    case REQUEST_CROSS_HAIR: view->has_cross = !view->has_cross; return true;
    case REQUEST_ZOOM_IN: zoom(view, 0.5); return true;
    case REQUEST_ZOOM_OUT: zoom(view, 2); return true;
    case REQUEST_LEFT: move(view, -0.1); return true;
    case REQUEST_RIGHT: move(view, 0.1); return true;
    case REQUEST_UP: scroll(view, ui->focus[SCREEN_COMPARE], -1); return true;
    case REQUEST_DOWN: scroll(view, ui->focus[SCREEN_COMPARE], 1); return true;
    case REQUEST_FIRST: view->from = 0; return true;
    case REQUEST_LAST: view->from = 1 - view->span; return true;
    case REQUEST_COPY:
        if (view->comparison && view->comparison->verdict_count > 0)
            ui_copy(ui, view->comparison->verdicts[0]);
        return true;
    case REQUEST_BACK:
        if (!view->has_cross)
            return false;
        view->has_cross = false;
        return true;
    default: return false;
    }
}

static bool compare_key(Ui *ui, int key) {
    (void)ui, (void)key;
    return false;
}

static void compare_click(Ui *ui, PanelId panel, int column, int row, MouseAction action) {
    CompareView *view = view_of(ui);
    (void)row;
    const Panel *at = layout_find(&ui->layout, panel);
    if (panel != PANEL_CURVES || !at)
        scroll(view, panel, action == MOUSE_WHEEL_DOWN ? 1 : action == MOUSE_WHEEL_UP ? -1 : 0);
    else if (action == MOUSE_WHEEL_UP || action == MOUSE_WHEEL_DOWN)
        zoom(view, action == MOUSE_WHEEL_UP ? 0.5 : 2);
    else {
        int width = at->width - LABELS - 4;
        view->has_cross = true;
        view->cross = fmin(fmax((double)(column - LABELS - 1) / (width > 0 ? width : 1), 0), 1);
    }
}

static const char *compare_label(const Ui *ui, Request request, const char *usual) {
    bool is_own = ui->keymap.bindings[request].where != ON_ALL;
    return view_of(ui)->comparison || !is_own ? usual : NULL;
}

static const char *compare_explain(PanelId panel) {
    switch (panel) {
    case PANEL_CURVES:
        return "The loss of every run on shared axes; b takes steps, epochs, seconds or samples "
               "along the foot. By steps the curves tell whether a format learns as well, by "
               "seconds which one gets there first.";
    case PANEL_OUTCOMES:
        return "What came of the runs, beside the first one, the baseline (the one in fp32, where "
               "there is one); runs that differ in their seed alone are one line, with ± for 95 in "
               "100 cases. The loss is the mean over the last tenth of what all of them did. The "
               "sentence below says what can be told from them, and what not.";
    default:
        return "What is not the same in all of them: parameters, options, the precision of layers. "
               "All that is not here is alike.";
    }
}

const Screen screen_compare = {
    .name = "compare",
    .on = ON_COMPARE,
    .open = compare_open,
    .close = compare_close,
    .enter = compare_enter,
    .refresh = compare_refresh,
    .draw_header = compare_header,
    .draw_panel = compare_draw,
    .request = compare_request,
    .key = compare_key,
    .click = compare_click,
    .explain = compare_explain,
    .label = compare_label,
};
