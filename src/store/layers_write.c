// The layers' half of the writer.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "store/series_private.h"

LadderSource writer_layer_source(const SeriesWriter *writer, int layer) {
    return (LadderSource){
        .store = writer->store, .owner = writer->run, .layer = layer, .name = "of a layer"};
}

static Ladder *layer_ladder(SeriesWriter *writer, int layer, Error *error) {
    if (layer < 0 || layer >= WRITER_MOST_LAYERS) {
        error_fail(error, ERROR_FAILED, "layer %d: statistics are kept of up to %d layers", layer,
                   WRITER_MOST_LAYERS);
        return NULL;
    }
    if (layer >= writer->layer_count) {
        int count = layer + 1;
        Ladder *layers = realloc(writer->layers, (size_t)count * sizeof *layers);
        if (!layers) {
            error_fail(error, ERROR_MEMORY, "no memory for the statistics of %d layers", count);
            return NULL;
        }
        memset(layers + writer->layer_count, 0,
               (size_t)(count - writer->layer_count) * sizeof *layers);
        writer->layers = layers;
        writer->layer_count = count;
    }
    Ladder *ladder = &writer->layers[layer];
    if (!ladder->kind && !ladder_make(ladder, &layer_kind, writer->from, error))
        return NULL;
    return ladder;
}

bool layers_add(SeriesWriter *writer, int layer, const LayerSample *sample, Error *error) {
    Ladder *ladder = layer_ladder(writer, layer, error);
    if (!ladder)
        return false;
    if (sample->width < 1 || sample->width > LADDER_LAST_STEP)
        return error_fail(error, ERROR_FAILED, "layer %d: a sample over %lld steps", layer,
                          (long long)sample->width);
    return ladder_add(ladder, sample, error) || error_prefix(error, "layer %d", layer);
}

// The next layer after `layer` that has rows; -1: none.
static bool find_next(const SeriesWriter *writer, int64_t *layer, Error *error) {
    Query query;
    if (!query_begin(&query, writer->store,
                     "SELECT layer FROM layer_samples WHERE run = ?1 AND layer > ?2 "
                     "ORDER BY layer LIMIT 1",
                     error))
        return false;
    query_put_integer(&query, writer->run);
    query_put_integer(&query, *layer);
    *layer = query_next(&query) ? query_integer(&query, 0) : -1;
    return query_end(&query, "samples of layers cannot be read", error);
}

bool writer_rebuild_layers(SeriesWriter *writer, const Lineage *lineage, Error *error) {
    int64_t layer = -1;
    for (;;) {
        if (!find_next(writer, &layer, error))
            return false;
        if (layer < 0 || layer >= WRITER_MOST_LAYERS)
            return true;
        Ladder *ladder = layer_ladder(writer, (int)layer, error);
        LadderSource source = writer_layer_source(writer, (int)layer);
        if (!ladder || !ladder_rebuild(ladder, &source, lineage, writer->from, error) ||
            !ladder_write(ladder, &source, writer->segment, 0, error))
            return false;
        ladder_settle(ladder, true);
    }
}
