// store/skips.h: the layers whose gradients were not finite in a step that was skipped, as the text
// of its event (EVENT_SKIP, store/events.h) lists them: at its end, the one to blame first, the
// others by how many of their values were not finite. Written and read here alone; any thread.
//
// Events of older runs have no list, and their `layer` is the first of the model that was touched.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "store/events.h"

enum { SKIP_MOST_LAYERS = 8, SKIP_LAYERS_TEXT_SIZE = 288 };

typedef struct SkippedLayer {
    char name[EVENT_LAYER_SIZE]; // from outside
    int64_t broken, count;       // values of its gradients: not finite (rounded to its format), all
} SkippedLayer;

typedef struct SkippedLayers {
    SkippedLayer layers[SKIP_MOST_LAYERS];
    int count;
    int more; // layers that the text had no room for
} SkippedLayers;

// "; not finite: head 158 of 1290, conv1 11 of 160 and 3 layers more"; "" of none. `more` are
// those beyond the ones given.
void skip_layers_write(const SkippedLayer *layers, int count, int more,
                       char text[SKIP_LAYERS_TEXT_SIZE]);
// Of any event; false where it lists none.
bool skip_layers_read(const Event *event, SkippedLayers *layers);
