// The map of layers over time, drawn.
#include <stdio.h>
#include <string.h>

#include "base/rune.h"
#include "ui/cells/glyphs.h"
#include "ui/live/live.h"

enum { MARGIN = 1, CURSOR = 1, FORMAT_WIDTH = 6, SHARE_WIDTH = 7, HEAD = 1, STEPS = 1 };

// ---- shades -------------------------------------------------------------------------------------

typedef struct Shade {
    double most; // of the share lost, for this one
    uint32_t rune;
    char ascii;
    Ink ink;
    const char *words; // in the legend
} Shade;

// Told apart by their ink alone, without colours too.
static const Shade shades[] = {
    {0, GLYPH_DOT, '-', INK_DIM, "none"},
    {0.01, GLYPH_SHADE, '.', INK_TEXT, "to 1 %"},
    {0.05, GLYPH_SHADE + 1, ':', INK_WARN, "to 5 %"},
    {0.25, GLYPH_SHADE + 2, '%', INK_BAD, "to 25 %"},
    {1, GLYPH_BLOCK_FULL, '#', INK_BAD, "more"},
};
static const Shade gone = {1, '0', '0', INK_BAD, "all zero"};
static const Shade broken = {1, GLYPH_CROSS, 'x', INK_BAD, "over"};
enum { SHADES = sizeof shades / sizeof *shades };

static const Shade *shade_of(const MapCell *cell) {
    if (cell->state == MAP_BROKEN)
        return &broken;
    if (cell->state == MAP_GONE)
        return &gone;
    int at = 0;
    while (at + 1 < SHADES && (double)cell->lost > shades[at].most)
        at++;
    return &shades[at];
}

static void put_shade(Area area, int column, int row, const Shade *shade) {
    bool ascii = area.frame && area.frame->ascii; // none: it is only measured
    area_put(area, column, row, style_of(shade->ink),
             ascii ? (uint32_t)(unsigned char)shade->ascii : shade->rune);
}

// ---- where things are ---------------------------------------------------------------------------

static int longest_name(const Live *live) {
    int longest = 0;
    for (int i = 0; i < live->data.record.layer_count; i++) {
        char name[RECORD_NAME_SIZE * 2];
        live_clean(name, sizeof name, live->data.record.layers[i].name);
        int width = text_width(name);
        longest = width > longest ? width : longest;
    }
    return longest;
}

// Returns the row after the last one; in an area without height it is only measured.
static int draw_legend(Area area, int row) {
    const Shade *all[SHADES + 2];
    int column = area_text(area, 0, row, style_of(INK_DIM), "lost:");
    for (int i = 0; i < SHADES; i++)
        all[i] = &shades[i];
    all[SHADES] = &gone;
    all[SHADES + 1] = &broken;
    for (int i = 0; i < SHADES + 2; i++) {
        int wanted = 2 + 2 + text_width(all[i]->words);
        if (column + wanted > area.width) {
            row++;
            column = -2;
        }
        column += 2;
        put_shade(area, column, row, all[i]);
        column = area_text(area, column + 2, row, style_of(INK_DIM), all[i]->words);
    }
    return row + 1;
}

MapPlace live_map_place(const Live *live, int width, int height) {
    enum { BORDER = 2, NAME_LEAST = 10, SHARE_OF_NAME = 4, SENTENCE = 1, LEAST_ROWS = 3 };
    int inside = width - BORDER, longest = longest_name(live), most = inside / SHARE_OF_NAME;
    MapPlace place = {.name_columns = longest < most ? longest : most};
    if (place.name_columns < NAME_LEAST)
        place.name_columns = NAME_LEAST;
    place.first = CURSOR + place.name_columns + 1 + FORMAT_WIDTH;
    place.columns = inside - place.first - SHARE_WIDTH - MARGIN;
    place.columns = place.columns > 0 ? place.columns : 0;
    place.foot = SENTENCE + draw_legend((Area){.width = inside - 2 * MARGIN}, 0);
    place.rows = height - BORDER - HEAD - STEPS - place.foot;
    if (place.rows < LEAST_ROWS) {
        place.rows += place.foot;
        place.foot = 0;
    }
    place.rows = place.rows > 0 ? place.rows : 0;
    return place;
}

int live_map_top(const Live *live, const MapPlace *place) {
    int at = live_map_row(live), most = live->map.row_count - place->rows;
    int top = at - place->rows / 2;
    top = top > most ? most : top;
    return top > 0 ? top : 0;
}

