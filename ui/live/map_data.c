// What the map of layers over time shows: read from the history, folded and sorted.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "ui/live/live.h"

void live_map_clear(LiveMap *map) {
    free(map->layers);
    free(map->names);
    free(map->cells);
    free(map->rows);
    free(map->row_cells);
    free(map->row_of);
    *map = (LiveMap){.by_damage = map->by_damage};
}

// ---- cells --------------------------------------------------------------------------------------

MapCell live_map_cell(const LayerSample *sample) {
    double count = (double)sample->count;
    int64_t broken = sample->nans + sample->infs;
    if (sample->count <= 0)
        return (MapCell){MAP_UNKNOWN, 0};
    return (MapCell){broken > 0             ? MAP_BROKEN
                     : live_is_gone(sample) ? MAP_GONE
                                            : MAP_COUNTED,
                     (float)((double)(sample->flushed + sample->overflowed + broken) / count)};
}

static void take_worse(MapCell *cell, MapCell other) {
    cell->lost = other.lost > cell->lost ? other.lost : cell->lost;
    cell->state = other.state > cell->state ? other.state : cell->state;
}

MapCell live_map_cell_here(const Live *live, int layer) {
    MapCell cell = live_map_cell(&live->data.layers[layer]);
    const FactorShares own = live_factors(live, layer);
    if (own.is_known)
        take_worse(&cell, (MapCell){MAP_COUNTED, (float)own.lost});
    return cell;
}

typedef struct Counted { // it holds until the next
    int64_t step;
    MapCell cell;
} Counted;

// A column shows the worst of what was counted in its steps; where nothing was, what was counted
// last before them; and of what is there already.
static void fill_cells(const LiveMap *map, const Counted *counted, int count, MapCell *cells) {
    PlotAxes axes = {.left = (double)map->left, .right = (double)map->right};
    int at = -1; // the last one that begins before the column ends
    for (int column = 0; column < map->columns; column++) {
        double from = plot_x_of(&axes, map->columns, column);
        double to = column + 1 < map->columns ? plot_x_of(&axes, map->columns, column + 1)
                                              : (double)map->right + 1;
        bool is_new = false;
        while (at + 1 < count && (double)counted[at + 1].step < fmax(to, floor(from) + 1)) {
            at++;
            take_worse(&cells[column], counted[at].cell);
            is_new = true;
        }
        if (at >= 0 && !is_new)
            take_worse(&cells[column], counted[at].cell);
    }
}

static bool fill_samples(const LiveMap *map, const LayerSample *samples, int count, MapCell *cells,
                         Error *error) {
    Counted *counted = calloc((size_t)count + 1, sizeof *counted);
    if (!counted)
        return error_fail(error, ERROR_MEMORY, "no memory for a map of %d layers",
                          map->layer_count);
    for (int i = 0; i < count; i++)
        counted[i] = (Counted){samples[i].step, live_map_cell(&samples[i])};
    fill_cells(map, counted, count, cells);
    free(counted);
    return true;
}

// What a layer in a scaled format multiplies. Of a step in which others were counted and it was
// not, and long after the last, it is not known.
static bool fill_factors(const LiveMap *map, const LayerFactors *list, int count, int layer,
                         MapCell *cells, Error *error) {
    Counted *counted = calloc((size_t)count + 2, sizeof *counted);
    int steps = 0;
    if (!counted)
        return error_fail(error, ERROR_MEMORY, "no memory for a map of %d layers",
                          map->layer_count);
    for (int i = 0; i < count; i++) {
        if (i == 0 || list[i].step != list[i - 1].step)
            counted[steps++].step = list[i].step;
        if (list[i].layer == layer)
            take_worse(&counted[steps - 1].cell,
                       (MapCell){MAP_COUNTED, (float)factor_shares(&list[i]).lost});
    }
    counted[steps++].step = factors_hold_until(&list[count - 1]) + 1;
    fill_cells(map, counted, steps, cells);
    free(counted);
    return true;
}

// ---- rows ---------------------------------------------------------------------------------------

double live_map_damage(MapCell cell) {
    return cell.state == MAP_GONE ? 1 : (double)cell.lost;
}

static double damage_of(const MapCell *cells, int columns) {
    double sum = 0;
    int count = 0;
    for (int i = 0; i < columns; i++)
        if (cells[i].state != MAP_UNKNOWN) {
            sum += live_map_damage(cells[i]);
            count++;
        }
    return count > 0 ? sum / count : 0;
}

static int by_damage(const void *a, const void *b) {
    const MapRow *one = a, *other = b;
    if (one->damage != other->damage)
        return one->damage > other->damage ? -1 : 1;
    return one->block.layer - other->block.layer;
}

