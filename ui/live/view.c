// Keys and clicks that move what the live screen looks at.
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "ui/live/live.h"

static int64_t clamp_step(int64_t step, int64_t least, int64_t most) {
    return step < least ? least : step > most ? most : step;
}

static void moved(Ui *ui, Live *live) {
    live->moved = true;
    ui->look_now = ui->dirty = true;
}

// ---- steps --------------------------------------------------------------------------------------

// Steps that one dot of the curve stands for.
static int64_t step_of_dot(const Live *live) {
    enum { DOTS = 100 };
    int64_t stride = (live->data.right - live->data.left + 1) / DOTS;
    return stride > 1 ? stride : 1;
}

static int64_t span_of(const Live *live) {
    return live->data.right - live->data.left + 1;
}

// The window goes with the cursor where that would leave it.
static void show_step(Live *live, int64_t step) {
    LiveView *view = &live->view;
    if (view->span <= 0)
        return;
    if (step < live->data.left)
        view->window_end = step + view->span - 1;
    else if (step > live->data.right)
        view->window_end = step;
}

void live_put_cursor(Ui *ui, Live *live, int64_t step) {
    const LiveData *data = &live->data;
    if (step == LIVE_FOLLOWS || step >= data->last) {
        live->view.cursor = LIVE_FOLLOWS;
        live->view.window_end = LIVE_FOLLOWS;
    } else {
        live->view.cursor = clamp_step(step, data->first, data->last);
        show_step(live, live->view.cursor);
    }
    live->view.event_top = 0;
    moved(ui, live);
}

// By hand: a replay ends there.
void live_go_to_step(Ui *ui, Live *live, int64_t step) {
    live->replay.is_on = false;
    live->axis.is_known = false;
    live_put_cursor(ui, live, step);
}

static int64_t cursor_of(const Live *live) {
    return live->view.cursor == LIVE_FOLLOWS ? live->data.last : live->view.cursor;
}

static void scrub(Ui *ui, Live *live, int by) {
    live_go_to_step(ui, live, cursor_of(live) + by * step_of_dot(live));
}

void live_scrub_tenth(Ui *ui, Live *live, int by) {
    int64_t tenth = (live->data.last - live->data.first + 1) / 10;
    live_go_to_step(ui, live, cursor_of(live) + by * (tenth > 1 ? tenth : 1));
}

// Around the cross-hair, else the cursor, else the end.
static void zoom(Ui *ui, Live *live, bool in) {
    enum { LEAST = 8 };
    LiveView *view = &live->view;
    int64_t whole = live->data.last - live->data.first + 1, span = span_of(live);
    int64_t around = view->has_cross ? view->cross : cursor_of(live);
    around = clamp_step(around, live->data.left, live->data.right);
    int64_t wanted = in ? span / 2 : span * 2;
    wanted = wanted < LEAST ? LEAST : wanted;
    if (wanted >= whole) {
        view->span = 0;
        view->window_end = LIVE_FOLLOWS;
    } else {
        double share = span > 1 ? (double)(live->data.right - around) / (double)span : 0;
        view->span = wanted;
        view->window_end = around + llround(share * (double)wanted);
        if (view->window_end >= live->data.last)
            view->window_end = LIVE_FOLLOWS;
    }
    moved(ui, live);
}

static void pan(Ui *ui, Live *live, int by) {
    enum { SHARE = 8 };
    LiveView *view = &live->view;
    if (view->span <= 0)
        return;
    int64_t stride = view->span / SHARE > 1 ? view->span / SHARE : 1;
    int64_t end = live->data.right + by * stride;
    int64_t least = live->data.first + view->span - 1;
    view->window_end = end >= live->data.last ? LIVE_FOLLOWS : end < least ? least : end;
    moved(ui, live);
}

static void put_cross(Ui *ui, Live *live, int64_t step) {
    live->view.has_cross = true;
    live->view.cross = clamp_step(step, live->data.left, live->data.right);
    moved(ui, live);
}

// ---- the other panels ---------------------------------------------------------------------------

void live_select_layer(Ui *ui, Live *live, int layer) {
    int count = live_layers_shown(&live->data.record);
    layer = layer >= count ? count - 1 : layer;
    live->view.layer = layer < 0 ? 0 : layer;
    live->view.layer_is_chosen = true;
    live->view.hypothesis = 0;
    moved(ui, live);
}

static void scroll_events(Ui *ui, Live *live, int by) {
    int most = live->data.row_count - 1, top = live->view.event_top + by;
    top = top > most ? most : top;
    live->view.event_top = top < 0 ? 0 : top;
    ui->dirty = true;
}

