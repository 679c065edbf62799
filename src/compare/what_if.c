#include "compare/what_if.h"

#include <math.h>
#include <string.h>

#include "number/scaled.h"

// ---- one format at one scale --------------------------------------------------------------------

void what_if_limits(Format format, double *kept, double *normal, double *over) {
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

static const WhatIfShares unknown = {false, NAN, NAN, NAN, NAN};

WhatIfShares what_if_shares(const LayerSample *sample, Format format, double scale) {
    double total = 0;
    for (int i = 0; i < LAYER_BINS; i++)
        total += sample->bins[i];
    if (format == FORMAT_COUNT || sample->width == 0 || sample->count <= 0 || !(scale > 0) ||
        isinf(scale))
        return unknown;
    double count = (double)sample->count, zero = (double)sample->zeros / count;
    double broken = (double)(sample->nans + sample->infs) / count;
    if (total == 0) // nothing but zeros and what is not finite
        return (WhatIfShares){true, zero, 0, 0, broken};
    double kept, normal, over;
    what_if_limits(format, &kept, &normal, &over);
    int64_t counted = sample->count - sample->zeros - sample->nans - sample->infs;
    double weight = (double)counted / count / total;
    double vanished = count_below(sample, kept / scale);
    double small = count_below(sample, normal / scale);
    double above = total - count_below(sample, over / scale);
    if (what_if_fits(sample, format, scale))
        above = 0;
    return (WhatIfShares){true, zero, vanished * weight, fmax(small - vanished, 0) * weight,
                          broken + above * weight};
}

bool what_if_fits(const LayerSample *sample, Format format, double scale) {
    double kept, normal, over;
    what_if_limits(format, &kept, &normal, &over);
    return sample->largest * scale < over;
}

double what_if_own_scale(const LayerSample *sample, Format format, double scale) {
    if (!format_is_scaled(format) || !(sample->largest > 0) || isinf(sample->largest))
        return scale;
    return format_table[format].largest / sample->largest;
}

WhatIfShares what_if_counted(const LayerSample *sample) {
    if (sample->width == 0 || sample->count <= 0)
        return unknown;
    double count = (double)sample->count;
    int64_t broken = sample->nans + sample->infs + sample->overflowed;
    return (WhatIfShares){true, (double)sample->zeros / count, (double)sample->flushed / count,
                          (double)sample->subnormal / count, (double)broken / count};
}

Format what_if_format(const char *precision) {
    // Gradients of an fp8 layer are in the format with the wider range.
    Format format = strcmp(precision, "fp8") == 0 ? FORMAT_E5M2 : format_named(precision);
    return format != FORMAT_COUNT && format_is_floating(format) ? format : FORMAT_COUNT;
}

WhatIfZone what_if_zone(Format format, double scale, int exponent) {
    double kept, normal, over;
    if (format == FORMAT_COUNT || !(scale > 0))
        return ZONE_NORMAL;
    what_if_limits(format, &kept, &normal, &over);
    double middle = 1.5 * ldexp(scale, exponent);
    return middle < kept     ? ZONE_FLUSHED
           : middle < normal ? ZONE_SUBNORMAL
           : middle < over   ? ZONE_NORMAL
                             : ZONE_OVERFLOWS;
}

// ---- scales that suit ---------------------------------------------------------------------------

const double what_if_bearable = 0.005;

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

WhatIfScales what_if_scales(const LayerSample *sample, Format format) {
    double kept, normal, over;
    if (format == FORMAT_COUNT || sample->width == 0 || !(sample->largest > 0) ||
        isinf(sample->largest) || !has_finite(sample))
        return (WhatIfScales){.is_known = false};
    what_if_limits(format, &kept, &normal, &over);
    // Where values lie within a power of two is not known: the last step is tried.
    int least = (int)ceil(log2(kept / magnitude_at(sample, what_if_bearable))) - 1;
    int most = (int)floor(log2(over / sample->largest)) + 1;
    while (what_if_shares(sample, format, ldexp(1, least)).flushed > what_if_bearable)
        least++;
    while (!what_if_fits(sample, format, ldexp(1, most)))
        most--;
    return (WhatIfScales){true, least, most};
}

// ---- all formats --------------------------------------------------------------------------------

// What scales of blocks are made of.
typedef struct Blocks {
    const LayerSample *sample;
    NumberElement element;
    Format scale;  // that they are kept in
    float tensor;  // that of all, where blocks have theirs in it
    double weight; // of an element of the histogram among all
    double kept, normal;
} Blocks;

// What an element of a block is worth a step of, where its largest is this; 0: it vanishes whole.
static double scale_of_largest(const Blocks *blocks, double largest) {
    return (double)number_scale_of_block(blocks->scale, (float)largest, blocks->element, true,
                                         blocks->tensor)
        .to_numbers;
}

static double share_below(const Blocks *blocks, double limit) {
    return count_below(blocks->sample, limit) * blocks->weight;
}

// Numbers below this are flushed in a block whose largest is `largest`.
static double flushed_below(const Blocks *blocks, double largest) {
    const double scale = scale_of_largest(blocks, largest);
    return scale > 0 ? blocks->kept * scale : 2 * largest;
}

// Of blocks whose numbers come by chance: by the stretch in which the largest of so many lies. A
// power of two is gone through in several, as scales go by more than the exponent.
static void mix(const Blocks *blocks, int size, WhatIfShares *shares) {
    enum { STRETCHES = 16 };
    double below = shares->zero, before = pow(below, size); // in those there is nothing
    shares->flushed = shares->subnormal = 0;
    for (int i = 0; i < LAYER_BINS * STRETCHES; i++) {
        const int bin = i / STRETCHES;
        const double share = blocks->sample->bins[bin] * blocks->weight / STRETCHES;
        if (share <= 0)
            continue;
        const double largest =
            ldexp(1 + (i % STRETCHES + 0.5) / STRETCHES, bin + LAYER_LOWEST_EXPONENT);
        below = fmin(below + share, 1);
        const double so_far = pow(below, size);
        const double others = (so_far - before) * (size - 1) / size / below;
        const double flushed = fmin(share_below(blocks, flushed_below(blocks, largest)), below);
        const double small =
            share_below(blocks, fmin(blocks->normal * scale_of_largest(blocks, largest), largest));
        shares->flushed += others * flushed;
        shares->subnormal += others * fmax(small - flushed, 0);
        before = so_far;
    }
}

static void fill_blocks(WhatIfRow *row, const LayerSample *sample) {
    const FormatInfo *info = &format_table[row->format];
    double total = 0, over;
    for (int i = 0; i < LAYER_BINS; i++)
        total += sample->bins[i];
    const int64_t counted = sample->count - sample->zeros - sample->nans - sample->infs;
    Blocks blocks = {.sample = sample,
                     .element = number_element(row->element),
                     .scale = info->scale,
                     .weight = (double)counted / (double)sample->count / total};
    blocks.tensor = number_scale_of_tensor((float)sample->largest, blocks.element);
    what_if_limits(row->element, &blocks.kept, &blocks.normal, &over);
    const double worth = scale_of_largest(&blocks, sample->largest);
    row->scale = worth > 0 ? 1 / worth : (double)NAN;
    row->most = share_below(&blocks, flushed_below(&blocks, sample->largest));
    // What has no larger neighbour vanishes only where no scale is as small.
    row->least = 0;
    for (int i = 0; i < LAYER_BINS; i++)
        if (sample->bins[i] > 0 &&
            scale_of_largest(&blocks, ldexp(1, i + 1 + LAYER_LOWEST_EXPONENT)) <= 0)
            row->least += sample->bins[i] * blocks.weight;
    mix(&blocks, info->block, &row->shares);
    row->shares.flushed = fmin(fmax(row->shares.flushed, row->least), row->most);
}

static bool is_asked(Format format) {
    return format_trains(format) || format_multiplies(format) || format_is_scaled(format);
}

static WhatIfRow row_of(const LayerSample *sample, Format format, double loss_scale) {
    const FormatInfo *info = &format_table[format];
    WhatIfRow row = {.format = format, .element = format, .scaled = info->scaled};
    if (format_is_scaled(format))
        row.element = info->gradients;
    row.scale = what_if_own_scale(sample, row.element, loss_scale);
    if (format_is_scaled(format) && sample->largest > 0)
        row.scale = format_table[row.element].largest / sample->largest;
    row.shares = what_if_shares(sample, row.element, row.scale);
    row.suited = (WhatIfScales){.is_known = false};
    if (!format_is_scaled(format))
        row.suited = what_if_scales(sample, format);
    if (info->scaled == SCALED_BLOCK && row.shares.is_known && has_finite(sample))
        fill_blocks(&row, sample);
    else
        row.least = row.most = row.shares.flushed;
    return row;
}

int what_if_rows(const LayerSample *sample, double loss_scale, WhatIfRow rows[FORMAT_COUNT]) {
    Format formats[FORMAT_COUNT];
    const int count = format_pick(formats, is_asked);
    for (int i = 0; i < count; i++)
        rows[i] = row_of(sample, formats[i], loss_scale);
    return count;
}

// ---- of a row -----------------------------------------------------------------------------------

double what_if_broken_before(const LayerSample *sample) {
    return (double)(sample->nans + sample->infs) / (double)sample->count;
}

double what_if_overflowed(const WhatIfRow *row, const LayerSample *sample) {
    if (!row->shares.is_known || sample->zeros + sample->nans + sample->infs == sample->count)
        return (double)NAN;
    return fmax(row->shares.broken - what_if_broken_before(sample), 0);
}

double what_if_flushed(const WhatIfRow *row, const LayerSample *sample) {
    return isnan(what_if_overflowed(row, sample)) ? (double)NAN : row->shares.flushed;
}
