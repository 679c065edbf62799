// Series read back: which there are, and their points at any zoom.
#include <stdlib.h>
#include <string.h>

#include "store/series_private.h"

// False with no error: there is no such series.
static bool find_series(Store *store, int64_t run, const char *name, int64_t *id, Error *error) {
    Query query;
    *id = 0;
    if (!query_begin(&query, store, "SELECT id FROM series WHERE run = ?1 AND name = ?2", error))
        return false;
    query_put_integer(&query, run);
    query_put_text(&query, name);
    if (query_next(&query))
        *id = query_integer(&query, 0);
    return query_end(&query, "the series of a run cannot be read", error);
}

static bool read_window(Store *store, int64_t run, const char *name, int64_t from, int64_t to,
                        int most, Rows *rows, Error *error) {
    Lineage lineage = {0};
    LadderSource source = {.store = store, .name = name};
    bool done = find_series(store, run, name, &source.owner, error) &&
                (source.owner == 0 ||
                 (lineage_read(&lineage, store, run, error) &&
                  ladder_read(&series_kind, &source, &lineage, from, to, most, rows, error)));
    lineage_clear(&lineage);
    return done;
}

bool store_read_series(Store *store, int64_t run, const char *name, int64_t from, int64_t to,
                       int most, SeriesPoint **points, int *count, Error *error) {
    Rows rows = {.size = sizeof(SeriesPoint)};
    *points = NULL;
    *count = 0;
    if (!store_begin_reading(store, error))
        return false;
    bool done = read_window(store, run, name, from, to, most, &rows, error);
    store_end_reading(store);
    if (done) {
        *points = (SeriesPoint *)(void *)rows.items;
        *count = rows.count;
        rows.items = NULL;
    }
    rows_clear(&rows);
    return done;
}

bool store_next_step(Store *store, int64_t run, const char *name, int64_t from, int64_t *step,
                     Error *error) {
    Lineage lineage = {0};
    LadderSource source = {.store = store, .name = name};
    *step = -1;
    if (!store_begin_reading(store, error))
        return false;
    bool done = find_series(store, run, name, &source.owner, error) &&
                (source.owner == 0 ||
                 (lineage_read(&lineage, store, run, error) &&
                  ladder_next_step(&series_kind, &source, &lineage, from, step, error)));
    store_end_reading(store);
    lineage_clear(&lineage);
    return done;
}

// ---- which there are ----------------------------------------------------------------------------

typedef struct SeriesList {
    SeriesInfo *infos;
    int64_t *ids;
    int count, capacity, id_capacity;
} SeriesList;

static bool list_names(Store *store, int64_t run, SeriesList *list, Error *error) {
    Query query;
    if (!query_begin(&query, store,
                     "SELECT id, name FROM series WHERE run = ?1 ORDER BY id LIMIT ?2", error))
        return false;
    query_put_integer(&query, run);
    query_put_integer(&query, WRITER_MOST_SERIES);
    while (query_next(&query)) {
        if (!store_grow((void **)&list->infos, list->count, &list->capacity, sizeof *list->infos,
                        error) ||
            !store_grow((void **)&list->ids, list->count, &list->id_capacity, sizeof *list->ids,
                        error)) {
            query_drop(&query);
            return false;
        }
        SeriesInfo *info = &list->infos[list->count];
        *info = (SeriesInfo){0};
        query_text(&query, 1, info->name, sizeof info->name);
        list->ids[list->count++] = query_integer(&query, 0);
    }
    return query_end(&query, "the series of a run cannot be read", error);
}

static bool describe(Store *store, int64_t id, const Lineage *lineage, SeriesInfo *info,
                     Error *error) {
    LadderSource source = {.store = store, .owner = id, .name = info->name};
    Rows rows = {.size = sizeof(SeriesPoint)};
    bool done = ladder_read_edge(&series_kind, &source, lineage, false, &info->count, &rows, error);
    if (done && rows.count > 0) {
        info->first_step = rows_step(&rows, 0);
        rows.count = 0;
        done = ladder_read_edge(&series_kind, &source, lineage, true, &info->count, &rows, error);
    }
    if (done && rows.count > 0) {
        const SeriesPoint *last = rows_at(&rows, 0);
        info->last_step = last->step + last->width - 1;
        info->last = series_point_value(last);
    }
    rows_clear(&rows);
    return done;
}

static bool list_all(Store *store, int64_t run, SeriesList *list, Error *error) {
    Lineage lineage;
    if (!lineage_read(&lineage, store, run, error))
        return false;
    bool done = list_names(store, run, list, error);
    int kept = 0;
    for (int i = 0; done && i < list->count; i++) {
        SeriesInfo *info = &list->infos[i];
        done = describe(store, list->ids[i], &lineage, info, error);
        // A series whose points are all superseded is not shown; damage hides how many there are.
        if (done && (info->count > 0 || store->losses > 0))
            list->infos[kept++] = *info;
    }
    list->count = kept;
    lineage_clear(&lineage);
    return done;
}

bool store_list_series(Store *store, int64_t run, SeriesInfo **series, int *count, Error *error) {
    SeriesList list = {0};
    *series = NULL;
    *count = 0;
    if (!store_begin_reading(store, error))
        return false;
    bool done = list_all(store, run, &list, error);
    store_end_reading(store);
    free(list.ids);
    if (!done) {
        free(list.infos);
        return false;
    }
    *series = list.infos;
    *count = list.count;
    return true;
}
