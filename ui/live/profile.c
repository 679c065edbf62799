// The page of the profile: where the time of steps goes, by layer and operation.
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/rune.h"
#include "ui/cells/bars.h"
#include "ui/cells/columns.h"
#include "ui/live/live.h"

// ---- where things are ---------------------------------------------------------------------------

typedef enum ColumnId { // in the order in which they are given room
    COLUMN_LAYER,
    COLUMN_TIME,
    COLUMN_SHARE,
    COLUMN_OPERATION,
    COLUMN_LIMIT,
    COLUMN_FORMAT,
    COLUMN_WAY,
    COLUMN_BAR,
    COLUMN_CALLS,
    COLUMNS
} ColumnId;

static const Column columns[COLUMNS] = {
    [COLUMN_LAYER] = {"layer", 13, 27, false},  [COLUMN_TIME] = {"ms a step", 11, 0, true},
    [COLUMN_SHARE] = {"share", 9, 0, true},     [COLUMN_OPERATION] = {"operation", 13, 11, false},
    [COLUMN_LIMIT] = {"of limit", 10, 0, true}, [COLUMN_FORMAT] = {"in", 13, 0, false},
    [COLUMN_WAY] = {"way", 10, 0, false},       [COLUMN_BAR] = {"", 10, 30, false},
    [COLUMN_CALLS] = {"calls", 7, 0, true},
};

static const int from_left[COLUMNS] = {COLUMN_LAYER,  COLUMN_OPERATION, COLUMN_WAY,
                                       COLUMN_FORMAT, COLUMN_CALLS,     COLUMN_TIME,
                                       COLUMN_SHARE,  COLUMN_BAR,       COLUMN_LIMIT};

static const ColumnSet set = {columns, from_left, COLUMNS};

static void write_formats(const StepPart *part, char text[40]) {
    const bool goes_on = part->to[0] && strcmp(part->from, part->to) != 0;
    snprintf(text, 40, goes_on && strcmp(part->operation, "cast") == 0 ? "%s > %s" : "%s",
             part->from, part->to);
}

// What a line has in a column of words, fit to be shown; false: it is one of numbers.
static bool read_words(const StepLine *line, ColumnId id, char text[RECORD_NAME_SIZE * 2]) {
    char formats[40];
    switch (id) {
    case COLUMN_LAYER: live_clean(text, RECORD_NAME_SIZE * 2, line->part.layer); return true;
    case COLUMN_OPERATION:
        live_clean(text, RECORD_NAME_SIZE * 2, line->part.operation);
        return true;
    case COLUMN_WAY: live_clean(text, RECORD_NAME_SIZE * 2, line->part.way); return true;
    case COLUMN_FORMAT:
        write_formats(&line->part, formats);
        live_clean(text, RECORD_NAME_SIZE * 2, formats);
        return true;
    default: text[0] = 0; return false;
    }
}

// Of a column of words how wide the longest is; 0: no line has one.
static int widest(const LiveProfile *profile, ColumnId id) {
    char text[RECORD_NAME_SIZE * 2];
    int most = 0;
    for (int i = 0; i < profile->line_count; i++) {
        if (!read_words(&profile->lines[i], id, text))
            return columns[id].width;
        int width = text_width(text);
        most = width > most ? width : most;
    }
    return most;
}

static bool is_empty(const LiveProfile *profile, ColumnId id) {
    if (id == COLUMN_LAYER && profile->by != STEP_BY_OPERATION)
        return false; // the sums below have their names there
    if (id == COLUMN_LIMIT || id == COLUMN_CALLS)
        return profile->of == 0;
    return widest(profile, id) == 0;
}

// Room for a column, no more than what is in it takes; 0: there is none.
static int room_for(const LiveProfile *profile, ColumnId id, int left) {
    const int own = widest(profile, id) + COLUMN_GAP;
    const bool has_words = own - COLUMN_GAP != columns[id].width;
    const int wanted = has_words && own < columns[id].width ? own : columns[id].width;
    return wanted <= left && !is_empty(profile, id) ? wanted : 0;
}

