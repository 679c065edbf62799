#include "ui/cells/frame.h"

#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/rune.h"
#include "base/sanitize.h"
#include "ui/cells/glyphs.h"
#include "ui/cells/words.h"

static const Cell blank = {.rune = ' '};

static int clamp(int value, int least, int most) {
    return value < least ? least : value > most ? most : value;
}

bool frame_init(Frame *frame, int columns, int rows, Error *error) {
    columns = clamp(columns, 1, FRAME_MOST);
    rows = clamp(rows, 1, FRAME_MOST);
    Cell *cells = realloc(frame->cells, (size_t)columns * (size_t)rows * sizeof *cells);
    if (!cells)
        return error_fail(error, ERROR_MEMORY, "no memory for a screen of %d x %d cells", columns,
                          rows);
    frame->cells = cells;
    frame->columns = columns;
    frame->rows = rows;
    frame_erase(frame);
    return true;
}

void frame_clear(Frame *frame) {
    free(frame->cells);
    *frame = (Frame){0};
}

void frame_erase(Frame *frame) {
    for (int i = 0; i < frame->columns * frame->rows; i++)
        frame->cells[i] = blank;
}

static Cell *cell_at(const Frame *frame, int column, int row) {
    return &frame->cells[row * frame->columns + column];
}

const Cell *frame_cell(const Frame *frame, int column, int row) {
    return cell_at(frame, column, row);
}

// ---- areas --------------------------------------------------------------------------------------

Area frame_area(Frame *frame) {
    return (Area){frame, 0, 0, frame->columns, frame->rows};
}

Area area_part(Area area, int column, int row, int width, int height) {
    int left = clamp(column, 0, area.width), top = clamp(row, 0, area.height);
    int right = clamp(column + width, left, area.width);
    int bottom = clamp(row + height, top, area.height);
    return (Area){area.frame, area.column + left, area.row + top, right - left, bottom - top};
}

bool area_is_empty(Area area) {
    return area.width <= 0 || area.height <= 0;
}

static bool holds(Area area, int column, int row) {
    return column >= 0 && column < area.width && row >= 0 && row < area.height;
}

// A wide character of which one half is drawn over loses the other half too.
static void break_wide(Frame *frame, int column, int row) {
    Cell *cell = cell_at(frame, column, row);
    if (cell->rune == 0 && column > 0)
        cell[-1].rune = ' ';
    if (column + 1 < frame->columns && cell[1].rune == 0)
        cell[1].rune = ' ';
}

void area_put(Area area, int column, int row, Style style, uint32_t rune) {
    int width = rune_width(rune);
    if (width == 0 || !holds(area, column, row) || !holds(area, column + width - 1, row))
        return;
    Frame *frame = area.frame;
    if (frame->ascii && rune > 0x7E) {
        for (int i = 0; i < width; i++)
            area_put(area, column + i, row, style, i == 0 ? glyph_ascii(rune) : ' ');
        return;
    }
    int at = area.column + column, line = area.row + row;
    for (int i = 0; i < width; i++)
        break_wide(frame, at + i, line);
    *cell_at(frame, at, line) = (Cell){.rune = rune, .style = style};
    if (width == 2)
        *cell_at(frame, at + 1, line) = (Cell){.style = style};
}

void area_paint(Area area, int column, int row, uint32_t above, uint32_t below) {
    if (!holds(area, column, row))
        return;
    area_put(area, column, row, style_of(INK_TEXT), GLYPH_HALF);
    Cell *cell = cell_at(area.frame, area.column + column, area.row + row);
    cell->style.ground = GROUND_PAINTED;
    cell->front = above;
    cell->back = below;
}

void area_fill(Area area, Style style) {
    for (int row = 0; row < area.height; row++)
        for (int column = 0; column < area.width; column++)
            area_put(area, column, row, style, ' ');
}

void area_set_ground(Area area, Ground ground) {
    for (int row = 0; row < area.height; row++)
        for (int column = 0; column < area.width; column++)
            cell_at(area.frame, area.column + column, area.row + row)->style.ground =
                (uint8_t)ground;
}

// ---- text ---------------------------------------------------------------------------------------

int area_text(Area area, int column, int row, Style style, const char *text) {
    for (uint32_t rune; column < area.width && (rune = rune_next(&text)) != 0;) {
        area_put(area, column, row, style, rune);
        column += rune_width(rune);
    }
    return column < area.width ? column : area.width;
}

int area_text_cut(Area area, int column, int row, int width, Style style, const char *text) {
    if (width > area.width - column)
        width = area.width - column;
    if (width <= 0)
        return column;
    if (text_width(text) <= width)
        return area_text(area, column, row, style, text);
    const char *end = text + text_fit(text, width - 1, NULL);
    int at = column;
    while (text < end) {
        uint32_t rune = rune_next(&text);
        area_put(area, at, row, style, rune);
        at += rune_width(rune);
    }
    area_put(area, at, row, style, GLYPH_ELLIPSIS);
    return at + 1;
}