static void fill_rows(LiveMap *map, const BlockRow *blocks) {
    size_t columns = (size_t)map->columns;
    double *worst = calloc((size_t)map->row_count + 1, sizeof *worst);
    for (int i = 0; i < map->row_count; i++)
        map->rows[i] = (MapRow){.block = blocks[i], .worst = blocks[i].layer};
    for (int i = 0; i < map->layer_count && worst; i++) {
        int at = map->row_of[i];
        if (at < 0)
            continue;
        double damage = damage_of(map->cells + (size_t)i * columns, map->columns);
        if (damage > worst[at]) {
            worst[at] = damage;
            map->rows[at].worst = i;
        }
    }
    free(worst);
    for (int i = 0; i < map->layer_count; i++)
        for (size_t j = 0; j < columns && map->row_of[i] >= 0; j++)
            take_worse(&map->row_cells[(size_t)map->row_of[i] * columns + j],
                       map->cells[(size_t)i * columns + j]);
    for (int i = 0; i < map->row_count; i++)
        map->rows[i].damage = damage_of(map->row_cells + (size_t)i * columns, map->columns);
}

// Puts the cells and the layers' rows where sorting put the rows.
static void follow_rows(LiveMap *map, const BlockRow *blocks, MapCell *sorted) {
    size_t columns = (size_t)map->columns;
    for (int i = 0; i < map->row_count; i++) {
        int from = 0;
        while (blocks[from].layer != map->rows[i].block.layer)
            from++;
        memcpy(sorted + (size_t)i * columns, map->row_cells + (size_t)from * columns,
               columns * sizeof *sorted);
    }
    for (int i = 0; i < map->layer_count; i++) {
        int first = map->row_of[i] >= 0 ? blocks[map->row_of[i]].layer : -1;
        for (int j = 0; j < map->row_count && first >= 0; j++)
            if (map->rows[j].block.layer == first) {
                map->row_of[i] = j;
                break;
            }
    }
}

static void sort_rows(LiveMap *map, const BlockRow *blocks) {
    MapCell *sorted = calloc((size_t)map->row_count * (size_t)map->columns + 1, sizeof *sorted);
    if (!sorted) // the model's order will do
        return;
    qsort(map->rows, (size_t)map->row_count, sizeof *map->rows, by_damage);
    follow_rows(map, blocks, sorted);
    free(map->row_cells);
    map->row_cells = sorted;
}

void live_map_arrange(LiveMap *map, int room) {
    size_t count = (size_t)map->layer_count;
    BlockRow *blocks = calloc(count + 1, sizeof *blocks);
    free(map->rows);
    free(map->row_cells);
    free(map->row_of);
    map->row_of = calloc(count + 1, sizeof *map->row_of);
    map->rows = calloc(count + 1, sizeof *map->rows);
    map->row_cells = NULL;
    map->row_count = 0;
    map->room = room;
    if (blocks && map->row_of && map->rows) {
        int deepest = blocks_deepest(map->layers, map->layer_count);
        for (int parts = deepest; !map->is_chosen && parts > 0; parts--) {
            map->parts = parts < deepest ? parts : 0;
            blocks_show(map->layers, map->layer_count, map->parts);
            if (blocks_arrange(map->layers, map->layer_count, blocks, map->row_of) <= room)
                break;
        }
        int rows = blocks_arrange(map->layers, map->layer_count, blocks, map->row_of);
        map->row_cells = calloc((size_t)rows * (size_t)map->columns + 1, sizeof *map->row_cells);
        map->row_count = map->row_cells ? rows : 0;
    }
    if (map->row_count > 0)
        fill_rows(map, blocks);
    if (map->row_count > 0 && map->by_damage)
        sort_rows(map, blocks);
    free(blocks);
}

int live_map_row(const Live *live) {
    const LiveMap *map = &live->map;
    int layer = live->view.layer;
    if (map->row_count == 0 || layer >= map->layer_count) // no rows: nor need there be row_of
        return -1;
    return map->row_of[layer] < map->row_count ? map->row_of[layer] : -1;
}

// ---- reading ------------------------------------------------------------------------------------

static bool make_room(LiveMap *map, const RunRecord *record, int columns, Error *error) {
    int count = live_layers_shown(record);
    if (count != map->layer_count || map->run != record->id) {
        live_map_clear(map);
        map->layers = calloc((size_t)count + 1, sizeof *map->layers);
        map->names = calloc((size_t)count + 1, sizeof *map->names);
        map->row_of = calloc((size_t)count + 1, sizeof *map->row_of);
    }
    free(map->cells);
    map->cells = calloc((size_t)count * (size_t)columns + 1, sizeof *map->cells);
    if (!map->layers || !map->names || !map->row_of || !map->cells) {
        live_map_clear(map);
        return error_fail(error, ERROR_MEMORY, "no memory for a map of %d layers", count);
    }
    for (int i = 0; i < count; i++) {
        live_clean(map->names[i], sizeof map->names[i], record->layers[i].name);
        map->layers[i].name = map->names[i];
    }
    map->run = record->id;
    map->layer_count = count;
    map->columns = columns;
    return true;
}

