#include "cli/print/curve.h"

#include <ctype.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "cli/print/text.h"

enum { BRAILLE_WIDE = 2, BRAILLE_HIGH = 4, ASCII_HIGH = 2, MOST_ROWS = 32 };

static const double log_span = 30;

bool curve_locale_is_utf8(void) {
    static const char *const names[] = {"LC_ALL", "LC_CTYPE", "LANG"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const char *value = getenv(names[i]);
        if (!value || !value[0])
            continue; // the next one decides
        for (; *value; value++)
            if (tolower((unsigned char)value[0]) == 'u' &&
                tolower((unsigned char)value[1]) == 't' && tolower((unsigned char)value[2]) == 'f')
                return true;
        return false;
    }
    return false;
}

CurveAxis curve_axis(const double *values, int count) {
    CurveAxis axis = {.low = INFINITY, .high = -INFINITY};
    for (int i = 0; i < count; i++) {
        if (!isfinite(values[i]))
            continue;
        axis.low = fmin(axis.low, values[i]);
        axis.high = fmax(axis.high, values[i]);
    }
    if (axis.low > axis.high)
        return (CurveAxis){0, 1, false};
    axis.is_log = axis.low > 0 && axis.high / axis.low >= log_span;
    if (axis.low == axis.high) {
        double room = axis.low != 0 ? fabs(axis.low) / 2 : 1;
        axis.low -= room;
        axis.high += room;
    }
    return axis;
}

int curve_cells(const CurveFrame *frame) {
    int cells = frame->columns * (frame->has_braille ? BRAILLE_WIDE : 1);
    return cells < CURVE_MOST_CELLS ? cells : CURVE_MOST_CELLS;
}

// Where a value stands, from 0 at the bottom to 1 at the top.
static double place(const CurveAxis *axis, double value) {
    double share = axis->is_log ? log(value / axis->low) / log(axis->high / axis->low)
                                : (value - axis->low) / (axis->high - axis->low);
    return share < 0 ? 0 : share > 1 ? 1 : share;
}

static void print_utf8(FILE *out, unsigned point) { // U+0800 .. U+FFFF
    fputc((int)(0xe0 | point >> 12), out);
    fputc((int)(0x80 | (point >> 6 & 0x3f)), out);
    fputc((int)(0x80 | (point & 0x3f)), out);
}

typedef struct Canvas { // dots, from the bottom
    uint64_t lit[CURVE_MOST_CELLS][2];
    bool is_broken[CURVE_MOST_CELLS];
    int cells, high;
} Canvas;

static void light(Canvas *canvas, int cell, int from, int to) {
    for (int dot = from < to ? from : to; dot <= (from < to ? to : from); dot++)
        canvas->lit[cell][dot / 64] |= (uint64_t)1 << dot % 64;
}

static bool is_lit(const Canvas *canvas, int cell, int dot) {
    return cell < canvas->cells && canvas->lit[cell][dot / 64] >> dot % 64 & 1;
}

static void draw(Canvas *canvas, const CurveAxis *axis, const double *values) {
    int before = -1; // the dot of the cell to the left; lines join neighbours
    for (int i = 0; i < canvas->cells; i++) {
        canvas->is_broken[i] = isinf(values[i]);
        if (!isfinite(values[i])) {
            before = -1;
            continue;
        }
        int dot = (int)lround(place(axis, values[i]) * (canvas->high - 1));
        int from = before < 0 || before == dot ? dot : before < dot ? before + 1 : before - 1;
        light(canvas, i, from, dot);
        before = dot;
    }
}

static void print_braille(FILE *out, const Canvas *canvas, int column, int row) {
    static const unsigned bits[BRAILLE_WIDE][BRAILLE_HIGH] = {{0x40, 0x04, 0x02, 0x01},
                                                              {0x80, 0x20, 0x10, 0x08}};
    unsigned dots = 0;
    bool is_broken = false;
    for (int x = 0; x < BRAILLE_WIDE; x++) {
        int cell = column * BRAILLE_WIDE + x;
        is_broken |= cell < canvas->cells && canvas->is_broken[cell];
        for (int y = 0; y < BRAILLE_HIGH; y++)
            if (is_lit(canvas, cell, row * BRAILLE_HIGH + y))
                dots |= bits[x][y];
    }
    if (is_broken && row == 0)
        fputs("×", out);
    else if (dots)
        print_utf8(out, 0x2800 | dots);
    else
        fputc(' ', out);
}

static void print_ascii(FILE *out, const Canvas *canvas, int column, int row) {
    bool low = is_lit(canvas, column, row * ASCII_HIGH);
    bool high = is_lit(canvas, column, row * ASCII_HIGH + 1);
    if (canvas->is_broken[column] && row == 0)
        fputc('!', out);
    else
        fputc(low && high ? '|' : low ? '.' : high ? '\'' : ' ', out);
}

void curve_bridge(double *cells, int count) {
    int before = -1;
    for (int i = 0; i < count; i++) {
        if (isnan(cells[i]))
            continue;
        for (int k = before + 1; k < i && before >= 0; k++)
            cells[k] =
                isfinite(cells[before]) && isfinite(cells[i])
                    ? cells[before] + (cells[i] - cells[before]) * (k - before) / (i - before)
                    : NAN;
        before = i;
    }
}

void curve_print(FILE *out, const CurveFrame *frame, const CurveAxis *axis, const double *values) {
    int rows = frame->rows < MOST_ROWS ? frame->rows : MOST_ROWS;
    Canvas canvas = {.cells = curve_cells(frame),
                     .high = rows * (frame->has_braille ? BRAILLE_HIGH : ASCII_HIGH)};
    draw(&canvas, axis, values);
    int columns = frame->has_braille ? canvas.cells / BRAILLE_WIDE : canvas.cells;
    for (int row = rows - 1; row >= 0; row--) {
        char label[TEXT_SIZE] = "";
        if (row == rows - 1)
            text_number(label, axis->high, 3);
        else if (row == 0)
            text_number(label, axis->low, 3);
        fprintf(out, "%s%*s %s%s", frame->indent, CURVE_LABEL_COLUMNS - 2, label,
                frame->has_braille ? "│" : "|", frame->style);
        for (int column = 0; column < columns; column++)
            if (frame->has_braille)
                print_braille(out, &canvas, column, row);
            else
                print_ascii(out, &canvas, column, row);
        fprintf(out, "%s\n", frame->plain);
    }
}

void curve_spark(char *text, size_t size, const double *values, int count, bool has_blocks) {
    static const char *const blocks[] = {" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
    static const char *const signs[] = {" ", ".", ".", ":", "-", "=", "+", "*", "#"};
    const int levels = 8;
    double most = 0;
    size_t used = 0;
    if (size > 0)
        text[0] = 0;
    for (int i = 0; i < count; i++)
        most = fmax(most, isfinite(values[i]) ? values[i] : 0);
    for (int i = 0; i < count; i++) {
        int level = values[i] > 0 && most > 0 ? (int)ceil(values[i] / most * levels) : 0;
        const char *mark = (has_blocks ? blocks : signs)[level > levels ? levels : level];
        size_t length = strlen(mark);
        if (used + length + 1 > size)
            return;
        memcpy(text + used, mark, length + 1);
        used += length;
    }
}