int area_text_middle(Area area, int column, int row, int width, Style style, const char *text) {
    char shorter[256];
    if (width > area.width - column)
        width = area.width - column;
    word_shorten(shorter, sizeof shorter, text, width);
    return area_text_cut(area, column, row, width, style, shorter);
}

int area_outside(Area area, int column, int row, int width, Style style, const char *text) {
    char clean[2048]; // longer than any line that the history keeps
    sanitize_line(clean, sizeof clean, text, strlen(text));
    return area_text_cut(area, column, row, width, style, clean);
}

void area_text_right(Area area, int column, int row, Style style, const char *text) {
    int start = column - text_width(text);
    if (start >= 0)
        area_text(area, start, row, style, text);
    else
        area_text_cut(area, 0, row, column, style, text);
}

int area_print(Area area, int column, int row, Style style, const char *format, ...) {
    char text[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    return area_text(area, column, row, style, text);
}

Area area_to_measure(int width) {
    return (Area){.width = width, .height = INT_MAX};
}

// What follows has no row: nobody shall take the words for a whole sentence.
static void mark_cut(Area area, int column, int row, Style style) {
    if (area.frame && row + 1 == area.height)
        area_put(area, column < area.width ? column : area.width - 1, row, style, GLYPH_ELLIPSIS);
}

int area_wrap(Area area, int row, Style style, const char *text) {
    int column = 0;
    while (*text && row < area.height) {
        while (*text == ' ')
            text++;
        size_t length = strcspn(text, " \n");
        char word[256];
        snprintf(word, sizeof word, "%.*s", (int)length, text);
        int width = text_width(word);
        if (column > 0 && column + 1 + width > area.width) {
            mark_cut(area, column, row, style);
            column = 0;
            row++;
        }
        int at = column > 0 ? column + 1 : 0;
        if (length > 0)
            column = area.frame ? area_text(area, at, row, style, word) : at + width;
        text += length;
        if (*text == '\n') {
            if (text[1])
                mark_cut(area, column, row, style);
            text++;
            column = 0;
            row++;
        }
    }
    return column > 0 ? row + 1 : row;
}

// ---- boxes --------------------------------------------------------------------------------------

static void draw_border(Area area, Style style) {
    int right = area.width - 1, bottom = area.height - 1;
    for (int column = 1; column < right; column++) {
        area_put(area, column, 0, style, GLYPH_HORIZONTAL);
        area_put(area, column, bottom, style, GLYPH_HORIZONTAL);
    }
    for (int row = 1; row < bottom; row++) {
        area_put(area, 0, row, style, GLYPH_VERTICAL);
        area_put(area, right, row, style, GLYPH_VERTICAL);
    }
    area_put(area, 0, 0, style, GLYPH_TOP_LEFT);
    area_put(area, right, 0, style, GLYPH_TOP_RIGHT);
    area_put(area, 0, bottom, style, GLYPH_BOTTOM_LEFT);
    area_put(area, right, bottom, style, GLYPH_BOTTOM_RIGHT);
}

enum { BOX_MARGIN = 2 }; // the corner and a piece of line

int area_box_room(Area area, const char *title) {
    enum { GAPS = 3 }; // at both sides of the word, and a piece of line
    int room = area.width - 2 * BOX_MARGIN - 2, used = title ? text_width(title) : 0;
    used = used < room ? used : room;
    return room - (title && room > 0 ? used + 1 : 0) - GAPS;
}

Area area_box(Area area, const char *title, const char *right, bool focused) {
    if (area.width < 2 || area.height < 2)
        return area_part(area, 0, 0, 0, 0);
    draw_border(area, style_of(focused ? INK_ACCENT : INK_BORDER));
    int room = area.width - 2 * BOX_MARGIN - 2;
    if (title && room > 0) {
        int end = area_text_cut(area, BOX_MARGIN + 1, 0, room, style_bold(INK_BRIGHT), title);
        area_put(area, BOX_MARGIN, 0, style_of(INK_TEXT), ' ');
        area_put(area, end, 0, style_of(INK_TEXT), ' ');
    }
    int wanted = right ? text_width(right) : 0;
    if (wanted > 0 && wanted <= area_box_room(area, title)) {
        int end = area.width - BOX_MARGIN;
        area_put(area, end - 1, 0, style_of(INK_TEXT), ' ');
        area_text_right(area, end - 1, 0, style_of(INK_DIM), right);
        area_put(area, end - 2 - wanted, 0, style_of(INK_TEXT), ' ');
    }
    return area_part(area, 1, 1, area.width - 2, area.height - 2);
}

void area_mark_hidden(Area area, int above, int below) {
    if (area.width < 2 || area.height < 2) // which has no border
        return;
    char text[64] = "";
    if (above > 0 && below > 0)
        snprintf(text, sizeof text, " %d above, %d more below ", above, below);
    else if (above > 0)
        snprintf(text, sizeof text, " %d above ", above);
    else if (below > 0)
        snprintf(text, sizeof text, " %d more below: down ", below);
    area_text_right(area, area.width - BOX_MARGIN, area.height - 1, style_of(INK_WARN), text);
}
