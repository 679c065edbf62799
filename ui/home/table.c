// The runs as a table, drawn and clicked at.
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/sanitize.h"

#include "ui/cells/glyphs.h"
#include "ui/cells/theme.h"
#include "ui/cells/words.h"
#include "ui/home/home.h"

enum { HEAD_ROWS = 1, BORDER = 1 };

typedef struct Column {
    const char *title;
    int width, least; // shown where the panel is at least so wide
    bool is_right;
    void (*draw)(Area area, int column, int row, int width, const RunRecord *run);
} Column;

static void draw_right(Area area, int column, int row, int width, Ink ink, const char *text) {
    area_text_right(area_part(area, column, row, width, 1), width, 0, style_of(ink), text);
}

static void draw_title(Area area, const char *text) {
    char clean[2 * RECORD_NAME_SIZE];
    sanitize_line(clean, sizeof clean, text, strlen(text));
    area_text_right(area, area.width, 0, style_of(INK_DIM), clean);
}

static void draw_id(Area area, int column, int row, int width, const RunRecord *run) {
    char text[32];
    snprintf(text, sizeof text, "%lld", (long long)run->id);
    draw_right(area, column, row, width, INK_DIM, text);
}

// The name that somebody gave comes first; the one that every run has says no more than the
// columns.
static void draw_experiment(Area area, int column, int row, int width, const RunRecord *run) {
    enum { LEAST_TAG = 3 }; // columns; an ellipsis alone is no tag
    bool is_named = home_is_named(run);
    int end = column, right = column + width;
    if (is_named)
        end = area_outside(area, end, row, width, style_of(INK_BRIGHT), run->name) + 1;
    if (end < right)
        end = area_outside(area, end, row, right - end, style_of(is_named ? INK_DIM : INK_TEXT),
                           run->experiment);
    if (run->tag[0] && right - end - 1 >= LEAST_TAG)
        area_outside(area, end + 1, row, column + width - end - 1, style_of(INK_ACCENT), run->tag);
}

// A plus where layers are set to others, or something else stays in fp32 than usually: below the
// list that is said in full.
static void draw_format(Area area, int column, int row, int width, const RunRecord *run) {
    char text[sizeof run->precision + 1];
    snprintf(text, sizeof text, "%s%s", run->precision, run->label[0] ? "+" : "");
    area_outside(area, column, row, width, style_bold(theme_format_ink(run->precision)), text);
}

static void draw_state(Area area, int column, int row, int width, const RunRecord *run) {
    static const Ink inks[RUN_STATUSES] = {
        [RUN_RUNNING] = INK_GOOD, [RUN_PAUSED] = INK_WARN, [RUN_FINISHED] = INK_TEXT,
        [RUN_STOPPED] = INK_WARN, [RUN_FAILED] = INK_BAD,  [RUN_DEAD] = INK_WARN};
    Style style = style_of(inks[run->status]);
    if (run->status != RUN_RUNNING) {
        area_text_cut(area, column, row, width, style,
                      run->status == RUN_FINISHED ? "done" : run_status_name(run->status));
        return;
    }
    area_put(area, column, row, style, GLYPH_LIVE);
    if (run->stale)
        area_text(area, column + 2, row, style_of(INK_WARN), "silent");
    else if (run->total_steps > 0)
        area_print(area, column + 2, row, style, "%.0f %%",
                   100.0 * (double)run->step / (double)run->total_steps);
    else
        area_text(area, column + 2, row, style, "running");
}

static void draw_loss(Area area, int column, int row, int width, const RunRecord *run) {
    bool is_bad = run->has_loss && !isfinite(run->loss_last);
    draw_right(area, column, row, width, is_bad ? INK_BAD : INK_BRIGHT,
               run->has_loss ? word_number(run->loss_last).text : "–");
}

static void draw_rule(Area area, int column, int row, int width, const RunRecord *run) {
    draw_right(area, column, row, width, INK_TEXT, word_rule(run->scale_rule).text);
}

static void draw_seed(Area area, int column, int row, int width, const RunRecord *run) {
    draw_right(area, column, row, width, INK_DIM, word_count(run->seed).text);
}

static void draw_metric(Area area, int column, int row, int width, const RunRecord *run) {
    const RecordMetric *metric = record_leading_metric(run);
    draw_right(area, column, row, width, INK_BRIGHT,
               metric ? word_number(metric->value).text : "–");
}

static void draw_skipped(Area area, int column, int row, int width, const RunRecord *run) {
    draw_right(area, column, row, width, INK_TEXT, word_count(run->skipped).text);
}

static void draw_rate(Area area, int column, int row, int width, const RunRecord *run) {
    draw_right(area, column, row, width, INK_TEXT, word_short(run->steps_per_s).text);
}

static void draw_samples(Area area, int column, int row, int width, const RunRecord *run) {
    draw_right(area, column, row, width, INK_TEXT, word_short(run->samples_per_s).text);
}

static void draw_memory(Area area, int column, int row, int width, const RunRecord *run) {
    draw_right(area, column, row, width, INK_DIM, word_bytes(run->memory.peak).text);
}

static void draw_age(Area area, int column, int row, int width, const RunRecord *run) {
    draw_right(area, column, row, width, INK_DIM, word_age(ui_now_ms() - run->created_ms).text);
}

#define RESULT "result"

