// The scan screen: which scan it shows, what it reads, and its keys.
#include "ui/scan/scan.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/sanitize.h"
#include "store/runs.h"
#include "ui/cells/words.h"
#include "ui/home/home.h"

ScanView *scan_view_of(const Ui *ui) {
    return ui->state[SCREEN_SCAN];
}

int scan_row_of(const ScanView *view) {
    for (int i = 0; i < view->scan->unit_count; i++)
        if (view->order[i] == view->unit)
            return i;
    return 0;
}

void scan_say_subject(const ScanRecord *scan, char *out, size_t size) {
    sanitize_line(out, size, scan->subject, strlen(scan->subject));
}

// ---- reading ------------------------------------------------------------------------------------

static void arrange(ScanView *view) {
    for (int i = 0; i < view->scan->unit_count; i++)
        view->order[i] = i;
    if (!view->in_model_order)
        scan_rank(view->scan, view->order);
}

static void read_scan(Ui *ui, int64_t id) {
    ScanView *view = scan_view_of(ui);
    const bool is_other = view->scan->id != id;
    Error error;
    view->problem[0] = 0;
    if (!store_read_scan(ui->store, id, view->scan, &error)) {
        snprintf(view->problem, sizeof view->problem, "%s", error.text);
        return;
    }
    arrange(view);
    if (is_other) {
        view->unit = view->order[0];
        view->format = view->top = 0;
    }
}

static int entry_shown(const ScanView *view) {
    for (int i = 0; i < view->entry_count; i++)
        if (view->entries[i].id == view->scan->id)
            return i;
    return -1;
}

static bool read_entries(Ui *ui) {
    ScanView *view = scan_view_of(ui);
    ScanEntry *entries;
    int count;
    Error error;
    if (!store_list_scans(ui->store, &entries, &count, &error)) {
        snprintf(view->problem, sizeof view->problem, "%s", error.text);
        return false;
    }
    free(view->entries);
    view->entries = entries;
    view->entry_count = count;
    return true;
}

// Of the run that was looked at, else of its experiment, else the one that was shown, or the
// newest.
static int64_t choose_scan(Ui *ui) {
    const ScanView *view = scan_view_of(ui);
    RunRecord run = {.id = 0};
    Error error;
    int64_t of_experiment = 0, chosen = 0;
    const bool is_known = ui->run != 0 && ui->came_from == SCREEN_LIVE &&
                          store_read_run(ui->store, ui->run, &run, &error);
    for (int i = view->entry_count - 1; is_known && i >= 0; i--) {
        const ScanEntry *entry = &view->entries[i];
        chosen = entry->run == ui->run ? entry->id : chosen;
        of_experiment = strcmp(entry->experiment, run.experiment) == 0 ? entry->id : of_experiment;
    }
    record_clear(&run);
    if (chosen == 0)
        chosen = of_experiment;
    if (chosen == 0 && entry_shown(view) >= 0)
        return view->scan->id;
    return chosen == 0 && view->entry_count > 0 ? view->entries[0].id : chosen;
}

static bool scan_open(Ui *ui, Error *error) {
    ScanView *view = calloc(1, sizeof *view);
    ui->state[SCREEN_SCAN] = view;
    if (!view)
        return error_fail(error, ERROR_MEMORY, "no memory for the screen");
    view->scan = scan_record_new(error);
    ui->focus[SCREEN_SCAN] = PANEL_DAMAGE;
    return view->scan != NULL;
}

static void scan_close(Ui *ui) {
    ScanView *view = scan_view_of(ui);
    scan_record_free(view->scan);
    free(view->entries);
    free(view);
}

static void scan_enter(Ui *ui) {
    ScanView *view = scan_view_of(ui);
    view->since_read = 0;
    if (!read_entries(ui))
        return;
    const int64_t id = choose_scan(ui);
    if (id != 0)
        read_scan(ui, id);
}