static void suppose(Ui *ui, Live *live, int by) {
    int n = live->view.hypothesis + by;
    if (n >= -LIVE_MOST_HYPOTHESIS && n <= LIVE_MOST_HYPOTHESIS)
        live->view.hypothesis = n;
    ui->dirty = true;
}

static void smooth_more(Ui *ui, Live *live) {
    static const double weights[] = {0, 0.6, 0.9, 0.97};
    enum { WEIGHTS = sizeof weights / sizeof *weights };
    int next = 0;
    while (next < WEIGHTS && weights[next] <= live->view.smoothing + 1e-9)
        next++;
    live->view.smoothing = weights[next % WEIGHTS];
    moved(ui, live);
}

// The loss is the first; the scale has a panel of its own.
static void next_series(Ui *ui, Live *live) {
    const LiveData *data = &live->data;
    int count = data->series_count, at = 0;
    for (int i = 0; i < count; i++)
        if (strcmp(data->series[i].name, data->shown) == 0)
            at = i;
    for (int i = 1; i <= count; i++) {
        const char *name = data->series[(at + i) % count].name;
        if (strcmp(name, "scale") == 0)
            continue;
        memcpy(live->view.series, name, sizeof live->view.series);
        break;
    }
    moved(ui, live);
}

static void next_picture(Ui *ui, Live *live) {
    PanelId focus = ui->focus[SCREEN_LIVE];
    if (focus == PANEL_LOSS) {
        next_series(ui, live);
    } else if (focus == PANEL_HISTOGRAM) {
        live->view.heat = !live->view.heat;
        moved(ui, live);
    } else {
        ui_say(ui, INK_DIM, "v changes the panel of the loss or of the exponents: tab goes there");
    }
}

static int page_of(const Ui *ui) {
    const Panel *panel = layout_find(&ui->layout, ui->focus[SCREEN_LIVE]);
    return panel && panel->height > 4 ? panel->height - 4 : 1;
}

static void go_lines(Ui *ui, Live *live, int by) {
    if (ui->focus[SCREEN_LIVE] == PANEL_EVENTS)
        scroll_events(ui, live, by);
    else
        live_select_layer(ui, live, live->view.layer + by);
}

static void go_sideways(Ui *ui, Live *live, int by) {
    if (ui->focus[SCREEN_LIVE] == PANEL_HISTOGRAM && !live->view.heat)
        suppose(ui, live, by);
    else if (live->view.has_cross)
        put_cross(ui, live, live->view.cross + by * step_of_dot(live));
    else if (live->view.span > 0)
        pan(ui, live, by);
    else
        scrub(ui, live, by);
}

static void toggle_cross(Ui *ui, Live *live) {
    if (!live->view.has_cross) {
        put_cross(ui, live, clamp_step(cursor_of(live), live->data.left, live->data.right));
        return;
    }
    live->view.has_cross = false;
    moved(ui, live);
}

// The cross-hair first, then the past, whether a hand or a replay led there; false: it is at
// neither.
static bool step_back(Ui *ui, Live *live) {
    if (live->view.has_cross)
        toggle_cross(ui, live);
    else if (live->view.cursor != LIVE_FOLLOWS)
        live_go_to_step(ui, live, LIVE_FOLLOWS);
    else
        return false;
    return true;
}

static void freeze(Ui *ui, Live *live) {
    live->view.frozen = !live->view.frozen;
    if (!live->view.frozen)
        moved(ui, live);
    ui->dirty = true;
}

// To the step of the row on top; who is there already reads all of it.
static void go_to_event(Ui *ui, Live *live) {
    const LiveRow *row = live_row(live, live->view.event_top);
    if (!row)
        return;
    const Event *event = &live->data.events[row->last];
    int64_t id = event->id, step = clamp_step(event->step, live->data.first, live->data.last);
    if (step == live->data.step) {
        live_show_row(ui, live, row);
        return;
    }
    live_go_to_step(ui, live, step);
    live->view.event_wanted = id;
}

int64_t live_scrubbed_step(const Ui *ui) {
    const Live *live = ui->state[SCREEN_LIVE];
    bool is_back = ui->screen == SCREEN_LIVE && live->view.cursor != LIVE_FOLLOWS;
    return is_back ? live->data.step : 0;
}

