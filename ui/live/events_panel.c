// What happened, the newest first; fold.c makes the rows.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/rune.h"
#include "ui/live/live.h"

static const struct {
    const char *word;
    Ink ink;
} kinds[EVENT_KINDS] = {
    [EVENT_SKIP] = {"skip", INK_BAD},      [EVENT_SCALE] = {"scale", INK_GOOD},
    [EVENT_COMMAND] = {"you", INK_BRIGHT}, [EVENT_DIAGNOSIS] = {"note", INK_WARN},
    [EVENT_MESSAGE] = {"log", INK_TEXT},   [EVENT_CHECKPOINT] = {"saved", INK_GOOD},
    [EVENT_PICTURE] = {"drawn", INK_TEXT}, [EVENT_LIFE] = {"run", INK_DIM},
    [EVENT_APART] = {"apart", INK_WARN},   [EVENT_FAULT] = {"nan", INK_BAD},
    [EVENT_FLIGHT] = {"kept", INK_DIM},
};

// In `most` rows at most, the last of them cut; returns the row after.
static int draw_text(Area area, int row, int most, const char *text) {
    char line[2 * EVENT_TEXT_SIZE];
    const char *rest = text;
    for (int left = most < area.height - row ? most : area.height - row; left > 0; left--, row++) {
        size_t fits = text_fit(rest, area.width, NULL), cut = fits;
        if (left == 1 || !rest[fits]) {
            area_text_cut(area, 0, row, area.width, style_of(INK_TEXT), rest);
            return row + 1;
        }
        while (cut > 0 && rest[cut] != ' ')
            cut--;
        cut = cut > 0 ? cut : fits;
        snprintf(line, sizeof line, "%.*s", (int)cut, rest);
        area_text(area, 0, row, style_of(INK_TEXT), line);
        rest += cut + (rest[cut] == ' ');
    }
    return row;
}

static const char *kind_of(const Live *live, const LiveRow *row, Ink *ink) {
    EventKind kind = row->skips > 0 ? EVENT_SKIP : live->data.events[row->last].kind;
    kind = kind >= 0 && kind < EVENT_KINDS ? kind : EVENT_LIFE;
    *ink = kinds[kind].ink;
    return kinds[kind].word;
}

static int64_t step_of(const Live *live, const LiveRow *row) {
    return live->data.events[row->last].step;
}

// As wide as the longest step that `rows` may show, and a gap.
static int step_columns(const Live *live, int rows) {
    int columns = 9;
    for (int i = 0; i < rows; i++) {
        const LiveRow *row = live_row(live, live->view.event_top + i);
        int wanted = row ? text_width(word_count(step_of(live, row)).text) + 1 : 0;
        columns = wanted > columns ? wanted : columns;
    }
    return columns;
}

// In as many rows as there are for it; a skip is told briefly rather than cut.
static int draw_row(const Live *live, Area area, int at, int most, const LiveRow *row) {
    char text[2 * EVENT_TEXT_SIZE];
    int room = most < area.height - at ? most : area.height - at;
    live_say_row(live, row, false, text, sizeof text);
    if (row->class == ROW_SCALE &&
        area_wrap(area_to_measure(area.width), 0, style_of(INK_TEXT), text) > room)
        live_say_row(live, row, true, text, sizeof text);
    return draw_text(area, at, most, text);
}

// The one at the top is shown whole, in all but two rows: what follows from it is in sight.
void live_draw_events(const Live *live, Area area, bool focused) {
    enum { KIND_COLUMNS = 6, ROWS_TO_WRAP = 6, KEPT = 3 };
    const LiveData *data = &live->data;
    char right[64] = "";
    const LiveRow *top = live_row(live, live->view.event_top);
    bool is_there = top && step_of(live, top) == data->step;
    const char *enter = !focused || !top ? ""
                        : is_there       ? "enter: all of it"
                                         : "enter: to its step";
    if (live->view.event_top > 0)
        snprintf(right, sizeof right, "%d above%s%s", live->view.event_top, enter[0] ? " · " : "",
                 enter);
    else
        snprintf(right, sizeof right, "%s", enter);
    Area inside = area_box(area, panel_name(PANEL_EVENTS), right, focused);
    if (data->row_count == 0)
        area_text_cut(inside, 1, 1, inside.width - 2, style_of(INK_DIM),
                      live_is_over(&data->record) && live->view.cursor == LIVE_FOLLOWS
                          ? "nothing happened"
                          : "nothing happened yet");
    int kinds_at = step_columns(live, inside.height), texts_at = kinds_at + KIND_COLUMNS;
    Area texts = area_part(inside, texts_at, 0, inside.width - texts_at, inside.height);
    int others = inside.height >= ROWS_TO_WRAP ? 2 : 1;
    int whole = inside.height > KEPT + 1 && !focused ? inside.height - KEPT : inside.height;
    for (int at = 0, i = live->view.event_top; at < inside.height; i++) {
        const LiveRow *row = live_row(live, i);
        if (!row)
            break;
        Ink ink;
        const char *kind = kind_of(live, row, &ink);
        bool is_top = i == live->view.event_top;
        int first = at;
        area_text_right(inside, kinds_at - 1, at, style_of(INK_DIM),
                        word_count(step_of(live, row)).text);
        area_text_cut(inside, kinds_at, at, KIND_COLUMNS, style_bold(ink), kind);
        at =
            area_is_empty(texts) ? at + 1 : draw_row(live, texts, at, is_top ? whole : others, row);
        if (focused && is_top)
            area_set_ground(area_part(inside, 0, first, inside.width, at - first), GROUND_SELECTED);
    }
}

// All that the row holds, the newest first.
void live_show_row(Ui *ui, const Live *live, const LiveRow *row) {
    const LiveData *data = &live->data;
    size_t size = (size_t)row->count * (2 * EVENT_TEXT_SIZE + 32) + 1, used = 0;
    char title[96], *page = malloc(size), text[2 * EVENT_TEXT_SIZE];
    Ink ink;
    if (!page)
        return;
    page[0] = 0;
    for (int i = row->last; i >= row->first; i--) {
        if (!live_row_has(live, row, i))
            continue;
        live_say_event(live, &data->events[i], false, text, sizeof text);
        if (row->count > 1)
            used += (size_t)snprintf(page + used, size - used,
                                     "step %s: ", word_count(data->events[i].step).text);
        used +=
            (size_t)snprintf(page + used, size - used, "%s%s", text, i > row->first ? "\n" : "");
    }
    snprintf(title, sizeof title, "step %s: %s", word_count(step_of(live, row)).text,
             kind_of(live, row, &ink));
    pager_show(ui, title, page);
}
