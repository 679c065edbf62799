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

bool store_next_layer_step(Store *store, int64_t run, int layer, int64_t from, int64_t *step,
                           Error *error) {
    LadderSource source = {.store = store, .owner = run, .layer = layer, .name = "of a layer"};
    Lineage lineage = {0};
    *step = -1;
    if (!store_begin_reading(store, error))
        return false;
    bool done = lineage_read(&lineage, store, run, error) &&
                ladder_next_step(&layer_kind, &source, &lineage, from, step, error);
    store_end_reading(store);
    lineage_clear(&lineage);
    return done;
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
            // A sample of level 0 may span more than a step.
            int64_t first = level > 0 ? begin : span->after + 1;
            rows.count = 0;
            if (!layer_row_read_last(source, level, span->segment, first, step, &rows, error))
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
