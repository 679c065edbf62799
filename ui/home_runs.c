// The table of runs.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ui/glyphs.h"
#include "ui/home.h"
#include "ui/theme.h"
#include "ui/words.h"

enum { HEAD_ROWS = 1, BORDER = 1 };

static const RunRecord *find(const Home *home, int64_t run) {
    for (int i = 0; i < home->run_count; i++)
        if (home->runs[i].id == run)
            return &home->runs[i];
    return NULL;
}

static int index_of(const Home *home) {
    for (int i = 0; i < home->run_count; i++)
        if (home->runs[i].id == home->run)
            return i;
    return 0;
}

bool home_is_chosen(const Home *home, int64_t run) {
    for (int i = 0; i < home->chosen_count; i++)
        if (home->chosen[i] == run)
            return true;
    return false;
}

int home_hidden(const Home *home) {
    int hidden = 0;
    for (int i = 0; i < home->chosen_count; i++)
        hidden += find(home, home->chosen[i]) == NULL;
    return hidden;
}

// ---- sorting ------------------------------------------------------------------------------------

static const char *const sort_names[SORTS] = {"by age", "by loss", "by rate", "by memory",
                                              "by state"};

// NaN last, then the smaller first.
static int compare_numbers(double a, double b) {
    if (isnan(a) || isnan(b))
        return isnan(a) - isnan(b);
    return (a > b) - (a < b);
}

static double loss_of(const RunRecord *run) {
    return run->has_loss ? run->loss_last : (double)NAN;
}

static int by_age(const void *a, const void *b) {
    int64_t x = ((const RunRecord *)a)->id, y = ((const RunRecord *)b)->id;
    return (x < y) - (x > y);
}

static int by_loss(const void *a, const void *b) {
    int order = compare_numbers(loss_of(a), loss_of(b));
    return order ? order : by_age(a, b);
}

static int by_rate(const void *a, const void *b) {
    const RunRecord *x = a, *y = b;
    int order = compare_numbers(-x->steps_per_s, -y->steps_per_s);
    return order ? order : by_age(a, b);
}

static int by_memory(const void *a, const void *b) {
    const RunRecord *x = a, *y = b;
    int order = compare_numbers((double)y->memory.peak, (double)x->memory.peak);
    return order ? order : by_age(a, b);
}

static int by_status(const void *a, const void *b) {
    const RunRecord *x = a, *y = b;
    int order = (int)x->status - (int)y->status;
    return order ? order : by_age(a, b);
}

static void sort(Home *home) {
    static int (*const orders[SORTS])(const void *, const void *) = {by_age, by_loss, by_rate,
                                                                     by_memory, by_status};
    if (home->run_count > 1)
        qsort(home->runs, (size_t)home->run_count, sizeof *home->runs, orders[home->sort]);
}

// ---- reading ------------------------------------------------------------------------------------

static bool same_run(const RunRecord *a, const RunRecord *b) {
    return a->id == b->id && a->status == b->status && a->stale == b->stale && a->step == b->step &&
           a->metric_count == b->metric_count && strcmp(a->tag, b->tag) == 0 &&
           strcmp(a->note, b->note) == 0;
}

static bool same_runs(const Home *home, const RunRecord *runs, int count) {
    if (count != home->run_count)
        return false;
    for (int i = 0; i < count; i++)
        if (!same_run(&home->runs[i], &runs[i]))
            return false;
    return true;
}

// Runs that are gone, by a key here or by another program, are chosen no more.
static void forget_gone(Ui *ui) {
    Home *home = home_of(ui);
    int kept = 0;
    for (int i = 0; i < home->chosen_count; i++) {
        char text[24];
        int64_t id = 0;
        Error error = {.code = ERROR_NONE};
        snprintf(text, sizeof text, "%lld", (long long)home->chosen[i]);
        bool is_there = find(home, home->chosen[i]) || store_find_run(ui->store, text, &id, &error);
        if (is_there || error.code != ERROR_USAGE)
            home->chosen[kept++] = home->chosen[i];
    }
    if (kept != home->chosen_count)
        home->preview_of = 0;
    home->chosen_count = kept;
}

