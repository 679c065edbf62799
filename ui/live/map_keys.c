// Keys on the map of layers over time: they fold, sort, find, and move the cursors of the live
// screen.
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "ui/live/live.h"

static MapPlace place_on(const Ui *ui, const Live *live) {
    const Panel *panel = layout_find(&ui->layout, PANEL_MAP);
    return panel ? live_map_place(live, panel->width, panel->height) : (MapPlace){.rows = 0};
}

static void arrange(Ui *ui, Live *live) {
    live_map_arrange(&live->map, place_on(ui, live).rows);
    ui->dirty = true;
}

// Rows that lie before or after the selected one; of a block its worst layer is selected.
static void go_rows(Ui *ui, Live *live, int by) {
    const LiveMap *map = &live->map;
    int at = live_map_row(live);
    at = at < 0 ? 0 : at + by;
    at = at >= map->row_count ? map->row_count - 1 : at < 0 ? 0 : at;
    if (map->row_count > 0)
        live_select_layer(ui, live, map->rows[at].worst);
}

static void go_columns(Ui *ui, Live *live, int by) {
    const LiveMap *map = &live->map;
    int64_t a_column = map->columns > 1 ? (map->right - map->left) / (map->columns - 1) : 1;
    a_column = a_column > 1 ? a_column : 1;
    live_go_to_step(ui, live, live->data.step + by * a_column);
}

// ---- blocks -------------------------------------------------------------------------------------

static void fold(Ui *ui, Live *live) {
    LiveMap *map = &live->map;
    if (live_map_row(live) < 0)
        return;
    if (!blocks_fold(map->layers, map->layer_count, live->view.layer)) {
        ui_say(ui, INK_TEXT, "%s lies in no block of layers", map->names[live->view.layer]);
        return;
    }
    map->is_chosen = true;
    arrange(ui, live);
    go_rows(ui, live, 0);
}

// Opens a block; goes to a layer on the other panels, at the step of the cursor.
static void enter(Ui *ui, Live *live) {
    LiveMap *map = &live->map;
    if (live_map_row(live) >= 0 && blocks_open(map->layers, map->layer_count, live->view.layer)) {
        map->is_chosen = true;
        arrange(ui, live);
        return;
    }
    live->focus_before = PANEL_LAYERS;
    live_page_close(ui, live);
}

// One part less of every name; after the first part again all.
static void show_fewer(Ui *ui, Live *live) {
    LiveMap *map = &live->map;
    int deepest = blocks_deepest(map->layers, map->layer_count);
    if (!map->cells)
        return;
    if (deepest < 2) {
        ui_say(ui, INK_TEXT, "these layers lie in no blocks: their names have one part");
        return;
    }
    int parts = map->parts > 0 ? map->parts : deepest;
    map->parts = parts > 1 ? parts - 1 : 0;
    map->is_chosen = true;
    blocks_show(map->layers, map->layer_count, map->parts);
    arrange(ui, live);
    go_rows(ui, live, 0);
}

// ---- finding ------------------------------------------------------------------------------------

static bool has(const char *name, const char *part) {
    size_t length = strlen(part);
    for (; *name; name++)
        if (strncasecmp(name, part, length) == 0)
            return true;
    return false;
}

// The next after `from` whose name has it, around the end; -1: none.
static int find(const LiveMap *map, int from, const char *part) {
    for (int i = 1; i <= map->layer_count; i++) {
        int at = (from + i) % map->layer_count;
        if (map->layers[at].is_there && has(map->names[at], part))
            return at;
    }
    return -1;
}

static void try_find(Ui *ui, const char *text) {
    Live *live = ui->state[SCREEN_LIVE];
    LiveMap *map = &live->map;
    int before = map->layer_before;
    int at = text[0] && map->layer_count > 0 ? find(map, before, text) : before;
    live_select_layer(ui, live, at >= 0 ? at : before);
}

static bool check_find(Ui *ui, const char *text, Error *error) {
    const Live *live = ui->state[SCREEN_LIVE];
    if (text[0] && live->map.layer_count > 0 && find(&live->map, -1, text) < 0)
        return error_fail(error, ERROR_USAGE, "no layer that has gradients has this in its name");
    return true;
}

// What is found is shown by itself. Nothing typed: the next one that has what was typed last.
static void take_find(Ui *ui, const char *text) {
    Live *live = ui->state[SCREEN_LIVE];
    LiveMap *map = &live->map;
    if (text[0])
        snprintf(map->sought, sizeof map->sought, "%s", text);
    try_find(ui, map->sought);
    while (map->sought[0] && live_map_row(live) >= 0 &&
           blocks_open(map->layers, map->layer_count, live->view.layer))
        map->is_chosen = true;
    arrange(ui, live);
}

static void drop_find(Ui *ui) {
    Live *live = ui->state[SCREEN_LIVE];
    live_select_layer(ui, live, live->map.layer_before);
}

static void ask_find(Ui *ui, Live *live) {
    live->map.layer_before = live->view.layer;
    prompt_ask(ui, "find layer", "", take_find);
    ui->prompt.check = check_find;
    ui->prompt.changed = try_find;
    ui->prompt.dropped = drop_find;
    ui->prompt.hint = "a part of its name · enter: the next one that has it";
}

// ---- requests -----------------------------------------------------------------------------------

bool live_map_request(Ui *ui, Live *live, Request request) {
    int page = place_on(ui, live).rows;
    page = page > 1 ? page : 1;
    switch (request) {
    case REQUEST_UP: go_rows(ui, live, -1); break;
    case REQUEST_DOWN: go_rows(ui, live, 1); break;
    case REQUEST_PAGE_UP: go_rows(ui, live, -page); break;
    case REQUEST_PAGE_DOWN: go_rows(ui, live, page); break;
    case REQUEST_LEFT: go_columns(ui, live, -1); break;
    case REQUEST_RIGHT: go_columns(ui, live, 1); break;
    case REQUEST_ENTER: enter(ui, live); break;
    case REQUEST_FORMAT: fold(ui, live); break;
    case REQUEST_SERIES: show_fewer(ui, live); break;
    case REQUEST_FIND: ask_find(ui, live); break;
    case REQUEST_MAP_SORT:
        live->map.by_damage = !live->map.by_damage;
        arrange(ui, live);
        break;
    default: return false;
    }
    return true;
}

bool live_map_label(const Live *live, Request request, const char **label) {
    const LiveMap *map = &live->map;
    bool has_blocks = blocks_deepest(map->layers, map->layer_count) > 1;
    switch (request) {
    case REQUEST_FORMAT: *label = has_blocks ? "fold" : NULL; break;
    case REQUEST_SERIES: *label = has_blocks ? "blocks" : NULL; break;
    case REQUEST_FIND: break;
    case REQUEST_MAP_SORT: *label = map->by_damage ? "as in the model" : "worst first"; break;
    default: return false;
    }
    return true;
}
