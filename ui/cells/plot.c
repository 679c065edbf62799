#include "ui/cells/plot.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "ui/cells/glyphs.h"
#include "ui/cells/words.h"

enum { DOTS_X = 2, DOTS_Y = 4 };

// ---- axes ---------------------------------------------------------------------------------------

static double scaled(double y, bool log_y) {
    return log_y ? log(y) : y;
}

static void include(double y, double *least, double *most, bool *positive) {
    if (!isfinite(y))
        return;
    if (y <= 0)
        *positive = false;
    *least = fmin(*least, y);
    *most = fmax(*most, y);
}

PlotAxes plot_fit(const PlotLine *lines, int count, double left, double right, bool log_y) {
    const double room = 0.04; // of the height, above and below
    double least = INFINITY, most = -INFINITY;
    bool positive = true;
    for (int i = 0; i < count; i++)
        for (int j = 0; j < lines[i].count; j++) {
            const PlotPoint *point = &lines[i].points[j];
            if (point->x < left || point->x > right)
                continue;
            include(lines[i].spans ? point->low : point->mean, &least, &most, &positive);
            include(lines[i].spans ? point->high : point->mean, &least, &most, &positive);
        }
    if (least > most)
        return (PlotAxes){left, right, 0, 1, false};
    log_y = log_y && positive;
    double low = scaled(least, log_y), high = scaled(most, log_y);
    double around = high != 0 ? fabs(high) * 0.1 : 1; // of a constant
    double margin = high > low ? (high - low) * room : log_y ? 0.1 : around;
    low -= margin;
    high += margin;
    return (PlotAxes){left, right, log_y ? exp(low) : low, log_y ? exp(high) : high, log_y};
}

void plot_smooth(PlotPoint *points, int count, double weight) {
    double sum = 0, total = 0;
    for (int i = 0; i < count; i++) {
        if (!isfinite(points[i].mean))
            continue;
        sum = sum * weight + points[i].mean * (1 - weight);
        total = total * weight + (1 - weight);
        points[i].mean = sum / total;
    }
}

double plot_x_of(const PlotAxes *axes, int width, int column) {
    return width > 1 ? axes->left + (axes->right - axes->left) * column / (width - 1) : axes->left;
}

int plot_column_of(const PlotAxes *axes, int width, double x) {
    if (!(x >= axes->left && x <= axes->right))
        return -1;
    double span = axes->right - axes->left;
    return span > 0 ? (int)lround((x - axes->left) / span * (width - 1)) : 0;
}

// ---- dots ---------------------------------------------------------------------------------------

typedef struct Sheet { // the dots of an area
    Area area;
    int width, height;
    PlotAxes axes;
    int turn;         // which line is drawn, where lines share their cells' ink in turns
    bool over_dotted; // the lines before it are only dotted: it has the greater share
} Sheet;

static const char ascii_dots[DOTS_Y] = {'\'', '-', '.', '_'};

static bool holds_dots(const Sheet *sheet, const Cell *cell) {
    if (sheet->area.frame->ascii)
        return cell->rune && memchr(ascii_dots, (int)cell->rune, sizeof ascii_dots);
    return cell->rune >= GLYPH_BRAILLE && cell->rune <= GLYPH_BRAILLE + 0xFF;
}

// A cell has one ink. Lines that run together take turns, so that none hides another.
static bool is_others_turn(const Sheet *sheet, int column, const Cell *cell) {
    enum { TURN_COLUMNS = 2, DOTTED_EVERY = 4 };
    bool is_due = sheet->over_dotted ? column % DOTTED_EVERY == 0
                                     : (column / TURN_COLUMNS + sheet->turn) % 2 == 0;
    return sheet->turn > 0 && is_due && holds_dots(sheet, cell) && cell->style.ink != INK_BORDER;
}

static void dot(const Sheet *sheet, int x, int y, Style style) {
    static const uint8_t bits[DOTS_Y][DOTS_X] = {{1, 8}, {2, 16}, {4, 32}, {64, 128}};
    if (x < 0 || x >= sheet->width || y < 0 || y >= sheet->height)
        return;
    int column = x / DOTS_X, row = y / DOTS_Y;
    Area area = sheet->area;
    const Cell *cell = frame_cell(area.frame, area.column + column, area.row + row);
    if (is_others_turn(sheet, column, cell))
        style = cell->style;
    if (area.frame->ascii) {
        area_put(area, column, row, style, (uint32_t)ascii_dots[y % DOTS_Y]);
        return;
    }
    // A line takes the place of the spans behind it, which would else take on its ink.
    bool is_behind = cell->style.ink == INK_BORDER && style.ink != INK_BORDER;
    uint32_t dots = holds_dots(sheet, cell) && !is_behind ? cell->rune & 0xFF : 0;
    area_put(area, column, row, style, GLYPH_BRAILLE + (dots | bits[y % DOTS_Y][x % DOTS_X]));
}