bool home_read_runs(Ui *ui) {
    Home *home = home_of(ui);
    RunFilter filter = {.words = home->filter[0] ? home->filter : NULL};
    Home fresh = {.sort = home->sort};
    Error error;
    if (!store_list_runs(ui->store, &filter, &fresh.runs, &fresh.run_count, &error)) {
        ui_fail(ui, &error);
        return true;
    }
    sort(&fresh);
    bool same = same_runs(home, fresh.runs, fresh.run_count);
    store_free_runs(home->runs, home->run_count);
    home->runs = fresh.runs;
    home->run_count = fresh.run_count;
    if (!home->filter[0])
        home->total = fresh.run_count;
    if (!find(home, home->run))
        home->run = home->run_count > 0 ? home->runs[0].id : 0;
    if (!same)
        forget_gone(ui);
    return !same;
}

void home_find_run(Ui *ui, int64_t run) {
    Home *home = home_of(ui);
    home_read_runs(ui);
    if (find(home, run))
        home->run = run;
}

// ---- drawing ------------------------------------------------------------------------------------

typedef struct Column {
    const char *title;
    int width, least; // shown where the panel is at least so wide
    bool is_right;
    void (*draw)(Area area, int column, int row, int width, const RunRecord *run);
} Column;

static void draw_right(Area area, int column, int row, int width, Ink ink, const char *text) {
    area_text_right(area_part(area, column, row, width, 1), width, 0, style_of(ink), text);
}

static void draw_id(Area area, int column, int row, int width, const RunRecord *run) {
    char text[32];
    snprintf(text, sizeof text, "%lld", (long long)run->id);
    draw_right(area, column, row, width, INK_DIM, text);
}

static void draw_experiment(Area area, int column, int row, int width, const RunRecord *run) {
    int end = area_outside(area, column, row, width, style_of(INK_TEXT), run->experiment);
    if (run->tag[0])
        area_outside(area, end + 1, row, column + width - end - 1, style_of(INK_ACCENT), run->tag);
}

