// ui/live/histogram.h: what the panels of a layer's exponents share: the histogram (histogram.c)
// and its course over time (heat.c). The main thread calls.
#pragma once

#include "ui/live/live.h"

typedef struct HistogramLayer { // what the panel is of
    const LayerSample *sample;
    Format format;
    double scale; // the supposed one
    char name[RECORD_NAME_SIZE * 2];
    Ink ink;
    bool has_time_only; // it was timed, but has no weights
} HistogramLayer;

// Of the layer at the cursor; false: there is no histogram, and `shown` says what is known of it.
bool histogram_choose(const Live *live, HistogramLayer *shown);
// Where most true values of this exponent go.
WhatIfZone histogram_zone(const HistogramLayer *shown, int exponent);
// Gives what is inside.
Area histogram_box(Area area, const HistogramLayer *shown, PanelId panel, bool focused);
void histogram_say_why_empty(const Live *live, const HistogramLayer *shown, Area inside);
