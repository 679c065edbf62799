// cli/history/export.h: what the files of `mpbench export` share. A writer puts the whole of its
// format into `out`, chunk by chunk, so that memory does not grow with the run.
#pragma once

#include <stdio.h>

#include "cli/cli.h"
#include "store/layers.h"
#include "store/record.h"
#include "store/series.h"

enum { EXPORT_CHUNK_STEPS = 8192 }; // of a series, read at once

typedef struct Export {
    const Cli *cli; // what was asked
    Store *store;
    RunRecord run;
    FILE *out;
    SeriesInfo *series;
    int series_count;
    bool is_seen; // it goes to a terminal
} Export;

// Every point, and every sample of a layer, in order.
typedef void ExportPoint(Export *export, const char *name, const SeriesPoint *point, void *context);
typedef void ExportSample(Export *export, const char *name, const LayerSample *sample,
                          void *context);
bool export_each_point(Export *export, const SeriesInfo *series, ExportPoint *take, void *context,
                       Error *error) MUST_CHECK;
bool export_each_sample(Export *export, int layer, ExportSample *take, void *context,
                        Error *error) MUST_CHECK;

// export_weights.c: the newest checkpoint as it lies there; or with --precision its weights alone,
// in that format, with their scales.
bool export_weights(Export *export, Error *error) MUST_CHECK;

// export_tensorboard.c: scalars of all series and of what became of each layer's gradients, and
// their exponents as histograms.
bool export_tensorboard(Export *export, Error *error) MUST_CHECK;