// A column gives way where the panel is narrow; the experiment takes what is left.
static const Column columns[] = {
    {"#", 4, 0, true, draw_id},
    {"run", 0, 0, false, draw_experiment},
    {"format", 6, 0, false, draw_format},
    {"scale", 8, 100, true, draw_rule},
    {"seed", 4, 92, true, draw_seed},
    {"state", 8, 0, false, draw_state},
    {"loss", 8, 0, true, draw_loss},
    {RESULT, 8, 54, true, draw_metric},
    {"skip", 4, 60, true, draw_skipped},
    {"steps/s", 7, 66, true, draw_rate},
    {"samples/s", 9, 96, true, draw_samples},
    {"memory", 7, 86, true, draw_memory},
    {"age", 6, 78, true, draw_age},
};
enum { COLUMNS = sizeof columns / sizeof *columns, CURSOR = 2, GAP = 1 };

static int flexible_width(int width) {
    int left = width - CURSOR;
    for (int i = 0; i < COLUMNS; i++)
        if (width >= columns[i].least)
            left -= columns[i].width + GAP;
    return left > 4 ? left : 4;
}

// What results measure, where all of those that are listed measure one thing.
static const char *title_of_results(const Home *home) {
    const char *name = NULL;
    for (int i = 0; i < home->run_count; i++) {
        const RecordMetric *metric = record_leading_metric(&home->runs[i]);
        if (metric && name && strcmp(metric->name, name) != 0)
            return RESULT;
        name = metric ? metric->name : name;
    }
    return name && strlen(name) <= sizeof "accuracy" - 1 ? name : RESULT;
}

// A title row without a run.
static void draw_row(const Home *home, Area area, int row, const RunRecord *run) {
    int at = CURSOR, flexible = flexible_width(area.width);
    for (int i = 0; i < COLUMNS; i++) {
        const Column *column = &columns[i];
        if (area.width < column->least)
            continue;
        int width = column->width > 0 ? column->width : flexible;
        if (run)
            column->draw(area, at, row, width, run);
        else if (column->is_right)
            draw_title(area_part(area, at, row, width, 1),
                       strcmp(column->title, RESULT) == 0 ? title_of_results(home) : column->title);
        else
            area_text_cut(area, at, row, width, style_of(INK_DIM), column->title);
        at += width + GAP;
    }
}

static void draw_nothing(const Home *home, Area area) {
    area = area_part(area, 2, 1, area.width - 4, area.height - 1);
    if (home->filter[0]) {
        int row = area_wrap(area, 0, style_of(INK_TEXT), "No run matches the filter.");
        area_wrap(area, row + 1, style_of(INK_DIM), "/ changes it; an empty one shows all runs.");
        return;
    }
    int row = area_wrap(area, 0, style_bold(INK_BRIGHT), "No runs yet.");
    int column = area_text(area, 0, row + 1, style_bold(INK_ACCENT), "f") + 1;
    row = area_wrap(area_part(area, column, 0, area.width - column, area.height), row + 1,
                    style_of(INK_TEXT),
                    "asks, trains a small CNN in fp32 and in mixed precision, side by side, and "
                    "opens the comparison as it goes.");
    area_wrap(area, row + 1, style_of(INK_DIM),
              "Or choose an experiment: tab goes to the list, enter to its form, enter trains.");
}

void home_draw_runs(Ui *ui, Area area, bool focused) {
    Home *home = home_of(ui);
    char right[160];
    snprintf(right, sizeof right, "%s · %s%.100s", home_sort_name(home),
             home->filter[0] ? "/ " : "/ filter", home->filter);
    Area inside = area_box(area, "runs", right, focused);
    if (home->run_count == 0) {
        draw_nothing(home, inside);
        return;
    }
    int height = inside.height - HEAD_ROWS, at = home_index(home);
    draw_row(home, inside, 0, NULL);
    home->run_top = home_scroll(home->run_top, at, home->run_count, height > 0 ? height : 1);
    for (int row = 0; row < height && home->run_top + row < home->run_count; row++) {
        const RunRecord *run = &home->runs[home->run_top + row];
        bool here = run->id == home->run;
        if (home_is_chosen(home, run->id))
            area_put(inside, 1, row + HEAD_ROWS, style_of(INK_ACCENT), GLYPH_SELECTED);
        else if (here && focused)
            area_put(inside, 1, row + HEAD_ROWS, style_of(INK_ACCENT), GLYPH_CURSOR);
        draw_row(home, inside, row + HEAD_ROWS, run);
        if (here)
            area_set_ground(area_part(inside, 0, row + HEAD_ROWS, inside.width, 1),
                            GROUND_SELECTED);
    }
    height = height > 0 ? height : 0;
    area_mark_hidden(area, home->run_top, home->run_count - home->run_top - height);
}

void home_click_run(Ui *ui, int row, MouseAction action) {
    Home *home = home_of(ui);
    int i = home->run_top + row - BORDER - HEAD_ROWS;
    if (action == MOUSE_WHEEL_UP || action == MOUSE_WHEEL_DOWN) {
        home_runs_request(ui, action == MOUSE_WHEEL_UP ? REQUEST_UP : REQUEST_DOWN);
        return;
    }
    if (i < 0 || i >= home->run_count)
        return;
    bool again = home->run == home->runs[i].id;
    home->run = home->runs[i].id;
    if (action == MOUSE_DOUBLE || again)
        ui_open_run(ui, home->run);
}
