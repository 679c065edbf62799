// cli/print/curve.h: a small curve as lines of text: braille where the locale has UTF-8, else
// ASCII.
//
// The caller brings values, one a cell of the grid; NaN is no point (the curve has a gap), infinite
// is a value that was not finite: a mark on the bottom row, which never touches the axis. Nothing
// here allocates, but for what the stream does.
#pragma once

#include <stdbool.h>
#include <stdio.h>

typedef struct CurveAxis { // of y
    double low, high;
    bool is_log;
} CurveAxis;

typedef struct CurveFrame {
    int columns, rows; // of the terminal, the labels at the left not counted
    bool has_braille;
    const char *style, *plain; // escapes or "", for the curve
    const char *indent;
} CurveFrame;

enum { CURVE_LABEL_COLUMNS = 11, CURVE_MOST_CELLS = 512 };

// Room for all finite values; logarithmic when they are positive and span a factor of 30.
CurveAxis curve_axis(const double *values, int count);
// How many values a frame shows.
int curve_cells(const CurveFrame *frame);
// Fills gaps between points that lie further apart than the cells; one beside a value that was not
// finite stays.
void curve_bridge(double *values, int count);
// `values`: curve_cells(frame) of them.
void curve_print(FILE *out, const CurveFrame *frame, const CurveAxis *axis, const double *values);
// Bars of eight heights (ASCII: " .:-=+*#"), one character a value; at most `size` bytes. What is
// not positive is blank; a value that can hardly be seen still shows.
void curve_spark(char *text, size_t size, const double *values, int count, bool has_blocks);
// Whether the environment's locale is one of UTF-8.
bool curve_locale_is_utf8(void);