static int growth_of(const LiveProfile *profile, ColumnId id, int width, int left) {
    const int most = columns[id].more < left ? columns[id].more : left;
    const int wanted = id == COLUMN_BAR ? most : widest(profile, id) + COLUMN_GAP - width;
    return width == 0 || wanted < 0 ? 0 : wanted < most ? wanted : most;
}

// What there is room for, from `from` on up to `to`, and then what makes these wider.
static int give_room(const LiveProfile *profile, ColumnPlaces *places, ColumnId from, ColumnId to,
                     int left) {
    for (ColumnId id = from; id < to; id++)
        left -= places->width[id] = room_for(profile, id, left);
    for (ColumnId id = from; id < to; id++) {
        const int more = growth_of(profile, id, places->width[id], left);
        places->width[id] += more;
        left -= more;
    }
    return left;
}

// Names are shown whole before there is anything that can lack.
static ColumnPlaces places_in(const LiveProfile *profile, int width) {
    ColumnPlaces places;
    const int left = give_room(profile, &places, COLUMN_LAYER, COLUMN_WAY, width - COLUMN_MARGIN);
    give_room(profile, &places, COLUMN_WAY, COLUMNS, left);
    columns_place(&set, &places);
    return places;
}

static void put(Area area, const ColumnPlaces *places, ColumnId id, int row, Style style,
                const char *text) {
    columns_put(&set, places, area, (int)id, row, style, text);
}

// ---- lines --------------------------------------------------------------------------------------

static void put_times(const LiveProfile *profile, Area area, const ColumnPlaces *places, int row,
                      double seconds, Ink ink) {
    char text[32];
    snprintf(text, sizeof text, "%.3f", 1e3 * seconds);
    put(area, places, COLUMN_TIME, row, style_of(ink), text);
    if (profile->step_seconds > 0)
        put(area, places, COLUMN_SHARE, row, style_of(ink),
            word_share(seconds / profile->step_seconds).text);
}

static void draw_line(const LiveProfile *profile, Area area, const ColumnPlaces *places, int row,
                      const StepLine *line) {
    char text[RECORD_NAME_SIZE * 2];
    const Ink ink = line->part.from[0] ? live_ink(line->part.from) : INK_TEXT;
    for (int i = 0; i < COLUMNS; i++)
        if (read_words(line, (ColumnId)i, text))
            put(area, places, (ColumnId)i, row,
                style_of(!text[0]             ? INK_DIM
                         : i == COLUMN_FORMAT ? ink
                         : i == COLUMN_WAY    ? INK_DIM
                                              : INK_TEXT),
                text[0] ? text : "–");
    put_times(profile, area, places, row, line->part.seconds, INK_TEXT);
    snprintf(text, sizeof text, "%.3g", line->part.calls);
    put(area, places, COLUMN_CALLS, row, style_of(INK_DIM), line->part.calls > 0 ? text : "–");
    put(area, places, COLUMN_LIMIT, row, style_of(line->limited > 0 ? INK_TEXT : INK_DIM),
        line->limited > 0 ? word_share(line->part.at_limit / line->limited).text : "–");
    if (places->width[COLUMN_BAR] > 0 && profile->step_seconds > 0)
        gauge_draw(area, places->at[COLUMN_BAR], row, places->width[COLUMN_BAR] - COLUMN_GAP,
                   line->part.seconds / profile->step_seconds, ink);
}

static void draw_sum(const LiveProfile *profile, Area area, const ColumnPlaces *places, int row,
                     const char *name, double seconds, Ink ink) {
    const int room =
        places->at[COLUMN_TIME] - COLUMN_MARGIN; // a name may lie over columns of words
    put_times(profile, area, places, row, seconds, ink);
    area_text_cut(area, COLUMN_MARGIN, row, room, style_of(ink), name);
}

// ---- words --------------------------------------------------------------------------------------