// A scan that is measured grows; a new one of this session is shown where none was, and another in
// place of one that was removed.
static bool scan_refresh(Ui *ui, double seconds) {
    const double read_every = 0.5;
    ScanView *view = scan_view_of(ui);
    view->since_read += seconds;
    if (view->since_read < read_every)
        return false;
    view->since_read = 0;
    const int64_t newest = view->entry_count > 0 ? view->entries[0].id : 0;
    if (!read_entries(ui))
        return true;
    const bool has_new = view->entry_count > 0 && view->entries[0].id != newest;
    const bool is_gone = view->scan->id != 0 && entry_shown(view) < 0;
    if (is_gone) // where there is no other, reading it says so
        read_scan(ui, view->entry_count > 0 ? view->entries[0].id : view->scan->id);
    else if (has_new && view->entries[0].is_live)
        read_scan(ui, view->entries[0].id);
    else if (view->scan->id != 0 && view->scan->is_live)
        read_scan(ui, view->scan->id);
    else
        return has_new;
    return true;
}

// ---- drawing ------------------------------------------------------------------------------------

static void scan_header(Ui *ui, Area area) {
    const ScanView *view = scan_view_of(ui);
    char text[80] = "no scan";
    if (view->scan->id != 0)
        snprintf(text, sizeof text, "scan %d of %d · %s", entry_shown(view) + 1, view->entry_count,
                 scan_state_name(view->scan));
    area_text_right(area, area.width, 0, style_of(INK_DIM), text);
}

static void scan_draw(Ui *ui, PanelId panel, Area area, bool focused) {
    ScanView *view = scan_view_of(ui);
    if (panel == PANEL_DAMAGE)
        scan_draw_table(view, area, focused);
    else if (panel == PANEL_CELL)
        scan_draw_cell(view, area, focused);
    else
        scan_draw_verdict(view, area, focused);
}

// ---- finding ------------------------------------------------------------------------------------

static bool has(const char *name, const char *part) {
    const size_t length = strlen(part);
    for (; *name; name++)
        if (strncasecmp(name, part, length) == 0)
            return true;
    return false;
}

// The next unit after a row, around the end; -1: no name has it.
static int find(const ScanView *view, int row, const char *part) {
    const int count = view->scan->unit_count;
    for (int i = 1; i <= count; i++) {
        const int unit = view->order[(row + i) % count];
        if (has(view->scan->units[unit], part))
            return unit;
    }
    return -1;
}

static void try_find(Ui *ui, const char *text) {
    ScanView *view = scan_view_of(ui);
    view->unit = view->unit_before;
    const int found = text[0] ? find(view, scan_row_of(view), text) : -1;
    view->unit = found >= 0 ? found : view->unit;
}

static bool check_find(Ui *ui, const char *text, Error *error) {
    return !text[0] || find(scan_view_of(ui), 0, text) >= 0 ||
           error_fail(error, ERROR_USAGE, "no layer of this scan has this in its name");
}

// Nothing typed: the next one that has what was typed last.
static void take_find(Ui *ui, const char *text) {
    ScanView *view = scan_view_of(ui);
    if (text[0])
        snprintf(view->sought, sizeof view->sought, "%.63s", text);
    try_find(ui, view->sought);
}

static void drop_find(Ui *ui) {
    scan_view_of(ui)->unit = scan_view_of(ui)->unit_before;
}

static void ask_find(Ui *ui, ScanView *view) {
    view->unit_before = view->unit;
    prompt_ask(ui, "find layer", "", take_find);
    ui->prompt.check = check_find;
    ui->prompt.changed = try_find;
    ui->prompt.dropped = drop_find;
    ui->prompt.hint = "a part of its name · enter: the next one that has it";
}

// ---- keys ---------------------------------------------------------------------------------------

static void go_scans(Ui *ui, ScanView *view, int by) {
    const int at = entry_shown(view) + by;
    if (at >= 0 && at < view->entry_count)
        read_scan(ui, view->entries[at].id);
    else
        ui_say(ui, INK_TEXT, "there is no %s scan", by > 0 ? "earlier" : "later");
}

static void go_formats(ScanView *view, int by) {
    const int next = view->format + by, last = view->scan->format_count - 1;
    view->format = next < 0 ? 0 : next > last ? last : next;
}

