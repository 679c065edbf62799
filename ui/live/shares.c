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

static const LiveShares unknown = {false, NAN, NAN, NAN, NAN};

LiveShares live_shares(const LayerSample *sample, Format format, double scale) {
    double total = 0;
    for (int i = 0; i < LAYER_BINS; i++)
        total += sample->bins[i];
    if (format == FORMAT_COUNT || sample->width == 0 || sample->count <= 0 || !(scale > 0) ||
        isinf(scale))
        return unknown;
    double count = (double)sample->count, zero = (double)sample->zeros / count;
    double broken = (double)(sample->nans + sample->infs) / count;
    if (total == 0) // nothing but zeros and what is not finite
        return (LiveShares){true, zero, 0, 0, broken};
    double kept, normal, over;
    live_limits(format, &kept, &normal, &over);
    int64_t counted = sample->count - sample->zeros - sample->nans - sample->infs;
    double weight = (double)counted / count / total;
    double vanished = count_below(sample, kept / scale);
    double small = count_below(sample, normal / scale);
    double above = total - count_below(sample, over / scale);
    if (live_fits(sample, format, scale))
        above = 0;
    return (LiveShares){true, zero, vanished * weight, fmax(small - vanished, 0) * weight,
                        broken + above * weight};
}

LiveShares live_counted(const LayerSample *sample) {
    if (sample->width == 0 || sample->count <= 0)
        return unknown;
    double count = (double)sample->count;
    int64_t broken = sample->nans + sample->infs + sample->overflowed;
    return (LiveShares){true, (double)sample->zeros / count, (double)sample->flushed / count,
                        (double)sample->subnormal / count, (double)broken / count};
}

bool live_is_gone(const LayerSample *sample) {
    return sample->width > 0 && sample->count > 0 &&
           sample->zeros + sample->flushed == sample->count;
}

bool live_fits(const LayerSample *sample, Format format, double scale) {
    double kept, normal, over;
    live_limits(format, &kept, &normal, &over);
    return sample->largest * scale < over;
}

double live_own_scale(const LayerSample *sample, Format format, double scale) {
    if (!format_is_scaled(format) || !(sample->largest > 0) || isinf(sample->largest))
        return scale;
    return format_table[format].largest / sample->largest;
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
        if (shares.is_known && shares.flushed > *flushed && !live_is_gone(&live->data.layers[i])) {
            *flushed = shares.flushed;
            worst = i;
        }
    }
    return worst;
}

// ---- scales that suit ---------------------------------------------------------------------------

const double live_bearable = 0.005;

// The magnitude below which a share of the elements lies.
static double magnitude_at(const LayerSample *sample, double share) {
    double total = 0, below = 0;
    for (int i = 0; i < LAYER_BINS; i++)
        total += sample->bins[i];
    int64_t counted = sample->count - sample->zeros - sample->nans - sample->infs;
    double wanted = share * (double)sample->count * total / (double)counted;
    int bin = 0;
    while (bin < LAYER_BINS - 1 && below + sample->bins[bin] <= wanted)
        below += sample->bins[bin++];
    double part = sample->bins[bin] > 0 ? (wanted - below) / sample->bins[bin] : 0;
    return ldexp(1 + fmin(fmax(part, 0), 1), bin + LAYER_LOWEST_EXPONENT);
}

static bool has_finite(const LayerSample *sample) {
    for (int i = 0; i < LAYER_BINS; i++)
        if (sample->bins[i] > 0)
            return sample->count > sample->zeros + sample->nans + sample->infs;
    return false;
}

LiveScales live_scales(const LayerSample *sample, Format format) {
    double kept, normal, over;
    if (format == FORMAT_COUNT || sample->width == 0 || !(sample->largest > 0) ||
        !has_finite(sample))
        return (LiveScales){.is_known = false};
    live_limits(format, &kept, &normal, &over);
    // Where values lie within a power of two is not known: the last step is tried.
    int least = (int)ceil(log2(kept / magnitude_at(sample, live_bearable))) - 1;
    int most = (int)floor(log2(over / sample->largest)) + 1;
    while (live_shares(sample, format, ldexp(1, least)).flushed > live_bearable)
        least++;
    while (!live_fits(sample, format, ldexp(1, most)))
        most--;
    return (LiveScales){true, least, most};
}

LiveScales live_scales_of_all(const Live *live, int *count) {
    LiveScales all = {.is_known = false};
    *count = 0;
    for (int i = 0; i < live->data.layer_count; i++) {
        LiveScales one = live_scales(&live->data.layers[i], live_layer_format(live, i));
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
