// ui/cells/frame.h: what the screen shows, as a grid of cells in memory. Panels draw into areas of
// a frame; nothing drawn leaves its area. terminal.c brings a frame to the terminal, tests and the
// pictures of the README read it as it is.
//
// Colours are named by what they mean (theme.h says what they look like). Text given to an area is
// UTF-8 that has passed the sanitiser, or our own. A frame belongs to one thread; drawing allocates
// nothing and cannot fail.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

typedef enum Ink {
    INK_TEXT,
    INK_DIM,    // labels, what is there but not looked at
    INK_BRIGHT, // values, titles
    INK_BORDER,
    INK_ACCENT, // the focus and keys: one colour for both
    INK_FP32,   // a format has one colour everywhere
    INK_TF32,
    INK_BF16,
    INK_FP16,
    INK_FP8,
    INK_GOOD,
    INK_WARN,
    INK_BAD, // what is wrong, and nothing else
    INKS
} Ink;

typedef enum Ground {
    GROUND_PLAIN,
    GROUND_SELECTED,
    GROUNDS,
    GROUND_PAINTED = GROUNDS // of a cell that has colours of its own, which no theme changes
} Ground;

typedef struct Style {
    uint8_t ink, ground;
    bool bold, reverse;
} Style;

typedef struct Cell {
    uint32_t rune; // 0: the right half of the wide character to the left
    Style style;
    uint32_t front, back; // 0xRRGGBB, of a painted cell
} Cell;

typedef struct Frame {
    int columns, rows;
    bool ascii; // no rune above 0x7E: glyphs.h
    Cell *cells;
} Frame;

enum { FRAME_MOST = 1000 }; // columns, rows

// Empty; sizes are brought into 1 .. FRAME_MOST. Given again, what was drawn is gone.
bool frame_init(Frame *frame, int columns, int rows, Error *error) MUST_CHECK;
void frame_clear(Frame *frame); // gives back the memory; {0} is fine
void frame_erase(Frame *frame); // spaces

const Cell *frame_cell(const Frame *frame, int column, int row);

typedef struct Area { // a rectangle of a frame; coordinates in it begin at 0, 0
    Frame *frame;
    int column, row, width, height;
} Area;

Area frame_area(Frame *frame);
// The part of `area` that the rectangle covers; empty (width or height 0) when it is outside.
Area area_part(Area area, int column, int row, int width, int height);
bool area_is_empty(Area area);

void area_fill(Area area, Style style); // spaces
void area_put(Area area, int column, int row, Style style, uint32_t rune);
// Two pixels, 0xRRGGBB, one above the other: for terminals of 256 colours or more, not in ASCII.
void area_paint(Area area, int column, int row, uint32_t above, uint32_t below);
// Changes the ground, or the style, of what is already drawn.
void area_set_ground(Area area, Ground ground);
// Text from a column on, cut at the area's edge; returns the column after it. Wide characters that
// would stick out are left out.
int area_text(Area area, int column, int row, Style style, const char *text);
// At most `width` columns; what is longer ends in an ellipsis.
int area_text_cut(Area area, int column, int row, int width, Style style, const char *text);
// The same, but what is longer loses its middle: names differ at their ends.
int area_text_middle(Area area, int column, int row, int width, Style style, const char *text);
// As area_text_cut, for text from outside (names, messages, paths), which is made fit to be shown
// first.
int area_outside(Area area, int column, int row, int width, Style style, const char *text);
// Ends before `column`.
void area_text_right(Area area, int column, int row, Style style, const char *text);
int area_print(Area area, int column, int row, Style style, const char *format, ...)
    __attribute__((format(printf, 5, 6)));
// Words in lines of the area's width, from `row` on; returns the row after the last one. Words that
// find no row leave an ellipsis at the end of the last.
int area_wrap(Area area, int row, Style style, const char *text);
// For area_wrap alone, which draws nothing there: how many rows words would take.
Area area_to_measure(int width);

// A border with a title at its left and a word at its right (either may be NULL); the focused one
// is drawn in the accent. Returns the area inside.
Area area_box(Area area, const char *title, const char *right, bool focused);
// How wide that word may be beside the title; a wider one is left out.
int area_box_room(Area area, const char *title);
// On such a border: how many rows of what is scrolled are not seen.
void area_mark_hidden(Area area, int above, int below);

static inline Style style_of(Ink ink) {
    return (Style){.ink = (uint8_t)ink};
}
static inline Style style_bold(Ink ink) {
    return (Style){.ink = (uint8_t)ink, .bold = true};
}