// The event on top, or the selected layer, as a line.
static void copy_line(Ui *ui, const Live *live) {
    char name[RECORD_NAME_SIZE * 2], line[EVENT_TEXT_SIZE * 2 + 32] = "";
    const LiveRow *row = live_row(live, live->view.event_top);
    int layer = live->view.layer;
    if (ui->focus[SCREEN_LIVE] == PANEL_EVENTS && row) {
        char text[EVENT_TEXT_SIZE * 2];
        live_say_row(live, row, false, text, sizeof text);
        snprintf(line, sizeof line, "step %lld: %s", (long long)live->data.events[row->last].step,
                 text);
    } else if (layer < live->data.layer_count) {
        live_clean(name, sizeof name, live->data.record.layers[layer].name);
        Format format = live_own_format(live, layer);
        WhatIfShares shares = live_shares(live, layer);
        snprintf(line, sizeof line,
                 "%s in %s: %s zero, %s flushed, %s subnormal, %s over at scale %s, step %lld",
                 name, format == FORMAT_COUNT ? "?" : format_name(format),
                 word_share(shares.zero).text, word_share(shares.flushed).text,
                 word_share(shares.subnormal).text, word_share(shares.broken).text,
                 word_scale(live->data.used_scale).text, (long long)live->data.step);
    }
    if (!line[0])
        return;
    terminal_copy(line);
    ui_say(ui, INK_TEXT, "copied: %s", line);
}

bool live_move(Ui *ui, Live *live, Request request) {
    switch (request) {
    case REQUEST_UP: go_lines(ui, live, -1); break;
    case REQUEST_DOWN: go_lines(ui, live, 1); break;
    case REQUEST_PAGE_UP: go_lines(ui, live, -page_of(ui)); break;
    case REQUEST_PAGE_DOWN: go_lines(ui, live, page_of(ui)); break;
    case REQUEST_LEFT: go_sideways(ui, live, -1); break;
    case REQUEST_RIGHT: go_sideways(ui, live, 1); break;
    case REQUEST_FIRST: live_go_to_step(ui, live, live->data.first); break;
    case REQUEST_LAST: live_go_to_step(ui, live, live->data.last); break;
    case REQUEST_SCRUB_BACK: scrub(ui, live, -1); break;
    case REQUEST_SCRUB_FORWARD: scrub(ui, live, 1); break;
    case REQUEST_ZOOM_IN: zoom(ui, live, true); break;
    case REQUEST_ZOOM_OUT: zoom(ui, live, false); break;
    case REQUEST_CROSS_HAIR: toggle_cross(ui, live); break;
    case REQUEST_SMOOTH: smooth_more(ui, live); break;
    case REQUEST_LOG_AXIS:
        live->view.log_axis = !live->view.log_axis;
        ui->dirty = true;
        break;
    case REQUEST_SERIES: next_picture(ui, live); break;
    case REQUEST_HYPOTHESIS_DOWN: suppose(ui, live, -1); break;
    case REQUEST_HYPOTHESIS_UP: suppose(ui, live, 1); break;
    case REQUEST_COPY: copy_line(ui, live); break;
    case REQUEST_ENTER:
        if (ui->focus[SCREEN_LIVE] != PANEL_EVENTS)
            return false;
        go_to_event(ui, live);
        break;
    case REQUEST_FREEZE: freeze(ui, live); break;
    case REQUEST_BACK: return step_back(ui, live);
    default: return false;
    }
    return true;
}

// ---- the mouse ----------------------------------------------------------------------------------

static void click_curve(Ui *ui, Live *live, const Panel *panel, int column, MouseAction action) {
    int64_t step = live_step_under(live, panel->width, column);
    if (action == MOUSE_WHEEL_UP || action == MOUSE_WHEEL_DOWN)
        zoom(ui, live, action == MOUSE_WHEEL_UP);
    else if (step >= 0)
        put_cross(ui, live, step);
}

void live_click(Ui *ui, PanelId id, int column, int row, MouseAction action) {
    Live *live = ui->state[SCREEN_LIVE];
    const Panel *panel = layout_find(&ui->layout, id);
    bool is_wheel = action == MOUSE_WHEEL_UP || action == MOUSE_WHEEL_DOWN;
    int by = action == MOUSE_WHEEL_UP ? -1 : 1, layer;
    if (!panel)
        return;
    switch (id) {
    case PANEL_LOSS:
    case PANEL_SCALE: click_curve(ui, live, panel, column, action); break;
    case PANEL_LAYERS:
        layer = live_layer_under(live, panel->width, panel->height, row);
        if (is_wheel)
            live_select_layer(ui, live, live->view.layer + by);
        else if (layer >= 0)
            live_select_layer(ui, live, layer);
        break;
    case PANEL_HEAT:
        if (is_wheel)
            zoom(ui, live, by < 0);
        break;
    case PANEL_HISTOGRAM:
        if (is_wheel)
            suppose(ui, live, -by);
        break;
    case PANEL_MAP: live_map_click(ui, live, panel, column, row, action); break;
    case PANEL_EVENTS:
        if (is_wheel)
            scroll_events(ui, live, by);
        break;
    default: break;
    }
}