static double dot_x(const Sheet *sheet, double x) {
    double span = sheet->axes.right - sheet->axes.left;
    return span > 0 ? (x - sheet->axes.left) / span * (sheet->width - 1) : 0;
}

// Kept near the sheet, so that a value far outside it costs no more than one at its edge.
static double dot_y(const Sheet *sheet, double y) {
    const PlotAxes *axes = &sheet->axes;
    if (axes->log_y && y <= 0)
        return sheet->height;
    double low = scaled(axes->bottom, axes->log_y), high = scaled(axes->top, axes->log_y);
    double share = high > low ? (scaled(y, axes->log_y) - low) / (high - low) : 0.5;
    return fmin(fmax((1 - share) * (sheet->height - 1), -1), sheet->height);
}

int plot_row_of(const PlotAxes *axes, int height, double y) {
    Sheet sheet = {.height = height * DOTS_Y, .axes = *axes};
    double dots = dot_y(&sheet, y);
    return y >= axes->bottom && y <= axes->top ? (int)lround(dots) / DOTS_Y : -1;
}

// `phase`: which dot of a dotted line comes next; NULL: the line is not dotted.
static void segment(const Sheet *sheet, double x0, double y0, double x1, double y1, Style style,
                    int *phase) {
    enum { EVERY = 3 };
    double length = fmax(fabs(x1 - x0), fabs(y1 - y0));
    int pieces = (int)ceil(length);
    for (int i = 0; i <= pieces; i++) {
        double share = pieces > 0 ? (double)i / pieces : 0;
        if (phase && (i == pieces || (*phase)++ % EVERY != 0)) // its end is the next one's start
            continue;
        dot(sheet, (int)lround(x0 + (x1 - x0) * share), (int)lround(y0 + (y1 - y0) * share), style);
    }
}

static void draw_spans(const Sheet *sheet, const PlotLine *line) {
    for (int i = 0; i < line->count; i++) {
        const PlotPoint *point = &line->points[i];
        if (!isfinite(point->low) || !isfinite(point->high))
            continue;
        double x = dot_x(sheet, point->x);
        segment(sheet, x, dot_y(sheet, point->low), x, dot_y(sheet, point->high),
                style_of(INK_BORDER), NULL);
    }
}

// The points from `first` on that fall upon one column of dots as one: the mean of what is drawn.
// Returns how many they are.
static int gather_column(const Sheet *sheet, const PlotLine *line, int first, double *x,
                         double *y) {
    int count = 0;
    double sum = 0;
    *x = dot_x(sheet, line->points[first].x);
    for (int i = first; i < line->count; i++, count++) {
        const PlotPoint *point = &line->points[i];
        if (!isfinite(point->mean) || lround(dot_x(sheet, point->x)) != lround(*x))
            break;
        sum += scaled(point->mean, sheet->axes.log_y);
    }
    double mean = count > 0 ? sum / count : NAN;
    *y = dot_y(sheet, sheet->axes.log_y ? exp(mean) : mean);
    return count;
}

static void draw_slopes(const Sheet *sheet, const PlotLine *line) {
    Style style = style_of(line->ink);
    bool has_last = false;
    double last_x = 0, last_y = 0, x, y;
    int dots = 0, *phase = line->dotted ? &dots : NULL;
    for (int i = 0; i < line->count;) {
        int gathered = gather_column(sheet, line, i, &x, &y);
        i += gathered > 0 ? gathered : 1;
        if (gathered == 0) {
            has_last = false; // a gap is a gap
            continue;
        }
        if (has_last && !(last_x < 0 && x < 0))
            segment(sheet, last_x, last_y, x, y, style, phase);
        else
            dot(sheet, (int)lround(x), (int)lround(y), style);
        has_last = true;
        last_x = x;
        last_y = y;
    }
}