// ---- drawing ------------------------------------------------------------------------------------

static int cursor_column(const Live *live) {
    const LiveMap *map = &live->map;
    PlotAxes axes = {.left = (double)map->left, .right = (double)map->right};
    if (live->view.cursor == LIVE_FOLLOWS && live->data.right >= map->right)
        return map->columns - 1;
    return plot_column_of(&axes, map->columns, (double)live->data.step);
}

// Of the layers in a block, where they have the same.
static const char *format_of(const Live *live, int row) {
    const LiveMap *map = &live->map;
    const char *format = NULL;
    for (int i = 0; i < map->layer_count; i++) {
        Format one = map->row_of[i] == row ? live_own_format(live, i) : FORMAT_COUNT;
        const char *name = one == FORMAT_COUNT ? NULL : format_name(one);
        if (name && format && strcmp(name, format) != 0)
            return "mixed";
        format = name ? name : format;
    }
    return format ? format : "–";
}

static void draw_name(const Live *live, Area area, const MapPlace *place, int at, int row) {
    const MapRow *shown = &live->map.rows[at];
    char name[160], text[32] = "";
    bool is_selected = at == live_map_row(live);
    Style style = is_selected ? style_bold(INK_BRIGHT) : style_of(INK_TEXT);
    snprintf(name, sizeof name, "%.*s", shown->block.length, live->map.names[shown->block.layer]);
    if (shown->block.count > 1)
        snprintf(text, sizeof text, " +%d", shown->block.count);
    int more = text_width(text);
    int end = area_text_middle(area, CURSOR, row, place->name_columns - more, style, name);
    area_text(area, end, row, style_of(INK_ACCENT), text);
    if (is_selected)
        area_put(area, 0, row, style_bold(INK_ACCENT), GLYPH_CURSOR);
}

// The layer of a row that lost most at the step of the cursor; -1: nothing was counted there.
static int worst_here(const Live *live, int row, MapCell *cell) {
    const LiveMap *map = &live->map;
    int worst = -1;
    *cell = (MapCell){MAP_UNKNOWN, 0};
    for (int i = 0; i < map->layer_count && i < live->data.layer_count; i++) {
        const LayerSample *sample = &live->data.layers[i];
        if (map->row_of[i] != row || sample->width == 0 || sample->count == 0)
            continue;
        MapCell one = live_map_cell_here(live, i);
        if (worst < 0 || live_map_damage(one) > live_map_damage(*cell)) {
            *cell = one;
            worst = i;
        }
    }
    return worst;
}

static void draw_here(const Live *live, Area area, int at, int row) {
    MapCell cell;
    int end = area.width - MARGIN;
    if (worst_here(live, at, &cell) < 0)
        area_text_right(area, end, row, style_of(INK_DIM), "–");
    else if (cell.state == MAP_GONE)
        area_text_right(area, end, row, style_bold(INK_BAD), "all 0");
    else
        live_draw_share(area, end, row, (double)cell.lost, shade_of(&cell)->ink);
}

static void draw_row(const Live *live, Area area, const MapPlace *place, int at, int row) {
    const LiveMap *map = &live->map;
    const MapCell *cells = map->row_cells + (size_t)at * (size_t)map->columns;
    const char *format = format_of(live, at);
    draw_name(live, area, place, at, row);
    area_text_cut(area, CURSOR + place->name_columns + 1, row, FORMAT_WIDTH - 1,
                  style_of(live_ink(format)), format);
    for (int i = 0; i < map->columns; i++)
        if (cells[i].state != MAP_UNKNOWN)
            put_shade(area, place->first + i, row, shade_of(&cells[i]));
    draw_here(live, area, at, row);
    if (at == live_map_row(live))
        area_set_ground(area_part(area, 0, row, area.width, 1), GROUND_SELECTED);
}

