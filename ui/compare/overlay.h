// ui/compare/overlay.h: the exponents of a layer's gradients in two of the runs that are compared,
// at one step: what is read of them, and how they are laid over each other.
//
// overlay.c reads and takes keys, overlay_draw.c draws what was read. Main thread.
#pragma once

#include "compare/what_if.h"
#include "ui/compare/compare.h"

typedef struct OverlaySide {
    int run, group;
    LayerSample sample;
    Format format;
    double scale; // NaN: unknown
} OverlaySide;

struct CompareOverlay {
    OverlaySide sides[2];            // the baseline's, and the other's
    bool is_known;                   // both have gradients of a layer
    char why[ERROR_TEXT_SIZE];       // they are not
    int64_t step, last;              // the last that both have
    char (*names)[RECORD_NAME_SIZE]; // of layers that both have gradients of
    int name_count, layer;
    char chosen[RECORD_NAME_SIZE]; // the layer that was moved to; "": the first
    int other;                     // the group that was turned to; 0: that under the cursor
    double at;                     // where in the steps, from 0 to 1
    bool wants_reading;
};
