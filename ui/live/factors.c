// What layers in formats with scales of their own multiply: what became of it at those scales.
// Their gradients of weights are kept in another format, and tell nothing of it.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "ui/live/live.h"

// Of each layer the role that loses most stands for it.
bool live_read_factors(Ui *ui, Live *live, Error *error) {
    LiveData *data = &live->data;
    int count;
    free(data->factors);
    free(data->own);
    data->factors = NULL;
    data->factor_count = 0;
    data->own = calloc((size_t)data->layer_count + 1, sizeof *data->own);
    if (!data->own)
        return error_fail(error, ERROR_MEMORY, "no memory for %d layers", data->layer_count);
    if (!store_read_factors_at(ui->store, live->view.run, data->step, &data->factors, &count,
                               error))
        return false;
    for (int i = 0; i < count; i++) {
        const FactorShares one = factor_shares(&data->factors[i]);
        const int layer = one.of->layer;
        if (layer < data->layer_count &&
            (!data->own[layer].is_known || one.lost > data->own[layer].lost))
            data->own[layer] = one;
    }
    data->factor_count = count;
    return true;
}

FactorShares live_factors(const Live *live, int layer) {
    const LiveData *data = &live->data;
    const FactorShares none = {.is_known = false};
    if (!data->own || layer < 0 || layer >= data->layer_count || !data->own[layer].is_known)
        return none;
    const LayerFactors *of = data->own[layer].of;
    // What it is in now the record knows; what it was in then, what was counted.
    const bool is_other = live->view.cursor == LIVE_FOLLOWS &&
                          strcmp(of->precision, data->record.layers[layer].precision) != 0;
    return is_other || data->step > factors_hold_until(of) ? none : data->own[layer];
}

WhatIfShares live_shares(const Live *live, int layer) {
    WhatIfShares shares = what_if_counted(&live->data.layers[layer]);
    const FactorShares own = live_factors(live, layer);
    if (!shares.is_known || !own.is_known)
        return shares;
    shares.flushed = own.flushed;
    shares.subnormal = own.subnormal;
    shares.broken = fmax(shares.broken, own.lost - own.flushed);
    return shares;
}

bool live_is_narrow(Format format) {
    return format != FORMAT_COUNT && format != FORMAT_FP64 && format != FORMAT_FP32 &&
           format != FORMAT_TF32;
}

Format live_own_format(const Live *live, int layer) {
    const LiveData *data = &live->data;
    const FactorShares own = live_factors(live, layer);
    if (layer < 0 || layer >= data->record.layer_count)
        return FORMAT_COUNT;
    const Format now = format_named(data->record.layers[layer].precision);
    if (own.is_known)
        return format_named(own.of->precision);
    const bool is_then = live->view.cursor == LIVE_FOLLOWS || data->step > data->formats_since;
    return is_then && now != FORMAT_COUNT ? now : live_layer_format(live, layer);
}
