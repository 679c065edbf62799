// The compare screen: what it reads, and its keys.
#include "ui/compare/compare.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "store/runs.h"

static CompareView *view_of(const Ui *ui) {
    return ui->state[SCREEN_COMPARE];
}

// ---- reading ------------------------------------------------------------------------------------

// The others are still to be compared. False: there is none.
static bool drop_removed(Ui *ui) {
    CompareView *view = view_of(ui);
    int kept = 0;
    for (int i = 0; i < view->taken_count; i++) {
        RunRecord record;
        Error error;
        bool is_there = store_read_run(ui->store, view->taken[i], &record, &error);
        record_clear(&record);
        if (is_there || error.code != ERROR_USAGE)
            view->taken[kept++] = view->taken[i];
    }
    bool dropped = kept < view->taken_count;
    view->removed += view->taken_count - kept;
    view->taken_count = ui->run_count = kept;
    memcpy(ui->runs, view->taken, (size_t)kept * sizeof *ui->runs);
    return dropped;
}

static Comparison *compare_taken(Ui *ui, const CompareOptions *options, Error *error) {
    const CompareView *view = view_of(ui);
    int64_t runs[COMPARE_MOST_CURVES];
    compare_order_runs(view, runs);
    return view->taken_count < 2 ? NULL
                                 : compare_new(ui->store, runs, view->taken_count, options, error);
}

static void read_comparison(Ui *ui) {
    CompareView *view = view_of(ui);
    CompareOptions options = {.axis = view->axis,
                              .grams_per_kwh =
                                  ui->settings.co2 > 0 ? ui->settings.co2 : (double)NAN,
                              .prefers_fp32 = view->baseline == 0,
                              .takes_any_series = true,
                              .target = view->target.name[0] ? view->target.name : NULL,
                              .target_value = view->target.value,
                              .toward = view->target.toward,
                              .series = view->series[0] ? view->series : NULL};
    Error error = {.code = ERROR_NONE};
    compare_free(view->comparison);
    view->comparison = NULL;
    view->problem[0] = 0;
    view->comparison = compare_taken(ui, &options, &error);
    if (!view->comparison && error.code == ERROR_USAGE && drop_removed(ui))
        view->comparison = compare_taken(ui, &options, &error);
    if (!view->comparison)
        snprintf(view->problem, sizeof view->problem, "%s",
                 view->taken_count >= 2
                     ? error.text
                     : "Choose two runs or more on the home screen with space, then "
                       "press c.");
    const int last = view->comparison ? view->comparison->group_count - 1 : 0;
    view->cursor = view->cursor < last ? view->cursor : last;
    compare_make_curves(view);
    compare_overlay_renew(view, false);
    view->wants_reading = false;
    view->since_read = 0;
}

bool compare_is_live(const CompareView *view) {
    if (!view->comparison)
        return false;
    for (int i = 0; i < view->comparison->run_count; i++) {
        RunStatus status = view->comparison->runs[i].status;
        if (run_status_goes_on(status))
            return true;
    }
    return false;
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
    return compare_overlay_open(view, error);
}

static void compare_close(Ui *ui) {
    CompareView *view = view_of(ui);
    compare_overlay_close(view);
    compare_clear_curves(&view->curves);
    compare_free(view->comparison);
    free(view);
}

static void compare_enter(Ui *ui) {
    compare_take_runs(view_of(ui), ui->runs, ui->run_count);
    read_comparison(ui);
}

static bool compare_refresh(Ui *ui, double seconds) {
    const double read_every = 1;
    CompareView *view = view_of(ui);
    view->since_read += seconds;
    if (!view->wants_reading && !(compare_is_live(view) && view->since_read >= read_every))
        return compare_look_overlay(ui, view);
    read_comparison(ui);
    compare_look_overlay(ui, view);
    return true;
}

static void compare_header(Ui *ui, Area area) {
    const CompareView *view = view_of(ui);
    char text[80], removed[32] = "";
    if (view->removed > 0)
        snprintf(removed, sizeof removed, ", %d removed", view->removed);
    snprintf(text, sizeof text, "%d runs%s%s", view->comparison ? view->comparison->run_count : 0,
             compare_is_live(view) ? ", live" : "", removed);
    area_text_right(area, area.width, 0, style_of(INK_DIM), text);
}