static void draw_format(Area area, int column, int row, int width, const RunRecord *run) {
    area_outside(area, column, row, width, style_bold(theme_format_ink(run->precision)),
                 run->precision);
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

// A column gives way where the panel is narrow; the experiment takes what is left.
static const Column columns[] = {
    {"#", 4, 0, true, draw_id},
    {"experiment", 0, 0, false, draw_experiment},
    {"format", 6, 0, false, draw_format},
    {"state", 8, 0, false, draw_state},
    {"loss", 8, 0, true, draw_loss},
    {"result", 7, 54, true, draw_metric},
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

static void draw_row(Area area, int row, const RunRecord *run) {
    int at = CURSOR, flexible = flexible_width(area.width);
    for (int i = 0; i < COLUMNS; i++) {
        const Column *column = &columns[i];
        if (area.width < column->least)
            continue;
        int width = column->width > 0 ? column->width : flexible;
        if (run)
            column->draw(area, at, row, width, run);
        else if (column->is_right)
            draw_right(area, at, row, width, INK_DIM, column->title);
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
                    "trains a small CNN in fp32 and in mixed precision, side by side, and opens "
                    "the comparison as it goes.");
    area_wrap(area, row + 1, style_of(INK_DIM),
              "Or choose an experiment: tab goes to the list, enter to its form, enter trains.");
}

void home_draw_runs(Ui *ui, Area area, bool focused) {
    Home *home = home_of(ui);
    char right[160];
    snprintf(right, sizeof right, "%s · %s%.100s", sort_names[home->sort],
             home->filter[0] ? "/ " : "/ filter", home->filter);
    Area inside = area_box(area, "runs", right, focused);
    if (home->run_count == 0) {
        draw_nothing(home, inside);
        return;
    }
    int height = inside.height - HEAD_ROWS, at = index_of(home);
    draw_row(inside, 0, NULL);
    home->run_top = home_scroll(home->run_top, at, height > 0 ? height : 1);
    for (int row = 0; row < height && home->run_top + row < home->run_count; row++) {
        const RunRecord *run = &home->runs[home->run_top + row];
        bool here = run->id == home->run;
        if (home_is_chosen(home, run->id))
            area_put(inside, 1, row + HEAD_ROWS, style_of(INK_ACCENT), GLYPH_SELECTED);
        else if (here && focused)
            area_put(inside, 1, row + HEAD_ROWS, style_of(INK_ACCENT), GLYPH_CURSOR);
        draw_row(inside, row + HEAD_ROWS, run);
        if (here)
            area_set_ground(area_part(inside, 0, row + HEAD_ROWS, inside.width, 1),
                            GROUND_SELECTED);
    }
}

// ---- what can be done with them -----------------------------------------------------------------

static void choose(Ui *ui) {
    Home *home = home_of(ui);
    home->preview_of = 0;
    for (int i = 0; i < home->chosen_count; i++)
        if (home->chosen[i] == home->run) {
            memmove(&home->chosen[i], &home->chosen[i + 1],
                    (size_t)(--home->chosen_count - i) * sizeof *home->chosen);
            return;
        }
    if (home->chosen_count == HOME_MOST_CHOSEN)
        ui_say(ui, INK_WARN, "%d runs can be chosen at once; esc lets them all go",
               HOME_MOST_CHOSEN);
    else if (home->run)
        home->chosen[home->chosen_count++] = home->run;
}

static void compare(Ui *ui) {
    Home *home = home_of(ui);
    if (home->chosen_count >= 2)
        ui_compare(ui, home->chosen, home->chosen_count);
    else
        ui_say(ui, INK_WARN, "choose two runs or more with space, then c compares them");
}

static bool check_filter(Ui *ui, const char *text, Error *error) {
    return !text[0] || store_check_filter(ui->store, text, error);
}

static void take_filter(Ui *ui, const char *text) {
    Home *home = home_of(ui);
    snprintf(home->filter, sizeof home->filter, "%s", text);
    home_read_runs(ui);
}

// While it is typed: as far as it says something.
static void try_filter(Ui *ui, const char *text) {
    Error error;
    if (check_filter(ui, text, &error))
        take_filter(ui, text);
}

static void drop_filter(Ui *ui) {
    char before[PROMPT_SIZE];
    snprintf(before, sizeof before, "%s", home_of(ui)->filter_before);
    take_filter(ui, before);
}

static void ask_filter(Ui *ui) {
    Home *home = home_of(ui);
    snprintf(home->filter_before, sizeof home->filter_before, "%s", home->filter);
    prompt_ask(ui, "/", home->filter, take_filter);
    ui->prompt.check = check_filter;
    ui->prompt.changed = try_filter;
    ui->prompt.dropped = drop_filter;
    ui->prompt.hint =
        "status:failed format:fp16 acc>0.9 cnn · experiment: device: name: tag: note: "
        "· id steps loss skipped scale wall rate memory seed with < = >";
}

static void say_kept(Ui *ui, const char *what, const char *text) {
    ui_say(ui, INK_GOOD, "run %lld: %s %s", (long long)ui->prompt.run, what,
           text[0] ? "kept" : "removed");
}

static void ask_word(Ui *ui, const RunRecord *run, const char *label, const char *text,
                     void (*done)(Ui *ui, const char *text)) {
    prompt_ask(ui, label, text, done);
    ui->prompt.run = run->id;
}

static void take_tag(Ui *ui, const char *text) {
    Error error;
    if (!store_set_tag(ui->store, ui->prompt.run, text, &error))
        ui_fail(ui, &error);
    else
        say_kept(ui, "tag", text);
    home_read_runs(ui);
}

static void take_note(Ui *ui, const char *text) {
    Error error;
    if (!store_set_note(ui->store, ui->prompt.run, text, &error))
        ui_fail(ui, &error);
    else
        say_kept(ui, "note", text);
    home_of(ui)->preview_of = 0; // which shows it
    home_read_runs(ui);
}

// As `mpbench rm` does it, which knows of checkpoint files and of workers that live.
static void remove_runs(Ui *ui, const char *text) {
    (void)text;
    Home *home = home_of(ui);
    char names[HOME_MOST_CHOSEN][24];
    const char *arguments[HOME_MOST_CHOSEN + 2] = {"rm"};
    for (int i = 0; i < home->doomed_count; i++) {
        snprintf(names[i], sizeof names[i], "%lld", (long long)home->doomed[i]);
        arguments[1 + i] = names[i];
    }
    Error error;
    int64_t process;
    if (!launch_worker(ui, arguments, &process, &error))
        ui_fail(ui, &error);
}

static void confirm_again(Ui *ui, const char *text) {
    (void)text;
    prompt_confirm(ui, "really? Their points and checkpoints cannot be brought back", remove_runs);
}

// Those chosen that are seen, else the one under the cursor: what a filter hides is left alone.
static void find_doomed(Home *home) {
    home->doomed_count = 0;
    for (int i = 0; i < home->chosen_count; i++)
        if (find(home, home->chosen[i]))
            home->doomed[home->doomed_count++] = home->chosen[i];
    if (home->doomed_count == 0)
        home->doomed[home->doomed_count++] = home->run;
}

static void ask_remove(Ui *ui) {
    enum { MOST_NAMED = 3 };
    Home *home = home_of(ui);
    char question[MESSAGE_SIZE];
    if (!find(home, home->run))
        return;
    find_doomed(home);
    int count = home->doomed_count, hidden = home_hidden(home);
    int used = snprintf(question, sizeof question, "delete ");
    for (int i = 0; i < count && i < MOST_NAMED; i++)
        used +=
            snprintf(question + used, sizeof question - (size_t)used, "%s%lld %.60s", i ? ", " : "",
                     (long long)home->doomed[i], find(home, home->doomed[i])->name);
    if (count > MOST_NAMED)
        used += snprintf(question + used, sizeof question - (size_t)used, " and %d more",
                         count - MOST_NAMED);
    snprintf(question + used, sizeof question - (size_t)used, "?%s",
             hidden > 0 ? " What the filter hides stays." : "");
    prompt_confirm(ui, question, confirm_again);
}

// One layer: the filter first, so that what it hid is seen before it is let go.
static bool step_back(Ui *ui) {
    Home *home = home_of(ui);
    if (home->filter[0])
        home->filter[0] = 0;
    else if (home->chosen_count > 0)
        home->chosen_count = 0;
    else
        return false;
    home->preview_of = 0;
    home_read_runs(ui);
    return true;
}

bool home_runs_request(Ui *ui, Request request) {
    Home *home = home_of(ui);
    int at = index_of(home), page = ui->frame.rows / 2;
    if (home_move(request, home->run_count, page, &at)) {
        if (home->run_count > 0)
            home->run = home->runs[at].id;
        return true;
    }
    const RunRecord *run = find(home, home->run);
    switch (request) {
    case REQUEST_ENTER:
        if (run)
            ui_open_run(ui, run->id);
        return true;
    case REQUEST_SELECT: choose(ui); return home_runs_request(ui, REQUEST_DOWN);
    case REQUEST_COMPARE: compare(ui); return true;
    case REQUEST_FILTER: ask_filter(ui); return true;
    case REQUEST_SORT:
        home->sort = (home->sort + 1) % SORTS;
        sort(home);
        return true;
    case REQUEST_TAG:
        if (run)
            ask_word(ui, run, "tag", run->tag, take_tag);
        return true;
    case REQUEST_NOTE:
        if (run)
            ask_word(ui, run, "note", run->note, take_note);
        return true;
    case REQUEST_DELETE: ask_remove(ui); return true;
    case REQUEST_COPY:
        if (run)
            ui_copy(ui, run->name);
        return true;
    case REQUEST_BACK: return step_back(ui);
    default: return false;
    }
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