// What became of the gradients at the cursor; of a block's, those of the layer that lost most.
static void say_selected(const Live *live, Area area, int row) {
    const LiveMap *map = &live->map;
    int at = live_map_row(live);
    char among[80], count[32] = "", of[32] = "", text[600];
    MapCell cell;
    if (at < 0)
        return;
    const MapRow *shown = &map->rows[at];
    int layer = worst_here(live, at, &cell);
    if (layer < 0) {
        area_print(area, 0, row, style_of(INK_DIM), "nothing was counted at step %s",
                   word_count(live->data.step).text);
        return;
    }
    if (shown->block.count > 1)
        snprintf(count, sizeof count, ", worst of %d", shown->block.count);
    WhatIfShares shares = live_shares(live, layer);
    const FactorShares own = live_factors(live, layer);
    if (own.is_known)
        snprintf(of, sizeof of, " of its %ss", own.of->role);
    live_say_steps(among, sizeof among, &live->data.layers[layer]);
    snprintf(text, sizeof text, "%s%s%s: %s%s flushed, %s over, %s zero", map->names[layer], count,
             among, word_share(shares.flushed).text, of, word_share(shares.broken).text,
             word_share(shares.zero).text);
    area_text_cut(area, 0, row, area.width, style_of(INK_BRIGHT), text);
}

static void draw_head(const Live *live, Area area, const MapPlace *place) {
    Style style = style_of(INK_DIM);
    char text[48];
    area_text_cut(area, CURSOR, 0, place->name_columns, style, "layer");
    area_text_cut(area, CURSOR + place->name_columns + 1, 0, FORMAT_WIDTH - 1, style, "in");
    snprintf(text, sizeof text, "at step %s", word_count(live->data.step).text);
    int end = area.width - MARGIN - text_width(text) - 2;
    area_text_cut(area, place->first, 0, end - place->first, style, "share lost, step by step");
    area_text_right(area, area.width - MARGIN, 0, style, text);
}

void live_draw_map(const Live *live, Area area, bool focused) {
    const LiveMap *map = &live->map;
    const RunRecord *record = &live->data.record;
    MapPlace place = live_map_place(live, area.width, area.height);
    char right[96] = "";
    if (map->row_count > 0)
        snprintf(right, sizeof right, "%d of %d rows · %s", live_map_row(live) + 1, map->row_count,
                 map->by_damage ? "worst first" : "as in the model");
    Area inside = area_box(area, panel_name(PANEL_MAP), right, focused);
    if (map->row_count == 0 || map->columns != place.columns) {
        area_wrap(area_part(inside, 1, 0, inside.width - 2, inside.height), 1, style_of(INK_DIM),
                  !live->data.is_known ? live_say_no_run(live)
                  : record->layer_count == 0
                      ? (live_is_over(record) ? "this run has no layers"
                                              : "the layers are known after the first step")
                      : "no gradients were counted in these steps");
        return;
    }
    draw_head(live, inside, &place);
    int top = live_map_top(live, &place);
    int shown = map->row_count - top < place.rows ? map->row_count - top : place.rows;
    for (int i = 0; i < shown; i++)
        draw_row(live, inside, &place, top + i, HEAD + i);
    int cursor = cursor_column(live);
    if (cursor >= 0)
        area_set_ground(area_part(inside, place.first + cursor, HEAD, 1, shown), GROUND_SELECTED);
    live_label_steps(live,
                     area_part(inside, 0, 0, place.first + place.columns, HEAD + shown + STEPS),
                     place.first);
    Area foot = area_part(inside, MARGIN, inside.height - place.foot, inside.width - 2 * MARGIN,
                          place.foot);
    say_selected(live, foot, 0);
    draw_legend(foot, 1);
}

// ---- the mouse ----------------------------------------------------------------------------------

void live_map_click(Ui *ui, Live *live, const Panel *panel, int column, int row,
                    MouseAction action) {
    const LiveMap *map = &live->map;
    MapPlace place = live_map_place(live, panel->width, panel->height);
    int at = live_map_top(live, &place) + row - 1 - HEAD;
    int cell = column - 1 - place.first;
    if (action == MOUSE_WHEEL_UP || action == MOUSE_WHEEL_DOWN) {
        live_map_request(ui, live, action == MOUSE_WHEEL_UP ? REQUEST_UP : REQUEST_DOWN);
        return;
    }
    if (row - 1 - HEAD < 0 || row - 1 - HEAD >= place.rows || at >= map->row_count)
        return;
    live_select_layer(ui, live, map->rows[at].worst);
    if (cell < 0 || cell >= map->columns)
        return;
    PlotAxes axes = {.left = (double)map->left, .right = (double)map->right};
    live_go_to_step(ui, live, (int64_t)(plot_x_of(&axes, map->columns, cell) + 0.5));
}
