// What became of gradients, as it was counted, and the scales that suit all layers.
#include <math.h>

#include "ui/live/live.h"

bool live_is_gone(const LayerSample *sample) {
    return sample->width > 0 && sample->count > 0 &&
           sample->zeros + sample->flushed == sample->count;
}

Format live_layer_format(const Live *live, int layer) {
    const LiveData *data = &live->data;
    if (layer < 0 || layer >= data->record.layer_count)
        return FORMAT_COUNT;
    Format format = FORMAT_COUNT;
    if (layer < data->layer_count && data->layers[layer].width > 0)
        format = what_if_format(data->layers[layer].precision);
    return format != FORMAT_COUNT ? format : what_if_format(data->record.layers[layer].precision);
}

int live_worst_layer(const Live *live, double *flushed) {
    int worst = -1;
    *flushed = -1;
    for (int i = 0; i < live->data.layer_count; i++) {
        WhatIfShares shares = live_shares(live, i);
        if (shares.is_known && shares.flushed > *flushed && !live_is_gone(&live->data.layers[i])) {
            *flushed = shares.flushed;
            worst = i;
        }
    }
    return worst;
}

// ---- scales that suit ---------------------------------------------------------------------------

WhatIfScales live_scales_of_all(const Live *live, int *count) {
    WhatIfScales all = {.is_known = false};
    *count = 0;
    for (int i = 0; i < live->data.layer_count; i++) {
        WhatIfScales one = what_if_scales(&live->data.layers[i], live_layer_format(live, i));
        if (!one.is_known)
            continue;
        all.least = *count == 0 || one.least > all.least ? one.least : all.least;
        all.most = *count == 0 || one.most < all.most ? one.most : all.most;
        all.is_known = true;
        (*count)++;
    }
    // Gradients that were not finite are in no histogram.
    LiveLimit seen = live_seen_limit(live);
    if (all.is_known && isfinite(seen.scale) && seen.scale <= ldexp(1, all.most))
        all.most = (int)ceil(log2(seen.scale)) - 1;
    return all;
}
