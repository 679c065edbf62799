// cli/report/plot.h: curves as SVG, sized by the page, readable without a script.
//
// A Plot is the caller's; it borrows the curves while it is written. x is linear; y is logarithmic
// where every finite value is positive and they span a factor of 30. What was not finite is drawn
// as a cross at the upper edge, above the place where it happened: never as a gap that nobody sees.
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "store/layers.h"

typedef struct PlotCurve {
    const char *label;  // from outside
    const char *format; // whose colour it has: html_format_class
    int dash;           // of curves in one colour the how-manieth this is
    const SeriesPoint *points;
    const double *x; // where each stands; NULL: at its step
    int count;
} PlotCurve;

typedef struct PlotMark { // a skipped step, below the curves
    double x;
} PlotMark;

typedef struct Plot {
    const char *title, *x_name;
    const PlotCurve *curves;
    int curve_count;
    const PlotMark *marks;
    int mark_count;
    const char *mark_name; // "skipped steps"
} Plot;

// Nothing where no curve has two points, or they lie too far apart for doubles.
void plot_write(FILE *out, const Plot *plot);

// The exponents of a layer's true gradients as bars, for a cell of a table, from the bin `first` to
// `last` of the sample. Behind them a band: what its format can hold at `scale` with all its
// digits; none where it is no plain format.
void plot_exponents(FILE *out, const LayerSample *sample, int first, int last, const char *format,
                    double scale);
