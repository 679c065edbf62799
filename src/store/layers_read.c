// Samples of layers read back: one layer over a window, or all of them at a step.
#include "store/series_private.h"

bool store_read_layer(Store *store, int64_t run, int layer, int64_t from, int64_t to, int most,
                      LayerSample **samples, int *count, Error *error) {
    Rows rows = {.size = sizeof(LayerSample)};
    LadderSource source = {.store = store, .owner = run, .layer = layer, .name = "of a layer"};
    Lineage lineage = {0};
    *samples = NULL;
    *count = 0;
    if (!store_begin_reading(store, error))
        return false;
    bool done = lineage_read(&lineage, store, run, error) &&
                ladder_read(&layer_kind, &source, &lineage, from, to, most, &rows, error);
    store_end_reading(store);
    lineage_clear(&lineage);
    if (done) {
        *samples = (LayerSample *)(void *)rows.items;
        *count = rows.count;
        rows.items = NULL;
    }
    rows_clear(&rows);
    return done;
}

// The step of the last row of the level from `first` to `last`; -1: none.
static bool find_last(const LadderSource *source, int level, int segment, int64_t first,
                      int64_t last, int64_t *step, Error *error) {
    Query query;
    if (!query_begin(&query, source->store,
                     "SELECT step FROM layer_samples WHERE run = ?1 AND layer = ?2 AND level = ?3 "
                     "AND segment = ?4 AND step BETWEEN ?5 AND ?6 ORDER BY step DESC LIMIT 1",
                     error))
        return false;
    const int64_t values[] = {source->owner, source->layer, level, segment, first, last};
    for (int i = 0; i < 6; i++)
        query_put_integer(&query, values[i]);
    *step = query_next(&query) ? query_integer(&query, 0) : -1;
    return query_end(&query, "samples of layers cannot be read", error);
}

// The finest sample that covers the step.
static bool read_at(const LadderSource *source, const Lineage *lineage, int64_t step,
                    LayerSample *sample, Error *error) {
    Rows rows = {.size = sizeof(LayerSample)};
    bool done = false;
    for (int level = 0; level < LADDER_LEVELS; level++) {
        int64_t begin = ladder_begin(step, level), end = begin + ladder_width(level) - 1;
        for (int i = 0; i < lineage->count; i++) {
            const LineageSpan *span = &lineage->spans[i];
            if (end <= span->after || end > span->until)
                continue;
            int64_t found;
            // A sample of level 0 may span more than a step.
            int64_t first = level > 0 ? begin : span->after + 1;
            if (!find_last(source, level, span->segment, first, step, &found, error))
                goto done;
            rows.count = 0;
            if (found >= 0 &&
                !layer_kind.read(source, level, span->segment, found, found, 1, &rows, error))
                goto done;
            if (rows.count == 0)
                continue;
            const LayerSample *row = rows_at(&rows, 0);
            if (step - row->step < row->width) {
                *sample = *row;
                done = true;
                goto done;
            }
        }
    }
    done = true;
done:
    rows_clear(&rows);
    return done;
}

bool store_read_layers_at(Store *store, int64_t run, int64_t step, LayerSample *samples, int count,
                          Error *error) {
    Lineage lineage = {0};
    for (int i = 0; i < count; i++)
        samples[i] = (LayerSample){0};
    if (step < 0 || step > LADDER_LAST_STEP)
        return true;
    if (!store_begin_reading(store, error))
        return false;
    bool done = lineage_read(&lineage, store, run, error);
    for (int i = 0; done && i < count; i++) {
        LadderSource source = {.store = store, .owner = run, .layer = i, .name = "of a layer"};
        done = read_at(&source, &lineage, step, &samples[i], error);
    }
    store_end_reading(store);
    lineage_clear(&lineage);
    return done;
}
