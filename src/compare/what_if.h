// compare/what_if.h: what a format would do to the gradients of a layer, from the histogram of
// their exponents, at any scale: the share that is flushed to zero, becomes subnormal, overflows.
//
// Exact where a scale is a power of two, but for values that lie on a limit; else values are taken
// as spread evenly within a power of two. Formats whose blocks share scales are told by bounds, and
// by what chance would make of them: a histogram does not know which numbers are neighbours. Pure;
// any thread.
#pragma once

#include "number/format.h"
#include "store/layers.h"

// ---- one format at one scale --------------------------------------------------------------------

typedef struct WhatIfShares { // of a layer's elements
    bool is_known;
    double zero; // before they were rounded: nothing came, whatever the reason
    double flushed, subnormal;
    double broken; // not finite, rounded or before
} WhatIfShares;

WhatIfShares what_if_shares(const LayerSample *sample, Format format, double scale);
// The largest value stays finite in the format at this scale.
bool what_if_fits(const LayerSample *sample, Format format, double scale);
// The scale that a format brings along: of scaled ones what takes the layer's largest number to the
// format's, as a tensor's scale does and blocks' only better; of all others the loss scale.
double what_if_own_scale(const LayerSample *sample, Format format, double scale);
// The least magnitudes (at scale 1) that do not vanish, are normal, and overflow.
void what_if_limits(Format format, double *kept, double *normal, double *over);

// What the layer's own rounding did, as it was counted.
WhatIfShares what_if_counted(const LayerSample *sample);
// That of the gradients of a layer which computes in this precision; FORMAT_COUNT: there is none.
Format what_if_format(const char *precision);

// What becomes of true values in a format at a scale.
typedef enum WhatIfZone {
    ZONE_FLUSHED,
    ZONE_SUBNORMAL,
    ZONE_NORMAL,
    ZONE_OVERFLOWS,
    ZONES
} WhatIfZone;

// Of most that have this exponent. Of no format, or at no scale, all are as they should be.
WhatIfZone what_if_zone(Format format, double scale, int exponent);

// ---- scales that suit ---------------------------------------------------------------------------

typedef struct WhatIfScales { // powers of two
    bool is_known;            // of a layer that has finite gradients, in a format with limits
    int least, most; // that keep all but a few, and the largest; least > most: there is none
} WhatIfScales;

extern const double what_if_bearable; // the few
// The scales at which no more than what_if_bearable of the elements are flushed and none overflows.
WhatIfScales what_if_scales(const LayerSample *sample, Format format);

// ---- all formats --------------------------------------------------------------------------------

// Plain formats are at the loss scale. fp8 and its kind round gradients to their element at the
// scale of the tensor's own largest. Of blocks `shares` is what comes of numbers that are mixed by
// chance, `least` what no order avoids, `most` what no order exceeds: then each block has a number
// as large as the largest.
typedef struct WhatIfRow {
    Format format, element; // and what its numbers are made of
    FormatScaling scaled;
    double scale; // that shares are at, of blocks the least that any has
    WhatIfShares shares;
    double least, most;  // of shares.flushed
    WhatIfScales suited; // of plain formats: loss scales
} WhatIfRow;

// The formats that a layer can be set to, on whatever device.
int what_if_rows(const LayerSample *sample, double loss_scale, WhatIfRow rows[FORMAT_COUNT]);

// The share that was not finite when it came: how large that would be nobody knows.
double what_if_broken_before(const LayerSample *sample);
// What the row's format flushes, and what overflows in it alone; NaN: nothing is left to go by, as
// all was zero or not finite when it came.
double what_if_flushed(const WhatIfRow *row, const LayerSample *sample);
double what_if_overflowed(const WhatIfRow *row, const LayerSample *sample);