static bool read_cells(Ui *ui, const Live *live, LiveMap *map, Error *error) {
    enum { MOST_SAMPLES = 40000, LEAST = 16 }; // of all layers; of each
    int each = map->layer_count > 0 ? MOST_SAMPLES / map->layer_count : 0;
    each = each < map->columns ? each : map->columns;
    for (int i = 0; i < map->layer_count; i++) {
        LayerSample *samples;
        int count;
        if (!store_read_layer(ui->store, live->view.run, i, map->left, map->right,
                              each > LEAST ? each : LEAST, &samples, &count, error))
            return false;
        int64_t counted = 0;
        for (int j = 0; j < count; j++)
            counted += samples[j].count;
        map->layers[i].is_there = counted > 0;
        bool done =
            fill_samples(map, samples, count, map->cells + (size_t)i * (size_t)map->columns, error);
        free(samples);
        if (!done)
            return false;
    }
    return true;
}

// Those of the window, and before them those counted last before it.
static bool list_factors(Ui *ui, const Live *live, const LiveMap *map, LayerFactors **list,
                         int *count, Error *error) {
    LayerFactors *within = NULL;
    int more = 0;
    if (!store_read_factors_at(ui->store, live->view.run, map->left, list, count, error) ||
        !store_read_factors(ui->store, live->view.run, map->left + 1, map->right, &within, &more,
                            error))
        return false;
    LayerFactors *all = realloc(*list, ((size_t)*count + (size_t)more + 1) * sizeof *all);
    if (all && more > 0)
        memcpy(all + *count, within, (size_t)more * sizeof *all);
    free(within);
    *list = all ? all : *list;
    *count += all ? more : 0;
    return all ||
           error_fail(error, ERROR_MEMORY, "no memory for a map of %d layers", map->layer_count);
}

static bool read_factors(Ui *ui, const Live *live, LiveMap *map, Error *error) {
    LayerFactors *list = NULL;
    int count = 0;
    bool done = list_factors(ui, live, map, &list, &count, error);
    for (int i = 0; done && i < map->layer_count && count > 0; i++)
        done =
            fill_factors(map, list, count, i, map->cells + (size_t)i * (size_t)map->columns, error);
    free(list);
    return done;
}

// Steps that came since are waited for: longer where reading takes long.
static bool is_new_enough(const Live *live, int columns) {
    const double wait = 1, share = 20;
    const LiveMap *map = &live->map;
    const LiveData *data = &live->data;
    bool is_same = map->cells && map->run == live->view.run && map->columns == columns &&
                   map->left == data->left && map->layer_count == data->layer_count;
    bool follows = live->view.cursor == LIVE_FOLLOWS && live->view.span == 0;
    if (!is_same || map->is_of_end != live_is_over(&data->record))
        return false;
    return map->is_of_end
               ? map->right == data->right
               : (follows || map->right == data->right) && map->age < fmax(wait, share * map->cost);
}

bool live_map_is_resized(const Ui *ui, const Live *live) {
    const LiveMap *map = &live->map;
    const Panel *panel = layout_find(&ui->layout, PANEL_MAP);
    if (!panel || !map->cells)
        return false;
    MapPlace place = live_map_place(live, panel->width, panel->height);
    return place.columns != map->columns || (place.rows != map->room && !map->is_chosen);
}

bool live_map_read(Ui *ui, Live *live, Error *error) {
    LiveMap *map = &live->map;
    const LiveData *data = &live->data;
    const Panel *panel = layout_find(&ui->layout, PANEL_MAP);
    if (!panel || data->record.layer_count == 0)
        return true;
    MapPlace place = live_map_place(live, panel->width, panel->height);
    if (place.columns <= 0)
        return true;
    if (is_new_enough(live, place.columns)) {
        if (place.rows != map->room && !map->is_chosen)
            live_map_arrange(map, place.rows);
        return true;
    }
    double before = clock_seconds();
    if (!make_room(map, &data->record, place.columns, error))
        return false;
    map->left = data->left;
    map->right = data->right;
    if (!read_cells(ui, live, map, error) || !read_factors(ui, live, map, error)) {
        live_map_clear(map);
        return false;
    }
    map->is_of_end = live_is_over(&data->record);
    map->age = 0;
    map->cost = clock_seconds() - before;
    live_map_arrange(map, place.rows);
    return true;
}