static void compare_draw(Ui *ui, PanelId panel, Area area, bool focused) {
    CompareView *view = view_of(ui);
    if (compare_draw_page(view, panel, area, focused))
        return;
    if (panel == PANEL_CURVES)
        compare_draw_curves(view, area, focused);
    else if (panel == PANEL_OUTCOMES)
        compare_draw_outcomes(view, area, focused);
    else
        compare_draw_differences(view, area, focused);
}

static void zoom(CompareView *view, double factor) {
    const double least = 1.0 / 256;
    double middle = view->from + view->span * (view->has_cross ? view->cross : 0.5);
    view->span = fmin(fmax(view->span * factor, least), 1);
    view->from = fmin(fmax(middle - view->span / 2, 0), 1 - view->span);
    compare_make_curves(view);
}

static void move_window(CompareView *view, double from) {
    view->from = fmin(fmax(from, 0), 1 - view->span);
    compare_make_curves(view);
}

static void move(CompareView *view, double by) {
    if (view->has_cross)
        view->cross = fmin(fmax(view->cross + by / 8, 0), 1);
    else
        move_window(view, view->from + by * view->span / 2);
}

// Those that all runs log come first.
static void turn_series(CompareView *view, int by) {
    const Comparison *comparison = view->comparison;
    int at = 0, count = comparison ? comparison->all_series_count : 0;
    while (at < count && strcmp(comparison->all_series[at], comparison->series) != 0)
        at++;
    if (count > 0)
        memcpy(view->series, comparison->all_series[(at + by + count) % count],
               sizeof view->series);
    view->wants_reading = true;
}

// Drawing keeps it between the first line and the last.
static void move_line(CompareView *view, PanelId panel, int by) {
    if (panel == PANEL_DIFFERENCES)
        view->first_difference += by;
    else
        compare_move_cursor(view, by);
}

static void copy_verdict(Ui *ui, const CompareView *view) {
    const Comparison *comparison = view->comparison;
    if (comparison && comparison->verdict_count > 0) // none is of the baseline
        ui_copy(ui, comparison->verdicts[view->cursor > 0 ? view->cursor - 1 : 0]);
}

