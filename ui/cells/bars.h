// ui/cells/bars.h: histograms, spark lines and gauges, in eighths of a cell. Pure.
#pragma once

#include "ui/cells/frame.h"

// `count` values as columns one cell wide, from the left, as high as the area at `most`; 0 draws
// nothing, anything above it at least the lowest eighth. inks: one a column, or NULL for `ink`.
void bars_draw(Area area, const double *values, int count, double most, Ink ink, const Ink *inks);
// The same in one row; columns without anything show a dot.
void spark_draw(Area area, int column, int row, int width, const double *values, int count,
                Ink ink);
// A horizontal gauge of `width` cells, `share` of it full; NaN: empty.
void gauge_draw(Area area, int column, int row, int width, double share, Ink ink);
// Brings `count` values into `width` sums, as evenly as can be; width <= count.
void bars_gather(const double *values, int count, double *sums, int width);