// What the numbers are of.
static int say_profile(const Live *live, Area area) {
    const LiveProfile *profile = &live->profile;
    const StepProfile *kept = &profile->kept;
    char text[400], of[64] = "", late[80] = "", casts[80] = "no casts";
    if (profile->of != profile->run)
        snprintf(of, sizeof of, ", in #%lld, trained as this one", (long long)profile->of);
    if (kept->late > 0)
        snprintf(late, sizeof late, "; %s that took far longer left out",
                 word_count(kept->late).text);
    if (profile->casts > 0)
        snprintf(casts, sizeof casts, "%s of it in casts (%.3g a step)",
                 word_share(profile->cast_seconds / kept->step_seconds).text, profile->casts);
    snprintf(text, sizeof text, "%s steps profiled%s: %.3g ms each, %s%s",
             word_count(kept->steps).text, of, 1e3 * kept->step_seconds, casts, late);
    return area_wrap(area, 0, style_of(INK_BRIGHT), text);
}

static int say_layers(const Live *live, Area area) {
    char text[400];
    snprintf(text, sizeof text,
             "Not profiled: the times of its layers alone, as taken around step %s.",
             word_count(live->data.step).text);
    return area_wrap(area, 0, style_of(INK_BRIGHT),
                     live->profile.line_count > 0 ? text
                                                  : "Not profiled, and its layers were not timed.");
}

static int say_measuring(const Live *live, Area area, int row) {
    char text[400], script[160];
    live_clean(script, sizeof script, live->data.record.experiment);
    if (live->profile.process > 0)
        return area_wrap(area, row, style_of(INK_WARN),
                         "One is being measured: it trains for some seconds, and shows here when "
                         "that ends.");
    if (live->profile.of != 0)
        return row;
    if (live->profile.may_measure)
        snprintf(text, sizeof text,
                 "enter measures it: trains as this run was trained, for some seconds, every step "
                 "profiled; kept as a run of its own, tagged profile");
    else
        snprintf(text, sizeof text,
                 "mpbench profile %s, with the run's options, tells operations, casts and the "
                 "share of the limit apart; kept as a run, it shows here",
                 script);
    return area_wrap(area, row, style_of(INK_DIM), text);
}

static void write_notes(const LiveProfile *profile, char *text, size_t size) {
    enum { GIGA = 1000000000 };
    const StepProfile *kept = &profile->kept;
    const double worth_telling = 0.1; // of a processor
    char busy[120] = "", memory[80] = "";
    if (kept->others_busy >= worth_telling)
        snprintf(busy, sizeof busy,
                 " Other programs kept %.1f processors busy meanwhile: times tell of them, too.",
                 kept->others_busy);
    if (kept->memory_limit > 0)
        snprintf(memory, sizeof memory, ", %.3g GB/s", kept->memory_limit / GIGA);
    snprintf(text, size,
             "of limit: what large products of the format reach on this device, for all else "
             "memory%s (over 100 %%: what lies in caches).%s `mpbench profile %lld` says what to "
             "do about it.",
             memory, busy, (long long)profile->of);
}

// ---- the page -----------------------------------------------------------------------------------

static int draw_words(const Live *live, Area area) {
    int row = live->profile.of != 0 ? say_profile(live, area) : say_layers(live, area);
    return say_measuring(live, area, row);
}

typedef struct Rows { // of the inside: words, the head of the table, lines, sums
    int head;         // the table's
    int top, shown;   // the first line, and how many
    int sums;
} Rows;

static Rows rows_of(const Live *live, int width, int height) {
    const LiveProfile *profile = &live->profile;
    const int count = profile->line_count, sums = profile->of != 0 ? 2 : 0;
    int head = draw_words(live, area_to_measure(width - 2 * COLUMN_MARGIN));
    head += head + 1 + count + sums < height ? 1 : 0;
    const int room = height - head - 1 - sums, most = room < count ? room : count;
    const int shown = most > 0 ? most : 0, last = count - shown;
    return (Rows){head, profile->top < last ? profile->top : last, shown, sums};
}

static int draw_table(const LiveProfile *profile, Area area, const Rows *rows) {
    const ColumnPlaces places = places_in(profile, area.width);
    int row = rows->head + 1;
    columns_put_heads(&set, &places, area, rows->head);
    for (int i = 0; i < rows->shown; i++)
        draw_line(profile, area, &places, row++, &profile->lines[rows->top + i]);
    if (rows->sums > 0) {
        draw_sum(profile, area, &places, row++, "between operations, Lua", profile->kept.between,
                 INK_DIM);
        draw_sum(profile, area, &places, row++, "a step", profile->step_seconds, INK_BRIGHT);
    }
    return row;
}