static bool compare_request(Ui *ui, Request request) {
    CompareView *view = view_of(ui);
    if (compare_page_request(ui, view, request))
        return true;
    switch (request) {
    case REQUEST_ALONG:
        view->axis = (view->axis + 1) % COMPARE_AXES;
        view->wants_reading = true;
        return true;
    case REQUEST_SERIES: turn_series(view, 1); return true;
    case REQUEST_SERIES_BACK: turn_series(view, -1); return true;
    case REQUEST_HIDE:
        if (view->comparison)
            compare_turn_hidden(view);
        return true;
    case REQUEST_BASELINE:
        if (view->comparison && view->cursor > 0)
            compare_pick_baseline(view);
        return true;
    case REQUEST_TARGET:
        if (view->comparison)
            compare_ask_target(ui);
        return true;
    case REQUEST_SEEDS:
        view->each_seed = !view->each_seed;
        compare_make_curves(view);
        return true;
    case REQUEST_DIFFERENCE:
        view->shows_difference = !view->shows_difference;
        compare_make_curves(view);
        return true;
    case REQUEST_SMOOTH:
        view->smoothing = (view->smoothing + 1) % COMPARE_SMOOTHINGS;
        compare_make_curves(view);
        return true;
    case REQUEST_LOG_AXIS: view->log_axis = !view->log_axis; return true;
    case REQUEST_CROSS_HAIR: view->has_cross = !view->has_cross; return true;
    case REQUEST_ZOOM_IN: zoom(view, 0.5); return true;
    case REQUEST_ZOOM_OUT: zoom(view, 2); return true;
    case REQUEST_LEFT: move(view, -0.1); return true;
    case REQUEST_RIGHT: move(view, 0.1); return true;
    case REQUEST_UP: move_line(view, ui->focus[SCREEN_COMPARE], -1); return true;
    case REQUEST_DOWN: move_line(view, ui->focus[SCREEN_COMPARE], 1); return true;
    case REQUEST_FIRST: move_window(view, 0); return true;
    case REQUEST_LAST: move_window(view, 1); return true;
    case REQUEST_COPY: copy_verdict(ui, view); return true;
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
    const Panel *at = layout_find(&ui->layout, panel);
    const bool turns = action == MOUSE_WHEEL_UP || action == MOUSE_WHEEL_DOWN;
    if (panel == PANEL_OUTCOMES && !turns)
        compare_click_group(view, row);
    else if (panel != PANEL_CURVES || !at)
        move_line(view, panel, action == MOUSE_WHEEL_DOWN ? 1 : action == MOUSE_WHEEL_UP ? -1 : 0);
    else if (turns)
        zoom(view, action == MOUSE_WHEEL_UP ? 0.5 : 2);
    else
        compare_put_cross(view, at->width, column);
}

static bool has_seeds(const Comparison *comparison) {
    return comparison->group_count < comparison->run_count;
}

static const char *compare_label(const Ui *ui, Request request, const char *usual) {
    bool is_own = ui->keymap.bindings[request].where != ON_ALL;
    const CompareView *view = view_of(ui);
    bool can = view->comparison || !is_own;
    if (!can || request == REQUEST_SETTINGS) // home offers those
        return NULL;
    const char *label = usual;
    if (compare_page_label(ui, view, request, &label))
        return label;
    if (request == REQUEST_HIDE)
        return compare_is_group_hidden(view, view->cursor) ? "show" : usual;
    if (request == REQUEST_DIFFERENCE && view->shows_difference)
        return "curves";
    if (request == REQUEST_SEEDS)
        return !has_seeds(view->comparison) || view->shows_difference ? NULL
               : view->each_seed                                      ? "means"
                                                                      : usual;
    return request == REQUEST_BASELINE && view->cursor == 0 ? NULL : usual;
}

static const char *compare_explain(PanelId panel) {
    switch (panel) {
    case PANEL_CURVES:
        return "The loss of every run on shared axes, in the colour of its format; v takes the "
               "next "
               "series that they log, V the one before, b steps, epochs, seconds or samples along "
               "the foot; space hides and shows the runs under the cursor of the outcomes. Runs "
               "that "
               "differ in their seed alone are one curve, their mean, as far as all n of them "
               "came, "
               "in a band that holds the true one in 95 of 100 cases; s shows each of them. d "
               "draws "
               "what each is apart from the baseline: where a band leaves 0 out the seeds tell the "
               "two apart there, though 1 place in 20 does so by chance; without several seeds "
               "there is no band, and chance cannot be told. "
               "By steps the curves tell whether a format learns as well, by "
               "seconds which one gets there first.";
    case PANEL_OUTCOMES:
        return "What came of the runs, beside the first one, the baseline: the one in fp32, where "
               "there is one, or that under the cursor when B picked it; runs that differ in their "
               "seed alone are one line, with ± for 95 in "
               "100 cases, and a speed's interval is in the sentence below. The loss is the mean "
               "over the last tenth of what all of them did. The "
               "sentence below says what can be told from them, and what not; t asks for a target, "
               "and says first after how many steps and seconds each came to it.";
    case PANEL_MEMORY:
        return "What the runs held in memory at most, all of it and by purpose, the largest first, "
               "in "
               "bars on one scale, and as a share of what the baseline held. A low format halves "
               "what it is kept in, which need not be all: masters of the weights stay in fp32, "
               "and "
               "what only saves activations does little where weights are most of it.";
    case PANEL_OVERLAY:
        return "How large the gradients of one layer are, by powers of two, in the baseline and in "
               "the run under the cursor, as shares of what each has: one line is whole, one "
               "dotted. Below, what each one's format does at its scale: · is flushed to zero, "
               "─ subnormal, ━ normal, × overflows. Where the lines lie upon each other "
               "the format changes nothing there; where the dotted one ends at · something was "
               "lost. v takes another run.";
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
