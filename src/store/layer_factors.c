#include "store/layer_factors.h"

#include <stdlib.h>

#include "store/schema.h"
#include "store/series_private.h"

static const char table[] = "layer_factors";
static const char cannot_read[] = "what became of layers' factors cannot be read";

// ---- writing ------------------------------------------------------------------------------------

bool store_add_factors(Store *store, int64_t run, int segment, const LayerFactors *factors,
                       Error *error) {
    Query query;
    if (!store_make_table(store, table, error) ||
        !query_begin(&query, store,
                     "INSERT OR REPLACE INTO layer_factors "
                     "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                     error))
        return false;
    query_put_integer(&query, run);
    query_put_integer(&query, segment);
    query_put_integer(&query, factors->step);
    query_put_integer(&query, factors->layer);
    query_put_text(&query, factors->role);
    query_put_text(&query, factors->precision);
    const int64_t counts[] = {factors->count, factors->flushed, factors->subnormal,
                              factors->saturated, factors->broken};
    for (int i = 0; i < 5; i++)
        query_put_integer(&query, counts[i]);
    const int scales[] = {factors->least, factors->middle, factors->most};
    for (int i = 0; i < 3; i++)
        query_put_known(&query, factors->has_scales ? scales[i] : RECORD_UNKNOWN);
    query_next(&query);
    return query_end(&query, "what became of layers' factors cannot be written", error);
}

// ---- reading ------------------------------------------------------------------------------------

typedef struct List {
    LayerFactors *rows;
    int count, capacity;
} List;

static bool makes_sense(const LayerFactors *row) {
    const int64_t parts[] = {row->flushed, row->subnormal, row->saturated, row->broken};
    bool does = row->count > 0 && row->layer >= 0;
    for (int i = 0; i < 4; i++)
        does = does && parts[i] >= 0 && parts[i] <= row->count;
    return does;
}

static void take_row(Query *query, LayerFactors *row) {
    *row = (LayerFactors){.step = query_integer(query, 0),
                          .count = query_integer(query, 4),
                          .flushed = query_integer(query, 5),
                          .subnormal = query_integer(query, 6),
                          .saturated = query_integer(query, 7),
                          .broken = query_integer(query, 8)};
    const int64_t layer = query_integer(query, 1), least = query_known(query, 9);
    row->layer = layer >= 0 && layer < WRITER_MOST_LAYERS ? (int)layer : -1;
    query_text(query, 2, row->role, sizeof row->role);
    query_text(query, 3, row->precision, sizeof row->precision);
    row->has_scales = least != RECORD_UNKNOWN;
    if (row->has_scales) {
        row->least = (int)least;
        row->middle = (int)query_integer(query, 10);
        row->most = (int)query_integer(query, 11);
    }
}

static bool read_span(Store *store, int64_t run, const LineageSpan *span, int64_t from, int64_t to,
                      List *list, Error *error) {
    Query query;
    if (!query_begin(&query, store,
                     "SELECT step, layer, role, precision, count, flushed, subnormal, saturated, "
                     "broken, least, middle, most FROM layer_factors WHERE run = ? AND segment = ? "
                     "AND step BETWEEN ? AND ? ORDER BY step, layer, role",
                     error))
        return false;
    query_put_integer(&query, run);
    query_put_integer(&query, span->segment);
    query_put_integer(&query, from > span->after ? from : span->after + 1);
    query_put_integer(&query, to < span->until ? to : span->until);
    while (query_next(&query)) {
        if (!store_grow((void **)&list->rows, list->count, &list->capacity, sizeof *list->rows,
                        error)) {
            query_drop(&query);
            return false;
        }
        take_row(&query, &list->rows[list->count]);
        list->count += makes_sense(&list->rows[list->count]);
    }
    return query_end(&query, cannot_read, error);
}

static bool read_window(Store *store, int64_t run, const Lineage *lineage, int64_t from, int64_t to,
                        List *list, Error *error) {
    for (int i = 0; i < lineage->count; i++)
        if (!read_span(store, run, &lineage->spans[i], from, to, list, error))
            return false;
    return true;
}

// The last step of a span that has rows; -1: none.
static bool find_last(Store *store, int64_t run, const LineageSpan *span, int64_t to, int64_t *step,
                      Error *error) {
    Query query;
    *step = -1;
    if (!query_begin(&query, store,
                     "SELECT step FROM layer_factors WHERE run = ? AND segment = ? AND "
                     "step BETWEEN ? AND ? ORDER BY step DESC LIMIT 1",
                     error))
        return false;
    query_put_integer(&query, run);
    query_put_integer(&query, span->segment);
    query_put_integer(&query, span->after + 1);
    query_put_integer(&query, to < span->until ? to : span->until);
    while (query_next(&query))
        *step = query_integer(&query, 0);
    return query_end(&query, cannot_read, error);
}

static bool read_at(Store *store, int64_t run, const Lineage *lineage, int64_t step, List *list,
                    Error *error) {
    for (int i = lineage->count - 1; i >= 0; i--) {
        int64_t at;
        if (!find_last(store, run, &lineage->spans[i], step, &at, error))
            return false;
        if (at >= 0)
            return read_span(store, run, &lineage->spans[i], at, at, list, error);
    }
    return true;
}

// `from` < 0: of the last step up to `to`.
static bool read(Store *store, int64_t run, int64_t from, int64_t to, LayerFactors **factors,
                 int *count, Error *error) {
    Lineage lineage = {0};
    List list = {.count = 0};
    bool has;
    *factors = NULL;
    *count = 0;
    if (!store_begin_reading(store, error))
        return false;
    bool done = store_has_table(store, table, &has, error);
    if (done && has)
        done = lineage_read(&lineage, store, run, error) &&
               (from < 0 ? read_at(store, run, &lineage, to, &list, error)
                         : read_window(store, run, &lineage, from, to, &list, error));
    store_end_reading(store);
    lineage_clear(&lineage);
    if (!done) {
        free(list.rows);
        return false;
    }
    *factors = list.rows;
    *count = list.count;
    return true;
}

bool store_read_factors(Store *store, int64_t run, int64_t from, int64_t to, LayerFactors **factors,
                        int *count, Error *error) {
    return read(store, run, from < 0 ? 0 : from, to, factors, count, error);
}

bool store_read_factors_at(Store *store, int64_t run, int64_t step, LayerFactors **factors,
                           int *count, Error *error) {
    return read(store, run, -1, step, factors, count, error);
}