void live_draw_profile(const Live *live, Area area, bool focused) {
    static const char *const kinds[STEP_BYS] = {"by layer and operation", "by layer",
                                                "by operation"};
    const LiveProfile *profile = &live->profile;
    char right[96], which[64] = "", notes[480];
    Area inside = area_part(area, 1, 1, area.width - 2, area.height - 2);
    Area words =
        area_part(inside, COLUMN_MARGIN, 0, inside.width - 2 * COLUMN_MARGIN, inside.height);
    if (!live->data.is_known || profile->run == 0) {
        area_wrap(words, 0, style_of(INK_DIM), live_say_no_run(live));
        area_box(area, panel_name(PANEL_PROFILE), "", focused);
        return;
    }
    const Rows rows = rows_of(live, inside.width, inside.height);
    draw_words(live, words);
    int row = profile->line_count > 0 ? draw_table(profile, inside, &rows) : rows.head;
    write_notes(profile, notes, sizeof notes);
    const int wanted = area_wrap(area_to_measure(words.width), 0, style_of(INK_DIM), notes);
    if (profile->of != 0 && row + 1 + wanted <= inside.height)
        area_wrap(words, row + 1, style_of(INK_DIM), notes);
    if (rows.shown < profile->line_count)
        snprintf(which, sizeof which, ", %d to %d of %d", rows.top + 1, rows.top + rows.shown,
                 profile->line_count);
    snprintf(right, sizeof right, "%s%s", kinds[profile->of != 0 ? profile->by : STEP_BY_LAYER],
             which);
    area_box(area, panel_name(PANEL_PROFILE), right, focused);
}

// ---- keys ---------------------------------------------------------------------------------------

static void scroll(Ui *ui, Live *live, int by) {
    enum { BORDERS = 2 };
    LiveProfile *profile = &live->profile;
    const Panel *panel = layout_find(&ui->layout, PANEL_PROFILE);
    if (!panel)
        return;
    const Rows rows = rows_of(live, panel->width - BORDERS, panel->height - BORDERS);
    const int last = profile->line_count - rows.shown, top = rows.top + by;
    profile->top = top < 0 ? 0 : top > last ? last : top;
    ui->dirty = true;
}

static void show_other_lines(Ui *ui, Live *live) {
    LiveProfile *profile = &live->profile;
    Error error;
    if (profile->of == 0)
        return;
    profile->by = (StepBy)((profile->by + 1) % STEP_BYS);
    profile->top = 0;
    if (!live_profile_group(profile, &error))
        ui_fail(ui, &error);
    ui->dirty = true;
}

bool live_profile_request(Ui *ui, Live *live, Request request) {
    enum { PAGE = 10, ALL = STEP_PROFILE_MOST_PARTS };
    switch (request) {
    case REQUEST_UP: scroll(ui, live, -1); break;
    case REQUEST_DOWN: scroll(ui, live, 1); break;
    case REQUEST_PAGE_UP: scroll(ui, live, -PAGE); break;
    case REQUEST_PAGE_DOWN: scroll(ui, live, PAGE); break;
    case REQUEST_FIRST: scroll(ui, live, -ALL); break;
    case REQUEST_LAST: scroll(ui, live, ALL); break;
    case REQUEST_SERIES: show_other_lines(ui, live); break;
    case REQUEST_ENTER: live_profile_measure(ui, live); break;
    default: return false;
    }
    return true;
}

bool live_profile_label(const Live *live, Request request, const char **label) {
    static const char *const next[STEP_BYS] = {
        [STEP_BY_PART] = "by layer",
        [STEP_BY_LAYER] = "by operation",
        [STEP_BY_OPERATION] = "by both",
    };
    if (request == REQUEST_SERIES)
        *label = live->profile.of != 0 ? next[live->profile.by] : NULL;
    return request == REQUEST_SERIES;
}
