// The curves of the live screen: a series with its smoothed line, and the loss scale with the steps
// that were skipped.
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/rune.h"
#include "ui/cells/glyphs.h"
#include "ui/live/live.h"

// Steps along the foot; in a low panel `words` stand between them, where there is room.
static Area label_foot(const Live *live, Area inside, int left, const char *words) {
    enum { LEAST_ROWS = 4, LEAST_COLUMNS = 16, WIDE = 40 };
    if (inside.height < LEAST_ROWS || inside.width - left < LEAST_COLUMNS)
        return inside;
    Area foot = area_part(inside, left, inside.height - 1, inside.width - left, 1);
    Style style = style_of(INK_DIM);
    int64_t first = live->data.left, last = live->data.right;
    Word from = word_count(first), middle = word_count(first + (last - first) / 2);
    Word to = word_count(last);
    int to_at = foot.width - text_width(to.text), words_width = text_width(words);
    int at = area_print(foot, 0, 0, style, "%s%s", foot.width < WIDE ? "" : "step ", from.text);
    const char *between = words_width > 0 ? words : middle.text;
    int between_at = foot.width / 2 - text_width(between) / 2;
    if (words_width > 0 && (between_at <= at || between_at + words_width >= to_at)) {
        area_fill(foot, style); // the first step gives way
        at = 0;
        between_at = to_at - words_width - 1;
    }
    if (between_at > at && between_at + text_width(between) < to_at)
        area_text(foot, between_at, 0, style, between);
    area_text_right(foot, foot.width, 0, style, to.text);
    return area_part(inside, 0, 0, inside.width, inside.height - 1);
}

Area live_label_steps(const Live *live, Area inside, int left) {
    return label_foot(live, inside, left, "");
}

static Area curve_area(Area inside) {
    return area_part(inside, LIVE_LABEL_COLUMNS, 0, inside.width - LIVE_LABEL_COLUMNS,
                     inside.height);
}

