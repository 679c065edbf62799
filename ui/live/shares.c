// What a format does to gradients of which the histogram is known, at any loss scale.
#include <math.h>
#include <string.h>

#include "ui/live/live.h"

Format live_format(const char *precision) {
    // Gradients of an fp8 layer are in the format with the wider range.
    Format format = strcmp(precision, "fp8") == 0 ? FORMAT_E5M2 : format_named(precision);
    return format != FORMAT_COUNT && format_is_floating(format) ? format : FORMAT_COUNT;
}

void live_limits(Format format, double *kept, double *normal, double *over) {
    const FormatInfo *info = &format_table[format];
    *normal = info->smallest_normal;
    // Half of the smallest rounds to zero; without subnormals all below the normal numbers goes.
    *kept = info->smallest_subnormal > 0 ? info->smallest_subnormal / 2 : info->smallest_normal;
    int exponent;
    frexp(info->largest, &exponent);
    *over = info->largest + ldexp(1, exponent - 1 - info->mantissa_bits - 1);
}

// How many of the histogram's elements lie below a magnitude.
static double count_below(const LayerSample *sample, double limit) {
    double below = 0;
    for (int i = 0; i < LAYER_BINS; i++) {
        double low = ldexp(1, i + LAYER_LOWEST_EXPONENT);
        double part = limit / low - 1; // of the bin, which ends at twice `low`
        below += sample->bins[i] * fmin(fmax(part, 0), 1);
    }
    return below;
}

LiveShares live_shares(const LayerSample *sample, Format format, double scale) {
    double total = 0;
    for (int i = 0; i < LAYER_BINS; i++)
        total += sample->bins[i];
    if (format == FORMAT_COUNT || sample->width == 0 || sample->count <= 0 || !(scale > 0) ||
        isinf(scale))
        return (LiveShares){false, NAN, NAN, NAN};
    if (total == 0) // nothing but zeros and what is not finite
        return (LiveShares){true, 0, 0, 0};
    double kept, normal, over;
    live_limits(format, &kept, &normal, &over);
    int64_t counted = sample->count - sample->zeros - sample->nans - sample->infs;
    double weight = (double)counted / (double)sample->count / total;
    double vanished = count_below(sample, kept / scale);
    double small = count_below(sample, normal / scale);
    double above = total - count_below(sample, over / scale);
    if (live_fits(sample, format, scale))
        above = 0;
    return (LiveShares){true, vanished * weight, fmax(small - vanished, 0) * weight,
                        above * weight};
}

LiveShares live_counted(const LayerSample *sample) {
    if (sample->width == 0 || sample->count <= 0)
        return (LiveShares){false, NAN, NAN, NAN};
    double count = (double)sample->count;
    return (LiveShares){true, (double)sample->flushed / count, (double)sample->subnormal / count,
                        (double)sample->overflowed / count};
}

bool live_fits(const LayerSample *sample, Format format, double scale) {
    double kept, normal, over;
    live_limits(format, &kept, &normal, &over);
    return sample->largest * scale < over;
}

Format live_layer_format(const Live *live, int layer) {
    const LiveData *data = &live->data;
    if (layer < 0 || layer >= data->record.layer_count)
        return FORMAT_COUNT;
    Format format = FORMAT_COUNT;
    if (layer < data->layer_count && data->layers[layer].width > 0)
        format = live_format(data->layers[layer].precision);
    return format != FORMAT_COUNT ? format : live_format(data->record.layers[layer].precision);
}

int live_worst_layer(const Live *live, double *flushed) {
    int worst = -1;
    *flushed = -1;
    for (int i = 0; i < live->data.layer_count; i++) {
        LiveShares shares = live_counted(&live->data.layers[i]);
        if (shares.is_known && shares.flushed > *flushed) {
            *flushed = shares.flushed;
            worst = i;
        }
    }
    return worst;
}

int live_better_scale(const LayerSample *sample, Format format, double scale, double share) {
    for (int n = 1; n <= LIVE_MOST_HYPOTHESIS; n++) {
        double moved = ldexp(scale, n);
        if (!live_fits(sample, format, moved))
            return 0;
        LiveShares shares = live_shares(sample, format, moved);
        if (shares.is_known && shares.flushed <= share)
            return n;
    }
    return 0;
}
