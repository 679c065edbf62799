// ui/cells/plot.h: lines over steps, drawn in braille dots (two by four a cell), or in ASCII.
//
// What is not finite is a mark at the foot of its column and never moves an axis. Points that fall
// upon one column of dots are drawn as the span of their values and, as the line, their mean. Lines
// that run together take turns at the ink of the cells that they share. Pure: from numbers to
// cells.
#pragma once

#include "ui/cells/frame.h"

typedef struct PlotPoint {
    double x;               // where it begins
    double low, mean, high; // equal for a single point; NaN: nothing finite in it
    bool bad;               // holds a value that is not finite
} PlotPoint;

typedef struct PlotLine {
    const PlotPoint *points; // x rising
    int count;
    Ink ink;
    bool steps;  // held until the next point (the loss scale), not joined by a slope
    bool spans;  // draws low..high too, dimmed
    bool dotted; // every third dot only: told apart without colours
} PlotLine;

typedef struct PlotAxes {
    double left, right; // of x
    double bottom, top; // of y
    bool log_y;
} PlotAxes;

// Axes that show all finite values of the lines between left and right, with a little room; log_y
// falls back to linear where a value is not positive. Without any value: 0 .. 1.
PlotAxes plot_fit(const PlotLine *lines, int count, double left, double right, bool log_y);
// Smooths the means by an exponential average of weight 0 <= weight < 1, corrected for its start;
// bad points are stepped over.
void plot_smooth(PlotPoint *points, int count, double weight);

void plot_draw(Area area, const PlotAxes *axes, const PlotLine *lines, int count);
// Labels of the y axis into `area` (right-aligned, as many as fit its height), at round values.
void plot_label_y(Area area, const PlotAxes *axes, bool powers_of_two);
// The x of a column, and the column of an x (-1: outside), for cross-hairs.
double plot_x_of(const PlotAxes *axes, int width, int column);
int plot_column_of(const PlotAxes *axes, int width, double x);
// The row in which a line at y is drawn; -1: outside.
int plot_row_of(const PlotAxes *axes, int height, double y);
