#include "store/skips.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/utf8.h"

static const char start[] = "; not finite: ", between[] = ", ";

void skip_layers_write(const SkippedLayer *layers, int count, int more,
                       char text[SKIP_LAYERS_TEXT_SIZE]) {
    enum { ROOM_FOR_MORE = 32 };
    size_t used = 0, room = SKIP_LAYERS_TEXT_SIZE - ROOM_FOR_MORE;
    int written = 0;
    text[0] = 0;
    for (; written < count && written < SKIP_MOST_LAYERS; written++) {
        char entry[EVENT_LAYER_SIZE + 64];
        int length = snprintf(entry, sizeof entry, "%s%s %" PRId64 " of %" PRId64,
                              written == 0 ? start : between, layers[written].name,
                              layers[written].broken, layers[written].count);
        if (used + (size_t)length >= room)
            break;
        memcpy(text + used, entry, (size_t)length + 1);
        used += (size_t)length;
    }
    more += count - written;
    if (written > 0 && more > 0)
        snprintf(text + used, SKIP_LAYERS_TEXT_SIZE - used, " and %d layer%s more", more,
                 more == 1 ? "" : "s");
}

// "NAME N of M" at `text`, the name whatever comes before the numbers; what follows it. NULL: it is
// none.
static const char *read_layer(const char *text, SkippedLayer *layer) {
    for (const char *space = strchr(text, ' '); space; space = strchr(space + 1, ' ')) {
        int end = 0;
        if (sscanf(space, " %" SCNd64 " of %" SCNd64 "%n", &layer->broken, &layer->count, &end) !=
                2 ||
            end == 0)
            continue;
        utf8_copy_part(layer->name, sizeof layer->name, text, (size_t)(space - text));
        return space + end;
    }
    return NULL;
}

bool skip_layers_read(const Event *event, SkippedLayers *layers) {
    *layers = (SkippedLayers){.count = 0};
    const char *at = event->kind == EVENT_SKIP ? strstr(event->text, start) : NULL;
    if (!at)
        return false;
    at += sizeof start - 1;
    while (layers->count < SKIP_MOST_LAYERS) {
        at = read_layer(at, &layers->layers[layers->count]);
        if (!at)
            break;
        layers->count++;
        if (strncmp(at, between, sizeof between - 1) != 0)
            break;
        at += sizeof between - 1;
    }
    if (at && sscanf(at, " and %d layer", &layers->more) != 1)
        layers->more = 0;
    return layers->count > 0;
}