static void draw_steps(const Sheet *sheet, const PlotLine *line) {
    Style style = style_of(line->ink);
    bool has_last = false;
    double last_x = 0, last_y = 0;
    for (int i = 0; i < line->count; i++) {
        const PlotPoint *point = &line->points[i];
        if (!isfinite(point->mean)) {
            has_last = false;
            continue;
        }
        double x = dot_x(sheet, point->x), y = dot_y(sheet, point->mean);
        if (has_last) {
            segment(sheet, last_x, last_y, x, last_y, style, NULL);
            segment(sheet, x, last_y, x, y, style, NULL);
        } else {
            dot(sheet, (int)lround(x), (int)lround(y), style);
        }
        has_last = true;
        last_x = x;
        last_y = y;
    }
    if (has_last)
        segment(sheet, last_x, last_y, sheet->width - 1, last_y, style, NULL);
}

static void draw_marks(const Sheet *sheet, const PlotLine *line) {
    for (int i = 0; i < line->count; i++) {
        if (!line->points[i].bad)
            continue;
        int column = plot_column_of(&sheet->axes, sheet->area.width, line->points[i].x);
        area_put(sheet->area, column, sheet->area.height - 1, style_bold(INK_BAD), GLYPH_CROSS);
    }
}

void plot_draw(Area area, const PlotAxes *axes, const PlotLine *lines, int count) {
    if (area_is_empty(area))
        return;
    Sheet sheet = {area, area.width * DOTS_X, area.height * DOTS_Y, *axes, 0, true};
    for (int i = 0; i < count; i++)
        if (lines[i].spans)
            draw_spans(&sheet, &lines[i]);
    for (; sheet.turn < count; sheet.turn++) {
        const PlotLine *line = &lines[sheet.turn];
        if (line->steps)
            draw_steps(&sheet, line);
        else
            draw_slopes(&sheet, line);
        sheet.over_dotted = sheet.over_dotted && line->dotted;
    }
    for (int i = 0; i < count; i++)
        draw_marks(&sheet, &lines[i]);
}

// ---- labels -------------------------------------------------------------------------------------

// `apart`: how far the next label is, so that two are not written alike. What is too long for
// `width` is rounded rather than cut.
static void label(char *text, size_t size, double value, double apart, bool power_of_two,
                  int width) {
    enum { MOST_DECIMALS = 6 };
    const double nothing = 1e-6; // of the distance: what is left of a zero that was computed
    int exponent;
    if (power_of_two && frexp(value, &exponent) == 0.5) {
        snprintf(text, size, "2^%d", exponent - 1);
        return;
    }
    double magnitude = fabs(value);
    if (magnitude < apart * nothing)
        magnitude = value = 0;
    if (value != 0 && (magnitude < 1e-3 || magnitude >= 1e5)) {
        snprintf(text, size, "%s", word_power(value, 1).text);
        if ((int)strlen(text) > width)
            snprintf(text, size, "%s", word_power(value, 0).text);
        return;
    }
    int decimals = magnitude < 10 ? 2 : magnitude < 1000 ? 1 : 0;
    while (decimals < MOST_DECIMALS && apart > 0 && apart < pow(10, -decimals))
        decimals++;
    while (snprintf(text, size, "%.*f", decimals, value) > width && decimals > 0)
        decimals--;
}

void plot_label_y(Area area, const PlotAxes *axes, bool powers_of_two) {
    enum { ROWS_BETWEEN = 3 };
    if (area_is_empty(area))
        return;
    double low = scaled(axes->bottom, axes->log_y), high = scaled(axes->top, axes->log_y);
    int count = area.height > 1 ? (area.height - 1) / ROWS_BETWEEN + 1 : 1;
    for (int i = 0; i < count; i++) {
        int row = count > 1 ? i * (area.height - 1) / (count - 1) : 0;
        // The middle of the row's dots.
        double share = area.height > 1 ? 1 - (double)row / (area.height - 1) : 1;
        double value = low + (high - low) * share;
        value = axes->log_y ? exp(value) : value;
        if (powers_of_two) // the nearest one
            value = exp2(round(log2(fmax(value, 0x1p-126))));
        char text[32];
        double apart = count > 1 ? (axes->top - axes->bottom) / (count - 1) : 0;
        label(text, sizeof text, value, axes->log_y ? apart * value / axes->top : apart,
              powers_of_two, area.width);
        area_text_right(area, area.width, row, style_of(INK_DIM), text);
    }
}