// How many points lie at or before the step.
static int count_up_to(const PlotPoint *points, int count, int64_t step) {
    int low = 0, high = count;
    while (low < high) {
        int middle = low + (high - low) / 2;
        if (points[middle].x <= (double)step)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

// The last point at or before the step; NULL: none.
static const PlotPoint *point_at(const PlotPoint *points, int count, int64_t step) {
    int before = count_up_to(points, count, step);
    return before > 0 ? &points[before - 1] : NULL;
}

// What was logged at the step, else the last before it.
static Word value_at(const LiveLine *line, int64_t step) {
    if (line->has_value)
        return word_number(line->value);
    const PlotPoint *point = point_at(line->raw, line->count, step);
    return point && point->bad && isnan(point->mean) ? word_number(NAN)
                                                     : word_reading(point ? point->mean : NAN);
}

static void draw_upright(Area area, int column, Ink ink) {
    for (int row = 0; row < area.height && column >= 0; row++)
        area_put(area, column, row, style_of(ink), GLYPH_VERTICAL);
}

// The cursor where it does not follow, and the cross-hair.
static void draw_cursors(const Live *live, Area plot, const PlotAxes *axes) {
    if (live->view.cursor != LIVE_FOLLOWS)
        draw_upright(plot, plot_column_of(axes, plot.width, (double)live->data.step), INK_DIM);
    if (live->view.has_cross)
        draw_upright(plot, plot_column_of(axes, plot.width, (double)live->view.cross), INK_ACCENT);
}

static void say_nothing(const Live *live, Area inside) {
    const char *why = !live->data.is_known               ? live_say_no_run(live)
                      : live_is_over(&live->data.record) ? "nothing was logged here"
                                                         : "the first steps are on their way";
    area_wrap(area_part(inside, 1, inside.height / 2, inside.width - 2, inside.height), 0,
              style_of(INK_DIM), why);
}

int64_t live_step_under(const Live *live, int width, int column) {
    int plot = width - 2 - LIVE_LABEL_COLUMNS, at = column - 1 - LIVE_LABEL_COLUMNS;
    if (plot <= 0 || at < 0 || at >= plot || !live->data.is_known)
        return -1;
    PlotAxes axes = {.left = (double)live->data.left, .right = (double)live->data.right};
    return llround(plot_x_of(&axes, plot, at));
}

// ---- the chosen series --------------------------------------------------------------------------

static Ink ghost_ink(const LiveData *data) {
    Ink ink = live_ink(data->ghost.precision);
    return ink == live_ink(data->record.precision) ? INK_TEXT : ink;
}

static int draw_legend_row(Area plot, int row, const char *mark, Ink ink, int64_t id,
                           const char *precision, Word value) {
    enum { VALUE_COLUMNS = 10 };
    char text[80];
    int length = snprintf(text, sizeof text, "#%lld %.24s", (long long)id, precision);
    int column = plot.width - 4 - length - 1 - VALUE_COLUMNS;
    if (column < plot.width / 4 || row >= plot.height)
        return row;
    column = area_text(plot, column, row, style_of(ink), mark);
    column = area_text(plot, column, row, style_of(ink), text);
    area_print(plot, column, row, style_of(INK_BRIGHT), " %*s", VALUE_COLUMNS, value.text);
    return row + 1;
}

static void draw_legend(const Live *live, Area plot) {
    const LiveData *data = &live->data;
    char precision[32];
    int64_t step = live->view.has_cross ? live->view.cross : data->step;
    live_clean(precision, sizeof precision, data->record.precision);
    int row = draw_legend_row(plot, 0, " ━ ", live_ink(precision), data->record.id, precision,
                              value_at(&data->line, step));
    if (data->ghost.is_there && data->ghost_line.count > 0)
        draw_legend_row(plot, row, " · ", ghost_ink(data), data->ghost.id, data->ghost.precision,
                        value_at(&data->ghost_line, step));
}

// Where there is little room a fork's beginning is told rather than how the curve is drawn.
static void describe_loss(const Live *live, const PlotAxes *axes, bool brief, char *right,
                          size_t size) {
    const LiveView *view = &live->view;
    size_t used = 0;
    const RunRecord *run = &live->data.record;
    right[0] = 0;
    if (run->parent > 0)
        used += (size_t)snprintf(right, size, "from #%lld at %s · ", (long long)run->parent,
                                 word_count(run->parent_step).text);
    if (view->has_cross)
        used += (size_t)snprintf(right + used, size - used, "at step %s · ",
                                 word_count(view->cross).text);
    else if (view->span > 0)
        used +=
            (size_t)snprintf(right + used, size - used, "%s to %s · ",
                             word_count(live->data.left).text, word_count(live->data.right).text);
    if (view->smoothing > 0 && !(brief && run->parent > 0))
        used += (size_t)snprintf(right + used, size - used, "smooth %g · ", view->smoothing);
    snprintf(right + used, size - used, axes->log_y ? "log" : "linear");
}

void live_draw_loss(const Live *live, Area area, bool focused) {
    const LiveData *data = &live->data;
    char title[SERIES_NAME_SIZE * 2], right[120];
    live_clean(title, sizeof title, data->shown[0] ? data->shown : "loss");
    Ink ink = live_ink(data->record.precision);
    bool follows = live->view.cursor == LIVE_FOLLOWS;
    const LiveLine *line = &data->line;
    int past = follows ? 0 : count_up_to(line->smooth, line->count, data->step);
    PlotLine lines[] = {
        {.points = data->ghost_line.smooth,
         .count = data->ghost_line.count,
         .ink = ghost_ink(data),
         .dotted = true},
        {.points = line->smooth,
         .count = line->count,
         .ink = follows ? ink : INK_DIM, // what comes after the cursor stays dim
         .spans = true},
        {.points = line->smooth, .count = past, .ink = ink},
    };
    enum { LINES = sizeof lines / sizeof *lines, WIDE = 48 };
    PlotAxes axes =
        plot_fit(lines, LINES, (double)data->left, (double)data->right, live->view.log_axis);
    describe_loss(live, &axes, area.width < WIDE, right, sizeof right);
    Area inside = area_box(area, title, right, focused);
    if (data->line.count == 0) {
        say_nothing(live, inside);
        return;
    }
    inside = live_label_steps(live, inside, LIVE_LABEL_COLUMNS);
    Area plot = curve_area(inside);
    plot_label_y(area_part(inside, 0, 0, LIVE_LABEL_COLUMNS - 1, inside.height), &axes, false);
    draw_cursors(live, plot, &axes);
    plot_draw(plot, &axes, lines, LINES);
    draw_legend(live, plot);
}

// ---- the loss scale -----------------------------------------------------------------------------

static bool changes_scale(const Event *event) {
    return event->kind == EVENT_SKIP || event->kind == EVENT_SCALE;
}

// The rule counts clean steps from the last change on, or from the start. How many it waits for the
// worker noted; of older runs it is known once the scale has grown: so many lay between that and
// the change before.
int64_t live_next_growth(const Live *live) {
    const LiveData *data = &live->data;
    double noted = record_fact_number(&data->record, "scaler.interval");
    bool is_whole = data->events_are_all && data->record.parent == 0;
    const Event *before = NULL;
    int64_t interval = 0;
    for (int i = 0; i < data->event_count; i++) {
        const Event *event = &data->events[i];
        if (!changes_scale(event))
            continue;
        if (event->kind == EVENT_SCALE && before && event->value > before->value)
            interval = event->step - before->step;
        else if (event->kind == EVENT_SCALE && !before && is_whole)
            interval = event->step; // counted from the start
        before = event;
    }
    if (noted >= 1 && noted < 1e15)
        interval = (int64_t)noted;
    if (interval <= 0 || live_is_over(&data->record) || (!before && !is_whole) ||
        data->scale >= record_fact_number(&data->record, "scaler.ceiling"))
        return -1;
    int64_t left = (before ? before->step : 0) + interval - data->step;
    return left > 0 ? left : -1;
}

// The scale of a skip in the window, which the curve of what came of it does not reach; NaN: it is
// none, or does not say.
static double overflowed_at(const LiveData *data, const Event *event) {
    bool is_shown =
        event->kind == EVENT_SKIP && event->step >= data->left && event->step <= data->right;
    double scale = is_shown ? live_skipped_at(event) : NAN;
    return scale > 0 ? scale : NAN;
}

// Axes at whole powers of two with half of one around.
static PlotAxes scale_axes(const LiveData *data) {
    PlotLine line = {
        .points = data->scale_line.raw, .count = data->scale_line.count, .steps = true};
    PlotAxes axes = plot_fit(&line, 1, (double)data->left, (double)data->right, false);
    double least = INFINITY, most = -INFINITY;
    for (int i = 0; i < line.count; i++) {
        const PlotPoint *point = &line.points[i];
        if (!isfinite(point->low) || point->low <= 0)
            continue;
        least = fmin(least, point->low);
        most = fmax(most, point->high);
    }
    for (int i = 0; i < data->event_count && least <= most; i++) {
        double scale = overflowed_at(data, &data->events[i]);
        least = fmin(least, scale);
        most = fmax(most, scale);
    }
    if (least > most)
        return axes;
    axes.log_y = true;
    axes.bottom = exp2(floor(log2(least)) - 1.5);
    axes.top = exp2(ceil(log2(most)) + 0.5);
    return axes;
}

static void label_scale(Area area, const PlotAxes *axes) {
    if (!axes->log_y) {
        plot_label_y(area, axes, false);
        return;
    }
    double low = log2(axes->bottom), high = log2(axes->top);
    int rows = area.height > 1 ? area.height - 1 : 1;
    int stride = (int)ceil((high - low) / rows); // the same from each label to the next
    for (int power = (int)floor(high); power >= (int)ceil(low); power -= stride) {
        int row = plot_row_of(axes, area.height, exp2(power));
        char text[16];
        snprintf(text, sizeof text, "2^%d", power);
        area_text_right(area, area.width, row, style_of(INK_DIM), text);
    }
}

// Where the next skip after event i lies, in the same column perhaps; the row's end without one.
static int next_skip(const LiveData *data, int i, int column, int width, const PlotAxes *axes) {
    for (i++; i < data->event_count; i++) {
        int next = data->events[i].kind == EVENT_SKIP
                       ? plot_column_of(axes, width, (double)data->events[i].step)
                       : -1;
        if (next >= column)
            return next;
    }
    return width;
}

// A cross at each skip, with the layer that caused it where there is room before the next.
static int draw_skips(const Live *live, Area row, const PlotAxes *axes) {
    const LiveData *data = &live->data;
    int drawn = 0;
    for (int i = 0; i < data->event_count; i++) {
        const Event *event = &data->events[i];
        if (event->kind != EVENT_SKIP)
            continue;
        int column = plot_column_of(axes, row.width, (double)event->step);
        if (column < 0)
            continue;
        area_put(row, column, 0, style_bold(INK_BAD), GLYPH_CROSS);
        drawn++;
        char name[EVENT_LAYER_SIZE * 2];
        live_culprit(&data->record, event, name, sizeof name);
        int room = next_skip(data, i, column, row.width, axes) - column - 1;
        if (text_width(name) <= room)
            area_text(row, column + 1, 0, style_of(INK_DIM), name);
    }
    return drawn;
}

// And one where it overflowed.
static void mark_overflows(const LiveData *data, Area plot, const PlotAxes *axes) {
    for (int i = 0; i < data->event_count; i++) {
        double scale = overflowed_at(data, &data->events[i]);
        int row = isnan(scale) ? -1 : plot_row_of(axes, plot.height, scale);
        int column = plot_column_of(axes, plot.width, (double)data->events[i].step);
        if (row < 0 || column < 0)
            continue;
        // Where the curve comes as high it is what is marked.
        uint32_t rune = frame_cell(plot.frame, plot.column + column, plot.row + row)->rune;
        area_put(plot, column, row, style_bold(INK_BAD), rune == ' ' ? GLYPH_CROSS : rune);
    }
}

// Why the last step that was skipped was; "" where none was.
static void say_last_skip(const Live *live, char *out, size_t size) {
    const Event *event;
    char layer[EVENT_LAYER_SIZE * 2];
    out[0] = 0;
    for (int i = 0; (event = live_event(live, i)); i++) {
        if (event->kind != EVENT_SKIP)
            continue;
        live_culprit(&live->data.record, event, layer, sizeof layer);
        if (live_overflowed_forward(event))
            snprintf(out, size, ", loss not finite");
        else if (layer[0])
            snprintf(out, size, ", last by %s", layer);
        return;
    }
}

// As much as there is room for.
static void describe_scale(const Live *live, int room, char *right, size_t size) {
    const LiveData *data = &live->data;
    const RunRecord *record = &data->record;
    bool is_none = data->is_known && strcmp(record->scale_rule, "none") == 0;
    Word scale = word_scale(data->scale);
    if (live->view.has_cross && data->scale_line.count > 0) {
        const PlotPoint *point =
            point_at(data->scale_line.raw, data->scale_line.count, live->view.cross);
        snprintf(right, size, "%s at step %s", word_scale(point ? point->mean : NAN).text,
                 word_count(live->view.cross).text);
    } else if (live->view.cursor != LIVE_FOLLOWS) {
        snprintf(right, size, "%s at step %s", is_none && data->scale == 1 ? "none" : scale.text,
                 word_count(data->step).text);
    } else if (is_none) {
        snprintf(right, size, "none · %s skipped", word_count(record->skipped).text);
    } else if (data->is_known) {
        char why[EVENT_LAYER_SIZE * 2 + 16];
        int used =
            snprintf(right, size, "%s · %s skipped", scale.text, word_count(record->skipped).text);
        char *more = right + used;
        used = snprintf(more, size - (size_t)used, " of %s", word_count(record->step).text);
        if (text_width(right) > room) {
            *more = 0;
            return;
        }
        say_last_skip(live, why, sizeof why);
        if (text_width(right) + text_width(why) <= room)
            snprintf(more + used, size - (size_t)(more + used - right), "%s", why);
    } else {
        right[0] = 0;
    }
}

// As long as there is room for it; "" where it is not known.
static void say_growth(const Live *live, int room, char *text, size_t size) {
    int64_t steps = live_next_growth(live);
    text[0] = 0;
    if (steps > 0)
        snprintf(text, size, "next growth in %s clean steps", word_count(steps).text);
    if (text_width(text) > room)
        snprintf(text, size, "grows in %s steps", word_count(steps).text);
}

void live_draw_scale(const Live *live, Area area, bool focused) {
    enum { LEAST_CURVE_ROWS = 4 };
    const LiveData *data = &live->data;
    char right[256];
    describe_scale(live, area_box_room(area, panel_name(PANEL_SCALE)), right, sizeof right);
    Area inside = area_box(area, panel_name(PANEL_SCALE), right, focused);
    if (data->is_known && strcmp(data->record.scale_rule, "none") == 0) {
        area_wrap(area_part(inside, 1, inside.height / 2, inside.width - 2, inside.height), 0,
                  style_of(INK_DIM),
                  live_is_over(&data->record) ? "this run scales no loss"
                                              : "this run scales no loss (s sets a scale)");
        return;
    }
    if (data->scale_line.count == 0) {
        say_nothing(live, inside);
        return;
    }
    char growth[80];
    bool is_low = inside.height <= LEAST_CURVE_ROWS + 2;
    say_growth(live, inside.width - LIVE_LABEL_COLUMNS - (is_low ? 8 : 0), growth, sizeof growth);
    inside = label_foot(live, inside, LIVE_LABEL_COLUMNS, is_low ? growth : "");
    Area plot = curve_area(inside);
    PlotAxes axes = scale_axes(data);
    int rows = plot.height;
    if (growth[0] && !is_low) {
        rows--;
        area_text_cut(plot, 0, rows, plot.width, style_of(INK_DIM), growth);
    }
    if (rows > LEAST_CURVE_ROWS - 1 &&
        draw_skips(live, area_part(plot, 0, rows - 1, plot.width, 1), &axes) > 0)
        rows--;
    plot = area_part(plot, 0, 0, plot.width, rows);
    label_scale(area_part(inside, 0, 0, LIVE_LABEL_COLUMNS - 1, rows), &axes);
    draw_cursors(live, plot, &axes);
    PlotLine line = {.points = data->scale_line.raw,
                     .count = data->scale_line.count,
                     .ink = INK_WARN,
                     .steps = true};
    plot_draw(plot, &axes, &line, 1);
    mark_overflows(data, plot, &axes);
}