static bool scan_request(Ui *ui, Request request) {
    ScanView *view = scan_view_of(ui);
    if (request == REQUEST_SCAN_START) {
        scan_ask_start(ui);
        return true;
    }
    if (view->scan->id == 0 || view->scan->unit_count == 0)
        return false;
    int row = scan_row_of(view);
    if (home_move(request, view->scan->unit_count, view->height > 1 ? view->height : 1, &row)) {
        view->unit = view->order[row];
        return true;
    }
    switch (request) {
    case REQUEST_LEFT: go_formats(view, -1); break;
    case REQUEST_RIGHT: go_formats(view, 1); break;
    case REQUEST_SCAN_EARLIER: go_scans(ui, view, 1); break;
    case REQUEST_SCAN_LATER: go_scans(ui, view, -1); break;
    case REQUEST_SCAN_FIND: ask_find(ui, view); break;
    case REQUEST_SCAN_SORT:
        view->in_model_order = !view->in_model_order;
        arrange(view);
        break;
    case REQUEST_ENTER: scan_apply(ui, false); break;
    case REQUEST_SCAN_CELL: scan_apply(ui, true); break;
    case REQUEST_COPY: {
        char text[SCAN_VERDICT_SIZE];
        scan_verdict(view->scan, text);
        ui_copy(ui, text);
        break;
    }
    default: return false;
    }
    return true;
}

static bool scan_key(Ui *ui, int key) {
    (void)ui, (void)key;
    return false;
}

static void scan_click(Ui *ui, PanelId panel, int column, int row, MouseAction action) {
    ScanView *view = scan_view_of(ui);
    const int at = view->top + row - 2; // behind the border and the titles
    (void)column;
    if (action == MOUSE_WHEEL_UP || action == MOUSE_WHEEL_DOWN)
        scan_request(ui, action == MOUSE_WHEEL_UP ? REQUEST_UP : REQUEST_DOWN);
    else if (panel == PANEL_DAMAGE && row >= 2 && row < 2 + view->height &&
             at < view->scan->unit_count)
        view->unit = view->order[at];
}

static const char *scan_label(const Ui *ui, Request request, const char *usual) {
    const ScanView *view = scan_view_of(ui);
    const bool has_scan = view->scan->id != 0 && view->scan->unit_count > 0;
    if (request == REQUEST_SETTINGS) // home offers those
        return NULL;
    if (ui->keymap.bindings[request].where == ON_ALL)
        return usual;
    switch (request) {
    case REQUEST_SCAN_START: return launch_may(ui) ? usual : NULL;
    case REQUEST_SCAN_SORT:
        return !has_scan ? NULL : view->in_model_order ? "worst first" : "as in the model";
    case REQUEST_SCAN_EARLIER:
    case REQUEST_SCAN_LATER: return view->entry_count > 1 ? usual : NULL;
    default: return has_scan ? usual : NULL;
    }
}

static const char *scan_explain(PanelId panel) {
    switch (panel) {
    case PANEL_DAMAGE:
        return "What each format does to each layer alone, all others in fp32, on the same "
               "batches, to norms and embeddings too, which are else kept in fp32 (policy auto): "
               "its damage is how far it moves gradients, as a share of what they differ by from "
               "batch to batch. A is fine, B bearable, C too much, D more than the batches differ "
               "by, X not finite; a diamond marks what the policy chose. "
               "Below: how many times as fast as in fp32 a pass is with all layers in the format, "
               "of rounds that go through all formats in turn, and between what that lies; ? where "
               "rounds leave open whether it is faster. Enter gives the policy to "
               "the run that goes on, which keeps norms and embeddings as it began, else to the "
               "form; space the format under the cursor.";
    case PANEL_CELL:
        return "The layer and the format under the cursor in words: how far its own gradients and "
               "all together are from those of fp32, how the loss changes, and what the format "
               "flushed to zero or could not hold.";
    default:
        return "What the scan proposes, and how training went on with it, beside fp32 and beside "
               "all layers low, over several seeds; ? where rounds leave open whether it is faster "
               "than fp32.";
    }
}

const Screen screen_scan = {
    .name = "scan",
    .on = ON_SCAN,
    .open = scan_open,
    .close = scan_close,
    .enter = scan_enter,
    .refresh = scan_refresh,
    .draw_header = scan_header,
    .draw_panel = scan_draw,
    .request = scan_request,
    .key = scan_key,
    .click = scan_click,
    .explain = scan_explain,
    .label = scan_label,
};
